//! Names of the scopes that operations stand in: those that users give (`named_scope`), and transformations around them.
//!
//! A scope is a number that costs nothing to copy. Names are kept only while a program is recorded: outside, [`here`] is
//! zero, scopes that start change nothing, and dispatch does no work for them. Each program starts without scopes, as its
//! operations' names do not depend on where it is used. Read next: [`crate::source`], whose tokens hold the numbers.

use crate::fork::Lock;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

/// The number outside of all scopes of a program that is recorded.
pub const ROOT: u32 = 1;
/// The number of the first row of the table.
const FIRST: u32 = 2;

/// A scope: the one around it, whether a transformation is the scope, and its name.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Row {
    outer: u32,
    transform: bool,
    name: Arc<str>,
}

struct Table {
    rows: Vec<Row>,
    numbers: FxHashMap<Row, u32>,
}

static TABLE: Lock<Table> = Lock::new(Table { rows: Vec::new(), numbers: HashMap::with_hasher(FxBuildHasher) });

thread_local! {
    static HERE: Cell<u32> = const { Cell::new(0) };
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

/// The number of a scope inside another.
pub fn inside(outer: u32, transform: bool, name: &str) -> u32 {
    let row = Row { outer: outer.max(ROOT), transform, name: name.into() };
    let mut table = TABLE.lock();
    if let Some(&number) = table.numbers.get(&row) {
        return number;
    }
    let number = table.rows.len() as u32 + FIRST;
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
        Some(r) => inside(joined(outer, r.outer), r.transform, &r.name),
    }
}

/// The scopes of one inside `outer`, without those of `outer`.
pub fn beyond(scope: u32, outer: u32) -> u32 {
    match row(scope) {
        Some(r) if outer > ROOT => {
            if scope == outer {
                ROOT
            } else {
                inside(beyond(r.outer, outer), r.transform, &r.name)
            }
        }
        _ => scope,
    }
}

/// Names from the outermost scope on, with whether each is a transformation's.
pub fn names(scope: u32) -> Vec<(bool, Arc<str>)> {
    let mut all: Vec<_> = std::iter::successors(row(scope), |r| row(r.outer)).map(|r| (r.transform, r.name)).collect();
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
        Scoped(if outer == 0 { 0 } else { set(inside(outer, true, name)) })
    }

    /// No scope of those around, as a program is recorded from here on.
    pub fn fresh() -> Scoped {
        Scoped(set(ROOT))
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
        let foo = inside(ROOT, false, "foo");
        let vmap = inside(foo, true, "vmap");
        let bar = inside(vmap, false, "bar");
        assert_eq!(text(&names(inside(bar, false, "baz"))), "foo/vmap(bar)/baz");
        assert_eq!(text(&names(vmap)), "foo/vmap()");
        let own = beyond(bar, foo);
        assert_eq!(text(&names(own)), "vmap(bar)");
        assert_eq!(joined(foo, own), bar);
        assert_eq!((joined(ROOT, own), joined(foo, 0), beyond(own, ROOT)), (own, foo, own));
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
