//! Programs as Python objects, for inspection, printing, evaluation and rebuilding.
//!
//! A `Jaxpr` is a program whose leading parameters, its `constvars`, stand for values that it does not carry; a
//! `ClosedJaxpr` carries them. Inside, a program carries the arrays it uses itself, and only what it closed over from
//! enclosing traces are parameters: [`Shown`] presents one as the other. Variables are equal when they are the same
//! variable of the same program, or the same one that Python made; a program that Python makes has those it was made of.
//!
//! Read next: `primitive.rs` for operations by name and parameters, `jaxpr_build.rs` for programs made from Python.

use super::atoms::{self, Home, late_member, literal, var};
use super::primitive;
use crate::aval::ShapedArray;
use crate::errors::IntoPyResult;
use crate::tree::PyTreeDef;
use crate::value::{from_value, to_value};
use ferrax_ir::{Atom, Aval, Jaxpr, JaxprRef, OpRef, Source, Value, Var};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

/// A program as Python sees it.
pub struct Shown {
    jaxpr: JaxprRef,
    /// Leading parameters that are shown as constants.
    leading: usize,
    /// The same with all constants as leading parameters.
    whole: OnceLock<JaxprRef>,
    /// Which variables something reads.
    used: OnceLock<Vec<bool>>,
    /// The variables by number as Python gave them; empty for programs that were traced.
    given: Vec<Home>,
}

impl Shown {
    /// A program whose first parameters are shown as constants.
    pub fn new(jaxpr: JaxprRef, leading: usize) -> Arc<Shown> {
        Shown::assembled(jaxpr, leading, Vec::new())
    }

    /// A program that Python made of these variables.
    fn assembled(jaxpr: JaxprRef, leading: usize, given: Vec<Home>) -> Arc<Shown> {
        Arc::new(Shown { jaxpr, leading, whole: OnceLock::new(), used: OnceLock::new(), given })
    }

    /// Whose a variable is: who makes a program of another's variables finds them in it.
    fn home(&self, v: Var) -> Home {
        self.given.get(v.0 as usize).cloned().unwrap_or_else(|| Home::Program(self.jaxpr.clone(), v))
    }

    /// All that is shown as constants (first parameters, then arrays), in the order in which the trace met them.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.leading + self.jaxpr.constvars.len()).collect();
        order.sort_by_key(|&i| self.constant(i).0);
        order
    }

    fn constant(&self, i: usize) -> Var {
        if i < self.leading { self.jaxpr.invars[i] } else { self.jaxpr.constvars[i - self.leading] }
    }

    /// The program with all that is shown as constants as leading parameters.
    pub fn whole(&self) -> &JaxprRef {
        if self.jaxpr.consts.is_empty() && self.order().is_sorted() {
            return &self.jaxpr;
        }
        self.whole.get_or_init(|| {
            let mut jaxpr = Jaxpr::clone(&self.jaxpr);
            jaxpr.constvars.clear();
            jaxpr.consts.clear();
            jaxpr.invars.splice(..self.leading, self.order().into_iter().map(|i| self.constant(i)));
            JaxprRef::new(jaxpr)
        })
    }

    fn constvars(self: &Arc<Self>) -> impl Iterator<Item = Home> + '_ {
        self.order().into_iter().map(|i| self.home(self.constant(i)))
    }

    fn invars(self: &Arc<Self>) -> impl Iterator<Item = Home> + '_ {
        self.jaxpr.invars[self.leading..].iter().map(|&v| self.home(v))
    }

    fn is_used(&self, v: Var) -> bool {
        let used = self.used.get_or_init(|| {
            let mut used = vec![false; self.jaxpr.avals.len()];
            let read = self.jaxpr.eqns.iter().flat_map(|e| &e.inputs).chain(&self.jaxpr.outvars);
            read.for_each(|a| {
                if let Atom::Var(v) = a {
                    used[v.0 as usize] = true;
                }
            });
            used
        });
        used[v.0 as usize]
    }

    fn atom(&self, py: Python<'_>, atom: Atom) -> PyResult<Py<PyAny>> {
        match atom {
            Atom::Var(v) => var(py, self.home(v), true),
            Atom::Lit(l) => literal(py, l),
        }
    }

    fn binder(&self, py: Python<'_>, v: Var) -> PyResult<Py<PyAny>> {
        var(py, self.home(v), self.is_used(v))
    }
}

