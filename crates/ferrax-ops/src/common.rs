//! What the blocks of all families share: dtype and shape checks with JAX's messages, constants, and the
//! jvp, transpose and batching rules that many primitives have in common.
//!
//! Elementwise operands have equal shapes, shapes that differ in axes of size one, or rank 0; kernels see
//! equal shapes or rank 0 only ([`aligned`]). Constants of rules are literals with the dtype and weak type of
//! the value they meet, so that a derivative has the type of what it is the derivative of.
//!
//! Read next: `elementwise/unary.rs`.

use ferrax_base::shape::Tuple;
use ferrax_base::symbolic::{Operation, apply, difference, is_symbolic};
use ferrax_base::{Aval, DType, Result, Scalar, Shape, bail, config};
use ferrax_ir::op::{BatchAxis, BatchDims};
use ferrax_ir::trace::bind1;
use ferrax_ir::{Avals, Lit, OpRef, Tangents, Value, Values};
use ferrax_loops::{Builder, ValueId};
use ferrax_transform::structural::{Axes, add_any, broadcast_in_dim, full, move_axis, reduce_sum, unbatched};
use smallvec::{SmallVec, smallvec};

/// Why a slot of the StableHLO lowering is empty.
pub const FROM_KERNEL: &str = "from its kernel";
/// Why a slot of the transpose rule is empty.
pub const NOT_LINEAR: &str = "not linear";
/// Why a slot of the simplify rule is empty.
pub const NO_REWRITE: &str = "no rewrite applies";

// ---- dtype checks --------------------------------------------------------------------------------------------------

/// A set of dtype categories that a primitive accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accept(u8);

#[allow(missing_docs)]
impl Accept {
    pub const SIGNED: Accept = Accept(1);
    pub const INTEGER: Accept = Accept(3);
    pub const FLOAT: Accept = Accept(4);
    pub const COMPLEX: Accept = Accept(8);
    pub const BOOL: Accept = Accept(16);
    pub const KEY: Accept = Accept(32);
    pub const INEXACT: Accept = Accept::FLOAT.or(Accept::COMPLEX);
    pub const REAL: Accept = Accept::INTEGER.or(Accept::FLOAT);
    pub const NUMBER: Accept = Accept::INTEGER.or(Accept::INEXACT);
    pub const BITS: Accept = Accept::INTEGER.or(Accept::BOOL);
    pub const ORDERED: Accept = Accept::REAL.or(Accept::BOOL);
    pub const ANY: Accept = Accept::NUMBER.or(Accept::BOOL);

    /// Both sets.
    #[must_use]
    pub const fn or(self, other: Accept) -> Accept {
        Accept(self.0 | other.0)
    }

    /// Whether a dtype is in the set.
    pub const fn has(self, dtype: DType) -> bool {
        let bit = match dtype {
            d if d.is_signed() => 1,
            d if d.is_unsigned() => 2,
            d if d.is_float() => 4,
            d if d.is_complex() => 8,
            d if d.is_bool() => 16,
            d if d.is_key() => 32,
            _ => 0,
        };
        self.0 & bit != 0
    }

    /// NumPy's names of the set's categories.
    pub fn names(self) -> String {
        let names = [(3, "integer"), (4, "floating"), (8, "complexfloating"), (1, "signedinteger"), (16, "bool")];
        let mut left = self.0;
        let mut out = Vec::new();
        for (bits, name) in names {
            if left & bits == bits {
                out.push(name);
                left &= !bits;
            }
        }
        out.join(", ")
    }
}

#[cold]
fn rejected(name: &str, dtype: DType, position: Option<usize>, accept: Accept) -> ferrax_base::Error {
    let names = accept.names();
    if dtype == DType::Float0 {
        let place = position.map_or(String::new(), |i| format!(" at position {i}"));
        return ferrax_base::error!(
            Type,
            "Called {name} with a float0{place}. float0s do not support any operations by design, because they are \
             not compatible with non-trivial vector spaces. If you didn't expect to get a float0 you might have \
             accidentally taken a gradient with respect to an integer argument."
        );
    }
    match position {
        Some(i) => ferrax_base::error!(
            Type,
            "{name} does not accept dtype {dtype} at position {i}. Accepted dtypes at position {i} are subtypes of \
             {names}."
        ),
        None => {
            ferrax_base::error!(Type, "{name} does not accept dtype {dtype}. Accepted dtypes are subtypes of {names}.")
        }
    }
}

