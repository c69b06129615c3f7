//! `custom_vjp_call`: a function with a reverse-mode rule of its own, and the linear operation that stands for
//! its derivative on a tape.
//!
//! Linearization runs the rule's forward function and records [`CUSTOM_VJP_LINEAR`] with the residuals; its
//! transpose is the rule's backward function. Forward mode has no rule to use and says so.

use super::custom_jvp::{Batched, Rows, batched_call, record, rows_of_both};
use super::jit::inline_program;
use super::{CallableRef, check_args, eval_reference};
use ferrax_base::{Aval, Result, error};
use ferrax_ir::op::{BatchAxis, BatchDims, Operands};
use ferrax_ir::{
    DebugInfo, Def, JaxprRef, OpRef, Param, ParamValue, Slot, Special, Tangents, Value, Values, bind, manual, spread,
};
use ferrax_transform::batching::{Family, place_axis, vmap_again};
use ferrax_transform::eval_jaxpr;
use ferrax_transform::structural::{instantiate, reduce_sum};
use std::sync::Arc;

/// A reverse-mode rule.
pub trait VjpRule: Send + Sync {
    /// operands, which of them are differentiated → results, residuals.
    fn fwd(&self, args: &[Value], perturbed: &[bool]) -> Result<(Vec<Value>, Vec<Value>)>;
    /// residuals, cotangents of the results, which of them are zero → cotangents of the operands; `None` is zero.
    fn bwd(&self, residuals: &[Value], cts: &[Value], zero: &[bool]) -> Result<Vec<Option<Value>>>;
    /// The function's name.
    fn name(&self) -> String;
    /// The names of the forward and the backward function.
    fn names(&self) -> (String, String);
}

/// A shared [`VjpRule`]; equal when it is the same object.
#[derive(Clone)]
pub struct VjpRuleRef(pub Arc<dyn VjpRule>);

impl PartialEq for VjpRuleRef {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for VjpRuleRef {}

impl std::hash::Hash for VjpRuleRef {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).cast::<u8>().hash(state);
    }
}

impl std::fmt::Debug for VjpRuleRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.name())
    }
}

impl ParamValue for VjpRuleRef {
    fn print(&self) -> Param {
        Param::Text(self.0.name())
    }
    fn parse(_: &Param) -> Option<Self> {
        None
    }
}

ferrax_ir::params! {
    /// Parameters of `custom_vjp_call`.
    pub struct CustomVjp {
        /// The function's name.
        name: Arc<str>,
        /// The recorded function; `None` until a trace records it.
        call_jaxpr: Option<JaxprRef>,
        /// The function itself.
        fun: CallableRef,
        /// Its forward and backward functions.
        rule: VjpRuleRef,
        /// Leading operands that the recorded function closed over.
        num_consts: usize,
        /// Whether the rule sees zero cotangents as symbolic zeros.
        symbolic_zeros: bool,
    }
    print: |p: &CustomVjp, _| {
        let (fwd, bwd) = p.rule.0.names();
        let text = Param::Text;
        let mut out = vec![("name", p.name.print()), ("bwd", text(bwd)), ("call_jaxpr", p.call_jaxpr.print())];
        out.push(("fwd", text(fwd)));
        out.extend((p.num_consts > 0).then(|| ("num_consts", p.num_consts.print())));
        out.push(("symbolic_zeros", p.symbolic_zeros.print()));
        out
    }
}

/// What forward mode meets at a function of this name.
#[cold]
fn no_jvp(name: &str) -> ferrax_base::Error {
    error!(
        Type,
        "can't apply forward-mode autodiff (jvp) to a custom_vjp function: {name} defines only a vjp rule. Use reverse \
         mode (grad, vjp), or define the derivative with custom_jvp."
    )
}

