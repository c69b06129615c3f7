//! Dot products: `dot_general` and the functions that are special cases of it.
//!
//! The result's axes are: batch axes, free axes of the left operand, free axes of the right one. Operands may have
//! different dtypes; the product is taken in the wider one, or in `preferred_element_type`.
//! Read next: `einsum` in the façade, which maps to it.

use crate::common::{FROM_KERNEL, NO_REWRITE, bilinear_jvp};
use crate::convert_element_type;
use crate::registry::Primitive;
use ferrax_base::shape::Tuple;
use ferrax_base::{Aval, DType, Result, Scalar, Shape, bail};
use ferrax_ir::op::{BatchAxis, BatchDims};
use ferrax_ir::params::split_tuple;
use ferrax_ir::reference::{RefTensor, advance};
use ferrax_ir::trace::bind1;
use ferrax_ir::{Avals, Def, OpRef, Param, ParamValue, Params, Slot, Special, Tangents, TransposeArg, Value, Values};
use ferrax_loops::{Builder, CompareOp, DotDims, Kind, Type, ValueId};
use ferrax_transform::structural::{move_axis, transpose};
use smallvec::{SmallVec, smallvec};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Axis numbers of one operand.
type Axes = SmallVec<[usize; 2]>;

/// How exact a product has to be, where the backend has a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Precision {
    /// The backend's fastest.
    Default,
    /// Better than the fastest.
    High,
    /// As exact as the dtype.
    Highest,
}

impl Precision {
    /// JAX's name.
    pub const fn name(self) -> &'static str {
        match self {
            Precision::Default => "DEFAULT",
            Precision::High => "HIGH",
            Precision::Highest => "HIGHEST",
        }
    }

    /// The precision with this name.
    pub fn from_name(name: &str) -> Option<Precision> {
        [Precision::Default, Precision::High, Precision::Highest].into_iter().find(|p| p.name() == name)
    }
}

/// What a dot product's `precision` argument asks for. The CPU always computes in full precision of the dtypes, NVIDIA's GPUs
/// round operands to TF32 where it allows that.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DotPrecision {
    /// One precision for each operand.
    Pair(Precision, Precision),
    /// An algorithm by its printed name: a preset, or `DotAlgorithm(…)`.
    Algorithm(Arc<str>),
}

/// Both operands as exact as their dtypes.
pub const HIGHEST: DotPrecision = DotPrecision::Pair(Precision::Highest, Precision::Highest);

impl DotPrecision {
    /// Whether it says that operands in single precision may be rounded to TF32.
    pub(crate) fn allows_tf32(&self) -> bool {
        match self {
            DotPrecision::Pair(a, b) => ![a, b].contains(&&Precision::Highest),
            DotPrecision::Algorithm(name) => &**name == "TF32_TF32_F32",
        }
    }

    fn swapped(&self) -> DotPrecision {
        match self {
            DotPrecision::Pair(a, b) => DotPrecision::Pair(*b, *a),
            DotPrecision::Algorithm(_) => self.clone(),
        }
    }
}

impl ParamValue for DotPrecision {
    fn print(&self) -> Param {
        Param::Text(match self {
            DotPrecision::Pair(a, b) => format!("(Precision.{}, Precision.{})", a.name(), b.name()),
            DotPrecision::Algorithm(name) => name.to_string(),
        })
    }

    fn parse(text: &Param) -> Option<Self> {
        let Param::Text(t) = text else { return None };
        let Some(parts) = split_tuple(t) else { return Some(DotPrecision::Algorithm(t.as_str().into())) };
        let one = |t: &str| Precision::from_name(t.strip_prefix("Precision.")?);
        match parts.as_slice() {
            [a, b] => Some(DotPrecision::Pair(one(a)?, one(b)?)),
            _ => None,
        }
    }
}

/// Parameters of `dot_general`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DotParams {
    /// Contracting and batch axes.
    pub dimension_numbers: DotDims,
    /// The precision asked for.
    pub precision: Option<DotPrecision>,
    /// The dtype to accumulate in and to give; `None` is the operands'.
    pub preferred_element_type: Option<DType>,
}

