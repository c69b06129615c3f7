//! Keys and random bits.

use super::args::listed;
use crate::errors::IntoPyResult;
use crate::value::{PyValue, ShapeArg};
use ferrax_ops::rng as ops;
use pyo3::prelude::*;

#[pyfunction]
fn random_seed(seeds: PyValue) -> PyResult<PyValue> {
    ops::random_seed(&seeds.0).py().map(PyValue)
}

#[pyfunction]
fn random_wrap(base_arr: PyValue) -> PyResult<PyValue> {
    ops::random_wrap(&base_arr.0).py().map(PyValue)
}

#[pyfunction]
fn random_unwrap(keys: PyValue) -> PyResult<PyValue> {
    ops::random_unwrap(&keys.0).py().map(PyValue)
}

#[pyfunction]
fn random_clone(keys: PyValue) -> PyResult<PyValue> {
    ops::random_clone(&keys.0).py().map(PyValue)
}

#[pyfunction]
fn random_bits(keys: PyValue, bit_width: usize, shape: ShapeArg) -> PyResult<PyValue> {
    ops::random_bits(&keys.0, bit_width, &shape.0).py().map(PyValue)
}

#[pyfunction]
fn random_split(keys: PyValue, shape: ShapeArg) -> PyResult<PyValue> {
    ops::random_split(&keys.0, &shape.0).py().map(PyValue)
}

#[pyfunction]
fn random_fold_in(keys: PyValue, msgs: PyValue) -> PyResult<PyValue> {
    ops::random_fold_in(&keys.0, &msgs.0).py().map(PyValue)
}

#[pyfunction]
fn threefry2x32(k0: PyValue, k1: PyValue, x0: PyValue, x1: PyValue) -> PyResult<Vec<PyValue>> {
    ops::threefry2x32(&k0.0, &k1.0, &x0.0, &x1.0).py().map(listed)
}

/// Adds the functions of this family.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(random_seed, m)?)?;
    m.add_function(wrap_pyfunction!(random_wrap, m)?)?;
    m.add_function(wrap_pyfunction!(random_unwrap, m)?)?;
    m.add_function(wrap_pyfunction!(random_clone, m)?)?;
    m.add_function(wrap_pyfunction!(random_bits, m)?)?;
    m.add_function(wrap_pyfunction!(random_split, m)?)?;
    m.add_function(wrap_pyfunction!(random_fold_in, m)?)?;
    m.add_function(wrap_pyfunction!(threefry2x32, m)?)
}
