//! What a function holds besides its code: the values of its closure, its defaults, what a `functools.partial` binds, the
//! object of a bound method. Noted when a function is traced, so that a later trace of another function object with the
//! same code can say what changed.
//!
//! Only texts and weak references are kept: nothing that the user lets go stays alive, no `__repr__` of the user's runs.

use super::function::{ParamNames, Partial};
use crate::interpreter::attribute;
use crate::shorten;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyWeakrefMethods, PyWeakrefReference};

/// Values that are noted of one function.
const MOST: usize = 32;

/// What a function held.
#[derive(Default)]
pub struct Held {
    rows: Vec<Row>,
    is_method: bool,
}

/// One value that a function holds.
struct Row {
    /// What it is: `the closure's variable n`.
    what: String,
    text: String,
    /// The object, where it can be referred to weakly.
    object: Option<Py<PyWeakrefReference>>,
}

/// The row of the object that a method is bound to.
const OBJECT: &str = "the object of the method";

impl Held {
    /// Of a callable, and of the functions that it wraps.
    pub fn of(fun: &Bound<'_, PyAny>) -> Held {
        let mut out = Held::default();
        let mut next = Some(fun.clone());
        for _ in 0..16 {
            let Some(fun) = next.take() else { break };
            next = out.note(&fun).ok().flatten();
        }
        out
    }

    /// Notes what one function holds; gives the function that it wraps.
    fn note<'py>(&mut self, fun: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = fun.py();
        if let Some(partial) = Partial::of(fun) {
            let params = ParamNames::of(&partial.func, &[]);
            for (i, value) in partial.args.iter().enumerate().take(MOST) {
                self.push(format!("what functools.partial binds to {}", params.name(py, i)), &value);
            }
            for (name, value) in partial.keywords.iter().take(MOST) {
                self.push(format!("what functools.partial binds to {name}"), &value);
            }
            return Ok(Some(partial.func));
        }
        let object = attribute(fun, intern!(py, "__self__"))?;
        if let (Some(object), Some(function)) = (object, attribute(fun, intern!(py, "__func__"))?) {
            self.is_method = true;
            self.push(OBJECT.to_owned(), &object);
            return Ok(Some(function));
        }
        let Some(code) = attribute(fun, intern!(py, "__code__"))? else { return Ok(None) };
        if let Ok(cells) = fun.getattr(intern!(py, "__closure__"))?.cast::<PyTuple>() {
            let names = code.getattr(intern!(py, "co_freevars"))?;
            for (name, cell) in names.try_iter()?.zip(cells.iter()).take(MOST) {
                // an empty cell has no contents
                if let Ok(value) = cell.getattr(intern!(py, "cell_contents")) {
                    self.push(format!("the closure's variable {}", name?), &value);
                }
            }
        }
        if let Ok(defaults) = fun.getattr(intern!(py, "__defaults__"))?.cast::<PyTuple>() {
            let count: usize = code.getattr(intern!(py, "co_argcount"))?.extract()?;
            let names = code.getattr(intern!(py, "co_varnames"))?;
            for (i, value) in (count - defaults.len()..count).zip(defaults.iter()).take(MOST) {
                self.push(format!("the default of {}", names.get_item(i)?), &value);
            }
        }
        if let Ok(defaults) = fun.getattr(intern!(py, "__kwdefaults__"))?.cast::<PyDict>() {
            for (name, value) in defaults.iter().take(MOST) {
                self.push(format!("the default of {name}"), &value);
            }
        }
        attribute(fun, intern!(py, "__wrapped__"))
    }

    fn push(&mut self, what: String, value: &Bound<'_, PyAny>) {
        let object = PyWeakrefReference::new(value).ok().map(Bound::unbind);
        self.rows.push(Row { what, text: shorten::peek(value), object });
    }

    /// Why a function with this code is traced again, though it was traced when it held `before`.
    pub fn compared_with(&self, py: Python<'_>, before: &Held) -> String {
        let pairs = self.rows.iter().filter_map(|is| Some((is, before.rows.iter().find(|was| was.what == is.what)?)));
        let (mut changed, mut other) = (Vec::new(), Vec::new());
        for (is, was) in pairs {
            if is.what == OBJECT {
                continue;
            }
            if is.text != was.text {
                changed.push(format!("{}: was {}, now {}", is.what, was.text, is.text));
            } else if is.is_other(py, was) {
                other.push(format!("{}: another object, {}", is.what, is.text));
            }
        }
        changed.extend(other);
        let mut text = if self.is_method {
            self.method_text(py, before)
        } else {
            "this is another function object with the same code".to_owned()
        };
        if !changed.is_empty() {
            text += "; ";
            text += &changed[..changed.len().min(5)].join("; ");
            if changed.len() > 5 {
                text += &format!("; and {} more", changed.len() - 5);
            }
        }
        if self.is_method {
            text + ". Each access of `obj.method` makes a new object: jit it once and keep the result, or decorate the method \
                    in its class"
        } else if changed.is_empty() {
            text + ". A function or lambda that is defined, or jitted through a new wrapper, inside a loop is new each time: \
                    define it once outside"
        } else {
            text + ". A function that is made anew for each value is traced for each: make it once, and give it what changes \
                    as an argument"
        }
    }

    fn method_text(&self, py: Python<'_>, before: &Held) -> String {
        let object = |held: &Held| held.rows.iter().position(|row| row.what == OBJECT);
        let (Some(is), Some(was)) = (object(self), object(before)) else {
            return "this is another bound method of the same function".to_owned();
        };
        let (is, was) = (&self.rows[is], &before.rows[was]);
        if is.text != was.text {
            return format!("this is the method of another object: was {}, now {}", was.text, is.text);
        }
        if is.is_other(py, was) {
            return format!("this is the method of another object, {} as before", is.text);
        }
        "this is another bound method of the same function and object".to_owned()
    }
}

impl Row {
    /// Whether the objects are known to be two.
    fn is_other(&self, py: Python<'_>, was: &Row) -> bool {
        let get = |row: &Row| row.object.as_ref().map(|r| r.bind(py).upgrade());
        match (get(self), get(was)) {
            (Some(Some(is)), Some(Some(was))) => !is.is(&was),
            // the one before is gone
            (Some(Some(_)), Some(None)) => true,
            _ => false,
        }
    }
}
