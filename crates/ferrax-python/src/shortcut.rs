//! The usual calls of `jax.numpy`'s hot functions without a Python frame: reductions, shapes, products, creation.
//!
//! A shortcut stands in front of a Python definition. It reads the arguments of the calls it knows (our own arrays and
//! tracers, axes and shapes as plain integers and tuples) and hands them to `ferrax::numpy`; every other call goes to the
//! definition. Both bind the same primitives. The same objects are methods of `Array`.
//!
//! Read next: `ferrax::numpy` for what the functions do, `ferrax/numpy/_reductions.py` for definitions.

use crate::array::{PyArray, wrap};
use crate::boundary;
use crate::errors::IntoPyResult;
use crate::fastcall::{self, Args, FastCall, Signature, Visit};
use crate::{creation, dtypes, watch};
use ferrax::numpy;
use ferrax_base::{DType, Result, Shape, config};
use ferrax_ir::Value;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyList, PyTuple};
use pyo3::{PyTypeInfo, ffi};
use smallvec::{SmallVec, smallvec};
use std::ffi::CStr;

type Integers = SmallVec<[i64; 6]>;

/// The result of a call that a shortcut knows; `None` for the others.
type Outcome = PyResult<Option<Py<PyAny>>>;

/// The calls that a shortcut answers itself.
#[derive(Clone, Copy)]
enum Quick {
    /// `f(a, axis=None, keepdims=False)`.
    Reduction(fn(&Value, Option<&[i64]>, bool) -> Result<Value>),
    /// The same along one axis.
    Place(fn(&Value, Option<i64>, bool) -> Result<Value>),
    /// `f(a, integers)`, these also by this name; without a name a method that takes each as an argument. `None` where it
    /// has to have some.
    Shape(&'static str, fn(&Value, Option<&[i64]>) -> Option<Result<Value>>),
    /// `f(arrays, axis=0)`.
    Joining(fn(&[&Value], i64) -> Result<Value>),
    /// `f(shape, dtype=None)`, with the name that is said of a dtype.
    Filled(&'static str, fn(&[usize], DType) -> Result<Value>),
    /// Others, by position alone.
    Positional(fn(&Args<'_, '_>) -> Outcome),
}

/// A function with a shortcut.
struct Shortcut {
    quick: Quick,
    /// The Python definition, for all other calls.
    definition: Py<PyAny>,
}

impl FastCall for Shortcut {
    const TYPE_NAME: &'static CStr = c"ferrax.numpy.function";

    #[inline]
    fn call<'py>(&self, py: Python<'py>, args: Args<'_, 'py>) -> PyResult<Py<PyAny>> {
        let watched = config::watched();
        if watched {
            watch::called(self.definition.bind(py), &args)?;
        }
        let out = match self.quick {
            _ if watched => None,
            Quick::Reduction(f) => reduction(&args, f)?,
            Quick::Place(f) => place(&args, f)?,
            Quick::Shape(name, f) => shape(&args, name, f)?,
            Quick::Joining(f) => joining(&args, f)?,
            Quick::Filled(name, f) => filled(&args, name, f)?,
            Quick::Positional(f) if !args.is_empty() && args.kwlen() == 0 => f(&args)?,
            Quick::Positional(_) => None,
        };
        match out {
            Some(out) => Ok(out),
            None => boundary::call(self.definition.bind(py), &args),
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

/// The same of numbers and bools.
#[inline]
fn numbers<'a>(object: &'a Bound<'_, PyAny>) -> Option<&'a Value> {
    own(object).filter(|x| !x.dtype().is_key())
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

/// A shape of non-negative sizes.
fn sizes(object: &Bound<'_, PyAny>) -> Option<Shape> {
    integers(object)?.into_iter().map(|d| usize::try_from(d).ok()).collect()
}

/// The second argument of a call `f(a)` or `f(a, second)`, which also has a name, and whether `keepdims` is given; `None`
/// for a call with others.
fn second<'a, 'py>(
    args: &Args<'a, 'py>,
    name: &str,
    keepdims: Option<&mut bool>,
) -> PyResult<Option<Option<Borrowed<'a, 'py, PyAny>>>> {
    if args.is_empty() || args.len() > 2 {
        return Ok(None);
    }
    let (mut found, mut keepdims) = (args.get(1), keepdims);
    for (given, value) in args.keywords() {
        match (given.to_str()?, &mut keepdims, value.cast::<PyBool>()) {
            (given, ..) if given == name && found.is_none() => found = Some(value),
            ("keepdims", Some(keep), Ok(b)) => **keep = b.is_true(),
            _ => return Ok(None),
        }
    }
    Ok(Some(found))
}

/// A dtype argument that is taken as it is; `None` where there is something to say about it.
fn plain_dtype(object: &Bound<'_, PyAny>, asker: &str) -> PyResult<Option<DType>> {
    if object.is_instance_of::<PyInt>() {
        return Ok(None); // a shape in pieces, which the definition explains
    }
    let spec = dtypes::parse(object, asker)?;
    let d = spec.dtype.canonical(config::x64());
    Ok(((d == spec.dtype || spec.python) && (d.is_number() || d.is_bool())).then_some(d))
}

/// The second argument as integers, `Some(None)` where there is none; `None` for a call that is not known.
fn second_integers(args: &Args<'_, '_>, name: &str, keepdims: Option<&mut bool>) -> PyResult<Option<Option<Integers>>> {
    Ok(match second(args, name, keepdims)? {
        Some(Some(given)) if !given.is_none() => integers(&given).map(Some),
        known => known.map(|_| None),
    })
}

fn done(py: Python<'_>, out: Result<Value>) -> Outcome {
    wrap(py, out.py()?).map(|o| Some(o.unbind()))
}

// ---- calls ---------------------------------------------------------------------------------------------------------

fn reduction(args: &Args<'_, '_>, f: fn(&Value, Option<&[i64]>, bool) -> Result<Value>) -> Outcome {
    let mut keepdims = false;
    let Some(axis) = second_integers(args, "axis", Some(&mut keepdims))? else { return Ok(None) };
    numbers(&args.at(0)).map_or(Ok(None), |x| done(args.py(), f(x, axis.as_deref(), keepdims)))
}

fn place(args: &Args<'_, '_>, f: fn(&Value, Option<i64>, bool) -> Result<Value>) -> Outcome {
    let mut keepdims = false;
    let Some(given) = second(args, "axis", Some(&mut keepdims))? else { return Ok(None) };
    let axis = given.filter(|a| !a.is_none()).map(|a| integer(&a));
    if axis == Some(None) {
        return Ok(None);
    }
    numbers(&args.at(0)).map_or(Ok(None), |x| done(args.py(), f(x, axis.flatten(), keepdims)))
}

fn shape(args: &Args<'_, '_>, name: &str, f: fn(&Value, Option<&[i64]>) -> Option<Result<Value>>) -> Outcome {
    let given = if name.is_empty() && args.len() > 2 && args.kwlen() == 0 {
        (1..args.len()).map(|i| integer(&args.at(i))).collect::<Option<Integers>>().map(Some)
    } else {
        second_integers(args, name, None)?
    };
    let Some(given) = given else { return Ok(None) };
    let out = own(&args.at(0)).and_then(|x| f(x, given.as_deref()));
    out.map_or(Ok(None), |out| done(args.py(), out))
}

fn joining(args: &Args<'_, '_>, f: fn(&[&Value], i64) -> Result<Value>) -> Outcome {
    let axis = match second(args, "axis", None)? {
        Some(given) => given.map_or(Some(0), |axis| integer(&axis)),
        None => None,
    };
    let Some(axis) = axis else { return Ok(None) };
    let object = args.at(0);
    let items: SmallVec<[Bound<'_, PyAny>; 8]> = if let Ok(t) = object.cast_exact::<PyTuple>() {
        t.iter().collect()
    } else if let Ok(l) = object.cast_exact::<PyList>() {
        l.iter().collect()
    } else {
        return Ok(None);
    };
    let parts: Option<SmallVec<[&Value; 8]>> = items.iter().map(own).collect();
    parts.map_or(Ok(None), |parts| done(args.py(), f(&parts, axis)))
}

fn filled(args: &Args<'_, '_>, asker: &str, f: fn(&[usize], DType) -> Result<Value>) -> Outcome {
    let Some(dtype) = second(args, "dtype", None)? else { return Ok(None) };
    let dtype = match dtype.filter(|d| !d.is_none()) {
        None => Some(DType::F64.canonical(config::x64())),
        Some(d) => plain_dtype(&d, asker)?,
    };
    let (Some(shape), Some(dtype)) = (sizes(&args.at(0)), dtype) else { return Ok(None) };
    done(args.py(), f(&shape, dtype))
}

fn ravel(args: &Args<'_, '_>) -> Outcome {
    match own(&args.at(0)) {
        Some(x) if args.len() == 1 => done(args.py(), numpy::ravel(x)),
        _ => Ok(None),
    }
}

fn broadcast_to(args: &Args<'_, '_>) -> Outcome {
    if args.len() != 2 {
        return Ok(None);
    }
    match (own(&args.at(0)), sizes(&args.at(1))) {
        (Some(x), Some(shape)) => done(args.py(), numpy::broadcast_to(x, &shape)),
        _ => Ok(None),
    }
}

/// `x @ y` that can run at once.
pub fn product(x: &Bound<'_, PyAny>, y: &Bound<'_, PyAny>) -> Outcome {
    let (Some(a), Some(b)) = (own(x), own(y)) else { return Ok(None) };
    numpy::product_at_once(a, b).py()?.map_or(Ok(None), |out| done(x.py(), Ok(out)))
}

fn matmul(args: &Args<'_, '_>) -> Outcome {
    if args.len() == 2 { product(&args.at(0), &args.at(1)) } else { Ok(None) }
}

/// Of whole numbers that are not too large for any settings.
fn arange(args: &Args<'_, '_>) -> Outcome {
    let small = |i: usize| integer(&args.at(i)).and_then(|n| i32::try_from(n).ok()).map(f64::from);
    let given: Option<SmallVec<[f64; 3]>> = (0..args.len()).map(small).collect();
    let (start, stop, step) = match given.as_deref() {
        Some(&[stop]) => (0.0, stop, 1.0),
        Some(&[start, stop]) => (start, stop, 1.0),
        Some(&[start, stop, step]) if step != 0.0 => (start, stop, step),
        _ => return Ok(None),
    };
    done(args.py(), numpy::arange(start, stop, step, DType::I64.canonical(config::x64())))
}

fn asarray(args: &Args<'_, '_>) -> Outcome {
    if args.len() != 1 {
        return Ok(None);
    }
    let object = args.at(0);
    if own(&object).is_some() {
        return Ok(Some(object.to_owned().unbind()));
    }
    done(args.py(), ferrax_ir::trace::made(creation::as_value(&object, None)?))
}

fn astype(args: &Args<'_, '_>) -> Outcome {
    if args.len() != 2 {
        return Ok(None);
    }
    let (object, target) = (args.at(0), args.at(1));
    // of imaginary parts that are lost there is something to say
    let known = numbers(&object).filter(|x| !x.dtype().is_complex() && !target.is_none());
    let Some(x) = known else { return Ok(None) };
    match plain_dtype(&target, "astype")? {
        Some(d) if d == x.dtype() && !x.weak() => Ok(Some(object.to_owned().unbind())),
        Some(d) => done(args.py(), numpy::astype(x, d)),
        None => Ok(None),
    }
}

// ---- the table -----------------------------------------------------------------------------------------------------

const SHORTCUTS: [(&str, Quick); 25] = [
    ("all", Quick::Reduction(numpy::all)),
    ("any", Quick::Reduction(numpy::any)),
    ("arange", Quick::Positional(arange)),
    ("argmax", Quick::Place(numpy::argmax)),
    ("argmin", Quick::Place(numpy::argmin)),
    ("asarray", Quick::Positional(asarray)),
    ("astype", Quick::Positional(astype)),
    ("broadcast_to", Quick::Positional(broadcast_to)),
    ("concatenate", Quick::Joining(|parts, axis| numpy::concatenate(parts, axis))),
    ("expand_dims", Quick::Shape("axis", |x, axis| Some(numpy::expand_dims(x, axis?)))),
    ("matmul", Quick::Positional(matmul)),
    ("max", Quick::Reduction(numpy::max)),
    ("mean", Quick::Reduction(numpy::mean)),
    ("min", Quick::Reduction(numpy::min)),
    ("ones", Quick::Filled("ones", numpy::ones)),
    ("prod", Quick::Reduction(numpy::prod)),
    ("ravel", Quick::Positional(ravel)),
    ("reshape", Quick::Shape("shape", |x, shape| Some(numpy::reshape(x, shape?)))),
    ("reshape_method", Quick::Shape("", |x, shape| Some(numpy::reshape(x, shape?)))),
    ("squeeze", Quick::Shape("axis", |x, axis| Some(numpy::squeeze(x, axis)))),
    ("stack", Quick::Joining(|parts, axis| numpy::stack(parts, axis))),
    ("sum", Quick::Reduction(numpy::sum)),
    ("transpose", Quick::Shape("axes", |x, axes| Some(numpy::transpose(x, axes)))),
    ("transpose_method", Quick::Shape("", |x, axes| Some(numpy::transpose(x, axes)))),
    ("zeros", Quick::Filled("zeros", numpy::zeros)),
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
