FX unsigned fx_bits(float x) { return __float_as_uint(x); }
FX unsigned long long fx_bits(double x) { return (unsigned long long)__double_as_longlong(x); }

FX float fx_single(unsigned x) { return __uint_as_float(x); }

FX double fx_double(unsigned long long x) { return __longlong_as_double((long long)x); }

// Arithmetic that no compiler contracts.
FX float fx_add(float x, float y) { return __fadd_rn(x, y); }
FX double fx_add(double x, double y) { return __dadd_rn(x, y); }

FX float fx_sub(float x, float y) { return __fsub_rn(x, y); }
FX double fx_sub(double x, double y) { return __dsub_rn(x, y); }

FX float fx_mul(float x, float y) { return __fmul_rn(x, y); }
FX double fx_mul(double x, double y) { return __dmul_rn(x, y); }

FX float fx_div(float x, float y) { return __fdiv_rn(x, y); }
FX double fx_div(double x, double y) { return __ddiv_rn(x, y); }

FX float fx_fma(float x, float y, float z) { return __fmaf_rn(x, y, z); }
FX double fx_fma(double x, double y, double z) { return __fma_rn(x, y, z); }

// NaN wins, and +0 is larger than -0.
FX float fx_max(float x, float y) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  float m;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(m) : "f"(x), "f"(y));
  return m;
#else
  float m = x > y || x != x ? x : y;
  return x == y ? fx_single(fx_bits(x) & fx_bits(y)) : m;
#endif
}
FX double fx_max(double x, double y) {
  double m = x > y || x != x ? x : y;
  return x == y ? fx_double(fx_bits(x) & fx_bits(y)) : m;
}
template <class T> FX T fx_max(T x, T y) { return x > y ? x : y; }

FX float fx_min(float x, float y) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  float m;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(m) : "f"(x), "f"(y));
  return m;
#else
  float m = x < y || x != x ? x : y;
  return x == y ? fx_single(fx_bits(x) | fx_bits(y)) : m;
#endif
}
FX double fx_min(double x, double y) {
  double m = x < y || x != x ? x : y;
  return x == y ? fx_double(fx_bits(x) | fx_bits(y)) : m;
}
template <class T> FX T fx_min(T x, T y) { return x < y ? x : y; }

FX float fx_neg(float x) { return fx_single(fx_bits(x) ^ 0x80000000u); }
FX double fx_neg(double x) { return fx_double(fx_bits(x) ^ 0x8000000000000000ull); }

FX float fx_abs(float x) { return fx_single(fx_bits(x) & 0x7fffffffu); }
FX double fx_abs(double x) { return fx_double(fx_bits(x) & 0x7fffffffffffffffull); }

template <class T> FX T fx_sign(T x) { return x > 0 ? (T)1 : x < 0 ? (T)-1 : x; }

FX bool fx_is_finite(float x) { return (fx_bits(x) & 0x7f800000u) != 0x7f800000u; }
FX bool fx_is_finite(double x) { return (fx_bits(x) & 0x7ff0000000000000ull) != 0x7ff0000000000000ull; }

// Integers that order like IEEE's total order.
FX int fx_total(float x) {
  int b = (int)fx_bits(x);
  return b ^ (int)((unsigned)(b >> 31) >> 1);
}
FX long long fx_total(double x) {
  long long b = (long long)fx_bits(x);
  return b ^ (long long)((unsigned long long)(b >> 63) >> 1);
}
template <class T> FX T fx_total(T x) { return x; }

// x / 0 has all bits set, and the least number over -1 is itself.
template <class T> FX T fx_quotient(T x, T y) {
  if (y == 0) return (T)~(T)0;
  if ((T)-1 < (T)1 && y == (T)-1) return (T)(0ull - (unsigned long long)x);
  return (T)(x / y);
}

template <class T> FX T fx_remainder(T x, T y) {
  if (y == 0) return x;
  if ((T)-1 < (T)1 && y == (T)-1) return (T)0;
  return (T)(x % y);
}

// Rounded down, for positive y.
template <class T> FX T fx_floor_quotient(T x, T y) {
  T left = (T)(x % y);
  return (T)(x / y - (left < 0 ? 1 : 0));
}

template <class T> FX T fx_modulo(T x, T y) {
  T left = (T)(x % y);
  return left < 0 ? (T)(left + y) : left;
}

// Shifts of the lowest B bits; U is the unsigned type of T's width, S the signed one.
template <class U, int B> FX U fx_low(U x) { return B < 8 ? (U)(x & (U)((1u << (B & 7)) - 1)) : x; }

template <class U, int B, class T> FX T fx_shift_left(T x, T y) {
  U a = fx_low<U, B>((U)x), b = fx_low<U, B>((U)y);
  return b < (U)B ? (T)(U)(a << b) : (T)0;
}

template <class U, int B, class T> FX T fx_shift_right(T x, T y) {
  U a = fx_low<U, B>((U)x), b = fx_low<U, B>((U)y);
  return b < (U)B ? (T)(U)(a >> b) : (T)0;
}