/// Calls a function that has its own vjp rule.
pub static CUSTOM_VJP: Def<CustomVjp> = Def {
    name: "custom_vjp_call",
    doc: "Calls a function that has a vjp rule of its own.",
    arity: None,
    shape: |p, args| {
        check_args(&p.name, recorded(p)?, args)?;
        Ok(recorded(p)?.out_avals().into())
    },
    jvp: Slot::Rule(|_, p, _, _| Err(no_jvp(&p.name))),
    transpose: Slot::Rule(|_, p, cts, args| super::custom_jvp::transpose_call(recorded(p)?, cts, args)),
    batch: Slot::Rule(custom_vjp_batch),
    simplify: Slot::None("passes work inside the program"),
    stablehlo: Slot::None("from its kernel"),
    kernel: Slot::Rule(|_, p, b, args, _| inline_program(recorded(p)?, b, args)),
    reference: Slot::Rule(|p, args, _| eval_reference(recorded(p)?, args)),
    special: Special {
        linearize: Some(custom_vjp_linearize),
        stage: Some(custom_vjp_stage),
        eager: Some(|_, p, args| match &p.call_jaxpr {
            Some(j) => Ok(eval_jaxpr(j, args)?.into()),
            None => Ok(p.fun.0.call(args)?.into()),
        }),
        effects: Some(|p| p.call_jaxpr.as_ref().map_or(ferrax_ir::Effects::NONE, |j| j.effects)),
        ..Special::NONE
    },
};

fn recorded(p: &CustomVjp) -> Result<&JaxprRef> {
    p.call_jaxpr.as_ref().ok_or_else(|| error!(Internal, "custom_vjp_call of {} was not recorded", p.name))
}

/// Calls `fun` with the reverse-mode rule `rule`.
pub fn custom_vjp_call(
    name: Arc<str>,
    fun: CallableRef,
    rule: VjpRuleRef,
    symbolic_zeros: bool,
    args: &[Value],
) -> Result<Values> {
    let params = CustomVjp { name, call_jaxpr: None, fun, rule, num_consts: 0, symbolic_zeros };
    bind(&OpRef::new(&CUSTOM_VJP, params), args)
}

fn custom_vjp_stage(op: &OpRef, p: &CustomVjp, args: &[Value]) -> Result<(OpRef, Operands)> {
    if p.call_jaxpr.is_some() {
        return Ok((op.clone(), args.into()));
    }
    let (jaxpr, captured) = record("custom_vjp fun", &p.name, &p.fun, args)?;
    let params = CustomVjp { call_jaxpr: Some(jaxpr), num_consts: captured.len(), ..p.clone() };
    Ok((OpRef::new(&CUSTOM_VJP, params), captured.into_iter().chain(args.iter().cloned()).collect()))
}

fn custom_vjp_linearize(
    _: &OpRef,
    p: &CustomVjp,
    primals: &[Value],
    tangents: &[Option<Value>],
) -> Result<(Values, Tangents)> {
    if tangents[..p.num_consts].iter().any(Option::is_some) {
        return Err(error!(
            Type,
            "the custom_vjp function {} closes over a value that is being differentiated; pass it as an argument",
            p.name
        ));
    }
    let primals = &primals[p.num_consts..];
    let tangents = &tangents[p.num_consts..];
    let (outs, residuals) = p.rule.0.fwd(primals, &super::mask(tangents))?;
    let out_avals: Vec<Aval> = outs.iter().map(Value::aval).collect();
    let num_res = residuals.len();
    let mut args = residuals;
    for (t, x) in tangents.iter().zip(primals) {
        args.push(instantiate(t.clone(), &x.aval().tangent())?);
    }
    let params = CustomVjpLinear { rule: p.rule.clone(), num_res, out_avals: AvalList(out_avals) };
    let out_tangents = bind(&OpRef::new(&CUSTOM_VJP_LINEAR, params), &args)?;
    let out_tangents = out_tangents.into_iter().zip(&outs).map(|(t, o)| o.dtype().is_inexact().then_some(t)).collect();
    Ok((outs.into(), out_tangents))
}

/// Avals as a parameter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AvalList(pub Vec<Aval>);

impl AvalList {
    /// The avals with a leading axis, divided as its number says.
    pub fn batched(&self, axis: &BatchAxis) -> AvalList {
        AvalList(self.0.iter().map(|a| ferrax_ir::spread::with_axis(a.clone(), 0, axis.size, axis.spread)).collect())
    }
}

