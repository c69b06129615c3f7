//! `scan`: a body applied along the leading axis of its inputs, with a carry.
//!
//! Linearization runs the known part forward, stacking what the linear part needs; values that do not change
//! from step to step are passed once, not stacked.

use super::cond::subgraph;
use super::known::{depends, is_among, known_program, reached};
use super::{Loop, batch_where, check_args, check_results, dims_of, eval_reference, mask, or, split_operands, spread};
use crate::ADD;
use ferrax_base::{Aval, Result, Scalar, bail};
use ferrax_ir::op::{BatchAxis, BatchDims, KnownPart};
use ferrax_ir::reference::RefTensor;
use ferrax_ir::{
    Atom, Avals, Def, Effects, JaxprRef, OpRef, Slot, Special, Tangents, TransposeArg, Value, Values, Var, bind,
};
use ferrax_loops::{BinaryOp, Builder, Kind, Type, ValueId};
use ferrax_transform::batching::place_axis;
use ferrax_transform::programs::{LinearProgram, batch_jaxpr, jvp_jaxpr, linearize_jaxpr};
use ferrax_transform::staging::stage_closed;
use ferrax_transform::structural::{add_any, instantiate, zeros};
use smallvec::SmallVec;
use std::sync::Arc;

ferrax_ir::params! {
    /// Parameters of `scan`.
    pub struct Scan {
        /// consts, carry, one row of each input → carry, one row of each output.
        jaxpr: JaxprRef,
        /// Number of steps.
        length: usize,
        /// Number of carried values.
        num_carry: usize,
        /// Number of constants.
        num_consts: usize,
        /// Whether the inputs are taken from the last row to the first.
        reverse: bool,
        /// Steps per loop iteration; a hint.
        unroll: usize,
    }
    hidden {
        /// The body is linear in the whole carry, and carried operands that are not tangents are zeros: set by
        /// linearization and transposition, which instantiate symbolic zeros.
        linear_carry: bool,
        /// The user's loop.
        of: Loop,
    }
}

/// (consts…, carry…, xs… stacked on axis 0) → (carry…, ys… stacked on axis 0).
pub static SCAN: Def<Scan> = Def {
    name: "scan",
    doc: "Applies a body along the leading axis of its inputs, carrying values from step to step.",
    arity: None,
    shape: scan_shape,
    jvp: Slot::Rule(scan_jvp),
    transpose: Slot::Rule(scan_transpose),
    batch: Slot::Rule(scan_batch),
    simplify: Slot::None("no rewrite applies"),
    stablehlo: Slot::None("from its kernel"),
    kernel: Slot::Rule(|_, p, b, args, outs| {
        if let Some(results) = without_steps(p, b, args, outs) {
            return Ok(results);
        }
        let body = Arc::new(subgraph(&p.jaxpr)?);
        let kind = Kind::Scan { body, length: p.length, reverse: p.reverse, consts: p.num_consts, carry: p.num_carry };
        let types: Vec<Type> = outs.iter().map(Type::from).collect();
        Ok(b.push_many(kind, args, &types))
    }),
    reference: Slot::Rule(scan_reference),
    special: Special {
        linearize: Some(scan_linearize),
        effects: Some(|p| p.jaxpr.effects),
        known: Some(scan_known),
        ..Special::NONE
    },
};

impl Scan {
    fn first_xs(&self) -> usize {
        self.num_consts.saturating_add(self.num_carry)
    }

    fn ys(&self) -> usize {
        self.jaxpr.outvars.len() - self.num_carry
    }
}

/// Scans `params.jaxpr`; `args` are constants, carry, stacked inputs.
pub fn scan(params: Scan, args: &[Value]) -> Result<Vec<Value>> {
    Ok(bind(&OpRef::new(&SCAN, params), args)?.into_vec())
}

pub(super) fn stacked(aval: &Aval, length: usize) -> Aval {
    ferrax_ir::spread::with_axis(aval.clone(), 0, length, 0)
}

fn row_shape(aval: &Aval) -> Aval {
    ferrax_ir::spread::without_axis(aval.clone(), 0)
}

