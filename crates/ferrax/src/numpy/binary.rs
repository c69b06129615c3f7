//! Functions of two operands.

use super::promote::compatible;
use super::rows::row;
use super::select::where_;
use super::unary::{abs, signbit, to_bool};
use super::{Binary, Rule, binary, binary_aliases, never2};
use ferrax_base::config::Flag;
use ferrax_base::{DType, Result, bail};
use ferrax_ir::trace::base;
use ferrax_ir::{OpRef, Payload, TraceId, Value};
use ferrax_ops as ops;
use ferrax_ops::common::{constant, full_like, stretch};
use smallvec::SmallVec;

/// Functions that are one primitive whatever the dtype; the primitive says which dtypes it takes.
macro_rules! one_primitive {
    ($($fun:ident $NAME:ident $name:literal $rule:ident $OP:ident $words:tt;)*) => {$(
        binary!($fun, $NAME, $name, $words, $rule, |_| Some(ops::$OP.op()), never2);
    )*};
}

one_primitive! {
    subtract SUBTRACT "subtract" Common SUB ["x - y.", "of the common dtype", "{f}(jnp.array([1, 2]), 3)", "[-2 -1]"];
    divide DIVIDE "divide" Inexact DIV
        ["x / y, as a float.", "floating or complex", "{f}(jnp.array([1, 2]), 2)", "[0.5 1. ]"];
    maximum MAXIMUM "maximum" Common MAX
        ["The larger of x and y; NaN wins.", "of the common dtype", "{f}(jnp.array([1, 5]), 3)", "[3 5]"];
    minimum MINIMUM "minimum" Common MIN
        ["The smaller of x and y; NaN wins.", "of the common dtype", "{f}(jnp.array([1, 5]), 3)", "[1 3]"];
    equal EQUAL "equal" Common EQ ["Truth of x == y.", "bool", "{f}(jnp.array([1, 2]), 2)", "[False  True]"];
    not_equal NOT_EQUAL "not_equal" Common NE
        ["Truth of x != y.", "bool", "{f}(jnp.array([1, 2]), 2)", "[ True False]"];
    bitwise_and BITWISE_AND "bitwise_and" Common AND
        ["Bits that are set in both.", "of the common dtype", "{f}(jnp.array([1, 3]), 2)", "[0 2]"];
    bitwise_or BITWISE_OR "bitwise_or" Common OR
        ["Bits that are set in either.", "of the common dtype", "{f}(jnp.array([1, 3]), 2)", "[3 3]"];
    bitwise_xor BITWISE_XOR "bitwise_xor" Common XOR
        ["Bits that are set in exactly one.", "of the common dtype", "{f}(jnp.array([1, 3]), 2)", "[3 1]"];
    left_shift LEFT_SHIFT "left_shift" Numeric SHIFT_LEFT
        ["x shifted left by y bits.", "of the common dtype", "{f}(jnp.array([1, 3]), 2)", "[ 4 12]"];
    nextafter NEXTAFTER "nextafter" Inexact NEXTAFTER
        ["The float after x on the way to y.", "floating", "{f}(jnp.array([0.]), 0.)", "[0.]"];
}

/// The angle of a pair of complex numbers, by the logarithm of the point on the circle.
fn complex_angle(y: &Value, x: &Value) -> Result<Value> {
    let turned = ops::complex(&ops::neg(&ops::imag(y)?)?, &ops::real(y)?)?;
    let size = ops::sqrt(&ops::add(&ops::square(x)?, &ops::square(y)?)?)?;
    let log = ops::log(&ops::div(&ops::add(x, &turned)?, &size)?)?;
    ops::complex(&ops::imag(&log)?, &ops::neg(&ops::real(&log)?)?)
}

