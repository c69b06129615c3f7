//! `jit`: a call of a program that is compiled as one unit.

use super::known::{depends, is_among, known_program};
use super::{batch_first, check_args, dims_of, eval_reference, mask, present, split_linear, spread};
use ferrax_base::{Result, Scalar};
use ferrax_ir::lower::lower_into;
use ferrax_ir::op::{KnownPart, Role};
use ferrax_ir::{
    Def, Effects, JaxprRef, OpRef, Param, ParamValue, Params, Slot, Special, Tangents, TransposeArg, Value, Values,
    bind,
};
use ferrax_loops::{Builder, Bytes, Kind, Type, ValueId};
use ferrax_transform::programs::{batch_jaxpr, jvp_jaxpr, linearize_jaxpr, transpose_jaxpr};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Parameters of `jit`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Jit {
    /// The function's name.
    pub name: Arc<str>,
    /// The program.
    pub jaxpr: JaxprRef,
    /// Whether enclosing programs inline it.
    pub inline: bool,
}

impl Params for Jit {
    fn print(&self) -> Vec<(&'static str, Param)> {
        let mut out = vec![("name", self.name.print()), ("jaxpr", Param::Jaxpr(self.jaxpr.clone()))];
        if self.inline {
            out.insert(0, ("inline", self.inline.print()));
        }
        out
    }
    fn parse(fields: &BTreeMap<String, Param>) -> Option<Self> {
        Some(Jit {
            name: ParamValue::parse(fields.get("name")?)?,
            jaxpr: ParamValue::parse(fields.get("jaxpr")?)?,
            inline: fields.get("inline").is_some_and(|p| bool::parse(p) == Some(true)),
        })
    }
    fn subjaxprs(&self) -> Vec<JaxprRef> {
        vec![self.jaxpr.clone()]
    }
}

/// Calls a program.
pub static JIT: Def<Jit> = Def {
    name: "jit",
    doc: "Calls a program that is compiled as one unit.",
    arity: None,
    shape: |p, args| {
        check_args("jit", &p.jaxpr, args)?;
        Ok(p.jaxpr.out_avals().into())
    },
    jvp: Slot::Rule(|_, p, primals, tangents| {
        let nonzero = mask(tangents);
        let none = vec![false; p.jaxpr.outvars.len()];
        let program = jvp_jaxpr(&p.jaxpr, &nonzero, &none)?;
        let args: Vec<Value> = primals.iter().cloned().chain(present(tangents)).collect();
        let mut outs = call(p, program.jaxpr, &args)?;
        let out_tangents = outs.split_off(none.len());
        Ok((outs.into(), spread(out_tangents, &program.nonzero_out)))
    }),
    transpose: Slot::Rule(jit_transpose),
    batch: Slot::Rule(|_, p, axis, args, dims| {
        let none = vec![false; p.jaxpr.outvars.len()];
        let program = batch_jaxpr(&p.jaxpr, axis, &mask(dims), &none)?;
        let outs = call(p, program.jaxpr, &batch_first(args, dims, axis.size)?)?;
        Ok((outs.into(), dims_of(&program.batched_out)))
    }),
    simplify: Slot::None("passes work inside the program"),
    stablehlo: Slot::None("from its kernel"),
    kernel: Slot::Rule(|_, p, b, args, _| inline_program(&p.jaxpr, b, args)),
    reference: Slot::Rule(|p, args, _| eval_reference(&p.jaxpr, args)),
    special: Special {
        linearize: Some(jit_linearize),
        effects: Some(|p| p.jaxpr.effects),
        role: Role::Calls(|p| p.jaxpr.clone()),
        known: Some(jit_known),
        ..Special::NONE
    },
};

/// The call of the part of the program that depends on no linear operand.
fn jit_known(p: &Jit, linear: &[bool]) -> Option<KnownPart> {
    let depends = depends(&p.jaxpr, linear);
    let outputs: Vec<usize> =
        (0..p.jaxpr.outvars.len()).filter(|&i| !is_among(&depends, &p.jaxpr.outvars[i])).collect();
    if outputs.is_empty() || p.jaxpr.effects != Effects::NONE {
        return None;
    }
    let inputs: Vec<usize> = (0..linear.len()).filter(|&i| !linear[i]).collect();
    let outvars = outputs.iter().map(|&i| p.jaxpr.outvars[i]).collect();
    let params = Jit { jaxpr: known_program(&p.jaxpr, &depends, &inputs, outvars).into(), ..p.clone() };
    Some(KnownPart { op: OpRef::new(&JIT, params), inputs, outputs })
}

/// Optimizes a program and appends its operations to a graph, its constants as dense nodes that share the
/// arrays' memory.
pub(crate) fn inline_program(
    jaxpr: &JaxprRef,
    b: &mut Builder,
    args: &[ValueId],
) -> Result<smallvec::SmallVec<[ValueId; 1]>> {
    let jaxpr = ferrax_transform::passes::optimize(jaxpr)?;
    let mut operands = Vec::with_capacity(jaxpr.consts.len() + args.len());
    for c in &jaxpr.consts {
        let ty = Type::from(c.aval());
        let pin = c.pin_owned()?;
        let kind = if ty.size() == 1 {
            Kind::Const(Scalar::from_bytes(ty.dtype, pin.as_ref()))
        } else {
            Kind::Dense(Bytes::of(pin))
        };
        operands.push(b.push(kind, &[], ty));
    }
    operands.extend_from_slice(args);
    Ok(lower_into(&jaxpr, b, &operands)?.into())
}

/// Binds `jit` with a program derived from this one's.
fn call(p: &Jit, jaxpr: JaxprRef, args: &[Value]) -> Result<Vec<Value>> {
    let params = Jit { name: p.name.clone(), jaxpr, inline: p.inline };
    Ok(bind(&OpRef::new(&JIT, params), args)?.into_vec())
}

fn jit_linearize(_: &OpRef, p: &Jit, primals: &[Value], tangents: &[Option<Value>]) -> Result<(Values, Tangents)> {
    let none = vec![false; p.jaxpr.outvars.len()];
    let program = linearize_jaxpr(&p.jaxpr, &mask(tangents), &none)?;
    let mut outs = call(p, program.known, primals)?;
    let residuals = outs.split_off(none.len());
    let args: Vec<Value> = residuals.into_iter().chain(present(tangents)).collect();
    if program.linear.outvars.is_empty() {
        return Ok((outs.into(), spread([], &program.nonzero_out)));
    }
    let out_tangents = call(p, program.linear, &args)?;
    Ok((outs.into(), spread(out_tangents, &program.nonzero_out)))
}

fn jit_transpose(_: &OpRef, p: &Jit, cts: &[Option<Value>], args: &[TransposeArg]) -> Result<Tangents> {
    let (linear, mut operands) = split_linear(args);
    let program = transpose_jaxpr(&p.jaxpr, &linear, &mask(cts), false)?;
    operands.extend(present(cts));
    let pulled = call(p, program.jaxpr, &operands)?;
    let mut of_linear = spread(pulled, &program.nonzero_out).into_iter();
    Ok(linear.iter().map(|&l| if l { of_linear.next().flatten() } else { None }).collect())
}

/// Calls a program as one unit: one operation under transformations, one executable when run.
pub fn jit_call(name: Arc<str>, jaxpr: JaxprRef, inline: bool, args: &[Value]) -> Result<Values> {
    bind(&OpRef::new(&JIT, Jit { name, jaxpr, inline }), args)
}