fn scan_shape(p: &Scan, args: &[&Aval]) -> Result<Avals> {
    let (front, xs) = split_operands("scan", args, p.first_xs())?;
    if let Some(x) = xs.iter().find(|x| x.shape.first() != Some(&p.length)) {
        bail!(Value, "scan got an input of type {x} where the leading axis must have size {}", p.length);
    }
    let rows: Vec<Aval> = xs.iter().map(|x| row_shape(x)).collect();
    let all: Vec<&Aval> = front.iter().copied().chain(&rows).collect();
    check_args("scan", &p.jaxpr, &all)?;
    let outs = p.jaxpr.out_avals();
    let (carry, ys) = split_operands("the carry of scan", &outs, p.num_carry)?;
    let started = &p.jaxpr.in_avals()[p.num_consts..p.first_xs()];
    check_results("the body of scan", carry, started, "its carry must keep the types that it has,")?;
    Ok(carry.iter().cloned().chain(ys.iter().map(|y| stacked(y, p.length))).collect())
}

/// The results of a scan that needs no steps: there are none, or every carried value stays as it is or grows by one integer
/// each time.
fn without_steps(p: &Scan, b: &mut Builder, args: &[ValueId], outs: &[Aval]) -> Option<SmallVec<[ValueId; 1]>> {
    let j = &p.jaxpr;
    if p.length == 0 {
        let mut results = SmallVec::from_slice(&args[p.num_consts..p.first_xs()]);
        let none = |y: &Aval| b.push(Kind::Const(Scalar::zero(y.dtype)), &[], Type::from(y));
        results.extend(outs[p.num_carry..].iter().map(none));
        return Some(results);
    }
    if p.ys() > 0 || !j.effects.is_none() {
        return None;
    }
    let step = |(out, own): (&Atom, &Var)| {
        let Atom::Var(out) = out else { return None };
        if out == own {
            return Some(None);
        }
        let eqn = j.eqns.iter().find(|e| e.outputs.contains(out)).filter(|e| e.op.is(&ADD))?;
        match eqn.inputs.as_slice() {
            [Atom::Var(x), Atom::Lit(by)] | [Atom::Lit(by), Atom::Var(x)] if x == own => {
                let dtype = by.scalar.dtype;
                let total = by.scalar.to_i64().wrapping_mul(p.length as i64);
                dtype.is_integer().then(|| Some(Scalar::from_i64(dtype, total)))
            }
            _ => None,
        }
    };
    let own = &j.invars[p.num_consts..p.first_xs()];
    let steps: Vec<Option<Scalar>> = j.outvars.iter().zip(own).map(step).collect::<Option<_>>()?;
    let mut results = SmallVec::new();
    for (&start, by) in args[p.num_consts..].iter().zip(steps) {
        results.push(match by {
            None => start,
            Some(total) => {
                let total = b.scalar(total);
                b.binary(BinaryOp::Add, start, total)
            }
        });
    }
    Some(results)
}

fn scan_reference(p: &Scan, args: &[RefTensor], outs: &[Aval]) -> Result<Vec<RefTensor>> {
    let (consts, rest) = args.split_at(p.num_consts);
    let (carry, xs) = rest.split_at(p.num_carry);
    let mut carry = carry.to_vec();
    let mut rows: Vec<Vec<RefTensor>> = vec![Vec::new(); p.ys()];
    let order: Vec<usize> = if p.reverse { (0..p.length).rev().collect() } else { (0..p.length).collect() };
    for &i in &order {
        let mut step = [consts, &carry].concat();
        step.extend(xs.iter().map(|x| {
            let aval = row_shape(&x.aval);
            let n = aval.size();
            RefTensor { data: x.data[i * n..(i + 1) * n].to_vec(), aval }
        }));
        let mut out = eval_reference(&p.jaxpr, &step)?;
        for (ys, y) in rows.iter_mut().zip(out.split_off(p.num_carry)) {
            ys.push(y);
        }
        carry = out;
    }
    for (ys, aval) in rows.into_iter().zip(&outs[p.num_carry..]) {
        let ordered: Vec<RefTensor> = if p.reverse { ys.into_iter().rev().collect() } else { ys };
        carry.push(RefTensor { aval: aval.clone(), data: ordered.into_iter().flat_map(|y| y.data).collect() });
    }
    Ok(carry)
}

