//! The static check of `where`: is the derivative of a branch that may not be taken infinite at the edge of a domain?
//!
//! While a function is linearized with the check on, every value has a [`Fact`]: an interval that holds its elements, and
//! the operations in its past whose derivative is infinite somewhere in their operand's interval ([`Edge`]). A selection
//! between values with such a past is reported, with both lines. The check looks at no number that depends on the
//! arguments, so it finds what only some inputs would show.
//!
//! A selection protects what comes after it, too, which is the advised way to write it: its result remembers
//! what it is where the condition picks the other case ([`Guard`]), and an edge that is none there needs no report from a
//! selection by the same condition. Equal computations have equal numbers ([`Fact::id`]), so a condition may be written twice.
//!
//! Read next: `ferrax-ops/src/where_rules/mod.rs`, what each operation makes of the facts of its operands.

use ferrax_base::config::Flag;
use ferrax_base::fork::Lock;
use ferrax_base::warning::warn;
use ferrax_base::{Aval, DType, Result, Scalar, Source};
use ferrax_ir::{Array, Atom, Jaxpr, OpRef, Payload, TraceId, Value, Var};
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// An interval that holds all elements of a value that are numbers; both ends belong to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The least.
    pub lo: f64,
    /// The greatest.
    pub hi: f64,
    /// Whether zero is none of them, though it lies between the ends.
    pub without_zero: bool,
}

impl Range {
    /// Any number.
    pub const ALL: Range = Range::of(f64::NEG_INFINITY, f64::INFINITY);

    /// From one number to another.
    pub const fn of(lo: f64, hi: f64) -> Range {
        Range { lo, hi, without_zero: false }
    }

    /// One number.
    pub const fn just(v: f64) -> Range {
        Range::of(v, v)
    }

    /// Whether zero is none of the elements.
    pub fn nonzero(self) -> bool {
        self.without_zero || self.lo > 0.0 || self.hi < 0.0
    }

    /// The elements of either.
    #[must_use]
    pub fn or(self, other: Range) -> Range {
        let without_zero = self.nonzero() && other.nonzero();
        Range { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi), without_zero }
    }

    /// The elements of both; of the first where they have none in common.
    #[must_use]
    pub fn and(self, other: Range) -> Range {
        let (lo, hi) = (self.lo.max(other.lo), self.hi.min(other.hi));
        if lo > hi { self } else { Range { lo, hi, without_zero: self.without_zero || other.without_zero } }
    }

    /// What every value of a dtype lies in.
    pub fn of_dtype(dtype: DType) -> Range {
        match dtype {
            DType::Bool => Range::of(0.0, 1.0),
            d if d.is_unsigned() => Range::of(0.0, f64::INFINITY),
            _ => Range::ALL,
        }
    }
}

/// An operation whose derivative is infinite or undefined at some element.
#[derive(Clone, Debug)]
pub struct Edge {
    /// Its name.
    pub name: Arc<str>,
    /// Where it was asked for.
    pub at: Source,
    /// The conditions, and the case of each, beside which it is no such operation.
    pub guards: SmallVec<[(u64, usize); 1]>,
}

/// What a value is where a condition picks another case than this one.
#[derive(Clone, Copy, Debug)]
pub struct Guard {
    /// The condition's number; [`Guard::TRUSTED`] for one that is taken to be about the domain.
    pub condition: u64,
    /// The case.
    pub case: usize,
    /// What its elements lie in there.
    pub range: Range,
    /// Whether no gradient goes through it there.
    pub blocked: bool,
}

impl Guard {
    /// The number that stands for conditions that are taken to be about the domain, whoever asks.
    pub const TRUSTED: u64 = 0;
}

/// What a condition says of one value.
pub type Claim = (u64, Range);

/// What holds where a condition is true, and where it is false.
#[derive(Debug, Default)]
pub struct Claims {
    /// Where it is false, and where it is true.
    pub cases: [Vec<Claim>; 2],
    /// The case that no number is in.
    pub never: Option<usize>,
    /// Whether it says no more than that numbers are finite.
    pub finite: bool,
}

