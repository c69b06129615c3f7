//! Reductions over axes: product, maximum, minimum, logical ones, argmax and argmin, and with any function.
//! `reduce_sum` is in `ferrax-transform`, which needs it.
//!
//! Derivatives are JAX's: elements that tie for the maximum share the tangent; the product's comes from a tree
//! of products, so that zeros do no harm. Read next: `cumulative.rs`.

use crate::common::{Accept, FROM_KERNEL, NO_REWRITE, NOT_LINEAR, check_operand, one, unary_aval, zero_jvp};
use crate::elementwise::binary::{MUL, div, mul, precedes};
use crate::elementwise::compare::eq;
use crate::elementwise::convert::convert_element_type;
use crate::numbers::{Complex, complex, from_integer, integer, to_complex};
use crate::shape::{reshape, squeeze};
use crate::slice::{PadDim, pad, slice_in_dim};
use ferrax_base::shape::{Tuple, strides};
use ferrax_base::symbolic;
use ferrax_base::{Aval, DType, Result, Scalar, Shape, bail};
use ferrax_ir::op::{BatchAxis, BatchDims};
use ferrax_ir::reference::{RefTensor, advance};
use ferrax_ir::trace::bind1;
use ferrax_ir::{Avals, Def, JaxprRef, OpRef, Slot, Special, Tangents, Value, Values, bind};
use ferrax_loops::{Builder, Graph, Kind, ReduceOp, Type, ValueId};
use ferrax_transform::structural::{Axes, batched_axes, full, reduce_sum, reduced, transpose};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

// ---- shared --------------------------------------------------------------------------------------------------------

/// What a reference reduction accumulates: exact integers, or double-precision numbers.
#[derive(Clone, Copy)]
enum Sum {
    Int(i128),
    Real(Complex),
}

/// Elements reduced in order, without rounding in between.
pub fn fold_reference(op: ReduceOp, dtype: DType, items: impl Iterator<Item = Scalar>) -> Scalar {
    if !matches!(op, ReduceOp::Sum | ReduceOp::Prod) || dtype.is_bool() {
        return items.fold(op.identity(dtype), |acc, x| combine_reference(op, acc, x));
    }
    let start = op.identity(dtype);
    let first = if dtype.is_inexact() { Sum::Real(to_complex(start)) } else { Sum::Int(integer(start)) };
    let total = items.fold(first, |acc, x| match (acc, op) {
        (Sum::Int(a), ReduceOp::Sum) => Sum::Int(a.wrapping_add(integer(x))),
        (Sum::Int(a), _) => Sum::Int(integer(from_integer(dtype, a.wrapping_mul(integer(x))))),
        (Sum::Real(a), ReduceOp::Sum) => Sum::Real(a + to_complex(x)),
        (Sum::Real(a), _) if dtype.is_complex() => Sum::Real(a * to_complex(x)),
        (Sum::Real(a), _) => Sum::Real(complex(a.re * x.to_f64(), 0.0)),
    });
    match total {
        Sum::Int(v) => from_integer(dtype, v),
        Sum::Real(z) => Scalar::from_complex(dtype, z.re, z.im),
    }
}

fn combine_reference(op: ReduceOp, a: Scalar, b: Scalar) -> Scalar {
    let nan = |s: Scalar| s.to_f64().is_nan() || s.imag().is_nan();
    let less = |x: Scalar, y: Scalar| match x.dtype {
        d if d.is_complex() => precedes(to_complex(x), to_complex(y)),
        d if d.is_float() => x.to_f64() < y.to_f64(),
        _ => integer(x) < integer(y),
    };
    let bits = |f: fn(u128, u128) -> u128| Scalar { dtype: a.dtype, bits: f(a.bits, b.bits) };
    match op {
        ReduceOp::Max | ReduceOp::Min if a.dtype.is_inexact() && nan(a) => a,
        ReduceOp::Max | ReduceOp::Min if a.dtype.is_inexact() && nan(b) => b,
        ReduceOp::Max => {
            if less(a, b) {
                b
            } else {
                a
            }
        }
        ReduceOp::Min => {
            if less(b, a) {
                b
            } else {
                a
            }
        }
        ReduceOp::And => bits(|x, y| x & y),
        ReduceOp::Prod => bits(|x, y| x & y),
        ReduceOp::Or | ReduceOp::Sum => bits(|x, y| x | y),
        ReduceOp::Xor => bits(|x, y| x ^ y),
        ReduceOp::LogSumExp => a,
    }
}

