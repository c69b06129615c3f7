//! Structures of builtin containers as protocol buffers, in the format that JAX writes and reads.
//!
//! `message PyTreeDef { repeated Node nodes = 1; repeated string interned_strings = 2; }` with
//! `Node { uint32 arity = 1; Type type = 2; Keys dict_keys = 3; }` and `Keys { repeated uint32 str_id = 1; }`.

use ferrax_tree::{Kind, KindRef};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::host::{Object, TreeDef};
use crate::errors::Class;

/// Node types of the format.
const LEAF: u64 = 1;
const LIST: u64 = 2;
const NONE: u64 = 3;
const TUPLE: u64 = 4;
const DICT: u64 = 5;

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A field of bytes: strings, messages and packed numbers.
fn bytes(out: &mut Vec<u8>, field: u64, content: &[u8]) {
    varint(out, field << 3 | 2);
    varint(out, content.len() as u64);
    out.extend_from_slice(content);
}

/// The structure as bytes.
pub fn encode(py: Python<'_>, tree: &TreeDef) -> PyResult<Vec<u8>> {
    let mut out = Vec::new();
    let mut strings: Vec<String> = Vec::new();
    for (kind, arity) in tree.postorder() {
        let mut ids = Vec::new();
        let tag = match kind {
            KindRef::Leaf => LEAF,
            KindRef::List => LIST,
            KindRef::None => NONE,
            KindRef::Tuple => TUPLE,
            KindRef::Dict(keys) => {
                for key in keys {
                    varint(&mut ids, intern(py, key, &mut strings)?);
                }
                DICT
            }
            KindRef::Named(_) | KindRef::Custom(..) => {
                return Err(PyValueError::new_err(
                    "User-defined nodes are not supported when serializing pytrees as protocol buffers. You should \
                     either convert the user-defined nodes to another type or use pickle instead.",
                ));
            }
        };
        let mut node = Vec::new();
        if arity > 0 {
            node.push(1 << 3);
            varint(&mut node, arity as u64);
        }
        node.push(2 << 3);
        varint(&mut node, tag);
        if !ids.is_empty() {
            let mut keys = Vec::new();
            bytes(&mut keys, 1, &ids);
            bytes(&mut node, 3, &keys);
        }
        bytes(&mut out, 1, &node);
    }
    for string in &strings {
        bytes(&mut out, 2, string.as_bytes());
    }
    Ok(out)
}

fn intern(py: Python<'_>, key: &Object, strings: &mut Vec<String>) -> PyResult<u64> {
    let Ok(key) = key.0.bind(py).cast::<PyString>() else {
        return Err(PyValueError::new_err("Only string keys are supported in proto pytree serialization."));
    };
    let key = key.to_str()?;
    Ok(match strings.iter().position(|s| s == key) {
        Some(i) => i,
        None => {
            strings.push(key.to_owned());
            strings.len() - 1
        }
    } as u64)
}

/// A field as it lies in the bytes.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Reads fields one by one; none when the bytes are not a message.
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

    fn fields(mut self) -> Option<Vec<(u64, Field<'a>)>> {
        let mut out = Vec::new();
        while !self.0.is_empty() {
            out.push(self.field()?);
        }
        Some(out)
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
    for (number, field) in Reader(content).fields()? {
        match (number, field) {
            (1, Field::Number(arity)) => node.arity = usize::try_from(arity).ok()?,
            (2, Field::Number(tag)) => node.tag = tag,
            (3, Field::Bytes(keys)) => {
                for (_, field) in Reader(keys).fields()? {
                    let Field::Bytes(packed) = field else { return None };
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

/// The structure from bytes.
pub fn decode(py: Python<'_>, content: &[u8]) -> PyResult<TreeDef> {
    let unreadable = || Class::Runtime.error(py, "Could not deserialize PyTreeDefProto.".to_owned());
    let (mut nodes, mut strings) = (Vec::new(), Vec::new());
    for (number, field) in Reader(content).fields().ok_or_else(unreadable)? {
        match (number, field) {
            (1, Field::Bytes(content)) => nodes.push(node(content).ok_or_else(unreadable)?),
            (2, Field::Bytes(text)) => strings.push(std::str::from_utf8(text).map_err(|_| unreadable())?),
            _ => {}
        }
    }
    let malformed = |what: &str| PyValueError::new_err(format!("Malformed pytree proto ({what})"));
    let mut stack: Vec<TreeDef> = Vec::new();
    for node in nodes {
        let kind = match node.tag {
            LEAF => None,
            LIST => Some(Kind::List),
            NONE => Some(Kind::None),
            TUPLE => Some(Kind::Tuple),
            DICT if node.keys.len() == node.arity => {
                let key = |i: &usize| {
                    let text = strings.get(*i).ok_or_else(|| malformed("dict_key out of range"))?;
                    Ok(Object(PyString::intern(py, text).into_any().unbind()))
                };
                Some(Kind::Dict(node.keys.iter().map(key).collect::<PyResult<_>>()?))
            }
            DICT => return Err(malformed("dict_keys and arity differ")),
            _ => return Err(malformed("invalid node type")),
        };
        let start = stack.len().checked_sub(node.arity).ok_or_else(|| malformed("arity out of range"))?;
        let children = stack.split_off(start);
        stack.push(TreeDef::from_children(kind, &children));
    }
    match stack.pop() {
        Some(tree) if stack.is_empty() => Ok(tree),
        _ => Err(Class::Runtime.error(py, "PyTreeDef traversal did not yield a singleton.".to_owned())),
    }
}
