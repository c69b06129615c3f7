//! What operations make of the facts of `check_where`: ranges, edges, guards, claims (see `ferrax_transform::where_check`).
//!
//! An operation with an edge in its definition is one only where its operand's range, or what a guard says of it, reaches
//! that edge: [`hazard`] says for each operation where that is.
//!
//! Read next: [`ranges`] for what lies where, [`programs`] for loops and calls.

mod programs;
mod ranges;

use crate::INTEGER_POW;
use ferrax_base::{Aval, DType, Result, Source};
use ferrax_ir::OpRef;
use ferrax_ir::op::OpRole;
use ferrax_transform::where_check::{Claim, Claims, Edge, Fact, Guard, Range, Reports, hash_of};
use smallvec::SmallVec;
use std::hash::Hasher;
use std::sync::Arc;

/// Guards of a value that are kept.
const GUARDS: usize = 6;
/// Edges in a value's past that are kept.
const EDGES: usize = 4;

/// What the results of an operation are.
pub(crate) fn facts(
    op: &OpRef,
    args: &[Fact],
    avals: &[Aval],
    outs: &[Aval],
    at: Source,
    reports: &mut Reports,
) -> Result<Vec<Fact>> {
    if let Some(found) = programs::facts(op, args, outs, reports)? {
        return Ok(found);
    }
    if op.role() == OpRole::Selects {
        return selection(op, args, outs, at, reports).map(|fact| vec![fact]);
    }
    let shared = Shared::of(op, args, avals, at);
    Ok(outs.iter().enumerate().map(|(i, out)| shared.result(op, args, avals, out, i)).collect())
}

/// What all results of an operation have in common.
struct Shared {
    id: u64,
    active: bool,
    edges: SmallVec<[Arc<Edge>; 1]>,
    claims: Option<Arc<Claims>>,
}

/// A number for an operation of these operands.
fn id_of(op: &OpRef, args: &[Fact]) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    op.params_hash(&mut hasher);
    let ids: SmallVec<[u64; 4]> = args.iter().map(|a| a.id).collect();
    hash_of(&(op.def_id(), hasher.finish(), ids))
}

fn ranges_of(args: &[Fact]) -> SmallVec<[Range; 4]> {
    args.iter().map(|a| a.range).collect()
}

/// What a value is beside a condition: itself where the condition says nothing of it.
fn beside(fact: &Fact, condition: u64, case: usize) -> (Range, bool) {
    let guard = fact.guards.iter().find(|g| g.condition == condition && g.case == case);
    guard.map_or((fact.range, !fact.active), |g| (g.range, g.blocked))
}

/// The conditions that guard some operand.
fn conditions(args: &[Fact]) -> SmallVec<[(u64, usize); 4]> {
    let mut all: SmallVec<[(u64, usize); 4]> = SmallVec::new();
    for g in args.iter().flat_map(|a| &a.guards) {
        if !all.contains(&(g.condition, g.case)) && all.len() < GUARDS {
            all.push((g.condition, g.case));
        }
    }
    all
}

/// Every edge in the past of operands with a gradient, each line once.
fn past(args: &[Fact]) -> SmallVec<[Arc<Edge>; 1]> {
    let mut all: SmallVec<[Arc<Edge>; 1]> = SmallVec::new();
    for e in args.iter().filter(|a| a.active).flat_map(|a| &a.edges) {
        let known = |old: &Arc<Edge>| old.at == e.at && old.name == e.name && old.guards == e.guards;
        if !all.iter().any(known) && all.len() < EDGES {
            all.push(e.clone());
        }
    }
    all
}

impl Shared {
    fn of(op: &OpRef, args: &[Fact], avals: &[Aval], at: Source) -> Shared {
        let active = args.iter().any(|a| a.active) && !flat(op.name());
        let mut edges = if active { past(args) } else { SmallVec::new() };
        if active
            && (op.edge() || op.is(&INTEGER_POW))
            && let Some(edge) = edge(op, args, avals, at)
            && edges.len() < EDGES
        {
            edges.push(Arc::new(edge));
        }
        Shared { id: id_of(op, args), active, edges, claims: claims(op, args, avals) }
    }