/// The aval of a unary result, once its dtype is accepted.
#[inline]
pub fn unary_aval(name: &str, accept: Accept, args: &[&Aval]) -> Result<Aval> {
    let x = args[0];
    if accept.has(x.dtype) { Ok(x.clone()) } else { Err(rejected(name, x.dtype, None, accept)) }
}

/// As [`unary_aval`], as a shape rule gives it.
#[inline]
pub fn unary_shape(name: &str, accept: Accept, args: &[&Aval]) -> Result<Avals> {
    Ok(smallvec![unary_aval(name, accept, args)?])
}

/// Errors unless one operand's dtype is accepted.
pub fn check_operand(name: &str, accept: Accept, args: &[&Aval], position: usize) -> Result<()> {
    let dtype = args[position].dtype;
    if accept.has(dtype) { Ok(()) } else { Err(rejected(name, dtype, Some(position), accept)) }
}

/// Errors unless all operands have one dtype.
pub fn check_same_dtypes(name: &str, args: &[&Aval]) -> Result<()> {
    if args.iter().all(|a| a.dtype == args[0].dtype) {
        return Ok(());
    }
    let dtypes: Vec<&str> = args.iter().map(|a| a.dtype.name()).collect();
    // The functions of jax.numpy that JAX's message points to; the sentence ends with it, or with a full stop.
    let tip = match name {
        "add" => " (Tip: jnp.add is a similar function that does automatic type promotion on inputs).",
        "sub" => " (Tip: jnp.subtract is a similar function that does automatic type promotion on inputs).",
        "mul" => " (Tip: jnp.multiply is a similar function that does automatic type promotion on inputs).",
        "div" => " (Tip: jnp.divide is a similar function that does automatic type promotion on inputs).",
        "rem" => " (Tip: jnp.remainder is a similar function that does automatic type promotion on inputs).",
        "max" => " (Tip: jnp.maximum is a similar function that does automatic type promotion on inputs).",
        "min" => " (Tip: jnp.minimum is a similar function that does automatic type promotion on inputs).",
        _ => "",
    };
    bail!(Type, "lax.{name} requires arguments to have the same dtypes, got {}.{tip}", dtypes.join(", "))
}

/// The common shape of elementwise operands: rank 0 and axes of size one stretch.
#[inline]
pub fn nary_result_shape(name: &str, args: &[&Aval]) -> Result<Shape> {
    let mut ranked = args.iter().filter(|a| !a.shape.is_empty());
    let Some(first) = ranked.next() else { return Ok(Shape::new()) };
    if ranked.all(|a| a.shape == first.shape) {
        return Ok(first.shape.clone());
    }
    stretched_shape(name, args)
}

fn stretched_shape(name: &str, args: &[&Aval]) -> Result<Shape> {
    let shapes: SmallVec<[&Shape; 3]> = args.iter().map(|a| &a.shape).filter(|s| !s.is_empty()).collect();
    let mut ranks: Vec<usize> = shapes.iter().map(|s| s.len()).collect();
    ranks.sort_unstable();
    ranks.dedup();
    if ranks.len() > 1 {
        let ranks: Vec<String> = ranks.iter().map(ToString::to_string).collect();
        bail!(Type, "{name}: arrays must have the same number of dimensions, got {{{}}}", ranks.join(", "));
    }
    let mut out = shapes[0].clone();
    for shape in &shapes[1..] {
        match ferrax_base::shape::broadcast(&out, shape) {
            Some(joined) => out = joined,
            None => {
                let shapes: Vec<String> = shapes.iter().map(|s| Tuple(s).to_string()).collect();
                bail!(Type, "{name} got incompatible shapes for broadcasting: {}.", shapes.join(", "));
            }
        }
    }
    Ok(out)
}

/// The aval of an n-ary elementwise result of operands of one accepted dtype; weak when all are.
#[inline]
pub fn nary_aval(name: &str, accept: Accept, args: &[&Aval]) -> Result<Aval> {
    for i in 0..args.len() {
        check_operand(name, accept, args, i)?;
    }
    check_same_dtypes(name, args)?;
    let shape = nary_result_shape(name, args)?;
    Ok(Aval { shape, dtype: args[0].dtype, weak: args.iter().all(|a| a.weak), vary: 0, spread: 0 })
}

