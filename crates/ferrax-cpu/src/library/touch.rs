//! The memory that a step reads and writes, for the verifier of plans (`plan/verify.rs`).

use super::views::Span;
use ferrax_base::Result;

/// Bytes of a slot that a step reads or writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touch {
    pub slot: u32,
    pub from: isize,
    pub end: isize,
    pub write: bool,
}

impl Touch {
    pub fn read(slot: u32, bytes: usize) -> Touch {
        Touch { slot, from: 0, end: bytes as isize, write: false }
    }

    pub fn write(slot: u32, bytes: usize) -> Touch {
        Touch { write: true, ..Touch::read(slot, bytes) }
    }
}

/// What is told of touches.
pub(crate) type See<'a> = &'a mut dyn FnMut(Touch) -> Result<()>;

/// Stretches of a result of many rows that are followed one by one; the rows of larger ones count as one stretch.
const ROWS: usize = 1 << 12;

/// Reads all between the first and the last byte: what a view leaves out is written as well, as its root is whole.
pub(crate) fn read_span(slot: u32, span: &Span, see: See<'_>) -> Result<()> {
    let (from, end) = span.hull();
    see(Touch { slot, from, end, write: false })
}

/// Writes stretch by stretch, or all between the first and the last byte where there are very many.
pub(crate) fn write_span(slot: u32, span: &Span, see: See<'_>) -> Result<()> {
    if span.rows() > ROWS {
        let (from, end) = span.hull();
        return see(Touch { slot, from, end, write: true });
    }
    span.each(&mut |from, end| see(Touch { slot, from, end, write: true }))
}