    fn result(&self, op: &OpRef, args: &[Fact], avals: &[Aval], out: &Aval, i: usize) -> Fact {
        let id = if i == 0 { self.id } else { hash_of(&(self.id, i)) };
        let active = self.active && out.dtype.is_inexact();
        let range = ranges::of(op, args, &ranges_of(args), avals, out);
        let mut fact = Fact::new(id, range, active);
        for (condition, case) in conditions(args) {
            let there: SmallVec<[Range; 4]> = args.iter().map(|a| beside(a, condition, case).0).collect();
            let blocked = args.iter().all(|a| beside(a, condition, case).1);
            let range = ranges::of(op, args, &there, avals, out);
            fact.guards.push(Guard { condition, case, range, blocked });
        }
        if active {
            fact.edges.clone_from(&self.edges);
        }
        peaks(op, args, &mut fact);
        fact.claims = self.claims.clone().filter(|_| out.dtype.is_bool());
        fact
    }
}

/// Over which axes an operation reduces, as a number.
fn axes_of(op: &OpRef) -> Option<u64> {
    let axes = op.print_params().into_iter().find(|(name, _)| *name == "axes")?;
    Some(hash_of(&axes.1.to_string()))
}

/// Follows sums of exponentials of what is left of the largest: the largest itself is among them, so they are not zero.
fn peaks(op: &OpRef, args: &[Fact], fact: &mut Fact) {
    match (op.name(), args) {
        ("reduce_max", [x]) => fact.maximum_of = axes_of(op).map(|axes| (x.id, axes)),
        ("max", [x, y]) => {
            let lowest = |f: &Fact| f.range.hi == f64::NEG_INFINITY;
            fact.maximum_of = if lowest(y) { x.maximum_of } else { y.maximum_of.filter(|_| lowest(x)) };
        }
        ("sub", [x, y]) => {
            if let Some((_, axes)) = y.maximum_of.filter(|(of, _)| *of == x.id) {
                fact.peak = Some((axes, 0.0));
                fact.range = fact.range.and(Range::of(f64::NEG_INFINITY, 0.0));
            }
        }
        ("exp", [x]) => fact.peak = x.peak.map(|(axes, v)| (axes, v.exp())),
        ("reduce_sum", [x]) => {
            if let Some((_, v)) = x.peak.filter(|(axes, _)| axes_of(op) == Some(*axes) && x.range.lo >= 0.0) {
                fact.range = fact.range.and(Range::of(v, f64::INFINITY));
            }
        }
        ("broadcast_in_dim" | "stop_gradient" | "reshape" | "convert_element_type" | "copy", [x]) => {
            fact.maximum_of = x.maximum_of;
        }
        _ => {}
    }
}

/// Whether an operation's derivative is zero, so that no gradient goes through it.
fn flat(name: &str) -> bool {
    matches!(name, "stop_gradient" | "floor" | "ceil" | "round" | "sign" | "nextafter")
}

/// The edge of an operation that its operands can reach.
fn edge(op: &OpRef, args: &[Fact], avals: &[Aval], at: Source) -> Option<Edge> {
    if !hazard(op, args, &ranges_of(args), avals) {
        return None;
    }
    let mut guards = SmallVec::new();
    for (condition, case) in conditions(args) {
        let there: SmallVec<[Range; 4]> = args.iter().map(|a| beside(a, condition, case).0).collect();
        let blocked = args.iter().all(|a| beside(a, condition, case).1);
        if blocked || !hazard(op, args, &there, avals) {
            if condition == Guard::TRUSTED {
                return None;
            }
            guards.push((condition, case));
        }
    }
    Some(Edge { name: op.name().into(), at, guards })
}

