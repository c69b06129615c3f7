//! Reverse mode of `while`: the number of steps is known only when the loop has run.
//!
//! Linearization runs the loop as it is and records one linear operation, [`WHILE_LINEAR`], around the loop's operands.
//! Its transpose counts the steps, runs the loop again keeping every stride-th carry in a buffer of fixed size, and goes
//! back segment by segment: a segment is run once more, keeping its carries in a second buffer, and each step's
//! derivative is transposed from the last to the first. With buffers of S slots, loops of up to S² steps run forward
//! four times in all and need memory for 2S carries; in longer ones the second buffer has a stride too, and the steps in
//! between are repeated. Nothing depends on a traced number's value, so it works under `jit` and `vmap` alike.
//!
//! Source: checkpointing schedules with a bounded number of snapshots (Griewank and Walther, "Evaluating Derivatives",
//! chapter 12). Read next: `while_loop.rs`.

use super::jit::{JIT, Jit, inline_program};
use super::while_loop::{WHILE, While, while_jvp, while_loop, while_shape};
use super::{Loop, Part, check_results, eval_reference, mask, or, present, split_operands, spread};
use crate::dynamic_slice::{dynamic_index_in_dim, dynamic_update_index_in_dim};
use crate::{add, div, eq, ge, lt, max, min, mul, rem, select, sub};
use ferrax_base::shape::total;
use ferrax_base::{Aval, DType, Result, bail};
use ferrax_ir::{DebugInfo, Def, Effects, JaxprRef, OpRef, Slot, Special, Tangents, TransposeArg, Value, Values, bind};
use ferrax_transform::programs::{LinearProgram, linearize_jaxpr};
use ferrax_transform::staging::stage_closed;
use ferrax_transform::structural::{add_any, broadcast_batch, instantiate, zeros};
use ferrax_transform::{backward, eval_jaxpr};

ferrax_ir::params! {
    /// Parameters of `while_linear`.
    pub struct WhileLinear {
        /// Which constants of the body carry a tangent.
        body_consts_linear: Vec<bool>,
        /// carry → carry, after its constants.
        body_jaxpr: JaxprRef,
        /// Which carried values have a tangent.
        carry_linear: Vec<bool>,
        /// carry → bool, after its constants.
        cond_jaxpr: JaxprRef,
        /// Number of the condition's constants.
        cond_nconsts: usize,
    }
    hidden {
        /// The user's loop.
        of: Loop,
    }
}

impl WhileLinear {
    fn whole(&self) -> While {
        While {
            body_jaxpr: self.body_jaxpr.clone(),
            body_nconsts: self.body_consts_linear.len(),
            cond_jaxpr: self.cond_jaxpr.clone(),
            cond_nconsts: self.cond_nconsts,
            of: self.of,
        }
    }

    /// Number of the loop's own operands; tangents follow them.
    fn operands(&self) -> usize {
        self.cond_nconsts + self.body_consts_linear.len() + self.carry_linear.len()
    }

    /// The operation as a call of a program: operands, tangents → tangents of the carry.
    fn call(&self) -> Result<Jit> {
        let whole = self.whole();
        let carry = self.body_jaxpr.out_avals();
        let mut avals = self.cond_jaxpr.in_avals()[..self.cond_nconsts].to_vec();
        avals.extend(self.body_jaxpr.in_avals());
        let n = avals.len();
        avals.extend(pick(&self.body_jaxpr.in_avals(), &self.body_consts_linear).map(Aval::tangent));
        avals.extend(pick(&carry, &self.carry_linear).map(Aval::tangent));
        let jaxpr = stage_closed("linearize", DebugInfo::named("while"), &avals, |args| {
            let linear = [&vec![false; self.cond_nconsts], &self.body_consts_linear[..], &self.carry_linear].concat();
            let tangents = spread(args[n..].iter().cloned(), &linear);
            let (_, tangents) = while_jvp(&OpRef::new(&WHILE, whole.clone()), &whole, &args[..n], &tangents)?;
            let wanted = tangents.into_iter().zip(&carry).zip(&self.carry_linear).filter(|(_, on)| **on);
            wanted.map(|((t, a), _)| instantiate(t, &a.tangent())).collect()
        })?;
        Ok(Jit { name: "while".into(), jaxpr, inline: false })
    }
}

fn pick<'a, T>(items: &'a [T], mask: &'a [bool]) -> impl Iterator<Item = &'a T> {
    items.iter().zip(mask).filter(|(_, m)| **m).map(|(v, _)| v)
}

