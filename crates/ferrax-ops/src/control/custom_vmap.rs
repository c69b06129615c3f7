//! `custom_vmap_call`: a function with a batching rule of its own.
//!
//! Under `vmap` the rule is called with whole batches in place of the function. Forward mode differentiates the rule
//! along with the function, so `vmap` of a derivative uses the rule too; reverse mode differentiates the function.
//! Rows on devices of their own are no batch of the user's: each device calls the function, and a `vmap` around
//! them calls the rule on each device.
//!
//! Read next: `custom_jvp.rs`, the same for derivatives.

use super::jit::{JIT, Jit, inline_program};
use super::{batch_first, check_args, eval_reference, mask, present, spread};
use ferrax_base::{Result, bail};
use ferrax_ir::op::{BatchAxis, BatchDims};
use ferrax_ir::{Def, JaxprRef, OpRef, Param, ParamValue, Slot, Special, Tangents, Value, Values, bind};
use ferrax_transform::batching::{Family, place_axis, vmap_again};
use ferrax_transform::programs::{batch_jaxpr, jvp_jaxpr};
use ferrax_transform::structural::{broadcast_batch, instantiate};
use ferrax_transform::{backward, eval_jaxpr, jvp};
use std::sync::Arc;

/// A batching rule.
pub trait VmapRule: Send + Sync {
    /// Number of rows, which operands are batched (on axis 0), operands → results, which of them are batched.
    fn apply(&self, size: usize, batched: &[bool], args: &[Value]) -> Result<(Vec<Value>, Vec<bool>)>;
    /// Its name, for printing.
    fn name(&self) -> String;
}

/// A shared [`VmapRule`]; equal when it is the same object.
#[derive(Clone)]
pub struct VmapRuleRef(pub Arc<dyn VmapRule>);

impl PartialEq for VmapRuleRef {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for VmapRuleRef {}

impl std::hash::Hash for VmapRuleRef {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).cast::<u8>().hash(state);
    }
}

impl std::fmt::Debug for VmapRuleRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.name())
    }
}

impl ParamValue for VmapRuleRef {
    fn print(&self) -> Param {
        Param::Text(self.0.name())
    }
    fn parse(_: &Param) -> Option<Self> {
        None
    }
}

ferrax_ir::params! {
    /// Parameters of `custom_vmap_call`.
    pub struct CustomVmap {
        /// The function.
        call: JaxprRef,
        /// The function's name.
        name: Arc<str>,
        /// Leading operands that the function closed over.
        num_consts: usize,
        /// Its batching rule.
        rule: VmapRuleRef,
    }
}

/// Calls a function that has its own batching rule.
pub static CUSTOM_VMAP: Def<CustomVmap> = Def {
    name: "custom_vmap_call",
    doc: "Calls a function that has a batching rule of its own.",
    arity: None,
    shape: |p, args| {
        check_args("custom_vmap", &p.call, args)?;
        Ok(p.call.out_avals().into())
    },
    jvp: Slot::Rule(custom_vmap_jvp),
    transpose: Slot::Rule(|_, p, cts, args| Ok(backward(&p.call, args, cts)?.into())),
    batch: Slot::Rule(custom_vmap_batch),
    simplify: Slot::None("passes work inside the program"),
    stablehlo: Slot::None("from its kernel"),
    kernel: Slot::Rule(|_, p, b, args, _| inline_program(&p.call, b, args)),
    reference: Slot::Rule(|p, args, _| eval_reference(&p.call, args)),
    special: Special {
        linearize: Some(|_, p, primals, tangents| {
            let op = plain(p);
            op.linearize(&op, primals, tangents)
        }),
        eager: Some(|_, p, args| Ok(eval_jaxpr(&p.call, args)?.into())),
        effects: Some(|p| p.call.effects),
        ..Special::NONE
    },
};

/// The function without its rule.
fn plain(p: &CustomVmap) -> OpRef {
    OpRef::new(&JIT, Jit { name: p.name.clone(), jaxpr: p.call.clone(), inline: false })
}

/// Calls a function with a batching rule; `args` are what it closed over, then its operands.
pub fn custom_vmap_call(params: CustomVmap, args: &[Value]) -> Result<Values> {
    bind(&OpRef::new(&CUSTOM_VMAP, params), args)
}

fn custom_vmap_batch(
    _: &OpRef,
    p: &CustomVmap,
    axis: &BatchAxis,
    args: &[Value],
    dims: &[Option<usize>],
) -> Result<(Values, BatchDims)> {
    if axis.devices {
        return on_devices(p, axis, args, dims);
    }
    if dims[..p.num_consts].iter().any(Option::is_some) {
        // The rule knows nothing of what the function closed over.
        let op = plain(p);
        return op.batch(&op, axis, args, dims);
    }
    let args = batch_first(args, dims, axis.size)?;
    let (outs, batched) = p.rule.0.apply(axis.size, &mask(&dims[p.num_consts..]), &args[p.num_consts..])?;
    let results = p.call.outvars.len();
    if outs.len() != results || batched.len() != results {
        bail!(
            Value,
            "the vmap rule of {} gave {} results and says of {} whether they are batched, where there must be {results}",
            p.name,
            outs.len(),
            batched.len()
        );
    }
    for ((out, &on), aval) in outs.iter().zip(&batched).zip(p.call.out_avals()) {
        let row = if on { out.shape().get(1..) } else { Some(out.shape()) };
        let whole = !on || out.shape().first() == Some(&axis.size);
        if row != Some(aval.shape.as_slice()) || out.dtype() != aval.dtype || !whole {
            bail!(
                Value,
                "the vmap rule of {} gave a result of type {} ({}), where rows must have type {aval} and there are {}",
                p.name,
                out.aval(),
                if on { "batched" } else { "not batched" },
                axis.size
            );
        }
    }
    let dims = batched.iter().map(|&b| b.then_some(0)).collect();
    Ok((outs.into(), dims))
}