/// What is known of a value.
#[derive(Clone, Debug)]
pub struct Fact {
    /// Equal for equal computations.
    pub id: u64,
    /// What its elements lie in.
    pub range: Range,
    /// Whether a gradient goes through it.
    pub active: bool,
    /// Operations in its past.
    pub edges: SmallVec<[Arc<Edge>; 1]>,
    /// What it is beside conditions.
    pub guards: SmallVec<[Guard; 1]>,
    /// Of a condition: what it says of other values.
    pub claims: Option<Arc<Claims>>,
    /// Of a maximum: of which value, and over which axes.
    pub maximum_of: Option<(u64, u64)>,
    /// Axes along which some element is always this number at least.
    pub peak: Option<(u64, f64)>,
}

impl Fact {
    /// A value of which nothing is known but its range.
    pub fn new(id: u64, range: Range, active: bool) -> Fact {
        Fact {
            id,
            range,
            active,
            edges: SmallVec::new(),
            guards: SmallVec::new(),
            claims: None,
            maximum_of: None,
            peak: None,
        }
    }

    /// A value with a number of its own.
    pub fn unknown(dtype: DType, active: bool, salt: impl Hash) -> Fact {
        Fact::new(hash_of(&("unknown", salt)), Range::of_dtype(dtype), active && dtype.is_inexact())
    }

    /// A constant.
    pub fn constant(v: Scalar) -> Fact {
        let range = if v.dtype.is_complex() { Range::ALL } else { Range::just(v.to_f64()) };
        Fact::new(hash_of(&("constant", v.dtype, v.bits)), range, false)
    }
}

/// A number for whatever is hashed.
pub fn hash_of(what: &impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    what.hash(&mut hasher);
    hasher.finish().max(1)
}

/// Sites that have been reported, by the selection's place, its case and the line of the operation.
static REPORTED: Lock<Option<FxHashSet<(Source, usize, String)>>> = Lock::new(None);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Forgets which sites have been reported.
pub fn forget() {
    *REPORTED.lock() = None;
}

/// Takes reports, or none while facts of loops are still being found.
#[derive(Debug, Default)]
pub struct Reports {
    /// How many searches are going on.
    pub silent: usize,
}

impl Reports {
    /// Reports a selection one of whose cases has an edge in its past, once.
    pub fn selection(&self, at: Source, cases: usize, case: usize, edge: &Edge) -> Result<()> {
        if self.silent > 0 {
            return Ok(());
        }
        let key = (Source { made: 0, scope: 0, ..at }, case, place(edge.at));
        if REPORTED.lock().get_or_insert_default().insert(key) {
            warn(&report(at, cases, case, edge))?;
        }
        Ok(())
    }
}

/// What the results of an operation are: (operation, its operands, types of the results, its place, reports).
pub type Rule = fn(&OpRef, &[Fact], &[Aval], &[Aval], Source, &mut Reports) -> Result<Vec<Fact>>;

static RULE: OnceLock<Rule> = OnceLock::new();

/// Installs what operations make of facts, which the crate of primitives knows; the first call counts.
pub fn set_rule(rule: Rule) {
    let _ = RULE.set(rule);
}

/// What the results of an operation are.
pub fn results(
    op: &OpRef,
    args: &[Fact],
    avals: &[Aval],
    outs: &[Aval],
    at: Source,
    reports: &mut Reports,
) -> Result<Vec<Fact>> {
    match RULE.get() {
        Some(rule) => rule(op, args, avals, outs, at, reports),
        None => Ok(Vec::new()),
    }
}

/// What variables of a program are.
#[derive(Debug, Default)]
pub struct Env(FxHashMap<Var, Fact>);

impl FromIterator<(Var, Fact)> for Env {
    fn from_iter<I: IntoIterator<Item = (Var, Fact)>>(all: I) -> Env {
        Env(all.into_iter().collect())
    }
}

