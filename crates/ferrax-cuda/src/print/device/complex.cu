struct __align__(8) fx_c64 {
  float re, im;
};

struct __align__(16) fx_c128 {
  double re, im;
};

FX fx_c64 fx_c64_of(float re, float im) {
  fx_c64 z;
  z.re = re;
  z.im = im;
  return z;
}

FX fx_c128 fx_c128_of(double re, double im) {
  fx_c128 z;
  z.re = re;
  z.im = im;
  return z;
}

// Functions are computed in double precision and rounded once.
FX fx_c128 fx_wide(fx_c64 z) { return fx_c128_of((double)z.re, (double)z.im); }
FX fx_c128 fx_wide(fx_c128 z) { return z; }

FX fx_c64 fx_rounded(fx_c64, fx_c128 z) { return fx_c64_of((float)z.re, (float)z.im); }
FX fx_c128 fx_rounded(fx_c128, fx_c128 z) { return z; }

template <class C> FX C fx_c_add(C x, C y) {
  C z;
  z.re = fx_add(x.re, y.re);
  z.im = fx_add(x.im, y.im);
  return z;
}

template <class C> FX C fx_c_sub(C x, C y) {
  C z;
  z.re = fx_sub(x.re, y.re);
  z.im = fx_sub(x.im, y.im);
  return z;
}

template <class C> FX C fx_c_mul(C x, C y) {
  C z;
  z.re = fx_sub(fx_mul(x.re, y.re), fx_mul(x.im, y.im));
  z.im = fx_add(fx_mul(x.re, y.im), fx_mul(x.im, y.re));
  return z;
}

template <class C> FX C fx_c_neg(C x) {
  x.re = fx_neg(x.re);
  x.im = fx_neg(x.im);
  return x;
}

template <class C> FX C fx_c_conj(C x) {
  x.im = fx_neg(x.im);
  return x;
}

template <class C> FX bool fx_c_eq(C x, C y) { return x.re == y.re && x.im == y.im; }

// Lexicographic order, real parts first.
template <class C> FX bool fx_c_less(C x, C y) { return x.re < y.re || (x.re == y.re && x.im < y.im); }

FX bool fx_infinite(double x) { return fabs(x) == fx_double(0x7ff0000000000000ull); }

FX double fx_infinity() { return fx_double(0x7ff0000000000000ull); }

FX double fx_none() { return fx_double(0x7ff8000000000000ull); }

FX fx_c128 fx_z_mul(fx_c128 x, fx_c128 y) { return fx_c_mul(x, y); }

FX fx_c128 fx_z_times_i(fx_c128 z) { return fx_c128_of(fx_neg(z.im), z.re); }

FX fx_c128 fx_z_times_minus_i(fx_c128 z) { return fx_c128_of(z.im, fx_neg(z.re)); }

// The size, without undue overflow; NaN is not outdone by infinity.
FX double fx_z_abs(fx_c128 z, bool single) {
  double re = fabs(z.re), im = fabs(z.im), larger = re > im ? re : im, scale = 1.0;
  if (!single) scale = larger > ldexp(1.0, 500) ? ldexp(1.0, -600) : larger < ldexp(1.0, -500) ? ldexp(1.0, 600) : 1.0;
  double x = re * scale, y = im * scale;
  double size = sqrt(fx_add(fx_mul(x, x), fx_mul(y, y))) / scale;
  return (fx_infinite(re) || fx_infinite(im)) && size == size ? fx_infinity() : size;
}

FX double fx_z_unit(double part) { return copysign(fx_infinite(part) ? 1.0 : 0.0, part); }

// x / y where one of them is infinite and the other is not (C99, G.5.1).
FX fx_c128 fx_z_infinite_quotient(fx_c128 x, fx_c128 y) {
  bool x_finite = fx_is_finite(x.re) && fx_is_finite(x.im), y_finite = fx_is_finite(y.re) && fx_is_finite(y.im);
  double factor = fx_none();
  if ((fx_infinite(y.re) || fx_infinite(y.im)) && x_finite) {
    factor = 0.0;
    y = fx_c128_of(fx_z_unit(y.re), fx_z_unit(y.im));
  } else if ((fx_infinite(x.re) || fx_infinite(x.im)) && y_finite) {
    factor = fx_infinity();
    x = fx_c128_of(fx_z_unit(x.re), fx_z_unit(x.im));
  }
  return fx_c128_of(factor * fx_add(fx_mul(x.re, y.re), fx_mul(x.im, y.im)),
                    factor * fx_sub(fx_mul(x.im, y.re), fx_mul(x.re, y.im)));
}