/// A parameter that text cannot tell: a function, shown by its name.
#[pyclass(frozen, name = "OpaqueParameter", module = "ferrax.extend.core")]
pub struct PyOpaque {
    /// The operation that has it.
    pub op: OpRef,
    text: String,
}

#[pymethods]
impl PyOpaque {
    fn __repr__(&self) -> &str {
        &self.text
    }
}

/// One operation of a program.
#[pyclass(frozen, subclass, name = "JaxprEqn", module = "ferrax.extend.core")]
pub struct PyEqn {
    /// The operation.
    pub op: OpRef,
    /// Where the user asked for it.
    pub source: Source,
    parts: Parts,
}

enum Parts {
    /// An equation of a program.
    Of(Arc<Shown>, usize),
    /// Operands and results as Python gave them.
    Given(Py<PyList>, Py<PyList>),
}

impl PyEqn {
    /// An equation with operands and results that Python gave.
    pub fn given(op: OpRef, invars: Py<PyList>, outvars: Py<PyList>, source: Source) -> PyEqn {
        PyEqn { op, source, parts: Parts::Given(invars, outvars) }
    }
}

#[pymethods]
impl PyEqn {
    fn __getattr__<'py>(slf: &Bound<'py, Self>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        late_member(slf, name)
    }

    /// The primitive.
    #[getter]
    fn primitive(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        if let Some((primitive, _)) = primitive::defined_parts(py, &self.op) {
            return Ok(primitive);
        }
        static BUILT_IN: pyo3::sync::PyOnceLock<Py<PyAny>> = pyo3::sync::PyOnceLock::new();
        let table = crate::dtypes::imported(&BUILT_IN, py, "ferrax._primitives", "built_in")?;
        Ok(table.call1((self.op.name(),))?.unbind())
    }

    /// Whether differentiation made it, or a function that says where its result goes; known under explicit meshes.
    #[getter]
    fn _made(&self) -> bool {
        self.source.made != 0
    }

    /// The values that it takes.
    #[getter]
    pub fn invars(&self, py: Python<'_>) -> PyResult<Py<PyList>> {
        match &self.parts {
            Parts::Of(shown, i) => {
                let atoms = shown.jaxpr.eqns[*i].inputs.iter().map(|&a| shown.atom(py, a));
                Ok(PyList::new(py, atoms.collect::<PyResult<Vec<_>>>()?)?.unbind())
            }
            Parts::Given(invars, _) => Ok(invars.clone_ref(py)),
        }
    }

    /// Variables that are the results.
    #[getter]
    pub fn outvars(&self, py: Python<'_>) -> PyResult<Py<PyList>> {
        match &self.parts {
            Parts::Of(shown, i) => {
                let atoms = shown.jaxpr.eqns[*i].outputs.iter().map(|&v| shown.binder(py, v));
                Ok(PyList::new(py, atoms.collect::<PyResult<Vec<_>>>()?)?.unbind())
            }
            Parts::Given(_, outvars) => Ok(outvars.clone_ref(py)),
        }
    }

    /// Parameters by name: programs as `ClosedJaxpr`, functions by their names, the others as Python values.
    #[getter]
    pub fn params<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        if let Some((_, params)) = primitive::defined_parts(py, &self.op) {
            return params.bind(py).copy();
        }
        let dict = PyDict::new(py);
        if let Some(p) = self.op.of(&ferrax_ops::placed::SHARDING_CONSTRAINT) {
            dict.set_item("sharding", crate::sharded::any_object(py, p.sharding.0)?)?;
            return self.completed(dict);
        }
        let mut printed = self.op.print_params();
        let mut told = primitive::told(&self.op, &printed);
        if !told && let Some(out) = self.first_result(py) {
            // as programs are read: the result's type tells the shape
            let shape = ferrax_base::shape::Tuple(&out.shape).to_string();
            printed.push(("shape", ferrax_ir::Param::Text(shape)));
            told = primitive::told(&self.op, &printed);
            if !told {
                printed.pop();
            }
        }
        for (name, value) in printed {
            let value = match value {
                // a text, whatever it spells
                ferrax_ir::Param::Text(format) if name == "fmt" => pyo3::types::PyString::new(py, &format).into_any(),
                value => self.param(py, value, told)?,
            };
            dict.set_item(name, value)?;
        }
        self.completed(dict)
    }

    /// Where the user asked for it: file, line, column, function, and where the expression ends; None where that is
    /// not known.
    #[getter]
    fn _place(&self) -> Option<(String, u32, u32, String, u32, u32)> {
        let place = self.source.location()?;
        let (column, end, end_column) = super::source::extent(self.source).unwrap_or((0, place.line, 0));
        Some((place.file, place.line, column, place.function, end, end_column))
    }

    /// The scopes that it stands in, outer ones first, and whether each is a transformation's.
    #[getter]
    fn _scopes(&self) -> Vec<(bool, String)> {
        super::scopes::listed(self.source.scope)
    }

    /// Notes for compilers on it, as a dictionary of MLIR; empty where there are none.
    #[getter]
    fn _notes(&self) -> String {
        ferrax_base::scopes::notes(self.source.scope).0.to_string()
    }

    /// Effects, as text.
    #[getter]
    fn effects(&self) -> BTreeSet<&'static str> {
        effect_names(self.op.effects().0)
    }

    /// The results of the operation on other values, a list.
    #[pyo3(signature = (*values))]
    fn apply(&self, py: Python<'_>, values: Vec<Bound<'_, PyAny>>) -> PyResult<Vec<Py<PyAny>>> {
        let wanted = match &self.parts {
            Parts::Of(shown, i) => shown.jaxpr.eqns[*i].inputs.len(),
            Parts::Given(invars, _) => invars.bind(py).len(),
        };
        if values.len() != wanted {
            let (name, got) = (self.op.name(), values.len());
            return Err(PyTypeError::new_err(format!("{name} takes {wanted} operands here, got {got}")));
        }
        let values = values.iter().map(to_value).collect::<PyResult<Vec<Value>>>()?;
        let outs = ferrax_ir::bind(&self.op, &values).py()?;
        outs.into_iter().map(|v| from_value(py, v)).collect()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<PyEqn>().is_ok_and(|o| self.place() == o.get().place())
    }

    fn __hash__(&self) -> usize {
        let (program, i) = self.place();
        program ^ i
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        match &self.parts {
            Parts::Of(shown, i) => Ok(shown.jaxpr.eqn_text(*i)),
            Parts::Given(invars, outvars) => {
                Ok(format!("{} = {} {}", outvars.bind(py).repr()?, self.op.name(), invars.bind(py).repr()?))
            }
        }
    }
}

