//! Linearized functions as nodes of pytrees: the values that they keep of the forward run are leaves, the linear program
//! with its holes is the node's data, the same object for all that one trace has made.
//!
//! Read next: [`super::grad`], whose pullbacks and linear functions these are, and `python/ferrax/_linearized.py`, which
//! registers them.

use crate::aval::ShapedArray;
use crate::errors::IntoPyResult;
use crate::tree::{PyTreeDef, TreeDef};
use crate::value::{from_value, to_value};
use ferrax_base::{DType, Scalar, error};
use ferrax_ir::{Aval, DebugInfo, Lit, Value};
use ferrax_transform::linearize::{Linearized, Tape, TapeArg, TapeEqn};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// What a linearized function is, beside its program.
pub struct Meta {
    /// Structure of the arguments.
    pub in_tree: TreeDef,
    /// Structure of the result.
    pub out_tree: TreeDef,
    /// Types of the arguments.
    pub primals: Vec<Aval>,
    /// Types of the results.
    pub outs: Vec<Aval>,
    /// Identities of the arguments; zero for numbers, which the program holds.
    pub ids: Vec<usize>,
    /// The function, for messages.
    pub debug: DebugInfo,
}

/// A linear program without the values that it works around.
#[pyclass(frozen, name = "LinearProgram", module = "ferrax")]
pub struct PyHollow {
    meta: Arc<Meta>,
    lin: Linearized,
    /// For each value the equations and operands that it is: arguments first, in their order.
    places: Vec<Vec<(usize, usize)>>,
    /// For each argument which of the values it is.
    args: Vec<Option<usize>>,
}

#[pymethods]
impl PyHollow {
    /// Structure of the arguments, their types, and those of the results.
    #[getter]
    fn parts(&self) -> (PyTreeDef, Vec<ShapedArray>, Vec<ShapedArray>) {
        let types = |avals: &[Aval]| avals.iter().cloned().map(ShapedArray).collect();
        (PyTreeDef(self.meta.in_tree.clone()), types(&self.meta.primals), types(&self.meta.outs))
    }
}

enum Run {
    Whole(Linearized),
    /// Leaves of the node, which need not be arrays: trees are rebuilt around anything.
    Filled(Vec<Py<PyAny>>),
}

/// A linearized function.
pub struct State {
    /// What it is.
    pub meta: Arc<Meta>,
    run: Run,
    hollow: PyOnceLock<Py<PyHollow>>,
}

fn kept(lin: &Linearized) -> impl Iterator<Item = ((usize, usize), &Value)> {
    let args = lin.tape.eqns.iter().enumerate().flat_map(|(e, eqn)| {
        eqn.args.iter().enumerate().filter_map(move |(a, arg)| match arg {
            TapeArg::Known(v) => Some(((e, a), v)),
            TapeArg::Linear(_) => None,
        })
    });
    args.filter(|(_, v)| !matches!(v, Value::Lit(_)))
}

/// What identifies an array or a traced value while it lives; zero for numbers.
pub fn id(v: &Value) -> usize {
    match v {
        Value::Array(a) => a.id(),
        Value::Tracer(t) => t.id(),
        Value::Lit(_) => 0,
    }
}

