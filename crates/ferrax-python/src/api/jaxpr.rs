//! Programs as Python objects: `ClosedJaxpr`, its equations and variables, for inspection and printing.

use crate::aval::ShapedArray;
use crate::errors::IntoPyResult;
use crate::tree::PyTreeDef;
use crate::value::{from_value, to_value};
use ferrax_ir::{Atom, JaxprRef, Value};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A variable or literal of a program.
#[pyclass(frozen, name = "Var", module = "ferrax.core")]
pub struct PyAtom {
    jaxpr: JaxprRef,
    atom: Atom,
}

#[pymethods]
impl PyAtom {
    /// Shape, dtype and weak type.
    #[getter]
    fn aval(&self) -> ShapedArray {
        ShapedArray(self.jaxpr.atom_aval(&self.atom))
    }

    /// The number of a literal; `None` for variables.
    #[getter]
    fn val(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        match self.atom {
            Atom::Lit(l) => from_value(py, Value::Lit(l)).map(Some),
            Atom::Var(_) => Ok(None),
        }
    }

    fn __repr__(&self) -> String {
        match &self.atom {
            Atom::Lit(l) => format!("{}:{}", l.scalar, self.jaxpr.atom_aval(&self.atom)),
            Atom::Var(v) => format!("{}:{}", ferrax_ir::print::var_name(v.0 as usize), self.jaxpr.aval(*v)),
        }
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<PyAtom>().is_ok_and(|o| o.get().atom == self.atom)
    }

    fn __hash__(&self) -> u64 {
        match &self.atom {
            Atom::Var(v) => u64::from(v.0),
            Atom::Lit(l) => l.scalar.bits as u64,
        }
    }
}

/// A primitive, by name.
#[pyclass(frozen, name = "Primitive", module = "ferrax.core", eq, hash)]
#[derive(PartialEq, Eq, Hash)]
pub struct PyPrimitive {
    /// JAX's name.
    #[pyo3(get)]
    name: String,
}

#[pymethods]
impl PyPrimitive {
    fn __repr__(&self) -> &str {
        &self.name
    }
}

/// One operation of a program.
#[pyclass(frozen, name = "JaxprEqn", module = "ferrax.core")]
pub struct PyEqn {
    jaxpr: JaxprRef,
    index: usize,
}

impl PyEqn {
    fn atoms(&self, atoms: impl Iterator<Item = Atom>) -> Vec<PyAtom> {
        atoms.map(|atom| PyAtom { jaxpr: self.jaxpr.clone(), atom }).collect()
    }
}

#[pymethods]
impl PyEqn {
    /// The operation.
    #[getter]
    fn primitive(&self) -> PyPrimitive {
        PyPrimitive { name: self.jaxpr.eqns[self.index].op.name().into() }
    }

    /// Operands.
    #[getter]
    fn invars(&self) -> Vec<PyAtom> {
        self.atoms(self.jaxpr.eqns[self.index].inputs.iter().copied())
    }

    /// Variables or literals that are the results.
    #[getter]
    fn outvars(&self) -> Vec<PyAtom> {
        self.atoms(self.jaxpr.eqns[self.index].outputs.iter().map(|&v| Atom::Var(v)))
    }

    /// The results of the operation on other values, a list.
    #[pyo3(signature = (*values))]
    fn bind(&self, py: Python<'_>, values: Vec<Bound<'_, PyAny>>) -> PyResult<Vec<Py<PyAny>>> {
        let eqn = &self.jaxpr.eqns[self.index];
        if values.len() != eqn.inputs.len() {
            return Err(pyo3::exceptions::PyTypeError::new_err(format!(
                "{} takes {} operands here, got {}",
                eqn.op.name(),
                eqn.inputs.len(),
                values.len()
            )));
        }
        let values = values.iter().map(to_value).collect::<PyResult<Vec<Value>>>()?;
        let outs = ferrax_ir::bind(&eqn.op, &values).py()?;
        outs.into_iter().map(|v| from_value(py, v)).collect()
    }

    /// Parameters by name: programs as `ClosedJaxpr`, the others as printed.
    #[getter]
    fn params<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, value) in self.jaxpr.eqns[self.index].op.print_params() {
            match value {
                ferrax_ir::Param::Jaxpr(j) => dict.set_item(name, Py::new(py, PyJaxpr::new(j))?)?,
                ferrax_ir::Param::Tuple(items) => {
                    let list = pyo3::types::PyList::empty(py);
                    for item in items {
                        match item {
                            ferrax_ir::Param::Jaxpr(j) => list.append(Py::new(py, PyJaxpr::new(j))?)?,
                            other => list.append(other.to_string())?,
                        }
                    }
                    dict.set_item(name, list.to_tuple())?;
                }
                ferrax_ir::Param::Text(t) => dict.set_item(name, literal(py, &t))?,
            }
        }
        Ok(dict)
    }
}

