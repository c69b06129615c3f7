//! Programs and equations made from Python's variables, literals and equations.

use super::atoms::{Home, PyLiteral, PyVar, keep};
use super::jaxpr::PyEqn;
use super::primitive::op_of;
use crate::errors::Class;
use ferrax_ir::{Atom, Aval, DebugInfo, Eqn, Jaxpr, JaxprRef, Source, Var};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use rustc_hash::FxHashMap;

#[derive(Default)]
struct Assembly {
    jaxpr: Jaxpr,
    vars: FxHashMap<(usize, u32), Var>,
    /// Python's variables by the numbers of the new ones.
    given: Vec<Home>,
}

impl Assembly {
    /// A new variable for one of Python's.
    fn define(&mut self, var: &Bound<'_, PyAny>) -> PyResult<Var> {
        let Ok(v) = var.cast::<PyVar>() else {
            return Err(PyTypeError::new_err(format!("{} is not a variable", var.repr()?)));
        };
        if self.vars.contains_key(&v.get().0.key()) {
            return Err(malformed(var.py(), format!("Variable '{}' already bound", var.repr()?)));
        }
        keep(v)?;
        let aval: Aval = crate::value::abstract_value(&var.getattr("aval")?)?;
        let new = self.jaxpr.new_var(aval);
        self.vars.insert(v.get().0.key(), new);
        self.given.push(v.get().0.clone());
        Ok(new)
    }

    fn read(&self, atom: &Bound<'_, PyAny>) -> PyResult<Atom> {
        if let Ok(l) = atom.cast::<PyLiteral>() {
            return Ok(Atom::Lit(l.get().0));
        }
        let Ok(v) = atom.cast::<PyVar>() else {
            return Err(PyTypeError::new_err(format!("{} is neither a variable nor a literal", atom.repr()?)));
        };
        match self.vars.get(&v.get().0.key()) {
            Some(v) => Ok(Atom::Var(*v)),
            None => Err(malformed(atom.py(), format!("Variable '{}' not defined", atom.repr()?))),
        }
    }
}

fn malformed(py: Python<'_>, text: String) -> PyErr {
    Class::JaxprType.error(py, text)
}

/// A program of these variables and equations, the constants as its first parameters, and the variables by number.
pub fn assemble(
    constvars: &[Bound<'_, PyAny>],
    invars: &[Bound<'_, PyAny>],
    outvars: &[Bound<'_, PyAny>],
    eqns: &[Bound<'_, PyEqn>],
) -> PyResult<(JaxprRef, Vec<Home>)> {
    let mut a = Assembly::default();
    a.jaxpr.debug = DebugInfo::named("jaxpr");
    for v in constvars.iter().chain(invars) {
        let new = a.define(v)?;
        a.jaxpr.invars.push(new);
    }
    for e in eqns {
        let py = e.py();
        let eqn = e.get();
        let inputs = eqn.invars(py)?.bind(py).iter().map(|x| a.read(&x)).collect::<PyResult<_>>()?;
        let outputs = eqn.outvars(py)?.bind(py).iter().map(|x| a.define(&x)).collect::<PyResult<_>>()?;
        a.jaxpr.effects = a.jaxpr.effects.union(eqn.op.effects());
        a.jaxpr.eqns.push(Eqn { op: eqn.op.clone(), inputs, outputs, source: eqn.source });
    }
    a.jaxpr.outvars = outvars.iter().map(|x| a.read(x)).collect::<PyResult<_>>()?;
    let jaxpr = JaxprRef::new(a.jaxpr);
    jaxpr.verify().map_err(|e| Python::attach(|py| malformed(py, e.to_string())))?;
    Ok((jaxpr, a.given))
}

/// An equation of a primitive with parameters.
#[pyfunction]
fn new_equation(
    invars: Vec<Bound<'_, PyAny>>,
    outvars: Vec<Bound<'_, PyAny>>,
    primitive: &Bound<'_, PyAny>,
    params: &Bound<'_, PyDict>,
) -> PyResult<PyEqn> {
    let py = primitive.py();
    let op = op_of(primitive, params)?;
    let (invars, outvars) = (PyList::new(py, invars)?.unbind(), PyList::new(py, outvars)?.unbind());
    Ok(PyEqn::given(op, invars, outvars, Source::here()))
}

/// Adds the function.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(new_equation, m)?)
}
