//! Why a call of a jitted function had to be traced, in the names of its arguments.
//!
//! The new signature is compared with those the function has programs for; the one with the fewest differences is
//! told. A function that has none may still be known: another function object with the same code (a `lambda` or a bound
//! method made anew for every call) or the same function under other options of `jit`.
//!
//! Read next: [`super::jit_cache`] for what a signature is.

use super::function::Function;
use super::jit_cache::{Key, Options, Programs, other_programs};
use super::trees;
use crate::errors::Class;
use ferrax_base::Aval;
use ferrax_base::config::{self, Flag};
use ferrax_cache::{Difference, Explain, Miss, explain::nearest};
use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// How often functions with this name and place were traced.
static TRACED: Mutex<Option<FxHashMap<String, u32>>> = Mutex::new(None);

/// Reports a call that must be traced, where a setting asks for it; an error under `no_retrace`.
pub fn on_miss(
    py: Python<'_>,
    function: &Function,
    options: &Options,
    programs: &Arc<Programs>,
    key: &Key,
) -> PyResult<()> {
    let name = function.debug.describe();
    let seen = {
        let mut table = TRACED.lock().unwrap_or_else(PoisonError::into_inner);
        let count = table.get_or_insert_default().entry(name.clone()).or_default();
        *count += 1;
        *count > 1
    };
    if Flag::NoTracing.get() {
        return Err(PyRuntimeError::new_err(format!("re-tracing function {name} for `jit`, but 'no_tracing' is set")));
    }
    let (strict, log) = (Flag::NoRetrace.get() && seen, Flag::ExplainCacheMisses.get());
    if !strict && !log {
        return Ok(());
    }
    let why = why(py, function, options, programs, key, seen);
    if strict {
        let text = format!(
            "{name} is traced again under no_retrace: {why}.\nKeep what changed the same from call to call, mark what \
             must change as traced, or leave the no_retrace block for the first call of a new kind."
        );
        return Err(Class::Retrace.error(py, text));
    }
    log_warning(py, &format!("TRACING CACHE MISS of {name}: {why}"))
}

/// Says on the log that a function is compiled.
pub fn on_compile(py: Python<'_>, function: &Function, key: &Key) -> PyResult<()> {
    let types: Vec<String> = key.signature.avals.iter().map(Aval::long_text).collect();
    log_warning(py, &format!("Compiling {} with argument types [{}]", function.debug.describe(), types.join(", ")))
}

fn log_warning(py: Python<'_>, text: &str) -> PyResult<()> {
    let logger = py.import(intern!(py, "logging"))?.call_method1(intern!(py, "getLogger"), ("ferrax.jit",))?;
    logger.call_method1(intern!(py, "warning"), ("%s", text))?;
    Ok(())
}

fn why(
    py: Python<'_>,
    function: &Function,
    options: &Options,
    programs: &Arc<Programs>,
    key: &Key,
    seen: bool,
) -> String {
    let entries = programs.entries();
    match nearest(key, entries.iter().map(|e| &e.key)) {
        Miss::First => {}
        Miss::Known => return "its program was dropped to make room; raise the limit of the cache".to_owned(),
        miss @ Miss::Differs(_) => return miss.to_string(),
    }
    if programs.traced() > 1 {
        return "its programs were dropped (clear_cache, or the limit of the cache)".to_owned();
    }
    let others = other_programs(function.fun.bind(py), programs);
    if let Some((theirs, _)) = others.iter().find(|(_, p)| p.counts().entries > 0) {
        return option_differences(theirs, options);
    }
    if !seen {
        return "it is called for the first time".to_owned();
    }
    if function.fun.bind(py).getattr_opt("__self__").ok().flatten().is_some() {
        return "this is another bound method of the same function. Each access of `obj.method` makes a new object: jit \
                it once and keep the result, or decorate the method in its class"
            .to_owned();
    }
    "this is another function object with the same code. A function or lambda that is defined, or jitted through a new \
     wrapper, inside a loop is new each time: define it once outside"
        .to_owned()
}

fn option_differences(was: &Options, is: &Options) -> String {
    let mut found = Vec::new();
    let mut row = |name: &str, was: String, is: String| {
        if was != is {
            found.push(Difference::new(format!("jit's {name}"), was, is).to_string());
        }
    };
    row("static_argnums", format!("{:?}", was.static_argnums), format!("{:?}", is.static_argnums));
    row("static_argnames", format!("{:?}", was.static_argnames), format!("{:?}", is.static_argnames));
    row("donate_argnums", format!("{:?}", was.donate_argnums), format!("{:?}", is.donate_argnums));
    row("donate_argnames", format!("{:?}", was.donate_argnames), format!("{:?}", is.donate_argnames));
    row("donate", format!("{:?}", donate(was)), format!("{:?}", donate(is)));
    row("inline", was.inline.to_string(), is.inline.to_string());
    found.join("; ")
}

fn donate(options: &Options) -> &'static str {
    if options.must_donate { "must" } else { "may" }
}

