//! Errors across the boundary, in both directions; the only place that knows which exception class an
//! [`ErrorKind`] becomes.
//!
//! * Rust to Python: [`raise`] (`.map_err(raise)?`, or [`IntoPyResult::py`]).
//! * Python to Rust and back: [`carry`] wraps a `PyErr`; [`raise`] takes it out again as the same object.
//! * A panic becomes `ferrax.errors.InternalError` in [`guard`]; one that PyO3 catches raises its `PanicException`,
//!   which is made a subclass of `InternalError`. The process lives on.
//!
//! The classes take the arguments that JAX's take (a tracer), or a finished text, which is also what makes
//! them picklable. `python/ferrax/errors.py` gives them their docstrings.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ffi::CStr;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use ferrax::engine::xla::code_name;
use ferrax_base::error::HostError;
use ferrax_base::{Error, ErrorKind};
use pyo3::exceptions::{
    PyAttributeError, PyException, PyFloatingPointError, PyIndexError, PyKeyError, PyMemoryError,
    PyNotImplementedError, PyOverflowError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};
use pyo3::{PyTypeInfo, intern};

use crate::fastcall::{self, Args, FastCall, Params, Signature};
use crate::interpreter::attribute;

/// The exception classes that ferrax defines itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// `JAXTypeError(TypeError)`
    JaxType,
    /// `JAXIndexError(IndexError)`
    JaxIndex,
    /// `ConcretizationTypeError(JAXTypeError)`
    Concretization,
    /// `TracerBoolConversionError(ConcretizationTypeError)`
    BoolConversion,
    /// `TracerIntegerConversionError(JAXTypeError)`
    IntegerConversion,
    /// `TracerArrayConversionError(JAXTypeError)`
    ArrayConversion,
    /// `NonConcreteBooleanIndexError(JAXIndexError)`
    BooleanIndex,
    /// `UnexpectedTracerError(JAXTypeError)`
    UnexpectedTracer,
    /// `KeyReuseError(JAXTypeError)`
    KeyReuse,
    /// `JaxRuntimeError(RuntimeError)`
    Runtime,
    /// `InternalError(RuntimeError)`
    Internal,
    /// `JaxprTypeError(TypeError)`
    JaxprType,
    /// `InconclusiveDimensionOperation(Exception)`
    InconclusiveDimension,
    /// `RetraceError(RuntimeError)`
    Retrace,
    /// `CaptureError(RuntimeError)`
    Capture,
}