FX fx_c128 fx_z_div(fx_c128 x, fx_c128 y) {
  if (y.im == 0.0) return fx_c128_of(x.re / y.re, x.im / y.re);
  fx_c128 z;
  if (fabs(y.re) >= fabs(y.im)) {
    double r = y.im / y.re, d = fx_add(y.re, fx_mul(y.im, r));
    z = fx_c128_of(fx_add(x.re, fx_mul(x.im, r)) / d, fx_sub(x.im, fx_mul(x.re, r)) / d);
  } else {
    double r = y.re / y.im, d = fx_add(fx_mul(y.re, r), y.im);
    z = fx_c128_of(fx_add(fx_mul(x.re, r), x.im) / d, fx_sub(fx_mul(x.im, r), x.re) / d);
  }
  return z.re != z.re && z.im != z.im ? fx_z_infinite_quotient(x, y) : z;
}

FX fx_c128 fx_z_exp(fx_c128 z) {
  double e = exp(z.re), s, c;
  if (z.im == 0.0) return fx_c128_of(e, z.im);
  if (!fx_is_finite(z.im)) return fx_c128_of(fx_none(), fx_none());
  s = sin(z.im);
  c = cos(z.im);
  if (e == 0.0) return fx_c128_of(copysign(0.0, c), copysign(0.0, s));
  if (fx_infinite(e) && fx_is_finite(z.re)) {
    // The product may be finite where the power alone is not.
    double h = exp(0.5 * z.re);
    return fx_c128_of(h * c * h, h * s * h);
  }
  return fx_c128_of(e * c, e * s);
}

FX fx_c128 fx_z_log(fx_c128 z) {
  double a = fmax(fabs(z.re), fabs(z.im)), b = fmin(fabs(z.re), fabs(z.im));
  double r = hypot(z.re, z.im), log2 = 0.69314718055994530942, size;
  if (r >= 0.5 && r < 2.0) size = 0.5 * log1p(fx_add(fx_mul(a - 1.0, a + 1.0), fx_mul(b, b)));
  else if (fx_infinite(r) && fx_is_finite(a) && fx_is_finite(b)) size = log(hypot(0.5 * a, 0.5 * b)) + log2;
  else if (r > 0.0 && r < 1e-290) size = log(hypot(ldexp(a, 600), ldexp(b, 600))) - 600.0 * log2;
  else size = log(r);
  return fx_c128_of(size, atan2(z.im, z.re));
}

FX fx_c128 fx_z_sqrt(fx_c128 z) {
  if (fx_infinite(z.im)) return fx_c128_of(fx_infinity(), z.im);
  if (z.re == 0.0 && z.im == 0.0) return fx_c128_of(0.0, z.im);
  if (fx_infinite(z.re)) {
    bool none = z.im != z.im;
    if (z.re > 0.0) return fx_c128_of(z.re, none ? z.im : copysign(0.0, z.im));
    return none ? fx_c128_of(z.im, fx_infinity()) : fx_c128_of(0.0, copysign(fx_infinity(), z.im));
  }
  double most = fmax(fabs(z.re), fabs(z.im)), k = 1.0, back = 1.0;
  if (most > 1e307) { k = 0.25; back = 2.0; }
  else if (most < 1e-290) { k = ldexp(1.0, 200); back = ldexp(1.0, -100); }
  double re = z.re * k, im = z.im * k;
  double t = sqrt(0.5 * (fabs(re) + hypot(re, im))), u = fabs(im) / (2.0 * t);
  bool right = re >= 0.0;
  return fx_c128_of((right ? t : u) * back, copysign((right ? u : t) * back, z.im));
}

FX fx_c128 fx_z_sinh(fx_c128 z) {
  if (z.im == 0.0) return fx_c128_of(sinh(z.re), z.im);
  double s = sin(z.im), c = cos(z.im);
  if (fabs(z.re) > 709.0 && fx_is_finite(z.re)) {
    double h = exp(0.5 * fabs(z.re));
    return fx_c128_of(copysign(0.5 * h * c * h, z.re * c), 0.5 * h * s * h);
  }
  return z.re == 0.0 ? fx_c128_of(z.re * c, s) : fx_c128_of(sinh(z.re) * c, cosh(z.re) * s);
}

