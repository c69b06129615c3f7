//! Transformations of finished programs, as the rules of higher-order primitives need them, each cached by its
//! program and what was asked.
//!
//! Layout conventions: an operand list with tangents is `primals…, nonzero tangents…`; a linearized program is
//! `known: args → outs…, residuals…` and `linear: residuals…, nonzero tangents → nonzero result tangents`.

use crate::backward::backward;
use crate::batching::{placed_axis, vmap};
use crate::eval::eval_jaxpr;
use crate::jvp::jvp;
use crate::linearize::{Linearized, TapeArg, linearize};
use crate::staging::stage_closed;
use crate::structural::instantiate;
use ferrax_base::config::{Flag, checks_numbers, trace_key, with};
use ferrax_base::{Aval, Result, Source};
use ferrax_cache::Cache;
use ferrax_ir::op::BatchAxis;
use ferrax_ir::{Atom, Eqn, Jaxpr, JaxprRef, TransposeArg, Value, Var, manual, spread};
use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::sync::LazyLock;

/// A table from a question about a program to its answer, bounded in bytes.
struct Memo<K: Send + Sync + 'static, V: Send + Sync + 'static>(Cache<K, V>);

/// Bytes that each of the tables keeps at most.
const LIMIT: usize = 64 << 20;

/// What a table holds.
trait Answer: Clone {
    /// Bytes that the programs take, about.
    fn bytes(&self) -> usize;
}

impl<K: Hash + Eq + Send + Sync, V: Answer + Send + Sync> Memo<K, V> {
    fn new() -> Self {
        Memo(Cache::new(LIMIT))
    }

    fn get_or(&self, key: K, make: impl FnOnce(&K) -> Result<V>) -> Result<V> {
        let make = |k: &K| make(k).map(|v| (v.clone(), v.bytes()));
        Ok(self.0.get_or_insert(key, None, make)?.value.clone())
    }
}

/// Makes the caches before their first use.
pub fn make_caches() {
    LazyLock::force(&JVPS);
    LazyLock::force(&LINEARIZED);
    LazyLock::force(&TRANSPOSED);
    LazyLock::force(&BATCHED);
}

/// Forgets every cached transformation.
pub fn clear_caches() {
    JVPS.0.clear();
    LINEARIZED.0.clear();
    TRANSPOSED.0.clear();
    BATCHED.0.clear();
}

/// What tells programs of one structure apart where reports are made of what is derived from them.
fn report_key(jaxpr: &JaxprRef) -> u64 {
    if checks_numbers() { jaxpr.report_hash() } else { 0 }
}

fn pick<T: Clone>(items: &[T], mask: &[bool]) -> Vec<T> {
    items.iter().zip(mask).filter(|&(_, &m)| m).map(|(v, _)| v.clone()).collect()
}

/// Spreads the nonzero tangents of an operand list over all its positions.
fn spread(tangents: &[Value], mask: &[bool]) -> Vec<Option<Value>> {
    let mut it = tangents.iter();
    mask.iter().map(|&m| if m { it.next().cloned() } else { None }).collect()
}

/// The tangent avals of the chosen parameters.
fn tangent_avals(avals: &[Aval], mask: &[bool]) -> Vec<Aval> {
    pick(avals, mask).iter().map(Aval::tangent).collect()
}

// ---- jvp -----------------------------------------------------------------------------------------------------------

/// A program's jvp: `primals…, nonzero tangents… → outs…, nonzero out tangents…`.
#[derive(Clone)]
pub struct JvpProgram {
    /// The program.
    pub jaxpr: JaxprRef,
    /// Which results carry a tangent.
    pub nonzero_out: Vec<bool>,
}

impl Answer for JvpProgram {
    fn bytes(&self) -> usize {
        self.jaxpr.bytes()
    }
}

/// Program, nonzero parameters, instantiated results, and the program's places where they count.
type JvpKey = (JaxprRef, Vec<bool>, Vec<bool>, u64);
static JVPS: LazyLock<Memo<JvpKey, JvpProgram>> = LazyLock::new(Memo::new);

