//! Faults and delays on demand: the next time, or some time later, that a run comes to a point, it fails there.

use ferrax_base::{Result, error};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

/// Where an engine can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Taking elements into its memory.
    Upload,
    /// Compiling a program.
    Compile,
    /// Starting a run.
    Run,
    /// Computing a node of a run, which the caller need not wait for.
    Node,
    /// Giving elements back to the host.
    Download,
}

/// Every point.
pub const POINTS: [Point; 5] = [Point::Upload, Point::Compile, Point::Run, Point::Node, Point::Download];

/// For each point, how many more times it is passed before one fails; negative when none will.
static LEFT: [AtomicI64; POINTS.len()] = [const { AtomicI64::new(-1) }; POINTS.len()];
/// Microseconds that every node takes longer.
static DELAY: AtomicU64 = AtomicU64::new(0);

/// Has a point fail once, after it was passed so many times.
pub fn inject(point: Point, after: u32) {
    LEFT[point as usize].store(i64::from(after), SeqCst);
}

/// Takes a fault back that has not happened; says whether there was one.
pub fn withdraw(point: Point) -> bool {
    LEFT[point as usize].swap(-1, SeqCst) >= 0
}

/// Has every node take this much longer.
pub fn delay(time: Duration) {
    DELAY.store(time.as_micros() as u64, SeqCst);
}

/// A point by its name in small letters.
pub fn named(name: &str) -> Option<Point> {
    POINTS.into_iter().find(|p| format!("{p:?}").to_lowercase() == name)
}

/// Passes a point: the error if it is to fail now.
pub(crate) fn meet(point: Point) -> Result<()> {
    if point == Point::Node {
        let micros = DELAY.load(SeqCst);
        if micros > 0 {
            std::thread::sleep(Duration::from_micros(micros));
        }
    }
    let left = &LEFT[point as usize];
    let passed = left.fetch_update(SeqCst, SeqCst, |n| (n >= 0).then(|| n - 1));
    if passed == Ok(0) { Err(error!(Runtime, "injected fault: {point:?}")) } else { Ok(()) }
}
