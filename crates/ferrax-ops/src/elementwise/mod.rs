//! Elementwise primitives: every one of JAX's `lax`, a block each.
//!
//! Read next: `unary.rs` for functions of one operand, `binary.rs` and `compare.rs` for two, `select.rs` for
//! `select_n` and `clamp`, `convert.rs` for changes of dtype, `identity.rs` for operations that give their
//! operands back, `special.rs` for special functions.

pub mod binary;
pub mod compare;
pub mod convert;
pub mod identity;
pub mod select;
pub mod unary;

use crate::registry::Primitive;

/// The primitives of this family.
pub(crate) static PRIMITIVES: &[&'static dyn Primitive] = &[
    &unary::NEG,
    &unary::SIGN,
    &unary::FLOOR,
    &unary::CEIL,
    &unary::ROUND,
    &unary::IS_FINITE,
    &unary::EXP,
    &unary::EXP2,
    &unary::LOG,
    &unary::EXPM1,
    &unary::LOG1P,
    &unary::TANH,
    &unary::LOGISTIC,
    &unary::SIN,
    &unary::COS,
    &unary::TAN,
    &unary::ASIN,
    &unary::ACOS,
    &unary::ATAN,
    &unary::SINH,
    &unary::COSH,
    &unary::ASINH,
    &unary::ACOSH,
    &unary::ATANH,
    &unary::SQRT,
    &unary::RSQRT,
    &unary::CBRT,
    &unary::SQUARE,
    &unary::INTEGER_POW,
    &unary::ABS,
    &unary::REAL,
    &unary::IMAG,
    &unary::CONJ,
    &unary::NOT,
    &unary::POPULATION_COUNT,
    &unary::CLZ,
    &binary::ADD,
    &binary::SUB,
    &binary::MUL,
    &binary::DIV,
    &binary::REM,
    &binary::MAX,
    &binary::MIN,
    &binary::POW,
    &binary::ATAN2,
    &binary::NEXTAFTER,
    &binary::COMPLEX,
    &binary::AND,
    &binary::OR,
    &binary::XOR,
    &binary::SHIFT_LEFT,
    &binary::SHIFT_RIGHT_ARITHMETIC,
    &binary::SHIFT_RIGHT_LOGICAL,
    &binary::MULHI,
    &compare::EQ,
    &compare::NE,
    &compare::LT,
    &compare::LE,
    &compare::GT,
    &compare::GE,
    &compare::EQ_TO,
    &compare::LT_TO,
    &compare::LE_TO,
    &select::SELECT_N,
    &select::CLAMP,
    &convert::CONVERT_ELEMENT_TYPE,
    &convert::BITCAST_CONVERT_TYPE,
    &convert::REDUCE_PRECISION,
    &identity::COPY,
    &identity::STOP_GRADIENT,
    &identity::OPTIMIZATION_BARRIER,
];