// ---- jvp -----------------------------------------------------------------------------------------------------------

fn scan_jvp(_: &OpRef, p: &Scan, primals: &[Value], tangents: &[Option<Value>]) -> Result<(Values, Tangents)> {
    let nonzero = mask(tangents);
    let (consts, rest) = nonzero.split_at(p.num_consts);
    let (carry, xs) = rest.split_at(p.num_carry);
    let (program, carry) = carry_fixpoint(p, consts, carry, xs, |m, inst| {
        let program = jvp_jaxpr(&p.jaxpr, m, inst)?;
        let out = program.nonzero_out.clone();
        Ok((program, out))
    })?;
    let count = |m: &[bool]| m.iter().filter(|&&b| b).count();
    let ([nc, nk, nx], n_in) = ([count(consts), count(&carry), count(xs)], p.jaxpr.invars.len());
    let (out_carry, out_ys) = program.nonzero_out.split_at(p.num_carry);
    let (oc, n_out) = (count(out_carry), p.jaxpr.outvars.len());
    let mut body = (*program.jaxpr).clone();
    // consts, carry, xs, then tangents of each: bring each tangent group behind its primals.
    let v = body.invars.clone();
    let t = n_in;
    let fx = p.first_xs();
    body.invars = [
        &v[..p.num_consts],
        &v[t..t + nc],
        &v[p.num_consts..fx],
        &v[t + nc..t + nc + nk],
        &v[fx..t],
        &v[t + nc + nk..t + nc + nk + nx],
    ]
    .concat();
    let o = body.outvars.clone();
    body.outvars = [&o[..p.num_carry], &o[n_out..n_out + oc], &o[p.num_carry..n_out], &o[n_out + oc..]].concat();
    let carry_tangents = start_tangents(p, &tangents[p.num_consts..fx], &carry)?;
    let args = [
        primals[..p.num_consts].to_vec(),
        tangents[..p.num_consts].iter().flatten().cloned().collect(),
        primals[p.num_consts..fx].to_vec(),
        carry_tangents,
        primals[fx..].to_vec(),
        tangents[fx..].iter().flatten().cloned().collect(),
    ]
    .concat();
    let params = Scan {
        jaxpr: body.into(),
        num_consts: p.num_consts + nc,
        num_carry: p.num_carry + nk,
        linear_carry: false,
        ..p.clone()
    };
    let outs = scan(params, &args)?;
    let ys = &outs[p.num_carry + oc..];
    let primal_outs = [&outs[..p.num_carry], &ys[..p.ys()]].concat();
    let mut tangent_outs = spread(outs[p.num_carry..p.num_carry + oc].to_vec(), out_carry);
    tangent_outs.extend(spread(ys[p.ys()..].to_vec(), out_ys));
    Ok((primal_outs.into(), tangent_outs))
}

/// Zeros for the carried tangents that start as symbolic zeros.
fn start_tangents(p: &Scan, tangents: &[Option<Value>], on: &[bool]) -> Result<Vec<Value>> {
    let avals = p.jaxpr.in_avals();
    tangents
        .iter()
        .zip(&avals[p.num_consts..])
        .zip(on)
        .filter(|&(_, &on)| on)
        .map(|((t, a), _)| instantiate(t.clone(), &a.tangent()))
        .collect()
}

/// Grows the set of carried values with a property until the body agrees that carry out needs no more than carry in.
fn carry_fixpoint<T>(
    p: &Scan,
    consts: &[bool],
    carry: &[bool],
    xs: &[bool],
    transform: impl Fn(&[bool], &[bool]) -> Result<(T, Vec<bool>)>,
) -> Result<(T, Vec<bool>)> {
    let mut carry = carry.to_vec();
    loop {
        let input = [consts, &carry[..], xs].concat();
        let inst = [&carry[..], &vec![false; p.ys()]].concat();
        let (made, out) = transform(&input, &inst)?;
        let grown = or(&carry, &out[..p.num_carry]);
        if grown == carry {
            return Ok((made, carry));
        }
        carry = grown;
    }
}

