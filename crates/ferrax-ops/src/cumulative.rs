//! Running reductions along an axis.
//!
//! The sum is linear; the others differentiate through an associative scan of (value, tangent) pairs, JAX's
//! construction (Blelloch, "Prefix sums and their applications"), so that ties and zeros behave as in JAX.
//!
//! Read next: `window.rs`.

use crate::common::{Accept, FROM_KERNEL, NO_REWRITE, NOT_LINEAR, constant, one, unary_aval, zeros_like};
use crate::control::jit::inline_program;
use crate::elementwise::binary::{MAX, MIN, MUL, add, atan2, complex, max, mul, sub};
use crate::elementwise::compare::{eq, ne};
use crate::elementwise::select::select;
use crate::elementwise::unary::{abs, cos, exp, imag, log1p, neg, real, sin};
use crate::numbers::{Complex, to_complex};
use crate::reduce::fold_reference;
use crate::shape::rev;
use crate::slice::{PadDim, concatenate, pad, slice_in_dim};
use ferrax_base::{Aval, Result, Scalar, bail, symbolic};
use ferrax_ir::reference::RefTensor;
use ferrax_ir::trace::bind1;
use ferrax_ir::{Avals, DebugInfo, Def, OpRef, Slot, Special, Tangents, Value, Values};
use ferrax_loops::{Builder, Kind, ReduceOp, ValueId};
use ferrax_transform::staging::stage_closed;
use ferrax_transform::structural::{add_any, linear_jvp};
use smallvec::{SmallVec, smallvec};

ferrax_ir::params! {
    /// Parameters of a running reduction.
    pub struct Cumulative {
        /// The axis it runs along.
        axis: usize,
        /// Whether it starts at the end.
        reverse: bool,
    }
}

fn cumulative_shape(name: &str, p: &Cumulative, args: &[&Aval]) -> Result<Avals> {
    let x = args[0];
    if !x.dtype.is_number() {
        bail!(Type, "{name} does not accept dtype {}. Accepted dtypes are subtypes of number.", x.dtype);
    }
    if p.axis >= x.rank() {
        bail!(Value, "axis {} is out of bounds for array of shape {}", p.axis, ferrax_base::shape::Tuple(&x.shape));
    }
    Ok(smallvec![unary_aval(name, Accept::NUMBER, args)?])
}

fn cumulative_reference(op: ReduceOp, p: &Cumulative, x: &RefTensor, out: &Aval) -> RefTensor {
    RefTensor::build(out, |i| {
        let range = if p.reverse { i[p.axis]..out.shape[p.axis] } else { 0..i[p.axis] + 1 };
        let items = range.map(|k| {
            let mut at = i.to_vec();
            at[p.axis] = k;
            x.at(&at)
        });
        match op {
            ReduceOp::LogSumExp => log_sum_exp(out, &items.collect::<Vec<_>>()),
            _ => fold_reference(op, out.dtype, items),
        }
    })
}

fn log_sum_exp(out: &Aval, items: &[Scalar]) -> Scalar {
    let top = items.iter().map(|s| s.to_f64()).fold(f64::NEG_INFINITY, f64::max);
    let shift = if top.is_finite() { top } else { 0.0 };
    let zero = crate::numbers::complex(0.0, 0.0);
    let shifted = |s: &Scalar| (to_complex(*s) - crate::numbers::complex(shift, 0.0)).exp();
    let total: Complex = items.iter().map(shifted).fold(zero, |a, b| a + b);
    if out.dtype.is_complex() {
        let z = total.log();
        return Scalar::from_complex(out.dtype, z.re + shift, z.im);
    }
    Scalar::from_f64(out.dtype, total.re.ln() + shift)
}