FX fx_c128 fx_z_cosh(fx_c128 z) {
  double unit = z.re != z.re ? z.re : copysign(1.0, z.re);
  if (z.im == 0.0) return fx_c128_of(cosh(z.re), z.im * unit);
  double s = sin(z.im), c = cos(z.im);
  if (fabs(z.re) > 709.0 && fx_is_finite(z.re)) {
    double h = exp(0.5 * fabs(z.re));
    return fx_c128_of(0.5 * h * c * h, (0.5 * h * s * h) * unit);
  }
  return fx_c128_of(cosh(z.re) * c, sinh(z.re) * s);
}

FX fx_c128 fx_z_tanh(fx_c128 z) {
  if (z.im == 0.0) return fx_c128_of(tanh(z.re), z.im);
  if (!fx_is_finite(z.im) && fx_is_finite(z.re)) return fx_c128_of(fx_none(), fx_none());
  if (fabs(z.re) > 20.0) {
    double tail = 4.0 * sin(z.im) * cos(z.im) * exp(-2.0 * fabs(z.re));
    return fx_c128_of(copysign(1.0, z.re), fx_is_finite(z.im) ? tail : 0.0);
  }
  double t = tan(z.im), beta = 1.0 + t * t, s = sinh(z.re), rho = sqrt(1.0 + s * s);
  if (fx_infinite(t)) return fx_c128_of(rho / s, 1.0 / t);
  double d = 1.0 + beta * s * s;
  return fx_c128_of(beta * rho * s / d, t / d);
}

// Beyond this size the inverse functions are logarithms.
FX bool fx_z_huge(fx_c128 z) { return !(fabs(z.re) < 1e150 && fabs(z.im) < 1e150) && z.re == z.re && z.im == z.im; }

FX double fx_z_far_log(fx_c128 z) { return fx_z_log(fx_c128_of(fabs(z.re), fabs(z.im))).re + 0.69314718055994530942; }

FX fx_c128 fx_z_asin(fx_c128 z) {
  if (fx_z_huge(z)) return fx_c128_of(atan2(z.re, fabs(z.im)), copysign(fx_z_far_log(z), z.im));
  fx_c128 a = fx_z_sqrt(fx_c128_of(1.0 - z.re, fx_neg(z.im))), b = fx_z_sqrt(fx_c128_of(1.0 + z.re, z.im));
  return fx_c128_of(atan2(z.re, fx_c_mul(a, b).re), asinh(fx_c_mul(fx_c_conj(a), b).im));
}

FX fx_c128 fx_z_acos(fx_c128 z) {
  if (fx_z_huge(z)) return fx_c128_of(atan2(fabs(z.im), z.re), -copysign(fx_z_far_log(z), z.im));
  fx_c128 a = fx_z_sqrt(fx_c128_of(1.0 - z.re, fx_neg(z.im))), b = fx_z_sqrt(fx_c128_of(1.0 + z.re, z.im));
  return fx_c128_of(2.0 * atan2(a.re, b.re), asinh(fx_c_mul(fx_c_conj(b), a).im));
}

FX fx_c128 fx_z_atanh(fx_c128 z) {
  if (fx_z_huge(z)) return fx_c128_of(copysign(0.0, z.re), copysign(1.5707963267948966192, z.im));
  double x = fabs(z.re), d = fx_add(fx_mul(1.0 - x, 1.0 - x), fx_mul(z.im, z.im));
  double re = copysign(0.25 * log1p(4.0 * x / d), z.re);
  // On the cut the sign of the imaginary part's zero chooses the side.
  return fx_c128_of(re, 0.5 * atan2(2.0 * z.im, fx_sub(fx_mul(1.0 - x, 1.0 + x), fx_mul(z.im, z.im))));
}

FX fx_c128 fx_z_expm1(fx_c128 z) {
  if (z.im == 0.0) return fx_c128_of(expm1(z.re), z.im);
  double s = sin(z.im), c = cos(z.im), half = sin(0.5 * z.im);
  return fx_c128_of(fx_sub(fx_mul(expm1(z.re), c), 2.0 * half * half), exp(z.re) * s);
}

FX fx_c128 fx_z_log1p(fx_c128 z) {
  fx_c128 w = fx_c128_of(1.0 + z.re, z.im);
  bool small = fabs(z.re) < 0.5 && fabs(z.im) < 0.5;
  double square = fx_add(fx_mul(z.re, 2.0 + z.re), fx_mul(z.im, z.im));
  return fx_c128_of(small ? 0.5 * log1p(square) : fx_z_log(w).re, atan2(w.im, w.re));
}

