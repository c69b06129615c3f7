//! The usual calls of `jax.numpy`'s hot functions without a Python frame: reductions, shapes, products, creation.
//!
//! A shortcut stands in front of a Python definition. It takes the calls it knows (our own arrays and tracers of one
//! dtype that needs no conversion, axes and shapes as plain integers and tuples) and forwards every other one, errors
//! included, to the definition; both bind the same primitives. The same objects are methods of `Array`.
//!
//! Read next: `ferrax/numpy/_reductions.py` for definitions, `ferrax::direct` for how eager calls reach a kernel.

use crate::array::{PyArray, wrap, wrap_array};
use crate::boundary::without_frames;
use crate::errors::IntoPyResult;
use crate::fastcall::{self, Args, FastCall, Signature, Visit};
use crate::{creation, dtypes};
use ferrax::direct;
use ferrax_base::{Aval, DType, Scalar, Shape, config};
use ferrax_ir::{Array, Lit, Value};
use ferrax_loops::{DotDims, Kind, ReduceOp};
use ferrax_ops as ops;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyList, PyTuple};
use pyo3::{PyTypeInfo, ffi};
use smallvec::{SmallVec, smallvec};
use std::ffi::CStr;

/// Runs a node on whole arrays at once. Each shortcut below makes the node and the type of its result from the types of
/// its operands, as the primitive's own shape rule does.
fn node(kind: &Kind, args: &[&ferrax_ir::Array], out: Aval) -> ferrax_base::Result<Option<ferrax_ir::Array>> {
    // SAFETY: callers are in this file, and give a node that takes these operands and results of type `out`.
    unsafe { direct::node(kind, args, out) }
}

/// Arrays that are read in the shape `unit`, one behind the other along `axis`.
fn stacked(
    axis: usize,
    args: &[&ferrax_ir::Array],
    unit: &[usize],
    out: Aval,
) -> ferrax_base::Result<Option<ferrax_ir::Array>> {
    // SAFETY: as in `node`; the arrays have one shape, whose size is that of `unit`.
    unsafe { direct::node_as(&Kind::Concat(axis), args, unit, out) }
}

type Axes = SmallVec<[usize; 4]>;
type Integers = SmallVec<[i64; 6]>;

/// The result of a call that a shortcut knows; `None` for the others.
type Outcome = PyResult<Option<Py<PyAny>>>;

/// What a shortcut knows: the calls it answers itself.
type Quick = fn(&Args<'_, '_>) -> Outcome;

/// A function with a shortcut.
struct Shortcut {
    quick: Quick,
    /// The Python definition, for all other calls.
    definition: Py<PyAny>,
}

impl FastCall for Shortcut {
    const TYPE_NAME: &'static CStr = c"ferrax.numpy.function";
    const METHOD: bool = true;

    #[inline]
    fn call<'py>(&self, py: Python<'py>, args: Args<'_, 'py>) -> PyResult<Py<PyAny>> {
        match (self.quick)(&args)? {
            Some(out) => Ok(out),
            None => args.forward(self.definition.bind(py)).map(Bound::unbind).map_err(|e| without_frames(py, e)),
        }
    }

    fn traverse(&self, visit: &mut Visit) {
        visit.object(&self.definition);
    }

    /// What a function has beyond its names (`__defaults__`, `__code__`, ...) is the definition's.
    fn getattr(&self, slf: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<Py<PyAny>>> {
        Ok(self.definition.bind(slf.py()).getattr_opt(name)?.map(Bound::unbind))
    }
}

// ---- arguments -----------------------------------------------------------------------------------------------------

/// The value of one of our own arrays and tracers.
#[inline]
fn own<'a>(object: &'a Bound<'_, PyAny>) -> Option<&'a Value> {
    object.cast::<PyArray>().ok().map(|a| &a.get().value)
}

/// The array that an operation can run on at once.
#[inline]
fn at_once(v: &Value) -> Option<&Array> {
    match v {
        Value::Array(a) if ferrax_ir::trace::is_eager() && !a.device().is_sharded() => Some(a),
        _ => None,
    }
}