/// Writes the block of a running reduction and the function that binds it.
macro_rules! cumulative {
    ($NAME:ident, $fun:ident, $name:literal, $kernel:ident, $doc:literal, jvp: $jvp:expr, transpose: $transpose:expr) => {
        #[doc = $doc]
        pub static $NAME: Def<Cumulative> = Def {
            name: $name,
            doc: $doc,
            arity: Some(1),
            shape: |p, args| cumulative_shape($name, p, args),
            jvp: $jvp,
            transpose: $transpose,
            batch: Slot::Rule(|_, p, _, args, dims| {
                let at = dims[0].unwrap_or(0);
                let axis = if p.axis < at { p.axis } else { p.axis + 1 };
                Ok((smallvec![$fun(&args[0], axis, p.reverse)?], smallvec![Some(at)]))
            }),
            simplify: Slot::None(NO_REWRITE),
            stablehlo: Slot::None(FROM_KERNEL),
            kernel: Slot::Rule(|_, p, b, args, outs| {
                if ReduceOp::$kernel == ReduceOp::LogSumExp && outs[0].dtype.is_complex() {
                    return complex_log_sum_exp(p, b, args, &outs[0]);
                }
                let kind = Kind::Cumulative { op: ReduceOp::$kernel, axis: p.axis, reverse: p.reverse };
                Ok(smallvec![b.push(kind, args, (&outs[0]).into())])
            }),
            reference: Slot::Rule(|p, args, outs| {
                Ok(vec![cumulative_reference(ReduceOp::$kernel, p, &args[0], &outs[0])])
            }),
            special: Special::WEIGHTED,
        };

        #[doc = $doc]
        pub fn $fun(x: &Value, axis: usize, reverse: bool) -> Result<Value> {
            bind1(&OpRef::new(&$NAME, Cumulative { axis, reverse }), std::slice::from_ref(x))
        }
    };
}

/// A jvp slot from a function of two (value, tangent) pairs.
macro_rules! scanned {
    ($combine:expr) => {
        Slot::Rule(|op, p, primals, tangents| scan_jvp(op, p, primals, tangents, &|a, b| $combine(a, b)))
    };
}

cumulative!(
    CUMSUM, cumsum, "cumsum", Sum, "Running sum along an axis.",
    jvp: Slot::Rule(linear_jvp),
    transpose: Slot::Rule(|_, p, cts, _| {
        Ok(smallvec![cts[0].as_ref().map(|ct| cumsum(ct, p.axis, !p.reverse)).transpose()?])
    })
);
cumulative!(
    CUMPROD, cumprod, "cumprod", Prod, "Running product along an axis.",
    jvp: scanned!(|a, b| binary(&MUL.op(), a, b)),
    transpose: Slot::None(NOT_LINEAR)
);
cumulative!(
    CUMMAX, cummax, "cummax", Max, "Running maximum along an axis.",
    jvp: scanned!(|a, b| binary(&MAX.op(), a, b)),
    transpose: Slot::None(NOT_LINEAR)
);
cumulative!(
    CUMMIN, cummin, "cummin", Min, "Running minimum along an axis.",
    jvp: scanned!(|a, b| binary(&MIN.op(), a, b)),
    transpose: Slot::None(NOT_LINEAR)
);
cumulative!(
    CUMLOGSUMEXP, cumlogsumexp, "cumlogsumexp", LogSumExp,
    "Running logarithm of the sum of exponentials along an axis.",
    jvp: scanned!(log_add_exp_pairs),
    transpose: Slot::None(NOT_LINEAR)
);

// ---- derivatives by associative scan -------------------------------------------------------------------------------

/// A value and its tangent.
type Pair = [Value; 2];

fn binary(op: &OpRef, a: &Pair, b: &Pair) -> Result<Pair> {
    let primals = [a[0].clone(), b[0].clone()];
    let tangents = [Some(a[1].clone()), Some(b[1].clone())];
    let (mut outs, mut dots) = op.jvp(op, &primals, &tangents)?;
    match (outs.pop(), dots.pop().flatten()) {
        (Some(out), Some(dot)) => Ok([out, dot]),
        _ => bail!(Internal, "the jvp of {} gave no tangent", op.name()),
    }
}

fn scan_jvp(
    op: &OpRef,
    p: &Cumulative,
    primals: &[Value],
    tangents: &[Option<Value>],
    combine: &dyn Fn(&Pair, &Pair) -> Result<Pair>,
) -> Result<(Values, Tangents)> {
    let Some(t) = &tangents[0] else { return Ok(one(bind1(op, primals)?, None)) };
    let [x, t] = prefixes(combine, p, [&primals[0], t])?;
    Ok(one(x, Some(t)))
}

/// All prefixes, or all suffixes, of pairs.
fn prefixes(combine: &dyn Fn(&Pair, &Pair) -> Result<Pair>, p: &Cumulative, pair: [&Value; 2]) -> Result<Pair> {
    let flip = |v: &Value| if p.reverse { rev(v, &[p.axis]) } else { Ok(v.clone()) };
    let [x, t] = associative_scan(combine, [flip(pair[0])?, flip(pair[1])?], p.axis)?;
    Ok([flip(&x)?, flip(&t)?])
}

