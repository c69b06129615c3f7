//! `vmap`: axes for the arguments by prefix tree, one batched run, axes for the results.

use super::function::{Function, Leaves, call_user, result_values, rust, too_large, wrap_names};
use super::references;
use super::trees;
use crate::boundary;
use crate::errors::IntoPyResult;
use crate::fastcall::{Args, FastCall, Signature, Visit, new_callable};
use crate::tree::{self, TreeDef};
use crate::value::{from_value, to_value};
use ferrax_base::scopes::Scoped;
use ferrax_ir::Value;
use ferrax_transform::VmapAxis;
use ferrax_transform::batching::placed_axis;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyTuple};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A vectorized function.
struct Vmap {
    function: Function,
    in_axes: Py<PyAny>,
    out_axes: Py<PyAny>,
    /// `in_axes` is this one number.
    in_number: Option<i64>,
    /// `out_axes` is this one number.
    out_number: Option<i64>,
    axis_name: Option<Arc<str>>,
    axis_size: Option<usize>,
    /// The number of what the user says divides the axis.
    spread: u32,
    /// Values of registered types are leaves for it, and not to be taken apart.
    plain: bool,
}

/// Whether types are registered whose values `vmap` takes apart by functions of theirs.
static REGISTERED: AtomicBool = AtomicBool::new(false);

/// Says whether calls of mapped functions ask for values of registered types; see `ferrax/_vmappable.py`.
#[pyfunction]
fn use_vmappable_types(used: bool) {
    REGISTERED.store(used, Ordering::Relaxed);
}

/// Whether values of registered types are among a tree's.
#[cold]
fn holds_registered(tree: &Bound<'_, PyAny>) -> PyResult<bool> {
    tree.py().import("ferrax._vmappable")?.call_method1("has_vmappable", (tree,))?.is_truthy()
}

/// Whether entries for values of registered types are among those of `in_axes` or `out_axes`.
#[cold]
fn has_specs(axes: &Bound<'_, PyAny>) -> PyResult<bool> {
    axes.py().import("ferrax._vmappable")?.call_method1("has_specs", (axes,))?.is_truthy()
}

/// One axis of a prefix tree: a number or `None`.
fn axis(obj: &Bound<'_, PyAny>, what: &str) -> PyResult<Option<i64>> {
    if obj.is_none() {
        return Ok(None);
    }
    let number = if obj.is_instance_of::<PyBool>() { None } else { obj.extract::<i64>().ok() };
    number.map(Some).ok_or_else(|| {
        let kind = obj.get_type().name().map_or_else(|_| "?".to_owned(), |n| n.to_string());
        PyTypeError::new_err(format!(
            "vmap {what} must be an int, None, or (nested) container with those types as leaves, but got a leaf of type \
             {kind}"
        ))
    })
}

impl Vmap {
    fn in_axes(&self, args: &Args<'_, '_>, tree: &TreeDef, leaves: usize) -> PyResult<Vec<Option<i64>>> {
        if let Some(n) = self.in_number {
            return Ok(vec![Some(n); leaves]);
        }
        let py = args.py();
        let axes = self.in_axes.bind(py);
        let whole = match axes.cast::<PyTuple>() {
            Ok(t) if t.len() != args.len() => {
                return Err(PyValueError::new_err(format!(
                    "vmap in_axes must be an int, None, or a tuple of entries corresponding to the positional arguments \
                     passed to the function, but got len(in_axes)={}, len(args)={}",
                    t.len(),
                    args.len()
                )));
            }
            _ => axes.clone(),
        };
        let (arg_tree, kw_leaves) = trees::split_call(tree)?;
        let flat = tree::flatten_prefix(&whole, &arg_tree, true, "vmap in_axes")?;
        let mut out = flat.iter().map(|a| axis(a.bind(py), "in_axes")).collect::<PyResult<Vec<_>>>()?;
        // Keyword arguments are mapped over their leading axis.
        out.extend(std::iter::repeat_n(Some(0), kw_leaves));
        Ok(out)
    }