/// The elements of `x` that each element of a reduction over `axes` is made of.
fn groups(x: &RefTensor, axes: &[usize], out: &Aval) -> Vec<Vec<Scalar>> {
    let mut lists = vec![Vec::new(); out.size()];
    let steps = strides(&out.shape);
    let mut index = vec![0; x.aval.rank()];
    for s in &x.data {
        let kept = index.iter().enumerate().filter(|(d, _)| !axes.contains(d)).map(|(_, &i)| i);
        lists[kept.zip(&steps).map(|(i, s)| i * s).sum::<usize>()].push(*s);
        advance(&mut index, &x.aval.shape);
    }
    lists
}

ferrax_ir::params! {
    /// Parameters of a reduction.
    pub struct Reduction {
        /// Axes that are reduced away.
        axes: Axes,
    }
}

/// The shape rule of a reduction that keeps the dtype.
fn reduction_shape(name: &str, accept: Accept, axes: &[usize], args: &[&Aval]) -> Result<Avals> {
    let x = unary_aval(name, accept, args)?;
    if axes.iter().any(|&a| a >= x.rank()) {
        bail!(Value, "reduction axes {} contains out-of-bounds indices for {}.", Tuple(axes), x.long_text());
    }
    Ok(smallvec![reduced(&x, axes, name)?])
}

/// Whether results of a reduction are of full type, whatever the operand is, as JAX has it.
const fn of_bits(op: ReduceOp) -> bool {
    matches!(op, ReduceOp::And | ReduceOp::Or | ReduceOp::Xor)
}

/// Writes the block of a reduction with one of the kernel IR's monoids, and the function that binds it.
macro_rules! reduction {
    ($NAME:ident, $fun:ident, $name:literal, $accept:ident, $kernel:ident, $doc:literal, jvp: $jvp:expr) => {
        #[doc = $doc]
        pub static $NAME: Def<Reduction> = Def {
            name: $name,
            doc: $doc,
            arity: Some(1),
            shape: |p, args| {
                let outs = reduction_shape($name, Accept::$accept, &p.axes, args)?;
                Ok(if of_bits(ReduceOp::$kernel) { smallvec![outs[0].with_weak(false)] } else { outs })
            },
            jvp: $jvp,
            transpose: Slot::None(NOT_LINEAR),
            batch: Slot::Rule(|_, p, _, args, dims| {
                let (axes, out) = batched_axes(&p.axes, dims[0].unwrap_or(0));
                Ok((smallvec![$fun(&args[0], &axes)?], smallvec![Some(out)]))
            }),
            simplify: Slot::Rule(|_, p, cx, inputs| {
                let same = p.axes.is_empty() && !(of_bits(ReduceOp::$kernel) && cx.aval(&inputs[0]).weak);
                Ok(same.then(|| smallvec![inputs[0]]))
            }),
            stablehlo: Slot::None(FROM_KERNEL),
            kernel: Slot::Rule(|_, p, b, args, _| Ok(smallvec![b.reduce(ReduceOp::$kernel, args[0], &p.axes)])),
            reference: Slot::Rule(|p, args, outs| {
                let lists = groups(&args[0], &p.axes, &outs[0]);
                let fold = |l: Vec<Scalar>| fold_reference(ReduceOp::$kernel, outs[0].dtype, l.into_iter());
                Ok(vec![RefTensor { aval: outs[0].clone(), data: lists.into_iter().map(fold).collect() }])
            }),
            special: Special::NONE,
        };

        #[doc = $doc]
        pub fn $fun(x: &Value, axes: &[usize]) -> Result<Value> {
            if axes.is_empty() {
                return Ok(x.clone());
            }
            bind1(&OpRef::new(&$NAME, Reduction { axes: Axes::from_slice(axes) }), std::slice::from_ref(x))
        }
    };
}

// ---- reduce_max and reduce_min -------------------------------------------------------------------------------------

/// Elements equal to the result share the tangent of the result.
fn chooser_jvp(op: &OpRef, p: &Reduction, primals: &[Value], tangents: &[Option<Value>]) -> Result<(Values, Tangents)> {
    let out = bind1(op, primals)?;
    let Some(g) = &tangents[0] else { return Ok(one(out, None)) };
    let x = &primals[0];
    let mut unit = Shape::from_slice(x.shape());
    p.axes.iter().for_each(|&a| unit[a] = 1);
    let chosen = convert_element_type(&eq(x, &reshape(&out, &unit)?)?, g.dtype())?;
    let count = reduce_sum(&chosen, &p.axes)?;
    let total = reduce_sum(&mul(g, &chosen)?, &p.axes)?;
    let tangent = div(&total, &count)?;
    Ok(one(out, Some(tangent)))
}

