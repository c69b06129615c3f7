//! `ffi_call`: functions of foreign libraries, which XLA's FFI registers by name (`ferrax-ffi`).
//!
//! Handlers see operands and results in the layouts that the call says, axes from the fastest to the slowest: the
//! kernel transposes what is laid out otherwise. Under `vmap` a call is one of [`VmapMethod`]'s, as a callback is.

use crate::callback::{VmapMethod, vectorized};
use crate::control::custom_vjp::AvalList;
use ferrax_base::{DType, Result, Shape, bail};
use ferrax_ffi::{Attributes, ForeignCall};
use ferrax_ir::op::{BatchAxis, BatchDims};
use ferrax_ir::{Aval, Def, Effects, OpRef, Param, ParamValue, Slot, Special, Tangents, Value, Values, bind};
use ferrax_loops::{Builder, HostRef, Kind, Type};
use std::sync::Arc;

/// The primitives of this file.
pub static PRIMITIVES: &[&dyn crate::registry::Primitive] = &[&FFI_CALL];

/// Attributes as a parameter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AttributeList(pub Attributes);

impl ParamValue for AttributeList {
    fn print(&self) -> Param {
        let all: Vec<String> = self.0.iter().map(|(name, v)| format!("('{name}', {v})")).collect();
        Param::Text(match all.as_slice() {
            [one] => format!("({one},)"),
            all => format!("({})", all.join(", ")),
        })
    }
    fn parse(_: &Param) -> Option<Self> {
        None
    }
}

ferrax_ir::params! {
    /// Parameters of `ffi_call`.
    pub struct FfiCall {
        /// Constants for the handler.
        attributes: AttributeList,
        /// Whether it runs even where its results are not used.
        has_side_effect: bool,
        /// Axes of each operand from the fastest to the slowest.
        input_layouts: Vec<Vec<usize>>,
        /// Pairs (operand, result) that are one buffer to the handler.
        input_output_aliases: Vec<Vec<usize>>,
        /// As `input_layouts`, of the results.
        output_layouts: Vec<Vec<usize>>,
        /// Avals of the results.
        result_avals: AvalList,
        /// The registered name.
        target_name: String,
        /// How it is vectorized.
        vmap_method: VmapMethod,
    }
}

/// Calls a registered function of a foreign library.
pub static FFI_CALL: Def<FfiCall> = Def {
    name: "ffi_call",
    doc: "Calls a registered function of a foreign library.",
    arity: None,
    shape: |p, _| Ok(p.result_avals.0.clone().into()),
    jvp: Slot::Rule(no_derivative),
    transpose: Slot::None("not linear"),
    batch: Slot::Rule(ffi_call_batch),
    simplify: Slot::None("foreign code is opaque"),
    stablehlo: Slot::None("targets are not handed to plugins"),
    kernel: Slot::Rule(|_, p, b, args, outs| {
        let operands: Vec<Vec<usize>> = args.iter().map(|&a| b.ty(a).shape.to_vec()).collect();
        let results: Vec<Vec<usize>> = outs.iter().map(|o| o.shape.to_vec()).collect();
        let aliases = p.input_output_aliases.iter().map(|pair| (pair[0], pair[1])).collect();
        let call = ForeignCall::new(&p.target_name, &p.attributes.0, operands, results, aliases)?;
        let args: Vec<_> = args
            .iter()
            .zip(&p.input_layouts)
            .map(|(&a, layout)| permuted(b, a, &layout.iter().rev().copied().collect::<Vec<_>>()))
            .collect();
        let laid_out = |(o, layout): (&Aval, &Vec<usize>)| {
            let shape: Shape = layout.iter().rev().map(|&axis| o.shape[axis]).collect();
            Type { dtype: o.dtype, shape }
        };
        let types: Vec<Type> = outs.iter().zip(&p.output_layouts).map(laid_out).collect();
        let raw = b.push_many(Kind::Host(HostRef(Arc::new(call))), &args, &types);
        let back = |(&v, layout): (&_, &Vec<usize>)| {
            let mut inverse = vec![0; layout.len()];
            layout.iter().rev().enumerate().for_each(|(at, &axis)| inverse[axis] = at);
            permuted(b, v, &inverse)
        };
        Ok(raw.iter().zip(&p.output_layouts).map(back).collect())
    }),
    reference: Slot::None("foreign code is opaque"),
    special: Special {
        effects: Some(|p| if p.has_side_effect { Effects::IO } else { Effects::NONE }),
        ..Special::NONE
    },
};

