//! The switches of `ferrax_base::config` for `python/ferrax/config.py`, which knows their names and defaults.

use ferrax_base::config::{self, Flag, Saved};
use ferrax_base::error;
use pyo3::PyTypeInfo;
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use std::ffi::CString;

/// The flags by the names that `config.py` uses.
pub const FLAGS: [(&str, Flag); 17] = [
    ("x64", Flag::X64),
    ("disable_jit", Flag::DisableJit),
    ("debug_nans", Flag::DebugNans),
    ("debug_infs", Flag::DebugInfs),
    ("check_tracer_leaks", Flag::CheckTracerLeaks),
    ("strict_numerics", Flag::StrictNumerics),
    ("safe_where", Flag::SafeWhere),
    ("check_where", Flag::CheckWhere),
    ("no_retrace", Flag::NoRetrace),
    ("enable_custom_prng", Flag::EnableCustomPrng),
    ("rank_promotion_raise", Flag::RankPromotionRaise),
    ("rank_promotion_warn", Flag::RankPromotionWarn),
    ("strict_promotion", Flag::StrictPromotion),
    ("check_indices", Flag::CheckIndices),
    ("explain_cache_misses", Flag::ExplainCacheMisses),
    ("log_compiles", Flag::LogCompiles),
    ("no_tracing", Flag::NoTracing),
];

fn find(name: &str) -> PyResult<Flag> {
    let found = FLAGS.iter().find(|(n, _)| *n == name).map(|(_, f)| *f);
    found.ok_or_else(|| pyo3::exceptions::PyKeyError::new_err(format!("there is no flag '{name}'")))
}

/// What to restore at the end of a `with` block.
#[pyclass(frozen, module = "ferrax", name = "_Saved")]
struct Token(Saved);

/// Whether a flag is set on this thread.
#[pyfunction]
fn flag(name: &str) -> PyResult<bool> {
    Ok(find(name)?.get())
}

/// Sets a flag for the process.
#[pyfunction]
fn set_flag(name: &str, value: bool) -> PyResult<()> {
    find(name)?.set_global(value);
    Ok(())
}

/// Overrides a flag on this thread.
#[pyfunction]
fn enter_flag(name: &str, value: bool) -> PyResult<Token> {
    Ok(Token(find(name)?.set_local(Some(value))))
}

/// Sets the number that stands for the settings kept in Python, for the process.
#[pyfunction]
fn set_settings_number(number: u32) {
    config::set_host(number);
}

/// Overrides the number that stands for the settings kept in Python, on this thread.
#[pyfunction]
fn enter_settings_number(number: u32) -> Token {
    Token(config::set_host_local(Some(number)))
}

/// Undoes `enter_flag` or `enter_settings_number`.
#[pyfunction]
fn leave(token: &Token) {
    config::restore(token.0);
}

/// Shows a warning of Rust code as Python's.
fn warn(text: &str) -> ferrax_base::Result<()> {
    Python::attach(|py| {
        let text = CString::new(text).map_err(|_| error!(Internal, "a warning with a NUL in it"))?;
        PyErr::warn(py, &PyUserWarning::type_object(py), &text, 1).map_err(crate::errors::carry)
    })
}

/// Adds the functions of this file to the extension module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    ferrax_base::warning::set_warn(warn);
    m.add_class::<Token>()?;
    m.add_function(wrap_pyfunction!(flag, m)?)?;
    m.add_function(wrap_pyfunction!(set_flag, m)?)?;
    m.add_function(wrap_pyfunction!(enter_flag, m)?)?;
    m.add_function(wrap_pyfunction!(set_settings_number, m)?)?;
    m.add_function(wrap_pyfunction!(enter_settings_number, m)?)?;
    m.add_function(wrap_pyfunction!(leave, m)?)
}