impl PyEqn {
    /// The program that it stands in, by its address, and where: what tells two equations apart.
    fn place(&self) -> (usize, usize) {
        match &self.parts {
            Parts::Of(shown, i) => (std::ptr::from_ref::<ferrax_ir::Jaxpr>(&shown.jaxpr) as usize, *i),
            Parts::Given(invars, _) => (invars.as_ptr() as usize, 0),
        }
    }

    /// Parameters with those of JAX's that the core does not print.
    fn completed<'py>(&self, shown: Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
        static COMPLETED: pyo3::sync::PyOnceLock<Py<PyAny>> = pyo3::sync::PyOnceLock::new();
        let completed = crate::dtypes::imported(&COMPLETED, shown.py(), "ferrax._parameters", "completed")?;
        Ok(completed.call1((self.op.name(), shown))?.cast_into()?)
    }

    /// The type of the first result.
    fn first_result(&self, py: Python<'_>) -> Option<Aval> {
        match &self.parts {
            Parts::Of(shown, i) => shown.jaxpr.eqns[*i].outputs.first().map(|&v| shown.jaxpr.aval(v).clone()),
            Parts::Given(_, outs) => crate::value::abstract_value(&outs.bind(py).get_item(0).ok()?).ok(),
        }
    }

    /// A parameter as a Python object; `told` says that text tells all of them.
    fn param<'py>(&self, py: Python<'py>, value: ferrax_ir::Param, told: bool) -> PyResult<Bound<'py, PyAny>> {
        Ok(match value {
            ferrax_ir::Param::Jaxpr(j) => shown_once(py, j)?,
            ferrax_ir::Param::Tuple(items) => {
                let items = items.into_iter().map(|i| self.param(py, i, told)).collect::<PyResult<Vec<_>>>()?;
                pyo3::types::PyTuple::new(py, items)?.into_any()
            }
            ferrax_ir::Param::Text(text) => match spelled(py, &text) {
                Some(value) => value,
                None if told => pyo3::types::PyString::new(py, &text).into_any(),
                None => Py::new(py, PyOpaque { op: self.op.clone(), text })?.into_bound(py).into_any(),
            },
        })
    }
}

