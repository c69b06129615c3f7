// CUDA C on the host, for tests: a block's threads run one after another, as fibers where they wait for each other.
//
// Threads of a block, and blocks, run in an order that a seed shuffles, so that kernels whose results depend on the order
// are found. A thread that ends while others wait for it at a barrier ends the process. Shared memory is one block's at a
// time, and keeps what the block before left in it.
#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

struct fx_host_dim {
  unsigned x, y, z;
};
static fx_host_dim threadIdx, blockIdx, blockDim, gridDim;

#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(threads, blocks)
#define __align__(n) alignas(n)
#define __launch_bounds__(...)

static inline float __fadd_rn(float x, float y) { return x + y; }
static inline float __fsub_rn(float x, float y) { return x - y; }
static inline float __fmul_rn(float x, float y) { return x * y; }
static inline float __fdiv_rn(float x, float y) { return x / y; }
static inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
static inline float __fsqrt_rn(float x) { return sqrtf(x); }
static inline double __dadd_rn(double x, double y) { return x + y; }
static inline double __dsub_rn(double x, double y) { return x - y; }
static inline double __dmul_rn(double x, double y) { return x * y; }
static inline double __ddiv_rn(double x, double y) { return x / y; }
static inline double __fma_rn(double x, double y, double z) { return fma(x, y, z); }
static inline double __dsqrt_rn(double x) { return sqrt(x); }
template <class T, class F> static inline T fx_host_bits(F x) {
  T y;
  memcpy(&y, &x, sizeof(T));
  return y;
}
static inline unsigned __float_as_uint(float x) { return fx_host_bits<unsigned>(x); }
static inline float __uint_as_float(unsigned x) { return fx_host_bits<float>(x); }
static inline long long __double_as_longlong(double x) { return fx_host_bits<long long>(x); }
static inline double __longlong_as_double(long long x) { return fx_host_bits<double>(x); }
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return (unsigned long long)((unsigned __int128)x * y >> 64);
}
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll((unsigned long long)x); }

// Fibers.
enum { FX_HOST_THREADS = 1024, FX_HOST_STACK = 1 << 16 };
enum fx_host_state { FX_READY, FX_WARP, FX_BLOCK, FX_DONE };
struct fx_host_fiber {
  jmp_buf at;
  fx_host_state state;
  bool begun;
  unsigned long long slot;
};
static fx_host_fiber fx_host_fibers[FX_HOST_THREADS];
extern "C" char* fx_host_stacks;
char* fx_host_stacks;
static jmp_buf fx_host_main;
static ucontext_t fx_host_start, fx_host_back;
static unsigned fx_host_me, fx_host_count;
static uint64_t fx_host_random;
static void (*fx_host_kernel)();
static const uint64_t* fx_host_args;

static unsigned fx_host_below(unsigned n) {
  fx_host_random = fx_host_random * 6364136223846793005ull + 1442695040888963407ull;
  return (unsigned)((fx_host_random >> 33) % n);
}

static void fx_host_shuffle(unsigned* order, unsigned n) {
  for (unsigned i = 0; i < n; ++i) order[i] = i;
  for (unsigned i = n; i > 1; --i) {
    unsigned k = fx_host_below(i), x = order[k];
    order[k] = order[i - 1];
    order[i - 1] = x;
  }
}

// Pointers and integers of 64 bits are passed alike; a function takes the first ones that it has.
static void fx_host_call() {
  typedef uint64_t W;
  typedef void (*F)(W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W,
                    W, W, W, W, W, W, W, W, W, W, W, W, W, W);
  const W* a = fx_host_args;
  ((F)fx_host_kernel)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14],
                      a[15], a[16], a[17], a[18], a[19], a[20], a[21], a[22], a[23], a[24], a[25], a[26], a[27], a[28],
                      a[29], a[30], a[31], a[32], a[33], a[34], a[35], a[36], a[37], a[38], a[39], a[40], a[41], a[42],
                      a[43], a[44], a[45], a[46], a[47]);
}

static void fx_host_body() {
  fx_host_call();
  fx_host_fibers[fx_host_me].state = FX_DONE;
  _longjmp(fx_host_main, 1);
}

static void fx_host_wait(fx_host_state state) {
  unsigned me = fx_host_me;
  fx_host_fibers[me].state = state;
  if (!_setjmp(fx_host_fibers[me].at)) _longjmp(fx_host_main, 1);
}

static inline void __syncthreads() { fx_host_wait(FX_BLOCK); }

static inline void __syncwarp(unsigned = 0xffffffffu) { fx_host_wait(FX_WARP); }