// ---- linearize -----------------------------------------------------------------------------------------------------

/// Where a residual of the body comes from.
enum Residual {
    /// It is the i-th operand: a constant, the same at every step, or the rows of what is scanned over.
    Operand(usize),
    /// It is the i-th result, stacked already.
    Result(usize),
    /// It is made at every step: stacked as an extra output.
    Stacked,
}

fn classify(p: &Scan, program: &LinearProgram) -> Vec<Residual> {
    let (results, residuals) = program.known.outvars.split_at(p.jaxpr.outvars.len());
    let carried = p.num_consts..p.first_xs();
    let source = |atom: &Atom| {
        let Atom::Var(v) = atom else { return Residual::Stacked };
        let operand = program.known.invars.iter().position(|x| x == v).filter(|i| !carried.contains(i));
        let result = results.iter().skip(p.num_carry).position(|y| y == atom).map(|i| p.num_carry + i);
        operand.map(Residual::Operand).or(result.map(Residual::Result)).unwrap_or(Residual::Stacked)
    };
    residuals.iter().map(source).collect()
}

fn scan_linearize(_: &OpRef, p: &Scan, primals: &[Value], tangents: &[Option<Value>]) -> Result<(Values, Tangents)> {
    let nonzero = mask(tangents);
    let (consts, rest) = nonzero.split_at(p.num_consts);
    let (carry, xs) = rest.split_at(p.num_carry);
    let (program, carry) = carry_fixpoint(p, consts, carry, xs, |m, inst| {
        let program = linearize_jaxpr(&p.jaxpr, m, inst)?;
        let out = program.nonzero_out.clone();
        Ok((program, out))
    })?;
    let kinds = classify(p, &program);
    let n_out = p.jaxpr.outvars.len();
    let mut known = (*program.known).clone();
    known.outvars = keep_stacked(&known.outvars, &kinds, n_out);
    let mut outs = scan(Scan { jaxpr: known.into(), linear_carry: false, ..p.clone() }, primals)?;
    let mut stacked = outs.split_off(n_out).into_iter();
    let mut const_res = Vec::new();
    let mut row_res = Vec::new();
    let (mut const_vars, mut row_vars) = (Vec::new(), Vec::new());
    for (kind, var) in kinds.iter().zip(&program.linear.invars) {
        match kind {
            Residual::Operand(i) if *i < p.num_consts => {
                const_res.push(primals[*i].clone());
                const_vars.push(*var);
            }
            Residual::Operand(i) => {
                row_res.push(primals[*i].clone());
                row_vars.push(*var);
            }
            Residual::Result(i) => {
                row_res.push(outs[*i].clone());
                row_vars.push(*var);
            }
            Residual::Stacked => {
                row_res.extend(stacked.next());
                row_vars.push(*var);
            }
        }
    }
    let count = |m: &[bool]| m.iter().filter(|&&b| b).count();
    let (nc, nk) = (count(consts), count(&carry));
    let t = &program.linear.invars[program.residuals..];
    let mut body = (*program.linear).clone();
    body.invars = [&const_vars[..], &t[..nc], &t[nc..nc + nk], &row_vars[..], &t[nc + nk..]].concat();
    let params =
        Scan { jaxpr: body.into(), num_consts: const_res.len() + nc, num_carry: nk, linear_carry: true, ..p.clone() };
    let args = [
        const_res,
        tangents[..p.num_consts].iter().flatten().cloned().collect(),
        start_tangents(p, &tangents[p.num_consts..p.first_xs()], &carry)?,
        row_res,
        tangents[p.first_xs()..].iter().flatten().cloned().collect(),
    ]
    .concat();
    let out_tangents = scan(params, &args)?;
    Ok((outs.into(), spread(out_tangents, &program.nonzero_out)))
}