/// How a class's base is found.
enum Base {
    Own(Class),
    Builtin(fn(Python<'_>) -> Bound<'_, PyType>),
}

/// One row per class, in the order of [`Class`]: name, base, and how its arguments become its text.
const TABLE: [(&str, Base, Option<Text>); 15] = [
    ("JAXTypeError", Base::Builtin(builtin::<PyTypeError>), Some(Text::Message)),
    ("JAXIndexError", Base::Builtin(builtin::<PyIndexError>), Some(Text::Message)),
    ("ConcretizationTypeError", Base::Own(Class::JaxType), Some(Text::Concretization)),
    ("TracerBoolConversionError", Base::Own(Class::Concretization), Some(Text::Bool)),
    ("TracerIntegerConversionError", Base::Own(Class::JaxType), Some(Text::Integer)),
    ("TracerArrayConversionError", Base::Own(Class::JaxType), Some(Text::Array)),
    ("NonConcreteBooleanIndexError", Base::Own(Class::JaxIndex), Some(Text::BooleanIndex)),
    ("UnexpectedTracerError", Base::Own(Class::JaxType), Some(Text::Leak)),
    ("KeyReuseError", Base::Own(Class::JaxType), None),
    ("JaxRuntimeError", Base::Builtin(builtin::<PyRuntimeError>), Some(Text::Status)),
    ("InternalError", Base::Builtin(builtin::<PyRuntimeError>), Some(Text::Bug)),
    ("JaxprTypeError", Base::Builtin(builtin::<PyTypeError>), None),
    ("InconclusiveDimensionOperation", Base::Builtin(builtin::<PyException>), None),
    ("RetraceError", Base::Builtin(builtin::<PyRuntimeError>), None),
    ("CaptureError", Base::Builtin(builtin::<PyRuntimeError>), None),
];

fn builtin<T: PyTypeInfo>(py: Python<'_>) -> Bound<'_, PyType> {
    T::type_object(py)
}

static CLASSES: PyOnceLock<Vec<Py<PyType>>> = PyOnceLock::new();

impl Class {
    /// The class object.
    pub fn get(self, py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
        Ok(CLASSES.get_or_try_init(py, || make_classes(py))?[self as usize].bind(py).clone())
    }

    /// An exception of this class, with a finished text.
    pub fn error(self, py: Python<'_>, text: String) -> PyErr {
        match self.get(py).and_then(|class| class.call1((text,))) {
            Ok(value) => PyErr::from_value(value),
            Err(e) => e,
        }
    }
}

fn make_classes(py: Python<'_>) -> PyResult<Vec<Py<PyType>>> {
    // JAX's classes have a mixin of this name among their bases
    let mixin = new_class(py, "_JAXErrorMixin", PyTuple::empty(py), PyDict::new(py))?;
    let mut classes: Vec<Py<PyType>> = Vec::with_capacity(TABLE.len());
    for (name, base, text) in &TABLE {
        let dict = PyDict::new(py);
        let bases = match base {
            Base::Own(class) => PyTuple::new(py, [classes[*class as usize].bind(py)])?,
            Base::Builtin(get) if matches!(text, Some(Text::Message)) => PyTuple::new(py, [&mixin, &get(py)])?,
            Base::Builtin(get) => PyTuple::new(py, [get(py)])?,
        };
        if let Some(Text::Bug) = text {
            // no instance slots of its own, so that `adopt_panics` can put it under another class
            dict.set_item(intern!(py, "__slots__"), PyTuple::empty(py))?;
            let report = fastcall::new_callable(py, Report, "__str__", "", Signature::Text("(self)"))?;
            dict.set_item(intern!(py, "__str__"), report)?;
        } else if let Some(text) = *text {
            dict.set_item(intern!(py, "__init__"), text.init(py)?)?;
            if let Text::Status = text {
                dict.set_item("error_code", 2)?;
                dict.set_item("error_code_string", status_name(2))?;
                dict.set_item("error_message", "")?;
            }
        }
        classes.push(new_class(py, name, bases, dict)?.unbind());
    }
    Ok(classes)
}

/// `type(name, bases, dict)` in the module `ferrax.errors`.
fn new_class<'py>(
    py: Python<'py>,
    name: &str,
    bases: Bound<'py, PyTuple>,
    dict: Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyType>> {
    dict.set_item(intern!(py, "__module__"), "ferrax.errors")?;
    Ok(py.get_type::<PyType>().call1((name, bases, dict))?.cast_into()?)
}

/// How a class's `__init__` makes the text from its arguments.
#[derive(Clone, Copy)]
pub enum Text {
    /// A finished text.
    Message,
    /// A traced value where a concrete one is needed.
    Concretization,
    /// `bool(tracer)`
    Bool,
    /// `operator.index(tracer)`
    Integer,
    /// `numpy.asarray(tracer)`
    Array,
    /// `x[mask]`
    BooleanIndex,
    /// A tracer that outlived its trace.
    Leak,
    /// `JaxRuntimeError`, with a status code.
    Status,
    /// `InternalError`, whose `__str__` asks for a report.
    Bug,
}

impl Text {
    fn init(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let signature = match self {
            Text::Message => "(self, message)",
            Text::Concretization => "(self, tracer, context='')",
            Text::Leak => "(self, msg)",
            Text::Status => "(self, msg=None, code=None)",
            _ => "(self, tracer)",
        };
        fastcall::new_callable(py, ErrorInit(self), "__init__", "", Signature::Text(signature))
    }

    /// What the program can do instead.
    pub fn advice(self) -> &'static str {
        match self {
            Text::Concretization => {
                "To make an argument of a jitted function concrete, mark it with static_argnums or static_argnames."
            }
            Text::Bool => {
                "Choose between values with jnp.where, between computations with lax.cond; write &, | and ~ for `and`, \
                 `or` and `not`; or mark the argument with static_argnums or static_argnames."
            }
            Text::Integer => {
                "Index jnp.array(a_list) in place of a list, loop with lax.fori_loop in place of range, or mark the \
                 argument with static_argnums or static_argnames."
            }
            Text::Array => {
                "Use the function of the same name in jax.numpy; jax.pure_callback runs code that must see actual arrays."
            }
            Text::Message | Text::BooleanIndex | Text::Leak | Text::Status | Text::Bug => "",
        }
    }

    /// The text for a tracer: its own description, and where it comes from.
    fn of_tracer(self, tracer: &Bound<'_, PyAny>, context: &str) -> PyResult<String> {
        let part = |name: &Bound<'_, PyString>| -> PyResult<Option<String>> {
            match attribute(tracer, name)? {
                Some(method) => Ok(Some(method.call0()?.extract()?)),
                None => Ok(None),
            }
        };
        let what = match part(intern!(tracer.py(), "_error_repr"))? {
            Some(text) => text,
            None => tracer.repr()?.extract()?,
        };
        let origin = part(intern!(tracer.py(), "_origin_msg"))?.unwrap_or_default();
        let advice = self.advice();
        Ok(match self {
            Text::Message | Text::Leak | Text::Status | Text::Bug => tracer.str()?.extract()?,
            Text::Concretization => format!(
                "Abstract tracer value encountered where concrete value is expected: {what}\n{context}{origin}\n\
                 {advice}\n"
            ),
            Text::Bool => format!("Attempted boolean conversion of {what}.{origin}\n{advice}"),
            Text::Integer => format!("The __index__() method was called on {what}{origin}\n{advice}"),
            Text::Array => {
                format!("The numpy.ndarray conversion method __array__() was called on {what}{origin}\n{advice}")
            }
            Text::BooleanIndex => format!("Array boolean indices must be concrete; got {}\n", tracer.str()?),
        })
    }
}

