//! Types over explicit axes of a mesh: what the core asks the host of them, and how calls differ by them.
//!
//! While a mesh with such axes is in use, a function is traced anew for every way in which its arguments are divided. The
//! rules are the host's: `python/ferrax/sharding/_typed.py`.

use super::jaxpr::PyClosed;
use super::jit_cache::Signature;
use crate::aval::ShapedArray;
use crate::devices;
use crate::errors::carry;
use crate::sharded::any_object;
use crate::value::{from_value, to_value};
use ferrax::sharded::of_one;
use ferrax_base::config::{self, Flag, Saved};
use ferrax_base::source::{Making, Phase};
use ferrax_base::{Aval, Result};
use ferrax_ir::{Array, DeviceId, OpRef, Value, spread};
use pyo3::intern;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::cell::RefCell;

/// How each argument of a call is divided, as a number; empty where no mesh with explicit axes is in use.
pub type Places = SmallVec<[u32; 4]>;

/// Whether a mesh with explicit axes is in use on this thread.
#[inline]
pub fn in_use() -> bool {
    Flag::Explicit.get()
}

/// Whether one is.
#[pyfunction]
fn explicit_in_use() -> bool {
    in_use()
}

/// Says whether one is.
#[pyfunction]
fn enter_explicit(on: bool) {
    Flag::Explicit.set_local(on.then_some(true));
}

/// Calls a function whose result goes where its user says, so that its operations need not tell by themselves.
#[pyfunction]
fn making_placed<'py>(fun: &Bound<'py, PyAny>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let _making = placing(name);
    fun.call0()
}

/// Notes until dropped that what is made goes where its user says; arrays over explicit axes need no mesh in use for that.
fn placing(name: &str) -> Option<Making> {
    (in_use() || ferrax_ir::trace::is_eager()).then(|| Making::start(Phase::Placed, name))
}

/// A result where the user says, if the user does; `make` gives it.
pub fn placed<'py>(
    py: Python<'py>,
    sharding: Option<&Bound<'py, PyAny>>,
    name: &str,
    make: impl FnOnce() -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let Some(sharding) = sharding else { return make() };
    let made = {
        let _making = placing(name);
        make()?
    };
    py.import(intern!(py, "ferrax._out_sharding"))?.call_method1(intern!(py, "put"), (made, sharding, name))
}

/// How a call's arguments are divided, as far as a trace depends on it.
pub fn places(values: &[Value]) -> Places {
    if !in_use() {
        return Places::new();
    }
    values.iter().map(|v| v.aval().spread).collect()
}

/// How an array is divided, if a trace depends on it.
fn place(array: &Array) -> u32 {
    spread::typed(array.aval().clone(), array.device()).spread
}

/// Whether arrays are where a signature has them, with the settings in force or, where these are others, once the mesh of
/// the arrays is in use.
pub fn are_at(arrays: &[&Array], signature: &Signature, config: u64) -> bool {
    let inside = signature.config != config;
    if inside && settings_of(arrays.iter().copied(), config) != Some(signature.config) {
        return false;
    }
    let _looking = inside.then(|| Looking::start(signature.config));
    if !in_use() {
        return !arrays.iter().any(|a| on_explicit(a.device()));
    }
    let places = &signature.places;
    arrays.len() == places.len() && arrays.iter().zip(places).all(|(a, p)| place(a) == *p)
}

/// Whether a placement is over a mesh with explicit axes.
fn on_explicit(device: DeviceId) -> bool {
    // a type of more axes than any array has: the sharding fits it
    device.is_sharded() && spread::of_place(device, usize::from(u8::MAX)) != 0
}

/// A mesh in use for a call, until dropped.
pub struct InUse<'py>(Bound<'py, PyAny>);

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        let none = self.0.py().None();
        let left = self.0.call_method1(intern!(self.0.py(), "__exit__"), (&none, &none, &none));
        debug_assert!(left.is_ok(), "a mesh is left without an error");
    }
}

thread_local! {
    /// The settings in force once the mesh of a placement is in use, by those before.
    static ENTERED: RefCell<FxHashMap<(u64, DeviceId), u64>> = RefCell::default();
}

/// Entries of [`ENTERED`] at most.
const MOST_ENTERED: usize = 1024;

/// The settings with which calls on arrays are traced whose mesh is not in use and has explicit axes; none before the first
/// of them.
pub fn settings_of<'a>(mut arrays: impl Iterator<Item = &'a Array>, config: u64) -> Option<u64> {
    if in_use() || !ferrax_ir::trace::is_eager() {
        return None;
    }
    let device = arrays.find(|a| on_explicit(a.device()))?.device();
    ENTERED.with_borrow(|entered| entered.get(&(config, device)).copied())
}

