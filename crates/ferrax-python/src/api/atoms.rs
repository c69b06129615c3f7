//! Variables and literals of programs as Python objects.
//!
//! Variables are equal when they are the same variable of the same program, or the same one that Python made.
//!
//! Read next: `jaxpr.rs`, whose programs have them.

use crate::array::wrap_number;
use crate::aval::ShapedArray;
use crate::errors::IntoPyResult;
use crate::value::to_value;
use ferrax_ir::{Aval, Jaxpr, JaxprRef, Lit, Value, Var};
use pyo3::exceptions::{PyNotImplementedError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Whose variable it is.
#[derive(Clone)]
pub enum Home {
    /// A program's.
    Program(JaxprRef, Var),
    /// One that Python made.
    Own(Arc<Aval>),
}

impl Home {
    pub(super) fn aval(&self) -> &Aval {
        match self {
            Home::Program(j, v) => j.aval(*v),
            Home::Own(aval) => aval,
        }
    }

    /// What identifies it while it lives.
    pub fn key(&self) -> (usize, u32) {
        match self {
            Home::Program(j, v) => (std::ptr::from_ref::<Jaxpr>(j) as usize, v.0),
            Home::Own(aval) => (Arc::as_ptr(aval) as usize, 0),
        }
    }
}

/// A variable or a literal.
#[pyclass(frozen, subclass, name = "Atom", module = "ferrax.core")]
pub struct PyAtom;

/// A member of the classes of programs that is Python's: the module that gives them theirs is loaded by the first use.
pub(super) fn late_member<'py>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    py.import("ferrax.extend.core")?;
    py.get_type::<PyAny>().call_method1(intern!(py, "__getattribute__"), (object, name))
}

#[pymethods]
impl PyAtom {
    fn __getattr__<'py>(slf: &Bound<'py, Self>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        late_member(slf, name)
    }
}

/// A variable of a program.
#[pyclass(frozen, subclass, weakref, extends = PyAtom, name = "Var", module = "ferrax.extend.core")]
pub struct PyVar(pub Home);

/// A variable that nothing reads.
#[pyclass(frozen, subclass, extends = PyVar, name = "DropVar", module = "ferrax.extend.core")]
pub struct PyDropVar;

/// A number in a program.
#[pyclass(frozen, subclass, extends = PyAtom, name = "Literal", module = "ferrax.extend.core")]
pub struct PyLiteral(pub Lit);

/// The objects of variables while somebody holds them: libraries tell variables apart by identity, too.
static KNOWN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

fn known(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    let new = || Ok::<_, PyErr>(py.import("weakref")?.getattr("WeakValueDictionary")?.call0()?.unbind());
    Ok(KNOWN.get_or_try_init(py, new)?.bind(py))
}

/// Makes an object that Python made the one of its variable.
pub(super) fn keep(var: &Bound<'_, PyVar>) -> PyResult<()> {
    known(var.py())?.set_item(var.get().0.key(), var)
}

/// The object of a variable, which may be one that nothing reads.
pub(super) fn var(py: Python<'_>, home: Home, used: bool) -> PyResult<Py<PyAny>> {
    let known = known(py)?;
    let key = home.key();
    let found = known.call_method1(intern!(py, "get"), (key,))?;
    if !found.is_none() {
        return Ok(found.unbind());
    }
    let class = PyClassInitializer::from(PyAtom).add_subclass(PyVar(home));
    let new =
        if used { Py::new(py, class)?.into_any() } else { Py::new(py, class.add_subclass(PyDropVar))?.into_any() };
    known.set_item(key, &new)?;
    Ok(new)
}

pub(super) fn literal(py: Python<'_>, l: Lit) -> PyResult<Py<PyAny>> {
    Ok(Py::new(py, PyClassInitializer::from(PyAtom).add_subclass(PyLiteral(l)))?.into_any())
}

