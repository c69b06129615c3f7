//! `jax.numpy`'s elementwise functions and `Array`'s operators: one vectorcall each, no Python frame.
//!
//! The shortest path comes first: operands that are arrays of one dtype, or one array and a Python number, go to
//! their kernel without a value being cloned (`at_once` of a row of `ferrax::numpy`); everything else to its `call`.
//!
//! Read next: `ferrax::numpy` for what the functions are.

use crate::array::{PyArray, wrap, wrap_array};
use crate::errors::IntoPyResult;
use crate::fastcall::{self, Args, FastCall, Params, Signature};
use crate::value::{number_of, value_of};
use ferrax::direct::Operand;
use ferrax::numpy::{self, Binary, Unary};
use ferrax_base::config;
use ferrax_ir::{Array, Lit, Value};
use pyo3::exceptions::{PyNotImplementedError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList, PySet, PyTuple};
use std::ffi::CStr;

/// One of our own arrays or a Python number as an operand of the short path; the number is kept in `held`.
#[inline]
fn quick<'a>(object: &'a Bound<'_, PyAny>, held: &'a mut Option<Lit>) -> Option<Operand<'a>> {
    match object.cast::<PyArray>() {
        Ok(a) => Operand::of(&a.get().value),
        // what is handed over is told once, by the general path
        Err(_) if config::watched() => None,
        Err(_) => {
            // a number that no dtype holds is the general path's to explain
            *held = number_of(object).ok()?;
            held.as_ref().map(Operand::Lit)
        }
    }
}

/// The result of a function by the short path; `None` when it does not apply.
#[inline]
fn quick_binary(f: &Binary, x: &Bound<'_, PyAny>, y: &Bound<'_, PyAny>) -> PyResult<Option<Array>> {
    let (mut m, mut n) = (None, None);
    match (quick(x, &mut m), quick(y, &mut n)) {
        (Some(x), Some(y)) => f.at_once(x, y).py(),
        _ => Ok(None),
    }
}

/// The error of an operand that is no array or number.
#[cold]
fn wrong_operand(name: &str, object: &Bound<'_, PyAny>, position: usize) -> PyErr {
    let sequence = object.cast::<PyList>().is_ok() || object.cast::<PyTuple>().is_ok();
    let advice = if sequence { " Make an array of it with jnp.array." } else { "" };
    PyTypeError::new_err(format!(
        "{name} requires ndarray or scalar arguments, got {} at position {position}.{advice}",
        object.get_type()
    ))
}

fn operand(name: &str, object: &Bound<'_, PyAny>, position: usize) -> PyResult<Value> {
    named_value(name, object, position)?.ok_or_else(|| wrong_operand(name, object, position))
}

/// The value of an operand, `None` for foreign types; a number that no dtype holds is named in the error.
#[inline]
fn named_value(name: &str, object: &Bound<'_, PyAny>, position: usize) -> PyResult<Option<Value>> {
    value_of(object).map_err(|e| too_large(name, object, position, e))
}

#[cold]
fn too_large(name: &str, object: &Bound<'_, PyAny>, position: usize, e: PyErr) -> PyErr {
    if !e.is_instance_of::<PyOverflowError>(object.py()) {
        return e;
    }
    PyOverflowError::new_err(format!("{name}, operand {position}: {}", e.value(object.py())))
}

/// `f(x, y)`.
#[inline]
pub fn binary(f: &Binary, x: &Bound<'_, PyAny>, y: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    if let Some(out) = quick_binary(f, x, y)? {
        return wrap_array(x.py(), out).map(Bound::unbind);
    }
    let (a, b) = (operand(f.name, x, 0)?, operand(f.name, y, 1)?);
    wrap(x.py(), f.call(&a, &b).py()?).map(Bound::unbind)
}