/// The function on each device of an axis.
fn on_devices(p: &CustomVmap, axis: &BatchAxis, args: &[Value], dims: &[Option<usize>]) -> Result<(Values, BatchDims)> {
    let args = batch_first(args, dims, axis.size)?;
    let call = batch_jaxpr(&p.call, axis, &super::mask(dims), &vec![true; p.call.outvars.len()])?.jaxpr;
    let (rule, rows) = (p.rule.clone(), mask(&dims[p.num_consts..]));
    let rule = VmapRuleRef(Arc::new(DeviceRule { rule, axis: axis.clone(), rows, family: Family::current() }));
    let outs = custom_vmap_call(CustomVmap { call, rule, ..p.clone() }, &args)?;
    let dims = outs.iter().map(|_| Some(0)).collect();
    Ok((outs, dims))
}

/// A rule on each device of an axis: operands have the devices' axis first where `rows` says so, and results have it.
struct DeviceRule {
    rule: VmapRuleRef,
    axis: BatchAxis,
    rows: Vec<bool>,
    family: Family,
}

impl VmapRule for DeviceRule {
    fn apply(&self, size: usize, batched: &[bool], args: &[Value]) -> Result<(Vec<Value>, Vec<bool>)> {
        let dims: Vec<_> = self.rows.iter().zip(batched).map(|(&row, &b)| row.then_some(usize::from(b))).collect();
        let mut on = Vec::new();
        let debug = ferrax_ir::DebugInfo::named(&self.name());
        let outs = vmap_again(self.family, debug, self.axis.clone(), args, &dims, |a| {
            let (outs, batched) = self.rule.0.apply(size, batched, a)?;
            on = batched;
            Ok(outs)
        })?;
        let placed =
            |((v, d), &b): (&(Value, Option<usize>), &bool)| place_axis(v, *d, Some(i64::from(b)), self.axis.size);
        Ok((outs.iter().zip(&on).map(placed).collect::<Result<_>>()?, on))
    }

    fn name(&self) -> String {
        self.rule.0.name()
    }
}

/// A rule differentiated along with its function: operands and their nonzero tangents → results and theirs.
struct JvpRule {
    rule: VmapRuleRef,
    nonzero: Vec<bool>,
    nonzero_out: Vec<bool>,
}

impl VmapRule for JvpRule {
    fn apply(&self, size: usize, batched: &[bool], args: &[Value]) -> Result<(Vec<Value>, Vec<bool>)> {
        let n = self.nonzero.len();
        // An operand and its tangent are batched together.
        let mut tangent_batched = batched[n..].iter();
        let on: Vec<bool> =
            self.nonzero.iter().zip(batched).map(|(&t, &b)| b | (t && tangent_batched.next() == Some(&true))).collect();
        let whole = |x: &Value, was: bool, on: bool| {
            if on && !was { broadcast_batch(x, None, size, 0) } else { Ok(x.clone()) }
        };
        let mut primals = Vec::with_capacity(n);
        for i in 0..n {
            primals.push(whole(&args[i], batched[i], on[i])?);
        }
        let mut tangents = Vec::with_capacity(n);
        let mut next = n;
        for i in 0..n {
            tangents.push(if self.nonzero[i] {
                next += 1;
                Some(whole(&args[next - 1], batched[next - 1], on[i])?)
            } else {
                None
            });
        }
        let mut out_batched = Vec::new();
        let debug = ferrax_ir::DebugInfo::named(&self.rule.0.name());
        let (mut outs, out_tangents) = jvp(debug, &primals, &tangents, |p| {
            let (outs, batched) = self.rule.0.apply(size, &on, p)?;
            out_batched = batched;
            Ok(outs)
        })?;
        let mut all = out_batched.clone();
        for (i, t) in out_tangents.into_iter().enumerate().filter(|(i, _)| self.nonzero_out[*i]) {
            outs.push(instantiate(t, &outs[i].aval().tangent())?);
            all.push(out_batched[i]);
        }
        Ok((outs, all))
    }

    fn name(&self) -> String {
        format!("jvp({})", self.rule.0.name())
    }
}

fn custom_vmap_jvp(
    _: &OpRef,
    p: &CustomVmap,
    primals: &[Value],
    tangents: &[Option<Value>],
) -> Result<(Values, Tangents)> {
    if tangents[..p.num_consts].iter().any(Option::is_some) {
        let op = plain(p);
        return op.jvp(&op, primals, tangents);
    }
    let nonzero = mask(tangents);
    let differentiable: Vec<bool> = p.call.out_avals().iter().map(|a| a.dtype.is_inexact()).collect();
    let program = jvp_jaxpr(&p.call, &nonzero, &differentiable)?;
    let rule = JvpRule {
        rule: p.rule.clone(),
        nonzero: nonzero[p.num_consts..].to_vec(),
        nonzero_out: program.nonzero_out.clone(),
    };
    let params = CustomVmap {
        call: program.jaxpr,
        name: format!("jvp({})", p.name).into(),
        rule: VmapRuleRef(Arc::new(rule)),
        num_consts: p.num_consts,
    };
    let args: Vec<Value> = primals.iter().cloned().chain(present(tangents)).collect();
    let mut outs = custom_vmap_call(params, &args)?.into_vec();
    let out_tangents = outs.split_off(program.nonzero_out.len());
    Ok((outs.into(), spread(out_tangents, &program.nonzero_out)))
}