/// `__init__` of the classes that take a tracer or a text.
struct ErrorInit(Text);

impl FastCall for ErrorInit {
    const TYPE_NAME: &'static CStr = c"ferrax.method";

    fn call(&self, py: Python<'_>, args: Args<'_, '_>) -> PyResult<Py<PyAny>> {
        const ONE: Params = Params::new("__init__", &["self", "message"], 2, 2);
        const STATUS: Params = Params::new("__init__", &["self", "msg", "code"], 1, 3);
        const LEAK: Params = Params::new("__init__", &["self", "msg"], 2, 2);
        const TRACER: Params = Params::new("__init__", &["self", "tracer"], 2, 2);
        const CONTEXT: Params = Params::new("__init__", &["self", "tracer", "context"], 2, 3);
        if let Text::Status = self.0 {
            let [slf, text, code] = STATUS.parse::<3>(&args)?;
            let text: String = match text.filter(|t| !t.is_none()) {
                Some(text) => text.extract()?,
                None => String::new(),
            };
            let code: i64 = match code.filter(|c| !c.is_none()) {
                Some(code) => code.extract()?,
                None => 2,
            };
            if let Some(slf) = slf {
                set_status(&slf, &text, code)?;
            }
            return Ok(py.None());
        }
        let params = match self.0 {
            Text::Message => &ONE,
            Text::Leak => &LEAK,
            Text::Concretization => &CONTEXT,
            _ => &TRACER,
        };
        let [slf, what, context] = params.parse::<3>(&args)?;
        let (Some(slf), Some(what)) = (slf, what) else { return Ok(py.None()) };
        let text = if let Ok(text) = what.extract::<String>() {
            text
        } else {
            let context: String = match context {
                Some(context) => context.extract()?,
                None => String::new(),
            };
            self.0.of_tracer(&what, &context)?
        };
        set_text(&slf, text)?;
        Ok(py.None())
    }
}

