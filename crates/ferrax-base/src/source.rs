//! Where in the user's program an operation was asked for.
//!
//! A [`Source`] is a token of four numbers that costs nothing to copy; a host (the Python binding) says how to
//! take one and how to turn one into text. Text is made only when an error or a report is shown.
//!
//! Under the checks of numbers and explicit meshes a token also says that differentiation made the operation, and of which
//! one, or that the user says where its result goes.

use crate::fork::Lock;
use crate::{config, scopes};
use std::cell::Cell;
use std::sync::{Arc, OnceLock};

/// A place in the user's program; the host knows what the numbers mean. Zero means unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Source {
    /// The host's number for the function (a code object, say), plus one; zero when unknown.
    pub unit: u32,
    /// Offset within it.
    pub offset: u32,
    /// What made the operation ([`Source::made_by`]); zero for what the user asked for.
    pub made: u32,
    /// The names that it has ([`scopes`]).
    pub scope: u32,
}

/// How operations are made that users did not ask for as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// As part of the derivative of an operation.
    Derivative,
    /// On the way back, pulling a cotangent through an operation.
    Backward,
    /// As part of a function whose result goes where its user says.
    Placed,
}

/// What operations were made of, by number less one: few, as they are names of primitives.
static MADE: Lock<Vec<(Phase, Arc<str>)>> = Lock::new(Vec::new());

fn made(phase: Phase, of: &str) -> u32 {
    let mut all = MADE.lock();
    let at = all.iter().position(|(p, name)| *p == phase && **name == *of).unwrap_or_else(|| {
        all.push((phase, of.into()));
        all.len() - 1
    });
    at as u32 + 1
}

/// A resolved source location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// File name as the host knows it.
    pub file: String,
    /// Line, from one.
    pub line: u32,
    /// Enclosing function.
    pub function: String,
    /// The text of the line, when the file can be read.
    pub text: Option<String>,
}

/// How a host takes and explains source tokens.
pub struct SourceHost {
    /// The innermost frame of user code, now.
    pub capture: fn() -> Source,
    /// The text behind a token.
    pub describe: fn(Source) -> Option<Location>,
}

static HOST: OnceLock<SourceHost> = OnceLock::new();

thread_local! {
    /// Where the operation that is being done again was asked for.
    static REPLAYED: Cell<Source> = const { Cell::new(Source { unit: 0, offset: 0, made: 0, scope: 0 }) };
    /// What makes the operations that come now.
    static MAKING: Cell<u32> = const { Cell::new(0) };
}

/// Until dropped, operations count as made: by differentiating one, or of a function.
pub struct Making(u32);

impl Making {
    /// Starts making operations of this one; what differentiation makes of a made operation is made of the user's.
    pub fn start(phase: Phase, of: &str) -> Making {
        let outer = MAKING.get();
        let name = differentiated(outer);
        MAKING.set(made(phase, name.as_deref().unwrap_or(of)));
        Making(outer)
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        MAKING.set(self.0);
    }
}

/// Whether operations that come now are not the user's as they are.
pub fn is_making() -> bool {
    MAKING.get() != 0
}

/// The operation whose differentiation this number stands for.
fn differentiated(number: u32) -> Option<Arc<str>> {
    by_number(number).filter(|(phase, _)| *phase != Phase::Placed).map(|(_, name)| name)
}

fn by_number(number: u32) -> Option<(Phase, Arc<str>)> {
    let at = number.checked_sub(1)?;
    MADE.lock().get(at as usize).cloned()
}

/// While a recorded program is gone through, its operations' own places stand for the present one; until dropped.
pub struct Replay(Source, u32, u32);

impl Replay {
    /// Starts going through a program.
    pub fn start() -> Replay {
        Replay(REPLAYED.get(), MAKING.get(), scopes::here())
    }

    /// Says where the operation that comes now was asked for; an unknown place is that of the program itself.
    #[inline]
    pub fn at(&self, source: Source) {
        REPLAYED.set(if source.unit == 0 { self.0 } else { source });
        MAKING.set(source.made);
        if self.2 != 0 {
            scopes::set(scopes::joined(self.2, source.scope));
        }
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        REPLAYED.set(self.0);
        MAKING.set(self.1);
        scopes::set(self.2);
    }
}

/// Installs the host's way to take source tokens; the first call counts.
pub fn set_host(host: SourceHost) {
    let _ = HOST.set(host);
}

impl Source {
    /// Where user code stands now; unknown when there is no host.
    #[inline]
    pub fn here() -> Source {
        let replayed = REPLAYED.get();
        let place = if replayed.unit != 0 { replayed } else { HOST.get().map_or(Source::default(), |h| (h.capture)()) };
        Source { made: MAKING.get(), scope: scopes::here(), ..place }
    }

    /// The names that the operation has, as a number that is the same for the same ones.
    #[inline]
    pub fn scope(self) -> u32 {
        self.scope.max(scopes::ROOT)
    }

    /// How the operation was made, and of what; nothing for what the user asked for.
    pub fn made_by(self) -> Option<(Phase, Arc<str>)> {
        by_number(self.made)
    }

    /// Where an operation on the way back through this one belongs, which is an `of` unless it was made of another.
    pub fn on_the_way_back(self, of: &str) -> Source {
        if !config::tells_makers() {
            return self;
        }
        let name = differentiated(self.made);
        Source { made: made(Phase::Backward, name.as_deref().unwrap_or(of)), ..self }
    }

    /// File, line and function, when known.
    pub fn location(self) -> Option<Location> {
        if self.unit == 0 {
            return None;
        }
        HOST.get().and_then(|h| (h.describe)(self))
    }
}

impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{} ({})", self.file, self.line, self.function)
    }
}
