//! Process-wide settings with a per-thread override, read on hot paths as one atomic load.
//!
//! Each flag is a [`Flag`]: a global value and, while a context manager is entered on this thread, a local
//! one. Everything that changes what a trace would produce is part of [`trace_key`].

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

macro_rules! flags {
    ($($(#[$doc:meta])* $name:ident = $bit:literal;)*) => {
        /// A boolean setting: one of the lowest bits, below [`AXES`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Flag { $($(#[$doc])* $name = $bit,)* }
    };
}

flags! {
    /// 64-bit dtypes are enabled.
    X64 = 0;
    /// `jit` runs functions operation by operation.
    DisableJit = 1;
    /// Every result is checked for NaN.
    DebugNans = 2;
    /// Every result is checked for infinities.
    DebugInfs = 3;
    /// The end of a trace checks that none of its tracers lives on.
    CheckTracerLeaks = 4;
    /// The simplifier leaves out every rewrite that can change bits.
    StrictNumerics = 5;
    /// Gradients of `where` do not let the branch not taken contribute NaN.
    SafeWhere = 6;
    /// Compiling a second time for an already compiled function raises.
    NoRetrace = 7;
    /// `PRNGKey` makes typed keys.
    EnableCustomPrng = 8;
    /// Implicit rank promotion raises (set with `RankPromotionWarn` clear) .
    RankPromotionRaise = 9;
    /// Implicit rank promotion warns.
    RankPromotionWarn = 10;
    /// Strict dtype promotion: no implicit promotion between strong dtypes.
    StrictPromotion = 11;
    /// Out-of-range static indices raise.
    CheckIndices = 12;
    /// Linearization warns of selections whose gradient may be NaN.
    CheckWhere = 13;
    /// Calls of jitted functions that had to be traced are explained on the log.
    ExplainCacheMisses = 14;
    /// Compilations are told on the log.
    LogCompiles = 15;
    /// Tracing for `jit` raises.
    NoTracing = 16;
    /// Traced indices out of range raise, when the program runs.
    CheckTracedIndices = 17;
    /// Programs that take long run after their calls have returned; set at the start.
    AsyncDispatch = 18;
    /// The host looks at what runs and at what it hands over; read by [`watched`].
    Watched = 19;
    /// Programs are verified after every pass, as builds with debug assertions do.
    EnableChecks = 20;
    /// A mesh with explicit axes is in use, over which types have shardings.
    Explicit = 21;
}

/// Whether [`Flag::Watched`] was ever set: spares hot paths the question of what this thread overrides.
static WATCHING: AtomicBool = AtomicBool::new(false);

/// Whether the host looks at what runs on this thread.
#[inline]
pub fn watched() -> bool {
    WATCHING.load(Relaxed) && Flag::Watched.get()
}

static GLOBAL: AtomicU64 = AtomicU64::new(1 << Flag::AsyncDispatch as u64);

thread_local! {
    /// (mask of overridden flags, their values)
    static LOCAL: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// All flags in force on this thread, one bit each.
#[inline]
pub fn bits() -> u64 {
    let (mask, values) = LOCAL.get();
    (GLOBAL.load(Relaxed) & !mask) | (values & mask)
}

/// Whether results are looked at for NaN or infinities on this thread.
#[inline]
pub fn checks_numbers() -> bool {
    bits() & (1 << Flag::DebugNans as u64 | 1 << Flag::DebugInfs as u64) != 0
}

/// Whether types that say of sums that are due have been seen: rules ask who made an operation on one.
static SUMS_ARE_DUE: AtomicBool = AtomicBool::new(false);

/// Notes that there are types that say of sums that are due; for the rest of the process.
pub fn note_due() {
    SUMS_ARE_DUE.store(true, Relaxed);
}

/// Whether operations say on this thread who made them, when it was not the user.
#[inline]
pub fn tells_makers() -> bool {
    const ANY: u64 = 1 << Flag::DebugNans as u64 | 1 << Flag::DebugInfs as u64 | 1 << Flag::Explicit as u64;
    bits() & ANY != 0 || SUMS_ARE_DUE.load(Relaxed)
}

/// Everything that changes what tracing produces; part of every trace cache's key.
#[inline]
pub fn trace_key() -> u64 {
    const IRRELEVANT: u64 = 1 << Flag::NoRetrace as u64
        | 1 << Flag::ExplainCacheMisses as u64
        | 1 << Flag::LogCompiles as u64
        | 1 << Flag::NoTracing as u64
        | 1 << Flag::Watched as u64
        | 1 << Flag::AsyncDispatch as u64;
    bits() & !IRRELEVANT
}

/// Where the number of the host's settings starts in the bits.
const HOST: u32 = 44;

/// The largest number of the host's settings.
pub const MAX_HOST: u32 = (1 << (64 - HOST)) - 1;

/// The number of the host's settings in a [`trace_key`].
pub fn host_number(key: u64) -> u32 {
    (key >> HOST) as u32
}

/// Sets the process-wide number that stands for the host's own settings; it is part of [`trace_key`].
pub fn set_host(number: u32) {
    let mut old = GLOBAL.load(Relaxed);
    let with = |old: u64| (old & ((1 << HOST) - 1)) | u64::from(number) << HOST;
    while let Err(now) = GLOBAL.compare_exchange_weak(old, with(old), Relaxed, Relaxed) {
        old = now;
    }
}

/// Overrides the number of [`set_host`] on this thread (`None`: follow the process-wide one again).
pub fn set_host_local(number: Option<u32>) -> Saved {
    let low = (1u64 << HOST) - 1;
    let old = LOCAL.get();
    let (mask, values) = (old.0 & low, old.1 & low);
    LOCAL.set(match number {
        Some(n) => (mask | !low, values | u64::from(n) << HOST),
        None => (mask, values),
    });
    Saved(old)
}

/// Where the number of the named axes in force starts in the bits, below the host's; the flags end below.
const AXES: u32 = 22;

/// The largest number of [`set_axes_local`].
pub const MAX_AXES: u32 = (1 << (HOST - AXES)) - 1;

/// Sets the number that stands for the named mapped axes in force on this thread; it is part of [`trace_key`].
pub fn set_axes_local(number: u32) -> Saved {
    const FIELD: u64 = (MAX_AXES as u64) << AXES;
    let old = LOCAL.get();
    LOCAL.set((old.0 | FIELD, (old.1 & !FIELD) | u64::from(number) << AXES));
    Saved(old)
}

/// The override in force on this thread before a [`Flag::set_local`], for restoring.
#[derive(Clone, Copy, Debug)]
pub struct Saved((u64, u64));

impl Flag {
    /// Whether the flag is set on this thread.
    #[inline]
    pub fn get(self) -> bool {
        bits() & (1 << self as u64) != 0
    }

    /// The process-wide value, whatever this thread overrides.
    pub fn global(self) -> bool {
        GLOBAL.load(Relaxed) & (1 << self as u64) != 0
    }

    /// Sets the process-wide value.
    pub fn set_global(self, value: bool) {
        let bit = 1u64 << self as u64;
        WATCHING.fetch_or(value && self == Flag::Watched, Relaxed);
        if value {
            GLOBAL.fetch_or(bit, Relaxed);
        } else {
            GLOBAL.fetch_and(!bit, Relaxed);
        }
    }

    /// Overrides the flag on this thread (`None`: follow the process-wide value again).
    pub fn set_local(self, value: Option<bool>) -> Saved {
        let bit = 1u64 << self as u64;
        if value == Some(true) && self == Flag::Watched {
            WATCHING.store(true, Relaxed);
        }
        let old = LOCAL.get();
        let (mask, values) = old;
        LOCAL.set(match value {
            Some(true) => (mask | bit, values | bit),
            Some(false) => (mask | bit, values & !bit),
            None => (mask & !bit, values & !bit),
        });
        Saved(old)
    }

    /// This thread's override, if any.
    pub fn local(self) -> Option<bool> {
        let bit = 1u64 << self as u64;
        let (mask, values) = LOCAL.get();
        (mask & bit != 0).then_some(values & bit != 0)
    }
}

/// Restores what [`Flag::set_local`] saved.
pub fn restore(saved: Saved) {
    LOCAL.set(saved.0);
}

/// Runs `f` with a flag overridden on this thread.
pub fn with<T>(flag: Flag, value: bool, f: impl FnOnce() -> T) -> T {
    struct Guard(Saved);
    impl Drop for Guard {
        fn drop(&mut self) {
            restore(self.0);
        }
    }
    let _guard = Guard(flag.set_local(Some(value)));
    f()
}

/// Whether 64-bit dtypes are enabled.
#[inline]
pub fn x64() -> bool {
    Flag::X64.get()
}