/// What the variables of a program are, those that `needed` says, from what its parameters are.
pub fn program_facts(
    jaxpr: &Jaxpr,
    known: Env,
    needed: impl Fn(Var) -> bool,
    salt: u64,
    reports: &mut Reports,
) -> Result<Env> {
    let mut env = known;
    for (&v, c) in jaxpr.constvars.iter().zip(&jaxpr.consts) {
        env.0.insert(v, of_array(c));
    }
    for eqn in &jaxpr.eqns {
        if !eqn.outputs.iter().any(|&v| needed(v)) || eqn.outputs.iter().all(|v| env.0.contains_key(v)) {
            continue;
        }
        let args: Vec<Fact> = eqn.inputs.iter().map(|a| of_atom(jaxpr, &env, a, salt)).collect();
        let avals: Vec<Aval> = eqn.inputs.iter().map(|a| jaxpr.atom_aval(a)).collect();
        let outs: Vec<Aval> = eqn.outputs.iter().map(|&v| jaxpr.aval(v).clone()).collect();
        let facts = results(&eqn.op, &args, &avals, &outs, eqn.source, reports)?;
        env.0.extend(eqn.outputs.iter().copied().zip(facts));
    }
    Ok(env)
}

/// What an atom of a program is.
pub fn of_atom(jaxpr: &Jaxpr, env: &Env, a: &Atom, salt: u64) -> Fact {
    match a {
        Atom::Lit(l) => Fact::constant(l.scalar),
        Atom::Var(v) => env.0.get(v).cloned().unwrap_or_else(|| Fact::unknown(jaxpr.aval(*v).dtype, false, (salt, v))),
    }
}

/// Arrays up to this size are looked at.
const LOOKED_AT: usize = 1 << 16;

/// What an array that depends on no argument is.
fn of_array(a: &Array) -> Fact {
    let aval = a.aval();
    let id = hash_of(&("array", a.id()));
    let plain = aval.dtype.is_float() || aval.dtype.is_integer();
    let pin = if plain && (1..=LOOKED_AT).contains(&aval.size()) { a.pin().ok() } else { None };
    let Some(pin) = pin else { return Fact::new(id, Range::of_dtype(aval.dtype), false) };
    let mut numbers = pin.bytes().chunks_exact(aval.dtype.size()).map(|b| Scalar::from_bytes(aval.dtype, b));
    if aval.rank() == 0 {
        return numbers.next_back().map_or_else(|| Fact::new(id, Range::ALL, false), Fact::constant);
    }
    let (mut range, mut zero) = (Range::of(f64::INFINITY, f64::NEG_INFINITY), false);
    for v in numbers.map(Scalar::to_f64).filter(|v| !v.is_nan()) {
        range = Range::of(range.lo.min(v), range.hi.max(v));
        zero |= v == 0.0;
    }
    if range.lo > range.hi {
        range = Range::ALL;
    }
    Fact::new(id, Range { without_zero: !zero, ..range }, false)
}

/// What the values of one trace are; they are kept so that an address stays one value's.
#[derive(Default)]
pub(crate) struct WhereCheck(Mutex<FxHashMap<usize, (Value, Fact)>>);

impl WhereCheck {
    /// A check, when the setting asks for one.
    pub(crate) fn when_asked() -> Option<WhereCheck> {
        Flag::CheckWhere.get().then(WhereCheck::default)
    }

    /// Forgets all values: the trace ends.
    pub(crate) fn clear(&self) {
        let values = std::mem::take(&mut *locked(&self.0));
        drop(values);
    }

    /// Notes an operation's results, and warns when it selects a value with an edge in its past.
    pub(crate) fn note(&self, own: TraceId, op: &OpRef, args: &[Value], outs: &[Value]) -> Result<()> {
        let facts = args.iter().map(|v| self.fact(own, v)).collect::<Result<Vec<Fact>>>()?;
        let (avals, out_avals): (Vec<Aval>, Vec<Aval>) =
            (args.iter().map(Value::aval).collect(), outs.iter().map(Value::aval).collect());
        let found = results(op, &facts, &avals, &out_avals, Source::here(), &mut Reports::default())?;
        let mut table = locked(&self.0);
        for (v, mut fact) in outs.iter().zip(found) {
            fact.active &= is_own(own, v);
            if let Some(id) = address(v) {
                table.insert(id, (v.clone(), fact));
            }
        }
        Ok(())
    }