impl Explain for Key {
    fn differences(&self, known: &Key) -> Vec<Difference> {
        Python::attach(|py| {
            let mut out = Vec::new();
            self.static_differences(py, known, &mut out);
            // without a structure in common, leaves have no counterpart
            match self.tree_differences(py, known, &mut out) {
                Ok(true) => self.aval_differences(py, known, &mut out),
                Ok(false) => {}
                Err(e) => out.push(Difference::new("structure of the arguments", "another", e)),
            }
            setting_differences(py, known.signature.config, self.signature.config, &mut out);
            out
        })
    }
}

impl Key {
    /// The parameter that a static argument is for.
    pub fn static_name(&self, py: Python<'_>, label: &str) -> String {
        match label.parse() {
            Ok(position) => self.params.name(py, position),
            Err(_) => label.to_owned(),
        }
    }

    /// Adds how the structures of the arguments differ; whether they are the same.
    fn tree_differences(&self, py: Python<'_>, known: &Key, out: &mut Vec<Difference>) -> PyResult<bool> {
        if self.tree.equals(py, &known.tree)? {
            return Ok(true);
        }
        let (now, then) =
            (trees::arguments(py, &self.tree, &self.params)?, trees::arguments(py, &known.tree, &known.params)?);
        for (name, tree) in &now {
            match then.iter().find(|(n, _)| n == name) {
                None => out.push(Difference::new(format!("argument {name}"), "not given", "given")),
                Some((_, old)) if !tree.equals(py, old)? => {
                    let what = format!("argument {name}: structure");
                    out.push(Difference::new(what, trees::display(py, old), trees::display(py, tree)));
                }
                Some(_) => {}
            }
        }
        for (name, _) in then.iter().filter(|(n, _)| !now.iter().any(|(m, _)| m == n)) {
            out.push(Difference::new(format!("argument {name}"), "given", "not given"));
        }
        if out.is_empty() {
            let texts = (trees::display(py, &known.tree), trees::display(py, &self.tree));
            out.push(Difference::new("the way of passing arguments", texts.0, texts.1));
        }
        Ok(false)
    }

    fn aval_differences(&self, py: Python<'_>, known: &Key, out: &mut Vec<Difference>) {
        let names = trees::argument_names(py, &self.tree, &self.params).unwrap_or_default();
        let pairs = self.signature.avals.iter().zip(&known.signature.avals);
        for (i, (now, then)) in pairs.enumerate().filter(|(_, (a, b))| a != b) {
            let name = names.get(i).cloned().unwrap_or_else(|| format!("leaf {i}"));
            if now.dtype != then.dtype {
                out.push(Difference::new(format!("argument {name}: dtype"), then.dtype, now.dtype));
            }
            if now.shape != then.shape {
                let text = |s: &[usize]| ferrax_base::shape::Tuple(s).to_string();
                out.push(Difference::new(format!("argument {name}: shape"), text(&then.shape), text(&now.shape)));
            }
            if now.weak != then.weak {
                out.push(Difference::new(format!("argument {name}: weak_type"), then.weak, now.weak));
            }
        }
    }

    fn static_differences(&self, py: Python<'_>, known: &Key, out: &mut Vec<Difference>) {
        let (now, then) = (&self.signature.statics, &known.signature.statics);
        let name = |label: &str| self.static_name(py, label);
        let text = |v: &Py<PyAny>| v.bind(py).repr().map_or_else(|_| "?".to_owned(), |r| r.to_string());
        for s in now {
            match then.iter().find(|t| t.label == s.label) {
                None => out.push(Difference::new(
                    format!("static argument {}", name(&s.label)),
                    "not given",
                    text(&s.value),
                )),
                Some(t) if !t.equals(py, s) => {
                    let what = format!("static argument {}", name(&s.label));
                    let (was, mut is) = (text(&t.value), text(&s.value));
                    if was == is {
                        is += ", an object that is not equal to it (does its class define __eq__ and __hash__?)";
                    }
                    out.push(Difference::new(what, was, is));
                }
                Some(_) => {}
            }
        }
        for t in then.iter().filter(|t| !now.iter().any(|s| s.label == t.label)) {
            let what = format!("static argument {}", name(&t.label));
            out.push(Difference::new(what, text(&t.value), "not given"));
        }
    }
}

fn setting_differences(py: Python<'_>, was: u64, is: u64, out: &mut Vec<Difference>) {
    for (name, flag) in crate::config::FLAGS {
        let bit = |bits: u64| bits >> flag as u64 & 1 == 1;
        if bit(was) != bit(is) {
            out.push(Difference::new(format!("setting {name}"), bit(was), bit(is)));
        }
    }
    let (was, is) = (config::host_number(was), config::host_number(is));
    if was == is {
        return;
    }
    let rows = py
        .import(intern!(py, "ferrax.config"))
        .and_then(|m| m.call_method1(intern!(py, "_number_differences"), (was, is)))
        .and_then(|rows| rows.extract::<Vec<(String, String, String)>>());
    match rows {
        Ok(rows) => {
            out.extend(rows.into_iter().map(|(name, was, is)| Difference::new(format!("setting {name}"), was, is)));
        }
        Err(_) => out.push(Difference::new("settings", was, is)),
    }
}