/// The elements in another shape, at once; `None` where that is not possible, or a check has something to say of them.
#[inline]
fn reshaped_at_once(v: &Value, shape: impl FnOnce() -> Shape) -> PyResult<Option<Array>> {
    let Some(a) = at_once(v) else { return Ok(None) };
    if ferrax::debug::checking() && ferrax::debug::holds(a).py()? {
        return Ok(None);
    }
    direct::reshape(a, shape()).py().map(Some)
}

/// A plain `int`.
#[inline]
fn integer(object: &Bound<'_, PyAny>) -> Option<i64> {
    // SAFETY: a valid object.
    let class = unsafe { ffi::Py_TYPE(object.as_ptr()) };
    if class == PyInt::type_object_raw(object.py()) { object.extract().ok() } else { None }
}

/// A plain `int`, or a tuple or list of such.
fn integers(object: &Bound<'_, PyAny>) -> Option<Integers> {
    if let Some(i) = integer(object) {
        return Some(smallvec![i]);
    }
    if let Ok(t) = object.cast_exact::<PyTuple>() {
        return t.iter_borrowed().map(|i| integer(&i)).collect();
    }
    object.cast_exact::<PyList>().ok()?.iter().map(|i| integer(&i)).collect()
}

/// An axis counted from the front; `None` when there is no such axis.
#[inline]
fn canonical(axis: i64, rank: usize) -> Option<usize> {
    let at = if axis < 0 { axis + rank as i64 } else { axis };
    (0..rank as i64).contains(&at).then_some(at as usize)
}

/// Distinct axes counted from the front, in the given order.
fn canonical_axes(given: &[i64], rank: usize) -> Option<Axes> {
    let axes: Axes = given.iter().map(|&a| canonical(a, rank)).collect::<Option<_>>()?;
    (0..axes.len()).all(|i| !axes[..i].contains(&axes[i])).then_some(axes)
}

/// A shape of non-negative sizes.
fn shape_of(object: &Bound<'_, PyAny>) -> Option<Shape> {
    integers(object)?.into_iter().map(|d| usize::try_from(d).ok()).collect()
}

/// The arguments of a reduction: `(a, axis=None, keepdims=False)`.
struct Reduction<'a> {
    x: &'a Value,
    /// The axes in ascending order.
    axes: Axes,
    /// Whether `axis` was None.
    all: bool,
    keep: bool,
}