/// Text as the Python literal it spells, or as itself.
fn literal<'py>(py: Python<'py>, text: &str) -> Bound<'py, PyAny> {
    let parsed = py.import("ast").and_then(|ast| ast.call_method1("literal_eval", (text,)));
    parsed.unwrap_or_else(|_| pyo3::types::PyString::new(py, text).into_any())
}

/// A program with its constants.
#[pyclass(frozen, name = "ClosedJaxpr", module = "ferrax.core")]
pub struct PyJaxpr {
    /// The program.
    pub jaxpr: JaxprRef,
    /// Values of enclosing traces that stand for its leading parameters.
    pub captured: Vec<Value>,
    /// Structure of the result of the function it was traced from.
    pub out_tree: Option<crate::tree::TreeDef>,
}

impl PyJaxpr {
    /// A program by itself.
    pub fn new(jaxpr: JaxprRef) -> Self {
        PyJaxpr { jaxpr, captured: Vec::new(), out_tree: None }
    }
}

#[pymethods]
impl PyJaxpr {
    /// The program itself (one class carries both).
    #[getter]
    fn jaxpr(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Names of the arguments that the function was traced with, for error texts.
    fn argument_names(&self) -> Vec<String> {
        self.jaxpr.debug.arg_names.as_ref().map(|names| names()).unwrap_or_default()
    }

    /// Operations in order.
    #[getter]
    fn eqns(&self) -> Vec<PyEqn> {
        (0..self.jaxpr.eqns.len()).map(|index| PyEqn { jaxpr: self.jaxpr.clone(), index }).collect()
    }

    /// Parameters.
    #[getter]
    fn invars(&self) -> Vec<PyAtom> {
        self.jaxpr.invars.iter().map(|&v| PyAtom { jaxpr: self.jaxpr.clone(), atom: Atom::Var(v) }).collect()
    }

    /// Variables bound to the constants.
    #[getter]
    fn constvars(&self) -> Vec<PyAtom> {
        self.jaxpr.constvars.iter().map(|&v| PyAtom { jaxpr: self.jaxpr.clone(), atom: Atom::Var(v) }).collect()
    }

    /// Variables or literals that are the results.
    #[getter]
    fn outvars(&self) -> Vec<PyAtom> {
        self.jaxpr.outvars.iter().map(|&atom| PyAtom { jaxpr: self.jaxpr.clone(), atom }).collect()
    }

    /// The parameters' avals.
    #[getter]
    fn in_avals(&self) -> Vec<ShapedArray> {
        self.jaxpr.in_avals().into_iter().map(ShapedArray).collect()
    }

    /// The results' avals.
    #[getter]
    fn out_avals(&self) -> Vec<ShapedArray> {
        self.jaxpr.out_avals().into_iter().map(ShapedArray).collect()
    }

    /// Values of the constants.
    #[getter]
    fn consts(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        self.jaxpr.consts.iter().map(|c| from_value(py, Value::Array(c.clone()))).collect()
    }

    /// Alias of `consts`.
    #[getter]
    fn literals(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        self.consts(py)
    }

    /// Effects, as text.
    #[getter]
    fn effects(&self) -> Vec<&'static str> {
        let e = self.jaxpr.effects.0;
        [(1, "IO"), (2, "Ordered"), (4, "Debug")].iter().filter(|(b, _)| e & b != 0).map(|(_, n)| *n).collect()
    }

    /// Structure of the traced function's result.
    #[getter]
    fn out_tree(&self) -> Option<PyTreeDef> {
        self.out_tree.clone().map(PyTreeDef)
    }

    /// Values that the traced function closed over from enclosing traces.
    #[getter]
    fn captured(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        self.captured.iter().map(|v| from_value(py, v.clone())).collect()
    }

    /// Applies the program to flat values.
    #[pyo3(signature = (*args))]
    fn eval(&self, py: Python<'_>, args: Vec<Bound<'_, PyAny>>) -> PyResult<Vec<Py<PyAny>>> {
        let values = args.iter().map(to_value).collect::<PyResult<Vec<Value>>>()?;
        if values.len() != self.jaxpr.invars.len() {
            return Err(pyo3::exceptions::PyTypeError::new_err(format!(
                "the program takes {} arguments, got {}",
                self.jaxpr.invars.len(),
                values.len()
            )));
        }
        let outs = ferrax_transform::eval_jaxpr(&self.jaxpr, &values).py()?;
        outs.into_iter().map(|v| from_value(py, v)).collect()
    }

    /// The program as text.
    fn pretty_print(&self) -> String {
        self.jaxpr.to_string()
    }

    fn __repr__(&self) -> String {
        self.jaxpr.to_string()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<PyJaxpr>().is_ok_and(|o| o.get().jaxpr == self.jaxpr)
    }

    fn __hash__(&self) -> u64 {
        self.jaxpr.structural_hash()
    }
}

/// Adds the classes.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyJaxpr>()?;
    m.add_class::<PyEqn>()?;
    m.add_class::<PyAtom>()?;
    m.add_class::<PyPrimitive>()?;
    m.add_function(wrap_pyfunction!(super::source::set_library_folder, m)?)
}