// The value of a lane of the warp; a lane outside of it means one's own.
template <class T> static T fx_host_lane(T x, int lane) {
  unsigned me = fx_host_me;
  memcpy(&fx_host_fibers[me].slot, &x, sizeof(T));
  fx_host_wait(FX_WARP);
  T y = x;
  if (lane >= 0 && lane < 32) memcpy(&y, &fx_host_fibers[me / 32 * 32 + (unsigned)lane].slot, sizeof(T));
  fx_host_wait(FX_WARP);
  return y;
}
template <class T> static T __shfl_down_sync(unsigned, T x, int d) { return fx_host_lane(x, (int)(fx_host_me % 32) + d); }
template <class T> static T __shfl_up_sync(unsigned, T x, int d) { return fx_host_lane(x, (int)(fx_host_me % 32) - d); }
template <class T> static T __shfl_sync(unsigned, T x, int lane) { return fx_host_lane(x, lane % 32); }

static unsigned __ballot_sync(unsigned, int set) {
  unsigned me = fx_host_me, lanes = 0;
  fx_host_fibers[me].slot = set != 0;
  fx_host_wait(FX_WARP);
  for (unsigned k = 0; k < 32; ++k) lanes |= (unsigned)fx_host_fibers[me / 32 * 32 + k].slot << k;
  fx_host_wait(FX_WARP);
  return lanes;
}

// Instructions that have no name in CUDA C: what stands for them here is the first argument.
#define FX_PTX(host, ...) host

static void host_copy(void* to, const void* from, bool there) {
  if (there) memcpy(to, from, 16);
  else memset(to, 0, 16);
}

// What lanes of a warp give to each other: addresses of rows, and fragments of matrices.
struct fx_host_given {
  const uint16_t* row;
  unsigned a[4], b[2];
};
static fx_host_given fx_host_lanes[FX_HOST_THREADS];

static void host_matrices(unsigned* x, const void* row, bool transposed) {
  unsigned me = fx_host_me, warp = me / 32 * 32, lane = me % 32;
  fx_host_lanes[me].row = (const uint16_t*)row;
  fx_host_wait(FX_WARP);
  for (unsigned i = 0; i < 4; ++i) {
    uint16_t pair[2];
    for (unsigned k = 0; k < 2; ++k) {
      unsigned r = lane / 4, c = lane % 4 * 2 + k;
      pair[k] = transposed ? fx_host_lanes[warp + 8 * i + c].row[r] : fx_host_lanes[warp + 8 * i + r].row[c];
    }
    memcpy(x + i, pair, 4);
  }
  fx_host_wait(FX_WARP);
}

static float host_number(unsigned pair, unsigned k, bool bf16) {
  unsigned code = pair >> (16 * k) & 0xffff;
  if (bf16) return __uint_as_float(code << 16);
  float size = (code >> 10 & 31) == 31 ? ((code & 1023) ? NAN : INFINITY)
               : (code >> 10 & 31)    ? ldexpf(1024 + (code & 1023), (int)(code >> 10 & 31) - 25)
                                      : ldexpf(code & 1023, -24);
  return code >> 15 ? -size : size;
}

// Gives fragments to the lanes of the warp, whose first thread's number it returns.
static unsigned host_give(const unsigned* a, const unsigned* b) {
  unsigned me = fx_host_me;
  memcpy(fx_host_lanes[me].a, a, 16);
  memcpy(fx_host_lanes[me].b, b, 8);
  fx_host_wait(FX_WARP);
  return me / 32 * 32;
}

static void host_multiply(float* d, const unsigned* a, const unsigned* b, bool bf16) {
  unsigned warp = host_give(a, b), lane = fx_host_me % 32;
  for (unsigned e = 0; e < 4; ++e) {
    unsigned r = lane / 4, c = lane % 4 * 2 + e % 2;
    for (unsigned k = 0; k < 16; ++k) {
      float x = host_number(fx_host_lanes[warp + r * 4 + k % 8 / 2].a[e / 2 + k / 8 * 2], k % 2, bf16);
      float y = host_number(fx_host_lanes[warp + c * 4 + k % 8 / 2].b[k / 8], k % 2, bf16);
      d[e] += x * y;
    }
  }
  fx_host_wait(FX_WARP);
}

// The nearest of 10 bits behind the point, away from zero where two are; infinities and what is no number stay.
static unsigned host_tf32(unsigned x) {
  if ((x >> 23 & 255) == 255) return x;
  return (x + 0x1000) & 0xffffe000;
}

