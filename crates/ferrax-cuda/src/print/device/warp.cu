// The value of the lane that is `d` lanes further up in the warp.
FX int fx_shuffle(int x, int d) { return __shfl_down_sync(0xffffffffu, x, d); }
FX unsigned fx_shuffle(unsigned x, int d) { return __shfl_down_sync(0xffffffffu, x, d); }
FX long long fx_shuffle(long long x, int d) { return __shfl_down_sync(0xffffffffu, x, d); }
FX unsigned long long fx_shuffle(unsigned long long x, int d) { return __shfl_down_sync(0xffffffffu, x, d); }
FX float fx_shuffle(float x, int d) { return __shfl_down_sync(0xffffffffu, x, d); }
FX double fx_shuffle(double x, int d) { return __shfl_down_sync(0xffffffffu, x, d); }
FX signed char fx_shuffle(signed char x, int d) { return (signed char)__shfl_down_sync(0xffffffffu, (int)x, d); }
FX short fx_shuffle(short x, int d) { return (short)__shfl_down_sync(0xffffffffu, (int)x, d); }
FX unsigned char fx_shuffle(unsigned char x, int d) { return (unsigned char)__shfl_down_sync(0xffffffffu, (int)x, d); }
FX unsigned short fx_shuffle(unsigned short x, int d) { return (unsigned short)__shfl_down_sync(0xffffffffu, (int)x, d); }
FX fx_c64 fx_shuffle(fx_c64 x, int d) {
  return fx_c64_of(__shfl_down_sync(0xffffffffu, x.re, d), __shfl_down_sync(0xffffffffu, x.im, d));
}
FX fx_c128 fx_shuffle(fx_c128 x, int d) {
  return fx_c128_of(__shfl_down_sync(0xffffffffu, x.re, d), __shfl_down_sync(0xffffffffu, x.im, d));
}

// The value of the lane whose number differs in the bits of `d`.
FX int fx_shuffle_xor(int x, int d) { return __shfl_xor_sync(0xffffffffu, x, d); }
FX unsigned fx_shuffle_xor(unsigned x, int d) { return __shfl_xor_sync(0xffffffffu, x, d); }
FX long long fx_shuffle_xor(long long x, int d) { return __shfl_xor_sync(0xffffffffu, x, d); }
FX unsigned long long fx_shuffle_xor(unsigned long long x, int d) { return __shfl_xor_sync(0xffffffffu, x, d); }
FX float fx_shuffle_xor(float x, int d) { return __shfl_xor_sync(0xffffffffu, x, d); }
FX double fx_shuffle_xor(double x, int d) { return __shfl_xor_sync(0xffffffffu, x, d); }
FX signed char fx_shuffle_xor(signed char x, int d) { return (signed char)__shfl_xor_sync(0xffffffffu, (int)x, d); }
FX short fx_shuffle_xor(short x, int d) { return (short)__shfl_xor_sync(0xffffffffu, (int)x, d); }
FX unsigned char fx_shuffle_xor(unsigned char x, int d) { return (unsigned char)__shfl_xor_sync(0xffffffffu, (int)x, d); }
FX unsigned short fx_shuffle_xor(unsigned short x, int d) { return (unsigned short)__shfl_xor_sync(0xffffffffu, (int)x, d); }