impl ParamValue for AvalList {
    fn print(&self) -> Param {
        let all: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        Param::Text(format!("[{}]", all.join(", ")))
    }
    fn parse(_: &Param) -> Option<Self> {
        None
    }
}

ferrax_ir::params! {
    /// Parameters of `custom_vjp_linear`.
    pub struct CustomVjpLinear {
        /// The rule whose backward function is the transpose.
        rule: VjpRuleRef,
        /// Leading operands that are residuals.
        num_res: usize,
        /// Avals of the function's results.
        out_avals: AvalList,
    }
}

/// (residuals…, tangents…) → tangents of the results: the derivative that only the backward function knows.
pub static CUSTOM_VJP_LINEAR: Def<CustomVjpLinear> = Def {
    name: "custom_vjp_linear",
    doc: "The derivative of a custom_vjp function: known only by its transpose.",
    arity: None,
    shape: |p, _| Ok(p.out_avals.0.iter().map(Aval::tangent).collect()),
    jvp: Slot::None("the function defines only a vjp rule"),
    transpose: Slot::Rule(|_, p, cts, args| {
        let residuals = args[..p.num_res].iter().map(|a| a.known().cloned()).collect::<Result<Vec<_>>>()?;
        let zero: Vec<bool> = cts.iter().map(Option::is_none).collect();
        let cts = super::instantiate_all(cts, &p.out_avals.0)?.into_iter().zip(&p.out_avals.0);
        let cts = cts.map(|(ct, aval)| spread::settled(ct, aval)).collect::<Result<Vec<_>>>()?;
        let pulled = p.rule.0.bwd(&residuals, &cts, &zero)?;
        Ok(std::iter::repeat_n(None, p.num_res).chain(pulled).collect())
    }),
    batch: Slot::Rule(|_, p, axis, args, dims| {
        let args = super::batch_first(args, dims, axis.size)?;
        let (residuals, batched) = (super::mask(&dims[..p.num_res]), super::mask(&dims[p.num_res..]));
        let rows = Rows::told(vec![true; p.out_avals.0.len()]);
        let rule = BatchedRule::wrap(&p.rule, axis, batched, Rows::told(residuals), rows);
        let params = CustomVjpLinear { rule, num_res: p.num_res, out_avals: p.out_avals.batched(axis) };
        let outs = bind(&OpRef::new(&CUSTOM_VJP_LINEAR, params), &args)?;
        let n = outs.len();
        Ok((outs, smallvec::smallvec![Some(0); n]))
    }),
    simplify: Slot::None("no rewrite applies"),
    stablehlo: Slot::None("from its kernel"),
    kernel: Slot::Rule(|_, p, _, _, _| Err(no_jvp(&p.rule.0.name()))),
    reference: Slot::None("can't apply forward-mode autodiff (jvp) to a custom_vjp function"),
    special: Special { pulls_zeros: true, ..Special::NONE },
};

/// A rule applied to whole batches: residuals and results are batched on axis 0, or the same for all rows.
struct BatchedRule {
    rule: VjpRuleRef,
    axis: BatchAxis,
    batched: Vec<bool>,
    /// Which residuals are batched.
    residuals: Rows,
    /// Which results are.
    rows: Rows,
    family: Family,
}

impl BatchedRule {
    fn wrap(rule: &VjpRuleRef, axis: &BatchAxis, batched: Vec<bool>, residuals: Rows, rows: Rows) -> VjpRuleRef {
        let (rule, axis) = (rule.clone(), axis.clone());
        VjpRuleRef(Arc::new(BatchedRule { rule, axis, batched, residuals, rows, family: Family::current() }))
    }

    fn debug(&self) -> DebugInfo {
        DebugInfo::named(&self.rule.0.name())
    }
}