/// As [`nary_aval`], as a shape rule gives it.
#[inline]
pub fn nary_shape(name: &str, accept: Accept, args: &[&Aval]) -> Result<Avals> {
    Ok(smallvec![nary_aval(name, accept, args)?])
}

/// The dtype in which functions of real or complex numbers are computed: integers of 64 bits become the default float, those
/// of fewer and `bool` become float32.
#[inline]
pub fn float_of(d: DType) -> DType {
    match d {
        DType::I64 | DType::U64 => DType::F64.canonical(config::x64()),
        _ if d.is_integer() || d.is_bool() => DType::F32,
        _ => d,
    }
}

/// The axis counted from the end when negative; errors when it is out of range.
pub fn canonical_axis(axis: i64, rank: usize) -> Result<usize> {
    let shifted = if axis < 0 { axis + rank as i64 } else { axis };
    if shifted < 0 || shifted >= rank as i64 {
        bail!(Value, "axis {axis} is out of bounds for array of dimension {rank}");
    }
    Ok(shifted as usize)
}

// ---- constants -----------------------------------------------------------------------------------------------------

/// A rank-0 float constant of a value's dtype and weak type.
#[inline]
pub fn constant(like: &Value, v: f64) -> Value {
    Value::Lit(Lit { scalar: Scalar::from_f64(like.dtype(), v), weak: like.weak() })
}

/// A rank-0 integer constant of a value's dtype and weak type.
#[inline]
pub fn constant_int(like: &Value, v: i64) -> Value {
    Value::Lit(Lit { scalar: Scalar::from_i64(like.dtype(), v), weak: like.weak() })
}

/// A rank-0 constant of a value's weak type.
#[inline]
pub fn constant_scalar(like: &Value, scalar: Scalar) -> Value {
    Value::Lit(Lit { scalar, weak: like.weak() })
}

/// One number in the shape, dtype and weak type of a value.
pub fn full_like(like: &Value, v: f64) -> Result<Value> {
    let aval = like.aval();
    full(&aval, Scalar::from_f64(aval.dtype, v))
}

/// Zeros in the shape, dtype and weak type of a value.
pub fn zeros_like(like: &Value) -> Result<Value> {
    ferrax_transform::structural::zeros(&like.aval())
}

// ---- shapes --------------------------------------------------------------------------------------------------------

/// `x` broadcast to `shape`: rank 0 and axes of size one stretch. The same value when nothing changes.
pub fn stretch(x: &Value, shape: &[usize]) -> Result<Value> {
    if x.shape() == shape {
        return Ok(x.clone());
    }
    if x.rank() == 0 {
        return broadcast_in_dim(x, shape, &[]);
    }
    let dims: Axes = (0..shape.len()).collect();
    broadcast_in_dim(x, shape, &dims)
}

/// `x` with new axes of size one at these places of the result.
pub fn with_unit_axes(x: &Value, at: &[usize]) -> Result<Value> {
    if at.is_empty() {
        return Ok(x.clone());
    }
    let mut old = x.shape().iter();
    let rank = x.rank() + at.len();
    let shape: Shape = (0..rank).map(|d| if at.contains(&d) { 1 } else { old.next().copied().unwrap_or(1) }).collect();
    let dims: Axes = (0..rank).filter(|d| !at.contains(d)).collect();
    broadcast_in_dim(x, &shape, &dims)
}

/// The cotangent of an operand that was stretched to the cotangent's shape: summed where it was.
pub fn unbroadcast(aval: &Aval, ct: Value) -> Result<Value> {
    if ct.shape() == aval.shape.as_slice() {
        return Ok(ct);
    }
    if aval.shape.is_empty() {
        let all: Axes = (0..ct.rank()).collect();
        return reduce_sum(&ct, &all);
    }
    let axes: Axes = (0..ct.rank()).filter(|&d| ct.shape()[d] != aval.shape[d]).collect();
    with_unit_axes(&reduce_sum(&ct, &axes)?, &axes)
}

/// Kernel operands with the result's shape, or rank 0: axes of size one are broadcast.
pub fn aligned(b: &mut Builder, args: &[ValueId], shape: &[usize]) -> SmallVec<[ValueId; 3]> {
    let dims: Axes = (0..shape.len()).collect();
    args.iter()
        .map(|&v| {
            let own = &b.ty(v).shape;
            if own.is_empty() || own.as_slice() == shape { v } else { b.broadcast(v, shape, &dims) }
        })
        .collect()
}