/// The arrays among values.
pub fn among(values: &[Value]) -> impl Iterator<Item = &Array> {
    values.iter().filter_map(|v| if let Value::Array(a) = v { Some(a) } else { None })
}

/// Settings of [`settings_of`] in force until dropped, for looking at what was traced; the host knows nothing of them.
pub struct Looking(Saved);

impl Looking {
    /// From now on.
    pub fn start(settings: u64) -> Looking {
        let saved = Flag::Explicit.set_local(Some(true));
        config::set_host_local(Some(config::host_number(settings)));
        Looking(saved)
    }
}

impl Drop for Looking {
    fn drop(&mut self) {
        config::restore(self.0);
    }
}

/// Makes the mesh of arguments the one in use, where it has explicit axes and no mesh is in use.
pub fn mesh_of_arguments<'py>(py: Python<'py>, values: &[Value]) -> PyResult<Option<InUse<'py>>> {
    if in_use() || !ferrax_ir::trace::is_eager() {
        return Ok(None);
    }
    let Some(device) = among(values).map(Array::device).find(|d| on_explicit(*d)) else { return Ok(None) };
    let before = config::trace_key();
    let entered = module(py)?.call_method1(intern!(py, "mesh_in_use"), (any_object(py, device)?,))?;
    if entered.is_none() {
        return Ok(None);
    }
    ENTERED.with_borrow_mut(|all| {
        if all.len() >= MOST_ENTERED {
            all.clear();
        }
        all.insert((before, device), config::trace_key());
    });
    Ok(Some(InUse(entered)))
}

/// A number for what a type says of its axes: what divides each, the axes of the mesh that it is unreduced and reduced over,
/// and what the dialect `sdy` says.
#[pyfunction]
fn intern_spread(
    axes: Vec<Option<String>>,
    unreduced: Vec<String>,
    reduced: Vec<String>,
    sdy: (String, String),
) -> u32 {
    spread::intern(axes, spread::Due { unreduced, reduced }, sdy)
}

/// The type, divided as a number says.
#[pyfunction]
fn with_spread(aval: &ShapedArray, spread: u32) -> ShapedArray {
    ShapedArray(Aval { spread, ..aval.0.clone() })
}

/// The number of what divides axes that `vmap` maps, from the numbers of the types that have them. Errors where that
/// differs, or `given` says what divides them.
pub fn of_mapped(py: Python<'_>, mapped: Vec<(usize, u32)>, given: u32) -> PyResult<u32> {
    module(py)?.call_method1(intern!(py, "of_mapped"), (mapped, given))?.extract()
}

fn module(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import(intern!(py, "ferrax.sharding._typed"))
}

fn type_of(device: DeviceId, rank: usize) -> Result<u32> {
    Python::attach(|py| {
        let object = any_object(py, device)?;
        module(py)?.call_method1(intern!(py, "of_sharding"), (object, rank))?.extract()
    })
    .map_err(carry)
}

fn results(op: &OpRef, args: &[Aval], outs: &[Aval]) -> Result<Vec<u32>> {
    Python::attach(|py| {
        let program = of_one(op, args.iter().cloned().map(Ok), outs);
        let program = Py::new(py, PyClosed::new(program.into()))?;
        module(py)?.call_method1(intern!(py, "results"), (program,))?.extract()
    })
    .map_err(carry)
}

fn moved(number: u32, at: usize, more: Option<u32>) -> Result<u32> {
    Python::attach(|py| module(py)?.call_method1(intern!(py, "moved"), (number, at, more))?.extract()).map_err(carry)
}

fn settled(v: &Value, number: u32) -> Result<Value> {
    Python::attach(|py| {
        let x = from_value(py, v.clone())?;
        to_value(&module(py)?.call_method1(intern!(py, "settled"), (x, number))?)
    })
    .map_err(carry)
}

fn place_of(number: u32) -> Result<Option<DeviceId>> {
    Python::attach(|py| devices::parse(&module(py)?.call_method1(intern!(py, "place_of"), (number,))?)).map_err(carry)
}

/// Adds the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(enter_explicit, m)?)?;
    m.add_function(wrap_pyfunction!(explicit_in_use, m)?)?;
    m.add_function(wrap_pyfunction!(making_placed, m)?)?;
    spread::set_host(spread::Host { placed: type_of, results, moved, settled, place: place_of });
    m.add_function(wrap_pyfunction!(intern_spread, m)?)?;
    m.add_function(wrap_pyfunction!(with_spread, m)?)
}