reduction!(REDUCE_MAX, reduce_max, "reduce_max", ANY, Max, "Maximum over axes; NaN wins.", jvp: Slot::Rule(chooser_jvp));
reduction!(REDUCE_MIN, reduce_min, "reduce_min", ANY, Min, "Minimum over axes; NaN wins.", jvp: Slot::Rule(chooser_jvp));

// ---- reduce_prod ---------------------------------------------------------------------------------------------------

reduction!(
    REDUCE_PROD, reduce_prod, "reduce_prod", NUMBER, Prod, "Product over axes.",
    jvp: Slot::Rule(|op, p, primals, tangents| {
        let Some(t) = &tangents[0] else {
            let out = bind1(op, primals)?;
            return Ok(one(out, None));
        };
        let x = &primals[0];
        let rest: Axes = (0..x.rank()).filter(|d| !p.axes.contains(d)).collect();
        let perm: Axes = p.axes.iter().chain(&rest).copied().collect();
        let mut merged: Shape = smallvec![ferrax_base::shape::product(p.axes.iter().map(|&a| x.shape()[a]))];
        merged.extend(rest.iter().map(|&d| x.shape()[d]));
        let lay = |v: &Value| reshape(&transpose(v, &perm)?, &merged);
        product_tree(lay(x)?, lay(t)?)
    })
);

/// The product along axis 0 and its tangent, by halves.
fn product_tree(x: Value, t: Value) -> Result<(Values, Tangents)> {
    let (mut x, mut t) = (x, t);
    if x.shape()[0] == 0 {
        let aval = x.aval().with_shape(&x.shape()[1..]);
        return Ok(one(full(&aval, Scalar::one(aval.dtype))?, None));
    }
    symbolic::check_number("the derivative of a product of elements", &x.shape()[..1])?;
    let op = MUL.op();
    while x.shape()[0] > 1 {
        let n = x.shape()[0] as i64;
        let half = (n + 1) / 2;
        let mut config: SmallVec<[PadDim; 4]> = smallvec![PadDim(0, 0, 0); x.rank()];
        config[0] = PadDim(0, 2 * half - n, 0);
        let low = |v: &Value| slice_in_dim(v, Some(0), Some(half), 1, 0);
        let high = |v: &Value| slice_in_dim(v, Some(half), None, 1, 0);
        let filled = |v: &Value, fill: f64| pad(v, &crate::common::constant(v, fill), &config);
        // Value and tangent take turns, as they do when JAX differentiates such a tree.
        let (first, first_t) = (low(&x)?, low(&t)?);
        let (second, second_t) = (high(&x)?, high(&t)?);
        let primals = [first, filled(&second, 1.0)?];
        let tangents = [Some(first_t), Some(filled(&second_t, 0.0)?)];
        let (mut outs, mut dots) = op.jvp(&op, &primals, &tangents)?;
        let (Some(product), Some(tangent)) = (outs.pop(), dots.pop().flatten()) else {
            bail!(Internal, "the jvp of mul gave no tangent");
        };
        (x, t) = (product, tangent);
    }
    Ok(one(squeeze(&x, &[0])?, Some(squeeze(&t, &[0])?)))
}

// ---- logical -------------------------------------------------------------------------------------------------------

/// Writes the block of a reduction of bits, with JAX's message for other dtypes.
macro_rules! logical {
    ($NAME:ident, $fun:ident, $name:literal, $kernel:ident, $doc:literal) => {
        reduction!($NAME, $fun, $name, BITS, $kernel, $doc, jvp: Slot::Rule(zero_jvp));
    };
}

logical!(REDUCE_AND, reduce_and, "reduce_and", And, "Bitwise and over axes; all, for `bool`.");
logical!(REDUCE_OR, reduce_or, "reduce_or", Or, "Bitwise or over axes; any, for `bool`.");
logical!(REDUCE_XOR, reduce_xor, "reduce_xor", Xor, "Bitwise exclusive or over axes; parity, for `bool`.");

// ---- argmax and argmin ---------------------------------------------------------------------------------------------

ferrax_ir::params! {
    /// Parameters of `argmax` and `argmin`.
    pub struct ArgReduction {
        /// The axis that is reduced away, alone.
        axes: Axes,
        /// The result's dtype.
        index_dtype: DType,
    }
}