/// Reference operands with the result's shape, or rank 0.
pub fn aligned_reference(
    args: &[ferrax_ir::reference::RefTensor],
    shape: &[usize],
) -> Vec<ferrax_ir::reference::RefTensor> {
    use ferrax_ir::reference::RefTensor;
    args.iter()
        .map(|x| {
            if x.aval.shape.is_empty() || x.aval.shape.as_slice() == shape {
                return x.clone();
            }
            RefTensor::build(&x.aval.with_shape(shape), |i| {
                let at: Vec<usize> = i.iter().zip(&x.aval.shape).map(|(&i, &n)| if n == 1 { 0 } else { i }).collect();
                x.at(&at)
            })
        })
        .collect()
}

// ---- jvp -----------------------------------------------------------------------------------------------------------

/// One result with its tangent.
#[inline]
pub fn one(out: Value, tangent: Option<Value>) -> (Values, Tangents) {
    (smallvec![out], smallvec![tangent])
}

/// The jvp of an operation whose derivative is zero everywhere.
pub fn zero_jvp<P>(op: &OpRef, _: &P, primals: &[Value], _: &[Option<Value>]) -> Result<(Values, Tangents)> {
    let outs = ferrax_ir::bind(op, primals)?;
    let tangents = smallvec![None; outs.len()];
    Ok((outs, tangents))
}

/// The jvp of a unary operation from its derivative: (tangent, result, operand) → tangent of the result.
#[inline]
pub fn unary_jvp(
    op: &OpRef,
    primals: &[Value],
    tangents: &[Option<Value>],
    derivative: impl FnOnce(&Value, &Value, &Value) -> Result<Value>,
) -> Result<(Values, Tangents)> {
    let out = bind1(op, primals)?;
    let tangent = match &tangents[0] {
        Some(g) => Some(derivative(g, &out, &primals[0])?),
        None => None,
    };
    Ok(one(out, tangent))
}

/// The jvp of a binary operation from its partial derivatives: (tangent, result, x, y) → part of the tangent.
#[inline]
pub fn binary_jvp(
    op: &OpRef,
    primals: &[Value],
    tangents: &[Option<Value>],
    by_x: impl FnOnce(&Value, &Value, &Value, &Value) -> Result<Value>,
    by_y: impl FnOnce(&Value, &Value, &Value, &Value) -> Result<Value>,
) -> Result<(Values, Tangents)> {
    let out = bind1(op, primals)?;
    let (x, y) = (&primals[0], &primals[1]);
    let dx = tangents[0].as_ref().map(|g| by_x(g, &out, x, y)).transpose()?;
    let dy = tangents[1].as_ref().map(|g| by_y(g, &out, x, y)).transpose()?;
    let tangent = sum_tangents(dx, dy)?;
    Ok(one(out, tangent))
}

/// The jvp of an operation that is linear in each of its two operands.
pub fn bilinear_jvp<P>(op: &OpRef, _: &P, primals: &[Value], tangents: &[Option<Value>]) -> Result<(Values, Tangents)> {
    let bind = |x: &Value, y: &Value| bind1(op, &[x.clone(), y.clone()]);
    binary_jvp(op, primals, tangents, |g, _, _, y| bind(g, y), |g, _, x, _| bind(x, g))
}

/// Sum of two tangents, either of which may be a symbolic zero.
pub fn sum_tangents(a: Option<Value>, b: Option<Value>) -> Result<Option<Value>> {
    match (a, b) {
        (Some(a), Some(b)) => add_any(&a, &b).map(Some),
        (a, b) => Ok(a.or(b)),
    }
}

// ---- batching ------------------------------------------------------------------------------------------------------

/// Batching of an operation of one operand that treats every element, or every axis, alike.
#[inline]
pub fn unary_batch<P>(
    op: &OpRef,
    _: &P,
    _: &BatchAxis,
    args: &[Value],
    dims: &[Option<usize>],
) -> Result<(Values, BatchDims)> {
    let outs = ferrax_ir::bind(op, args)?;
    let dims = smallvec![dims[0]; outs.len()];
    Ok((outs, dims))
}

