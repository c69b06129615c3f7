//! Comparisons, also in IEEE total order. Results are `bool`.
//!
//! Read next: `select.rs`.

use crate::common::{
    Accept, FROM_KERNEL, NO_REWRITE, NOT_LINEAR, aligned, aligned_reference, nary_aval, nary_batch, zero_jvp,
};
use crate::elementwise::functions::{ANY, Call::Two, Function, ORDERED};
use crate::numbers::{integer, to_complex};
use crate::registry::Primitive;
use ferrax_base::{Aval, DType, Result, Scalar};
use ferrax_ir::reference::RefTensor;
use ferrax_ir::trace::bind1;
use ferrax_ir::{Avals, Def, Slot, Special, Value};
use ferrax_loops::{Builder, CompareOp, Kind, ReduceOp, Type, ValueId};
use smallvec::{SmallVec, smallvec};
use std::cmp::Ordering;

fn compare_shape(name: &str, accept: Accept, args: &[&Aval]) -> Result<Avals> {
    Ok(smallvec![nary_aval(name, accept, args)?.with_dtype(DType::Bool)])
}

/// Kernel of a comparison; keys compare as their words.
fn compare_kernel(b: &mut Builder, op: CompareOp, args: &[ValueId], outs: &[Aval]) -> Result<SmallVec<[ValueId; 1]>> {
    let shape = &outs[0].shape;
    let args = aligned(b, args, shape);
    if !b.ty(args[0]).dtype.is_key() {
        return Ok(smallvec![b.compare(op, args[0], args[1])]);
    }
    let mut words = shape.clone();
    words.push(2);
    let dims: SmallVec<[usize; 4]> = (0..shape.len()).collect();
    let mut unwrapped = |v: ValueId| {
        let v = if b.ty(v).shape == *shape { v } else { b.broadcast(v, shape, &[]) };
        b.push(Kind::Bitcast, &[v], Type::new(DType::U32, &words))
    };
    let (x, y) = (unwrapped(args[0]), unwrapped(args[1]));
    let each = b.compare(op, x, y);
    let all = if op == CompareOp::Eq { ReduceOp::And } else { ReduceOp::Or };
    Ok(smallvec![b.reduce(all, each, &[dims.len()])])
}

/// How two numbers of one dtype compare; `None` when one is NaN or they are complex and differ.
fn order(x: Scalar, y: Scalar) -> Option<Ordering> {
    match x.dtype {
        d if d.is_complex() => (to_complex(x) == to_complex(y)).then_some(Ordering::Equal),
        d if d.is_float() => x.to_f64().partial_cmp(&y.to_f64()),
        d if d.is_key() => (x.bits == y.bits).then_some(Ordering::Equal),
        _ => Some(integer(x).cmp(&integer(y))),
    }
}

/// How two numbers of one dtype compare in total order: by sign, then by the bits of the magnitude.
fn total_order(x: Scalar, y: Scalar) -> Option<Ordering> {
    if !x.dtype.is_float() {
        return order(x, y);
    }
    let sign = 1u128 << (x.dtype.size() * 8 - 1);
    let rank = |s: Scalar| {
        let magnitude = (s.bits & (sign - 1)) as i128;
        if s.bits & sign != 0 { -1 - magnitude } else { magnitude }
    };
    Some(rank(x).cmp(&rank(y)))
}

/// Writes the block of a comparison and the function that binds it.
macro_rules! compare {
    ($NAME:ident, $fun:ident, $name:literal, $accept:expr, $kernel:expr, $order:ident, $test:expr, $doc:literal) => {
        #[doc = $doc]
        pub static $NAME: Def<()> = Def {
            name: $name,
            doc: $doc,
            arity: Some(2),
            shape: |(), args| compare_shape($name, $accept, args),
            jvp: Slot::Rule(zero_jvp),
            transpose: Slot::None(NOT_LINEAR),
            batch: Slot::Rule(nary_batch),
            simplify: Slot::None(NO_REWRITE),
            stablehlo: Slot::None(FROM_KERNEL),
            kernel: Slot::Rule(|_, (), b, args, outs| {
                let kernel: fn(DType) -> CompareOp = $kernel;
                let dtype = b.ty(args[0]).dtype;
                compare_kernel(b, kernel(dtype), args, outs)
            }),
            reference: Slot::Rule(|(), args, outs| {
                let test: fn(Option<Ordering>) -> bool = $test;
                let args = aligned_reference(args, &outs[0].shape);
                Ok(vec![RefTensor::map(&outs[0], &args, |r| Scalar::from_bool(test($order(r[0], r[1]))))])
            }),
            special: Special::NONE,
        };

        #[doc = $doc]
        pub fn $fun(x: &Value, y: &Value) -> Result<Value> {
            bind1(&$NAME.op(), &[x.clone(), y.clone()])
        }
    };
}

