//! Reads structures of builtin containers from protocol buffers, in the format that JAX writes and reads.
//!
//! `message PyTreeDef { repeated Node nodes = 1; repeated string interned_strings = 2; }` with
//! `Node { uint32 arity = 1; Type type = 2; Keys dict_keys = 3; }` and `Keys { repeated uint32 str_id = 1; }`.
//! The bytes may be anybody's: the time that they take grows as their number.

use ferrax_base::error;

use crate::postorder::Assembler;
use crate::{Host, Kind, TreeDef};

/// Node types of the format.
pub const LEAF: u64 = 1;
/// A list.
pub const LIST: u64 = 2;
/// `None`.
pub const NONE: u64 = 3;
/// A tuple.
pub const TUPLE: u64 = 4;
/// A dictionary.
pub const DICT: u64 = 5;

/// Nodes of a structure at most.
pub const MAX_NODES: usize = 1 << 18;

/// A field as it lies in the bytes.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Reads fields one by one.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn field(&mut self) -> Option<(u64, Field<'a>)> {
        let head = self.varint()?;
        let field = match head & 7 {
            0 => Field::Number(self.varint()?),
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                let (content, rest) = self.0.split_at_checked(length)?;
                self.0 = rest;
                Field::Bytes(content)
            }
            _ => return None,
        };
        Some((head >> 3, field))
    }
}

/// The fields of a message, each `None` once the bytes are no message.
impl<'a> Iterator for Reader<'a> {
    type Item = Option<(u64, Field<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
        }
        Some(field)
    }
}

#[derive(Default)]
struct Node {
    arity: usize,
    tag: u64,
    keys: Vec<usize>,
}

fn node(content: &[u8]) -> Option<Node> {
    let mut node = Node::default();
    for field in Reader(content) {
        match field? {
            (1, Field::Number(arity)) => node.arity = usize::try_from(arity).ok()?,
            (2, Field::Number(tag)) => node.tag = tag,
            (3, Field::Bytes(keys)) => {
                for field in Reader(keys) {
                    let (_, Field::Bytes(packed)) = field? else { return None };
                    let mut packed = Reader(packed);
                    while !packed.0.is_empty() {
                        node.keys.push(usize::try_from(packed.varint()?).ok()?);
                    }
                }
            }
            _ => {}
        }
    }
    Some(node)
}

/// The structure from bytes; `key` makes a dictionary's key of its text, once for each text.
pub fn decode<H: Host>(cx: H::Cx<'_>, content: &[u8], key: impl Fn(&str) -> H::Key) -> Result<TreeDef<H>, H::Error> {
    let unreadable = || H::error(error!(Runtime, "Could not deserialize PyTreeDefProto."));
    let malformed = |what: &str| H::error(error!(Value, "Malformed pytree proto ({what})"));
    let mut keys: Vec<H::Key> = Vec::new();
    for field in Reader(content) {
        if let (2, Field::Bytes(text)) = field.ok_or_else(unreadable)? {
            keys.push(key(std::str::from_utf8(text).map_err(|_| unreadable())?));
        }
    }
    let mut nodes = Assembler::new(MAX_NODES, H::max_depth(cx));
    for field in Reader(content) {
        let (1, Field::Bytes(content)) = field.ok_or_else(unreadable)? else { continue };
        let node = node(content).ok_or_else(unreadable)?;
        if node.tag != DICT && !node.keys.is_empty() {
            return Err(malformed("keys of a node that is no dict"));
        }
        let kind = match node.tag {
            LEAF => None,
            LIST => Some(Kind::List),
            NONE => Some(Kind::None),
            TUPLE => Some(Kind::Tuple),
            DICT if node.keys.len() == node.arity => {
                let known = |i: &usize| keys.get(*i).cloned().ok_or_else(|| malformed("dict_key out of range"));
                Some(Kind::Dict(node.keys.iter().map(known).collect::<Result<_, _>>()?))
            }
            DICT => return Err(malformed("dict_keys and arity differ")),
            _ => return Err(malformed("invalid node type")),
        };
        nodes.add(kind, node.arity).map_err(H::error)?;
    }
    nodes.finish().ok_or_else(|| H::error(error!(Runtime, "PyTreeDef traversal did not yield a singleton.")))
}
