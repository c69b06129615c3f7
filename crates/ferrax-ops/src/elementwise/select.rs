//! Choosing between operands: `select_n` and `clamp`.
//!
//! Operands have one shape; what chooses (`which`, `min`, `max`) may be a scalar. Read next: `convert.rs`.

use crate::common::{
    Accept, FROM_KERNEL, NO_REWRITE, NOT_LINEAR, check_operand, check_same_dtypes, constant, constant_int, full_like,
    one, same_shape_batch, stretch, sum_tangents, zeros_like,
};
use crate::elementwise::binary::{MAX, MIN, bitwise_and, bitwise_or};
use crate::elementwise::compare::{eq, gt, lt, ne};
use crate::elementwise::convert::convert_element_type;
use crate::registry::Primitive;
use ferrax_base::shape::Tuple;
use ferrax_base::{Aval, Result, Scalar, bail};
use ferrax_ir::op::{Rewriter, Role};
use ferrax_ir::reference::RefTensor;
use ferrax_ir::trace::bind1;
use ferrax_ir::{Atom, Avals, Def, Op, OpRef, Slot, Special, Tangents, TransposeArg, Value, Values};
use ferrax_loops::{Builder, CompareOp, Kind, ValueId};
use ferrax_transform::live::MarkOps;
use ferrax_transform::structural::zeros;
use smallvec::{SmallVec, smallvec};

// ---- select_n ------------------------------------------------------------------------------------------------------

/// The case that `which` selects.
pub static SELECT_N: Def<()> = Def {
    name: "select_n",
    doc: "Elementwise choice among cases by a boolean (false: the first) or an integer, which is clamped.",
    arity: None,
    shape: |(), args| select_shape(args),
    jvp: Slot::Rule(|op, (), primals, tangents| {
        let out = bind1(op, primals)?;
        if tangents[1..].iter().all(Option::is_none) {
            return Ok(one(out, None));
        }
        let mut args: SmallVec<[Value; 3]> = smallvec![primals[0].clone()];
        for (t, x) in tangents[1..].iter().zip(&primals[1..]) {
            args.push(t.clone().map_or_else(|| zeros_like(x), Ok)?);
        }
        let tangent = bind1(op, &args)?;
        Ok(one(out, Some(tangent)))
    }),
    transpose: Slot::Rule(select_transpose),
    batch: Slot::Rule(|op, (), axis, args, dims| same_shape_batch(op, axis, args, dims, |i| i == 0)),
    simplify: Slot::Rule(select_simplify),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, (), b, args, outs| {
        // All cases are one value, as where `stop_gradient` was what told them apart.
        let same = args[2..].iter().all(|&case| case == args[1]);
        Ok(smallvec![if same { args[1] } else { chosen(b, args[0], (0, &args[1..]), &outs[0]) }])
    }),
    reference: Slot::Rule(|(), args, outs| {
        let cases = args.len() as i128 - 1;
        let f = |r: &[Scalar]| r[1 + crate::numbers::integer(r[0]).clamp(0, cases - 1) as usize];
        Ok(vec![RefTensor::map(&outs[0], args, f)])
    }),
    special: Special { role: Role::Selects, ..Special::NONE },
};

/// The choice among the cases from `first` on. An integer is compared with the middle: machines choose by truth values, and each
/// row of a mapped `cond` or `switch` has an integer of its own.
fn chosen(b: &mut Builder, which: ValueId, (first, cases): (usize, &[ValueId]), out: &Aval) -> ValueId {
    let ty = b.ty(which).clone();
    if ty.dtype.is_bool() {
        let inputs: SmallVec<[ValueId; 3]> = std::iter::once(which).chain(cases.iter().copied()).collect();
        return b.push(Kind::Select, &inputs, out.into());
    }
    let [_, _, ..] = cases else { return cases[0] };
    let (low, high) = cases.split_at(cases.len() / 2);
    let middle = b.scalar(Scalar::from_i64(ty.dtype, (first + low.len()) as i64));
    let middle = b.broadcast(middle, &ty.shape, &[]);
    let below = b.compare(CompareOp::Lt, which, middle);
    let above = chosen(b, which, (first + low.len(), high), out);
    let low = chosen(b, which, (first, low), out);
    b.push(Kind::Select, &[below, above, low], out.into())
}

fn select_shape(args: &[&Aval]) -> Result<Avals> {
    let [which, cases @ ..] = args else { bail!(Type, "select must have at least one case") };
    if cases.is_empty() {
        bail!(Type, "select must have at least one case");
    }
    check_same_dtypes("select", cases)?;
    if !Accept::BITS.has(which.dtype) {
        bail!(Type, "select `which` must be boolean or integer type, got {}.", which.dtype);
    }
    if which.dtype.is_bool() && cases.len() > 2 {
        bail!(Type, "select with boolean `which` cannot have > 2 cases.");
    }
    if cases.iter().any(|c| c.shape != cases[0].shape) {
        let shapes: Vec<String> = cases.iter().map(|c| Tuple(&c.shape).to_string()).collect();
        bail!(Type, "select cases must have the same shapes, got [{}].", shapes.join(", "));
    }
    if !which.shape.is_empty() && which.shape != cases[0].shape {
        bail!(
            Type,
            "select `which` must be scalar or have the same shape as cases, got `which` shape {} but case shape {}.",
            Tuple(&which.shape),
            Tuple(&cases[0].shape)
        );
    }
    Ok(smallvec![cases[0].with_weak(cases.iter().all(|c| c.weak))])
}

