//! Operations that give their operands back and mean something to transformations or the compiler:
//! `copy`, `stop_gradient`, `optimization_barrier`, `name`.
//!
//! Read next: `special.rs`.

use crate::common::{FROM_KERNEL, NO_REWRITE, NOT_LINEAR, unary_batch, zero_jvp};
use crate::registry::Primitive;
use ferrax_base::Result;
use ferrax_ir::trace::bind1;
use ferrax_ir::{Def, OpRef, Slot, Special, Tangents, Value, Values, bind};
use ferrax_loops::{Kind, Type};
use ferrax_transform::structural::instantiate;
use smallvec::{SmallVec, smallvec};

/// A copy.
pub static COPY: Def<()> = Def {
    name: "copy",
    doc: "A copy of an array that shares no memory with it.",
    arity: Some(1),
    shape: |(), args| Ok(smallvec![args[0].clone()]),
    jvp: Slot::Rule(ferrax_transform::structural::linear_jvp),
    transpose: Slot::Rule(|_, (), cts, _| Ok(smallvec![cts[0].as_ref().map(copy).transpose()?])),
    batch: Slot::Rule(unary_batch),
    simplify: Slot::None("a copy must stay one"),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, (), b, args, outs| Ok(smallvec![b.push(Kind::Reshape, args, (&outs[0]).into())])),
    reference: Slot::Rule(|(), args, _| Ok(vec![args[0].clone()])),
    special: Special::ELEMENTWISE,
};

/// A copy of an array that shares no memory with it.
pub fn copy(x: &Value) -> Result<Value> {
    bind1(&COPY.op(), std::slice::from_ref(x))
}

/// The value, as a constant to differentiation.
pub static STOP_GRADIENT: Def<()> = Def {
    name: "stop_gradient",
    doc: "The operand, treated as a constant by differentiation.",
    arity: Some(1),
    shape: |(), args| Ok(smallvec![args[0].clone()]),
    jvp: Slot::Rule(zero_jvp),
    transpose: Slot::None(NOT_LINEAR),
    batch: Slot::Rule(unary_batch),
    simplify: Slot::None("a later differentiation of the program must still see it"),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, (), _, args, _| Ok(smallvec![args[0]])),
    reference: Slot::Rule(|(), args, _| Ok(vec![args[0].clone()])),
    special: Special { eager: Some(|_, (), args| Ok(smallvec![args[0].clone()])), ..Special::NONE },
};

/// The operand, treated as a constant by differentiation; integers and `bool` are constants already.
pub fn stop_gradient(x: &Value) -> Result<Value> {
    if !x.dtype().is_inexact() {
        return Ok(x.clone());
    }
    bind1(&STOP_GRADIENT.op(), std::slice::from_ref(x))
}

/// Operands that are all computed before any result is used.
pub static OPTIMIZATION_BARRIER: Def<()> = Def {
    name: "optimization_barrier",
    doc: "The operands, across which the compiler moves, merges and fuses nothing.",
    arity: None,
    shape: |(), args| Ok(args.iter().map(|a| (*a).clone()).collect()),
    jvp: Slot::Rule(|op, (), primals, tangents| {
        let outs = bind(op, primals)?;
        let known: SmallVec<[usize; 4]> = (0..tangents.len()).filter(|&i| tangents[i].is_some()).collect();
        if known.is_empty() {
            let none = smallvec![None; outs.len()];
            return Ok((outs, none));
        }
        let moved: Values = bind(op, &known.iter().filter_map(|&i| tangents[i].clone()).collect::<Values>())?;
        let mut out: Tangents = smallvec![None; outs.len()];
        known.into_iter().zip(moved).for_each(|(i, t)| out[i] = Some(t));
        Ok((outs, out))
    }),
    transpose: Slot::Rule(|op, (), cts, args| {
        let mut full = Values::new();
        for (ct, arg) in cts.iter().zip(args) {
            full.push(instantiate(ct.clone(), &arg.aval())?);
        }
        Ok(bind(op, &full)?.into_iter().zip(args).map(|(ct, a)| a.is_linear().then_some(ct)).collect())
    }),
    batch: Slot::Rule(|op, (), _, args, dims| Ok((bind(op, args)?, dims.iter().copied().collect()))),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, (), b, args, outs| {
        let types: SmallVec<[Type; 4]> = outs.iter().map(Type::from).collect();
        Ok(b.push_many(Kind::Barrier, args, &types))
    }),
    reference: Slot::Rule(|(), args, _| Ok(args.to_vec())),
    special: Special { eager: Some(|_, (), args| Ok(args.iter().cloned().collect())), ..Special::WEIGHTED },
};

/// The operands, across which the compiler moves, merges and fuses nothing.
pub fn optimization_barrier(args: &[Value]) -> Result<Values> {
    bind(&OPTIMIZATION_BARRIER.op(), args)
}

ferrax_ir::params! {
    /// Parameters of `name`.
    pub struct Name {
        /// The name.
        name: std::sync::Arc<str>,
    }
}

/// The operand, under a name that policies of `checkpoint` know.
pub static NAME: Def<Name> = Def {
    name: "name",
    doc: "The operand, under a name that policies of checkpoint know.",
    arity: Some(1),
    shape: |_, args| Ok(smallvec![args[0].clone()]),
    jvp: Slot::Rule(|op, _, primals, tangents| {
        // The name is the value's: its tangent has none.
        let out = bind(op, primals)?;
        Ok((out, smallvec![tangents[0].clone()]))
    }),
    transpose: Slot::Rule(|_, _, cts, _| Ok(smallvec![cts[0].clone()])),
    batch: Slot::Rule(unary_batch),
    simplify: Slot::None("a later differentiation of the program must still see it"),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, _, _, args, _| Ok(smallvec![args[0]])),
    reference: Slot::Rule(|_, args, _| Ok(vec![args[0].clone()])),
    special: Special { eager: Some(|_, _, args| Ok(smallvec![args[0].clone()])), ..Special::ELEMENTWISE },
};

/// The operand, under a name that policies of `checkpoint` know.
pub fn name(x: &Value, name: &str) -> Result<Value> {
    bind1(&OpRef::new(&NAME, Name { name: name.into() }), std::slice::from_ref(x))
}

/// The primitives of this file.
pub(super) static PRIMITIVES: &[&dyn Primitive] = &[&COPY, &STOP_GRADIENT, &OPTIMIZATION_BARRIER, &NAME];
