//! Element types as the C API numbers them.

use crate::sys::PJRT_Buffer_Type;
use ferrax_base::{DType, Result, error};

/// Dtypes by the number of their type in the C API: `PRED` is 1.
const TYPES: [Option<DType>; 30] = [
    None,
    Some(DType::Bool),
    Some(DType::I8),
    Some(DType::I16),
    Some(DType::I32),
    Some(DType::I64),
    Some(DType::U8),
    Some(DType::U16),
    Some(DType::U32),
    Some(DType::U64),
    Some(DType::F16),
    Some(DType::F32),
    Some(DType::F64),
    Some(DType::BF16),
    Some(DType::C64),
    Some(DType::C128),
    Some(DType::F8E5M2),
    Some(DType::F8E4M3FN),
    Some(DType::F8E4M3B11FNUZ),
    Some(DType::F8E5M2FNUZ),
    Some(DType::F8E4M3FNUZ),
    Some(DType::I4),
    Some(DType::U4),
    // a token, which orders effects and has no elements
    None,
    Some(DType::I2),
    Some(DType::U2),
    Some(DType::F8E4M3),
    Some(DType::F8E3M4),
    Some(DType::F8E8M0FNU),
    Some(DType::F4E2M1FN),
];

/// The type that elements of a dtype have in programs: keys of random numbers are 64-bit integers, `float0` is `bool`.
pub(crate) fn raw(dtype: DType) -> PJRT_Buffer_Type {
    let stored = match dtype {
        DType::KeyFry => DType::U64,
        DType::Float0 => DType::Bool,
        other => other,
    };
    TYPES.iter().position(|t| *t == Some(stored)).map_or(0, |at| at as PJRT_Buffer_Type)
}

/// The dtype of a type of the C API.
pub(crate) fn dtype(raw: PJRT_Buffer_Type) -> Result<DType> {
    let known = usize::try_from(raw).ok().and_then(|at| TYPES.get(at).copied().flatten());
    known.ok_or_else(|| error!(NotImplemented, "XLA's element type number {raw} is none of ferrax's dtypes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dtype_has_a_type() {
        for &d in DType::ALL {
            let back = dtype(raw(d)).unwrap();
            assert_eq!(back.size(), d.size());
            assert!(back == d || matches!(d, DType::KeyFry | DType::Float0), "{d}");
        }
        assert!(dtype(0).is_err() && dtype(23).is_err() && dtype(31).is_err() && dtype(-1).is_err());
    }
}