fn keep_stacked(outvars: &[Atom], kinds: &[Residual], outs: usize) -> Vec<Atom> {
    let kept = outvars[outs..].iter().zip(kinds).filter(|(_, k)| matches!(k, Residual::Stacked)).map(|(a, _)| *a);
    outvars[..outs].iter().copied().chain(kept).collect()
}

// ---- transpose -----------------------------------------------------------------------------------------------------

/// Which operands are linear: those that cotangents are wanted for, and carried values that depend on them.
fn linear_operands(p: &Scan, wanted: &[bool]) -> Vec<bool> {
    let carried = p.num_consts..p.first_xs();
    let mut linear: Vec<bool> =
        wanted.iter().enumerate().map(|(i, &l)| l || (p.linear_carry && carried.contains(&i))).collect();
    loop {
        let depends = depends(&p.jaxpr, &linear);
        let found: Vec<usize> =
            carried.clone().filter(|&i| !linear[i] && is_among(&depends, &p.jaxpr.outvars[i - p.num_consts])).collect();
        if found.is_empty() {
            return linear;
        }
        found.into_iter().for_each(|i| linear[i] = true);
    }
}

/// The scan of what does not depend on linear operands: carried values that do not, and rows of the same.
fn scan_known(p: &Scan, wanted: &[bool]) -> Option<KnownPart> {
    if p.linear_carry || p.jaxpr.effects != Effects::NONE {
        return None;
    }
    let linear = linear_operands(p, wanted);
    let depends = depends(&p.jaxpr, &linear);
    let is_known = |&i: &usize| {
        if i < p.num_carry { !linear[p.num_consts + i] } else { !is_among(&depends, &p.jaxpr.outvars[i]) }
    };
    let outputs: Vec<usize> = (0..p.jaxpr.outvars.len()).filter(is_known).collect();
    if outputs.is_empty() {
        return None;
    }
    let inputs: Vec<usize> = (0..linear.len()).filter(|&i| !linear[i]).collect();
    let outvars = outputs.iter().map(|&i| p.jaxpr.outvars[i]).collect();
    let params = Scan {
        jaxpr: known_program(&p.jaxpr, &depends, &inputs, outvars).into(),
        num_consts: inputs.iter().filter(|&&i| i < p.num_consts).count(),
        num_carry: outputs.iter().filter(|&&i| i < p.num_carry).count(),
        ..p.clone()
    };
    Some(KnownPart { op: OpRef::new(&SCAN, params), inputs, outputs })
}

/// Transposes a scan some of whose carried values do not depend on linear operands (a counter): a scan of its own
/// computes these, and they are rows of what remains.
fn transpose_beside_known(
    op: &OpRef,
    p: &Scan,
    cts: &[Option<Value>],
    args: &[TransposeArg],
    linear: &[bool],
) -> Result<Tangents> {
    let (first, fx) = (p.num_consts, p.first_xs());
    let pick = |range: std::ops::Range<usize>, want: bool| range.filter(move |&i| linear[i] == want);
    let stepped: Vec<usize> = pick(first..fx, false).collect();
    let kept: Vec<usize> = pick(first..fx, true).collect();
    let vars = |at: &[usize]| at.iter().map(|&i| p.jaxpr.invars[i]).collect::<Vec<_>>();
    let carries = |at: &[usize]| at.iter().map(|&i| p.jaxpr.outvars[i - first]).collect::<Vec<_>>();

    let known: Vec<usize> =
        pick(0..first, false).chain(stepped.iter().copied()).chain(pick(fx..args.len(), false)).collect();
    let outvars = carries(&stepped).into_iter().chain(vars(&stepped).into_iter().map(Atom::Var)).collect();
    let forward = known_program(&p.jaxpr, &depends(&p.jaxpr, linear), &known, outvars);
    let num_consts = pick(0..first, false).count();
    let params = Scan { jaxpr: forward.into(), num_consts, num_carry: stepped.len(), ..p.clone() };
    let values = known.iter().map(|&i| args[i].known().cloned()).collect::<Result<Vec<_>>>()?;
    let mut rows = scan(params, &values)?.split_off(stepped.len()).into_iter().map(TransposeArg::Known);

    let order: Vec<usize> = (0..first).chain(kept.iter().copied()).chain(fx..args.len()).collect();
    let mut rest = (*p.jaxpr).clone();
    rest.invars = [vars(&order), vars(&stepped)].concat();
    rest.outvars = [&carries(&kept)[..], &p.jaxpr.outvars[p.num_carry..]].concat();
    let params = Scan { jaxpr: rest.into(), num_carry: kept.len(), ..p.clone() };
    let rest_args: Vec<_> = order.iter().map(|&i| args[i].clone()).chain(&mut rows).collect();
    let rest_cts: Vec<_> =
        kept.iter().map(|&i| cts[i - first].clone()).chain(cts[p.num_carry..].iter().cloned()).collect();
    let pulled = scan_transpose(op, &params, &rest_cts, &rest_args)?;
    let mut all: Tangents = smallvec::smallvec![None; args.len()];
    order.into_iter().zip(pulled).for_each(|(i, ct)| all[i] = ct);
    Ok(all)
}

