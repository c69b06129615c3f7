//! Named values: options that go to a plugin, and attributes that come from it.

#![allow(non_upper_case_globals, reason = "the names of the header")]

use super::{list, text};
use crate::sys::*;
use std::ffi::c_char;

/// The value of an option or of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum OptionValue {
    /// A string.
    Text(String),
    /// An integer.
    Int(i64),
    /// A list of integers.
    Ints(Vec<i64>),
    /// A 32-bit float.
    Float(f32),
    /// Yes or no.
    Bool(bool),
}

impl From<&str> for OptionValue {
    fn from(value: &str) -> Self {
        OptionValue::Text(value.into())
    }
}

impl From<i64> for OptionValue {
    fn from(value: i64) -> Self {
        OptionValue::Int(value)
    }
}

impl From<bool> for OptionValue {
    fn from(value: bool) -> Self {
        OptionValue::Bool(value)
    }
}

/// Named values as a plugin reads them; they borrow those that they were made of.
pub struct NamedValues<'a> {
    values: Vec<PJRT_NamedValue>,
    _of: std::marker::PhantomData<&'a OptionValue>,
}

impl<'a> NamedValues<'a> {
    /// The values, in order.
    pub fn new(options: &'a [(String, OptionValue)]) -> Self {
        let values = options.iter().map(|(name, value)| {
            let (kind, data, size) = raw(value);
            PJRT_NamedValue {
                name: name.as_ptr().cast(),
                name_size: name.len(),
                r#type: kind,
                value: data,
                value_size: size,
                ..Args::new()
            }
        });
        NamedValues { values: values.collect(), _of: std::marker::PhantomData }
    }

    /// The first value, and how many there are.
    pub fn raw(&self) -> (*const PJRT_NamedValue, usize) {
        (self.values.as_ptr(), self.values.len())
    }
}

fn raw(value: &OptionValue) -> (PJRT_NamedValue_Type, PJRT_NamedValue_Data, usize) {
    type Data = PJRT_NamedValue_Data;
    match value {
        OptionValue::Text(t) => (PJRT_NamedValue_kString, Data { string_value: t.as_ptr().cast::<c_char>() }, t.len()),
        OptionValue::Int(i) => (PJRT_NamedValue_kInt64, Data { int64_value: *i }, 1),
        OptionValue::Ints(l) => (PJRT_NamedValue_kInt64List, Data { int64_array_value: l.as_ptr() }, l.len()),
        OptionValue::Float(f) => (PJRT_NamedValue_kFloat, Data { float_value: *f }, 1),
        OptionValue::Bool(b) => (PJRT_NamedValue_kBool, Data { bool_value: *b }, 1),
    }
}

/// Named values of a plugin, copied; values of a type that is none of [`OptionValue`]'s are left out.
///
/// # Safety
/// `start` has `len` values, whose strings and lists are alive.
pub unsafe fn named_values(start: *const PJRT_NamedValue, len: usize) -> Vec<(String, OptionValue)> {
    // SAFETY: the caller's promise.
    let values = unsafe { list(start, len) };
    let copy = |v: &PJRT_NamedValue| {
        // SAFETY: the type says which value is there.
        let value = unsafe {
            match v.r#type {
                PJRT_NamedValue_kString => OptionValue::Text(text(v.value.string_value, v.value_size)),
                PJRT_NamedValue_kInt64 => OptionValue::Int(v.value.int64_value),
                PJRT_NamedValue_kInt64List => OptionValue::Ints(list(v.value.int64_array_value, v.value_size).to_vec()),
                PJRT_NamedValue_kFloat => OptionValue::Float(v.value.float_value),
                PJRT_NamedValue_kBool => OptionValue::Bool(v.value.bool_value),
                _ => return None,
            }
        };
        // SAFETY: the name is as long as the plugin says.
        Some((unsafe { text(v.name, v.name_size) }, value))
    };
    values.iter().filter_map(copy).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_as_they_went() {
        let options = vec![
            ("text".to_owned(), "some".into()),
            ("empty".to_owned(), "".into()),
            ("int".to_owned(), (-7).into()),
            ("ints".to_owned(), OptionValue::Ints(vec![1, 2, 3])),
            ("none".to_owned(), OptionValue::Ints(vec![])),
            ("float".to_owned(), OptionValue::Float(0.5)),
            ("bool".to_owned(), true.into()),
        ];
        let raw = NamedValues::new(&options);
        let (start, len) = raw.raw();
        // SAFETY: the values are those above.
        assert_eq!(unsafe { named_values(start, len) }, options);
    }
}