#[pymethods]
impl PyVar {
    #[new]
    #[pyo3(signature = (aval, initial_qdd=None, final_qdd=None))]
    fn new(
        aval: &Bound<'_, PyAny>,
        initial_qdd: Option<&Bound<'_, PyAny>>,
        final_qdd: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        if initial_qdd.or(final_qdd).is_some() {
            return Err(PyNotImplementedError::new_err(
                "a variable of ferrax's programs has no quasi-dynamic data (qdd): its types are arrays, which have no \
                 states; initial_qdd and final_qdd must be None",
            ));
        }
        let aval = crate::value::abstract_value(aval)?;
        Ok(PyClassInitializer::from(PyAtom).add_subclass(PyVar(Home::Own(Arc::new(aval)))))
    }

    /// Shape, dtype and weak type.
    #[getter]
    fn aval(&self) -> ShapedArray {
        ShapedArray(self.0.aval().clone())
    }

    /// Its number in its program.
    #[getter]
    fn count(&self) -> usize {
        match self.0.key() {
            (_, n) if matches!(self.0, Home::Program(..)) => n as usize,
            (address, _) => address,
        }
    }

    fn __repr__(&self) -> String {
        match &self.0 {
            // programs name variables by their order, which one alone does not know
            Home::Program(j, v) => {
                let id = std::ptr::from_ref::<Jaxpr>(j) as usize + v.0 as usize;
                format!("Var(id={id}):{}", crate::tracer::LongAval(&j.aval(*v).with_weak(false)))
            }
            Home::Own(aval) => {
                format!("Var(id={}):{}", self.0.key().0, crate::tracer::LongAval(&aval.with_weak(false)))
            }
        }
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<PyVar>().is_ok_and(|o| o.get().0.key() == self.0.key())
    }

    fn __hash__(&self) -> u64 {
        let mut h = rustc_hash::FxHasher::default();
        self.0.key().hash(&mut h);
        h.finish()
    }
}

#[pymethods]
impl PyDropVar {
    #[new]
    fn new(aval: &Bound<'_, PyAny>) -> PyResult<PyClassInitializer<Self>> {
        Ok(PyVar::new(aval, None, None)?.add_subclass(PyDropVar))
    }

    #[allow(clippy::unused_self)]
    fn __repr__(&self) -> &'static str {
        "_"
    }
}

#[pymethods]
impl PyLiteral {
    #[new]
    #[pyo3(signature = (val, aval=None))]
    fn new(val: &Bound<'_, PyAny>, aval: Option<&Bound<'_, PyAny>>) -> PyResult<PyClassInitializer<Self>> {
        let value = to_value(val)?;
        let lit = match &value {
            Value::Lit(l) => *l,
            Value::Array(a) if value.rank() == 0 => Lit { scalar: a.item().py()?, weak: a.aval().weak },
            _ => return Err(PyTypeError::new_err("a literal is a number; arrays are constants of the program")),
        };
        let weak = aval.map(crate::value::abstract_value).transpose()?.map_or(lit.weak, |a| a.weak);
        Ok(PyClassInitializer::from(PyAtom).add_subclass(PyLiteral(Lit { weak, ..lit })))
    }

    /// The number.
    #[getter]
    fn val(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(wrap_number(py, &self.0)?.unbind())
    }

    /// Shape, dtype and weak type.
    #[getter]
    fn aval(&self) -> ShapedArray {
        ShapedArray(Value::Lit(self.0).aval())
    }

    fn __repr__(&self) -> String {
        let (scalar, dtype) = (self.0.scalar, self.0.scalar.dtype);
        if !self.0.weak || dtype.is_complex() {
            return format!("Literal({scalar})");
        }
        let kind = if dtype.is_float() { "TypedFloat" } else { "TypedInt" };
        format!("Literal({kind}({scalar}, dtype={}))", dtype.name())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<PyLiteral>().is_ok_and(|o| o.get().0 == self.0)
    }

    fn __hash__(&self) -> u64 {
        self.0.scalar.bits as u64
    }
}

/// Adds the classes.
pub(super) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyAtom>()?;
    m.add_class::<PyVar>()?;
    m.add_class::<PyDropVar>()?;
    m.add_class::<PyLiteral>()
}