binary!(
    arctan2,
    ARCTAN2,
    "arctan2",
    ["Angle of the point (y, x), in radians.", "floating or complex", "{f}(jnp.array([0.]), 1.)", "[0.]"],
    Inexact,
    |d| (!d.is_complex()).then(|| ops::ATAN2.op()),
    complex_angle
);

fn or_logical(d: DType, logical: OpRef, op: OpRef) -> Option<OpRef> {
    Some(if d.is_bool() { logical } else { op })
}

binary!(
    add,
    ADD,
    "add",
    ["x + y.", "of the common dtype", "{f}(jnp.array([1, 2]), 3)", "[4 5]"],
    Common,
    |d| or_logical(d, ops::OR.op(), ops::ADD.op()),
    never2
);
row!(
    Binary(x, y) { mixed: masked },
    multiply,
    MULTIPLY,
    "multiply",
    ["x * y.", "of the common dtype", "{f}(jnp.array([1, 2]), 3)", "[3 6]"],
    Common,
    |d| or_logical(d, ops::AND.op(), ops::MUL.op()),
    never2
);

/// x * mask as compiled programs have it ([`ops::is_choice_by_mask`]), where no program is being written.
fn masked(x: &Value, y: &Value, to: DType) -> Result<Option<Value>> {
    let (mask, x) = if x.dtype().is_bool() { (x, y) } else { (y, x) };
    let chosen =
        mask.dtype().is_bool() && !matches!(mask, Value::Lit(_)) && x.dtype() == to && ops::is_choice_by_mask(to);
    if !chosen || base().is_some() || Flag::StrictNumerics.get() {
        return Ok(None);
    }
    let whole = ferrax_base::shape::broadcast(x.shape(), mask.shape()).is_some_and(|shape| *shape == *mask.shape());
    let rows = mapped_by(mask);
    if whole && mapped_by(x).iter().all(|id| rows.contains(id)) {
        where_(mask, x, &constant(x, 0.0)).map(Some)
    } else {
        Ok(None)
    }
}

/// The transformations by `vmap` over whose rows a value differs.
fn mapped_by(x: &Value) -> SmallVec<[TraceId; 2]> {
    let mut found = SmallVec::new();
    let mut inner = x;
    while let Value::Tracer(t) = inner {
        inner = match t.payload() {
            Payload::Batched { value, axis } => {
                found.extend(axis.map(|_| t.trace().id()));
                value
            }
            Payload::Jvp { primal, .. } => primal,
            Payload::Staged(_) | Payload::Hosted(_) => break,
        };
    }
    found
}

/// Complex numbers in lexicographic order: by real part, then by imaginary part.
fn lexicographic(x: &Value, y: &Value, compare: fn(&Value, &Value) -> Result<Value>) -> Result<Value> {
    let (rx, ry) = (ops::real(x)?, ops::real(y)?);
    let by_imag = compare(&ops::imag(x)?, &ops::imag(y)?)?;
    ops::select(&ops::eq(&rx, &ry)?, &by_imag, &compare(&rx, &ry)?)
}

/// Writes the row of an order comparison.
macro_rules! order {
    ($($fun:ident $NAME:ident $name:literal $OP:ident $op:ident $words:tt;)*) => {$(
        binary!(
            $fun, $NAME, $name, $words, Common, |d| (!d.is_complex()).then(|| ops::$OP.op()),
            |x, y| lexicographic(x, y, ops::$op)
        );
    )*};
}
order! {
    less LESS "less" LT lt ["Truth of x < y.", "bool", "{f}(jnp.array([1, 2]), 2)", "[ True False]"];
    less_equal LESS_EQUAL "less_equal" LE le ["Truth of x <= y.", "bool", "{f}(jnp.array([1, 2]), 2)", "[ True  True]"];
    greater GREATER "greater" GT gt ["Truth of x > y.", "bool", "{f}(jnp.array([1, 2]), 1)", "[False  True]"];
    greater_equal GREATER_EQUAL "greater_equal" GE ge
        ["Truth of x >= y.", "bool", "{f}(jnp.array([1, 2]), 2)", "[False  True]"];
}