/// The Python literal that a text spells.
fn spelled<'py>(py: Python<'py>, text: &str) -> Option<Bound<'py, PyAny>> {
    let literal = py.import("ast").and_then(|ast| ast.call_method1("literal_eval", (text,))).ok()?;
    crate::symbolic::with_sizes(literal).ok()
}

fn effect_names(effects: u8) -> BTreeSet<&'static str> {
    [(1, "IO"), (18, "Ordered"), (4, "Debug")].iter().filter(|(b, _)| effects & b != 0).map(|(_, n)| *n).collect()
}

fn vars(py: Python<'_>, homes: impl Iterator<Item = Home>) -> PyResult<Vec<Py<PyAny>>> {
    homes.map(|h| var(py, h, true)).collect()
}

/// A program without the values of its constants.
#[pyclass(frozen, subclass, weakref, name = "Jaxpr", module = "ferrax.extend.core")]
pub struct PyOpen(pub Arc<Shown>);

#[pymethods]
impl PyOpen {
    fn __getattr__<'py>(slf: &Bound<'py, Self>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        late_member(slf, name)
    }

    #[new]
    #[pyo3(signature = (constvars, invars, outvars, eqns, effects=None, debug_info=None, is_high=false))]
    fn new(
        constvars: Vec<Bound<'_, PyAny>>,
        invars: Vec<Bound<'_, PyAny>>,
        outvars: Vec<Bound<'_, PyAny>>,
        eqns: Vec<Bound<'_, PyEqn>>,
        effects: Option<&Bound<'_, PyAny>>,
        debug_info: Option<&Bound<'_, PyAny>>,
        is_high: bool,
    ) -> PyResult<PyOpen> {
        // effects are those of the equations
        let _ = (effects, debug_info, is_high);
        let leading = constvars.len();
        let (jaxpr, given) = super::jaxpr_build::assemble(&constvars, &invars, &outvars, &eqns)?;
        Ok(PyOpen(Shown::assembled(jaxpr, leading, given)))
    }

    /// Variables that stand for constants.
    #[getter]
    fn constvars(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        vars(py, self.0.constvars())
    }

    /// Parameters.
    #[getter]
    fn invars(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        vars(py, self.0.invars())
    }

    /// Variables or literals that are the results.
    #[getter]
    fn outvars(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        self.0.jaxpr.outvars.iter().map(|&atom| self.0.atom(py, atom)).collect()
    }

    /// Operations in order.
    #[getter]
    fn eqns(&self) -> Vec<PyEqn> {
        let eqn = |(i, e): (usize, &ferrax_ir::Eqn)| PyEqn {
            op: e.op.clone(),
            source: e.source,
            parts: Parts::Of(self.0.clone(), i),
        };
        self.0.jaxpr.eqns.iter().enumerate().map(eqn).collect()
    }

    /// The parameters' avals.
    #[getter]
    fn in_avals(&self) -> Vec<ShapedArray> {
        self.0.jaxpr.in_avals().split_off(self.0.leading).into_iter().map(ShapedArray).collect()
    }

    /// The results' avals.
    #[getter]
    fn out_avals(&self) -> Vec<ShapedArray> {
        self.0.jaxpr.out_avals().into_iter().map(ShapedArray).collect()
    }

    /// Effects, as text.
    #[getter]
    fn effects(&self) -> BTreeSet<&'static str> {
        effect_names(self.0.jaxpr.effects.0)
    }

    /// Name and place of the traced function.
    #[getter]
    fn function_name(&self) -> String {
        self.0.jaxpr.debug.describe()
    }

    /// What the program was recorded for.
    #[getter]
    fn traced_for(&self) -> &'static str {
        self.0.jaxpr.debug.traced_for
    }

    /// Names of the results, where they are known.
    fn result_names(&self) -> Option<Vec<String>> {
        self.0.jaxpr.debug.result_names.as_ref().map(|names| names())
    }

    /// Names of the arguments that the function was traced with.
    fn argument_names(&self) -> Vec<String> {
        self.0.jaxpr.debug.arg_names.as_ref().map(|names| names()).unwrap_or_default()
    }

    /// The results of the program for values of its constants and parameters.
    fn eval(
        &self,
        py: Python<'_>,
        consts: Vec<Bound<'_, PyAny>>,
        args: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<Vec<Py<PyAny>>> {
        let whole = self.0.whole();
        if consts.len() + args.len() != whole.invars.len() {
            let n = self.0.leading + self.0.jaxpr.constvars.len();
            return Err(PyTypeError::new_err(format!(
                "the program takes {n} constants and {} arguments, got {} and {}",
                whole.invars.len() - n,
                consts.len(),
                args.len()
            )));
        }
        let values = consts.iter().chain(&args).map(to_value).collect::<PyResult<Vec<Value>>>()?;
        let outs = ferrax_transform::eval_jaxpr(whole, &values).py()?;
        outs.into_iter().map(|v| from_value(py, v)).collect()
    }

    fn __repr__(&self) -> String {
        ferrax_base::symbolic::named(self.0.jaxpr.to_string())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<PyOpen>().is_ok_and(|o| o.get().0.jaxpr == self.0.jaxpr && o.get().0.leading == self.0.leading)
    }

    fn __hash__(&self) -> u64 {
        self.0.jaxpr.structural_hash()
    }
}