/// Batching of an n-ary elementwise operation: operands with a batch axis are aligned on it, the others get an
/// axis of size one there, rank-0 ones stay as they are.
pub fn nary_batch<P>(
    op: &OpRef,
    _: &P,
    axis: &BatchAxis,
    args: &[Value],
    dims: &[Option<usize>],
) -> Result<(Values, BatchDims)> {
    let own_rank = |i: usize| args[i].rank() - usize::from(dims[i].is_some());
    let rank = (0..args.len()).map(own_rank).max().unwrap_or(0);
    if dims.iter().all(Option::is_none) {
        return unbatched(op, args, axis);
    }
    let at = (0..args.len()).find_map(|i| dims[i].filter(|_| own_rank(i) == rank)).unwrap_or(0);
    let mut aligned: SmallVec<[Value; 3]> = SmallVec::with_capacity(args.len());
    for (i, x) in args.iter().enumerate() {
        aligned.push(match dims[i] {
            Some(d) if own_rank(i) == rank => move_axis(x, d, at)?,
            Some(_) => with_unit_axes(x, &(0..=rank).filter(|&d| d != at).collect::<Axes>())?,
            None if x.rank() == 0 => x.clone(),
            None => with_unit_axes(x, &[at])?,
        });
    }
    Ok((ferrax_ir::bind(op, &aligned)?, smallvec![Some(at)]))
}

/// Batching of operations whose operands must have the result's shape: as [`nary_batch`], with operands broadcast
/// in full; those that `may_be_scalar` names by position stay unbatched scalars.
pub fn same_shape_batch(
    op: &OpRef,
    axis: &BatchAxis,
    args: &[Value],
    dims: &[Option<usize>],
    may_be_scalar: impl Fn(usize) -> bool,
) -> Result<(Values, BatchDims)> {
    if dims.iter().all(Option::is_none) {
        return unbatched(op, args, axis);
    }
    let own_rank = |i: usize| args[i].rank() - usize::from(dims[i].is_some());
    let rank = (0..args.len()).map(own_rank).max().unwrap_or(0);
    let widest = (0..args.len()).find(|&i| own_rank(i) == rank).unwrap_or(0);
    let at = (0..args.len()).find_map(|i| dims[i].filter(|_| own_rank(i) == rank)).unwrap_or(0);
    let mut shape: Shape = Shape::from_slice(args[widest].shape());
    if let Some(d) = dims[widest] {
        shape.remove(d);
    }
    shape.insert(at, axis.size);
    let others: Axes = (0..=rank).filter(|&d| d != at).collect();
    let mut aligned: SmallVec<[Value; 3]> = SmallVec::with_capacity(args.len());
    for (i, x) in args.iter().enumerate() {
        aligned.push(match dims[i] {
            Some(d) if own_rank(i) == rank => move_axis(x, d, at)?,
            Some(_) => broadcast_in_dim(x, &shape, &[at])?,
            None if x.rank() == 0 && may_be_scalar(i) => x.clone(),
            None if x.rank() == 0 => broadcast_in_dim(x, &shape, &[])?,
            None => broadcast_in_dim(x, &shape, &others)?,
        });
    }
    Ok((ferrax_ir::bind(op, &aligned)?, smallvec![Some(at)]))
}

// ---- cells of windows ----------------------------------------------------------------------------------------------

/// Cells of an axis whose `n` elements stand `by` apart; of a size that is a number.
pub(crate) fn cells(n: usize, by: usize) -> i64 {
    if n == 0 { 0 } else { (n as i64 - 1).saturating_mul(by as i64).saturating_add(1) }
}

/// As [`cells`], of a size that may be symbolic.
pub(crate) fn dilated(n: usize, by: usize) -> Result<i64> {
    if !is_symbolic(n) || by == 1 {
        return Ok(if by == 1 { n as i64 } else { cells(n, by) });
    }
    let gaps = apply(Operation::Mul, difference(&[n as i64], &[1])?, by as i64)?;
    apply(Operation::Max, difference(&[gaps, 1], &[])?, 0)
}

/// How many windows of `span` cells, `stride` apart, an axis of `cells` has.
pub fn places(cells: i64, span: i64, stride: usize) -> Result<usize> {
    let left = difference(&[cells], &[span])?;
    if !is_symbolic(left as usize) {
        return Ok(if left < 0 { 0 } else { (left / stride as i64 + 1) as usize });
    }
    let count = apply(Operation::Div, difference(&[left, stride as i64], &[])?, stride as i64)?;
    Ok(apply(Operation::Max, count, 0)? as usize)
}