/// Writes the row of a logical function: `bool` operands go to the primitive, others are tested first.
macro_rules! logical {
    ($($fun:ident $NAME:ident $name:literal $OP:ident $op:ident $words:tt;)*) => {$(
        binary!(
            $fun, $NAME, $name, $words, None, |_| None, |x, y| ops::$op(&to_bool($name, x)?, &to_bool($name, y)?)
        );
    )*};
}
logical! {
    logical_and LOGICAL_AND "logical_and" AND bitwise_and
        ["Truth of `x and y`.", "bool", "{f}(jnp.array([0, 3]), True)", "[False  True]"];
    logical_or LOGICAL_OR "logical_or" OR bitwise_or
        ["Truth of `x or y`.", "bool", "{f}(jnp.array([0, 3]), False)", "[False  True]"];
    logical_xor LOGICAL_XOR "logical_xor" XOR bitwise_xor
        ["Truth of exactly one of x and y.", "bool", "{f}(jnp.array([0, 3]), True)", "[ True False]"];
}

fn right_shift_op(d: DType) -> Option<OpRef> {
    Some(if d.is_unsigned() { ops::SHIFT_RIGHT_LOGICAL.op() } else { ops::SHIFT_RIGHT_ARITHMETIC.op() })
}

binary!(
    right_shift,
    RIGHT_SHIFT,
    "right_shift",
    ["x shifted right by y bits; the sign is kept.", "of the common dtype", "{f}(jnp.array([4, -4]), 1)", "[ 2 -2]"],
    Numeric,
    right_shift_op,
    never2
);

/// x or y by a mask, all brought to one shape.
pub(crate) fn choose(mask: &Value, x: &Value, y: &Value) -> Result<Value> {
    let shape = ferrax_base::shape::broadcast(&compatible("arrays", x, y)?, mask.shape());
    let shape = shape.unwrap_or_else(|| mask.shape().into());
    let mask = if mask.rank() == 0 { mask.clone() } else { stretch(mask, &shape)? };
    ops::select(&mask, &stretch(x, &shape)?, &stretch(y, &shape)?)
}

/// Quotient and remainder of floats: the remainder has the sign of the divisor.
fn float_divmod(x: &Value, y: &Value) -> Result<[Value; 2]> {
    let zero = |v: &Value| constant(v, 0.0);
    let rem = ops::rem(x, y)?;
    let exact = choose(&ops::eq(y, &zero(y))?, x, &ops::sub(x, &rem)?)?;
    let div = ops::div(&exact, y)?;
    let other_sign = ops::ne(&ops::sign(y)?, &ops::sign(&rem)?)?;
    let down = ops::bitwise_and(&ops::ne(&rem, &zero(&rem))?, &other_sign)?;
    let rem = ops::select(&down, &ops::add(&rem, y)?, &rem)?;
    let div = ops::select(&down, &ops::sub(&div, &constant(&div, 1.0))?, &div)?;
    Ok([ops::round(&div, ops::RoundingMethod::AwayFromZero)?, rem])
}

fn floor_quotient(x: &Value, y: &Value) -> Result<Value> {
    let d = x.dtype();
    if d.is_complex() {
        bail!(Type, "floor_divide does not support complex-valued inputs");
    }
    if d.is_unsigned() {
        return ops::div(x, y);
    }
    if d.is_float() {
        return Ok(float_divmod(x, y)?.into_iter().next().unwrap_or_else(|| x.clone()));
    }
    let div = ops::div(x, y)?;
    let other_sign = ops::ne(&ops::sign(x)?, &ops::sign(y)?)?;
    let rem = ops::rem(x, y)?;
    let down = ops::bitwise_and(&other_sign, &ops::ne(&rem, &constant(&rem, 0.0))?)?;
    ops::select(&down, &ops::sub(&div, &constant(&div, 1.0))?, &div)
}