    fn dims(
        &self,
        py: Python<'_>,
        axes: &[Option<i64>],
        values: &[Option<Value>],
        tree: &TreeDef,
    ) -> PyResult<(Vec<Option<usize>>, usize)> {
        let mut dims = Vec::with_capacity(values.len());
        let mut size = self.axis_size;
        let mut uneven = false;
        for (a, v) in axes.iter().zip(values) {
            let (Some(a), Some(v)) = (a, v) else {
                dims.push(None);
                continue;
            };
            let rank = v.rank() as i64;
            let at = if *a < 0 { a + rank } else { *a };
            if at < 0 || at >= rank {
                return Err(self.too_few_axes(py, *a, dims.len(), v, tree));
            }
            let n = v.shape()[at as usize];
            uneven |= size.is_some_and(|s| s != n);
            size = size.or(Some(n));
            dims.push(Some(at as usize));
        }
        if uneven {
            return Err(self.uneven(py, &dims, values, tree));
        }
        match size {
            Some(n) => Ok((dims, n)),
            None if values.is_empty() => Err(PyValueError::new_err(format!(
                "vmap wrapped function must be passed at least one argument containing an array or axis_size must be \
                 specified, got {}, in the call of {}",
                self.nothing(py, tree),
                self.function.debug.describe()
            ))),
            None => Err(PyValueError::new_err(format!(
                "vmap must have at least one non-None value in in_axes or axis_size must be specified, for {}",
                self.function.debug.describe()
            ))),
        }
    }

    /// The name of leaf `i` in the caller's terms: `argument x`, or `kwargs['x']` of what was given by name.
    fn leaf_name(&self, py: Python<'_>, i: usize, tree: &TreeDef) -> String {
        match trees::leaf_path(py, tree, i) {
            Ok(path) if path.starts_with("[1]") => format!("kwargs{}", &path[3..]),
            _ => format!("argument {}", self.function.leaf_name(py, tree, &[], i)),
        }
    }

    /// A call without an array, as its arguments.
    #[cold]
    fn nothing(&self, py: Python<'_>, tree: &TreeDef) -> String {
        let call = tree::unflatten(py, tree, Leaves::new()).and_then(|c| c.extract::<(Py<PyAny>, Py<PyAny>)>(py));
        match call {
            Ok((args, kwargs)) => {
                let shown = |x: &Py<PyAny>| crate::shorten::repr(x.bind(py));
                format!("empty *args={} and **kwargs={}", shown(&args), shown(&kwargs))
            }
            Err(_) => "no arrays".into(),
        }
    }

    #[cold]
    fn too_few_axes(&self, py: Python<'_>, axis: i64, i: usize, v: &Value, tree: &TreeDef) -> PyErr {
        PyValueError::new_err(format!(
            "vmap was requested to map its argument along axis {axis}, which implies that its rank should be at least \
             {}, but is only {} (its shape is {}): {} of {}. Give None in in_axes for what is not mapped.",
            if axis < 0 { -axis } else { axis + 1 },
            v.rank(),
            ferrax_base::shape::Tuple(v.shape()),
            self.leaf_name(py, i, tree),
            self.function.debug.describe()
        ))
    }

    #[cold]
    fn uneven(&self, py: Python<'_>, dims: &[Option<usize>], values: &[Option<Value>], tree: &TreeDef) -> PyErr {
        let mut text = String::from("vmap got inconsistent sizes for array axes to be mapped:");
        if let Some(n) = self.axis_size {
            text += &format!("\n  * the `axis_size` argument was {n};");
        }
        // Sizes with how many axes have them, and the first leaf that does; what is rare is most likely wrong.
        let mut seen: Vec<(usize, usize, usize)> = Vec::new();
        for (i, (d, v)) in dims.iter().zip(values).enumerate() {
            let Some(n) = d.zip(v.as_ref()).map(|(d, v)| v.shape()[d]) else { continue };
            match seen.iter_mut().find(|s| s.0 == n) {
                Some(s) => s.1 += 1,
                None => seen.push((n, 1, i)),
            }
        }
        seen.sort_by_key(|s| std::cmp::Reverse(s.1));
        for (k, &(n, count, i)) in seen.iter().enumerate() {
            let (Some(d), Some(v)) = (dims[i], &values[i]) else { continue };
            let aval = v.aval().long_text();
            let place = format!("axis {d} of {} of type {aval};", self.leaf_name(py, i, tree));
            text += &match count {
                1 => format!("\n  * one axis had size {n}: {place}"),
                _ if k == 0 => format!("\n  * most axes ({count} of them) had size {n}, e.g. {place}"),
                _ => format!("\n  * some axes ({count} of them) had size {n}, e.g. {place}"),
            };
        }
        text.pop();
        PyValueError::new_err(format!("{text}\nThe function is {}.", self.function.debug.describe()))
    }

    fn out_axes(&self, py: Python<'_>, tree: &TreeDef, leaves: usize) -> PyResult<Vec<Option<i64>>> {
        if let Some(n) = self.out_number {
            return Ok(vec![Some(n); leaves]);
        }
        let flat = tree::flatten_prefix(self.out_axes.bind(py), tree, true, "vmap out_axes")?;
        flat.iter().map(|a| axis(a.bind(py), "out_axes")).collect()
    }

