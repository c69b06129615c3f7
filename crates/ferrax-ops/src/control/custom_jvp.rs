//! `custom_jvp_call`: a function with a derivative rule of its own.
//!
//! Outside `jit` the function runs on concrete values (Python control flow works); a recording trace turns it
//! into a program first. The rule is a host function `primals…, tangents… → outs…, out tangents…`.

use super::jit::inline_program;
use super::{Callable, CallableRef, check_args, eval_reference, instantiate_all, mask};
use ferrax_base::{Aval, Result, error};
use ferrax_ir::op::{BatchAxis, BatchDims, Operands};
use ferrax_ir::trace::is_eager;
use ferrax_ir::{
    DebugInfo, Def, JaxprRef, OpRef, ParamValue, Slot, Special, Tangents, TransposeArg, Value, Values, bind,
};
use ferrax_transform::batching::{Family, place_axis, vmap_again};
use ferrax_transform::programs::batch_jaxpr;
use ferrax_transform::{eval_jaxpr, stage};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

ferrax_ir::params! {
    /// Parameters of `custom_jvp_call`.
    pub struct CustomJvp {
        /// The function's name.
        name: Arc<str>,
        /// The recorded function; `None` until a trace records it.
        call_jaxpr: Option<JaxprRef>,
        /// The function itself.
        fun: CallableRef,
        /// primals, tangents → results, their tangents.
        jvp: CallableRef,
        /// Leading operands that the recorded function closed over.
        num_consts: usize,
        /// Whether the rule sees zero tangents as symbolic zeros.
        symbolic_zeros: bool,
    }
    print: |p: &CustomJvp, _| {
        let mut out = vec![("name", p.name.print()), ("call_jaxpr", p.call_jaxpr.print()), ("jvp", p.jvp.print())];
        out.extend((p.num_consts > 0).then(|| ("num_consts", p.num_consts.print())));
        out.push(("symbolic_zeros", p.symbolic_zeros.print()));
        out
    }
}

/// Calls a function that has its own jvp rule.
pub static CUSTOM_JVP: Def<CustomJvp> = Def {
    name: "custom_jvp_call",
    doc: "Calls a function that has a jvp rule of its own.",
    arity: None,
    shape: |p, args| match &p.call_jaxpr {
        Some(j) => {
            check_args(&p.name, j, args)?;
            Ok(j.out_avals().into())
        }
        None => Err(error!(Internal, "custom_jvp_call of {} was not recorded", p.name)),
    },
    jvp: Slot::Rule(custom_jvp),
    transpose: Slot::Rule(|_, p, cts, args| match &p.call_jaxpr {
        Some(j) => transpose_call(j, cts, args),
        None => Err(error!(Internal, "custom_jvp_call of {} was not recorded", p.name)),
    }),
    batch: Slot::Rule(custom_jvp_batch),
    simplify: Slot::None("passes work inside the program"),
    stablehlo: Slot::None("from its kernel"),
    kernel: Slot::Rule(|_, p, b, args, _| match &p.call_jaxpr {
        Some(j) => inline_program(j, b, args),
        None => Err(error!(Internal, "custom_jvp_call of {} was not recorded", p.name)),
    }),
    reference: Slot::Rule(|p, args, _| match &p.call_jaxpr {
        Some(j) => eval_reference(j, args),
        None => Err(error!(Internal, "custom_jvp_call of {} was not recorded", p.name)),
    }),
    special: Special {
        stage: Some(custom_jvp_stage),
        eager: Some(custom_jvp_eager),
        effects: Some(|p| p.call_jaxpr.as_ref().map_or(ferrax_ir::Effects::NONE, |j| j.effects)),
        ..Special::NONE
    },
};

/// Transposes a call of a program that is linear in some operands.
pub(crate) fn transpose_call(j: &JaxprRef, cts: &[Option<Value>], args: &[TransposeArg]) -> Result<Tangents> {
    Ok(ferrax_transform::backward(j, args, cts)?.into())
}

/// Calls `fun` with the rule `jvp`.
pub fn custom_jvp_call(
    name: Arc<str>,
    fun: CallableRef,
    jvp: CallableRef,
    symbolic_zeros: bool,
    args: &[Value],
) -> Result<Values> {
    let params = CustomJvp { name, call_jaxpr: None, fun, jvp, num_consts: 0, symbolic_zeros };
    bind(&OpRef::new(&CUSTOM_JVP, params), args)
}

fn custom_jvp_eager(_: &OpRef, p: &CustomJvp, args: &[Value]) -> Result<Values> {
    match &p.call_jaxpr {
        Some(j) => Ok(eval_jaxpr(j, args)?.into()),
        None => Ok(p.fun.0.call(args)?.into()),
    }
}