/// Integers divided by zero give no remainder: one stands in for the divisor.
fn nonzero_divisor(y: &Value) -> Result<Value> {
    if !y.dtype().is_integer() {
        return Ok(y.clone());
    }
    let zero = ops::eq(y, &constant(y, 0.0))?;
    ops::select(&zero, &if y.rank() == 0 { constant(y, 1.0) } else { full_like(y, 1.0)? }, y)
}

fn floor_remainder(x: &Value, y: &Value) -> Result<Value> {
    let y = nonzero_divisor(y)?;
    let rem = ops::rem(x, &y)?;
    let zero = |v: &Value| constant(v, 0.0);
    let other_sign = ops::ne(&ops::lt(&rem, &zero(&rem))?, &ops::lt(&y, &zero(&y))?)?;
    let down = ops::bitwise_and(&other_sign, &ops::ne(&rem, &zero(&rem))?)?;
    ops::select(&down, &ops::add(&rem, &y)?, &rem)
}

binary!(
    floor_divide,
    FLOOR_DIVIDE,
    "floor_divide",
    ["Floor of x / y.", "of the common dtype", "{f}(jnp.array([-3, 3]), 2)", "[-2  1]"],
    Numeric,
    |d| d.is_unsigned().then(|| ops::DIV.op()),
    floor_quotient
);
binary!(
    remainder,
    REMAINDER,
    "remainder",
    ["Remainder of x / y, with the sign of y.", "of the common dtype", "{f}(jnp.array([-3, 3]), 2)", "[1 1]"],
    Numeric,
    |_| None,
    floor_remainder
);
binary!(
    fmod,
    FMOD,
    "fmod",
    ["Remainder of x / y, with the sign of x.", "of the common dtype", "{f}(jnp.array([-3, 3]), 2)", "[-1  1]"],
    Numeric,
    |d| d.is_float().then(|| ops::REM.op()),
    |x, y| ops::rem(x, &nonzero_divisor(y)?)
);

/// Elementwise floor of x / y and the remainder.
pub fn divmod(x: &Value, y: &Value) -> Result<[Value; 2]> {
    let [x, y] = super::promote::two("divmod", Rule::Numeric, x, y)?;
    compatible("divmod", &x, &y)?;
    if x.dtype().is_float() {
        return float_divmod(&x, &y);
    }
    Ok([floor_quotient(&x, &y)?, floor_remainder(&x, &y)?])
}

binary!(
    fmax,
    FMAX,
    "fmax",
    [
        "The larger of two numbers; a number wins over NaN.",
        "of the common dtype",
        "{f}(jnp.array([jnp.nan, 5.]), 3.)",
        "[3. 5.]"
    ],
    Common,
    |_| None,
    |x, y| choose(&ops::bitwise_or(&greater(x, y)?, &ops::ne(y, y)?)?, x, y)
);
binary!(
    fmin,
    FMIN,
    "fmin",
    [
        "The smaller of two numbers; a number wins over NaN.",
        "of the common dtype",
        "{f}(jnp.array([jnp.nan, 5.]), 3.)",
        "[3. 3.]"
    ],
    Common,
    |_| None,
    |x, y| choose(&ops::bitwise_or(&less(x, y)?, &ops::ne(y, y)?)?, x, y)
);

fn magnitude(x: &Value, y: &Value) -> Result<Value> {
    if x.dtype().is_complex() {
        bail!(
            Value,
            "jnp.hypot is not well defined for complex-valued inputs. Please convert to real values first, such as by \
             using abs(x)"
        );
    }
    let (x, y) = (ops::abs(x)?, ops::abs(y)?);
    let inf = |v: &Value| constant(v, f64::INFINITY);
    let infinite = ops::bitwise_or(&ops::eq(&x, &inf(&x))?, &ops::eq(&y, &inf(&y))?)?;
    let (large, small) = (ops::max(&x, &y)?, ops::min(&x, &y)?);
    let none = ops::eq(&large, &constant(&large, 0.0))?;
    let divisor = ops::select(&none, &full_like(&large, 1.0)?, &large)?;
    let ratio = ops::square(&ops::div(&small, &divisor)?)?;
    let out = ops::mul(&large, &ops::sqrt(&ops::add(&constant(&ratio, 1.0), &ratio)?)?)?;
    let out = ops::select(&none, &large, &out)?;
    choose(&infinite, &inf(&out), &out)
}