template <class U, class S, int B, class T> FX T fx_shift_sign(T x, T y) {
  const int up = (int)sizeof(T) * 8 - B;
  U b = fx_low<U, B>((U)y);
  S a = (S)((S)((U)x << up) >> up);
  return (T)(S)(a >> (b < (U)B ? b : (U)(B - 1)));
}

template <class U, int B, class T> FX T fx_bit_count(T x) { return (T)__popcll((unsigned long long)fx_low<U, B>((U)x)); }

template <class U, int B, class T> FX T fx_leading_zeros(T x) {
  return (T)(__clzll((long long)(unsigned long long)fx_low<U, B>((U)x)) - (64 - B));
}

// x to the power y by repeated squaring, wrapping; a negative power is 1 / x**|y|.
template <class T> FX T fx_power(T x, T y) {
  if (y < 0) {
    if (x == 1) return 1;
    if (x == (T)-1) return y & 1 ? x : (T)1;
    return x == 0 ? (T)~(T)0 : (T)0;
  }
  unsigned long long n = (unsigned long long)y, base = (unsigned long long)x, power = 1;
  for (; n; n >>= 1, base *= base) {
    if (n & 1) power *= base;
  }
  return (T)power;
}

// By repeated multiplication.
template <class F> FX F fx_repeated(F x, int n) {
  F power = (F)1;
  for (unsigned k = n < 0 ? 0u - (unsigned)n : (unsigned)n; k; k >>= 1) {
    if (k & 1) power = fx_mul(power, x);
    x = fx_mul(x, x);
  }
  return n < 0 ? fx_div((F)1, power) : power;
}

template <class T> FX T fx_repeated_integer(T x, int n) {
  unsigned long long base = (unsigned long long)x, power = 1;
  for (; n; n >>= 1, base *= base) {
    if (n & 1) power *= base;
  }
  return (T)power;
}

// Truncated; NaN gives 0, and what lies outside the nearest end. `end` is the first power of two that is too large.
template <class T, class F> FX T fx_saturate(F x, F low, F end, T least, T most) {
  if (x != x) return (T)0;
  return x <= low ? least : x >= end ? most : (T)x;
}

FX float fx_round_away(float x) { return roundf(x); }
FX double fx_round_away(double x) { return round(x); }

FX float fx_next(float x, float y) { return nextafterf(x, y); }
FX double fx_next(double x, double y) { return nextafter(x, y); }

// The 16-bit float after x in y's direction, by codes; `inf` is the code of infinity.
FX unsigned short fx_next_half(unsigned short a, unsigned short b, int inf) {
  int x = a & 0x7fff, y = b & 0x7fff;
  if (x > inf || y > inf) return (unsigned short)(inf | 64);
  if (a == b || (x == 0 && y == 0)) return b;
  if (x == 0) return (unsigned short)((b & 0x8000) | 1);
  bool up = (b & 0x8000 ? -y : y) > (a & 0x8000 ? -x : x);
  return (unsigned short)(up == ((a & 0x8000) != 0) ? a - 1 : a + 1);
}

// Rounds to so many exponent and mantissa bits.
FX float fx_precision(float x, int exponent, int mantissa) {
  unsigned bits = fx_bits(x);
  if (x != x) return x;
  if (mantissa < 23) {
    int drop = 23 - mantissa;
    unsigned last = bits >> drop & 1;
    bits = (bits + ((1u << (drop - 1)) - 1 + last)) & ~((1u << drop) - 1);
  }
  if (exponent < 8) {
    int bias = (1 << (exponent - 1)) - 1, e = (int)(bits >> 23 & 0xff) - 127;
    if (e > bias) bits = (bits & 0x80000000u) | 0x7f800000u;
    else if (e <= -bias) bits &= 0x80000000u;
  }
  return fx_single(bits);
}
FX double fx_precision(double x, int exponent, int mantissa) {
  unsigned long long bits = fx_bits(x);
  if (x != x) return x;
  if (mantissa < 52) {
    int drop = 52 - mantissa;
    unsigned long long last = bits >> drop & 1;
    bits = (bits + ((1ull << (drop - 1)) - 1 + last)) & ~((1ull << drop) - 1);
  }
  if (exponent < 11) {
    int bias = (1 << (exponent - 1)) - 1, e = (int)(bits >> 52 & 0x7ff) - 1023;
    if (e > bias) bits = (bits & 0x8000000000000000ull) | 0x7ff0000000000000ull;
    else if (e <= -bias) bits &= 0x8000000000000000ull;
  }
  return fx_double(bits);
}

// An index as a signed number, the nearest one.
FX long long fx_index(unsigned long long x) { return x >> 63 ? 0x7fffffffffffffffll : (long long)x; }
template <class T> FX long long fx_index(T x) { return (long long)x; }

FX long long fx_within(long long x, long long most) { return x < 0 ? 0 : x > most ? most : x; }

template <class T, int V> struct alignas(sizeof(T) * V) fx_pack {
  T x[V];
};
