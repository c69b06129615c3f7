//! Why a call of a jitted function had to be traced, in the names of its arguments.
//!
//! The new signature is compared with those the function has programs for; the one with the fewest differences is
//! told. A function that has none may still be known: another function object with the same code (a `lambda` or a bound
//! method made anew for every call) or the same function under other options of `jit`. Texts are bounded, whatever the
//! size of the arguments.
//!
//! Read next: [`super::jit_cache`] for what a signature is, [`super::held`] for what a function holds.

use super::function::Function;
use super::held::Held;
use super::jit_cache::{Key, Options, Programs, other_programs};
use super::statics::Static;
use super::trees::{self, Argument};
use crate::errors::Class;
use crate::shorten;
use crate::tree::{Place, part};
use ferrax_base::config::{self, Flag};
use ferrax_base::{Aval, Source};
use ferrax_cache::{Difference, Explain, Miss, explain::nearest};
use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// What the functions of a name and place held when one of them was last traced.
static TRACED: Mutex<Option<FxHashMap<String, Held>>> = Mutex::new(None);

/// Names of which that is known: a program that makes functions without end loses what was known of others.
const MOST: usize = 1 << 12;

fn traced() -> MutexGuard<'static, Option<FxHashMap<String, Held>>> {
    TRACED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reports a call that must be traced, where a setting asks for it; an error under `no_retrace`.
pub fn on_miss(
    py: Python<'_>,
    function: &Function,
    options: &Options,
    programs: &Arc<Programs>,
    key: &Key,
) -> PyResult<()> {
    let name = function.debug.describe();
    if Flag::NoTracing.get() {
        return Err(PyRuntimeError::new_err(format!("re-tracing function {name} for `jit`, but 'no_tracing' is set")));
    }
    let now = Held::of(function.fun.bind(py));
    let before = traced().get_or_insert_default().remove(&name);
    let (strict, log) = (Flag::NoRetrace.get() && before.is_some(), Flag::ExplainCacheMisses.get());
    let why =
        if strict || log { why(py, function, options, programs, key, before.as_ref(), &now) } else { String::new() };
    // what another thread has noted meanwhile is dropped after the lock is given back
    let noted = if strict { before.unwrap_or(now) } else { now };
    let gone = note(traced().get_or_insert_default(), name.clone(), noted);
    drop(gone);
    if !strict && !log {
        return Ok(());
    }
    let place = Source::here().location().map(|at| format!("{}:{}", at.file, at.line));
    if !strict {
        let place = place.map(|place| format!(", called at {place}")).unwrap_or_default();
        let words = words(py, function, programs, key, &why);
        return log_warning(py, &format!("TRACING CACHE MISS of {name}{place}: {why}\n{words}"));
    }
    let place = place.map(|place| format!("\nThe call is at {place}.")).unwrap_or_default();
    let text = format!(
        "{name} is traced again under no_retrace: {why}.{place}\nKeep what changed the same from call to call, mark what \
         must change as traced, or leave the no_retrace block for the first call of a new kind."
    );
    Err(Class::Retrace.error(py, text))
}

/// Notes what a function held; gives what must be dropped.
fn note(known: &mut FxHashMap<String, Held>, name: String, held: Held) -> [Option<Held>; 2] {
    let other = if known.len() < MOST { None } else { known.keys().next().cloned() };
    [other.and_then(|other| known.remove(&other)), known.insert(name, held)]
}

/// What is said of a function's way from Python to a program: as warnings under `jax_log_compiles`, else where its logger
/// shows what is for debugging; and to listeners of `monitoring`.
pub struct Log {
    level: Option<&'static str>,
    listeners: Option<Py<PyAny>>,
    begun: Instant,
}

impl Log {
    /// The log, when anybody reads it.
    pub fn start(py: Python<'_>) -> PyResult<Option<Log>> {
        let level = if Flag::LogCompiles.get() {
            Some("warning")
        } else {
            logger(py)?.call_method1(intern!(py, "isEnabledFor"), (10,))?.is_truthy()?.then_some("debug")
        };
        // functions that others call are parts of these
        let listeners = if ferrax_ir::trace::is_eager() { listeners(py)? } else { None };
        Ok((level.is_some() || listeners.is_some()).then(|| Log { level, listeners, begun: Instant::now() }))
    }

