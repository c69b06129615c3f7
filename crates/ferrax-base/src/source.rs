//! Where in the user's program an operation was asked for.
//!
//! A [`Source`] is a token of two words that costs nothing to copy; a host (the Python binding) says how to
//! take one and how to turn one into text. Text is made only when an error or a report is shown.

use std::cell::Cell;
use std::sync::OnceLock;

/// A place in the user's program; the host knows what the numbers mean. Zero means unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Source {
    /// The host's number for the function (a code object, say), plus one; zero when unknown.
    pub unit: u32,
    /// Offset within it.
    pub offset: u32,
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
    static REPLAYED: Cell<Source> = const { Cell::new(Source { unit: 0, offset: 0 }) };
}

/// While a recorded program is gone through, its operations' own places stand for the present one; until dropped.
pub struct Replay(Source);

impl Replay {
    /// Starts going through a program.
    pub fn start() -> Replay {
        Replay(REPLAYED.get())
    }

    /// Says where the operation that comes now was asked for; an unknown place is that of the program itself.
    #[inline]
    pub fn at(&self, source: Source) {
        REPLAYED.set(if source.unit == 0 { self.0 } else { source });
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        REPLAYED.set(self.0);
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
        if replayed.unit != 0 {
            return replayed;
        }
        HOST.get().map_or(Source::default(), |h| (h.capture)())
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