/// A program that an equation has, one object for each while somebody holds it: libraries keep by it what they make.
fn shown_once(py: Python<'_>, jaxpr: JaxprRef) -> PyResult<Bound<'_, PyAny>> {
    static KNOWN: pyo3::sync::PyOnceLock<Py<PyAny>> = pyo3::sync::PyOnceLock::new();
    let new = || py.import("weakref")?.call_method0("WeakValueDictionary").map(Bound::unbind);
    let known = KNOWN.get_or_try_init(py, new)?.bind(py);
    // nothing else is at the address while the object holds the program
    let at = std::ptr::from_ref::<ferrax_ir::Jaxpr>(&jaxpr) as usize;
    known.call_method1("setdefault", (at, Py::new(py, PyClosed::new(jaxpr))?))
}

/// A program with its constants.
#[pyclass(frozen, subclass, weakref, name = "ClosedJaxpr", module = "ferrax.extend.core")]
pub struct PyClosed {
    shown: Arc<Shown>,
    /// Values that stand for its leading parameters: of enclosing traces, or what Python gave.
    pub captured: Vec<Value>,
    /// Structure of the result of the function it was traced from.
    pub out_tree: Option<crate::tree::TreeDef>,
}

impl PyClosed {
    /// A program by itself.
    pub fn new(jaxpr: JaxprRef) -> Self {
        PyClosed { shown: Shown::new(jaxpr, 0), captured: Vec::new(), out_tree: None }
    }

    /// A traced function, with what it captured.
    pub fn traced(jaxpr: JaxprRef, captured: Vec<Value>, out_tree: crate::tree::TreeDef) -> Self {
        PyClosed { shown: Shown::new(jaxpr, captured.len()), captured, out_tree: Some(out_tree) }
    }

    /// The program; its first parameters stand for what was captured.
    pub fn jaxpr(&self) -> &JaxprRef {
        &self.shown.jaxpr
    }

    fn open(&self) -> PyOpen {
        PyOpen(self.shown.clone())
    }

    fn all_consts(&self) -> impl Iterator<Item = Value> + '_ {
        self.shown.order().into_iter().map(|i| match self.captured.get(i) {
            Some(value) => value.clone(),
            None => Value::Array(self.shown.jaxpr.consts[i - self.captured.len()].clone()),
        })
    }
}