/// The arguments of a call `f(a)`, `f(a, axis)`, with `axis` and `keepdims` also by name.
fn with_reduction(args: &Args<'_, '_>, f: impl FnOnce(Reduction<'_>) -> Outcome) -> Outcome {
    if args.is_empty() || args.len() > 2 {
        return Ok(None);
    }
    let (mut axis, mut keep) = (args.get(1), false);
    for (name, value) in args.keywords() {
        match name.to_str()? {
            "axis" if axis.is_none() => axis = Some(value),
            "keepdims" => match value.cast::<PyBool>() {
                Ok(b) => keep = b.is_true(),
                Err(_) => return Ok(None),
            },
            _ => return Ok(None),
        }
    }
    let object = args.at(0);
    let Some(x) = own(&object) else { return Ok(None) };
    let rank = x.rank();
    let axis = axis.filter(|a| !a.is_none());
    let axes = match &axis {
        None => Some((0..rank).collect()),
        Some(given) => integers(given).and_then(|i| canonical_axes(&i, rank)),
    };
    match axes {
        Some(mut axes) if !axes.is_empty() && !x.weak() => {
            axes.sort_unstable();
            f(Reduction { x, axes, all: axis.is_none(), keep })
        }
        _ => Ok(None),
    }
}

fn done(py: Python<'_>, v: Value) -> Outcome {
    wrap(py, v).map(|o| Some(o.unbind()))
}

fn done_array(py: Python<'_>, a: Array) -> Outcome {
    wrap_array(py, a).map(|o| Some(o.unbind()))
}

// ---- reductions ----------------------------------------------------------------------------------------------------

/// The type that a reduction leaves.
fn left(x: &Value, axes: &[usize], dtype: DType) -> Aval {
    let shape: Shape = (0..x.rank()).filter(|d| !axes.contains(d)).map(|d| x.shape()[d]).collect();
    Aval { shape, dtype, weak: false, vary: 0 }
}

/// A reduction's value, by its kernel where it can run at once.
fn reduced(
    r: &Reduction<'_>,
    op: ReduceOp,
    bind: fn(&Value, &[usize]) -> ferrax_base::Result<Value>,
) -> PyResult<Value> {
    if let Some(a) = at_once(r.x) {
        let kind = Kind::Reduce { op, axes: r.axes.clone() };
        if let Some(out) = node(&kind, &[a], left(r.x, &r.axes, a.aval().dtype)).py()? {
            return Ok(Value::Array(out));
        }
    }
    bind(r.x, &r.axes).py()
}

/// The result with reduced axes of length one, where they are kept.
fn kept(py: Python<'_>, r: &Reduction<'_>, out: Value) -> Outcome {
    if !r.keep {
        return done(py, out);
    }
    let at: SmallVec<[i64; 4]> = r.axes.iter().map(|&a| a as i64).collect();
    done(py, ops::expand_dims(&out, &at).py()?)
}

/// Dtypes that sums and products neither widen nor accumulate in another one.
fn sums_as_it_is(d: DType) -> bool {
    matches!(d, DType::F32 | DType::F64 | DType::C64 | DType::C128)
        || (d.is_integer() && d.size() >= DType::I64.canonical(config::x64()).size())
}

fn sum(args: &Args<'_, '_>) -> Outcome {
    with_reduction(args, |r| {
        if !sums_as_it_is(r.x.dtype()) {
            return Ok(None);
        }
        kept(args.py(), &r, reduced(&r, ReduceOp::Sum, ops::reduce_sum)?)
    })
}

fn prod(args: &Args<'_, '_>) -> Outcome {
    with_reduction(args, |r| {
        if !sums_as_it_is(r.x.dtype()) {
            return Ok(None);
        }
        kept(args.py(), &r, reduced(&r, ReduceOp::Prod, ops::reduce_prod)?)
    })
}

fn mean(args: &Args<'_, '_>) -> Outcome {
    with_reduction(args, |r| {
        let d = r.x.dtype();
        if !matches!(d, DType::F32 | DType::F64) {
            return Ok(None);
        }
        let count = ferrax_base::shape::product(r.axes.iter().map(|&a| r.x.shape()[a]));
        let count = Lit { scalar: Scalar::from_f64(d, count as f64), weak: false };
        let total = reduced(&r, ReduceOp::Sum, ops::reduce_sum)?;
        if let Some(a) = at_once(&total)
            && !r.keep
            && let Some(out) =
                direct::run(&ops::DIV.op(), &[direct::Operand::Array(a), direct::Operand::Lit(&count)]).py()?
        {
            return done_array(args.py(), out);
        }
        if r.keep {
            let at: SmallVec<[i64; 4]> = r.axes.iter().map(|&a| a as i64).collect();
            return done(args.py(), ops::div(&ops::expand_dims(&total, &at).py()?, &Value::Lit(count)).py()?);
        }
        done(args.py(), ops::div(&total, &Value::Lit(count)).py()?)
    })
}

/// Maximum and minimum; complex numbers, bools and empty axes are for the definition.
fn extremum(args: &Args<'_, '_>, op: ReduceOp, bind: fn(&Value, &[usize]) -> ferrax_base::Result<Value>) -> Outcome {
    with_reduction(args, |r| {
        let d = r.x.dtype();
        if !(d.is_float() || d.is_integer()) || r.axes.iter().any(|&a| r.x.shape()[a] == 0) {
            return Ok(None);
        }
        kept(args.py(), &r, reduced(&r, op, bind)?)
    })
}

fn max(args: &Args<'_, '_>) -> Outcome {
    extremum(args, ReduceOp::Max, ops::reduce_max)
}

fn min(args: &Args<'_, '_>) -> Outcome {
    extremum(args, ReduceOp::Min, ops::reduce_min)
}

/// `all` and `any`; keys are for the definition.
fn truth(args: &Args<'_, '_>, op: ReduceOp, bind: fn(&Value, &[usize]) -> ferrax_base::Result<Value>) -> Outcome {
    with_reduction(args, |r| {
        let d = r.x.dtype();
        if d.is_bool() {
            return kept(args.py(), &r, reduced(&r, op, bind)?);
        }
        if !(d.is_float() || d.is_integer() || d.is_complex()) {
            return Ok(None);
        }
        let flags = Reduction { x: &ops::convert_element_type(r.x, DType::Bool).py()?, ..r };
        kept(args.py(), &flags, reduced(&flags, op, bind)?)
    })
}

fn all(args: &Args<'_, '_>) -> Outcome {
    truth(args, ReduceOp::And, ops::reduce_and)
}

fn any(args: &Args<'_, '_>) -> Outcome {
    truth(args, ReduceOp::Or, ops::reduce_or)
}

/// `argmax` and `argmin` along one axis, or of all elements.
fn position(args: &Args<'_, '_>, largest: bool) -> Outcome {
    with_reduction(args, |r| {
        let d = r.x.dtype();
        if r.keep || !(d.is_float() || d.is_integer()) || (r.axes.len() != 1 && !r.all) || r.x.size() == 0 {
            return Ok(None);
        }
        let index = DType::I64.canonical(config::x64());
        if let Some(a) = at_once(r.x)
            && r.axes.len() == 1
        {
            let kind = Kind::ArgReduce { max: largest, axis: r.axes[0] };
            if let Some(out) = node(&kind, &[a], left(r.x, &r.axes, index)).py()? {
                return done_array(args.py(), out);
            }
        }
        let bind = if largest { ops::argmax } else { ops::argmin };
        let flat = ops::reshape(r.x, &[r.x.size()]);
        let (x, axis) = if r.all { (flat.py()?, 0) } else { (r.x.clone(), r.axes[0]) };
        done(args.py(), bind(&x, axis, index).py()?)
    })
}

fn argmax(args: &Args<'_, '_>) -> Outcome {
    position(args, true)
}

fn argmin(args: &Args<'_, '_>) -> Outcome {
    position(args, false)
}

// ---- shapes --------------------------------------------------------------------------------------------------------

/// The elements in another shape.
fn reshaped(py: Python<'_>, x: &Value, shape: Shape) -> Outcome {
    if let Some(out) = reshaped_at_once(x, || shape.clone())? {
        return done_array(py, out);
    }
    done(py, ops::reshape(x, &shape).py()?)
}

/// The shape that sizes with at most one -1 stand for; `None` when they do not fit.
fn fitting(given: &[i64], size: usize) -> Option<Shape> {
    // A product that is too large is no array's size.
    let known = given.iter().filter(|&&d| d != -1).try_fold(1i64, |n, &d| n.checked_mul(d))?;
    let unknown = given.iter().filter(|&&d| d == -1).count();
    if given.iter().any(|&d| d < -1) || unknown > 1 || known < 0 {
        return None;
    }
    if unknown == 0 {
        return (known as usize == size).then(|| given.iter().map(|&d| d as usize).collect());
    }
    if known == 0 || size as i64 % known != 0 {
        return None;
    }
    Some(given.iter().map(|&d| if d == -1 { size / known as usize } else { d as usize }).collect())
}

fn reshape(args: &Args<'_, '_>) -> Outcome {
    if args.len() != 2 || args.kwlen() > 0 {
        return Ok(None);
    }
    let object = args.at(0);
    let Some(x) = own(&object) else { return Ok(None) };
    match integers(&args.at(1)).and_then(|given| fitting(&given, x.size())) {
        Some(shape) => reshaped(args.py(), x, shape),
        None => Ok(None),
    }
}

/// `x.reshape(2, 5)` beside `x.reshape((2, 5))`.
fn reshape_method(args: &Args<'_, '_>) -> Outcome {
    if args.len() == 2 {
        return reshape(args);
    }
    if args.len() < 2 || args.kwlen() > 0 {
        return Ok(None);
    }
    let object = args.at(0);
    let Some(x) = own(&object) else { return Ok(None) };
    let given: Option<Integers> = (1..args.len()).map(|i| integer(&args.at(i))).collect();
    match given.and_then(|given| fitting(&given, x.size())) {
        Some(shape) => reshaped(args.py(), x, shape),
        None => Ok(None),
    }
}

fn ravel(args: &Args<'_, '_>) -> Outcome {
    if args.len() != 1 || args.kwlen() > 0 {
        return Ok(None);
    }
    let object = args.at(0);
    match own(&object) {
        Some(x) => reshaped(args.py(), x, smallvec![x.size()]),
        None => Ok(None),
    }
}

/// The array with its axes in another order, by its kernel where it can run at once.
pub fn transposed(py: Python<'_>, x: &Value, order: &[usize]) -> PyResult<Py<PyAny>> {
    if let Some(a) = at_once(x)
        && order.len() > 1
    {
        let shape: Shape = order.iter().map(|&d| x.shape()[d]).collect();
        let aval = Aval { shape, ..a.aval().clone() };
        if let Some(out) = node(&Kind::Transpose(SmallVec::from_slice(order)), &[a], aval).py()? {
            return wrap_array(py, out).map(Bound::unbind);
        }
    }
    wrap(py, ops::transpose(x, order).py()?).map(Bound::unbind)
}

fn transpose(args: &Args<'_, '_>) -> Outcome {
    if args.is_empty() || args.len() > 2 || args.kwlen() > 0 {
        return Ok(None);
    }
    let object = args.at(0);
    let Some(x) = own(&object) else { return Ok(None) };
    let order = match args.get(1).filter(|a| !a.is_none()) {
        None => Some((0..x.rank()).rev().collect()),
        Some(given) if integer(&given).is_none() => {
            integers(&given).filter(|g| g.len() == x.rank()).and_then(|g| canonical_axes(&g, x.rank()))
        }
        Some(_) => None,
    };
    match order {
        Some(order) => transposed(args.py(), x, &order).map(Some),
        None => Ok(None),
    }
}

/// `x.transpose(1, 0)` beside `x.transpose((1, 0))`.
fn transpose_method(args: &Args<'_, '_>) -> Outcome {
    if args.len() <= 2 {
        return transpose(args);
    }
    if args.kwlen() > 0 {
        return Ok(None);
    }
    let object = args.at(0);
    let Some(x) = own(&object) else { return Ok(None) };
    let given: Option<Integers> = (1..args.len()).map(|i| integer(&args.at(i))).collect();
    match given.filter(|g| g.len() == x.rank()).and_then(|g| canonical_axes(&g, x.rank())) {
        Some(order) => transposed(args.py(), x, &order).map(Some),
        None => Ok(None),
    }
}

/// The axes of a call `f(a)` or `f(a, axis)`.
fn axes_argument<'a, 'py>(args: &Args<'a, 'py>) -> PyResult<Option<Option<Borrowed<'a, 'py, PyAny>>>> {
    if args.is_empty() || args.len() > 2 {
        return Ok(None);
    }
    let mut axis = args.get(1);
    for (name, value) in args.keywords() {
        if name.to_str()? != "axis" || axis.is_some() {
            return Ok(None);
        }
        axis = Some(value);
    }
    Ok(Some(axis.filter(|a| !a.is_none())))
}

fn squeeze(args: &Args<'_, '_>) -> Outcome {
    let Some(axis) = axes_argument(args)? else { return Ok(None) };
    let object = args.at(0);
    let Some(x) = own(&object) else { return Ok(None) };
    let axes: Option<Axes> = match axis {
        None => Some((0..x.rank()).filter(|&d| x.shape()[d] == 1).collect()),
        Some(given) => integers(&given)
            .and_then(|g| canonical_axes(&g, x.rank()))
            .filter(|axes| axes.iter().all(|&a| x.shape()[a] == 1)),
    };
    let Some(axes) = axes else { return Ok(None) };
    let left = || (0..x.rank()).filter(|d| !axes.contains(d)).map(|d| x.shape()[d]).collect();
    if let Some(out) = reshaped_at_once(x, left)? {
        return done_array(args.py(), out);
    }
    done(args.py(), ops::squeeze(x, &axes).py()?)
}

fn expand_dims(args: &Args<'_, '_>) -> Outcome {
    let Some(Some(given)) = axes_argument(args)? else { return Ok(None) };
    let object = args.at(0);
    let Some(x) = own(&object) else { return Ok(None) };
    let Some(given) = integers(&given) else { return Ok(None) };
    let rank = x.rank() + given.len();
    let Some(axes) = canonical_axes(&given, rank) else { return Ok(None) };
    let expanded = || {
        let mut old = x.shape().iter();
        (0..rank).map(|d| if axes.contains(&d) { 1 } else { old.next().copied().unwrap_or(1) }).collect()
    };
    if let Some(out) = reshaped_at_once(x, expanded)? {
        return done_array(args.py(), out);
    }
    done(args.py(), ops::expand_dims(x, &given).py()?)
}

fn broadcast_to(args: &Args<'_, '_>) -> Outcome {
    if args.len() != 2 || args.kwlen() > 0 {
        return Ok(None);
    }
    let object = args.at(0);
    let (Some(x), Some(shape)) = (own(&object).and_then(at_once), shape_of(&args.at(1))) else { return Ok(None) };
    let from = &x.aval().shape;
    let lead = shape.len().wrapping_sub(from.len());
    let fits = shape.len() >= from.len() && from.iter().zip(&shape[lead..]).all(|(&a, &b)| a == b || a == 1);
    if !fits || from.contains(&1) {
        return Ok(None);
    }
    let dims: Axes = (lead..shape.len()).collect();
    let aval = Aval { shape, ..x.aval().clone() };
    match node(&Kind::Broadcast(dims), &[x], aval).py()? {
        Some(out) => done_array(args.py(), out),
        None => Ok(None),
    }
}

// ---- products ------------------------------------------------------------------------------------------------------

/// `x @ y` of vectors and matrices of one floating dtype that can run at once.
pub fn product(x: &Bound<'_, PyAny>, y: &Bound<'_, PyAny>) -> Outcome {
    let (Some(a), Some(b)) = (own(x).and_then(at_once), own(y).and_then(at_once)) else { return Ok(None) };
    let (s, t) = (a.aval(), b.aval());
    let plain = |v: &Aval| matches!(v.dtype, DType::F32 | DType::F64) && !v.weak && (1..=2).contains(&v.shape.len());
    if !plain(s) || !plain(t) || s.dtype != t.dtype {
        return Ok(None);
    }
    let (i, j) = (s.shape.len() - 1, t.shape.len().saturating_sub(2));
    if s.shape[i] != t.shape[j] {
        return Ok(None);
    }
    let mut shape: Shape = s.shape[..i].into();
    shape.extend(t.shape.iter().enumerate().filter(|(d, _)| *d != j).map(|(_, &n)| n));
    let dims = DotDims {
        lhs_contract: smallvec![i],
        rhs_contract: smallvec![j],
        lhs_batch: SmallVec::new(),
        rhs_batch: SmallVec::new(),
    };
    match node(&Kind::Dot(Box::new(dims)), &[a, b], Aval { shape, dtype: s.dtype, weak: false, vary: 0 }).py()? {
        Some(out) => done_array(x.py(), out),
        None => Ok(None),
    }
}

fn matmul(args: &Args<'_, '_>) -> Outcome {
    if args.len() != 2 || args.kwlen() > 0 {
        return Ok(None);
    }
    product(&args.at(0), &args.at(1))
}

// ---- joining -------------------------------------------------------------------------------------------------------

/// The arrays of a list or tuple, of one strong dtype, all of which can be used at once.
fn parts<R>(object: &Bound<'_, PyAny>, f: impl FnOnce(&[&Array]) -> PyResult<Option<R>>) -> PyResult<Option<R>> {
    let items: SmallVec<[Bound<'_, PyAny>; 8]> = if let Ok(t) = object.cast_exact::<PyTuple>() {
        t.iter().collect()
    } else if let Ok(l) = object.cast_exact::<PyList>() {
        l.iter().collect()
    } else {
        return Ok(None);
    };
    let arrays: Option<SmallVec<[&Array; 8]>> = items.iter().map(|i| own(i).and_then(at_once)).collect();
    match arrays {
        Some(a) if a.len() > 1 && a.iter().all(|x| x.aval().dtype == a[0].aval().dtype && !x.aval().weak) => f(&a),
        _ => Ok(None),
    }
}

/// The axis along which arrays are joined: 0 where none is given; `None` where it is for the definition.
fn joining_axis(args: &Args<'_, '_>) -> PyResult<Option<i64>> {
    Ok(match axes_argument(args)? {
        Some(None) if args.len() == 1 && args.kwlen() == 0 => Some(0),
        Some(Some(given)) => integer(&given),
        _ => None,
    })
}

fn concatenate(args: &Args<'_, '_>) -> Outcome {
    let Some(axis) = joining_axis(args)? else { return Ok(None) };
    let out = parts(&args.at(0), |arrays| {
        let first = arrays[0].aval();
        let Some(axis) = canonical(axis, first.shape.len()) else { return Ok(None) };
        let same = |s: &[usize]| {
            s.len() == first.shape.len()
                && s.iter().zip(&first.shape).enumerate().all(|(d, (a, b))| d == axis || a == b)
        };
        if !arrays.iter().all(|a| same(&a.aval().shape)) {
            return Ok(None);
        }
        let mut shape = first.shape.clone();
        shape[axis] = ferrax_base::shape::total(arrays.iter().map(|a| a.aval().shape[axis]));
        if isize::try_from(shape[axis]).is_err() {
            return Ok(None);
        }
        node(&Kind::Concat(axis), arrays, Aval { shape, dtype: first.dtype, weak: false, vary: 0 }).py()
    })?;
    out.map_or(Ok(None), |a| done_array(args.py(), a))
}

fn stack(args: &Args<'_, '_>) -> Outcome {
    let Some(axis) = joining_axis(args)? else { return Ok(None) };
    let out = parts(&args.at(0), |arrays| {
        let first = arrays[0].aval();
        let Some(axis) = canonical(axis, first.shape.len() + 1) else { return Ok(None) };
        if arrays.iter().any(|a| a.aval().shape != first.shape) {
            return Ok(None);
        }
        let mut unit = first.shape.clone();
        unit.insert(axis, 1);
        let mut shape = unit.clone();
        shape[axis] = arrays.len();
        let out = Aval { shape, dtype: first.dtype, weak: false, vary: 0 };
        stacked(axis, arrays, &unit, out).py()
    })?;
    out.map_or(Ok(None), |a| done_array(args.py(), a))
}

// ---- creation ------------------------------------------------------------------------------------------------------

/// A dtype argument that is taken as it is; `None` where there is something to say about it.
fn plain_dtype(object: &Bound<'_, PyAny>, asker: &str) -> PyResult<Option<DType>> {
    let spec = dtypes::parse(object, asker)?;
    let d = spec.dtype.canonical(config::x64());
    let known = d.is_float() || d.is_integer() || d.is_bool() || d.is_complex();
    Ok(((d == spec.dtype || spec.python) && known).then_some(d))
}

/// `zeros(shape)` and `zeros(shape, dtype)`.
fn filled(args: &Args<'_, '_>, asker: &str, value: f64) -> Outcome {
    if args.is_empty() || args.len() > 2 || !ferrax_ir::trace::is_eager() {
        return Ok(None);
    }
    let mut dtype = args.get(1);
    for (name, value) in args.keywords() {
        if name.to_str()? != "dtype" || dtype.is_some() {
            return Ok(None);
        }
        dtype = Some(value);
    }
    let dtype = match dtype.filter(|d| !d.is_none()) {
        None => Some(DType::F64.canonical(config::x64())),
        Some(d) => plain_dtype(&d, asker)?,
    };
    let (Some(shape), Some(dtype)) = (shape_of(&args.at(0)), dtype) else { return Ok(None) };
    let kind = Kind::Const(Scalar::from_f64(dtype, value));
    match node(&kind, &[], Aval { shape, dtype, weak: false, vary: 0 }).py()? {
        Some(out) => done_array(args.py(), out),
        None => Ok(None),
    }
}

fn zeros(args: &Args<'_, '_>) -> Outcome {
    filled(args, "zeros", 0.0)
}

fn ones(args: &Args<'_, '_>) -> Outcome {
    filled(args, "ones", 1.0)
}

/// `arange(n)`.
fn arange(args: &Args<'_, '_>) -> Outcome {
    if args.len() != 1 || args.kwlen() > 0 || !ferrax_ir::trace::is_eager() {
        return Ok(None);
    }
    let dtype = DType::I64.canonical(config::x64());
    let Some(n) = integer(&args.at(0)).filter(|&n| (0..i64::from(i32::MAX)).contains(&n)) else { return Ok(None) };
    match node(&Kind::Iota(0), &[], Aval { shape: smallvec![n as usize], dtype, weak: false, vary: 0 }).py()? {
        Some(out) => done_array(args.py(), out),
        None => Ok(None),
    }
}

fn asarray(args: &Args<'_, '_>) -> Outcome {
    if args.len() != 1 || args.kwlen() > 0 {
        return Ok(None);
    }
    let object = args.at(0);
    if own(&object).is_some() {
        return Ok(Some(object.to_owned().unbind()));
    }
    done(args.py(), creation::as_value(&object, None)?)
}

fn astype(args: &Args<'_, '_>) -> Outcome {
    if args.len() != 2 || args.kwlen() > 0 {
        return Ok(None);
    }
    let object = args.at(0);
    let Some(x) = own(&object).filter(|x| !x.weak() && !x.dtype().is_complex() && !x.dtype().is_key()) else {
        return Ok(None);
    };
    let target = args.at(1);
    if target.is_none() {
        return Ok(None);
    }
    let Some(dtype) = plain_dtype(&target, "astype")? else { return Ok(None) };
    if dtype == x.dtype() {
        return Ok(Some(object.to_owned().unbind()));
    }
    done(args.py(), ops::convert_element_type(x, dtype).py()?)
}

// ---- the table -----------------------------------------------------------------------------------------------------

const SHORTCUTS: [(&str, Quick); 25] = [
    ("all", all),
    ("any", any),
    ("arange", arange),
    ("argmax", argmax),
    ("argmin", argmin),
    ("asarray", asarray),
    ("astype", astype),
    ("broadcast_to", broadcast_to),
    ("concatenate", concatenate),
    ("expand_dims", expand_dims),
    ("matmul", matmul),
    ("max", max),
    ("mean", mean),
    ("min", min),
    ("ones", ones),
    ("prod", prod),
    ("ravel", ravel),
    ("reshape", reshape),
    ("reshape_method", reshape_method),
    ("squeeze", squeeze),
    ("stack", stack),
    ("sum", sum),
    ("transpose", transpose),
    ("transpose_method", transpose_method),
    ("zeros", zeros),
];

/// A callable that answers the calls it knows, by the shortcut of that name, and hands others to a definition.
#[pyfunction]
fn shortcut(name: &str, definition: Py<PyAny>) -> PyResult<Py<PyAny>> {
    let Some((_, quick)) = SHORTCUTS.iter().find(|(n, _)| *n == name) else {
        return Err(PyKeyError::new_err(format!("there is no shortcut for {name}")));
    };
    Python::attach(|py| {
        let value = Shortcut { quick: *quick, definition };
        fastcall::new_callable(py, value, name, "", Signature::Unknown)
    })
}

/// Adds the functions of this file to the extension module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(shortcut, m)?)
}