/// The jvp of a program for the `nonzero` parameters; results in `instantiate` get a tangent even when it is zero.
pub fn jvp_jaxpr(jaxpr: &JaxprRef, nonzero: &[bool], instantiate_out: &[bool]) -> Result<JvpProgram> {
    let key = (jaxpr.clone(), nonzero.to_vec(), instantiate_out.to_vec(), report_key(jaxpr));
    JVPS.get_or(key, |(j, nonzero, inst, _)| {
        let mut avals = j.in_avals();
        let n = avals.len();
        avals.extend(tangent_avals(&avals, nonzero));
        let mut nonzero_out = Vec::new();
        let jaxpr = stage_closed("jvp", j.debug.clone(), &avals, |args| {
            let tangents = spread(&args[n..], nonzero);
            let (mut outs, out_tangents) = jvp(j.debug.clone(), &args[..n], &tangents, |p| eval_jaxpr(j, p))?;
            nonzero_out = out_tangents.iter().zip(inst).map(|(t, &i)| t.is_some() || i).collect();
            for ((t, on), aval) in out_tangents.into_iter().zip(&nonzero_out).zip(j.out_avals()) {
                if *on {
                    outs.push(instantiate(t, &aval.tangent())?);
                }
            }
            Ok(outs)
        })?;
        Ok(JvpProgram { jaxpr, nonzero_out })
    })
}

// ---- linearize -----------------------------------------------------------------------------------------------------

/// A program split into what depends on the point and what is linear in the tangents.
#[derive(Clone)]
pub struct LinearProgram {
    /// `args… → outs…, residuals…`.
    pub known: JaxprRef,
    /// `residuals…, nonzero tangents… → nonzero out tangents…`.
    pub linear: JaxprRef,
    /// Number of residuals.
    pub residuals: usize,
    /// Which results carry a tangent.
    pub nonzero_out: Vec<bool>,
}

impl Answer for LinearProgram {
    fn bytes(&self) -> usize {
        self.known.bytes() + self.linear.bytes()
    }
}

static LINEARIZED: LazyLock<Memo<JvpKey, LinearProgram>> = LazyLock::new(Memo::new);

/// Linearizes a program in the `nonzero` parameters; results in `instantiate` get a tangent even when it is zero.
pub fn linearize_jaxpr(jaxpr: &JaxprRef, nonzero: &[bool], instantiate_out: &[bool]) -> Result<LinearProgram> {
    let key = (jaxpr.clone(), nonzero.to_vec(), instantiate_out.to_vec(), report_key(jaxpr));
    LINEARIZED.get_or(key, |(j, nonzero, inst, _)| {
        let mut parts = None;
        let known = stage_closed("linearize", j.debug.clone(), &j.in_avals(), |args| {
            // what the program stands in has looked through it
            let lin = with(Flag::CheckWhere, false, || {
                linearize("linearize", j.debug.clone(), args, nonzero, |p| eval_jaxpr(j, p))
            })?;
            let (mut linear, residuals, nonzero_out) = tape_to_jaxpr(&lin, nonzero, inst, &j.out_avals())?;
            linear.debug = j.debug.clone().recorded("linearize");
            let mut outs = lin.outs;
            let count = residuals.len();
            outs.extend(residuals);
            parts = Some((linear, count, nonzero_out));
            Ok(outs)
        })?;
        let (linear, residuals, nonzero_out) =
            parts.ok_or_else(|| ferrax_base::error!(Internal, "linearization did not run"))?;
        Ok(LinearProgram { known, linear: linear.into(), residuals, nonzero_out })
    })
}

/// The values a tape is linear around, as parameters of a program in the making.
#[derive(Default)]
struct Residuals {
    values: Vec<Value>,
    vars: FxHashMap<usize, Var>,
    consts: FxHashMap<usize, Var>,
}

impl Residuals {
    fn atom(&mut self, out: &mut Jaxpr, v: &Value) -> Atom {
        match v {
            Value::Lit(l) => Atom::Lit(*l),
            Value::Array(a) => Atom::Var(*self.consts.entry(a.id()).or_insert_with(|| {
                let var = out.new_var(a.aval().clone());
                out.constvars.push(var);
                out.consts.push(a.clone());
                var
            })),
            Value::Tracer(t) => Atom::Var(*self.vars.entry(t.id()).or_insert_with(|| {
                self.values.push(v.clone());
                out.new_var(t.aval().clone())
            })),
        }
    }
}