/// Whether operands in these ranges reach a point where the derivative is infinite or undefined.
fn hazard(op: &OpRef, args: &[Fact], ranges: &[Range], avals: &[Aval]) -> bool {
    if avals.iter().any(|a| a.dtype.is_complex()) {
        return true;
    }
    if let Some(p) = op.of(&INTEGER_POW) {
        return p.y < 0 && !ranges[0].nonzero();
    }
    let x = ranges[0];
    let inside = |lo: f64, hi: f64| x.lo > lo && x.hi < hi;
    match op.name() {
        "sqrt" | "rsqrt" | "log" | "lgamma" | "digamma" => !inside(0.0, f64::INFINITY) && x.lo <= 0.0,
        "log1p" => x.lo <= -1.0,
        "acosh" => x.lo <= 1.0,
        "cbrt" => !x.nonzero(),
        "asin" | "acos" | "atanh" | "erf_inv" => !inside(-1.0, 1.0),
        "div" => !ranges[1].nonzero(),
        "atan2" => !x.nonzero() && !ranges[1].nonzero(),
        "pow" => {
            let (y, fixed) = (ranges[1], !args[1].active);
            let whole = avals[1].dtype.is_integer() || (y.lo == y.hi && y.lo.fract() == 0.0);
            let smooth = fixed && ((whole && y.lo >= 1.0) || (x.lo >= 0.0 && y.lo >= 1.0));
            x.lo <= 0.0 && !smooth
        }
        _ => true,
    }
}

// ---- conditions ------------------------------------------------------------------------------------------------------

/// What a condition says of the values that it compares.
fn claims(op: &OpRef, args: &[Fact], avals: &[Aval]) -> Option<Arc<Claims>> {
    let of = |i: usize| args.get(i).and_then(|a| a.claims.clone());
    match (op.name(), args) {
        ("eq" | "ne" | "lt" | "le" | "gt" | "ge", [x, y]) => {
            let dtype = avals[0].dtype;
            // no number differs from itself: what `isnan` chooses is for no number
            let never = match op.name() {
                "ne" if x.id == y.id => Some(1),
                "eq" if x.id == y.id => Some(0),
                _ => None,
            };
            let mut all = Claims { never, ..Claims::default() };
            for (case, name) in [(0, opposite(op.name())), (1, op.name())] {
                all.cases[case].extend(claim(name, x, y, dtype));
                all.cases[case].extend(claim(turned(name), y, x, dtype));
            }
            Some(Arc::new(all))
        }
        ("is_finite", [_]) => Some(Arc::new(Claims { finite: true, ..Claims::default() })),
        ("not", [_]) => of(0).map(|c| {
            let [f, t] = c.cases.clone();
            Arc::new(Claims { cases: [t, f], never: c.never.map(|case| 1 - case), finite: false })
        }),
        // both hold where it is true, and both are false where it is false
        ("and" | "or", [_, _]) => {
            let case = usize::from(op.name() == "and");
            let mut all = Claims::default();
            all.cases[case].extend([of(0), of(1)].iter().flatten().flat_map(|c| c.cases[case].clone()));
            Some(Arc::new(all))
        }
        // a condition that is only moved says of what moves with it what it said before
        (_, [_]) if avals[0].dtype.is_bool() => of(0).map(|c| {
            let moved = |side: &Vec<Claim>| {
                let id = |id: u64| id_of(op, &[Fact::new(id, Range::ALL, false)]);
                side.iter().map(|&(v, r)| (id(v), r)).chain(side.iter().copied()).collect()
            };
            Arc::new(Claims { cases: [moved(&c.cases[0]), moved(&c.cases[1])], never: c.never, finite: c.finite })
        }),
        _ => None,
    }
}

/// The comparison that holds where this one does not.
fn opposite(name: &str) -> &'static str {
    match name {
        "eq" => "ne",
        "ne" => "eq",
        "lt" => "ge",
        "le" => "gt",
        "gt" => "le",
        _ => "lt",
    }
}

/// The comparison of the operands in the other order.
fn turned(name: &str) -> &'static str {
    match name {
        "lt" => "gt",
        "le" => "ge",
        "gt" => "lt",
        "ge" => "le",
        "ne" => "ne",
        _ => "eq",
    }
}

