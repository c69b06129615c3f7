FX float fx_exp(float x) { return expf(x); }
FX double fx_exp(double x) { return exp(x); }

FX float fx_exp2(float x) { return exp2f(x); }
FX double fx_exp2(double x) { return exp2(x); }

FX float fx_expm1(float x) { return expm1f(x); }
FX double fx_expm1(double x) { return expm1(x); }

// Cephes' polynomial in the order in which Eigen evaluates it: samplers of random numbers then give JAX's.
FX float fx_log(float x) {
  bool tiny = x < 1.17549435e-38f;
  float scaled = tiny ? __fmul_rn(x, 8388608.0f) : x;
  int bits = (int)__float_as_uint(scaled);
  int n = (bits - 0x3f3504f3) >> 23;
  float f = __fsub_rn(__uint_as_float((unsigned)bits - ((unsigned)n << 23)), 1.0f);
  float e = __fsub_rn((float)n, tiny ? 23.0f : 0.0f);
  float z = __fmul_rn(f, f), cube = __fmul_rn(z, f);
  float a = __fmaf_rn(__fmaf_rn(7.0376836292e-2f, f, -1.151461031e-1f), f, 1.167699874e-1f);
  float b = __fmaf_rn(__fmaf_rn(-1.2420140846e-1f, f, 1.4249322787e-1f), f, -1.6668057665e-1f);
  float c = __fmaf_rn(__fmaf_rn(2.0000714765e-1f, f, -2.4999993993e-1f), f, 3.3333331174e-1f);
  float p = __fmaf_rn(__fmaf_rn(a, cube, b), cube, c);
  float y = __fadd_rn(__fsub_rn(f, __fmul_rn(z, 0.5f)), __fmaf_rn(p, cube, __fmul_rn(e, -2.1219444e-4f)));
  y = __fmaf_rn(e, 0.693359375f, y);
  if (x == 0.0f) return __uint_as_float(0xff800000u);
  if (!(x > 0.0f)) return __uint_as_float(0x7fc00000u);
  return x == __uint_as_float(0x7f800000u) ? x : y;
}
FX double fx_log(double x) { return log(x); }

// Cephes' rational function near 0, for the same reason.
FX float fx_log1p(float x) {
  float p = 4.52700008624452e-5f, q = 1.0f, z = __fmul_rn(x, x);
  p = __fmaf_rn(p, x, 4.9854102823193376e-1f);
  p = __fmaf_rn(p, x, 6.5787325942061045f);
  p = __fmaf_rn(p, x, 2.9911919328553073e1f);
  p = __fmaf_rn(p, x, 6.0949667980987787e1f);
  p = __fmaf_rn(p, x, 5.7112963590585538e1f);
  p = __fmaf_rn(p, x, 2.003955349920128e1f);
  q = __fmaf_rn(q, x, 1.5062909083469192e1f);
  q = __fmaf_rn(q, x, 8.304756596796472e1f);
  q = __fmaf_rn(q, x, 2.2176239823732856e2f);
  q = __fmaf_rn(q, x, 3.090987222531206e2f);
  q = __fmaf_rn(q, x, 2.1642788614495948e2f);
  q = __fmaf_rn(q, x, 6.011866049760384e1f);
  float small = __fadd_rn(__fadd_rn(__fmul_rn(__fmul_rn(x, z), __fdiv_rn(p, q)), __fmul_rn(-0.5f, z)), x);
  if (fabsf(x) < __fsub_rn(1.41421356f, 1.0f)) return x == 0.0f ? x : small;
  return fx_log(__fadd_rn(x, 1.0f));
}
FX double fx_log1p(double x) { return log1p(x); }

FX float fx_sqrt(float x) { return __fsqrt_rn(x); }
FX double fx_sqrt(double x) { return __dsqrt_rn(x); }

FX float fx_cbrt(float x) { return cbrtf(x); }
FX double fx_cbrt(double x) { return cbrt(x); }

FX float fx_sin(float x) { return sinf(x); }
FX double fx_sin(double x) { return sin(x); }

FX float fx_cos(float x) { return cosf(x); }
FX double fx_cos(double x) { return cos(x); }

// The next ones go through double precision where the single one is more than 2 ulp off.
FX float fx_tan(float x) { return (float)tan((double)x); }
FX double fx_tan(double x) { return tan(x); }

FX float fx_asin(float x) { return asinf(x); }
FX double fx_asin(double x) { return asin(x); }

FX float fx_acos(float x) { return acosf(x); }
FX double fx_acos(double x) { return acos(x); }

FX float fx_atan(float x) { return atanf(x); }
FX double fx_atan(double x) { return atan(x); }

FX float fx_sinh(float x) { return (float)sinh((double)x); }
FX double fx_sinh(double x) { return sinh(x); }

FX float fx_cosh(float x) { return coshf(x); }
FX double fx_cosh(double x) { return cosh(x); }

FX float fx_tanh(float x) { return tanhf(x); }
FX double fx_tanh(double x) { return tanh(x); }

FX float fx_asinh(float x) { return (float)asinh((double)x); }
FX double fx_asinh(double x) { return asinh(x); }

FX float fx_acosh(float x) { return (float)acosh((double)x); }
FX double fx_acosh(double x) { return acosh(x); }

FX float fx_atanh(float x) { return (float)atanh((double)x); }
FX double fx_atanh(double x) { return atanh(x); }

// e^x where e^-x is near the end of the range, so that subnormal results are there too.
FX float fx_logistic(float x) { return x < -87.0f ? expf(x) : __fdiv_rn(1.0f, __fadd_rn(1.0f, expf(-x))); }
FX double fx_logistic(double x) { return x < -708.0 ? exp(x) : __ddiv_rn(1.0, __dadd_rn(1.0, exp(-x))); }

FX float fx_pow(float x, float y) { return (float)pow((double)x, (double)y); }
FX double fx_pow(double x, double y) { return pow(x, y); }

FX float fx_atan2(float y, float x) { return (float)atan2((double)y, (double)x); }
FX double fx_atan2(double y, double x) { return atan2(y, x); }

FX float fx_fmod(float x, float y) { return fmodf(x, y); }
FX double fx_fmod(double x, double y) { return fmod(x, y); }

FX float fx_floor(float x) { return floorf(x); }
FX double fx_floor(double x) { return floor(x); }

FX float fx_ceil(float x) { return ceilf(x); }
FX double fx_ceil(double x) { return ceil(x); }

FX float fx_rint(float x) { return rintf(x); }
FX double fx_rint(double x) { return rint(x); }