    /// Runs the function once for all. `special` is there where types are registered: it is set, and the call fails, when
    /// the function gives a value of one.
    fn run(&self, args: &Args<'_, '_>, special: Option<&Cell<bool>>) -> PyResult<Py<PyAny>> {
        let py = args.py();
        let mut leaves = Leaves::new();
        let tree = trees::flatten_call(args, &mut leaves)?;
        let axes = self.in_axes(args, &tree, leaves.len())?;
        let value = |(i, (l, a)): (usize, (&Py<PyAny>, &Option<i64>))| match a {
            _ if references::is_reference(l.bind(py)) => Err(references::used()),
            None => Ok(None),
            Some(_) => to_value(l.bind(py))
                .map(Some)
                .map_err(|e| too_large(py, e, || self.leaf_name(py, i, &tree), &self.function.debug)),
        };
        let values = leaves.iter().zip(&axes).enumerate().map(value).collect::<PyResult<Vec<Option<Value>>>>()?;
        let (dims, size) = self.dims(py, &axes, &values, &tree)?;
        let (dims, values): (Vec<_>, Vec<_>) = dims.into_iter().zip(values).filter_map(|(d, v)| Some((d, v?))).unzip();
        let mut axis = VmapAxis { spread: self.spread, ..VmapAxis::new(size, self.axis_name.clone()) };
        if super::explicit::in_use() {
            let mapped = dims.iter().zip(&values).filter_map(|(d, v)| Some(((*d)?, v.aval().spread)));
            axis.spread = super::explicit::of_mapped(py, mapped.collect(), self.spread)?;
        }
        let debug = &self.function.debug;
        let mut result = None;
        // The function sees what is not mapped as it is: numbers stay numbers.
        let call = |rows: &[Value]| {
            let _frame = Scoped::transform("vmap");
            let mut rows = rows.iter();
            let given = leaves.iter().zip(&axes).map(|(l, a)| match a {
                Some(_) => from_value(py, rows.next().expect("a value for each mapped leaf").clone()),
                None => Ok(l.clone_ref(py)),
            });
            let out = rust(given.collect::<PyResult<Leaves>>().and_then(|given| {
                let (args, kwargs) = trees::unflatten_call(py, &tree, given)?;
                call_user(self.function.fun.bind(py), args, kwargs.as_ref())
            }))?;
            if let Some(special) = special
                && rust(holds_registered(&out))?
            {
                special.set(true);
                return rust(Err(PyTypeError::new_err("the function gives a value that vmap takes apart by its type")));
            }
            let mut leaves = Leaves::new();
            let tree = rust(tree::flatten_into(&out, &mut leaves))?;
            let values = rust(result_values(py, &out, &leaves, debug))?;
            // tracers end with the trace
            let kept = leaves.into_iter().zip(&values).map(|(l, v)| (!matches!(v, Value::Tracer(_))).then_some(l));
            result = Some((kept.collect::<Vec<_>>(), tree));
            Ok(values)
        };
        let outs = ferrax_transform::vmap(debug.clone(), axis.clone(), &values, &dims, call).py()?;
        let (kept, out_tree) =
            result.ok_or_else(|| ferrax_base::error!(Internal, "{} was not called", debug.name)).py()?;
        let out_axes = self.out_axes(py, &out_tree, outs.len())?;
        let placed =
            outs.iter().zip(out_axes).zip(kept).enumerate().map(|(i, (((v, d), at), leaf))| match (d, at, leaf) {
                (None, None, Some(leaf)) => Ok(leaf),
                (Some(d), None, _) => Err(self.mapped_result(&tree::leaf_text(py, &out_tree, i)?, *d)),
                _ => from_value(py, placed_axis(v, *d, at, &axis).py()?),
            });
        tree::unflatten(py, &out_tree, placed.collect::<PyResult<Leaves>>()?)
    }

    /// The error of a result that is mapped over `axis`, where `out_axes` says that it is not.
    #[cold]
    fn mapped_result(&self, leaf: &str, axis: usize) -> PyErr {
        let named = self.axis_name.as_ref().map_or_else(String::new, |name| {
            format!("vmap has mapped output (axis_name={name}) but out_axes is None: ")
        });
        PyValueError::new_err(format!(
            "{named}at vmap out_axes{leaf}, got axis spec None but output was batched on axis {axis}"
        ))
    }