/// A tape as a program `residuals…, nonzero tangents… → nonzero out tangents…`, with the residuals' values.
fn tape_to_jaxpr(
    lin: &Linearized,
    nonzero: &[bool],
    inst: &[bool],
    out_avals: &[Aval],
) -> Result<(Jaxpr, Vec<Value>, Vec<bool>)> {
    let mut out = Jaxpr::default();
    out.avals.clone_from(&lin.tape.avals);
    out.mapped.clone_from(&lin.tape.mapped);
    let mut known = Residuals::default();
    let live = live_eqns(lin);
    for (eqn, _) in lin.tape.eqns.iter().zip(&live).filter(|(_, live)| **live) {
        let inputs = eqn
            .args
            .iter()
            .map(|a| match a {
                TapeArg::Linear(v) => Atom::Var(*v),
                TapeArg::Known(v) => known.atom(&mut out, v),
            })
            .collect();
        let outputs = (eqn.first..eqn.first + eqn.results).map(Var).collect();
        out.effects = out.effects.union(eqn.op.effects());
        out.eqns.push(Eqn { op: eqn.op.clone(), inputs, outputs, source: eqn.source });
    }
    let mut by_use: Vec<(Var, usize)> = known.vars.iter().map(|(&id, &v)| (v, id)).collect();
    by_use.sort_unstable();
    out.invars = by_use.iter().map(|(v, _)| *v).collect();
    for var in pick(&lin.in_vars, nonzero) {
        // An integer parameter has no tangent variable; a float0 one keeps the positions aligned.
        let v = var.unwrap_or_else(|| out.new_var(Aval::scalar(ferrax_base::DType::Float0)));
        out.invars.push(v);
    }
    let nonzero_out: Vec<bool> = lin.out_vars.iter().zip(inst).map(|(v, &i)| v.is_some() || i).collect();
    for ((var, on), aval) in lin.out_vars.iter().zip(&nonzero_out).zip(out_avals) {
        match var {
            Some(v) => out.outvars.push(Atom::Var(*v)),
            None if *on => {
                let zero = zero_atom(&mut out, &aval.tangent());
                out.outvars.push(zero);
            }
            None => {}
        }
    }
    ferrax_ir::verify::verify_after("linearize", &out)?;
    Ok((out, known.values, nonzero_out))
}

/// Which tape equations reach a result.
fn live_eqns(lin: &Linearized) -> Vec<bool> {
    let mut needed = vec![false; lin.tape.avals.len()];
    lin.out_vars.iter().flatten().for_each(|v| needed[v.0 as usize] = true);
    let mut live = vec![false; lin.tape.eqns.len()];
    for (eqn, live) in lin.tape.eqns.iter().zip(&mut live).rev() {
        let outs = eqn.first as usize..(eqn.first + eqn.results) as usize;
        *live = needed[outs].iter().any(|&n| n) || !eqn.op.effects().is_none();
        if *live {
            for a in &eqn.args {
                if let TapeArg::Linear(v) = a {
                    needed[v.0 as usize] = true;
                }
            }
        }
    }
    live
}

/// An atom of zeros: a literal, or a broadcast one.
fn zero_atom(out: &mut Jaxpr, aval: &Aval) -> Atom {
    use crate::structural::{Axes, BROADCAST_IN_DIM, BroadcastInDim};
    let lit = Atom::Lit(ferrax_ir::Lit { scalar: ferrax_base::Scalar::zero(aval.dtype), weak: aval.weak });
    if aval.rank() == 0 {
        return lit;
    }
    let params = BroadcastInDim { shape: aval.shape.clone(), broadcast_dimensions: Axes::new() };
    let var = out.new_var(aval.clone());
    out.eqns.push(Eqn {
        op: ferrax_ir::OpRef::new(&BROADCAST_IN_DIM, params),
        inputs: smallvec::smallvec![lit],
        outputs: smallvec::smallvec![var],
        source: Source::default(),
    });
    Atom::Var(var)
}

// ---- transpose -----------------------------------------------------------------------------------------------------

/// A transposed program: `known args…, nonzero cotangents… → nonzero cotangents of the linear args…`.
#[derive(Clone)]
pub struct TransposedProgram {
    /// The program.
    pub jaxpr: JaxprRef,
    /// For each linear parameter, whether it gets a cotangent.
    pub nonzero_out: Vec<bool>,
}

impl Answer for TransposedProgram {
    fn bytes(&self) -> usize {
        self.jaxpr.bytes()
    }
}

/// Program, linear parameters, cotangents given, whether all are wanted, the settings in force, the program's places.
type TransposeKey = (JaxprRef, Vec<bool>, Vec<bool>, bool, u64, u64);
static TRANSPOSED: LazyLock<Memo<TransposeKey, TransposedProgram>> = LazyLock::new(Memo::new);