fn custom_jvp_stage(op: &OpRef, p: &CustomJvp, args: &[Value]) -> Result<(OpRef, Operands)> {
    if p.call_jaxpr.is_some() {
        return Ok((op.clone(), args.into()));
    }
    let (jaxpr, captured) = record("custom_jvp fun", &p.name, &p.fun, args)?;
    let params = CustomJvp { call_jaxpr: Some(jaxpr), num_consts: captured.len(), ..p.clone() };
    Ok((OpRef::new(&CUSTOM_JVP, params), captured.into_iter().chain(args.iter().cloned()).collect()))
}

/// Records a host function for these operands; what it closed over becomes leading operands.
pub(crate) fn record(
    transform: &'static str,
    name: &str,
    fun: &CallableRef,
    args: &[Value],
) -> Result<(JaxprRef, Vec<Value>)> {
    let avals: Vec<Aval> = args.iter().map(Value::aval).collect();
    let debug = DebugInfo { arg_names: fun.0.arg_names(), ..DebugInfo::named(name) };
    let staged = stage(transform, debug, &avals, |args| fun.0.call(args))?;
    Ok((staged.jaxpr.into(), staged.captured))
}

fn custom_jvp(_: &OpRef, p: &CustomJvp, primals: &[Value], tangents: &[Option<Value>]) -> Result<(Values, Tangents)> {
    if tangents[..p.num_consts].iter().any(Option::is_some) {
        return Err(error!(
            Type,
            "the custom_jvp function {} closes over a value that is being differentiated; pass it as an argument",
            p.name
        ));
    }
    let primals = &primals[p.num_consts..];
    let tangents = &tangents[p.num_consts..];
    let avals: Vec<Aval> = primals.iter().map(Value::aval).collect();
    let mut args = primals.to_vec();
    args.extend(instantiate_all(tangents, &avals)?);
    let zero = mask(tangents).iter().map(|t| p.symbolic_zeros && !t).collect::<Vec<_>>();
    let mut outs = p.jvp.0.call_with_zeros(&args, &zero)?;
    let out_tangents = outs.split_off(outs.len() / 2);
    let out_tangents = out_tangents.into_iter().zip(&outs).map(|(t, o)| o.dtype().is_inexact().then_some(t)).collect();
    Ok((outs.into(), out_tangents))
}

/// Which results of a function and of its rule have the axis of a batch, as axis 0: both must agree.
#[derive(Clone)]
pub(crate) struct Rows(Arc<Mutex<Found>>);

enum Found {
    /// Those that differ from row to row in what ran last.
    Last(Vec<bool>),
    /// What the caller has been told.
    Settled(Vec<bool>),
}

impl Rows {
    /// Those that differ in what will run.
    pub(crate) fn found() -> Rows {
        Rows(Arc::new(Mutex::new(Found::Last(Vec::new()))))
    }

    /// Those that are known.
    pub(crate) fn told(rows: Vec<bool>) -> Rows {
        Rows(Arc::new(Mutex::new(Found::Settled(rows))))
    }

    /// Results with their batch axes, as they are handed on; `parts` is 2 for values and their tangents.
    pub(crate) fn place(&self, outs: &[(Value, Option<usize>)], size: usize, parts: usize) -> Result<Vec<Value>> {
        let n = outs.len() / parts;
        let differ: Vec<bool> = (0..n).map(|i| outs.iter().skip(i).step_by(n).any(|(_, d)| d.is_some())).collect();
        let mut found = self.lock();
        if let Found::Last(last) = &mut *found {
            last.clone_from(&differ);
        }
        if let Found::Settled(told) = &*found
            && let Some(i) = (0..n).find(|&i| differ[i] && !told.get(i).is_some_and(|&b| b))
        {
            return Err(error!(
                Type,
                "result {i} of the rule differs from row to row of a vmap, where the function's is the same for all of \
                 them: let the function depend on what the rule closes over, or pass that as an argument"
            ));
        }
        drop(found);
        let on = self.mask();
        let at = |(i, (v, d)): (usize, &(Value, Option<usize>))| {
            if on[i % n] { place_axis(v, *d, Some(0), size) } else { Ok(v.clone()) }
        };
        outs.iter().enumerate().map(at).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Found> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Which results have the axis.
    pub(crate) fn mask(&self) -> Vec<bool> {
        match &*self.lock() {
            Found::Last(rows) | Found::Settled(rows) => rows.clone(),
        }
    }

    /// The batch axes of the results, for good.
    pub(crate) fn settle(&self) -> BatchDims {
        let mask = self.mask();
        *self.lock() = Found::Settled(mask.clone());
        mask.iter().map(|&on| on.then_some(0)).collect()
    }
}

/// A host function applied to whole batches.
pub(crate) struct Batched {
    fun: CallableRef,
    axis: BatchAxis,
    batched: Vec<bool>,
    name: Arc<str>,
    rows: Rows,
    family: Family,
}

impl Batched {
    /// `fun` over `axis`, its operands batched on axis 0 where `batched` says so.
    pub(crate) fn wrap(
        fun: &CallableRef,
        axis: &BatchAxis,
        batched: Vec<bool>,
        name: &Arc<str>,
        rows: &Rows,
    ) -> CallableRef {
        let (fun, axis, name, rows) = (fun.clone(), axis.clone(), name.clone(), rows.clone());
        CallableRef(Arc::new(Batched { fun, axis, batched, name, rows, family: Family::current() }))
    }
}

impl Callable for Batched {
    fn call(&self, args: &[Value]) -> Result<Vec<Value>> {
        self.call_with_zeros(args, &[])
    }

