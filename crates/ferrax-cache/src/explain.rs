//! Why a key was not found: its smallest difference from the keys that are there.

use std::fmt;

/// One thing that differs between two keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What differs, in the user's terms: "argument x: dtype".
    pub what: String,
    /// What the known key has.
    pub was: String,
    /// What the new key has.
    pub is: String,
}

impl Difference {
    /// A difference between two values that print.
    pub fn new(what: impl Into<String>, was: impl fmt::Display, is: impl fmt::Display) -> Self {
        Difference { what: what.into(), was: was.to_string(), is: is.to_string() }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: was {}, now {}", self.what, self.was, self.is)
    }
}

/// Keys that can tell how they differ.
pub trait Explain {
    /// What differs from a known key; empty when they are equal.
    fn differences(&self, known: &Self) -> Vec<Difference>;
}

/// Why a key was not found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Miss {
    /// Nothing like it was there.
    First,
    /// What sets it apart from the nearest key.
    Differs(Vec<Difference>),
    /// An equal key is there: evicted and made again, or made by another thread meanwhile.
    Known,
}

impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Miss::First => f.write_str("never seen before"),
            Miss::Known => f.write_str("seen before, with nothing changed"),
            Miss::Differs(all) => {
                for (i, d) in all.iter().enumerate() {
                    write!(f, "{}{d}", if i > 0 { "; " } else { "" })?;
                }
                Ok(())
            }
        }
    }
}

/// The smallest difference between a key and known ones; of equals the first.
pub fn nearest<'a, K: Explain + 'a>(key: &K, known: impl IntoIterator<Item = &'a K>) -> Miss {
    let mut best: Option<Vec<Difference>> = None;
    for k in known {
        let found = key.differences(k);
        if found.is_empty() {
            return Miss::Known;
        }
        if best.as_ref().is_none_or(|b| found.len() < b.len()) {
            best = Some(found);
        }
    }
    best.map_or(Miss::First, Miss::Differs)
}