impl Params for DotParams {
    fn print(&self) -> Vec<(&'static str, Param)> {
        let d = &self.dimension_numbers;
        let numbers = format!("(({:?}, {:?}), ({:?}, {:?}))", d.lhs_contract, d.rhs_contract, d.lhs_batch, d.rhs_batch);
        let mut out = vec![("dimension_numbers", Param::Text(numbers))];
        if let Some(p) = &self.precision {
            out.push(("precision", p.print()));
        }
        if let Some(d) = &self.preferred_element_type {
            out.push(("preferred_element_type", d.print()));
        }
        out
    }

    fn parse(fields: &BTreeMap<String, Param>) -> Option<Self> {
        let Param::Text(text) = fields.get("dimension_numbers")? else { return None };
        let parts = split_tuple(text)?;
        let [contract, batch] = parts.as_slice() else { return None };
        let pair = |t: &str| -> Option<(Axes, Axes)> {
            let parts = split_tuple(t)?;
            let [a, b] = parts.as_slice() else { return None };
            let axes = |t: &str| ParamValue::parse(&Param::Text(t.into()));
            Some((axes(a)?, axes(b)?))
        };
        let (lhs_contract, rhs_contract) = pair(contract)?;
        let (lhs_batch, rhs_batch) = pair(batch)?;
        let optional = |p: Option<&Param>| p.filter(|p| !matches!(p, Param::Text(t) if t == "None")).cloned();
        Some(DotParams {
            dimension_numbers: DotDims { lhs_contract, rhs_contract, lhs_batch, rhs_batch, ..DotDims::default() },
            precision: match optional(fields.get("precision")) {
                Some(p) => Some(DotPrecision::parse(&p)?),
                None => None,
            },
            preferred_element_type: match optional(fields.get("preferred_element_type")) {
                Some(p) => Some(DType::parse(&p)?),
                None => None,
            },
        })
    }
}

/// Contraction of two arrays over pairs of axes, batched over others.
pub static DOT_GENERAL: Def<DotParams> = Def {
    name: "dot_general",
    doc: "Contraction of two arrays over pairs of axes, batched over other pairs.",
    arity: Some(2),
    shape: dot_shape,
    jvp: Slot::Rule(bilinear_jvp),
    transpose: Slot::Rule(dot_transpose),
    batch: Slot::Rule(dot_batch),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, p, b, args, outs| Ok(smallvec![dot_kernel(p, b, args, &outs[0])])),
    reference: Slot::Rule(dot_reference),
    special: Special::WEIGHTED,
};

// ---- shape ---------------------------------------------------------------------------------------------------------

fn sizes(x: &Aval, axes: &[usize]) -> Shape {
    axes.iter().map(|&a| x.shape[a]).collect()
}

/// Axes of an operand that are neither contracted nor batched.
fn free(rank: usize, contract: &[usize], batch: &[usize]) -> Axes {
    (0..rank).filter(|a| !contract.contains(a) && !batch.contains(a)).collect()
}

fn check_side(side: &str, x: &Aval, contract: &[usize], batch: &[usize]) -> Result<()> {
    if contract.iter().chain(batch).any(|&a| a >= x.rank()) {
        bail!(
            Type,
            "dot_general requires {side} dimension numbers to be nonnegative and less than the number of axes of the \
             {side} value, got {side}_batch of {} and {side}_contracting of {} for {side} of rank {}",
            Tuple(batch),
            Tuple(contract),
            x.rank()
        );
    }
    for (name, axes) in [("batch", batch), ("contracting", contract)] {
        if axes.iter().enumerate().any(|(i, a)| axes[..i].contains(a)) {
            bail!(
                Type,
                "dot_general requires {side} {name} dimensions to be distinct, got {side}_{name} {}.",
                Tuple(axes)
            );
        }
    }
    if batch.iter().any(|a| contract.contains(a)) {
        bail!(
            Type,
            "dot_general requires {side} batch dimensions to be disjoint from contracting dimensions, got {side}_batch \
             {} and {side}_contracting {}.",
            Tuple(batch),
            Tuple(contract)
        );
    }
    Ok(())
}

