//! Which operation of a program made a NaN or an infinity, for `debug_nans` and `debug_infs`.
//!
//! A program runs as always and its results are looked at. Only when one is bad does it run again, operation by
//! operation and loop step by loop step, to the first bad result: the report names the operation, its line, the steps
//! of the loops around it, and its operands. What a program shows or sends out is not repeated.
//!
//! Read next: `debug.rs`.

use crate::debug::found;
use crate::dispatch;
use ferrax_base::config::{Flag, with};
use ferrax_base::source::Replay;
use ferrax_base::{DType, Error, Result, Scalar, Source, error};
use ferrax_ir::op::OpRole;
use ferrax_ir::{Atom, Jaxpr, OpRef, Value};
use ferrax_ops as ops;
use ferrax_ops::control::{cond, custom_jvp, custom_vjp, scan, while_loop};

/// Operands are shown up to this many elements.
const SHOWN: usize = 6;

/// The error of an operation with a bad result: about the operation inside it, where it is a program.
#[cold]
pub fn operation(op: &OpRef, args: &[Value], results: &[Value]) -> Error {
    let mut walk = Walk { steps: Vec::new() };
    match walk.operation(op, args, Source::here()) {
        Err(found) => found,
        // The same numbers operation by operation are good: rounding differs between the two.
        Ok(_) => walk.report(op, args, results, Source::here()).unwrap_or_else(|e| e),
    }
}

/// The error of a program with a bad result.
#[cold]
pub fn program(jaxpr: &Jaxpr, args: &[Value], results: &[Value]) -> Error {
    let mut walk = Walk { steps: Vec::new() };
    match walk.program(jaxpr, args) {
        Err(found) => found,
        Ok(_) => {
            let what = results.iter().find_map(|r| found(r).ok().flatten()).unwrap_or("nan");
            error!(FloatingPoint, "invalid value ({what}) encountered in a result of {}", jaxpr.debug.describe())
        }
    }
}

/// A second run, with the loop steps it is in.
struct Walk {
    steps: Vec<String>,
}

impl Walk {
    fn program(&mut self, jaxpr: &Jaxpr, args: &[Value]) -> Result<Vec<Value>> {
        let mut env: Vec<Option<Value>> = vec![None; jaxpr.avals.len()];
        for (v, c) in jaxpr.constvars.iter().zip(&jaxpr.consts) {
            env[v.0 as usize] = Some(Value::Array(c.clone()));
        }
        for (v, a) in jaxpr.invars.iter().zip(args) {
            env[v.0 as usize] = Some(a.clone());
        }
        let read = |env: &[Option<Value>], a: &Atom| match a {
            Atom::Lit(l) => Ok(Value::Lit(*l)),
            Atom::Var(v) => env[v.0 as usize].clone().ok_or_else(|| error!(Internal, "variable {} is undefined", v.0)),
        };
        let replay = Replay::start();
        for eqn in &jaxpr.eqns {
            replay.at(eqn.source);
            let inputs = eqn.inputs.iter().map(|a| read(&env, a)).collect::<Result<Vec<Value>>>()?;
            for (v, out) in eqn.outputs.iter().zip(self.operation(&eqn.op, &inputs, Source::here())?) {
                env[v.0 as usize] = Some(out);
            }
        }
        jaxpr.outvars.iter().map(|a| read(&env, a)).collect()
    }

    fn operation(&mut self, op: &OpRef, args: &[Value], source: Source) -> Result<Vec<Value>> {
        if let OpRole::Calls(inner) = op.role() {
            return self.program(&inner, args);
        }
        if let Some(p) = op.of(&scan::SCAN) {
            return self.scan(p, args);
        }
        if let Some(p) = op.of(&while_loop::WHILE) {
            return self.while_loop(p, args);
        }
        if let Some(p) = op.of(&cond::COND) {
            let last = p.branches.len() as i64 - 1;
            return self.program(&p.branches[integer(&args[0])?.clamp(0, last) as usize], &args[1..]);
        }
        let recorded = op.of(&custom_jvp::CUSTOM_JVP).and_then(|p| p.call_jaxpr.as_ref());
        if let Some(inner) = recorded.or_else(|| op.of(&custom_vjp::CUSTOM_VJP).and_then(|p| p.call_jaxpr.as_ref())) {
            return self.program(inner, args);
        }
        if !op.effects().is_none() && op.abstract_eval(&[]).is_ok_and(|outs| outs.is_empty()) {
            return Ok(Vec::new());
        }
        let results = quiet(|| dispatch::evaluate(op, args))?;
        if results.iter().map(found).collect::<Result<Vec<_>>>()?.iter().any(Option::is_some) {
            return Err(self.report(op, args, &results, source)?);
        }
        Ok(results.into_vec())
    }

