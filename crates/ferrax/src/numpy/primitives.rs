//! Functions of one operand that are one primitive on floats; written by `make generated` from the blocks in
//! `ferrax-ops`, not by hand. Read next: `unary.rs` for the others.

use super::{Unary, never1, unary, unary_aliases};
use ferrax_ops as ops;

unary!(
    exp, EXP, "exp", ["Exponential function.", "floating or complex", "{f}(jnp.array([0.]))", "[1.]"],
    Inexact, |_| Some(ops::EXP.op()), never1
);

unary!(
    exp2, EXP2, "exp2", ["Power of two, 2**x.", "floating or complex", "{f}(jnp.array([3.]))", "[8.]"],
    Inexact, |_| Some(ops::EXP2.op()), never1
);

unary!(
    log, LOG, "log", ["Natural logarithm.", "floating or complex", "{f}(jnp.array([1.]))", "[0.]"],
    Inexact, |_| Some(ops::LOG.op()), never1
);

unary!(
    expm1, EXPM1, "expm1", ["exp(x) - 1, accurate near zero.", "floating or complex", "{f}(jnp.array([0.]))", "[0.]"],
    Inexact, |_| Some(ops::EXPM1.op()), never1
);

unary!(
    log1p, LOG1P, "log1p", ["log(1 + x), accurate near zero.", "floating or complex", "{f}(jnp.array([0.]))", "[0.]"],
    Inexact, |_| Some(ops::LOG1P.op()), never1
);

unary!(
    tanh, TANH, "tanh", ["Hyperbolic tangent.", "floating or complex", "{f}(jnp.array([0.]))", "[0.]"],
    Inexact, |_| Some(ops::TANH.op()), never1
);

unary!(
    sin, SIN, "sin", ["Sine of an angle in radians.", "floating or complex", "{f}(jnp.array([0.]))", "[0.]"],
    Inexact, |_| Some(ops::SIN.op()), never1
);

unary!(
    cos, COS, "cos", ["Cosine of an angle in radians.", "floating or complex", "{f}(jnp.array([0.]))", "[1.]"],
    Inexact, |_| Some(ops::COS.op()), never1
);

unary!(
    tan, TAN, "tan", ["Tangent of an angle in radians.", "floating or complex", "{f}(jnp.array([0.]))", "[0.]"],
    Inexact, |_| Some(ops::TAN.op()), never1
);

unary!(
    arcsin, ARCSIN, "arcsin", ["Arc sine, in radians.", "floating or complex", "{f}(jnp.array([0.]))", "[0.]"],
    Inexact, |_| Some(ops::ASIN.op()), never1
);

unary!(
    arccos, ARCCOS, "arccos", ["Arc cosine, in radians.", "floating or complex", "{f}(jnp.array([1.]))", "[0.]"],
    Inexact, |_| Some(ops::ACOS.op()), never1
);

unary!(
    arctan, ARCTAN, "arctan", ["Arc tangent, in radians.", "floating or complex", "{f}(jnp.array([0.]))", "[0.]"],
    Inexact, |_| Some(ops::ATAN.op()), never1
);

unary!(
    sinh, SINH, "sinh", ["Hyperbolic sine.", "floating or complex", "{f}(jnp.array([0.]))", "[0.]"],
    Inexact, |_| Some(ops::SINH.op()), never1
);

unary!(
    cosh, COSH, "cosh", ["Hyperbolic cosine.", "floating or complex", "{f}(jnp.array([0.]))", "[1.]"],
    Inexact, |_| Some(ops::COSH.op()), never1
);

unary!(
    arcsinh, ARCSINH, "arcsinh", ["Inverse hyperbolic sine.", "floating or complex", "{f}(jnp.array([0.]))", "[0.]"],
    Inexact, |_| Some(ops::ASINH.op()), never1
);

unary!(
    arctanh, ARCTANH, "arctanh", ["Inverse hyperbolic tangent.", "floating or complex", "{f}(jnp.array([0.]))", "[0.]"],
    Inexact, |_| Some(ops::ATANH.op()), never1
);

unary!(
    sqrt, SQRT, "sqrt", ["Square root.", "floating or complex", "{f}(jnp.array([9.]))", "[3.]"],
    Inexact, |_| Some(ops::SQRT.op()), never1
);

unary!(
    cbrt, CBRT, "cbrt", ["Cube root.", "floating", "{f}(jnp.array([1.]))", "[1.]"],
    Inexact, |_| Some(ops::CBRT.op()), never1
);

unary_aliases! {
    asin ASIN "asin" of ARCSIN;
    acos ACOS "acos" of ARCCOS;
    atan ATAN "atan" of ARCTAN;
    asinh ASINH "asinh" of ARCSINH;
    atanh ATANH "atanh" of ARCTANH;
}

/// Every function of this file.
pub static ALL_PRIMITIVES: &[&Unary] = &[
    &EXP,
    &EXP2,
    &LOG,
    &EXPM1,
    &LOG1P,
    &TANH,
    &SIN,
    &COS,
    &TAN,
    &ARCSIN,
    &ASIN,
    &ARCCOS,
    &ACOS,
    &ARCTAN,
    &ATAN,
    &SINH,
    &COSH,
    &ARCSINH,
    &ASINH,
    &ARCTANH,
    &ATANH,
    &SQRT,
    &CBRT,
];