    /// What a value is.
    fn fact(&self, own: TraceId, v: &Value) -> Result<Fact> {
        let Some(id) = address(v) else {
            return Ok(match v {
                Value::Lit(l) => Fact::constant(l.scalar),
                _ => Fact::unknown(v.dtype(), false, 0),
            });
        };
        if let Some((_, known)) = locked(&self.0).get(&id) {
            return Ok(known.clone());
        }
        let fact = match v {
            Value::Array(a) => of_array(a),
            _ if is_own(own, v) => Fact::unknown(v.dtype(), true, id),
            _ => self.staged(v)?.unwrap_or_else(|| Fact::unknown(v.dtype(), false, id)),
        };
        locked(&self.0).insert(id, (v.clone(), fact.clone()));
        Ok(fact)
    }

    /// What a value is that another trace records, from the program so far; `None` where it is recorded nowhere.
    fn staged(&self, v: &Value) -> Result<Option<Fact>> {
        let Value::Tracer(t) = v else { return Ok(None) };
        match t.payload() {
            Payload::Jvp { primal, .. } => return self.staged(primal),
            Payload::Batched { value, .. } => return self.staged(value),
            Payload::Staged(Atom::Lit(l)) => return Ok(Some(Fact::constant(l.scalar))),
            Payload::Staged(_) => {}
            Payload::Hosted(_) => return Ok(None),
        }
        let mut known = Env::default();
        for (value, fact) in locked(&self.0).values() {
            if let Some(var) = variable(value, t.trace().id()) {
                known.0.insert(var, Fact { active: false, edges: SmallVec::new(), ..fact.clone() });
            }
        }
        let (salt, mut found) = (t.trace().id().0, Ok(None));
        t.trace().recorded(t, &mut |jaxpr, var| {
            let needed = needed_for(jaxpr, var);
            let mut reports = Reports { silent: 1 };
            let known = std::mem::take(&mut known);
            let facts = program_facts(jaxpr, known, |v| needed[v.0 as usize], salt, &mut reports);
            found = facts.map(|env| Some(of_atom(jaxpr, &env, &Atom::Var(var), salt)));
        });
        found
    }
}

/// The variable of a trace that a value or its primal is.
fn variable(v: &Value, trace: TraceId) -> Option<Var> {
    match v.as_tracer()?.payload() {
        Payload::Jvp { primal, .. } => variable(primal, trace),
        Payload::Staged(Atom::Var(var)) if v.as_tracer()?.trace().id() == trace => Some(*var),
        _ => None,
    }
}

/// Which variables of a program one comes from.
fn needed_for(jaxpr: &Jaxpr, var: Var) -> Vec<bool> {
    let mut needed = vec![false; jaxpr.avals.len()];
    needed[var.0 as usize] = true;
    for eqn in jaxpr.eqns.iter().rev() {
        if eqn.outputs.iter().any(|v| needed[v.0 as usize]) {
            for a in &eqn.inputs {
                if let Atom::Var(v) = a {
                    needed[v.0 as usize] = true;
                }
            }
        }
    }
    needed
}

fn is_own(own: TraceId, v: &Value) -> bool {
    v.as_tracer().is_some_and(|t| t.trace().id() == own)
}

fn address(v: &Value) -> Option<usize> {
    match v {
        Value::Array(a) => Some(a.id()),
        Value::Tracer(t) => Some(t.id()),
        Value::Lit(_) => None,
    }
}

fn place(s: Source) -> String {
    s.location().map_or_else(|| "an unknown line".to_owned(), |l| l.to_string())
}

/// The warning about one operand of a selection.
fn report(at: Source, cases: usize, case: usize, edge: &Edge) -> String {
    let branch = match (cases, case) {
        (2, 0) => "its branch for false".to_owned(),
        (2, _) => "its branch for true".to_owned(),
        _ => format!("its case {case}"),
    };
    format!(
        "where at {}: the gradient through {branch} can be NaN at elements that take another one. `{}` at {} has an \
         infinite or undefined derivative at the edge of its domain, and zero times that is NaN. Give `{}` an operand \
         that is inside its domain everywhere (jnp.where(condition, x, 1.0)), or differentiate under \
         ferrax.safe_where().",
        place(at),
        edge.name,
        place(edge.at),
        edge.name,
    )
}