/// A value with its axes in another order; itself where that is its own.
fn permuted(b: &mut Builder, v: ferrax_loops::ValueId, order: &[usize]) -> ferrax_loops::ValueId {
    if order.iter().enumerate().all(|(i, &axis)| i == axis) {
        return v;
    }
    let ty = b.ty(v);
    let result = Type { dtype: ty.dtype, shape: order.iter().map(|&axis| ty.shape[axis]).collect() };
    b.push(Kind::Transpose(order.into()), &[v], result)
}

fn no_derivative(_: &OpRef, p: &FfiCall, _: &[Value], _: &[Option<Value>]) -> Result<(Values, Tangents)> {
    bail!(
        Value,
        "The FFI call to `{}` cannot be differentiated. You can use `jax.custom_jvp` or `jax.custom_vjp` to add \
         support.",
        p.target_name
    )
}

fn ffi_call_batch(
    op: &OpRef,
    p: &FfiCall,
    axis: &BatchAxis,
    args: &[Value],
    dims: &[Option<usize>],
) -> Result<(Values, BatchDims)> {
    if p.vmap_method == VmapMethod::Unsupported && !axis.devices {
        bail!(
            NotImplemented,
            "vmap is only supported for the ffi_call primitive when vmap_method is one of 'sequential', \
             'sequential_unrolled', 'expand_dims', 'broadcast_all', or 'legacy_vectorized'. Got vmap_method=None."
        );
    }
    vectorized(op, p.vmap_method, axis, args, dims, |batched| {
        let grown = |layout: &Vec<usize>| layout.iter().map(|axis| axis + 1).chain([0]).collect::<Vec<_>>();
        let inputs = p.input_layouts.iter().zip(batched);
        let params = FfiCall {
            input_layouts: inputs.map(|(l, &batched)| if batched { grown(l) } else { l.clone() }).collect(),
            output_layouts: p.output_layouts.iter().map(grown).collect(),
            result_avals: p.result_avals.batched(axis),
            ..p.clone()
        };
        OpRef::new(&FFI_CALL, params)
    })
}

/// Calls a target. Layouts name each axis once, aliases operands and results of one type and layout.
pub fn ffi_call(params: FfiCall, args: &[Value]) -> Result<Values> {
    let p = &params;
    for (what, ranks, layouts) in [
        ("input", args.iter().map(Value::rank).collect::<Vec<_>>(), &p.input_layouts),
        ("output", p.result_avals.0.iter().map(|a| a.shape.len()).collect(), &p.output_layouts),
    ] {
        if ranks.len() != layouts.len() {
            bail!(
                Value,
                "{} {what}s of the FFI call to `{}` have {} layouts",
                ranks.len(),
                p.target_name,
                layouts.len()
            );
        }
        for (at, (rank, layout)) in ranks.iter().zip(layouts).enumerate() {
            let mut sorted = layout.clone();
            sorted.sort_unstable();
            if sorted.iter().copied().ne(0..*rank) {
                bail!(
                    Value,
                    "the layout of {what} {at} of the FFI call to `{}` must name each of its {rank} axes once",
                    p.target_name
                );
            }
        }
    }
    for pair in &p.input_output_aliases {
        let fits = |i: usize, o: usize| {
            let (from, to) = (args.get(i)?, p.result_avals.0.get(o)?);
            let same = from.shape() == to.shape.as_slice() && from.dtype() == to.dtype;
            Some(same && p.input_layouts[i] == p.output_layouts[o])
        };
        match pair.as_slice() {
            &[i, o] if fits(i, o) == Some(true) => {}
            pair => bail!(Value, "input_output_aliases of the FFI call to `{}` has {pair:?}", p.target_name),
        }
    }
    let tokens = p.result_avals.0.iter().map(|a| a.dtype).chain(args.iter().map(Value::dtype));
    if tokens.into_iter().any(|d| d == DType::Float0) {
        bail!(Type, "the FFI call to `{}` has an array of float0, which has no elements", p.target_name);
    }
    bind(&OpRef::new(&FFI_CALL, params), args)
}