    /// Whether values of registered types are among the arguments, or the axes have entries for them.
    #[cold]
    fn maps_registered(&self, args: &Args<'_, '_>) -> PyResult<bool> {
        let py = args.py();
        let values: Vec<_> = args.positional().chain(args.keywords().map(|(_, value)| value)).collect();
        Ok(holds_registered(PyTuple::new(py, values)?.as_any())?
            || has_specs(self.in_axes.bind(py))?
            || has_specs(self.out_axes.bind(py))?)
    }

    /// The mapped function for arguments and results that are not arrays alone; see `ferrax/_vmappable.py`.
    #[cold]
    fn by_parts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let axes = (&self.in_axes, &self.out_axes, self.axis_name.as_deref(), self.axis_size, self.spread);
        py.import("ferrax._vmappable")?.call_method1("mapped", (&self.function.fun, axes))
    }
}

fn is_shape(leaf: &Bound<'_, PyAny>) -> bool {
    leaf.get_type().name().is_ok_and(|n| n == "ShapeDtypeStruct")
}

impl FastCall for Vmap {
    const TYPE_NAME: &'static std::ffi::CStr = c"ferrax.VmapFunction";

    fn call<'py>(&self, py: Python<'py>, args: Args<'_, 'py>) -> PyResult<Py<PyAny>> {
        let special = Cell::new(false);
        let registered = !self.plain && REGISTERED.load(Ordering::Relaxed);
        if registered && self.maps_registered(&args)? {
            return boundary::call(&self.by_parts(py)?, &args);
        }
        match self.run(&args, registered.then_some(&special)) {
            Err(_) if special.get() => boundary::call(&self.by_parts(py)?, &args),
            Err(e) if !self.plain && e.is_instance_of::<PyTypeError>(py) && trees::has_leaf(&args, is_shape) => {
                boundary::call(&self.by_parts(py)?, &args)
            }
            Err(e) if references::asks(py, &e) => {
                let axes = (&self.in_axes, &self.out_axes, self.axis_name.as_deref(), self.axis_size);
                let call = references::vmapped(py)?.call1((&self.function.fun, axes))?;
                boundary::call(&call, &args)
            }
            result => result,
        }
    }

    fn traverse(&self, visit: &mut Visit) {
        visit.object(&self.function.fun);
        visit.object(&self.in_axes);
        visit.object(&self.out_axes);
    }
}

/// A vectorized function; see `ferrax.vmap`.
#[pyfunction]
#[pyo3(signature = (fun, in_axes, out_axes, axis_name, axis_size, spread=0, plain=false))]
fn vmap(
    py: Python<'_>,
    fun: &Bound<'_, PyAny>,
    in_axes: Bound<'_, PyAny>,
    out_axes: Bound<'_, PyAny>,
    axis_name: Option<Bound<'_, PyAny>>,
    axis_size: Option<crate::value::SizeArg>,
    spread: u32,
    plain: bool,
) -> PyResult<Py<PyAny>> {
    let function = Function::new(fun, "vmap")?;
    let number = !in_axes.is_instance_of::<PyBool>() && in_axes.extract::<i64>().is_ok();
    let special = !plain && REGISTERED.load(Ordering::Relaxed) && has_specs(&in_axes)?;
    if !(in_axes.is_none() || number || special || in_axes.is_instance_of::<PyTuple>()) {
        return Err(PyTypeError::new_err(format!(
            "vmap in_axes must be an int, None, or a tuple of entries corresponding to the positional arguments passed \
             to the function, but got {}.",
            crate::shorten::repr(&in_axes)
        )));
    }
    let axis_name = axis_name.map(|n| n.str().map(|s| Arc::from(s.to_string()))).transpose()?;
    let vmap = Vmap {
        function,
        in_number: in_axes.extract().ok(),
        out_number: out_axes.extract().ok(),
        in_axes: in_axes.unbind(),
        out_axes: out_axes.unbind(),
        axis_name,
        axis_size: axis_size.map(|n| n.0),
        spread,
        plain,
    };
    let name = vmap.function.debug.name.clone();
    let mut doc = format!(
        "Vectorized version of {name}: its arguments have one axis more each, and {name} is applied to every entry along it."
    );
    if let Some(own) = fun.getattr_opt("__doc__")?.and_then(|d| d.extract::<String>().ok()) {
        doc += &format!("\n\nOriginal documentation:\n\n{own}");
    }
    let wrapper = new_callable(py, vmap, "vmap", &doc, Signature::Unknown)?;
    wrap_names(wrapper.bind(py), fun)?;
    wrapper.setattr(py, "__doc__", doc)?;
    Ok(wrapper)
}

/// Adds the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(use_vmappable_types, m)?)?;
    m.add_function(wrap_pyfunction!(vmap, m)?)
}
