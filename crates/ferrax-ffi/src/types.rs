//! Element types as the C interface numbers them, which is as XLA's protocol buffers do.

use ferrax_base::{DType, Result, error};
use std::ffi::c_int;

/// The number of an element type. Keys of random numbers are pairs of `uint32`: see [`crate::call`].
pub(crate) fn code(dtype: DType) -> Result<c_int> {
    Ok(match dtype {
        DType::Bool => 1,
        DType::I2 => 26,
        DType::I4 => 21,
        DType::I8 => 2,
        DType::I16 => 3,
        DType::I32 => 4,
        DType::I64 => 5,
        DType::U2 => 27,
        DType::U4 => 22,
        DType::U8 => 6,
        DType::U16 => 7,
        DType::U32 | DType::KeyFry => 8,
        DType::U64 => 9,
        DType::F16 => 10,
        DType::F32 => 11,
        DType::F64 => 12,
        DType::C64 => 15,
        DType::BF16 => 16,
        DType::C128 => 18,
        DType::F8E5M2 => 19,
        DType::F8E4M3FN => 20,
        DType::F8E4M3B11FNUZ => 23,
        DType::F8E5M2FNUZ => 24,
        DType::F8E4M3FNUZ => 25,
        DType::F8E4M3 => 28,
        DType::F8E3M4 => 29,
        DType::F4E2M1FN => 32,
        DType::F8E8M0FNU => 33,
        DType::Float0 => return Err(error!(Type, "a foreign function takes no float0: it has no elements")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_different() {
        let numbers = DType::ALL.iter().filter(|d| !matches!(d, DType::Float0 | DType::KeyFry));
        let mut numbers: Vec<c_int> = numbers.map(|&d| code(d).unwrap()).collect();
        let count = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), count);
        assert!(code(DType::Float0).is_err());
    }
}
