//! Powers: by a fixed integer, of integers, of floats.

use super::Words;
use super::promote::{self, Rule, result_type};
use ferrax_base::{Result, Scalar};
use ferrax_ir::Value;
use ferrax_ops as ops;
use ferrax_ops::common::{constant, stretch};

/// The exponent as a fixed integer: a constant of an integer dtype or `bool`, or a concrete rank-0 array of one.
pub fn integer_exponent(y: &Value) -> Option<i64> {
    let d = y.dtype();
    if y.rank() != 0 || !(d.is_integer() || d.is_bool()) {
        return None;
    }
    match y {
        Value::Lit(l) => Some(l.scalar.to_i64()),
        Value::Array(a) => a.item().ok().map(Scalar::to_i64),
        Value::Tracer(_) => None,
    }
}

/// What [`power`] computes.
pub static POWER: Words = Words::new(["x ** y.", "of the common dtype", "{f}(jnp.array([2, 3]), 2)", "[4 9]"]);

/// What [`float_power`] computes.
pub static FLOAT_POWER: Words =
    Words::new(["x ** y as floats.", "floating or complex", "{f}(jnp.array([2, 3]), 2)", "[4. 9.]"]);

/// Elementwise x ** y.
pub fn power(x: &Value, y: &Value) -> Result<Value> {
    if let Some(n) = integer_exponent(y)
        && let Ok(n) = i32::try_from(n)
    {
        // a number of times that x is multiplied: its dtype says nothing, unless it is a truth value
        let x = if y.dtype().is_bool() && !y.weak() {
            let (d, weak) = result_type(&[(x.dtype(), x.weak()), (y.dtype(), y.weak())])?;
            ops::convert_weak(x, Rule::Numeric.target(d), weak)?
        } else {
            promote::one("power", Rule::Numeric, x)?
        };
        return ops::integer_pow(&x, n);
    }
    if x.dtype().is_inexact() && (y.dtype().is_integer() || y.dtype().is_bool()) {
        // the primitive takes integer exponents as they are, which keeps their derivative zero
        let (d, weak) = result_type(&[(x.dtype(), x.weak()), (y.dtype(), y.weak())])?;
        let mut both = [ops::convert_weak(x, d, weak)?, promote::one("power", Rule::Numeric, y)?];
        promote::ranks("power", &mut both)?;
        return ops::pow(&both[0], &both[1]);
    }
    let [a, b] = promote::two("power", Rule::Numeric, x, y)?;
    if a.dtype().is_integer() {
        return of_integers(&a, &b);
    }
    ops::pow(&a, &b)
}

/// Elementwise x ** y.
pub fn pow(x: &Value, y: &Value) -> Result<Value> {
    power(x, y)
}

/// Elementwise x ** y as floats.
pub fn float_power(x: &Value, y: &Value) -> Result<Value> {
    let [x, y] = promote::two("float_power", Rule::Inexact, x, y)?;
    ops::pow(&x, &y)
}

/// Integers to integer powers, by squaring: six bits of the exponent, beyond which everything overflows.
fn of_integers(x: &Value, y: &Value) -> Result<Value> {
    let shape = promote::compatible("power", x, y)?;
    let zero = |v: &Value| constant(v, 0.0);
    let one = |v: &Value| constant(v, 1.0);
    let vanishes = ops::bitwise_and(&ops::eq(x, &zero(x))?, &ops::ne(y, &zero(y))?)?;
    let start = |s: &Value| stretch(s, &shape);
    let mut out = ops::select(&start(&vanishes)?, &start(&zero(x))?, &start(&one(x))?)?;
    let (mut base, mut bits) = (x.clone(), y.clone());
    for step in 0..6 {
        if step > 0 {
            base = ops::mul(&base, &base)?;
            bits = ops::shift_right_logical(&bits, &one(&bits))?;
        }
        let odd = ops::ne(&ops::bitwise_and(&bits, &one(&bits))?, &zero(&bits))?;
        let odd = if odd.rank() == 0 { odd } else { stretch(&odd, &shape)? };
        out = ops::select(&odd, &ops::mul(&out, &base)?, &out)?;
    }
    Ok(out)
}
