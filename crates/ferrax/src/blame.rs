//! Which operation of a program made a NaN or an infinity, for `debug_nans` and `debug_infs`.
//!
//! A program runs as always and its results are looked at. Only when one is bad does it run again, operation by
//! operation and loop step by loop step, to the first bad result: the report names the operation, its line, the steps
//! of the loops around it, and the element. What a program shows or sends out is not repeated.
//!
//! Read next: `report.rs` for what is said, `debug.rs` for who asks.

use crate::debug::{element, found, quiet};
use crate::dispatch;
use crate::report::{Report, bad_result};
use ferrax_base::source::Replay;
use ferrax_base::{Error, Result, Scalar, Source, error};
use ferrax_ir::op::OpRole;
use ferrax_ir::{Atom, Jaxpr, Mapped, OpRef, Value, Var};
use ferrax_ops as ops;
use ferrax_ops::control::{Asked, Loop, Part, cond, custom_jvp, custom_vjp, scan, while_loop};
use ferrax_transform::mapped::axes_of_result;

/// The error of an operation with a bad result: about the operation inside it, where it is a program.
#[cold]
pub fn operation(op: &OpRef, args: &[Value], results: &[Value]) -> Error {
    let mut walk = Walk::default();
    match walk.operation(op, args, Source::here(), None) {
        Err(found) => found,
        // The same numbers operation by operation are good: rounding differs between the two.
        Ok(_) => walk.report(op, args, results, Source::here(), None).unwrap_or_else(|e| e),
    }
}

/// The error of a program with a bad result.
#[cold]
pub fn program(jaxpr: &Jaxpr, args: &[Value], results: &[Value]) -> Error {
    let mut walk = Walk::default();
    match walk.program(jaxpr, args) {
        Err(found) => found,
        Ok(_) => {
            let first = results.iter().find_map(|r| crate::debug::first(r).ok().flatten());
            let what = first.map_or("nan", |(_, what)| what);
            error!(FloatingPoint, "invalid value ({what}) encountered in a result of {}", jaxpr.debug.describe())
        }
    }
}

/// A second run, with the loop steps it is in.
#[derive(Default)]
struct Walk {
    steps: Vec<String>,
    /// The iteration with which the segment begins that a loop is being taken back over.
    segment: i64,
}

/// The variables of a program that an operation's results are for.
type Place<'a> = Option<(&'a Jaxpr, &'a [Var])>;

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
            let outs = self.operation(&eqn.op, &inputs, Source::here(), Some((jaxpr, &eqn.outputs)))?;
            for (v, out) in eqn.outputs.iter().zip(outs) {
                env[v.0 as usize] = Some(out);
            }
        }
        jaxpr.outvars.iter().map(|a| read(&env, a)).collect()
    }

    fn operation(&mut self, op: &OpRef, args: &[Value], source: Source, place: Place<'_>) -> Result<Vec<Value>> {
        if let OpRole::Calls(inner) = op.role() {
            return self.program(&inner, args);
        }
        let results = if let Some(p) = op.of(&scan::SCAN) {
            Some(self.scan(p, args)?)
        } else if let Some(p) = op.of(&while_loop::WHILE) {
            Some(self.while_loop(p, args)?)
        } else if let Some(p) = op.of(&cond::COND) {
            let last = p.branches.len() as i64 - 1;
            Some(self.program(&p.branches[integer(&args[0])?.clamp(0, last) as usize], &args[1..])?)
        } else {
            None
        };
        if let Some(results) = results {
            // no operation inside made it: a constant, or an operand
            return self.looked_at(op, args, results, source, place);
        }
        let recorded = op.of(&custom_jvp::CUSTOM_JVP).and_then(|p| p.call_jaxpr.as_ref());
        if let Some(inner) = recorded.or_else(|| op.of(&custom_vjp::CUSTOM_VJP).and_then(|p| p.call_jaxpr.as_ref())) {
            return self.program(inner, args);
        }
        if !op.effects().is_none() && op.abstract_eval(&[]).is_ok_and(|outs| outs.is_empty()) {
            return Ok(Vec::new());
        }
        let results = quiet(|| dispatch::evaluate(op, args))?;
        self.looked_at(op, args, results.into_vec(), source, place)
    }

    /// The results of an operation; the report of it when one is bad.
    fn looked_at(
        &self,
        op: &OpRef,
        args: &[Value],
        results: Vec<Value>,
        source: Source,
        place: Place<'_>,
    ) -> Result<Vec<Value>> {
        for result in &results {
            if found(result)? {
                return Err(self.report(op, args, &results, source, place)?);
            }
        }
        Ok(results)
    }

    /// Runs `f` as a step of a loop: of the user's iteration that it stands for, if it does.
    fn step<T>(&mut self, iteration: Option<String>, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let depth = self.steps.len();
        self.steps.extend(iteration);
        let out = f(self)?;
        self.steps.truncate(depth);
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
            let number = if p.of.part == Part::Back { p.length - 1 - n } else { n };
            let iteration = iteration(p.of, "scan", number as i64, carry.first())?;
            let mut out = self.step(iteration, |walk| walk.program(&p.jaxpr, &step))?;
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
            let counter = carry.first().filter(|c| c.rank() == 0 && c.dtype().is_integer());
            let counted = counter.map(integer).transpose()?.unwrap_or_default();
            let number = match (p.of.part, body_consts.last()) {
                (Part::Segments, Some(length)) if length.rank() == 0 => {
                    self.segment = counted * integer(length)?;
                    n
                }
                (Part::Segment, _) => self.segment + counted,
                _ => n,
            };
            let name = iteration(p.of, "while_loop", number, carry.first())?;
            let test = [cond_consts, &carry].concat();
            let test = self.step(name.clone(), |walk| walk.program(&p.cond_jaxpr, &test))?;
            if integer(&test[0])? == 0 {
                break;
            }
            let step = [body_consts, &carry].concat();
            carry = self.step(name, |walk| walk.program(&p.body_jaxpr, &step))?;
        }
        Ok(carry)
    }

    fn report(&self, op: &OpRef, args: &[Value], results: &[Value], source: Source, place: Place<'_>) -> Result<Error> {
        let at = bad_result(results)?;
        let result = &results[at];
        let mapped: Vec<Mapped> = match place {
            Some((jaxpr, outputs)) => jaxpr.mapped_axes(outputs[at]).cloned().collect(),
            None => quiet(|| axes_of_result(result.shape())),
        };
        Report { op, args, result, source, steps: &self.steps, mapped: &mapped }.error()
    }
}

/// An iteration of a user's loop, as reports name it, with the index that a `fori_loop` carries.
fn iteration(of: Loop, primitive: &str, number: i64, carried: Option<&Value>) -> Result<Option<String>> {
    if matches!(of.part, Part::Inner | Part::Segments) {
        return Ok(None);
    }
    let name = match of.asked {
        Asked::Itself => primitive,
        Asked::ForiLoop => "fori_loop",
        Asked::Map => "map",
    };
    let mut text = format!("iteration {number} of {name}");
    if of.asked == Asked::ForiLoop && of.part == Part::Forward {
        let index = carried.filter(|c| c.rank() == 0 && c.dtype().is_integer()).map(integer).transpose()?;
        if let Some(i) = index.filter(|&i| i != number) {
            text.push_str(&format!(" (i = {i})"));
        }
    }
    Ok(Some(text))
}

fn integer(v: &Value) -> Result<i64> {
    element(v, 0)?.map(Scalar::to_i64).ok_or_else(|| error!(Internal, "a scalar without a value"))
}
