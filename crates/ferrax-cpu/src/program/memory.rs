//! The memory that a run takes beside its arguments and results.

use super::{Program, Step};
use rustc_hash::FxHashMap;

impl Program {
    /// Bytes of a run's temporary memory at most, those of the subprogram that takes most included.
    pub fn temporary_bytes(&self) -> usize {
        let own = self.arena_bytes + self.scratch_bytes + self.tiles_bytes + self.kept_bytes;
        let inner = self.subs.iter().map(|sub| sub.temporary_bytes()).max().unwrap_or(0);
        own + heap_peak(&self.steps) + inner
    }
}

/// The most that steps have allocated at one time.
fn heap_peak(steps: &[Step]) -> usize {
    let mut held: FxHashMap<u32, usize> = FxHashMap::default();
    let (mut now, mut most) = (0, 0);
    for step in steps {
        match step {
            Step::Alloc { slot, bytes } => {
                held.insert(*slot, *bytes);
                now += bytes;
                most = most.max(now);
            }
            Step::Free { slot } => now -= held.remove(slot).unwrap_or(0),
            Step::Together { steps, .. } => most = most.max(now + heap_peak(steps)),
            _ => {}
        }
    }
    most
}