/// All prefixes of an associative function along an axis, in a logarithmic number of steps.
fn associative_scan(combine: &dyn Fn(&Pair, &Pair) -> Result<Pair>, x: Pair, axis: usize) -> Result<Pair> {
    symbolic::check_number("the derivative of a cumulative function", &x[0].shape()[axis..=axis])?;
    let n = x[0].shape()[axis] as i64;
    if n < 2 {
        return Ok(x);
    }
    let part = |v: &Pair, start: i64, limit: Option<i64>, stride: usize| -> Result<Pair> {
        let one = |v: &Value| slice_in_dim(v, Some(start), limit, stride, axis);
        Ok([one(&v[0])?, one(&v[1])?])
    };
    let pairs = combine(&part(&x, 0, Some(n - 1), 2)?, &part(&x, 1, None, 2)?)?;
    let odd = associative_scan(combine, pairs, axis)?;
    let before = if n % 2 == 0 { part(&odd, 0, Some(n / 2 - 1), 1)? } else { odd.clone() };
    let even = combine(&before, &part(&x, 2, None, 2)?)?;
    let first = part(&x, 0, Some(1), 1)?;
    let join = |i: usize| interleave(&concatenate(&[first[i].clone(), even[i].clone()], axis)?, &odd[i], axis);
    Ok([join(0)?, join(1)?])
}

/// a0, b0, a1, b1, …; `a` has as many elements as `b` or one more.
fn interleave(a: &Value, b: &Value, axis: usize) -> Result<Value> {
    let longer = i64::from(a.shape()[axis] > b.shape()[axis]);
    let spread = |v: &Value, low: i64, high: i64| {
        let mut config: SmallVec<[PadDim; 4]> = smallvec![PadDim(0, 0, 0); v.rank()];
        config[axis] = PadDim(low, high, 1);
        pad(v, &constant(v, 0.0), &config)
    };
    add(&spread(a, 0, 1 - longer)?, &spread(b, 1, longer)?)
}

// ---- log of sums of exponentials -----------------------------------------------------------------------------------

fn log_add_exp_pairs(a: &Pair, b: &Pair) -> Result<Pair> {
    let out = log_add_exp(&a[0], &b[0])?;
    let infinity = constant(&out, f64::INFINITY);
    let finite = ne(&abs(&out)?, &constant(&abs(&out)?, f64::INFINITY))?;
    let base = select(&finite, &out, &zeros_like(&out)?)?;
    let weight = |x: &Value| -> Result<Value> {
        let x = select(&eq(x, &infinity)?, &zeros_like(x)?, x)?;
        exp(&sub(&x, &base)?)
    };
    let dot = add_any(&mul(&a[1], &weight(&a[0])?)?, &mul(&b[1], &weight(&b[0])?)?)?;
    Ok([out, dot])
}

/// Complex logarithms have no order to scale by: they are joined pair by pair; angles are the principal ones.
fn complex_log_sum_exp(p: &Cumulative, b: &mut Builder, args: &[ValueId], x: &Aval) -> Result<SmallVec<[ValueId; 1]>> {
    let program = stage_closed("cumlogsumexp", DebugInfo::named("cumlogsumexp"), std::slice::from_ref(x), |x| {
        let join = |a: &Pair, b: &Pair| log_add_exp(&a[0], &b[0]).map(|v| [v.clone(), v]);
        let [out, _] = prefixes(&join, p, [&x[0], &x[0]])?;
        let angle = imag(&out)?;
        Ok(vec![complex(&real(&out)?, &atan2(&sin(&angle)?, &cos(&angle)?)?)?])
    })?;
    inline_program(&program, b, args)
}

/// log(exp(x) + exp(y)) without overflow.
pub fn log_add_exp(x: &Value, y: &Value) -> Result<Value> {
    let delta = sub(x, y)?;
    let largest = max(x, y)?;
    if x.dtype().is_complex() {
        let other = sub(&add(x, y)?, &largest)?;
        return add(&largest, &log1p(&exp(&sub(&other, &largest)?)?)?);
    }
    let sum = add(&largest, &log1p(&exp(&neg(&abs(&delta)?)?)?)?)?;
    // The difference of equal infinities is NaN; their sum is right.
    select(&ne(&delta, &delta)?, &add(x, y)?, &sum)
}

/// The primitives of this family.
pub(crate) static PRIMITIVES: &[&'static dyn crate::registry::Primitive] =
    &[&CUMSUM, &CUMPROD, &CUMMAX, &CUMMIN, &CUMLOGSUMEXP];