/// Sets `args` to the text with a last line that says where the class is explained.
fn set_text(slf: &Bound<'_, PyAny>, mut text: String) -> PyResult<()> {
    let py = slf.py();
    for class in slf.get_type().mro() {
        let class = class.cast::<PyType>()?;
        if class.module()?.to_str()? == "ferrax.errors" {
            let see = format!("See help(ferrax.errors.{}).", class.name()?.to_str()?);
            if !text.ends_with(&see) {
                if !text.ends_with('\n') {
                    text.push('\n');
                }
                text.push_str(&see);
            }
            break;
        }
    }
    slf.setattr(intern!(py, "args"), PyTuple::new(py, [text])?)
}

/// Fills a `JaxRuntimeError`.
fn set_status(slf: &Bound<'_, PyAny>, text: &str, code: i64) -> PyResult<()> {
    let py = slf.py();
    slf.setattr(intern!(py, "args"), PyTuple::new(py, [text])?)?;
    slf.setattr(intern!(py, "error_code"), code)?;
    slf.setattr(intern!(py, "error_code_string"), status_name(code))?;
    slf.setattr(intern!(py, "error_message"), text)
}

/// The name of a status code of XLA and gRPC; empty where there is none.
fn status_name(code: i64) -> &'static str {
    code.try_into().ok().and_then(code_name).unwrap_or("")
}

/// An error's text, with expressions in place of symbolic sizes.
#[cold]
fn text(message: &impl fmt::Display) -> String {
    ferrax_base::symbolic::named(message.to_string())
}

/// The exception for a Rust error.
#[cold]
pub fn raise(error: Error) -> PyErr {
    #[allow(clippy::enum_glob_use)]
    use ErrorKind::*;
    let kind = match *error.0 {
        Host(host) => match host.into_any().downcast::<PyHostError>() {
            Ok(own) => return own.0,
            Err(_) => Internal(Box::new("an error of another host reached Python")),
        },
        kind => kind,
    };
    Python::attach(|py| match kind {
        Type(m) => PyTypeError::new_err(text(&m)),
        Promotion(m) => crate::dtypes::promotion_error(py, text(&m)),
        Value(m) => PyValueError::new_err(text(&m)),
        Index(m) => PyIndexError::new_err(text(&m)),
        Overflow(m) => PyOverflowError::new_err(text(&m)),
        NotImplemented(m) => PyNotImplementedError::new_err(text(&m)),
        Memory(m) => PyMemoryError::new_err(text(&m)),
        Attribute(m) => PyAttributeError::new_err(text(&m)),
        Key(m) => PyKeyError::new_err(text(&m)),
        Deleted(m) => PyRuntimeError::new_err(text(&m)),
        FloatingPoint(m) => PyFloatingPointError::new_err(text(&m)),
        Runtime(m) => Class::Runtime.error(py, text(&m)),
        Concretization(m) => Class::Concretization.error(py, text(&m)),
        BoolConversion(m) => Class::BoolConversion.error(py, text(&m)),
        IntegerConversion(m) => Class::IntegerConversion.error(py, text(&m)),
        ArrayConversion(m) => Class::ArrayConversion.error(py, text(&m)),
        BooleanIndex(m) => Class::BooleanIndex.error(py, text(&m)),
        UnexpectedTracer(m) => Class::UnexpectedTracer.error(py, text(&m)),
        Leak(m) => pyo3::exceptions::PyException::new_err(text(&m)),
        UnboundAxis(m) => pyo3::exceptions::PyNameError::new_err(text(&m)),
        Internal(m) => Class::Internal.error(py, text(&m)),
        Host(_) => unreachable!("taken out above"),
    })
}

/// `Result` with ferrax's error to `PyResult`.
pub trait IntoPyResult<T> {
    /// Maps the error with [`raise`].
    fn py(self) -> PyResult<T>;
}

