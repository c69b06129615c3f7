//! Why a key was not found: its smallest difference from the keys that are there.

use std::fmt;

/// Differences that are told; the others are counted.
const TOLD: usize = 5;

/// One thing that differs between two keys, in the user's terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference(String);

impl Difference {
    /// What differs (`argument x: dtype`), what the known key has and what the new one has.
    pub fn new(what: impl fmt::Display, was: impl fmt::Display, is: impl fmt::Display) -> Self {
        Difference(format!("{what}: was {was}, now {is}"))
    }

    /// A difference in words of its own.
    pub fn told(text: String) -> Self {
        Difference(text)
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Keys that can tell how they differ.
pub trait Explain {
    /// How many things differ from a known key; zero when they are equal. Asked of every known key: no text is made.
    fn distance(&self, known: &Self) -> usize;

    /// What differs from a known key; asked of the nearest one.
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
                for (i, d) in all.iter().take(TOLD).enumerate() {
                    write!(f, "{}{d}", if i > 0 { "; " } else { "" })?;
                }
                match all.len().saturating_sub(TOLD) {
                    0 => Ok(()),
                    more => write!(f, "; and {more} more"),
                }
            }
        }
    }
}

/// The smallest difference between a key and known ones; of equals the first.
pub fn nearest<'a, K: Explain + 'a>(key: &K, known: impl IntoIterator<Item = &'a K>) -> Miss {
    let mut best: Option<(usize, &K)> = None;
    for k in known {
        let distance = key.distance(k);
        if distance == 0 {
            return Miss::Known;
        }
        if best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, k));
        }
    }
    best.map_or(Miss::First, |(_, k)| Miss::Differs(key.differences(k)))
}