/// (operands of a `while`…, tangents…) → tangents of the carry: the loop's derivative at its operands.
pub static WHILE_LINEAR: Def<WhileLinear> = Def {
    name: "while_linear",
    doc: "The derivative of a while loop: linear in the tangents that follow the loop's operands.",
    arity: None,
    shape: |p, args| {
        let (operands, tangents) = split_operands("while_linear", args, p.operands())?;
        let carry = while_shape(&p.whole(), operands)?;
        let body = p.body_jaxpr.in_avals();
        let linear = pick(&body, &p.body_consts_linear).chain(pick(&carry, &p.carry_linear));
        let wanted: Vec<Aval> = linear.map(Aval::tangent).collect();
        let given: Vec<Aval> = tangents.iter().map(|&a| a.clone()).collect();
        check_results("the caller of while_linear", &given, &wanted, "it takes tangents of types")?;
        Ok(pick(&carry, &p.carry_linear).map(Aval::tangent).collect())
    },
    jvp: Slot::Rule(|_, p, primals, tangents| {
        let op = OpRef::new(&JIT, p.call()?);
        op.jvp(&op, primals, tangents)
    }),
    transpose: Slot::Rule(|_, p, cts, args| {
        let n = p.operands();
        let operands = args[..n].iter().map(|a| a.known().cloned()).collect::<Result<Vec<_>>>()?;
        let avals: Vec<Aval> = pick(&p.body_jaxpr.out_avals(), &p.carry_linear).cloned().collect();
        let pulled = pull_back(p, &operands, super::instantiate_all(cts, &avals)?)?;
        Ok(std::iter::repeat_n(None, n).chain(pulled.into_iter().map(Some)).collect())
    }),
    batch: Slot::Rule(|_, p, axis, args, dims| {
        let op = OpRef::new(&JIT, p.call()?);
        op.batch(&op, axis, args, dims)
    }),
    simplify: Slot::None("passes work inside the programs"),
    stablehlo: Slot::None("from its kernel"),
    kernel: Slot::Rule(|_, p, b, args, _| inline_program(&p.call()?.jaxpr, b, args)),
    reference: Slot::Rule(|p, args, _| eval_reference(&p.call()?.jaxpr, args)),
    special: Special {
        linearize: Some(|_, p, primals, tangents| {
            let op = OpRef::new(&JIT, p.call()?);
            op.linearize(&op, primals, tangents)
        }),
        ..Special::NONE
    },
};

/// Runs the loop and records its derivative as one operation.
pub(super) fn while_linearize(
    _: &OpRef,
    p: &While,
    primals: &[Value],
    tangents: &[Option<Value>],
) -> Result<(Values, Tangents)> {
    if p.body_jaxpr.effects.union(p.cond_jaxpr.effects).contains(Effects::IO) {
        bail!(
            NotImplemented,
            "reverse-mode differentiation of a while_loop with side effects: its steps are repeated on the way back"
        );
    }
    let first = p.cond_nconsts + p.body_nconsts;
    let consts_linear = mask(&tangents[p.cond_nconsts..first]);
    let mut carry_linear = mask(&tangents[first..]);
    loop {
        let nonzero = [&consts_linear[..], &carry_linear].concat();
        let grown = or(&carry_linear, &linearize_jaxpr(&p.body_jaxpr, &nonzero, &carry_linear)?.nonzero_out);
        if grown == carry_linear {
            break;
        }
        carry_linear = grown;
    }
    let outs = while_loop(p.clone(), primals)?;
    let avals = p.body_jaxpr.out_avals();
    let mut args = primals.to_vec();
    args.extend(present(&tangents[p.cond_nconsts..first]));
    for ((t, a), _) in tangents[first..].iter().zip(&avals).zip(&carry_linear).filter(|(_, on)| **on) {
        args.push(instantiate(t.clone(), &a.tangent())?);
    }
    let params = WhileLinear {
        body_consts_linear: consts_linear,
        body_jaxpr: without_prints(&p.body_jaxpr),
        carry_linear: carry_linear.clone(),
        cond_jaxpr: without_prints(&p.cond_jaxpr),
        cond_nconsts: p.cond_nconsts,
        of: p.of,
    };
    let out_tangents = bind(&OpRef::new(&WHILE_LINEAR, params), &args)?;
    Ok((outs.into(), spread(out_tangents, &carry_linear)))
}

/// A program without what it only shows: steps that are repeated show nothing again.
fn without_prints(jaxpr: &JaxprRef) -> JaxprRef {
    if !jaxpr.effects.shows() {
        return jaxpr.clone();
    }
    let mut out = (**jaxpr).clone();
    let shown = Effects::DEBUG.union(Effects::ORDERED_DEBUG);
    out.eqns.retain(|e| !(e.outputs.is_empty() && shown.contains(e.op.effects())));
    out.effects = out.eqns.iter().fold(Effects::NONE, |all, e| all.union(e.op.effects()));
    out.into()
}