/// What a comparison of `x` with `y` says of `x`.
fn claim(name: &str, x: &Fact, y: &Fact, dtype: DType) -> Option<Claim> {
    let (lo, hi) = (y.range.lo, y.range.hi);
    let range = match name {
        "eq" => y.range,
        "ne" if lo == 0.0 && hi == 0.0 => Range { without_zero: true, ..Range::ALL },
        "gt" if lo > f64::NEG_INFINITY => Range::of(ranges::next(lo, true, dtype), f64::INFINITY),
        "ge" => Range::of(lo, f64::INFINITY),
        "lt" if hi < f64::INFINITY => Range::of(f64::NEG_INFINITY, ranges::next(hi, false, dtype)),
        "le" => Range::of(f64::NEG_INFINITY, hi),
        _ => return None,
    };
    Some((x.id, range))
}

// ---- selections ------------------------------------------------------------------------------------------------------

/// The result of a selection; reports cases with edges that nothing keeps from mattering.
fn selection(op: &OpRef, args: &[Fact], outs: &[Aval], at: Source, reports: &mut Reports) -> Result<Fact> {
    let (which, cases) = (&args[0], &args[1..]);
    for (case, fact) in cases.iter().enumerate().filter(|(_, f)| f.active) {
        for edge in &fact.edges {
            if !edge.guards.contains(&(which.id, case)) {
                reports.selection(at, cases.len(), case, edge)?;
            }
        }
    }
    let two = cases.len() == 2;
    let claims = which.claims.as_deref().filter(|_| two);
    let chosen = |case: usize| {
        let told = claims.map_or(&[][..], |c| &c.cases[case]);
        told.iter().filter(|(id, _)| *id == cases[case].id).fold(cases[case].range, |r, (_, told)| r.and(*told))
    };
    let all: SmallVec<[Range; 2]> = (0..cases.len()).map(chosen).collect();
    let never = claims.and_then(|c| c.never);
    let reached = |case: &usize| Some(*case) != never;
    let range = (0..cases.len()).filter(reached).map(|case| all[case]).reduce(Range::or).unwrap_or(Range::ALL);
    let active = cases.iter().any(|c| c.active) && outs[0].dtype.is_inexact();
    let mut fact = Fact::new(id_of(op, args), range, active);
    if two && claims.is_some_and(|c| c.finite) {
        fact.maximum_of = cases[1].maximum_of;
    }
    for (condition, case) in conditions(cases) {
        let there = cases.iter().map(|c| beside(c, condition, case).0).reduce(Range::or).unwrap_or(Range::ALL);
        let blocked = cases.iter().all(|c| beside(c, condition, case).1);
        fact.guards.push(Guard { condition, case, range: there, blocked });
    }
    if two {
        for case in 0..2 {
            let other = 1 - case;
            let guard = Guard { condition: which.id, case, range: all[other], blocked: !cases[other].active };
            // the innermost selection by a condition says what there is beside it
            fact.guards.retain(|g| (g.condition, g.case) != (guard.condition, guard.case));
            fact.guards.push(guard);
            // a condition that says nothing of the value is taken to be about its domain
            let told = claims.is_some_and(|c| c.cases[case].iter().any(|(id, _)| *id == cases[case].id));
            let fixed = !cases[other].active && cases[other].range.lo == cases[other].range.hi;
            if !told && fixed {
                fact.guards.push(Guard { condition: Guard::TRUSTED, ..guard });
            }
        }
    }
    Ok(fact)
}

/// What two values are that may stand for each other.
fn joined(a: &Fact, b: &Fact, id: u64) -> Fact {
    let both = [a.clone(), b.clone()];
    let mut fact = Fact::new(id, a.range.or(b.range), a.active || b.active);
    for (condition, case) in conditions(&both) {
        let ((x, p), (y, q)) = (beside(a, condition, case), beside(b, condition, case));
        fact.guards.push(Guard { condition, case, range: x.or(y), blocked: p && q });
    }
    fact.edges = past(&both);
    fact
}