/// `f(x)`.
#[inline]
pub fn unary(f: &Unary, x: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    if let Ok(a) = x.cast::<PyArray>()
        && let Value::Array(a) = &a.get().value
        && let Some(out) = f.at_once(a).py()?
    {
        return wrap_array(x.py(), out).map(Bound::unbind);
    }
    wrap(x.py(), f.call(&operand(f.name, x, 0)?).py()?).map(Bound::unbind)
}

/// An operator's result; `NotImplemented` for operands of foreign types.
#[inline]
pub fn operator(f: &Binary, x: &Bound<'_, PyAny>, y: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    if let Some(out) = quick_binary(f, x, y)? {
        return wrap_array(x.py(), out).map(Bound::unbind);
    }
    operator_of(f.name, x, y, |a, b| wrap(x.py(), f.call(a, b).py()?).map(Bound::unbind))
}

/// As [`operator`], for functions without a short path.
pub fn operator_of(
    name: &str,
    x: &Bound<'_, PyAny>,
    y: &Bound<'_, PyAny>,
    f: impl FnOnce(&Value, &Value) -> PyResult<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    match (named_value(name, x, 0)?, named_value(name, y, 1)?) {
        (Some(a), Some(b)) => f(&a, &b),
        _ if is_container(x) || is_container(y) => Err(no_containers(name, x, y)),
        _ => Ok(x.py().NotImplemented()),
    }
}

/// Whether an operand holds others: Python would compare it by identity, or repeat it.
fn is_container(x: &Bound<'_, PyAny>) -> bool {
    x.is_instance_of::<PyList>()
        || x.is_instance_of::<PyTuple>()
        || x.is_instance_of::<PySet>()
        || x.is_instance_of::<PyDict>()
}

#[cold]
fn no_containers(name: &str, x: &Bound<'_, PyAny>, y: &Bound<'_, PyAny>) -> PyErr {
    let symbol = match name {
        "add" => "+",
        "subtract" => "-",
        "multiply" => "*",
        "divide" | "true_divide" => "/",
        "floor_divide" => "//",
        "equal" => "==",
        "not_equal" => "!=",
        other => other,
    };
    let class = |v: &Bound<'_, PyAny>| v.get_type().name().map_or_else(|_| "object".to_owned(), |n| n.to_string());
    PyTypeError::new_err(format!(
        "unsupported operand type(s) for {symbol}: '{}' and '{}'. Make an array of the container first, as with \
         jnp.array(x).",
        class(x),
        class(y)
    ))
}

/// `x ** y`.
pub fn power(x: &Bound<'_, PyAny>, y: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let raised = |a: &Value, b: &Value| wrap(x.py(), numpy::power(a, b).py()?).map(Bound::unbind);
    // a whole exponent is a part of the operation, and nothing that is handed over
    if config::watched()
        && y.is_exact_instance_of::<PyInt>()
        && let (Some(base), Some(exponent)) = (named_value("power", x, 0)?, number_of(y)?)
    {
        return raised(&base, &Value::Lit(exponent));
    }
    operator_of("power", x, y, raised)
}

/// `divmod(x, y)`.
pub fn divmod(x: &Bound<'_, PyAny>, y: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    operator_of("divmod", x, y, |a, b| pair(x.py(), numpy::divmod(a, b).py()?))
}

fn pair(py: Python<'_>, values: [Value; 2]) -> PyResult<Py<PyAny>> {
    let [q, r] = values;
    Ok(PyTuple::new(py, [wrap(py, q)?, wrap(py, r)?])?.into_any().unbind())
}