impl VjpRule for BatchedRule {
    fn fwd(&self, args: &[Value], perturbed: &[bool]) -> Result<(Vec<Value>, Vec<Value>)> {
        let dims: Vec<Option<usize>> = self.batched.iter().map(|&b| b.then_some(0)).collect();
        let mut count = 0;
        let mut outs = vmap_again(self.family, self.debug(), self.axis.clone(), args, &dims, |a| {
            let (mut outs, residuals) = self.rule.0.fwd(a, perturbed)?;
            count = outs.len();
            outs.extend(residuals);
            Ok(outs)
        })?;
        let residuals = outs.split_off(count);
        let size = self.axis.size;
        Ok((self.rows.place(&outs, size, 1)?, self.residuals.place(&residuals, size, 1)?))
    }

    fn bwd(&self, residuals: &[Value], cts: &[Value], zero: &[bool]) -> Result<Vec<Option<Value>>> {
        let args: Vec<Value> = residuals.iter().chain(cts).cloned().collect();
        let n = residuals.len();
        let on = self.residuals.mask().into_iter().chain(self.rows.mask());
        let dims: Vec<Option<usize>> = on.map(|on| on.then_some(0)).collect();
        let mut there = Vec::new();
        let outs = vmap_again(self.family, self.debug(), self.axis.clone(), &args, &dims, |a| {
            let pulled = self.rule.0.bwd(&a[..n], &a[n..], zero)?;
            check_varying(&pulled, &self.batched, self.axis.manual)?;
            there = super::mask(&pulled);
            Ok(pulled.into_iter().flatten().collect())
        })?;
        let mut outs = outs.into_iter();
        let pull = |(&there, &batched): (&bool, &bool)| {
            let Some((v, d)) = (if there { outs.next() } else { None }) else { return Ok(None) };
            // An operand shared by all rows collects their cotangents; one that is the same for all is that of a result
            // which they share, too.
            Ok(Some(match d {
                Some(d) if !batched => reduce_sum(&v, &[d])?,
                None if !batched => v,
                _ => place_axis(&v, d, Some(0), self.axis.size)?,
            }))
        };
        there.iter().zip(&self.batched).map(pull).collect()
    }

    fn name(&self) -> String {
        format!("vmap({})", self.rule.0.name())
    }

    fn names(&self) -> (String, String) {
        self.rule.0.names()
    }
}

/// Errors where the cotangent of an operand that varies over a manual axis does not.
fn check_varying(pulled: &[Option<Value>], varying: &[bool], axis: u32) -> Result<()> {
    for (i, (v, &varies)) in pulled.iter().zip(varying).enumerate() {
        let Some(v) = v.as_ref().filter(|v| varies && axis & !manual::of(v) != 0) else { continue };
        let (shown, name) = (v.aval(), &manual::names(axis)[0]);
        return Err(error!(
            Value,
            "Custom VJP bwd rule must produce an output with the same type as the args tuple of the primal function, \
             but at output[{i}] the bwd rule produced an output of type {shown} corresponding to an input of type \
             {shown}{{V:{name}}}, so the manual axis types do not match: apply jax.lax.pcast(..., ('{name}',), \
             to='varying') to it."
        ));
    }
    Ok(())
}

fn custom_vjp_batch(
    _: &OpRef,
    p: &CustomVjp,
    axis: &BatchAxis,
    args: &[Value],
    dims: &[Option<usize>],
) -> Result<(Values, BatchDims)> {
    let args = super::batch_first(args, dims, axis.size)?;
    let batched = super::mask(&dims[p.num_consts..]);
    let wrap = |rows: &Rows| BatchedRule::wrap(&p.rule, axis, batched.clone(), Rows::found(), rows.clone());
    let both = |differ: &[bool]| {
        rows_of_both(differ, &batched, &p.name, &args[p.num_consts..], |args, rows| {
            wrap(rows).0.fwd(args, &vec![true; args.len()]).map(drop)
        })
    };
    batched_call(p.call_jaxpr.as_ref(), axis, dims, both, |rows, call_jaxpr| {
        let fun = Batched::wrap(&p.fun, axis, batched.clone(), &p.name, rows);
        bind(&OpRef::new(&CUSTOM_VJP, CustomVjp { call_jaxpr, fun, rule: wrap(rows), ..p.clone() }), &args)
    })
}
