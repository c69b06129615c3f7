//! Plans of transforms that are kept, few of them. A forked child finds their lock open.

use ferrax_base::fork::Lock;

/// Plans beyond this number are forgotten, all at once.
const MOST: usize = 64;

/// Plans by what they are for.
pub struct Kept<K: 'static, P: 'static>(Lock<Vec<(K, P)>>);

impl<K: PartialEq + Send, P: Clone + Send> Kept<K, P> {
    pub const fn new() -> Self {
        Kept(Lock::new(Vec::new()))
    }

    /// The plan for `key`, made outside the lock where there is none.
    pub fn get(&'static self, key: K, make: impl FnOnce() -> P) -> P {
        if let Some((_, found)) = self.0.lock().iter().find(|(k, _)| *k == key) {
            return found.clone();
        }
        let made = make();
        let mut kept = self.0.lock();
        if kept.len() >= MOST {
            kept.clear();
        }
        kept.push((key, made.clone()));
        made
    }
}