fn select_transpose(_: &OpRef, (): &(), cts: &[Option<Value>], args: &[TransposeArg]) -> Result<Tangents> {
    let Some(ct) = &cts[0] else { return Ok(smallvec![None; args.len()]) };
    let which = args[0].known()?;
    let mut out: Tangents = smallvec![None];
    let nothing = zeros(&ct.aval())?;
    for (i, case) in args[1..].iter().enumerate() {
        out.push(match (case.is_linear(), which.dtype().is_bool()) {
            (false, _) => None,
            (true, true) if i == 0 => Some(select(which, &nothing, ct)?),
            (true, true) => Some(select(which, ct, &nothing)?),
            (true, false) => Some(select(&eq(which, &constant_int(which, i as i64))?, ct, &nothing)?),
        });
    }
    Ok(out)
}

/// A choice by a literal is the chosen case; a choice among equal cases is that case. No bits change.
fn select_simplify(_: &OpRef, (): &(), cx: &mut dyn Rewriter, inputs: &[Atom]) -> Result<Option<SmallVec<[Atom; 1]>>> {
    let weak = inputs[1..].iter().all(|a| cx.aval(a).weak);
    let chosen = match inputs[0] {
        Atom::Lit(l) => {
            let last = inputs.len() as i128 - 2;
            inputs[1 + crate::numbers::integer(l.scalar).clamp(0, last) as usize]
        }
        Atom::Var(_) if inputs[2..].iter().all(|a| *a == inputs[1]) => inputs[1],
        Atom::Var(_) => return Ok(None),
    };
    Ok((cx.aval(&chosen).weak == weak).then(|| smallvec![chosen]))
}

/// Elementwise choice among cases by a boolean (false: the first) or an integer, which is clamped.
pub fn select_n(which: &Value, cases: &[Value]) -> Result<Value> {
    let mut args: SmallVec<[Value; 3]> = SmallVec::with_capacity(cases.len() + 1);
    args.push(which.clone());
    args.extend(cases.iter().cloned());
    bind1(&SELECT_N.op(), &args)
}

/// `on_true` where `pred` holds, else `on_false`; all of one shape, `pred` may be a scalar.
pub fn select(pred: &Value, on_true: &Value, on_false: &Value) -> Result<Value> {
    bind1(&SELECT_N.op(), &[pred.clone(), on_false.clone(), on_true.clone()])
}

/// What `safe_where` needs of this crate: see `ferrax_transform::live`.
pub(crate) const MARK_OPS: MarkOps = MarkOps {
    keep: |live, value, elsewhere| select(live, value, &full_like(value, elsewhere)?),
    ones: convert_element_type,
    nonzero: |x| ne(x, &constant(x, 0.0)),
    either: bitwise_or,
};

// ---- clamp ---------------------------------------------------------------------------------------------------------

/// x moved into [min, max].
pub static CLAMP: Def<()> = Def {
    name: "clamp",
    doc: "Elementwise x moved into [min, max]; the bounds may be scalars.",
    arity: Some(3),
    shape: |(), args| {
        for i in 0..3 {
            check_operand("clamp", Accept::ANY, args, i)?;
        }
        check_same_dtypes("clamp", args)?;
        for (i, name) in [(0, "min"), (2, "max")] {
            if !args[i].shape.is_empty() && args[i].shape != args[1].shape {
                bail!(
                    Type,
                    "clamp requires {name}.shape == operand.shape or {name}.shape == (), got {name}.shape={}, \
                     operand.shape={}.",
                    Tuple(&args[i].shape),
                    Tuple(&args[1].shape)
                );
            }
        }
        Ok(smallvec![args[1].with_weak(args.iter().all(|a| a.weak))])
    },
    jvp: Slot::Rule(clamp_jvp),
    transpose: Slot::None(NOT_LINEAR),
    batch: Slot::Rule(|op, (), axis, args, dims| same_shape_batch(op, axis, args, dims, |i| i != 1)),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, (), b, args, outs| Ok(smallvec![b.push(Kind::Clamp, args, (&outs[0]).into())])),
    reference: Slot::Rule(|(), args, outs| {
        if outs[0].dtype.is_complex() {
            let lowered = MIN.reference(&[args[1].clone(), args[2].clone()], outs)?;
            return MAX.reference(&[lowered[0].clone(), args[0].clone()], outs);
        }
        let raised = MAX.reference(&[args[1].clone(), args[0].clone()], outs)?;
        MIN.reference(&[raised[0].clone(), args[2].clone()], outs)
    }),
    special: Special::NONE,
};

fn clamp_jvp(op: &OpRef, (): &(), primals: &[Value], tangents: &[Option<Value>]) -> Result<(Values, Tangents)> {
    let out = bind1(op, primals)?;
    let (min, x, max) = (&primals[0], &primals[1], &primals[2]);
    let masked = |mask: Value, g: &Value| -> Result<Value> {
        let g = stretch(g, out.shape())?;
        select(&stretch(&mask, out.shape())?, &g, &zeros_like(&g)?)
    };
    let by_min = match &tangents[0] {
        Some(g) => Some(masked(bitwise_and(&gt(min, x)?, &lt(min, max)?)?, g)?),
        None => None,
    };
    let by_x = match &tangents[1] {
        Some(g) => Some(masked(bitwise_and(&gt(x, min)?, &lt(x, max)?)?, g)?),
        None => None,
    };
    let by_max = match &tangents[2] {
        Some(g) => Some(masked(lt(max, x)?, g)?),
        None => None,
    };
    let tangent = sum_tangents(sum_tangents(by_min, by_x)?, by_max)?;
    Ok(one(out, tangent))
}

/// Elementwise x moved into [min, max]; the bounds may be scalars.
pub fn clamp(min: &Value, x: &Value, max: &Value) -> Result<Value> {
    bind1(&CLAMP.op(), &[min.clone(), x.clone(), max.clone()])
}

/// The primitives of this file.
pub(super) static PRIMITIVES: &[&dyn Primitive] = &[&SELECT_N, &CLAMP];
