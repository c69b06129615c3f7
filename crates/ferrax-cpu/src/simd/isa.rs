//! The instruction sets that programs are made for, and the one in use.
//!
//! What the machine has is detected, what it computes is tried (`self_test.rs`, on the top floor) before it is used. The
//! variable `FERRAX_CPU_ISA` (avx512, avx2, neon, portable) chooses for tests. Baseline code, compiled for every machine of
//! an architecture, and AVX2 variants of simple loops ask [`wide`](super::wide) alone.

use std::cell::Cell;

/// The instruction set that programs are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// 512-bit registers: 128 lanes of 4 bytes a tile.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// 256-bit registers: 64 lanes of 4 bytes a tile.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 128-bit registers: 32 lanes of 4 bytes a tile.
    #[cfg(target_arch = "aarch64")]
    Neon,
}

impl Isa {
    /// Every one of the architecture, those with wider registers first.
    pub const ALL: &[Isa] = &[
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512,
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2,
        #[cfg(target_arch = "aarch64")]
        Isa::Neon,
    ];

    /// Bytes of a register.
    pub const fn register(self) -> usize {
        match self {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => 64,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => 32,
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => 16,
        }
    }
}

/// What the machine has, as `FERRAX_CPU_ISA` allows.
#[cfg(target_arch = "x86_64")]
pub fn detected() -> Option<Isa> {
    let wide = std::is_x86_feature_detected!("avx512f")
        && std::is_x86_feature_detected!("avx512bw")
        && std::is_x86_feature_detected!("avx512dq")
        && std::is_x86_feature_detected!("avx512vl");
    let narrow = super::wide() && std::is_x86_feature_detected!("f16c");
    match std::env::var("FERRAX_CPU_ISA").as_deref() {
        Ok("portable") => None,
        Ok("avx2") => narrow.then_some(Isa::Avx2),
        _ if wide && narrow => Some(Isa::Avx512),
        _ => narrow.then_some(Isa::Avx2),
    }
}

/// What the machine has, as `FERRAX_CPU_ISA` allows.
#[cfg(target_arch = "aarch64")]
pub fn detected() -> Option<Isa> {
    match std::env::var("FERRAX_CPU_ISA").as_deref() {
        Ok("portable") => None,
        _ => Some(Isa::Neon),
    }
}

/// The instruction set in use; `None` where there is no machine (`machine/`), or it is left out.
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(feature = "portable")))]
pub fn isa() -> Option<Isa> {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    /// One more than the set's number, or `NONE`; zero before the first call. No lock: who is forked while another thread
    /// tests would wait for it for ever, and two tests give the same answer.
    static ISA: AtomicUsize = AtomicUsize::new(0);
    const NONE: usize = usize::MAX;
    match ISA.load(Relaxed) {
        0 => {
            if let Some(isa) = ON_TRIAL.get() {
                return Some(isa);
            }
            let widest = detected();
            let found = crate::self_test::choose(Isa::ALL.iter().copied().skip_while(|isa| Some(*isa) != widest));
            ISA.store(found.map_or(NONE, |isa| isa as usize + 1), Relaxed);
            found
        }
        NONE => None,
        n => Isa::ALL.iter().copied().find(|isa| *isa as usize + 1 == n),
    }
}

/// The instruction set in use: none.
#[cfg(any(not(any(target_arch = "x86_64", target_arch = "aarch64")), feature = "portable"))]
pub fn isa() -> Option<Isa> {
    None
}

thread_local! {
    /// What this thread takes for the instruction set in use while that is not decided.
    static ON_TRIAL: Cell<Option<Isa>> = const { Cell::new(None) };
}

/// Whether `is_right` says so of what this thread computes with an instruction set.
pub fn on_trial(isa: Isa, is_right: fn() -> bool) -> bool {
    struct Ending;
    impl Drop for Ending {
        fn drop(&mut self) {
            ON_TRIAL.set(None);
        }
    }
    let _ending = Ending;
    ON_TRIAL.set(Some(isa));
    // What goes wrong may as well be an assertion.
    std::panic::catch_unwind(is_right).unwrap_or(false)
}

/// The name of the instruction set in use, for reports.
pub fn isa_name() -> &'static str {
    match isa() {
        #[cfg(target_arch = "x86_64")]
        Some(Isa::Avx512) => "AVX-512",
        #[cfg(target_arch = "x86_64")]
        Some(Isa::Avx2) => "AVX2",
        #[cfg(target_arch = "aarch64")]
        Some(Isa::Neon) => "NEON",
        _ => "portable",
    }
}
