// The value of the lane that is `d` lanes further up in the warp.
template <class T> FX T fx_shuffle(T x, int d) { return (T)__shfl_down_sync(0xffffffffu, x, d); }
FX fx_c64 fx_shuffle(fx_c64 x, int d) { return fx_c64_of(fx_shuffle(x.re, d), fx_shuffle(x.im, d)); }
FX fx_c128 fx_shuffle(fx_c128 x, int d) { return fx_c128_of(fx_shuffle(x.re, d), fx_shuffle(x.im, d)); }

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
template <class T> FX T fx_shuffle_xor(T x, int d) { return (T)__shfl_xor_sync(0xffffffffu, x, d); }