fn dot_shape(p: &DotParams, args: &[&Aval]) -> Result<Avals> {
    let (x, y) = (args[0], args[1]);
    let d = &p.dimension_numbers;
    check_side("lhs", x, &d.lhs_contract, &d.lhs_batch)?;
    check_side("rhs", y, &d.rhs_contract, &d.rhs_batch)?;
    let (xb, yb) = (sizes(x, &d.lhs_batch), sizes(y, &d.rhs_batch));
    if xb != yb {
        bail!(
            Type,
            "dot_general requires lhs batch dimensions and rhs batch dimensions to have the same shape, got {} and {}.",
            Tuple(&xb),
            Tuple(&yb)
        );
    }
    let (xc, yc) = (sizes(x, &d.lhs_contract), sizes(y, &d.rhs_contract));
    if xc != yc {
        bail!(
            Type,
            "dot_general requires contracting dimensions to have the same shape, got {} and {}: dimensions {} of shape {} \
             against dimensions {} of shape {}.",
            Tuple(&xc),
            Tuple(&yc),
            Tuple(&d.lhs_contract),
            Tuple(&x.shape),
            Tuple(&d.rhs_contract),
            Tuple(&y.shape)
        );
    }
    for a in args {
        if a.dtype.is_key() || a.dtype == DType::Float0 {
            bail!(Type, "dot_general does not accept dtype {}; it takes numbers", a.dtype);
        }
    }
    let mut shape = xb;
    shape.extend(sizes(x, &free(x.rank(), &d.lhs_contract, &d.lhs_batch)));
    shape.extend(sizes(y, &free(y.rank(), &d.rhs_contract, &d.rhs_batch)));
    let dtype = result_dtype(x.dtype, y.dtype);
    let weak = x.weak && y.weak && p.preferred_element_type.is_none();
    Ok(smallvec![Aval { shape, dtype: preferred(dtype, p.preferred_element_type)?, weak, vary: 0, spread: 0 }])
}

/// The largest exponent of a float of 16 or 8 bits, which ranks floats of one size.
fn reach(d: DType) -> u32 {
    match d {
        DType::BF16 => 127,
        DType::F16 | DType::F8E5M2 | DType::F8E5M2FNUZ => 15,
        DType::F8E4M3FN => 8,
        DType::F8E4M3 | DType::F8E4M3FNUZ => 7,
        DType::F8E4M3B11FNUZ => 4,
        DType::F8E3M4 => 3,
        _ => 0,
    }
}

/// The wider of two dtypes: complex over float over integer over bool, then by size, then floats of a larger range and
/// signed integers, then the first.
fn result_dtype(x: DType, y: DType) -> DType {
    let rank = |d: DType| {
        let kind = if d.is_complex() {
            3
        } else if d.is_float() {
            2
        } else {
            u8::from(d.is_integer())
        };
        (kind, d.bits(), reach(d), d.is_signed())
    };
    if rank(y) > rank(x) { y } else { x }
}

/// The dtype that operands become first: a preferred integer where they are of several dtypes, else the wider of theirs.
fn operand_dtype(x: DType, y: DType, out: DType) -> DType {
    if x != y && out.is_integer() { out } else { result_dtype(x, y) }
}

pub(crate) fn preferred(dtype: DType, preferred: Option<DType>) -> Result<DType> {
    let Some(wanted) = preferred else { return Ok(dtype) };
    let bits = |d: DType| if d.is_bool() { 1 } else { d.bits() };
    if !dtype.is_float() && bits(wanted) < bits(dtype.real()) {
        bail!(
            Type,
            "`preferred_element_type` must not be narrower than the original type, got preferred_element_type of \
             {wanted} for result type of {dtype}."
        );
    }
    Ok(wanted)
}

// ---- rules ---------------------------------------------------------------------------------------------------------