fn scan_transpose(op: &OpRef, p: &Scan, cts: &[Option<Value>], args: &[TransposeArg]) -> Result<Tangents> {
    let wanted: Vec<bool> = args.iter().map(TransposeArg::is_linear).collect();
    let linear = linear_operands(p, &wanted);
    let (const_linear, rest) = linear.split_at(p.num_consts);
    let (carry_linear, xs_linear) = rest.split_at(p.num_carry);
    if carry_linear.iter().any(|l| !l) {
        return transpose_beside_known(op, p, cts, args, &linear);
    }
    let avals = p.jaxpr.in_avals();
    let (const_avals, rest) = avals.split_at(p.num_consts);
    let (carry_avals, x_avals) = rest.split_at(p.num_carry);
    let pick = |avals: &[Aval], m: &[bool], want: bool| -> Vec<Aval> {
        avals.iter().zip(m).filter(|&(_, &l)| l == want).map(|(a, _)| a.clone()).collect()
    };
    // rows that nobody uses have no cotangents
    let (ct_carry, ct_ys) = cts.split_at(p.num_carry);
    let used: Vec<bool> = ct_ys.iter().map(Option::is_some).collect();
    let y_avals = pick(&p.jaxpr.out_avals()[p.num_carry..], &used, true);
    let ct_consts = pick(const_avals, const_linear, true);
    let res_consts = pick(const_avals, const_linear, false);
    let res_xs = pick(x_avals, xs_linear, false);
    let body_avals = [
        res_consts.clone(),
        ct_consts.iter().chain(carry_avals).map(Aval::tangent).collect(),
        res_xs.clone(),
        y_avals.iter().map(Aval::tangent).collect(),
    ]
    .concat();
    let sizes = [res_consts.len(), ct_consts.len(), p.num_carry, res_xs.len()];
    let body = stage_closed("transpose", p.jaxpr.debug.clone(), &body_avals, |values| {
        transpose_body(p, &linear, &avals, sizes, &used, values)
    })?;
    let known = |range: std::ops::Range<usize>| -> Vec<Value> {
        let known = args[range.clone()].iter().zip(&linear[range]).filter(|&(_, &l)| !l);
        known.filter_map(|(a, _)| a.known().ok().cloned()).collect()
    };
    let operands = [
        known(0..p.num_consts),
        ct_consts.iter().map(|a| zeros(&a.tangent())).collect::<Result<Vec<_>>>()?,
        super::instantiate_all(ct_carry, carry_avals)?,
        known(p.first_xs()..args.len()),
        ct_ys.iter().flatten().cloned().collect(),
    ]
    .concat();
    let params = Scan {
        jaxpr: body,
        reverse: !p.reverse,
        of: p.of.reversed(),
        num_consts: res_consts.len(),
        num_carry: ct_consts.len() + p.num_carry,
        linear_carry: true,
        ..p.clone()
    };
    let mut pulled = scan(params, &operands)?.into_iter();
    let found = with_cotangents(p, mask(cts));
    let cts = linear.iter().map(|&l| if l { pulled.next() } else { None });
    Ok(cts.zip(wanted.iter().zip(found)).map(|(ct, (&w, found))| ct.filter(|_| w && found)).collect())
}