fn arg_shape(name: &str, p: &ArgReduction, args: &[&Aval]) -> Result<Avals> {
    if args[0].dtype.is_key() {
        bail!(Value, "{name} does not support the dtype {}", args[0].dtype);
    }
    check_operand(name, Accept::ORDERED.or(Accept::COMPLEX), args, 0)?;
    let (x, Some(&axis)) = (args[0], p.axes.first()) else { bail!(Value, "{name} takes one axis") };
    if !p.index_dtype.is_integer() {
        bail!(Type, "index_dtype must be an integer type, but got {}", p.index_dtype);
    }
    if axis >= x.rank() {
        bail!(Value, "Invalid axis {axis} for operand of type {}", x.long_text());
    }
    if x.shape[axis] == 0 {
        bail!(
            Value,
            "argmin and argmax require non-empty reduced dimension. operand.shape={} axis={axis}",
            Tuple(&x.shape)
        );
    }
    Ok(smallvec![reduced(x, &p.axes, name)?.with_dtype(p.index_dtype).with_weak(false)])
}

/// Writes the block of `argmax` or `argmin`, and the function that binds it.
macro_rules! arg_reduction {
    ($NAME:ident, $fun:ident, $name:literal, $max:literal, $doc:literal) => {
        #[doc = $doc]
        pub static $NAME: Def<ArgReduction> = Def {
            name: $name,
            doc: $doc,
            arity: Some(1),
            shape: |p, args| arg_shape($name, p, args),
            jvp: Slot::Rule(zero_jvp),
            transpose: Slot::None(NOT_LINEAR),
            batch: Slot::Rule(|_, p, _, args, dims| {
                let (axes, out) = batched_axes(&p.axes, dims[0].unwrap_or(0));
                Ok((smallvec![$fun(&args[0], axes[0], p.index_dtype)?], smallvec![Some(out)]))
            }),
            simplify: Slot::None(NO_REWRITE),
            stablehlo: Slot::None(FROM_KERNEL),
            kernel: Slot::Rule(|_, p, b, args, outs| {
                let kind = Kind::ArgReduce { max: $max, axis: p.axes[0] };
                Ok(smallvec![b.push(kind, args, (&outs[0]).into())])
            }),
            reference: Slot::Rule(|p, args, outs| {
                let op = if $max { ReduceOp::Max } else { ReduceOp::Min };
                let pick = |l: Vec<Scalar>| {
                    let best = (1..l.len()).fold(0, |i, j| {
                        let kept = combine_reference(op, l[i], l[j]);
                        if kept == l[i] || order_equal(l[i], l[j]) { i } else { j }
                    });
                    from_integer(p.index_dtype, best as i128)
                };
                let data = groups(&args[0], &p.axes, &outs[0]).into_iter().map(pick).collect();
                Ok(vec![RefTensor { aval: outs[0].clone(), data }])
            }),
            special: Special::NONE,
        };

        #[doc = $doc]
        pub fn $fun(x: &Value, axis: usize, index_dtype: DType) -> Result<Value> {
            let params = ArgReduction { axes: smallvec![axis], index_dtype };
            bind1(&OpRef::new(&$NAME, params), std::slice::from_ref(x))
        }
    };
}

/// Whether two numbers compare equal, as 0.0 and -0.0 do.
fn order_equal(a: Scalar, b: Scalar) -> bool {
    a.dtype.is_inexact() && to_complex(a) == to_complex(b)
}

arg_reduction!(ARGMAX, argmax, "argmax", true, "Index of the first maximum along an axis; NaN wins.");
arg_reduction!(ARGMIN, argmin, "argmin", false, "Index of the first minimum along an axis; NaN wins.");

// ---- reduce with any function --------------------------------------------------------------------------------------

ferrax_ir::params! {
    /// Parameters of `reduce`.
    pub struct Reduce {
        /// Axes that are reduced away.
        dimensions: Axes,
        /// The function: (accumulators, elements) → accumulators, on scalars.
        jaxpr: JaxprRef,
    }
}

/// Reduction with any associative function.
pub static REDUCE: Def<Reduce> = Def {
    name: "reduce",
    doc: "Operands reduced together over axes with a function of scalars, from initial values.",
    arity: None,
    shape: reduce_shape,
    jvp: Slot::Rule(|op, _, primals, tangents| {
        if tangents.iter().all(Option::is_none) {
            return zero_jvp(op, &(), primals, tangents);
        }
        bail!(
            NotImplemented,
            "differentiation of lax.reduce with a function other than add, mul, max and min; use reduce_sum, \
             reduce_prod, reduce_max, reduce_min or a scan"
        )
    }),
    transpose: Slot::None(NOT_LINEAR),
    batch: Slot::Rule(reduce_batch),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, p, b, args, outs| {
        let body = Arc::new(scalar_graph(&p.jaxpr)?);
        let types: SmallVec<[Type; 2]> = outs.iter().map(Type::from).collect();
        Ok(b.push_many(Kind::ReduceWith { body, axes: p.dimensions.clone() }, args, &types))
    }),
    reference: Slot::None("the function runs only as a kernel; tests compare with NumPy"),
    special: Special::NONE,
};

