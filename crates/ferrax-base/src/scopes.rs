//! Names of the scopes that operations stand in: those that users give (`named_scope`), and transformations around them.
//!
//! A scope is a number that costs nothing to copy. Names are kept only while a program is recorded: outside, [`here`] is
//! zero, scopes that start change nothing, and dispatch does no work for them. Each program starts without scopes, as its
//! operations' names do not depend on where it is used. Notes for compilers stand among the scopes and have no part in
//! names ([`Kind::Notes`]). Read next: [`crate::source`], whose tokens hold the numbers.

use crate::fork::Lock;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

/// The number outside of all scopes of a program that is recorded.
pub const ROOT: u32 = 1;
/// The number of the first row of the table.
const FIRST: u32 = 2;

/// What a scope is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A name that a user gave.
    Scope,
    /// A transformation.
    Transform,
    /// Notes for compilers on the operations inside, as attributes of StableHLO; the innermost ones hold.
    Notes,
    /// The one operation inside is a call of a composite of StableHLO, with these attributes.
    Composite,
}

/// A scope: the one around it, what it is, and its name.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Row {
    outer: u32,
    kind: Kind,
    name: Arc<str>,
}

struct Table {
    noted: bool,
    rows: Vec<Row>,
    numbers: FxHashMap<Row, u32>,
}

static TABLE: Lock<Table> =
    Lock::new(Table { noted: false, rows: Vec::new(), numbers: HashMap::with_hasher(FxBuildHasher) });

thread_local! {
    static HERE: Cell<u32> = const { Cell::new(0) };
    /// The scope that programs begin in: [`ROOT`], or notes that hold for all of them.
    static START: Cell<u32> = const { Cell::new(ROOT) };
}

/// The innermost scope; zero where no program is recorded.
#[inline]
pub fn here() -> u32 {
    HERE.get()
}

/// Makes a scope the innermost one; gives the one before.
#[inline]
pub fn set(scope: u32) -> u32 {
    HERE.replace(scope)
}

/// Makes notes hold for the programs that are recorded from here on, and for the rest of the present one; gives the numbers
/// before, for [`undo_notes`].
pub fn set_notes(notes: &str) -> (u32, u32) {
    let (start, outer) = (START.get(), here());
    START.set(inside(ROOT, Kind::Notes, notes));
    if outer != 0 {
        set(inside(outer, Kind::Notes, notes));
    }
    (start, outer)
}

/// Undoes [`set_notes`].
pub fn undo_notes((start, outer): (u32, u32)) {
    START.set(start);
    set(outer);
}

/// The notes that hold for operations of a scope, and the composite that they are; empty where there are none.
pub fn notes(scope: u32) -> (Arc<str>, Option<Arc<str>>) {
    let mut all = std::iter::successors(row(scope), |r| row(r.outer)).peekable();
    let composite = all.peek().filter(|r| r.kind == Kind::Composite).map(|r| r.name.clone());
    (all.find(|r| r.kind == Kind::Notes).map_or_else(|| "".into(), |r| r.name), composite)
}

/// Whether there ever was a note or a composite.
pub fn any_notes() -> bool {
    TABLE.lock().noted
}

/// The number of a scope inside another.
pub fn inside(outer: u32, kind: Kind, name: &str) -> u32 {
    let row = Row { outer: outer.max(ROOT), kind, name: name.into() };
    let mut table = TABLE.lock();
    if let Some(&number) = table.numbers.get(&row) {
        return number;
    }
    let number = table.rows.len() as u32 + FIRST;
    table.noted |= kind > Kind::Transform;
    table.rows.push(row.clone());
    table.numbers.insert(row, number);
    number
}

fn row(scope: u32) -> Option<Row> {
    let at = scope.checked_sub(FIRST)?;
    TABLE.lock().rows.get(at as usize).cloned()
}