    /// Runs `f` as a step of a loop.
    fn step<T>(&mut self, number: usize, name: &str, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.steps.push(format!("iteration {number} of {name}"));
        let out = f(self)?;
        self.steps.pop();
        Ok(out)
    }

    fn scan(&mut self, p: &scan::Scan, args: &[Value]) -> Result<Vec<Value>> {
        let (consts, rest) = args.split_at(p.num_consts);
        let (carry, xs) = rest.split_at(p.num_carry);
        let mut carry = carry.to_vec();
        let mut rows: Vec<Vec<Value>> = vec![Vec::new(); p.jaxpr.outvars.len() - p.num_carry];
        for n in 0..p.length {
            let i = if p.reverse { p.length - 1 - n } else { n };
            let row = |x: &Value| quiet(|| ops::squeeze(&ops::slice::index_in_dim(x, i as i64, 0)?, &[0]));
            let mut step = [consts, &carry].concat();
            for x in xs {
                step.push(row(x)?);
            }
            let mut out = self.step(n, "scan", |walk| walk.program(&p.jaxpr, &step))?;
            for (ys, y) in rows.iter_mut().zip(out.split_off(p.num_carry)) {
                ys.push(y);
            }
            carry = out;
        }
        for (mut ys, aval) in rows.into_iter().zip(&p.jaxpr.out_avals()[p.num_carry..]) {
            if p.reverse {
                ys.reverse();
            }
            carry.push(quiet(|| {
                if ys.is_empty() {
                    let mut empty = aval.clone();
                    empty.shape.insert(0, 0);
                    return ops::zeros(&empty);
                }
                ops::stack(&ys, 0)
            })?);
        }
        Ok(carry)
    }

    fn while_loop(&mut self, p: &while_loop::While, args: &[Value]) -> Result<Vec<Value>> {
        let (consts, carry) = args.split_at(p.cond_nconsts + p.body_nconsts);
        let (cond_consts, body_consts) = consts.split_at(p.cond_nconsts);
        let mut carry = carry.to_vec();
        for n in 0.. {
            let test = self.step(n, "while", |walk| walk.program(&p.cond_jaxpr, &[cond_consts, &carry].concat()))?;
            if integer(&test[0])? == 0 {
                break;
            }
            carry = self.step(n, "while", |walk| walk.program(&p.body_jaxpr, &[body_consts, &carry].concat()))?;
        }
        Ok(carry)
    }

    fn report(&self, op: &OpRef, args: &[Value], results: &[Value], source: Source) -> Result<Error> {
        let mut bad = None;
        for r in results {
            bad = bad.or(found(r)?.map(|what| (what, r)));
        }
        let (what, result) = bad.unwrap_or(("nan", &results[0]));
        let mut text = format!("invalid value ({what}) encountered in {}", op.name());
        if let Some(at) = source.location() {
            text.push_str(&format!(" at {at}"));
        }
        for step in self.steps.iter().rev() {
            text.push_str(&format!(", in {step}"));
        }
        text.push_str(&format!(": its result has type {}, its operands are ", result.aval()));
        for (i, a) in args.iter().enumerate() {
            let note = if found(a)?.is_some() { format!(" (holds {what} already)") } else { String::new() };
            let comma = if i > 0 { ", " } else { "" };
            text.push_str(&format!("{comma}{} = {}{note}", a.aval(), shown(a)?));
        }
        Ok(error!(FloatingPoint, "{text}"))
    }
}

/// Runs `f` without the checks.
fn quiet<T>(f: impl FnOnce() -> Result<T>) -> Result<T> {
    with(Flag::DebugNans, false, || with(Flag::DebugInfs, false, f))
}

fn scalars(v: &Value, limit: usize) -> Result<(Vec<Scalar>, usize)> {
    match v {
        Value::Array(a) if a.aval().dtype != DType::Float0 => {
            let (pin, dtype) = (a.pin()?, a.aval().dtype);
            let all = pin.bytes().chunks_exact(dtype.size());
            let count = all.len();
            Ok((all.take(limit).map(|b| Scalar::from_bytes(dtype, b)).collect(), count))
        }
        Value::Lit(l) => Ok((vec![l.scalar], 1)),
        _ => Ok((Vec::new(), 0)),
    }
}

fn integer(v: &Value) -> Result<i64> {
    let (first, _) = scalars(v, 1)?;
    first.first().map(|s| s.to_i64()).ok_or_else(|| error!(Internal, "a scalar without a value"))
}

/// The first elements of a value, in row-major order.
fn shown(v: &Value) -> Result<String> {
    let (first, count) = scalars(v, SHOWN)?;
    if v.rank() == 0 {
        return Ok(first.first().map_or_else(|| "?".to_owned(), ToString::to_string));
    }
    let list: Vec<String> = first.iter().map(ToString::to_string).collect();
    Ok(format!("[{}{}]", list.join(" "), if count > SHOWN { " ..." } else { "" }))
}