    fn call_with_zeros(&self, args: &[Value], zero: &[bool]) -> Result<Vec<Value>> {
        // Tangents follow their primals' axes, so a rule gets the mask twice.
        let dims: Vec<Option<usize>> =
            (0..args.len()).map(|i| self.batched[i % self.batched.len().max(1)].then_some(0)).collect();
        let debug = DebugInfo::named(&self.name);
        let outs =
            vmap_again(self.family, debug, self.axis.clone(), args, &dims, |a| self.fun.0.call_with_zeros(a, zero))?;
        // A rule gives tangents along with the values.
        self.rows.place(&outs, self.axis.size, if args.len() > self.batched.len() { 2 } else { 1 })
    }

    fn name(&self) -> String {
        self.fun.0.name()
    }
}

fn custom_jvp_batch(
    _: &OpRef,
    p: &CustomJvp,
    axis: &BatchAxis,
    args: &[Value],
    dims: &[Option<usize>],
) -> Result<(Values, BatchDims)> {
    let args = super::batch_first(args, dims, axis.size)?;
    let batched = super::mask(&dims[p.num_consts..]);
    let both = |differ: &[bool]| {
        rows_of_both(differ, &batched, &p.name, &args[p.num_consts..], |primals, rows| {
            let avals: Vec<Aval> = primals.iter().map(Value::aval).collect();
            let tangents = instantiate_all(&vec![None; primals.len()], &avals)?;
            let rule = Batched::wrap(&p.jvp, axis, batched.clone(), &p.name, rows);
            rule.0.call_with_zeros(&[primals, &tangents].concat(), &vec![false; primals.len()]).map(drop)
        })
    };
    batched_call(p.call_jaxpr.as_ref(), axis, dims, both, |rows, call_jaxpr| {
        let jvp = Batched::wrap(&p.jvp, axis, batched.clone(), &p.name, rows);
        let fun = Batched::wrap(&p.fun, axis, batched.clone(), &p.name, rows);
        bind(&OpRef::new(&CUSTOM_JVP, CustomJvp { call_jaxpr, fun, jvp, ..p.clone() }), &args)
    })
}

/// Which results differ from row to row, where those of `differ` do for the function: those of the rule, too, which is
/// traced for that where the function has some that do not, as it may depend on more.
pub(crate) fn rows_of_both(
    differ: &[bool],
    batched: &[bool],
    name: &str,
    args: &[Value],
    rule: impl Fn(&[Value], &Rows) -> Result<()>,
) -> Vec<bool> {
    if !batched.contains(&true) || !differ.contains(&false) {
        return differ.to_vec();
    }
    let rows = Rows::found();
    let avals: Vec<Aval> = args.iter().map(Value::aval).collect();
    let traced = stage("jit", DebugInfo::named(name), &avals, |args| rule(args, &rows).map(|()| Vec::new()));
    let mask = rows.mask();
    // a rule that cannot be traced says what is wrong when it is asked for
    if traced.is_err() || mask.len() != differ.len() {
        return differ.to_vec();
    }
    differ.iter().zip(mask).map(|(&a, b)| a || b).collect()
}

/// Calls a function with a rule over a batch: `call` is given which results have its axis, and the recorded function if
/// there is one. `both` says of the results that differ for the function which do when its rule is asked, too.
pub(crate) fn batched_call(
    call: Option<&JaxprRef>,
    axis: &BatchAxis,
    dims: &[Option<usize>],
    both: impl Fn(&[bool]) -> Vec<bool>,
    bound: impl Fn(&Rows, Option<JaxprRef>) -> Result<Values>,
) -> Result<(Values, BatchDims)> {
    let (mut rows, mut program) = (Rows::found(), None);
    if let Some(j) = call {
        let found = batch_jaxpr(j, axis, &super::mask(dims), &vec![false; j.outvars.len()])?;
        let told = both(&found.batched_out);
        let found = if told == found.batched_out { found } else { batch_jaxpr(j, axis, &super::mask(dims), &told)? };
        (rows, program) = (Rows::told(found.batched_out), Some(found.jaxpr));
    }
    let mut outs = bound(&rows, program.clone())?;
    if program.is_none() && !is_eager() {
        let found = rows.mask();
        let told = both(&found);
        if told != found {
            rows = Rows::told(told);
            outs = bound(&rows, None)?;
        }
    }
    let dims = rows.settle();
    Ok((outs, dims))
}