#[pymethods]
impl PyClosed {
    fn __getattr__<'py>(slf: &Bound<'py, Self>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        late_member(slf, name)
    }

    /// A program with values of its constants; `ClosedJaxpr` itself also makes programs with references.
    #[staticmethod]
    fn _of_parts(jaxpr: &PyOpen, consts: Vec<Bound<'_, PyAny>>) -> PyResult<Self> {
        PyClosed::from_parts(jaxpr, consts)
    }

    #[new]
    fn from_parts(jaxpr: &PyOpen, consts: Vec<Bound<'_, PyAny>>) -> PyResult<Self> {
        let n = jaxpr.0.leading + jaxpr.0.jaxpr.constvars.len();
        if consts.len() != n {
            return Err(PyValueError::new_err(format!("the program has {n} constants, got {}", consts.len())));
        }
        let values = consts.iter().map(to_value).collect::<PyResult<Vec<Value>>>()?;
        let mut by_number = values.clone();
        for (value, i) in values.iter().zip(jaxpr.0.order()) {
            by_number[i] = value.clone();
        }
        let own = by_number.split_off(jaxpr.0.leading);
        let same = own.iter().zip(&jaxpr.0.jaxpr.consts).all(|(v, c)| matches!(v, Value::Array(a) if a.ptr_eq(c)));
        if same {
            let captured = by_number;
            return Ok(PyClosed { shown: jaxpr.0.clone(), captured, out_tree: None });
        }
        let shown = Shown::assembled(jaxpr.0.whole().clone(), n, jaxpr.0.given.clone());
        Ok(PyClosed { shown, captured: values, out_tree: None })
    }

    /// The program without the values of its constants.
    #[getter(jaxpr)]
    fn opened(&self) -> PyOpen {
        self.open()
    }

    /// Names of the arguments that the function was traced with, for error texts.
    fn argument_names(&self) -> Vec<String> {
        self.open().argument_names()
    }

    /// Operations in order.
    #[getter]
    fn eqns(&self) -> Vec<PyEqn> {
        self.open().eqns()
    }

    /// Parameters.
    #[getter]
    fn invars(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        self.open().invars(py)
    }

    /// Variables bound to the constants.
    #[getter]
    fn constvars(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        self.open().constvars(py)
    }

    /// Variables or literals that are the results.
    #[getter]
    fn outvars(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        self.open().outvars(py)
    }

    /// The parameters' avals.
    #[getter]
    fn in_avals(&self) -> Vec<ShapedArray> {
        self.open().in_avals()
    }

    /// The results' avals.
    #[getter]
    fn out_avals(&self) -> Vec<ShapedArray> {
        self.open().out_avals()
    }

    /// Values of the constants.
    #[getter]
    fn consts(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        self.all_consts().map(|v| from_value(py, v)).collect()
    }

    /// Alias of `consts`.
    #[getter]
    fn literals(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        self.consts(py)
    }

    /// Effects, as text.
    #[getter]
    fn effects(&self) -> BTreeSet<&'static str> {
        self.open().effects()
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

    /// Variables that stand for the values that it closed over.
    #[getter]
    fn captured_vars(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        let leading = self.shown.jaxpr.invars[..self.shown.leading].iter();
        vars(py, leading.map(|&v| self.shown.home(v)))
    }

    /// Avals of all parameters, of those too that stand for captured values.
    #[getter]
    fn whole_in_avals(&self) -> Vec<ShapedArray> {
        self.shown.jaxpr.in_avals().into_iter().map(ShapedArray).collect()
    }

    /// Applies the program to flat values.
    #[pyo3(signature = (*args))]
    fn eval(&self, py: Python<'_>, args: Vec<Bound<'_, PyAny>>) -> PyResult<Vec<Py<PyAny>>> {
        self.eval_with(py, self.captured.clone(), args)
    }

    /// As `eval`, with other values in place of the captured ones.
    fn eval_captured(
        &self,
        py: Python<'_>,
        captured: Vec<Bound<'_, PyAny>>,
        args: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<Vec<Py<PyAny>>> {
        self.eval_with(py, captured.iter().map(to_value).collect::<PyResult<_>>()?, args)
    }

    fn __repr__(&self) -> String {
        ferrax_base::symbolic::named(self.shown.jaxpr.to_string())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<PyClosed>().is_ok_and(|o| o.get().shown.jaxpr == self.shown.jaxpr)
    }

    fn __hash__(&self) -> u64 {
        self.shown.jaxpr.structural_hash()
    }
}

impl PyClosed {
    fn eval_with(
        &self,
        py: Python<'_>,
        mut values: Vec<Value>,
        args: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<Vec<Py<PyAny>>> {
        let takes = self.shown.jaxpr.invars.len() - self.shown.leading;
        if args.len() != takes || values.len() != self.shown.leading {
            let got = args.len();
            return Err(PyTypeError::new_err(format!("the program takes {takes} arguments, got {got}")));
        }
        for a in &args {
            values.push(to_value(a)?);
        }
        let outs = ferrax_transform::eval_jaxpr(&self.shown.jaxpr, &values).py()?;
        outs.into_iter().map(|v| from_value(py, v)).collect()
    }
}

/// Adds the classes.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyOpen>()?;
    m.add_class::<PyClosed>()?;
    m.add_class::<PyEqn>()?;
    atoms::register(m)?;
    m.add_class::<PyOpaque>()?;
    m.add_function(wrap_pyfunction!(super::source::set_library_folder, m)?)
}