static void host_multiply_tf32(float* d, const unsigned* a, const unsigned* b) {
  unsigned warp = host_give(a, b), lane = fx_host_me % 32;
  for (unsigned e = 0; e < 4; ++e) {
    unsigned r = lane / 4, c = lane % 4 * 2 + e % 2;
    for (unsigned k = 0; k < 8; ++k) {
      float x = __uint_as_float(fx_host_lanes[warp + r * 4 + k % 4].a[e / 2 + k / 4 * 2]);
      float y = __uint_as_float(fx_host_lanes[warp + c * 4 + k % 4].b[k / 4]);
      d[e] += x * y;
    }
  }
  fx_host_wait(FX_WARP);
}

template <class T> static T __shfl_xor_sync(unsigned, T x, int d) {
  unsigned me = fx_host_me;
  memcpy(&fx_host_fibers[me].slot, &x, sizeof(T));
  fx_host_wait(FX_WARP);
  T y;
  memcpy(&y, &fx_host_fibers[me ^ (unsigned)d].slot, sizeof(T));
  fx_host_wait(FX_WARP);
  return y;
}

template <class T> static T atomicAdd(T* at, T x) {
  T old = *at;
  *at = old + x;
  return old;
}

template <class T> static T atomicMin(T* at, T x) {
  T old = *at;
  *at = x < old ? x : old;
  return old;
}
template <class T> static T atomicMax(T* at, T x) {
  T old = *at;
  *at = x > old ? x : old;
  return old;
}

static void fx_host_resume(unsigned me) {
  fx_host_me = me;
  threadIdx.x = me;
  fx_host_fiber* fiber = &fx_host_fibers[me];
  if (_setjmp(fx_host_main)) return;
  if (fiber->begun) _longjmp(fiber->at, 1);
  fiber->begun = true;
  getcontext(&fx_host_start);
  fx_host_start.uc_stack.ss_sp = fx_host_stacks + (size_t)me * FX_HOST_STACK;
  fx_host_start.uc_stack.ss_size = FX_HOST_STACK;
  fx_host_start.uc_link = 0;
  makecontext(&fx_host_start, fx_host_body, 0);
  swapcontext(&fx_host_back, &fx_host_start);
}

static bool fx_host_release(unsigned first, unsigned end, fx_host_state state) {
  for (unsigned i = first; i < end; ++i) {
    if (fx_host_fibers[i].state != state) return false;
  }
  for (unsigned i = first; i < end; ++i) fx_host_fibers[i].state = FX_READY;
  return true;
}

static void fx_host_block(bool waits) {
  static unsigned order[FX_HOST_THREADS];
  unsigned n = fx_host_count;
  fx_host_shuffle(order, n);
  if (!waits) {
    for (unsigned i = 0; i < n; ++i) {
      threadIdx.x = order[i];
      fx_host_call();
    }
    return;
  }
  for (unsigned i = 0; i < n; ++i) fx_host_fibers[i] = fx_host_fiber();
  for (;;) {
    bool ran = false;
    unsigned done = 0;
    for (unsigned i = 0; i < n; ++i) {
      if (fx_host_fibers[order[i]].state == FX_READY) {
        fx_host_resume(order[i]);
        ran = true;
      }
    }
    for (unsigned i = 0; i < n; ++i) done += fx_host_fibers[i].state == FX_DONE;
    if (done == n) return;
    bool freed = false;
    for (unsigned w = 0; w < n; w += 32) freed |= fx_host_release(w, w + 32 < n ? w + 32 : n, FX_WARP);
    freed |= fx_host_release(0, n, FX_BLOCK);
    if (!ran && !freed) {
      fprintf(stderr, "threads of a block wait for threads that have ended or wait elsewhere\n");
      abort();
    }
  }
}

extern "C" void fx_host_launch(void (*kernel)(), const unsigned* shape, const uint64_t* args, uint64_t seed, int waits) {
  if (!fx_host_stacks) fx_host_stacks = (char*)malloc((size_t)FX_HOST_THREADS * FX_HOST_STACK);
  fx_host_kernel = kernel;
  fx_host_args = args;
  fx_host_random = seed;
  gridDim.x = shape[0];
  blockDim.x = fx_host_count = shape[1];
  gridDim.y = gridDim.z = blockDim.y = blockDim.z = 1;
  unsigned blocks = gridDim.x, first = fx_host_below(blocks), step = seed % 2 ? 1 : blocks - 1;
  for (unsigned k = 0; k < blocks; ++k) {
    blockIdx.x = (unsigned)((first + (uint64_t)k * step) % blocks);
    fx_host_block(waits != 0);
  }
}
