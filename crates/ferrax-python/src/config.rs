//! The switches of `ferrax_base::config` for `python/ferrax/config.py`, which knows their names and defaults.

use ferrax_base::config::{self, Flag, Saved};
use ferrax_base::error;
use pyo3::PyTypeInfo;
use pyo3::exceptions::{PyRuntimeError, PyUserWarning};
use pyo3::prelude::*;
use pyo3::types::PyString;
use smallvec::SmallVec;
use std::ffi::CString;

/// The flags by the names that `config.py` uses.
pub const FLAGS: [(&str, Flag); 21] = [
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
    ("check_traced_indices", Flag::CheckTracedIndices),
    ("explain_cache_misses", Flag::ExplainCacheMisses),
    ("log_compiles", Flag::LogCompiles),
    ("no_tracing", Flag::NoTracing),
    ("async_dispatch", Flag::AsyncDispatch),
    ("watched", Flag::Watched),
    ("enable_checks", Flag::EnableChecks),
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

/// Whoever switches `check_where` hears of every site anew.
fn start_over(flag: Flag) {
    if flag == Flag::CheckWhere {
        ferrax_transform::where_check::forget();
    }
}

/// Sets a flag for the process.
#[pyfunction]
fn set_flag(name: &str, value: bool) -> PyResult<()> {
    let flag = find(name)?;
    start_over(flag);
    flag.set_global(value);
    Ok(())
}

/// Overrides a flag on this thread.
#[pyfunction]
fn enter_flag(name: &str, value: bool) -> PyResult<Token> {
    let flag = find(name)?;
    start_over(flag);
    Ok(Token(flag.set_local(Some(value))))
}

/// Sets the number that stands for the settings kept in Python, for the process.
#[pyfunction]
fn set_settings_number(number: u32) -> PyResult<()> {
    counted(number).map(config::set_host)
}

fn counted(number: u32) -> PyResult<u32> {
    if number > config::MAX_HOST {
        return Err(PyRuntimeError::new_err("too many combinations of settings in one process"));
    }
    Ok(number)
}

/// Overrides the number that stands for the settings kept in Python, on this thread.
#[pyfunction]
fn enter_settings_number(number: u32) -> PyResult<Token> {
    Ok(Token(config::set_host_local(Some(counted(number)?))))
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

/// Edits between two names (a byte put in, left out or replaced), if there are at most `limit`.
pub fn edits(a: &[u8], b: &[u8], limit: usize) -> Option<usize> {
    let start = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let (a, b) = (&a[start..], &b[start..]);
    let end = a.iter().rev().zip(b.iter().rev()).take_while(|(x, y)| x == y).count();
    let (a, b) = (&a[..a.len() - end], &b[..b.len() - end]);
    if a.len().abs_diff(b.len()) > limit {
        return None;
    }
    // Levenshtein's distance, row by row
    let mut row: SmallVec<[usize; 64]> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let best = (corner + usize::from(x != y)).min(row[j] + 1).min(row[j + 1] + 1);
            corner = std::mem::replace(&mut row[j + 1], best);
        }
        if row.iter().all(|&n| n > limit) {
            return None;
        }
    }
    Some(row[b.len()]).filter(|&n| n <= limit)
}

/// The one of `names` that is spelled most like `name`, if any is spelled almost like it.
#[pyfunction]
fn nearest_name<'py>(name: &str, names: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let mut limit = 1 + name.len() / 8;
    let mut found = None;
    for candidate in names.try_iter()? {
        let candidate = candidate?;
        let text = candidate.cast::<PyString>()?;
        if let Some(n) = edits(name.as_bytes(), text.to_str()?.as_bytes(), limit) {
            let worse = |old: &Bound<'py, PyAny>| n < limit || candidate.lt(old).unwrap_or(false);
            if found.as_ref().is_none_or(worse) {
                limit = n;
                found = Some(candidate);
            }
        }
    }
    Ok(found)
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
    m.add_function(wrap_pyfunction!(leave, m)?)?;
    m.add_function(wrap_pyfunction!(nearest_name, m)?)
}