/// What a function object computes.
enum Kind {
    Unary(&'static Unary),
    Binary(&'static Binary),
    Power,
    FloatPower,
    Divmod,
    Clip,
    Where,
}

/// A function of `jax.numpy`.
struct Function(Kind);

impl Kind {
    fn name(&self) -> &'static str {
        match self {
            Kind::Unary(f) => f.name,
            Kind::Binary(f) => f.name,
            Kind::Power => "power",
            Kind::FloatPower => "float_power",
            Kind::Divmod => "divmod",
            Kind::Clip => "clip",
            Kind::Where => "where",
        }
    }

    fn call(&self, py: Python<'_>, args: Args<'_, '_>) -> PyResult<Py<PyAny>> {
        match self {
            Kind::Unary(f) if args.len() == 1 && args.kwlen() == 0 => unary(f, &args.at(0)),
            Kind::Binary(f) if args.len() == 2 && args.kwlen() == 0 => binary(f, &args.at(0), &args.at(1)),
            Kind::Unary(f) => {
                let [x, out] = self.parameters().parse::<2>(&args)?;
                if out.is_some_and(|out| !out.is_none()) {
                    let text = format!("The 'out' argument to jnp.{} is not supported.", f.name);
                    return Err(PyNotImplementedError::new_err(text));
                }
                x.map_or_else(|| Ok(py.None()), |x| unary(f, &x))
            }
            Kind::Clip => clip(py, args),
            Kind::Where => where_(py, args),
            other => {
                let name = other.name();
                let [x, y] = other.parameters().parse::<2>(&args)?;
                let (Some(x), Some(y)) = (x, y) else { return Ok(py.None()) };
                if let Kind::Binary(f) = other {
                    return binary(f, &x, &y);
                }
                let (a, b) = (operand(name, &x, 0)?, operand(name, &y, 1)?);
                match other {
                    Kind::Divmod => pair(py, numpy::divmod(&a, &b).py()?),
                    Kind::FloatPower => wrap(py, numpy::float_power(&a, &b).py()?).map(Bound::unbind),
                    _ => wrap(py, numpy::power(&a, &b).py()?).map(Bound::unbind),
                }
            }
        }
    }
}

impl Kind {
    /// The parameters of a function of one or two operands, `signature` in other words: by position alone, but for
    /// those that JAX lets be named.
    fn parameters(&self) -> Params {
        let name = self.name();
        match (self, name) {
            (Kind::Unary(_), "iscomplex" | "isreal" | "trunc") => Params::new(name, &["x"], 1, 1),
            (Kind::Unary(_), "isneginf" | "isposinf") => Params::new(name, &["x", "out"], 1, 2).positional_only(1),
            (Kind::Unary(_), _) => Params::new(name, &["x"], 1, 1).positional_only(1),
            (_, "fmax" | "fmin") => Params::new(name, &["x1", "x2"], 2, 2),
            _ => Params::new(name, &["x", "y"], 2, 2).positional_only(2),
        }
    }
}

impl FastCall for Function {
    fn call<'py>(&self, py: Python<'py>, args: Args<'_, 'py>) -> PyResult<Py<PyAny>> {
        self.0.call(py, args)
    }
}

/// A function that is also a reduction: `jnp.add` with `reduce`, `accumulate`, `at`, …, added from Python.
struct Ufunc(Kind);

impl FastCall for Ufunc {
    const TYPE_NAME: &'static CStr = c"ferrax.numpy.ufunc";
    const METHOD: bool = false;

    fn call<'py>(&self, py: Python<'py>, args: Args<'_, 'py>) -> PyResult<Py<PyAny>> {
        if args.kwlen() == 0 {
            return self.0.call(py, args);
        }
        for (name, value) in args.keywords() {
            match name.to_str()? {
                "out" | "where" if value.is_none() => {}
                given @ ("out" | "where") => {
                    let text = format!("{given} argument of <jnp.ufunc '{}'>", self.0.name());
                    return Err(PyNotImplementedError::new_err(text));
                }
                other => {
                    let text = format!("{}() got an unexpected keyword argument '{other}'", self.0.name());
                    return Err(PyTypeError::new_err(text));
                }
            }
        }
        match (&self.0, args.len()) {
            (Kind::Unary(f), 1) => unary(f, &args.at(0)),
            (Kind::Binary(f), 2) => binary(f, &args.at(0), &args.at(1)),
            (_, n) => Err(PyTypeError::new_err(format!("wrong number of arguments to {}: {n}", self.0.name()))),
        }
    }

    fn repr(&self, _slf: &Bound<'_, PyAny>) -> PyResult<String> {
        Ok(format!("<jnp.ufunc '{}'>", self.0.name()))
    }
}