/// The kernel of a function of scalars; its constants are inlined.
pub fn scalar_graph(jaxpr: &JaxprRef) -> Result<Graph> {
    let params = jaxpr.invars.iter().map(|&v| Type::from(jaxpr.aval(v)));
    let mut b = Builder::new(params);
    let given: Vec<ValueId> = b.params().collect();
    let mut args = Vec::with_capacity(jaxpr.consts.len() + given.len());
    for c in &jaxpr.consts {
        args.push(b.scalar(c.item()?));
    }
    args.extend(given);
    let outs = ferrax_ir::lower::lower_into(jaxpr, &mut b, &args)?;
    Ok(b.finish(&outs))
}

/// The operands and initial values of a reduction by a program, which must take two scalars of each operand's dtype,
/// accumulators first, and give one.
pub(crate) fn reduced_operands<'a, 'b>(
    name: &str,
    jaxpr: &JaxprRef,
    args: &'a [&'b Aval],
) -> Result<(&'a [&'b Aval], &'a [&'b Aval])> {
    if args.is_empty() || !args.len().is_multiple_of(2) {
        bail!(Type, "{name} takes operands and as many initial values, got {} in all", args.len());
    }
    jaxpr.verify()?;
    let (xs, inits) = args.split_at(args.len() / 2);
    let scalars: Vec<Aval> = xs.iter().map(|x| Aval::scalar(x.dtype)).collect();
    let same = |a: &[Aval], b: &[Aval]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same_type(b));
    if !same(&jaxpr.in_avals(), &[&scalars[..], &scalars].concat()) || !same(&jaxpr.out_avals(), &scalars) {
        bail!(Type, "the function of {name} must take two scalars of each operand's dtype and give one");
    }
    Ok((xs, inits))
}

fn reduce_shape(p: &Reduce, args: &[&Aval]) -> Result<Avals> {
    let (xs, inits) = reduced_operands("reduce", &p.jaxpr, args)?;
    if let Some(x) = xs.iter().find(|x| x.shape != xs[0].shape) {
        bail!(Type, "reduce operands must have one shape, got {} and {}", Tuple(&xs[0].shape), Tuple(&x.shape));
    }
    for (x, init) in xs.iter().zip(inits) {
        if x.dtype != init.dtype || !init.shape.is_empty() {
            bail!(Type, "reduce initial values must be scalars of the operands' dtypes, got {init} for {x}");
        }
    }
    if let Some(axis) = p.dimensions.iter().find(|&&d| d >= xs[0].rank()) {
        bail!(Value, "reduce dimension {axis} is out of bounds for {}", xs[0].long_text());
    }
    xs.iter().map(|x| Ok(reduced(x, &p.dimensions, "reduce")?.with_weak(false))).collect()
}

fn reduce_batch(
    _: &OpRef,
    p: &Reduce,
    axis: &BatchAxis,
    args: &[Value],
    dims: &[Option<usize>],
) -> Result<(Values, BatchDims)> {
    let count = args.len() / 2;
    if dims[count..].iter().any(Option::is_some) {
        bail!(NotImplemented, "vmap over the initial values of lax.reduce");
    }
    let mut moved = Values::new();
    for (x, &d) in args[..count].iter().zip(dims) {
        moved.push(ferrax_transform::structural::broadcast_batch(x, d, axis.size, 0)?);
    }
    moved.extend(args[count..].iter().cloned());
    let dimensions = p.dimensions.iter().map(|d| d + 1).collect();
    let params = Reduce { dimensions, jaxpr: p.jaxpr.clone() };
    Ok((bind(&OpRef::new(&REDUCE, params), &moved)?, smallvec![Some(0); count]))
}

/// Operands reduced together over axes with a function of scalars, from initial values.
pub fn reduce(operands: &[Value], inits: &[Value], jaxpr: JaxprRef, axes: &[usize]) -> Result<Values> {
    let args: Values = operands.iter().chain(inits).cloned().collect();
    bind(&OpRef::new(&REDUCE, Reduce { dimensions: Axes::from_slice(axes), jaxpr }), &args)
}

/// The primitives of this family.
pub(crate) static PRIMITIVES: &[&'static dyn crate::registry::Primitive] =
    &[&REDUCE_MAX, &REDUCE_MIN, &REDUCE_PROD, &REDUCE_AND, &REDUCE_OR, &REDUCE_XOR, &ARGMAX, &ARGMIN, &REDUCE];
