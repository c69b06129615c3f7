//! A list that threads add to and look through without a lock: few entries, found often, never removed.

use std::sync::atomic::{AtomicPtr, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// Entries, the newest first.
pub struct List<T> {
    head: AtomicPtr<Node<T>>,
}

struct Node<T> {
    value: T,
    next: *const Node<T>,
}

// SAFETY: entries are shared between threads, and dropped by the one that drops the list.
unsafe impl<T: Send + Sync> Sync for List<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Send for List<T> {}

impl<T> Default for List<T> {
    fn default() -> Self {
        List::new()
    }
}

impl<T> List<T> {
    /// An empty list.
    pub const fn new() -> Self {
        List { head: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// The newest entry that `wanted` says yes to.
    #[inline]
    pub fn find(&self, wanted: impl Fn(&T) -> bool) -> Option<&T> {
        let mut at = self.head.load(Acquire).cast_const();
        // SAFETY: nodes are whole before they are reached, and live as long as the list.
        while let Some(node) = unsafe { at.as_ref() } {
            if wanted(&node.value) {
                return Some(&node.value);
            }
            at = node.next;
        }
        None
    }

    /// Adds an entry.
    pub fn push(&self, value: T) -> &T {
        let node = Box::into_raw(Box::new(Node { value, next: std::ptr::null() }));
        let mut head = self.head.load(Relaxed);
        loop {
            // SAFETY: nobody else has the node yet.
            unsafe { (*node).next = head };
            match self.head.compare_exchange_weak(head, node, Release, Relaxed) {
                // SAFETY: the node lives as long as the list, and nobody changes it any more.
                Ok(_) => return unsafe { &(*node).value },
                Err(now) => head = now,
            }
        }
    }
}

impl<T> Drop for List<T> {
    fn drop(&mut self) {
        let mut at = *self.head.get_mut();
        while !at.is_null() {
            // SAFETY: every node came from a box, and nobody looks at the list any more.
            let node = unsafe { Box::from_raw(at) };
            at = node.next.cast_mut();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::List;

    #[test]
    fn threads_find_what_others_added() {
        let list = List::new();
        std::thread::scope(|s| {
            for t in 0..4 {
                let list = &list;
                s.spawn(move || {
                    for i in 0..500 {
                        assert_eq!(*list.push(Box::new((t, i))), Box::new((t, i)));
                        assert!(list.find(|e| **e == (t, i / 2)).is_some());
                    }
                });
            }
        });
        let all = (0..4).flat_map(|t| (0..500).map(move |i| (t, i)));
        assert_eq!(all.filter(|e| list.find(|f| **f == *e).is_some()).count(), 2000);
        assert!(list.find(|e| e.0 == 9).is_none());
    }
}