/// An argument that may be left out.
fn optional(name: &str, x: Option<Borrowed<'_, '_, PyAny>>, position: usize) -> PyResult<Option<Value>> {
    match x.filter(|x| !x.is_none()) {
        Some(x) => operand(name, &x, position).map(Some),
        None => Ok(None),
    }
}

fn clip(py: Python<'_>, args: Args<'_, '_>) -> PyResult<Py<PyAny>> {
    const PARAMS: Params = Params::new("clip", &["arr", "min", "max"], 0, 3).positional_only(1);
    let [x, min, max] = PARAMS.parse::<3>(&args)?;
    let Some(x) = x.filter(|x| !x.is_none()) else {
        return Err(PyValueError::new_err("At most one of a and arr must be specified, and clip needs one of them."));
    };
    let (min, max) = (optional("clip", min, 1)?, optional("clip", max, 2)?);
    wrap(py, numpy::clip(&operand("clip", &x, 0)?, min.as_ref(), max.as_ref()).py()?).map(Bound::unbind)
}

fn where_(py: Python<'_>, args: Args<'_, '_>) -> PyResult<Py<PyAny>> {
    const PARAMS: Params =
        Params::new("where", &["condition", "x", "y", "size", "fill_value"], 1, 3).positional_only(3);
    if args.len() == 3
        && args.kwlen() == 0
        && let Some(out) = quick_where(&args.at(0), &args.at(1), &args.at(2))?
    {
        return wrap_array(py, out).map(Bound::unbind);
    }
    let [condition, x, y, size, fill] = PARAMS.parse::<5>(&args)?;
    let Some(condition) = condition else { return Ok(py.None()) };
    let given = |v: &Option<Borrowed<'_, '_, PyAny>>| v.as_ref().is_some_and(|v| !v.is_none());
    if !given(&x) && !given(&y) {
        let kwargs = PyDict::new(py);
        kwargs.set_item("size", size)?;
        kwargs.set_item("fill_value", fill)?;
        let nonzero = py.import("ferrax.numpy")?.getattr(intern!(py, "nonzero"))?;
        return nonzero.call((condition,), Some(&kwargs)).map(Bound::unbind);
    }
    if given(&size) || given(&fill) {
        return Err(PyValueError::new_err(
            "size and fill_value arguments cannot be used in three-term where function.",
        ));
    }
    let (Some(x), Some(y)) = (x.filter(|x| !x.is_none()), y.filter(|y| !y.is_none())) else {
        let position = if x.is_none_or(|x| x.is_none()) { 1 } else { 2 };
        return Err(PyTypeError::new_err(format!(
            "where requires ndarray or scalar arguments, got <class 'NoneType'> at position {position}. Either both or \
             neither of the x and y arguments should be provided to where: where(condition) alone finds indices."
        )));
    };
    let (c, x, y) = (operand("where", &condition, 0)?, operand("where", &x, 1)?, operand("where", &y, 2)?);
    wrap(py, numpy::where_(&c, &x, &y).py()?).map(Bound::unbind)
}

/// `where` by the short path.
fn quick_where(c: &Bound<'_, PyAny>, x: &Bound<'_, PyAny>, y: &Bound<'_, PyAny>) -> PyResult<Option<Array>> {
    let (mut k, mut m, mut n) = (None, None, None);
    match (quick(c, &mut k), quick(x, &mut m), quick(y, &mut n)) {
        (Some(Operand::Array(mask)), Some(x), Some(y)) => numpy::where_at_once(mask, x, y).py(),
        _ => Ok(None),
    }
}

/// Names of the functions that are `jnp.ufunc` objects.
const UFUNCS: [&str; 12] = [
    "add",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "logical_and",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "subtract",
];