/// Which operands the results that have cotangents depend on, after any number of steps.
fn with_cotangents(p: &Scan, mut results: Vec<bool>) -> Vec<bool> {
    loop {
        let found = reached(&p.jaxpr, &results);
        let grown = or(&results[..p.num_carry], &found[p.num_consts..p.first_xs()]);
        if grown == results[..p.num_carry] {
            return [&found[..p.num_consts], &grown, &found[p.first_xs()..]].concat();
        }
        results[..p.num_carry].copy_from_slice(&grown);
    }
}

/// One step backward: (residuals, accumulated cotangents of consts, of the carry, residual rows, row cotangents).
fn transpose_body(
    p: &Scan,
    linear: &[bool],
    avals: &[Aval],
    sizes: [usize; 4],
    used: &[bool],
    values: &[Value],
) -> Result<Vec<Value>> {
    let (res_consts, rest) = values.split_at(sizes[0]);
    let (ct_consts, rest) = rest.split_at(sizes[1]);
    let (ct_carry, rest) = rest.split_at(sizes[2]);
    let (res_xs, ct_ys) = rest.split_at(sizes[3]);
    let mut known = res_consts.iter().chain(res_xs);
    let operands: Vec<TransposeArg> = linear
        .iter()
        .zip(avals)
        .map(|(&l, a)| match if l { None } else { known.next() } {
            Some(v) => TransposeArg::Known(v.clone()),
            None => TransposeArg::Linear(a.clone()),
        })
        .collect();
    let mut ct_ys = ct_ys.iter();
    let of_rows = used.iter().map(|&u| if u { ct_ys.next() } else { None }.cloned());
    let cts: Vec<Option<Value>> = ct_carry.iter().cloned().map(Some).chain(of_rows).collect();
    let pulled = ferrax_transform::backward(&p.jaxpr, &operands, &cts)?;
    let mut consts = ct_consts.iter();
    let mut outs = Vec::new();
    for (i, (ct, aval)) in pulled.into_iter().zip(avals).enumerate().filter(|(i, _)| linear[*i]) {
        outs.push(match (i < p.num_consts, ct) {
            (true, ct) => match (consts.next(), ct) {
                (Some(sum), Some(ct)) => add_any(sum, &ct)?,
                (Some(sum), None) => sum.clone(),
                (None, ct) => instantiate(ct, &aval.tangent())?,
            },
            (false, ct) => instantiate(ct, &aval.tangent())?,
        });
    }
    Ok(outs)
}

// ---- batching ------------------------------------------------------------------------------------------------------

fn scan_batch(
    _: &OpRef,
    p: &Scan,
    axis: &BatchAxis,
    args: &[Value],
    dims: &[Option<usize>],
) -> Result<(Values, BatchDims)> {
    let batched = mask(dims);
    let (consts, rest) = batched.split_at(p.num_consts);
    let (carry, xs) = rest.split_at(p.num_carry);
    let (program, carry) = carry_fixpoint(p, consts, carry, xs, |m, force| {
        let program = batch_jaxpr(&p.jaxpr, axis, m, force)?;
        let out = program.batched_out.clone();
        Ok((program, out))
    })?;
    let fx = p.first_xs();
    let on = [consts, &carry[..]].concat();
    let mut operands = batch_where(&args[..fx], &dims[..fx], &on, axis)?;
    // Rows come first in stacked inputs, the batch second.
    for (x, d) in args[fx..].iter().zip(&dims[fx..]) {
        operands.push(if d.is_some() { place_axis(x, *d, Some(1), axis.size)? } else { x.clone() });
    }
    let outs = scan(Scan { jaxpr: program.jaxpr, ..p.clone() }, &operands)?;
    let mut out_dims = dims_of(&program.batched_out);
    out_dims[p.num_carry..].iter_mut().for_each(|d| *d = d.map(|_| 1));
    Ok((outs.into(), out_dims))
}
