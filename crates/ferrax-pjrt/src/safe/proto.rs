//! Protocol buffers by hand: what XLA takes as options, and what it gives as programs.
//!
//! A message is a list of fields, each a key (its number and kind) with its content; fields that have their type's zero
//! are left out. Whoever writes or reads one knows the numbers of its fields. Source: the encoding page of the protocol.

use ferrax_base::{Result, bail};

/// A message that is being written.
#[derive(Default)]
pub(crate) struct Proto(pub(crate) Vec<u8>);

impl Proto {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn key(&mut self, field: u64, kind: u64) {
        self.varint(field << 3 | kind);
    }

    /// An integer, zero too.
    pub(crate) fn present(&mut self, field: u64, value: u64) {
        self.key(field, 0);
        self.varint(value);
    }

    /// An integer; zero is what a missing one means.
    pub(crate) fn int(&mut self, field: u64, value: i64) {
        if value != 0 {
            self.present(field, value as u64);
        }
    }

    pub(crate) fn double(&mut self, field: u64, value: f64) {
        self.key(field, 1);
        self.0.extend(value.to_le_bytes());
    }

    pub(crate) fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.key(field, 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
    }

    pub(crate) fn message(&mut self, field: u64, message: &Proto) {
        self.bytes(field, &message.0);
    }

    /// A list of integers.
    pub(crate) fn packed(&mut self, field: u64, values: impl Iterator<Item = u64>) {
        let mut list = Proto::default();
        values.for_each(|v| list.varint(v));
        if !list.0.is_empty() {
            self.message(field, &list);
        }
    }
}

/// The content of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content<'a> {
    /// An integer, or a number of a fixed width as its bits.
    Number(u64),
    /// A string, a message or a packed list.
    Bytes(&'a [u8]),
}

/// A message that is being read.
#[derive(Clone, Copy)]
pub(crate) struct Message<'a>(pub(crate) &'a [u8]);

impl<'a> Message<'a> {
    /// The fields in order, each by its number.
    pub(crate) fn fields(mut self) -> Result<Vec<(u64, Content<'a>)>> {
        let mut all = Vec::new();
        while !self.0.is_empty() {
            let key = self.varint()?;
            let content = match key & 7 {
                0 => Content::Number(self.varint()?),
                1 => Content::Number(number(self.take(8)?)),
                5 => Content::Number(number(self.take(4)?)),
                2 => {
                    let len = self.varint()?;
                    Content::Bytes(self.take(usize::try_from(len).unwrap_or(usize::MAX))?)
                }
                kind => bail!(Value, "a protocol buffer has a field of kind {kind}"),
            };
            all.push((key >> 3, content));
        }
        Ok(all)
    }

    /// The integers that a packed list has.
    pub(crate) fn integers(mut self) -> Result<Vec<u64>> {
        let mut all = Vec::new();
        while !self.0.is_empty() {
            all.push(self.varint()?);
        }
        Ok(all)
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let Some((taken, rest)) = self.0.split_at_checked(len) else {
            bail!(Value, "a protocol buffer ends within a field");
        };
        self.0 = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        bail!(Value, "a protocol buffer has an integer of more than 64 bits")
    }
}

/// A number from its bytes, the lowest first.
pub(crate) fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_as_they_went() {
        let mut proto = Proto::default();
        proto.int(1, -1);
        proto.int(2, 0);
        proto.double(300, 1.5);
        proto.bytes(4, b"abc");
        proto.packed(5, [0, 127, 128, u64::MAX].into_iter());
        let fields = Message(&proto.0).fields().unwrap();
        assert_eq!(fields[..2], [(1, Content::Number(u64::MAX)), (300, Content::Number(1.5f64.to_bits()))]);
        assert_eq!(fields[2], (4, Content::Bytes(b"abc")));
        let Content::Bytes(list) = fields[3].1 else { panic!("a list") };
        assert_eq!(Message(list).integers().unwrap(), [0, 127, 128, u64::MAX]);
    }

    #[test]
    fn broken_messages_are_errors() {
        for broken in [&[8][..], &[10, 5, 1], &[11], &[9, 1, 2], &[0x80; 11], &[8, 0x80]] {
            assert!(Message(broken).fields().is_err(), "{broken:?}");
        }
    }
}