/// The values that are kept, each once with its places: arguments first, and which of them these are.
fn arranged<'a>(lin: &'a Linearized, ids: &[usize]) -> (Vec<(&'a Value, Vec<(usize, usize)>)>, Vec<Option<usize>>) {
    let mut at: FxHashMap<usize, usize> = FxHashMap::default();
    let mut found: Vec<(&Value, Vec<(usize, usize)>)> = Vec::new();
    for (place, v) in kept(lin) {
        let n = *at.entry(id(v)).or_insert(found.len());
        if n == found.len() {
            found.push((v, Vec::new()));
        }
        found[n].1.push(place);
    }
    let mut order: Vec<usize> = ids.iter().filter_map(|id| at.get(id).copied()).collect();
    // an argument that is given twice is kept once
    let mut seen = vec![false; found.len()];
    order.retain(|&n| !std::mem::replace(&mut seen[n], true));
    order.extend((0..found.len()).filter(|&n| !seen[n]));
    let mut rank = vec![0; found.len()];
    order.iter().enumerate().for_each(|(r, &n)| rank[n] = r);
    let args = ids.iter().map(|id| at.get(id).map(|&n| rank[n])).collect();
    let mut by_rank: Vec<_> = rank.into_iter().zip(found).collect();
    by_rank.sort_by_key(|(r, _)| *r);
    (by_rank.into_iter().map(|(_, kept)| kept).collect(), args)
}

/// A copy whose kept values, at `places`, are others.
fn with_values(
    lin: &Linearized,
    places: &[Vec<(usize, usize)>],
    values: impl IntoIterator<Item = Value>,
) -> Linearized {
    let mut eqns: Vec<TapeEqn> = lin.tape.eqns.clone();
    for (places, v) in places.iter().zip(values) {
        for &(e, a) in places {
            eqns[e].args[a] = TapeArg::Known(v.clone());
        }
    }
    let tape = Tape { avals: lin.tape.avals.clone(), inputs: lin.tape.inputs, eqns, mapped: lin.tape.mapped.clone() };
    Linearized { outs: Vec::new(), tape, in_vars: lin.in_vars.clone(), out_vars: lin.out_vars.clone() }
}

impl State {
    /// A function just linearized.
    pub fn new(lin: Linearized, meta: Meta) -> State {
        // the results are the caller's now
        let lin = Linearized { outs: Vec::new(), ..lin };
        State { meta: Arc::new(meta), run: Run::Whole(lin), hollow: PyOnceLock::new() }
    }

    /// A function made of a node's data and leaves.
    pub fn filled(hollow: &Bound<'_, PyHollow>, leaves: Vec<Py<PyAny>>) -> State {
        let state = State { meta: hollow.get().meta.clone(), run: Run::Filled(leaves), hollow: PyOnceLock::new() };
        let _ = state.hollow.set(hollow.py(), hollow.clone().unbind());
        state
    }

    /// What `f` makes of the program with its values.
    pub fn with<R>(&self, py: Python<'_>, f: impl FnOnce(&Linearized) -> PyResult<R>) -> PyResult<R> {
        match &self.run {
            Run::Whole(lin) => f(lin),
            Run::Filled(leaves) => {
                let hollow = self.hollow(py)?.get();
                let values = leaves.iter().map(|x| to_value(x.bind(py))).collect::<PyResult<Vec<_>>>()?;
                f(&with_values(&hollow.lin, &hollow.places, values))
            }
        }
    }

    /// The node's data.
    pub fn hollow(&self, py: Python<'_>) -> PyResult<&Py<PyHollow>> {
        self.hollow.get_or_try_init(py, || {
            let Run::Whole(lin) = &self.run else {
                return Err(error!(Internal, "a rebuilt linear function without its program")).py();
            };
            let (values, args) = arranged(lin, &self.meta.ids);
            let places: Vec<_> = values.into_iter().map(|(_, places)| places).collect();
            // never computed with: a call puts values there
            let holes = places.iter().map(|_| Value::Lit(Lit { scalar: Scalar::one(DType::F32), weak: false }));
            let lin = with_values(lin, &places, holes);
            Py::new(py, PyHollow { meta: self.meta.clone(), lin, places, args })
        })
    }

    /// The node's leaves.
    pub fn leaves(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        match &self.run {
            Run::Whole(lin) => {
                arranged(lin, &self.meta.ids).0.into_iter().map(|(v, _)| from_value(py, v.clone())).collect()
            }
            Run::Filled(leaves) => Ok(leaves.iter().map(|x| x.clone_ref(py)).collect()),
        }
    }

    /// For each argument its place among the leaves, if it is one.
    pub fn args(&self, py: Python<'_>) -> PyResult<Vec<Option<usize>>> {
        Ok(self.hollow(py)?.get().args.clone())
    }

    /// The traced values that it works around, for leak reports.
    pub fn tracers(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        match &self.run {
            Run::Whole(lin) => {
                let traced = kept(lin).filter(|(_, v)| matches!(v, Value::Tracer(_)));
                traced.map(|(_, v)| from_value(py, v.clone())).collect()
            }
            Run::Filled(_) => Ok(Vec::new()),
        }
    }
}
