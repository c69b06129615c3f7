//! Attributes of a call: constants by name, as values that compare and as the structs that handlers read.
//!
//! Handlers look names up by bisection, so tables are sorted by name. Read next: `call.rs`.

use crate::sys::*;
use crate::types::code;
use ferrax_base::{Buffer, DType, Result, Scalar};
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::fmt;

/// Attributes by name.
pub type Attributes = BTreeMap<String, Attribute>;

/// A constant that a handler gets with a call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Attribute {
    /// A number, of exactly this dtype.
    Scalar(Scalar),
    /// Elements in their order; handlers see no shape.
    Array {
        /// Their dtype.
        dtype: DType,
        /// Their bytes.
        bytes: Vec<u8>,
    },
    /// Bytes, as a rule of text.
    Text(Vec<u8>),
    /// More of them.
    Dictionary(Attributes),
}

impl fmt::Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Attribute::Scalar(s) => write!(f, "{s}"),
            Attribute::Array { dtype, bytes } => {
                let shown: Vec<String> =
                    bytes.chunks_exact(dtype.size()).map(|b| Scalar::from_bytes(*dtype, b).to_string()).collect();
                write!(f, "array([{}], dtype={dtype})", shown.join(", "))
            }
            Attribute::Text(text) => write!(f, "'{}'", String::from_utf8_lossy(text).escape_debug()),
            Attribute::Dictionary(all) => {
                let shown: Vec<String> = all.iter().map(|(name, v)| format!("'{name}': {v}")).collect();
                write!(f, "{{{}}}", shown.join(", "))
            }
        }
    }
}

/// What a table's addresses point to.
enum Owned {
    Scalar { raw: Box<XLA_FFI_Scalar>, _value: Buffer },
    Array { raw: Box<XLA_FFI_Array>, _elements: Buffer },
    Text { raw: Box<XLA_FFI_ByteSpan>, _text: Vec<u8> },
    Table(Box<Table>),
}

/// Attributes as handlers read them. What it points to lies on the heap, so a table may move.
pub(crate) struct Table {
    raw: XLA_FFI_Attrs,
    _names: Vec<String>,
    _spans: Vec<XLA_FFI_ByteSpan>,
    _addresses: Vec<*const XLA_FFI_ByteSpan>,
    _types: Vec<c_int>,
    _values: Vec<*const c_void>,
    _owned: Vec<Owned>,
}

// SAFETY: a table owns what it points to, and nobody writes there.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

impl Table {
    /// The table of some attributes.
    pub(crate) fn new(attributes: &Attributes) -> Result<Table> {
        let names: Vec<String> = attributes.keys().cloned().collect();
        let spans: Vec<XLA_FFI_ByteSpan> = names.iter().map(|n| span(n.as_bytes())).collect();
        let addresses: Vec<*const XLA_FFI_ByteSpan> = spans.iter().map(std::ptr::from_ref).collect();
        let owned = attributes.values().map(Owned::new).collect::<Result<Vec<_>>>()?;
        let (types, values): (Vec<c_int>, Vec<*const c_void>) = owned.iter().map(Owned::raw).unzip();
        let raw = XLA_FFI_Attrs {
            struct_size: size_of::<XLA_FFI_Attrs>(),
            extension_start: std::ptr::null_mut(),
            size: names.len() as i64,
            types: types.as_ptr(),
            names: addresses.as_ptr(),
            attrs: values.as_ptr(),
        };
        Ok(Table {
            raw,
            _names: names,
            _spans: spans,
            _addresses: addresses,
            _types: types,
            _values: values,
            _owned: owned,
        })
    }

    /// The struct, valid as long as the table.
    pub(crate) fn raw(&self) -> XLA_FFI_Attrs {
        XLA_FFI_Attrs { ..self.raw }
    }
}

/// Bytes with their length.
fn span(bytes: &[u8]) -> XLA_FFI_ByteSpan {
    XLA_FFI_ByteSpan { ptr: bytes.as_ptr().cast(), len: bytes.len() }
}

impl Owned {
    fn new(attribute: &Attribute) -> Result<Owned> {
        Ok(match attribute {
            Attribute::Scalar(s) => {
                let value = Buffer::from_bytes(&s.to_bytes())?;
                let raw = XLA_FFI_Scalar { dtype: code(s.dtype)?, value: value.as_ptr().cast() };
                Owned::Scalar { raw: Box::new(raw), _value: value }
            }
            Attribute::Array { dtype, bytes } => {
                let elements = Buffer::from_bytes(bytes)?;
                let size = bytes.len() / dtype.size();
                let raw = XLA_FFI_Array { dtype: code(*dtype)?, size, data: elements.as_ptr().cast() };
                Owned::Array { raw: Box::new(raw), _elements: elements }
            }
            Attribute::Text(text) => {
                let text = text.clone();
                Owned::Text { raw: Box::new(span(&text)), _text: text }
            }
            Attribute::Dictionary(all) => Owned::Table(Box::new(Table::new(all)?)),
        })
    }

    /// The number of its kind, and its struct.
    fn raw(&self) -> (c_int, *const c_void) {
        match self {
            Owned::Scalar { raw, .. } => (XLA_FFI_AttrType_SCALAR, std::ptr::from_ref(&**raw).cast()),
            Owned::Array { raw, .. } => (XLA_FFI_AttrType_ARRAY, std::ptr::from_ref(&**raw).cast()),
            Owned::Text { raw, .. } => (XLA_FFI_AttrType_STRING, std::ptr::from_ref(&**raw).cast()),
            Owned::Table(table) => (XLA_FFI_AttrType_DICTIONARY, std::ptr::from_ref(&table.raw).cast()),
        }
    }
}
