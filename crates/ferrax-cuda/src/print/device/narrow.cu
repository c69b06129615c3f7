// The hardware's conversions give one NaN for all.
FX unsigned short fx_to_bf16(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  unsigned short y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
#else
  unsigned b = __float_as_uint(x);
  if ((b & 0x7fffffffu) > 0x7f800000u) return (unsigned short)(b >> 16 | 64);
  return (unsigned short)((b + 0x7fff + (b >> 16 & 1)) >> 16);
#endif
}

FX float fx_of_bf16(unsigned short x) { return __uint_as_float((unsigned)x << 16); }

// Exponent and mantissa fields (E and M bits, exponents biased by B) of |x|, which is no NaN, rounded to nearest, ties to
// even; possibly beyond the largest.
template <int M, int B> FX unsigned fx_fields(float x) {
  unsigned b = __float_as_uint(x) & 0x7fffffffu;
  if (b == 0) return 0;
  if (b >= 0x7f800000u) return 0xffffffffu;
  int e = (int)(b >> 23) - 127;
  unsigned m = b & 0x7fffffu;
  if (e == -127) e = -126;
  else m |= 0x800000u;
  int near = e > 1 - B ? e : 1 - B;
  int drop = 23 - M + (near - e);
  unsigned kept = 0;
  if (drop <= 24) {
    unsigned rest = m & ((1u << drop) - 1), half = 1u << (drop - 1);
    kept = m >> drop;
    kept += rest > half || (rest == half && (kept & 1)) ? 1 : 0;
  }
  return ((unsigned)(near + B - 1) << M) + kept;
}

// Floats of E exponent and M mantissa bits. K says how the largest exponent's codes are used: 0 as in IEEE 754; 1 has NaN
// where all bits are ones and no infinity; 2 has NaN in place of -0 and no infinity; 3 has finite numbers alone.
template <int E, int M, int B, int K> FX unsigned fx_code(float x) {
  const unsigned top = (1u << (E + M)) - 1;
  const unsigned largest = K == 0 ? top - (1u << M) : K == 1 ? top - 1 : top;
  unsigned sign = __float_as_uint(x) >> 31 << (E + M);
  unsigned none = K == 0 ? sign | (top - (1u << M) + 1) | 1u << (M - 1) : K == 1 ? sign | top : top + 1;
  if (x != x) return none;
  unsigned size = fx_fields<M, B>(x);
  if (K == 2 && size == 0) return 0;
  if (size > largest) return K == 0 ? sign | (largest + 1) : K == 3 ? sign | largest : none;
  return sign | size;
}

template <int E, int M, int B, int K> FX float fx_value(unsigned code) {
  const unsigned top = (1u << E) - 1;
  unsigned size = code & ((1u << (E + M)) - 1), sign = code >> (E + M) << 31;
  unsigned e = size >> M, m = size & ((1u << M) - 1);
  // Only the widest of these formats has payloads of NaN that are kept.
  if (K == 0 && e == top) return __uint_as_float(sign | 0x7f800000u | (E < 5 || M < 10 ? (m ? 0x400000u : 0) : m << (23 - M)));
  if (K == 1 && size == (1u << (E + M)) - 1) return __uint_as_float(sign | 0x7fc00000u);
  if (K == 2 && sign && size == 0) return __uint_as_float(0xffc00000u);
  if (e) return __uint_as_float(sign | (e + 127 - B) << 23 | m << (23 - M));
  // 2^(1 - B - M) times a small integer.
  float v = (float)(int)m * __uint_as_float((unsigned)(128 - B - M) << 23);
  return __uint_as_float(sign | __float_as_uint(v));
}

FX unsigned short fx_to_f16(float x) {
#if defined(__CUDA_ARCH__)
  unsigned short y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
#else
  return (unsigned short)fx_code<5, 10, 15, 0>(x);
#endif
}

FX float fx_of_f16(unsigned short x) {
#if defined(__CUDA_ARCH__)
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
#else
  return fx_value<5, 10, 15, 0>(x);
#endif
}

FX unsigned char fx_to_f4_e2m1fn(float x) { return (unsigned char)fx_code<2, 1, 1, 3>(x); }

FX float fx_of_f4_e2m1fn(unsigned char x) { return fx_value<2, 1, 1, 3>(x & 15u); }

FX unsigned char fx_to_f8_e3m4(float x) { return (unsigned char)fx_code<3, 4, 3, 0>(x); }

FX float fx_of_f8_e3m4(unsigned char x) { return fx_value<3, 4, 3, 0>(x); }

FX unsigned char fx_to_f8_e4m3(float x) { return (unsigned char)fx_code<4, 3, 7, 0>(x); }

FX float fx_of_f8_e4m3(unsigned char x) { return fx_value<4, 3, 7, 0>(x); }

FX unsigned char fx_to_f8_e4m3b11fnuz(float x) { return (unsigned char)fx_code<4, 3, 11, 2>(x); }

FX float fx_of_f8_e4m3b11fnuz(unsigned char x) { return fx_value<4, 3, 11, 2>(x); }

FX unsigned char fx_to_f8_e4m3fn(float x) { return (unsigned char)fx_code<4, 3, 7, 1>(x); }

FX float fx_of_f8_e4m3fn(unsigned char x) { return fx_value<4, 3, 7, 1>(x); }

FX unsigned char fx_to_f8_e4m3fnuz(float x) { return (unsigned char)fx_code<4, 3, 8, 2>(x); }

FX float fx_of_f8_e4m3fnuz(unsigned char x) { return fx_value<4, 3, 8, 2>(x); }

FX unsigned char fx_to_f8_e5m2(float x) { return (unsigned char)fx_code<5, 2, 15, 0>(x); }

FX float fx_of_f8_e5m2(unsigned char x) { return fx_value<5, 2, 15, 0>(x); }

FX unsigned char fx_to_f8_e5m2fnuz(float x) { return (unsigned char)fx_code<5, 2, 16, 2>(x); }

FX float fx_of_f8_e5m2fnuz(unsigned char x) { return fx_value<5, 2, 16, 2>(x); }

// The nearest power of two, the larger of two that are as near; there is none for zero and what is too large.
FX unsigned char fx_to_f8_e8m0fnu(float x) {
  unsigned b = __float_as_uint(x);
  if (!(x > 0)) return 255;
  if (b < 0x800000u) return b >= 0x600000u ? 1 : 0;
  unsigned code = (b + 0x400000u) >> 23;
  return (unsigned char)(code < 255 ? code : 255);
}

FX float fx_of_f8_e8m0fnu(unsigned char x) {
  return __uint_as_float(x == 255 ? 0x7fc00000u : x == 0 ? 0x400000u : (unsigned)x << 23);
}

// The float near x that every narrower format rounds as it does x: of the two around it the one with an odd last bit.
FX float fx_odd(double x) {
  float near = (float)x;
  double back = (double)near;
  unsigned b = __float_as_uint(near) - (fabs(back) > fabs(x) ? 1u : 0u);
  return __uint_as_float(b | (back != x && x == x ? 1u : 0u));
}
FX float fx_odd(unsigned long long x) {
  int drop = 40 - __clzll((long long)x);
  if (drop < 0) drop = 0;
  unsigned long long kept = x >> drop << drop;
  return (float)(kept | (kept != x ? 1ull : 0ull) << drop);
}
FX float fx_odd(long long x) {
  return x < 0 ? -fx_odd(0ull - (unsigned long long)x) : fx_odd((unsigned long long)x);
}