FX fx_c128 fx_z_rsqrt(fx_c128 z) { return fx_z_div(fx_c128_of(1.0, 0.0), fx_z_sqrt(z)); }

FX fx_c128 fx_z_cbrt(fx_c128 z) {
  if (z.re == 0.0 && z.im == 0.0) return z;
  double r = cbrt(hypot(z.re, z.im)), angle = atan2(z.im, z.re) / 3.0;
  return fx_c128_of(r * cos(angle), r * sin(angle));
}

FX fx_c128 fx_z_sign(fx_c128 z) {
  double r = hypot(z.re, z.im);
  if (r == 0.0) return z;
  if (r < 1e-290) {
    z = fx_c128_of(ldexp(z.re, 600), ldexp(z.im, 600));
    r = hypot(z.re, z.im);
  }
  return fx_c128_of(z.re / r, z.im / r);
}

FX fx_c128 fx_z_sin(fx_c128 z) { return fx_z_times_minus_i(fx_z_sinh(fx_z_times_i(z))); }

FX fx_c128 fx_z_cos(fx_c128 z) { return fx_z_cosh(fx_z_times_i(z)); }

FX fx_c128 fx_z_tan(fx_c128 z) { return fx_z_times_minus_i(fx_z_tanh(fx_z_times_i(z))); }

FX fx_c128 fx_z_atan(fx_c128 z) { return fx_z_times_minus_i(fx_z_atanh(fx_z_times_i(z))); }

FX fx_c128 fx_z_asinh(fx_c128 z) { return fx_z_times_minus_i(fx_z_asin(fx_z_times_i(z))); }

FX fx_c128 fx_z_acosh(fx_c128 z) {
  fx_c128 w = fx_z_acos(z);
  return copysign(1.0, w.im) < 0.0 ? fx_z_times_i(w) : fx_z_times_minus_i(w);
}

FX fx_c128 fx_z_logistic(fx_c128 z) {
  fx_c128 one = fx_c128_of(1.0, 0.0);
  if (z.re < 0.0) {
    // The exponential that does not overflow.
    fx_c128 e = fx_z_exp(z);
    return fx_z_div(e, fx_c_add(one, e));
  }
  return fx_z_div(one, fx_c_add(one, fx_z_exp(fx_c_neg(z))));
}

FX fx_c128 fx_z_square(fx_c128 z) { return fx_c128_of((z.re - z.im) * (z.re + z.im), 2.0 * (z.re * z.im)); }

// By repeated multiplication, which begins with the number itself.
FX fx_c128 fx_z_powi(fx_c128 z, int n) {
  unsigned k = n < 0 ? 0u - (unsigned)n : (unsigned)n;
  if (k == 0) return fx_c128_of(1.0, 0.0);
  for (; !(k & 1); k >>= 1) z = fx_z_square(z);
  fx_c128 product = z;
  while (k > 1) {
    z = fx_z_square(z);
    k >>= 1;
    if (k & 1) product = fx_c_mul(product, z);
  }
  return n < 0 ? fx_z_div(fx_c128_of(1.0, 0.0), product) : product;
}

FX fx_c128 fx_z_real_power(fx_c128 x, double y) {
  bool finite = fx_is_finite(x.re) && fx_is_finite(x.im);
  if (finite && y == trunc(y) && fabs(y) <= 16.0) return fx_z_powi(x, (int)y);
  double r = hypot(x.re, x.im);
  if (finite && !(r >= 1e-290 && r < 1e300)) {
    fx_c128 l = fx_z_log(x);
    return fx_z_exp(fx_c128_of(y * l.re, y * l.im));
  }
  double size = pow(r, y), angle = y * atan2(x.im, x.re), s = sin(angle), c = cos(angle);
  // An infinite number along an axis has no other part.
  return fx_c128_of(c == 0.0 ? c : size * c, s == 0.0 ? s : size * s);
}

FX fx_c128 fx_z_pow(fx_c128 x, fx_c128 y) {
  bool none = x.re == 0.0 && x.im == 0.0;
  if (y.re == 0.0 && y.im == 0.0) return fx_c128_of(1.0, 0.0);
  if (none && y.re > 0.0) return fx_c128_of(0.0, 0.0);
  if (!none && y.im == 0.0) return fx_z_real_power(x, y.re);
  return fx_z_exp(fx_c_mul(y, fx_z_log(x)));
}