/// Transposes a program in its `linear` parameters, for the `nonzero_ct` results; `all` instantiates zero cotangents.
pub fn transpose_jaxpr(jaxpr: &JaxprRef, linear: &[bool], nonzero_ct: &[bool], all: bool) -> Result<TransposedProgram> {
    let key = (jaxpr.clone(), linear.to_vec(), nonzero_ct.to_vec(), all, trace_key(), report_key(jaxpr));
    TRANSPOSED.get_or(key, |(j, linear, nonzero_ct, all, ..)| {
        let in_avals = j.in_avals();
        let known: Vec<bool> = linear.iter().map(|l| !l).collect();
        let mut avals = pick(&in_avals, &known);
        let n = avals.len();
        avals.extend(tangent_avals(&j.out_avals(), nonzero_ct));
        let mut nonzero_out = Vec::new();
        let jaxpr = stage_closed("transpose", j.debug.clone(), &avals, |args| {
            let mut values = args[..n].iter();
            let operands: Vec<TransposeArg> = linear
                .iter()
                .zip(&in_avals)
                .map(|(&l, aval)| match values.next_if_known(l) {
                    Some(v) => TransposeArg::Known(v.clone()),
                    None => TransposeArg::Linear(aval.clone()),
                })
                .collect();
            let pulled = backward(j, &operands, &spread(&args[n..], nonzero_ct))?;
            let mut outs = Vec::new();
            for ((ct, aval), _) in pulled.into_iter().zip(&in_avals).zip(linear).filter(|&(_, &l)| l) {
                nonzero_out.push(ct.is_some() || *all);
                if ct.is_some() || *all {
                    outs.push(instantiate(ct, &aval.tangent())?);
                }
            }
            Ok(outs)
        })?;
        Ok(TransposedProgram { jaxpr, nonzero_out })
    })
}

/// Takes from an iterator only for known parameters.
trait NextIfKnown<'a> {
    fn next_if_known(&mut self, linear: bool) -> Option<&'a Value>;
}

impl<'a> NextIfKnown<'a> for std::slice::Iter<'a, Value> {
    fn next_if_known(&mut self, linear: bool) -> Option<&'a Value> {
        if linear { None } else { self.next() }
    }
}

// ---- batching ------------------------------------------------------------------------------------------------------

/// A batched program: batched parameters and results have the batch axis first.
#[derive(Clone)]
pub struct BatchedProgram {
    /// The program.
    pub jaxpr: JaxprRef,
    /// Which results are batched.
    pub batched_out: Vec<bool>,
}

impl Answer for BatchedProgram {
    fn bytes(&self) -> usize {
        self.jaxpr.bytes()
    }
}

type BatchKey = (JaxprRef, BatchAxis, Vec<bool>, Vec<bool>, u64);
static BATCHED: LazyLock<Memo<BatchKey, BatchedProgram>> = LazyLock::new(Memo::new);

/// Batches a program over axis 0 of the `batched` parameters; results in `force` are batched even when they need not be.
pub fn batch_jaxpr(jaxpr: &JaxprRef, axis: &BatchAxis, batched: &[bool], force: &[bool]) -> Result<BatchedProgram> {
    let key = (jaxpr.clone(), axis.clone(), batched.to_vec(), force.to_vec(), report_key(jaxpr));
    BATCHED.get_or(key, |(j, axis, batched, force, _)| {
        let avals: Vec<Aval> = j
            .in_avals()
            .into_iter()
            .zip(batched)
            .map(|(mut a, &b)| {
                if b {
                    a = spread::with_axis(a, 0, axis.size, axis.spread);
                }
                if axis.manual != 0 {
                    // outside of the axis nothing varies over it, and no sums over it are due
                    a.vary &= !axis.manual;
                    a.spread = spread::without_marks(a.spread);
                }
                a
            })
            .collect();
        let dims: Vec<Option<usize>> = batched.iter().map(|&b| b.then_some(0)).collect();
        let mut batched_out = Vec::new();
        let jaxpr = stage_closed("vmap", j.debug.clone(), &avals, |args| {
            let varying = |p: &[Value]| {
                let vary = j.in_avals().into_iter().map(|a| a.vary & axis.manual);
                p.iter().zip(vary).map(|(v, bits)| manual::widen(v, bits)).collect::<Result<Vec<Value>>>()
            };
            let outs = vmap(j.debug.clone(), axis.clone(), args, &dims, |p| match axis.manual {
                0 => eval_jaxpr(j, p),
                _ => eval_jaxpr(j, &varying(p)?),
            })?;
            batched_out = outs.iter().zip(force).map(|((_, d), &f)| d.is_some() || f).collect();
            outs.iter()
                .zip(&batched_out)
                .map(|((v, d), &on)| if on { placed_axis(v, *d, Some(0), axis) } else { Ok(v.clone()) })
                .collect()
        })?;
        Ok(BatchedProgram { jaxpr, batched_out })
    })
}