// ---- the way back --------------------------------------------------------------------------------------------------

fn int(v: i64) -> Value {
    Value::int(DType::I32, v)
}

/// `while test(carry): carry = body(carry)` over values that `consts` stand for inside.
fn repeat(
    of: Loop,
    consts: &[Value],
    init: &[Value],
    test: impl FnOnce(&[Value], &[Value]) -> Result<Value>,
    body: impl FnOnce(&[Value], &[Value]) -> Result<Vec<Value>>,
) -> Result<Vec<Value>> {
    let n = consts.len();
    let avals: Vec<Aval> = consts.iter().chain(init).map(|v| v.aval().with_weak(false)).collect();
    let debug = || DebugInfo::named("while");
    let cond_jaxpr = stage_closed("transpose", debug(), &avals, |a| Ok(vec![test(&a[..n], &a[n..])?]))?;
    let body_jaxpr = stage_closed("transpose", debug(), &avals, |a| body(&a[..n], &a[n..]))?;
    let params = While { body_jaxpr, body_nconsts: n, cond_jaxpr, cond_nconsts: n, of };
    while_loop(params, &[consts, consts, init].concat())
}

/// One loop being taken back: its programs, and how many slots its buffers have.
struct Back<'a> {
    p: &'a WhileLinear,
    step: LinearProgram,
    slots: i64,
}

/// Cotangents of the constants and of the carry that have tangents.
fn pull_back(p: &WhileLinear, operands: &[Value], cts: Vec<Value>) -> Result<Vec<Value>> {
    let nonzero = [&p.body_consts_linear[..], &p.carry_linear].concat();
    let step = linearize_jaxpr(&p.body_jaxpr, &nonzero, &p.carry_linear)?;
    let carry_bytes = total(p.body_jaxpr.out_avals().iter().map(Aval::bytes));
    let slots = ((256 << 10) / carry_bytes.max(1)).clamp(16, 1024) as i64;
    let back = Back { p, step, slots };
    let first = p.cond_nconsts + p.body_consts_linear.len();
    let (consts, init) = operands.split_at(first);
    let steps = back.count(consts, init)?;
    // Segments of S steps, or longer ones when there would be more than S of them.
    let stride = max(&int(slots), &back.divided_up(&steps)?)?;
    let starts = back.keep(consts, init, &steps, &stride)?;
    let last = sub(&div(&add(&steps, &sub(&stride, &int(1))?)?, &stride)?, &int(1))?;
    let known = [consts, &starts, &[steps, stride]].concat();
    let mut state = vec![last];
    for a in pick(&p.body_jaxpr.in_avals(), &p.body_consts_linear) {
        state.push(zeros(&a.tangent())?);
    }
    state.extend(cts);
    let (n, m) = (consts.len(), starts.len());
    let mut out = repeat(
        p.of.part(Part::Segments),
        &known,
        &state,
        |_, s| ge(&s[0], &int(0)),
        |known, s| {
            let (steps, stride) = (&known[n + m], &known[n + m + 1]);
            let start = known[n..n + m].iter().map(|b| dynamic_index_in_dim(b, &s[0], 0, false, false));
            let start = start.collect::<Result<Vec<_>>>()?;
            let length = min(stride, &sub(steps, &mul(&s[0], stride)?)?)?;
            let mut next = vec![sub(&s[0], &int(1))?];
            next.extend(back.segment(&known[..n], &start, &length, &s[1..])?);
            Ok(next)
        },
    )?;
    out.remove(0);
    Ok(out)
}

