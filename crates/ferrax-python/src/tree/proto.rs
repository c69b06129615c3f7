//! Structures of builtin containers as protocol buffers: `ferrax_tree::proto` has the format, and reads it.

use ferrax_tree::KindRef;
use ferrax_tree::proto::{self, DICT, LEAF, LIST, NONE, TUPLE};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::host::{Object, TreeDef};

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
    if tree.num_nodes() > proto::MAX_NODES {
        let most = proto::MAX_NODES;
        return Err(PyValueError::new_err(format!(
            "a structure of {} nodes cannot be serialized as a protocol buffer, which may have {most}; use pickle instead.",
            tree.num_nodes()
        )));
    }
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

/// The structure from bytes.
pub fn decode(py: Python<'_>, content: &[u8]) -> PyResult<TreeDef> {
    proto::decode(py, content, |text| Object(PyString::intern(py, text).into_any().unbind()))
}