const WHERE: &str =
    "Elements of x where a condition holds, of y elsewhere; with the condition alone, the indices where it holds.

    Args:
      condition: array; nonzero counts as true.
      x: array, broadcast with the others.
      y: array, broadcast with the others.
      size: with the condition alone, the number of indices, for use under jit.
      fill_value: with size, what fills the places beyond the indices found.

    Returns:
      Array of the common dtype of x and y; with the condition alone, a tuple of index arrays.

    Raises:
      ValueError: only one of x and y is given.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.where(jnp.array([True, False]), 1, 2))
    [1 2]
    ";

const CLIP: &str = "x limited to at least ``min`` and at most ``max``.

    Args:
      arr: real array.
      min: lower limit, broadcast with the array; none when left out.
      max: upper limit, broadcast with the array; none when left out.

    Returns:
      Array of the common dtype of the array and its limits.

    Raises:
      ValueError: an operand is complex.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.clip(jnp.array([0, 5, 9]), 2, 7))
    [2 5 7]
    ";

impl Kind {
    /// The parameters as Python writes them.
    fn signature(&self) -> &'static str {
        match (self, self.name()) {
            (Kind::Clip, _) => "(arr=None, /, min=None, max=None)",
            (Kind::Where, _) => "(condition, x=None, y=None, /, *, size=None, fill_value=None)",
            (Kind::Unary(_), "iscomplex" | "isreal" | "trunc") => "(x)",
            (Kind::Unary(_), "isneginf" | "isposinf") => "(x, /, out=None)",
            (Kind::Unary(_), _) => "(x, /)",
            (_, "fmax" | "fmin") => "(x1, x2)",
            _ => "(x, y, /)",
        }
    }

    /// The docstring of the function under a name; `divmod` has its own in Python.
    fn documentation(&self, name: &str) -> String {
        match self {
            Kind::Unary(f) => f.documentation(self.parameters().names()),
            Kind::Binary(f) => f.documentation(self.parameters().names()),
            Kind::Power if name == "power" => numpy::power::POWER.documentation(name, None, &["x", "y"]),
            Kind::Power => numpy::power::POWER.documentation(name, Some("power"), &["x", "y"]),
            Kind::FloatPower => numpy::power::FLOAT_POWER.documentation(name, None, &["x", "y"]),
            Kind::Divmod => String::new(),
            Kind::Clip => CLIP.to_owned(),
            Kind::Where => WHERE.to_owned(),
        }
    }
}

fn add(m: &Bound<'_, PyModule>, name: &str, kind: Kind) -> PyResult<()> {
    let py = m.py();
    let doc = kind.documentation(name);
    let function = if UFUNCS.contains(&name) {
        fastcall::new_callable(py, Ufunc(kind), name, &doc, Signature::Text("(*args, out=None, where=None)"))?
    } else {
        let signature = Signature::Text(kind.signature());
        fastcall::new_callable(py, Function(kind), name, &doc, signature)?
    };
    function.bind(py).setattr(intern!(py, "__module__"), "ferrax.numpy")?;
    m.add(name, function)
}

/// Adds the functions as the submodule `_ferrax.numpy`.
pub fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let m = PyModule::new(parent.py(), "ferrax._ferrax.numpy")?;
    for f in numpy::ALL_PRIMITIVES.iter().chain(numpy::ALL_UNARY) {
        add(&m, f.name, Kind::Unary(f))?;
    }
    for f in numpy::ALL_BINARY {
        add(&m, f.name, Kind::Binary(f))?;
    }
    add(&m, "power", Kind::Power)?;
    add(&m, "pow", Kind::Power)?;
    add(&m, "float_power", Kind::FloatPower)?;
    add(&m, "divmod", Kind::Divmod)?;
    add(&m, "clip", Kind::Clip)?;
    add(&m, "where", Kind::Where)?;
    m.add("ufunc", fastcall::type_of::<Ufunc>(m.py())?)?;
    parent.add("numpy", m)
}