    /// Says that a function was traced, and what is compiled.
    pub fn traced(&self, py: Python<'_>, function: &Function, key: &Key) -> PyResult<()> {
        let (name, place) = (&function.debug.name, function.debug.describe());
        let types: Vec<String> = key.signature.avals.iter().map(Aval::long_text).collect();
        let took = self.begun.elapsed().as_secs_f64();
        self.tell(py, "/jax/core/compile/jaxpr_trace_duration", took, name)?;
        self.say(py, &format!("Finished tracing {name} for jit in {took:.9} sec"))?;
        let place = place.strip_prefix(&**name).unwrap_or_default();
        self.say(py, &format!("Compiling jit({name}){place} with argument types [{}]", types.join(", ")))
    }

    /// Says that it was compiled, in the words that readers of logs look for.
    pub fn compiled(&self, py: Python<'_>, function: &Function, since: Instant) -> PyResult<()> {
        let (name, took) = (&function.debug.name, since.elapsed().as_secs_f64());
        self.tell(py, "/jax/core/compile/backend_compile_duration", took, &format!("jit({name})"))?;
        self.say(py, &format!("Finished XLA compilation of jit({name}) in {took:.9} sec"))
    }

    fn say(&self, py: Python<'_>, text: &str) -> PyResult<()> {
        let Some(level) = self.level else { return Ok(()) };
        logger(py)?.call_method1(level, ("%s", text)).map(drop)
    }

    fn tell(&self, py: Python<'_>, event: &str, seconds: f64, name: &str) -> PyResult<()> {
        let Some(listeners) = &self.listeners else { return Ok(()) };
        listeners.call_method1(py, intern!(py, "took"), (event, seconds, name)).map(drop)
    }
}

/// The module `monitoring`, where somebody listens to durations.
fn listeners(py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
    let modules = py.import(intern!(py, "sys"))?.getattr(intern!(py, "modules"))?;
    let module = modules.call_method1(intern!(py, "get"), (intern!(py, "ferrax.monitoring"),))?;
    let listened = !module.is_none() && module.call_method0(intern!(py, "somebody_listens"))?.is_truthy()?;
    Ok(listened.then(|| module.unbind()))
}

fn logger(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    py.import(intern!(py, "ferrax._logging"))?.call_method1(intern!(py, "logger"), ("ferrax.jit",))
}

fn log_warning(py: Python<'_>, text: &str) -> PyResult<()> {
    logger(py)?.call_method1(intern!(py, "warning"), ("%s", text)).map(drop)
}

fn why(
    py: Python<'_>,
    function: &Function,
    options: &Options,
    programs: &Arc<Programs>,
    key: &Key,
    before: Option<&Held>,
    now: &Held,
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
    match before {
        None => "it is called for the first time".to_owned(),
        Some(before) => now.compared_with(py, before),
    }
}

/// Why a program was not found, in the words that JAX has for it: programs look for these in logs.
fn words(py: Python<'_>, function: &Function, programs: &Programs, key: &Key, why: &str) -> String {
    let place = function.debug.place.as_deref().map(|place| format!(" defined at {place}")).unwrap_or_default();
    let name = &function.debug.name;
    let entries = programs.entries();
    let Some(known) = entries.iter().map(|e| &e.key).min_by_key(|known| key.distance(known)) else {
        let again = if why.starts_with("this is another") {
            "\n  but seen another function defined on the same line; maybe the function is\n  being re-defined repeatedly, \
             preventing caching?"
        } else {
            ""
        };
        let id = function.fun.as_ptr() as usize;
        return format!("  never seen function:\n    {name} id={id}{place}{again}");
    };
    let (is, was) = (&key.signature, &known.signature);
    let mut text =
        format!("  for {name}{place}\n  all previously seen cache keys differ. For the closest previous key:");
    if !key.tree.equals(py, &known.tree).unwrap_or(false) || is.statics.len() != was.statics.len() || {
        let known = |s: &Static| was.statics.iter().any(|t| s.label == t.label && t.equals(py, s));
        !is.statics.iter().all(known)
    } {
        text += "\n  different input pytree";
    } else if is.avals != was.avals {
        text += "\n  different input types:";
        let typed = |a: &Aval, tells: bool| {
            let weak =
                if tells { format!("{{weak_type={}}}", if a.weak { "True" } else { "False" }) } else { String::new() };
            format!("{}{weak}", a.with_weak(false))
        };
        let names = trees::argument_names(py, &key.tree, &key.params).unwrap_or_default();
        for ((i, is), was) in is.avals.iter().enumerate().zip(&was.avals).filter(|((_, a), b)| a != b) {
            let weak = is.weak != was.weak;
            let link = if weak { ": https://docs.jax.dev/en/latest/type_promotion.html#weak-types" } else { "" };
            let name = names.get(i).map_or("", String::as_str);
            text += &format!("\n  * at {name}, now {} and before {}{link}", typed(is, weak), typed(was, weak));
        }
    }
    if is.config != was.config {
        text += "\n  Tracing context doesn't match, e.g. due to config or context manager.";
        for (name, was, is) in changed_settings(py, was.config, is.config) {
            let [was, is] = [was, is].map(|value| value.trim_matches('\'').to_owned());
            text += &format!("\n  * {name} differs: now {is} and before {was}");
        }
    }
    text
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
    row("compiler_options", format!("{:?}", was.compiler_options), format!("{:?}", is.compiler_options));
    found.join("; ")
}