/// The cotangent of one operand: the result's cotangent contracted with the other operand. `right` says that it is
/// the right operand's, whose free axes come last in the result.
fn operand_cotangent(p: &DotParams, ct: &Value, x: &Aval, y: &Value, right: bool) -> Result<Value> {
    let d = &p.dimension_numbers;
    let (x_contract, y_contract, x_batch, y_batch) = if right {
        (&d.rhs_contract, &d.lhs_contract, &d.rhs_batch, &d.lhs_batch)
    } else {
        (&d.lhs_contract, &d.rhs_contract, &d.lhs_batch, &d.rhs_batch)
    };
    let x_free = free(x.rank(), x_contract, x_batch);
    let y_free = free(y.rank(), y_contract, y_batch);
    let batch = x_batch.len();
    let skip = if right { batch } else { batch + x_free.len() };
    let dims = DotDims {
        lhs_contract: (skip..skip + y_free.len()).collect(),
        rhs_contract: y_free,
        lhs_batch: (0..batch).collect(),
        rhs_batch: y_batch.clone(),
        ..DotDims::default()
    };
    let precision = if right { p.precision.as_ref().map(DotPrecision::swapped) } else { p.precision.clone() };
    let product = dot_general(ct, y, &dims, precision, p.preferred_element_type)?;
    // Its axes: batch, free axes of x, contracted axes of x in the order of y's axes.
    let mut by_y: Vec<usize> = (0..y_contract.len()).collect();
    by_y.sort_by_key(|&i| y_contract[i]);
    let order = x_batch.iter().chain(&x_free).copied().chain(by_y.into_iter().map(|i| x_contract[i]));
    let mut perm: Shape = smallvec![0; x.rank()];
    order.enumerate().for_each(|(from, to)| perm[to] = from);
    let out = transpose(&product, &perm)?;
    if out.dtype() == x.dtype { Ok(out) } else { convert_element_type(&out, x.dtype) }
}

fn dot_transpose(_: &OpRef, p: &DotParams, cts: &[Option<Value>], args: &[TransposeArg]) -> Result<Tangents> {
    let Some(ct) = &cts[0] else { return Ok(smallvec![None, None]) };
    match (&args[0], &args[1]) {
        (TransposeArg::Linear(x), TransposeArg::Known(y)) => {
            Ok(smallvec![Some(operand_cotangent(p, ct, x, y, false)?), None])
        }
        (TransposeArg::Known(x), TransposeArg::Linear(y)) => {
            Ok(smallvec![None, Some(operand_cotangent(p, ct, y, x, true)?)])
        }
        _ => bail!(
            Value,
            "dot_general of two values that both depend on the arguments is not linear, and cannot be transposed"
        ),
    }
}

fn bump(axes: &mut Axes, at: usize) {
    axes.iter_mut().for_each(|a| *a += usize::from(*a >= at));
}

fn dot_batch(
    _: &OpRef,
    p: &DotParams,
    _: &BatchAxis,
    args: &[Value],
    dims: &[Option<usize>],
) -> Result<(Values, BatchDims)> {
    let mut q = p.clone();
    let d = &mut q.dimension_numbers;
    if let Some(at) = dims[0] {
        bump(&mut d.lhs_contract, at);
        bump(&mut d.lhs_batch, at);
    }
    if let Some(at) = dims[1] {
        bump(&mut d.rhs_contract, at);
        bump(&mut d.rhs_batch, at);
    }
    let batch = d.lhs_batch.len();
    let lhs_free = |d: &DotDims| free(args[0].rank(), &d.lhs_contract, &d.lhs_batch);
    let out = match (dims[0], dims[1]) {
        (Some(x), Some(y)) => {
            d.lhs_batch.insert(0, x);
            d.rhs_batch.insert(0, y);
            0
        }
        (Some(x), None) => batch + lhs_free(d).iter().filter(|&&a| a < x).count(),
        (None, Some(y)) => {
            let rhs_free = free(args[1].rank(), &d.rhs_contract, &d.rhs_batch);
            batch + lhs_free(d).len() + rhs_free.iter().filter(|&&a| a < y).count()
        }
        (None, None) => {
            return ferrax_transform::structural::unbatched(
                &OpRef::new(&DOT_GENERAL, q),
                args,
                &BatchAxis::new(0, None),
            );
        }
    };
    Ok((smallvec![bind1(&OpRef::new(&DOT_GENERAL, q), args)?], smallvec![Some(out)]))
}

/// The dtype that products are taken and summed in.
pub(crate) fn compute_dtype(operands: DType, result: DType) -> DType {
    let rank = |d: DType| {
        if d.is_complex() {
            3
        } else if d.is_float() {
            2
        } else {
            u8::from(d.is_integer())
        }
    };
    let wide = if rank(result) > rank(operands) || (rank(result) == rank(operands) && result.bits() >= operands.bits())
    {
        result
    } else {
        operands
    };
    match wide {
        DType::Bool => DType::I32,
        d if d.is_float() && d.bits() <= 8 => DType::F32,
        d => d,
    }
}