impl Back<'_> {
    fn holds(&self, consts: &[Value], carry: &[Value]) -> Result<Value> {
        Ok(eval_jaxpr(&self.p.cond_jaxpr, &[&consts[..self.p.cond_nconsts], carry].concat())?.remove(0))
    }

    fn advance(&self, consts: &[Value], carry: &[Value]) -> Result<Vec<Value>> {
        eval_jaxpr(&self.p.body_jaxpr, &[&consts[self.p.cond_nconsts..], carry].concat())
    }

    /// How many steps the loop takes.
    fn count(&self, consts: &[Value], init: &[Value]) -> Result<Value> {
        let state = [&[int(0)], init].concat();
        let out = repeat(
            Loop::INNER,
            consts,
            &state,
            |c, s| self.holds(c, &s[1..]),
            |c, s| {
                let mut next = vec![add(&s[0], &int(1))?];
                next.extend(self.advance(c, &s[1..])?);
                Ok(next)
            },
        )?;
        Ok(out[0].clone())
    }

    /// How many steps a slot stands for when all slots share `steps`.
    fn divided_up(&self, steps: &Value) -> Result<Value> {
        max(&int(1), &div(&add(steps, &int(self.slots - 1))?, &int(self.slots))?)
    }

    /// Takes `steps` steps from `start`, keeping every `stride`-th carry; the last slot takes all others.
    fn keep(&self, consts: &[Value], start: &[Value], steps: &Value, stride: &Value) -> Result<Vec<Value>> {
        let (n, m) = (consts.len(), start.len());
        let known = [consts, &[steps.clone(), stride.clone()]].concat();
        let mut state = [&[int(0)], start].concat();
        for x in start {
            state.push(broadcast_batch(x, None, self.slots as usize + 1, 0)?);
        }
        let mut out = repeat(
            Loop::INNER,
            &known,
            &state,
            |known, s| lt(&s[0], &known[n]),
            |known, s| {
                let stride = &known[n + 1];
                let kept = eq(&rem(&s[0], stride)?, &int(0))?;
                let slot = select(&kept, &div(&s[0], stride)?, &int(self.slots))?;
                let carry = &s[1..=m];
                let mut next = vec![add(&s[0], &int(1))?];
                next.extend(self.advance(&known[..n], carry)?);
                for (buffer, x) in s[m + 1..].iter().zip(carry) {
                    next.push(dynamic_update_index_in_dim(buffer, x, &slot, 0, false)?);
                }
                Ok(next)
            },
        )?;
        Ok(out.split_off(m + 1))
    }

    /// Takes the cotangents back over `length` steps that begin at `start`.
    fn segment(&self, consts: &[Value], start: &[Value], length: &Value, cts: &[Value]) -> Result<Vec<Value>> {
        let stride = self.divided_up(length)?;
        let kept = self.keep(consts, start, length, &stride)?;
        let (n, m) = (consts.len(), kept.len());
        let known = [consts, &kept, &[stride]].concat();
        let state = [&[sub(length, &int(1))?], cts].concat();
        let mut out = repeat(
            self.p.of.part(Part::Segment),
            &known,
            &state,
            |_, s| ge(&s[0], &int(0)),
            |known, s| {
                let stride = &known[n + m];
                let slot = div(&s[0], stride)?;
                let near = known[n..n + m].iter().map(|b| dynamic_index_in_dim(b, &slot, 0, false, false));
                let near = near.collect::<Result<Vec<_>>>()?;
                let carry = self.replay(&known[..n], &near, &rem(&s[0], stride)?)?;
                let mut next = vec![sub(&s[0], &int(1))?];
                next.extend(self.step_back(&known[..n], &carry, &s[1..])?);
                Ok(next)
            },
        )?;
        out.remove(0);
        Ok(out)
    }

    /// Takes `steps` steps from `start`.
    fn replay(&self, consts: &[Value], start: &[Value], steps: &Value) -> Result<Vec<Value>> {
        let n = consts.len();
        let known = [consts, std::slice::from_ref(steps)].concat();
        let mut out = repeat(
            Loop::INNER,
            &known,
            &[&[int(0)], start].concat(),
            |known, s| lt(&s[0], &known[n]),
            |known, s| {
                let mut next = vec![add(&s[0], &int(1))?];
                next.extend(self.advance(&known[..n], &s[1..])?);
                Ok(next)
            },
        )?;
        out.remove(0);
        Ok(out)
    }

    /// Cotangents before a step from those after it.
    fn step_back(&self, consts: &[Value], carry: &[Value], cts: &[Value]) -> Result<Vec<Value>> {
        let body_consts = &consts[self.p.cond_nconsts..];
        let mut outs = eval_jaxpr(&self.step.known, &[body_consts, carry].concat())?;
        let residuals = outs.split_off(self.p.carry_linear.len());
        let count = pick(&self.p.body_consts_linear, &self.p.body_consts_linear).count();
        let avals = self.step.linear.in_avals().split_off(self.step.residuals);
        let args: Vec<TransposeArg> = residuals
            .into_iter()
            .map(TransposeArg::Known)
            .chain(avals.iter().cloned().map(TransposeArg::Linear))
            .collect();
        let given: Vec<Option<Value>> = cts[count..].iter().cloned().map(Some).collect();
        let pulled = backward(&self.step.linear, &args, &given)?.split_off(self.step.residuals);
        let mut next = Vec::with_capacity(cts.len());
        for (i, (ct, aval)) in pulled.into_iter().zip(&avals).enumerate() {
            next.push(match (ct, cts.get(i).filter(|_| i < count)) {
                (Some(ct), Some(sum)) => add_any(sum, &ct)?,
                (None, Some(sum)) => sum.clone(),
                (ct, None) => instantiate(ct, aval)?,
            });
        }
        Ok(next)
    }
}