// The binary digits of ln 2 / 2π after the point, 64 a word.
static __device__ const unsigned long long fx_log2_turns[19] = {
    0x1c3dc98f7e969bbbull, 0x2d82160b957fbcf7ull, 0x6384efb34752570dull, 0x875c804ebaa7e3f2ull, 0x9dba19bf26d22f92ull,
    0x057d72dbf62fb884ull, 0x40e536cc0835bad4ull, 0x8c3fea6ba432f1cdull, 0x544d633b59f036cfull, 0x1243456f76468a7dull,
    0x5a0900abd7a3e708ull, 0xeffc572f1c7c17fbull, 0x7f82ec188aa323d9ull, 0xdcc271169d408a0aull, 0xbab43090d71549eeull,
    0xdd67cd178b418a3aull, 0x2c6958e894f98a46ull, 0x3a97ff6afab0351eull, 0x73fb6c6dbf1e2d0eull};

// 64 of those digits, from number `first` on.
FX unsigned long long fx_log2_digits(int first) {
  int word = first / 64, bit = first % 64;
  unsigned long long high = word < 19 ? fx_log2_turns[word] : 0, low = word + 1 < 19 ? fx_log2_turns[word + 1] : 0;
  return bit ? high << bit | low >> (64 - bit) : high;
}

// Sine and cosine of y · ln 2 (M. H. Payne and R. N. Hanek, "Radian reduction for trigonometric functions", 1983): the
// whole turns go before anything is rounded.
FX void fx_octaves(double y, double& s, double& c) {
  if (!fx_is_finite(y)) {
    s = c = fx_none();
    return;
  }
  if (fabs(y) < 1e6) {
    double angle = fx_mul(y, 0.69314718055994530942);
    double rest = fx_add(fx_fma(y, 0.69314718055994530942, -angle), fx_mul(y, 2.3190468138462996e-17));
    double sine = sin(angle), cosine = cos(angle);
    s = y == 0.0 ? y : sine + cosine * rest;
    c = cosine - sine * rest;
    return;
  }
  unsigned long long bits = fx_bits(y) & 0x7fffffffffffffffull, m = (bits & 0xfffffffffffffull) | 0x10000000000000ull;
  int e = (int)(bits >> 52) - 1075, first = e < 0 ? 0 : e;
  // m times 192 digits: the first product's lower half and what follows are a fraction, in units of 2^-128.
  unsigned long long a = fx_log2_digits(first), b = fx_log2_digits(first + 64), d = fx_log2_digits(first + 128);
  unsigned long long low = m * b + __umul64hi(m, d);
  unsigned long long carry = low < __umul64hi(m, d) ? 1ull : 0ull;
  unsigned long long mid = m * a + __umul64hi(m, b), more = mid < __umul64hi(m, b) ? 1ull : 0ull;
  unsigned long long high = mid + carry;
  unsigned long long whole = __umul64hi(m, a) + more + (high < carry ? 1ull : 0ull);
  if (e < 0) {
    // The product has -e more digits after the point.
    int k = -e;
    low = low >> k | high << (64 - k);
    high = high >> k | whole << (64 - k);
  }
  unsigned long long turned = high + (1ull << 61);
  unsigned long long quarter = turned >> 62;
  long long rest = (long long)(high - (quarter << 62));
  double part = (double)rest * 5.42101086242752217e-20 + (double)low * 2.93873587705571877e-39;
  double angle = part * 6.28318530717958647693;
  double sine = sin(angle), cosine = cos(angle);
  s = quarter == 0 ? sine : quarter == 1 ? cosine : quarter == 2 ? -sine : -cosine;
  c = quarter == 0 ? cosine : quarter == 1 ? -sine : quarter == 2 ? -cosine : sine;
  if (y < 0.0) s = -s;
}

FX fx_c128 fx_z_exp2(fx_c128 z) {
  double e = exp2(z.re), s, c;
  if (z.im == 0.0) return fx_c128_of(e, z.im);
  bool finite = fx_is_finite(z.im);
  if (e == 0.0) {
    s = c = 0.0;
    if (finite) fx_octaves(z.im, s, c);
    return fx_c128_of(copysign(0.0, c), copysign(0.0, s));
  }
  if (z.re == fx_infinity() && !finite) return fx_c128_of(z.re, fx_none());
  fx_octaves(z.im, s, c);
  if (fx_infinite(e) && fx_is_finite(z.re)) {
    double h = exp2(0.5 * z.re);
    return fx_c128_of(h * c * h, h * s * h);
  }
  return fx_c128_of(e * c, e * s);
}