/// The scopes of `inner` inside those of `outer`.
pub fn joined(outer: u32, inner: u32) -> u32 {
    match row(inner) {
        None => outer,
        Some(_) if outer <= ROOT => inner,
        Some(r) => inside(joined(outer, r.outer), r.kind, &r.name),
    }
}

/// The scopes of one inside `outer`, without those of `outer`.
pub fn beyond(scope: u32, outer: u32) -> u32 {
    match row(scope) {
        Some(r) if outer > ROOT => {
            if scope == outer {
                ROOT
            } else {
                inside(beyond(r.outer, outer), r.kind, &r.name)
            }
        }
        _ => scope,
    }
}

/// Names from the outermost scope on, with whether each is a transformation's.
pub fn names(scope: u32) -> Vec<(bool, Arc<str>)> {
    let named = std::iter::successors(row(scope), |r| row(r.outer)).filter(|r| r.kind <= Kind::Transform);
    let mut all: Vec<_> = named.map(|r| (r.kind == Kind::Transform, r.name)).collect();
    all.reverse();
    all
}

/// Names as one text: a transformation stands around the first name inside it, as in `foo/vmap(bar)/baz`.
pub fn text<S: AsRef<str>>(names: &[(bool, S)]) -> String {
    let mut parts: Vec<String> = Vec::new();
    for (transform, name) in names.iter().rev() {
        let name = name.as_ref();
        match (transform, parts.pop()) {
            (true, part) => parts.push(format!("{name}({})", part.unwrap_or_default())),
            (false, part) => parts.extend(part.into_iter().chain([name.to_owned()])),
        }
    }
    parts.reverse();
    parts.join("/")
}

/// A scope that lasts until dropped.
pub struct Scoped(u32);

impl Scoped {
    /// A transformation, where a program is recorded.
    pub fn transform(name: &str) -> Scoped {
        let outer = here();
        Scoped(if outer == 0 { 0 } else { set(inside(outer, Kind::Transform, name)) })
    }

    /// No scope of those around but notes, as a program is recorded from here on.
    pub fn fresh() -> Scoped {
        Scoped(set(START.get()))
    }
}

impl Drop for Scoped {
    fn drop(&mut self) {
        HERE.set(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_join_and_part() {
        let foo = inside(ROOT, Kind::Scope, "foo");
        let vmap = inside(foo, Kind::Transform, "vmap");
        let bar = inside(vmap, Kind::Scope, "bar");
        assert_eq!(text(&names(inside(bar, Kind::Scope, "baz"))), "foo/vmap(bar)/baz");
        assert_eq!(text(&names(vmap)), "foo/vmap()");
        let own = beyond(bar, foo);
        assert_eq!(text(&names(own)), "vmap(bar)");
        assert_eq!(joined(foo, own), bar);
        assert_eq!((joined(ROOT, own), joined(foo, 0), beyond(own, ROOT)), (own, foo, own));
    }

    #[test]
    fn notes_are_beside_names() {
        let undo = set_notes("a");
        let program = Scoped::fresh();
        let foo = inside(here(), Kind::Scope, "foo");
        let whole = inside(foo, Kind::Composite, "c");
        assert_eq!((text(&names(whole)), notes(foo).0.to_string()), ("foo".into(), "a".into()));
        assert_eq!(notes(whole).1.as_deref(), Some("c"));
        assert_eq!(notes(inside(whole, Kind::Notes, "b")), ("b".into(), None));
        drop(program);
        undo_notes(undo);
        assert_eq!((notes(ROOT), here()), (("".into(), None), 0));
    }

    #[test]
    fn nothing_is_named_outside_of_programs() {
        assert_eq!(here(), 0);
        drop(Scoped::transform("jvp"));
        let program = Scoped::fresh();
        let frame = Scoped::transform("jvp");
        assert_eq!(text(&names(here())), "jvp()");
        drop((frame, program));
        assert_eq!(here(), 0);
    }
}