impl<T> IntoPyResult<T> for ferrax_base::Result<T> {
    #[inline]
    fn py(self) -> PyResult<T> {
        self.map_err(raise)
    }
}

/// A Python exception on its way through Rust.
pub struct PyHostError(pub PyErr);

impl HostError for PyHostError {
    fn into_any(self: Box<Self>) -> Box<dyn Any + Send + Sync> {
        self
    }
}

impl fmt::Display for PyHostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Wraps a Python exception for the way through Rust; [`raise`] gives the same object back.
#[cold]
pub fn carry(error: PyErr) -> Error {
    ErrorKind::Host(Box::new(PyHostError(error))).into()
}

thread_local! {
    /// How many [`guard`]s are on this thread's stack.
    static GUARDS: Cell<u32> = const { Cell::new(0) };
    /// Message and place of the last panic under a guard.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `f`; a panic in it becomes an `InternalError`.
#[inline]
pub fn guard<R>(f: impl FnOnce() -> PyResult<R>) -> PyResult<R> {
    struct Depth;
    impl Drop for Depth {
        fn drop(&mut self) {
            GUARDS.set(GUARDS.get() - 1);
        }
    }
    GUARDS.set(GUARDS.get() + 1);
    let depth = Depth;
    let result = catch_unwind(AssertUnwindSafe(f));
    drop(depth);
    result.unwrap_or_else(|payload| Err(panicked(&*payload)))
}

#[cold]
fn panicked(payload: &(dyn Any + Send)) -> PyErr {
    let text = PANIC.take().unwrap_or_else(|| message(payload));
    Python::attach(|py| Class::Internal.error(py, text))
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a text".into())
}

/// `InternalError.__str__`
struct Report;

impl FastCall for Report {
    const TYPE_NAME: &'static CStr = c"ferrax.method";

    fn call(&self, py: Python<'_>, args: Args<'_, '_>) -> PyResult<Py<PyAny>> {
        const SELF: Params = Params::new("__str__", &["self"], 1, 1);
        let [slf] = SELF.parse::<1>(&args)?;
        let Some(slf) = slf else { return Ok(py.None()) };
        let what = match slf.getattr(intern!(py, "args"))?.cast::<PyTuple>()?.get_item(0) {
            Ok(what) => what.str()?.to_string(),
            Err(_) => "no details".to_owned(),
        };
        let text = format!(
            "this is a bug in ferrax, not in your program: {what}\n\
             Please report it with the lines that led here; the process can go on."
        );
        Ok(text.into_pyobject(py)?.into_any().unbind())
    }
}

/// Puts `InternalError` under the exception that PyO3 raises for a panic in one of its own functions and methods.
fn adopt_panics(py: Python<'_>) -> PyResult<()> {
    let panic = pyo3::panic::PanicException::type_object(py);
    panic.setattr(intern!(py, "__bases__"), PyTuple::new(py, [Class::Internal.get(py)?])?)
}

/// Panics under a [`guard`] leave their text and place for the exception instead of printing them.
fn install_panic_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if GUARDS.try_with(Cell::get).unwrap_or(0) == 0 {
                return previous(info);
            }
            let place = info.location().map(|l| format!(" ({}:{})", l.file(), l.line())).unwrap_or_default();
            PANIC.set(Some(format!("{}{place}", message(info.payload()))));
        }));
    });
}

/// Adds the exception classes to the extension module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    install_panic_hook();
    let py = m.py();
    for class in CLASSES.get_or_try_init(py, || make_classes(py))? {
        let class = class.bind(py);
        m.add(class.name()?, class)?;
    }
    adopt_panics(py)?;
    m.add_function(wrap_pyfunction!(_panic_for_tests, m)?)
}

/// Panics, for the test that a panic becomes an exception, under a [`guard`] or not.
#[pyfunction]
fn _panic_for_tests(guarded: bool) -> PyResult<()> {
    let panic = || panic!("asked for by a test");
    if guarded { guard(panic) } else { panic() }
}