fn dot_kernel(p: &DotParams, b: &mut Builder, args: &[ValueId], out: &Aval) -> ValueId {
    let operands = operand_dtype(b.ty(args[0]).dtype, b.ty(args[1]).dtype, out.dtype);
    let dtype = compute_dtype(operands, out.dtype);
    let half = matches!(dtype, DType::F16 | DType::BF16);
    // Sums of half-precision products are taken in f32 inside the node, whatever the operands' own width.
    let sides = [args[0], args[1]].map(|a| b.convert(a, dtype));
    let accumulated = if half && out.dtype == DType::F32 { DType::F32 } else { dtype };
    let tf32 = dtype == DType::F32 && p.precision.as_ref().is_some_and(DotPrecision::allows_tf32);
    let kind = Kind::Dot(Box::new(DotDims { tf32, ..p.dimension_numbers.clone() }));
    let dot = b.push(kind, &sides, Type::new(accumulated, &out.shape));
    if out.dtype.is_bool() && !accumulated.is_bool() {
        let zero = b.scalar(Scalar::zero(accumulated));
        return b.compare(CompareOp::Ne, dot, zero);
    }
    b.convert(dot, out.dtype)
}

fn dot_reference(p: &DotParams, args: &[RefTensor], outs: &[Aval]) -> Result<Vec<RefTensor>> {
    let (x, y) = (&args[0], &args[1]);
    let d = &p.dimension_numbers;
    let x_free = free(x.aval.rank(), &d.lhs_contract, &d.lhs_batch);
    let y_free = free(y.aval.rank(), &d.rhs_contract, &d.rhs_batch);
    let inner = sizes(&x.aval, &d.lhs_contract);
    let dtype = outs[0].dtype;
    let operands = operand_dtype(x.aval.dtype, y.aval.dtype, dtype);
    let inexact = operands.is_inexact();
    Ok(vec![RefTensor::build(&outs[0], |i| {
        let (batch, rest) = i.split_at(d.lhs_batch.len());
        let (left, right) = rest.split_at(x_free.len());
        let place = |rank: usize,
                     batch_axes: &[usize],
                     free_axes: &[usize],
                     part: &[usize],
                     contract: &[usize],
                     k: &[usize]| {
            let mut at = vec![0; rank];
            batch_axes.iter().zip(batch).for_each(|(&a, &n)| at[a] = n);
            free_axes.iter().zip(part).for_each(|(&a, &n)| at[a] = n);
            contract.iter().zip(k).for_each(|(&a, &n)| at[a] = n);
            at
        };
        let mut k = vec![0; inner.len()];
        let (mut re, mut im, mut int) = (0.0, 0.0, 0i64);
        for _ in 0..ferrax_base::shape::size(&inner) {
            let s = x.at(&place(x.aval.rank(), &d.lhs_batch, &x_free, left, &d.lhs_contract, &k));
            let t = y.at(&place(y.aval.rank(), &d.rhs_batch, &y_free, right, &d.rhs_contract, &k));
            let [s, t] = if operands == dtype && !inexact { [s, t].map(|v| v.convert(dtype)) } else { [s, t] };
            let (a, b, c, e) = (s.to_f64(), s.imag(), t.to_f64(), t.imag());
            (re, im) = (re + a * c - b * e, im + a * e + b * c);
            int = int.wrapping_add(s.to_i64().wrapping_mul(t.to_i64()));
            advance(&mut k, &inner);
        }
        if inexact {
            Scalar::from_complex(DType::C128, re, im).convert(dtype)
        } else {
            Scalar::from_i64(DType::I64, int).convert(dtype)
        }
    })])
}

// ---- lax-level functions -------------------------------------------------------------------------------------------

/// Contraction of `x` and `y` over pairs of axes, batched over other pairs.
pub fn dot_general(
    x: &Value,
    y: &Value,
    dims: &DotDims,
    precision: Option<DotPrecision>,
    preferred_element_type: Option<DType>,
) -> Result<Value> {
    let params = DotParams { dimension_numbers: dims.clone(), precision, preferred_element_type };
    bind1(&OpRef::new(&DOT_GENERAL, params), &[x.clone(), y.clone()])
}