binary!(
    hypot,
    HYPOT,
    "hypot",
    ["sqrt(x*x + y*y), without overflow on the way.", "floating", "{f}(jnp.array([3.]), 4.)", "[5.]"],
    Inexact,
    |_| None,
    magnitude
);

fn with_sign(x: &Value, y: &Value) -> Result<Value> {
    if x.dtype().is_complex() {
        bail!(Type, "copysign does not support complex-valued inputs");
    }
    let size = abs(x)?;
    choose(&signbit(y)?, &ops::neg(&size)?, &size)
}

binary!(
    copysign,
    COPYSIGN,
    "copysign",
    ["|x| with the sign of y.", "floating", "{f}(jnp.array([1., -2.]), -1.)", "[-1. -2.]"],
    Inexact,
    |_| None,
    with_sign
);

fn step(x: &Value, y: &Value) -> Result<Value> {
    let zero = constant(x, 0.0);
    let (negative, positive) = (ops::lt(x, &zero)?, ops::gt(x, &zero)?);
    let out = choose(&ops::ne(x, x)?, x, y)?;
    let out = choose(&positive, &constant(&out, 1.0), &out)?;
    let out = choose(&negative, &constant(&out, 0.0), &out)?;
    // as JAX has it: only at scalars it stays weakly typed
    if x.rank() == 0 { Ok(out) } else { ops::convert_weak(&out, out.dtype(), false) }
}

binary!(
    heaviside,
    HEAVISIDE,
    "heaviside",
    ["0 below zero, 1 above, y at zero.", "floating", "{f}(jnp.array([-1., 0., 2.]), 0.5)", "[0.  0.5 1. ]"],
    Inexact,
    |_| None,
    step
);

binary_aliases! {
    bitwise_right_shift BITWISE_RIGHT_SHIFT "bitwise_right_shift" of RIGHT_SHIFT;
    mod_ MOD "mod" of REMAINDER;
    true_divide TRUE_DIVIDE "true_divide" of DIVIDE;
    bitwise_left_shift BITWISE_LEFT_SHIFT "bitwise_left_shift" of LEFT_SHIFT;
    atan2 ATAN2 "atan2" of ARCTAN2;
}

/// Every function of this file that gives one result.
pub static ALL_BINARY: &[&Binary] = &[
    &ADD,
    &SUBTRACT,
    &MULTIPLY,
    &DIVIDE,
    &TRUE_DIVIDE,
    &FLOOR_DIVIDE,
    &REMAINDER,
    &MOD,
    &FMOD,
    &MAXIMUM,
    &MINIMUM,
    &FMAX,
    &FMIN,
    &EQUAL,
    &NOT_EQUAL,
    &LESS,
    &LESS_EQUAL,
    &GREATER,
    &GREATER_EQUAL,
    &LOGICAL_AND,
    &LOGICAL_OR,
    &LOGICAL_XOR,
    &BITWISE_AND,
    &BITWISE_OR,
    &BITWISE_XOR,
    &LEFT_SHIFT,
    &BITWISE_LEFT_SHIFT,
    &RIGHT_SHIFT,
    &BITWISE_RIGHT_SHIFT,
    &ARCTAN2,
    &ATAN2,
    &NEXTAFTER,
    &HYPOT,
    &COPYSIGN,
    &HEAVISIDE,
];
