// Starts to copy 16 bytes from the GPU's memory to shared memory; where `there` does not hold, they become zeros.
FX void fx_copy_async(void* to, const void* from, bool there) {
  FX_PTX(host_copy(to, from, there), "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::
         "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "r"(there ? 16 : 0) : "memory");
}

// Ends a set of such copies.
FX void fx_copies_end() { FX_PTX((void)0, "cp.async.commit_group;" ::: "memory"); }

// Waits for all sets of this thread's copies but the last one.
FX void fx_copies_wait() { FX_PTX((void)0, "cp.async.wait_group 1;" ::: "memory"); }

// Four matrices of 8 x 8 numbers of 16 bits, whose rows the lanes name: of matrix i those that lanes 8i to 8i + 7 point to.
// A lane gets two neighbours of each: columns 2 (lane % 4) and the next one of row lane / 4.
FX void fx_matrices(unsigned* x, const void* row) {
  FX_PTX(host_matrices(x, row, false), "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" :
         "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"((unsigned)__cvta_generic_to_shared(row)) : "memory");
}

// The same of the transposed matrices.
FX void fx_matrices_transposed(unsigned* x, const void* row) {
  FX_PTX(host_matrices(x, row, true), "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" :
         "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"((unsigned)__cvta_generic_to_shared(row)) : "memory");
}

// Adds the product of a warp's 16 x 16 and 16 x 8 numbers to 16 x 8 sums in single precision.
FX void fx_multiply_bf16(float* d, const unsigned* a, const unsigned* b) {
  FX_PTX(host_multiply(d, a, b, true),
         "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" :
         "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) :
         "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

FX void fx_multiply_f16(float* d, const unsigned* a, const unsigned* b) {
  FX_PTX(host_multiply(d, a, b, false),
         "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" :
         "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) :
         "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// The nearest number of TF32.
FX unsigned fx_tf32(unsigned x) {
  unsigned y;
  FX_PTX(y = host_tf32(x), "cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(__uint_as_float(x)));
  return y;
}

// Adds the product of a warp's 16 x 8 and 8 x 8 numbers of TF32 to 16 x 8 sums in single precision.
FX void fx_multiply_tf32(float* d, const unsigned* a, const unsigned* b) {
  FX_PTX(host_multiply_tf32(d, a, b),
         "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" :
         "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) :
         "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