/// Product of two vectors, a matrix and a vector, or two matrices.
pub fn dot(x: &Value, y: &Value, precision: Option<DotPrecision>, preferred: Option<DType>) -> Result<Value> {
    let (m, n) = (x.rank(), y.rank());
    if !(1..=2).contains(&m) || !(1..=2).contains(&n) || x.shape()[m - 1] != y.shape()[0] {
        bail!(
            Value,
            "jax.lax.dot: dimension_numbers must be specified when not performing simple un-batched matrix-matrix, \
             matrix-vector, or vector-vector products; got lhs_shape={} rhs_shape={}",
            Tuple(x.shape()),
            Tuple(y.shape())
        );
    }
    let dims = DotDims { lhs_contract: smallvec![m - 1], rhs_contract: smallvec![0], ..DotDims::default() };
    dot_general(x, y, &dims, precision, preferred)
}

/// Products of the matrices in the last two axes, over equal leading axes.
pub fn batch_matmul(x: &Value, y: &Value, precision: Option<DotPrecision>) -> Result<Value> {
    let rank = x.rank();
    if rank < 2 || y.rank() < 2 {
        bail!(Value, "Arguments to batch_matmul must be at least 2D, got {}, {}", rank, y.rank());
    }
    if rank != y.rank() {
        bail!(Value, "Arguments to batch_matmul must have same ndim, got {}, {}", rank, y.rank());
    }
    let batch: Axes = (0..rank - 2).collect();
    let dims = DotDims {
        lhs_contract: smallvec![rank - 1],
        rhs_contract: smallvec![rank - 2],
        lhs_batch: batch.clone(),
        rhs_batch: batch,
        ..DotDims::default()
    };
    dot_general(x, y, &dims, precision, None)
}

/// NumPy's `matmul`: leading axes broadcast, vectors stand for a row or a column. Operands have one dtype.
pub fn matmul(x: &Value, y: &Value, precision: Option<DotPrecision>, preferred: Option<DType>) -> Result<Value> {
    let (m, n) = (x.rank(), y.rank());
    if m == 0 || n == 0 {
        bail!(
            Value,
            "matmul input operands must be at least one-dimensional, got shapes {} and {}",
            Tuple(x.shape()),
            Tuple(y.shape())
        );
    }
    let (k, l) = (x.shape()[m - 1], y.shape()[n.saturating_sub(2)]);
    if k != l {
        bail!(
            Type,
            "matmul: the last axis of the first operand must equal the second to last (or only) axis of the second; got \
             shapes {} and {}",
            Tuple(x.shape()),
            Tuple(y.shape())
        );
    }
    if m <= 2 || n <= 2 {
        // At most one operand has leading axes: they are free axes of it.
        let right = n.saturating_sub(2);
        let dims = DotDims { lhs_contract: smallvec![m - 1], rhs_contract: smallvec![right], ..DotDims::default() };
        let out = dot_general(x, y, &dims, precision, preferred)?;
        // (…rows of x, leading axes of y, columns): a single row axis goes behind y's leading axes.
        return if m == 2 && n > 2 { move_axis(&out, 0, n - 2) } else { Ok(out) };
    }
    let (xb, yb) = (&x.shape()[..m - 2], &y.shape()[..n - 2]);
    let Some(batch) = ferrax_base::shape::broadcast(xb, yb) else {
        bail!(Value, "matmul: leading axes do not broadcast; got shapes {} and {}", Tuple(x.shape()), Tuple(y.shape()));
    };
    let stretch = |v: &Value| -> Result<Value> {
        let mut shape = batch.clone();
        shape.extend_from_slice(&v.shape()[v.rank() - 2..]);
        let dims: Shape = (shape.len() - v.rank()..shape.len()).collect();
        ferrax_transform::structural::broadcast_in_dim(v, &shape, &dims)
    };
    let (x, y) = (stretch(x)?, stretch(y)?);
    let b = batch.len();
    let dims = DotDims {
        lhs_contract: smallvec![b + 1],
        rhs_contract: smallvec![b],
        lhs_batch: (0..b).collect(),
        rhs_batch: (0..b).collect(),
        ..DotDims::default()
    };
    dot_general(&x, &y, &dims, precision, preferred)
}

/// The primitives of this file.
pub(crate) static PRIMITIVES: &[&'static dyn Primitive] = &[&DOT_GENERAL];
