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

// The value of the lane that is `d` lanes further down; the first `d` lanes keep theirs.
template <class T> FX T fx_shuffle_up(T x, int d) { return (T)__shfl_up_sync(0xffffffffu, x, d); }
FX fx_c64 fx_shuffle_up(fx_c64 x, int d) { return fx_c64_of(fx_shuffle_up(x.re, d), fx_shuffle_up(x.im, d)); }
FX fx_c128 fx_shuffle_up(fx_c128 x, int d) { return fx_c128_of(fx_shuffle_up(x.re, d), fx_shuffle_up(x.im, d)); }

// The value of a lane.
template <class T> FX T fx_shuffle_of(T x, int lane) { return (T)__shfl_sync(0xffffffffu, x, lane); }
FX fx_c64 fx_shuffle_of(fx_c64 x, int lane) { return fx_c64_of(fx_shuffle_of(x.re, lane), fx_shuffle_of(x.im, lane)); }
FX fx_c128 fx_shuffle_of(fx_c128 x, int lane) {
  return fx_c128_of(fx_shuffle_of(x.re, lane), fx_shuffle_of(x.im, lane));
}

// The lanes that have the same lowest B bits.
template <int B> FX unsigned fx_same(unsigned x) {
  unsigned same = 0xffffffffu;
  for (int b = 0; b < B; ++b) {
    const unsigned set = x >> b & 1, lanes = __ballot_sync(0xffffffffu, set);
    same &= set ? lanes : ~lanes;
  }
  return same;
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