fn donate(options: &Options) -> &'static str {
    if options.must_donate { "must" } else { "may" }
}

impl Explain for Key {
    fn distance(&self, known: &Key) -> usize {
        let (a, b) = (&self.signature, &known.signature);
        let avals = a.avals.iter().zip(&b.avals).map(|(a, b)| {
            usize::from(a.dtype != b.dtype) + usize::from(a.shape != b.shape) + usize::from(a.weak != b.weak)
        });
        let avals = avals.sum::<usize>() + a.avals.len().abs_diff(b.avals.len());
        let settings = (a.config ^ b.config).count_ones() as usize;
        Python::attach(|py| {
            let tree = usize::from(!self.tree.equals(py, &known.tree).unwrap_or(false));
            let new = a.statics.iter().filter(|s| !b.statics.iter().any(|t| s.label == t.label && t.equals(py, s)));
            avals + settings + tree + new.count().max(b.statics.len().saturating_sub(a.statics.len()))
        })
    }

    fn differences(&self, known: &Key) -> Vec<Difference> {
        Python::attach(|py| {
            let mut out = Vec::new();
            self.static_differences(py, known, &mut out);
            if let Err(e) = self.argument_differences(py, known, &mut out) {
                out.push(Difference::told(format!("the arguments cannot be compared: {e}")));
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

    /// Adds how the arguments differ: which there are, how they are passed, their structures, the types of their leaves.
    fn argument_differences(&self, py: Python<'_>, known: &Key, out: &mut Vec<Difference>) -> PyResult<()> {
        let now = trees::arguments(py, &self.tree, &self.params)?;
        let then = trees::arguments(py, &known.tree, &known.params)?;
        for argument in &now {
            let name = &argument.name;
            let Some(old) = then.iter().find(|a| a.name == *name) else {
                out.push(Difference::new(format!("argument {name}"), "not given", "given"));
                continue;
            };
            if old.by_keyword != argument.by_keyword {
                out.push(passed(&format!("argument {name}"), old.by_keyword));
            }
            if argument.tree.equals(py, &old.tree)? {
                self.aval_differences(py, known, argument, old, out)?;
                continue;
            }
            let parted = part(py, &old.tree, &argument.tree, name)?;
            out.extend(
                parted.lines(|place| format!("argument {name}: {}", told(place))).into_iter().map(Difference::told),
            );
        }
        for old in then.iter().filter(|a| !now.iter().any(|b| a.name == b.name)) {
            out.push(Difference::new(format!("argument {}", old.name), "given", "not given"));
        }
        Ok(())
    }

    /// Adds how the types of the leaves of an argument differ from those of one with the same structure.
    fn aval_differences(
        &self,
        py: Python<'_>,
        known: &Key,
        now: &Argument,
        then: &Argument,
        out: &mut Vec<Difference>,
    ) -> PyResult<()> {
        let of = |key: &Key, argument: &Argument| -> Vec<Aval> {
            key.signature.avals.iter().skip(argument.first_leaf).take(argument.tree.num_leaves()).cloned().collect()
        };
        for (i, (is, was)) in of(self, now).iter().zip(&of(known, then)).enumerate().filter(|(_, (a, b))| a != b) {
            let name = format!("argument {}{}", now.name, crate::tree::leaf_text(py, &now.tree, i)?);
            if is.dtype != was.dtype {
                out.push(Difference::new(format!("{name}: dtype"), was.dtype, is.dtype));
            }
            if is.shape != was.shape {
                let text = |s: &[usize]| ferrax_base::shape::Tuple(s).to_string();
                out.push(Difference::new(format!("{name}: shape"), text(&was.shape), text(&is.shape)));
            }
            if is.weak != was.weak {
                out.push(Difference::new(format!("{name}: weak_type"), was.weak, is.weak));
            }
        }
        Ok(())
    }

    fn static_differences(&self, py: Python<'_>, known: &Key, out: &mut Vec<Difference>) {
        // a label is a position or a keyword; both have the parameter's name
        let named = |key: &Key, s: &Static| match s.label.parse() {
            Ok(position) => (key.params.name(py, position), false),
            Err(_) => (s.label.clone(), true),
        };
        let text = |s: &Static| shorten::repr(s.value.bind(py));
        let old: Vec<_> = known.signature.statics.iter().map(|t| (named(known, t), t)).collect();
        let new: Vec<_> = self.signature.statics.iter().map(|s| (named(self, s), s)).collect();
        for ((name, by_keyword), s) in &new {
            let what = format!("static argument {name}");
            let Some(((_, was_by_keyword), t)) = old.iter().find(|((n, _), _)| n == name) else {
                out.push(Difference::new(what, "not given", text(s)));
                continue;
            };
            if was_by_keyword != by_keyword {
                out.push(passed(&what, *was_by_keyword));
            }
            if !t.equals(py, s) {
                let (was, mut is) = (text(t), text(s));
                is += hint(t.value.bind(py), s.value.bind(py), was == is);
                out.push(Difference::new(what, was, is));
            }
        }
        for ((name, _), t) in old.iter().filter(|((n, _), _)| !new.iter().any(|((m, _), _)| n == m)) {
            out.push(Difference::new(format!("static argument {name}"), text(t), "not given"));
        }
    }
}

/// An argument that was passed in one way and is passed in the other.
fn passed(what: &str, was_by_keyword: bool) -> Difference {
    let way = |by_keyword| if by_keyword { "by keyword" } else { "by position" };
    Difference::told(format!("{what}: was passed {}, now {}", way(was_by_keyword), way(!was_by_keyword)))
}

/// Where a structure differs from the one before.
fn told(place: &Place) -> String {
    match place {
        Place::Key { name, left: true } => format!("key {name} is missing"),
        Place::Key { name, left: false } => format!("key {name} was added"),
        Place::Node { name, left, right } => format!("{name} is {right} where it was {left}"),
    }
}

/// What to do about a static value that is new although it may look as before.
fn hint(was: &Bound<'_, PyAny>, is: &Bound<'_, PyAny>, same_text: bool) -> &'static str {
    let py = is.py();
    if !was.get_type().is(is.get_type()) {
        return "";
    }
    let compares = is.get_type().getattr(intern!(py, "__eq__")).ok();
    let by_identity =
        compares.is_some_and(|f| py.get_type::<PyAny>().getattr(intern!(py, "__eq__")).is_ok_and(|o| f.is(&o)));
    match (by_identity, is.is_callable()) {
        (true, true) => {
            ", another function object (one that is defined in a loop or a call is new each time: define it once outside)"
        }
        (true, false) => ", an object that is not equal to it (does its class define __eq__ and __hash__?)",
        (false, _) if same_text => {
            ", which prints alike and is not equal to it (what does its class's __eq__ compare?)"
        }
        (false, _) => "",
    }
}

/// Names of settings with what they were and what they are.
fn changed_settings(py: Python<'_>, was: u64, is: u64) -> Vec<(String, String, String)> {
    let flags = |bits: u64| -> Vec<&str> {
        crate::config::FLAGS.iter().filter(|(_, f)| bits >> *f as u64 & 1 == 1).map(|(name, _)| *name).collect()
    };
    let numbers = (config::host_number(was), config::host_number(is));
    py.import(intern!(py, "ferrax.config"))
        .and_then(|m| m.call_method1(intern!(py, "_differences"), (flags(was), flags(is), numbers.0, numbers.1)))
        .and_then(|rows| rows.extract())
        .unwrap_or_default()
}

fn setting_differences(py: Python<'_>, was: u64, is: u64, out: &mut Vec<Difference>) {
    if was == is {
        return;
    }
    let before = out.len();
    for (name, was, is) in changed_settings(py, was, is) {
        out.push(Difference::new(format!("setting {name}"), was, is));
    }
    if out.len() == before {
        out.push(Difference::told("the named axes (axis_name of vmap) around the call are others".to_owned()));
    }
}