const EQUALITY: Accept = Accept::ANY.or(Accept::KEY);

compare!(EQ, eq, "eq", EQUALITY, |_| CompareOp::Eq, order, |o| o == Some(Ordering::Equal), "Test for x == y.");
compare!(NE, ne, "ne", EQUALITY, |_| CompareOp::Ne, order, |o| o != Some(Ordering::Equal), "Test for x != y.");
compare!(LT, lt, "lt", Accept::ORDERED, |_| CompareOp::Lt, order, |o| o == Some(Ordering::Less), "Test for x < y.");
compare!(
    LE,
    le,
    "le",
    Accept::ORDERED,
    |_| CompareOp::Le,
    order,
    |o| o.is_some_and(Ordering::is_le),
    "Test for x <= y."
);
compare!(GT, gt, "gt", Accept::ORDERED, |_| CompareOp::Gt, order, |o| o == Some(Ordering::Greater), "Test for x > y.");
compare!(
    GE,
    ge,
    "ge",
    Accept::ORDERED,
    |_| CompareOp::Ge,
    order,
    |o| o.is_some_and(Ordering::is_ge),
    "Test for x >= y."
);
compare!(
    EQ_TO,
    eq_to,
    "eq_to",
    Accept::ANY,
    |d| if d.is_float() { CompareOp::EqTotal } else { CompareOp::Eq },
    total_order,
    |o| o == Some(Ordering::Equal),
    "Elementwise x == y in IEEE total order."
);
compare!(
    LT_TO,
    lt_to,
    "lt_to",
    Accept::ORDERED,
    |d| if d.is_float() { CompareOp::LtTotal } else { CompareOp::Lt },
    total_order,
    |o| o == Some(Ordering::Less),
    "Elementwise x < y in IEEE total order."
);
compare!(
    LE_TO,
    le_to,
    "le_to",
    Accept::ORDERED,
    |d| if d.is_float() { CompareOp::LeTotal } else { CompareOp::Le },
    total_order,
    |o| o.is_some_and(Ordering::is_le),
    "Elementwise x <= y in IEEE total order."
);

// ---- the functions as host languages have them ----------------------------------------------------------------------

/// The functions of this file, with their words.
pub(super) static FUNCTIONS: &[Function] = &[
    Function::new("eq", Two(eq), &EQ, ANY, ["{f}(jnp.array([1, 2]), 2)", "[False  True]"]).gives("bool"),
    Function::new("ne", Two(ne), &NE, ANY, ["{f}(jnp.array([1, 2]), 2)", "[ True False]"]).gives("bool"),
    Function::new("lt", Two(lt), &LT, ORDERED, ["{f}(jnp.array([1, 2]), 2)", "[ True False]"]).gives("bool"),
    Function::new("le", Two(le), &LE, ORDERED, ["{f}(jnp.array([1, 3]), 2)", "[ True False]"]).gives("bool"),
    Function::new("gt", Two(gt), &GT, ORDERED, ["{f}(jnp.array([1, 3]), 2)", "[False  True]"]).gives("bool"),
    Function::new("ge", Two(ge), &GE, ORDERED, ["{f}(jnp.array([1, 2]), 2)", "[False  True]"]).gives("bool"),
];

/// The primitives of this file that are no function of `lax`.
pub(super) static OTHERS: &[&dyn Primitive] = &[&EQ_TO, &LT_TO, &LE_TO];
