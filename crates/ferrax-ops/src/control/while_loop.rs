//! `while`: repeats a body as long as a condition holds.
//!
//! Forward mode carries tangents along. Reverse mode repeats the loop on its way back: read next `while_reverse.rs`.

use super::cond::subgraph;
use super::while_reverse::while_linearize;
use super::{
    Loop, batch_where, check_args, check_results, dims_of, eval_reference, mask, or, present, split_operands, spread,
};
use crate::{convert_element_type, ne, reduce_sum, select};
use ferrax_base::{Aval, DType, Result, bail};
use ferrax_ir::op::{BatchAxis, BatchDims};
use ferrax_ir::{Avals, Def, Effects, JaxprRef, OpRef, Slot, Special, Tangents, Value, Values, bind};
use ferrax_loops::{Kind, Type};
use ferrax_transform::eval_jaxpr;
use ferrax_transform::programs::{batch_jaxpr, jvp_jaxpr};
use ferrax_transform::staging::stage_closed;
use ferrax_transform::structural::{broadcast_in_dim, instantiate};
use std::sync::Arc;

ferrax_ir::params! {
    /// Parameters of `while`.
    pub struct While {
        /// carry → carry, after its constants.
        body_jaxpr: JaxprRef,
        /// Number of the body's constants.
        body_nconsts: usize,
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

/// (constants of cond…, constants of body…, carry…) → carry.
pub static WHILE: Def<While> = Def {
    name: "while",
    doc: "Repeats a body as long as a condition holds.",
    arity: None,
    shape: while_shape,
    jvp: Slot::Rule(while_jvp),
    transpose: Slot::None("a loop is not linear; linearization records `while_linear`"),
    batch: Slot::Rule(while_batch),
    simplify: Slot::None("no rewrite applies"),
    stablehlo: Slot::None("from its kernel"),
    kernel: Slot::Rule(|_, p, b, args, outs| {
        let kind = Kind::While {
            cond: Arc::new(subgraph(&p.cond_jaxpr)?),
            body: Arc::new(subgraph(&p.body_jaxpr)?),
            cond_consts: p.cond_nconsts,
            body_consts: p.body_nconsts,
        };
        let types: Vec<Type> = outs.iter().map(Type::from).collect();
        Ok(b.push_many(kind, args, &types))
    }),
    reference: Slot::Rule(|p, args, _| {
        let (consts, carry) = args.split_at(p.cond_nconsts + p.body_nconsts);
        let (cond_consts, body_consts) = consts.split_at(p.cond_nconsts);
        let mut carry = carry.to_vec();
        while eval_reference(&p.cond_jaxpr, &[cond_consts, &carry].concat())?[0].data[0].is_nonzero() {
            carry = eval_reference(&p.body_jaxpr, &[body_consts, &carry].concat())?;
        }
        Ok(carry)
    }),
    special: Special {
        linearize: Some(while_linearize),
        effects: Some(|p| p.cond_jaxpr.effects.union(p.body_jaxpr.effects)),
        ..Special::NONE
    },
};

pub(super) fn while_shape(p: &While, args: &[&Aval]) -> Result<Avals> {
    let (consts, carry) = split_operands("while", args, p.cond_nconsts.saturating_add(p.body_nconsts))?;
    let (cond_consts, body_consts) = consts.split_at(p.cond_nconsts);
    check_args("while cond_fun", &p.cond_jaxpr, &[cond_consts, carry].concat())?;
    check_args("while body_fun", &p.body_jaxpr, &[body_consts, carry].concat())?;
    let test = p.cond_jaxpr.out_avals();
    if test.len() != 1 || test[0].dtype != DType::Bool || test[0].rank() != 0 {
        bail!(Type, "cond_fun must return a boolean scalar");
    }
    let outs = p.body_jaxpr.out_avals();
    let started = &p.body_jaxpr.in_avals()[p.body_nconsts..];
    check_results("the body of while", &outs, started, "its carry must keep the types that it has,")?;
    Ok(outs.into())
}

impl While {
    fn carry(&self) -> usize {
        self.body_jaxpr.outvars.len()
    }
}

/// Repeats `body_jaxpr` while `cond_jaxpr` holds; `args` are cond's constants, body's constants, the carry.
pub fn while_loop(params: While, args: &[Value]) -> Result<Vec<Value>> {
    Ok(bind(&OpRef::new(&WHILE, params), args)?.into_vec())
}

pub(super) fn while_jvp(
    _: &OpRef,
    p: &While,
    primals: &[Value],
    tangents: &[Option<Value>],
) -> Result<(Values, Tangents)> {
    let first = p.cond_nconsts + p.body_nconsts;
    let const_nonzero = mask(&tangents[p.cond_nconsts..first]);
    let mut carry_nonzero = mask(&tangents[first..]);
    // The carry's tangents that can ever be nonzero: a fixpoint that only grows.
    let program = loop {
        let nonzero: Vec<bool> = const_nonzero.iter().chain(&carry_nonzero).copied().collect();
        let program = jvp_jaxpr(&p.body_jaxpr, &nonzero, &carry_nonzero)?;
        let grown = or(&carry_nonzero, &program.nonzero_out);
        if grown == carry_nonzero {
            break program;
        }
        carry_nonzero = grown;
    };
    let avals = p.body_jaxpr.out_avals();
    let carry_tangents = tangents[first..]
        .iter()
        .zip(&avals)
        .zip(&carry_nonzero)
        .filter(|&(_, &on)| on)
        .map(|((t, a), _)| instantiate(t.clone(), &a.tangent()))
        .collect::<Result<Vec<Value>>>()?;
    let const_tangents: Vec<Value> = present(&tangents[p.cond_nconsts..first]).collect();
    let body = reorder_jvp_body(&program.jaxpr, p.body_nconsts, p.carry(), const_tangents.len())?;
    let cond = extend_cond(&p.cond_jaxpr, carry_tangents.iter().map(Value::aval))?;
    let params = While {
        body_jaxpr: body,
        body_nconsts: p.body_nconsts + const_tangents.len(),
        cond_jaxpr: cond,
        cond_nconsts: p.cond_nconsts,
        of: p.of,
    };
    let args: Vec<Value> = primals[..first]
        .iter()
        .cloned()
        .chain(const_tangents)
        .chain(primals[first..].iter().cloned())
        .chain(carry_tangents)
        .collect();
    let mut outs = while_loop(params, &args)?;
    let out_tangents = outs.split_off(p.carry());
    Ok((outs.into(), spread(out_tangents, &carry_nonzero)))
}

/// consts, carry, const tangents, carry tangents → consts, const tangents, carry, carry tangents.
fn reorder_jvp_body(jaxpr: &JaxprRef, consts: usize, carry: usize, const_tangents: usize) -> Result<JaxprRef> {
    let mut out = (**jaxpr).clone();
    let moved: Vec<_> = out.invars.splice(consts + carry..consts + carry + const_tangents, []).collect();
    out.invars.splice(consts..consts, moved);
    Ok(out.into())
}

/// A condition that ignores further carry values.
fn extend_cond(jaxpr: &JaxprRef, extra: impl Iterator<Item = Aval>) -> Result<JaxprRef> {
    let mut out = (**jaxpr).clone();
    for aval in extra {
        let v = out.new_var(aval);
        out.invars.push(v);
    }
    Ok(out.into())
}

fn while_batch(
    _: &OpRef,
    p: &While,
    axis: &BatchAxis,
    args: &[Value],
    dims: &[Option<usize>],
) -> Result<(Values, BatchDims)> {
    let first = p.cond_nconsts + p.body_nconsts;
    let batched = mask(dims);
    let (cond_consts, body_consts) = batched[..first].split_at(p.cond_nconsts);
    let mut carry = batched[first..].to_vec();
    let (body, test) = loop {
        let cond_in = [cond_consts, &carry[..]].concat();
        let test = batch_jaxpr(&p.cond_jaxpr, axis, &cond_in, &[false])?;
        if test.batched_out[0] {
            // Rows stop at different times: the whole carry must have rows of its own.
            carry.fill(true);
        }
        let body = batch_jaxpr(&p.body_jaxpr, axis, &[body_consts, &carry[..]].concat(), &carry)?;
        let grown = or(&carry, &body.batched_out);
        if grown == carry {
            let test = batch_jaxpr(&p.cond_jaxpr, axis, &[cond_consts, &carry[..]].concat(), &[false])?;
            break (body, test);
        }
        carry = grown;
    };
    let on = [cond_consts, body_consts, &carry[..]].concat();
    let operands = batch_where(args, dims, &on, axis)?;
    let params = if test.batched_out[0] {
        if p.body_jaxpr.effects.union(p.cond_jaxpr.effects).contains(Effects::IO) {
            bail!(
                NotImplemented,
                "Unordered IO effects not supported in while_loop with batched predicate: rows that have stopped would \
                 call the host, too. Have all rows take the same steps, or map with lax.map."
            );
        }
        per_row(p, &body.jaxpr, &test.jaxpr)?
    } else {
        While { body_jaxpr: body.jaxpr, cond_jaxpr: test.jaxpr, ..p.clone() }
    };
    let operands = if test.batched_out[0] {
        // The body asks the condition too, so its constants come along.
        [&operands[..first], &operands[..p.cond_nconsts], &operands[first..]].concat()
    } else {
        operands
    };
    let outs = while_loop(params, &operands)?;
    Ok((outs.into(), dims_of(&carry)))
}

/// A loop over rows that stop at different times: runs until all have stopped, and keeps stopped rows.
fn per_row(p: &While, body: &JaxprRef, test: &JaxprRef) -> Result<While> {
    let cond_jaxpr = stage_closed("vmap", test.debug.clone(), &test.in_avals(), |args| {
        let rows = eval_jaxpr(test, args)?.remove(0);
        let running = reduce_sum(&convert_element_type(&rows, DType::I32)?, &[0])?;
        Ok(vec![ne(&running, &Value::int(DType::I32, 0))?])
    })?;
    let test_consts = test.in_avals()[..p.cond_nconsts].to_vec();
    let avals: Vec<Aval> = body.in_avals()[..p.body_nconsts]
        .iter()
        .cloned()
        .chain(test_consts)
        .chain(body.in_avals()[p.body_nconsts..].iter().cloned())
        .collect();
    let n = p.body_nconsts;
    let body_jaxpr = stage_closed("vmap", body.debug.clone(), &avals, |args| {
        let carry = &args[n + p.cond_nconsts..];
        let rows = eval_jaxpr(test, &[&args[n..n + p.cond_nconsts], carry].concat())?.remove(0);
        let next = eval_jaxpr(body, &[&args[..n], carry].concat())?;
        next.iter()
            .zip(carry)
            .map(|(new, old)| select(&broadcast_in_dim(&rows, new.shape(), &[0])?, new, old))
            .collect()
    })?;
    Ok(While { body_jaxpr, body_nconsts: p.body_nconsts + p.cond_nconsts, cond_jaxpr, ..p.clone() })
}
