//! Calls into host code: `pure_callback`, `io_callback`, `debug_callback`, `debug_print`.
//!
//! A pure callback may be dropped or repeated; the others are effects. Under `vmap` a callback runs row by row
//! (a scan), or once on the whole batch where its `vmap_method` says so.

use crate::control::Loop;
use crate::control::custom_vjp::AvalList;
use crate::control::scan::{Scan, scan};
use ferrax_base::{Result, bail};
use ferrax_ir::op::{BatchAxis, BatchDims};
use ferrax_ir::{
    Aval, DebugInfo, Def, Effects, OpRef, Param, ParamValue, Slot, Special, Tangents, TransposeArg, Value, Values, bind,
};
use ferrax_loops::{HostRef, Kind, Type};
use ferrax_transform::batching::place_axis;
use ferrax_transform::staging::stage_closed;
use ferrax_transform::structural::broadcast_batch;

/// The callbacks.
pub static PRIMITIVES: &[&dyn crate::registry::Primitive] =
    &[&PURE_CALLBACK, &IO_CALLBACK, &DEBUG_CALLBACK, &DEBUG_PRINT];

/// What a callback may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CallbackKind {
    /// A function of its operands.
    #[default]
    Pure,
    /// It has effects; it runs exactly once.
    Io,
    /// As `Io`, in program order.
    Ordered,
    /// It only observes.
    Debug,
    /// As `Debug`, in program order.
    OrderedDebug,
    /// It prints.
    Print,
    /// As `Print`, in program order.
    OrderedPrint,
}

impl CallbackKind {
    /// The kind of a name.
    pub fn named(name: &str) -> Option<CallbackKind> {
        Some(match name {
            "pure" => CallbackKind::Pure,
            "io" => CallbackKind::Io,
            "ordered" => CallbackKind::Ordered,
            "debug" => CallbackKind::Debug,
            "ordered_debug" => CallbackKind::OrderedDebug,
            "print" => CallbackKind::Print,
            "ordered_print" => CallbackKind::OrderedPrint,
            _ => return None,
        })
    }

    fn ordered(self) -> bool {
        matches!(self, CallbackKind::Ordered | CallbackKind::OrderedDebug | CallbackKind::OrderedPrint)
    }
}

/// How a callback is vectorized.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VmapMethod {
    /// It is not.
    Unsupported,
    /// Row by row.
    Sequential,
    /// Row by row, each in a program's text.
    SequentialUnrolled,
    /// Once, unbatched operands with a leading axis of size one.
    ExpandDims,
    /// Once, unbatched operands broadcast.
    BroadcastAll,
    /// Once, unbatched operands as they are.
    LegacyVectorized,
}

impl VmapMethod {
    /// The method of a name.
    pub fn named(name: &str) -> Option<VmapMethod> {
        Some(match name {
            "sequential" => VmapMethod::Sequential,
            "sequential_unrolled" => VmapMethod::SequentialUnrolled,
            "expand_dims" => VmapMethod::ExpandDims,
            "broadcast_all" => VmapMethod::BroadcastAll,
            "legacy_vectorized" => VmapMethod::LegacyVectorized,
            _ => return None,
        })
    }
}

impl ParamValue for VmapMethod {
    fn print(&self) -> Param {
        Param::Text(
            match self {
                VmapMethod::Unsupported => "None",
                VmapMethod::Sequential => "sequential",
                VmapMethod::SequentialUnrolled => "sequential_unrolled",
                VmapMethod::ExpandDims => "expand_dims",
                VmapMethod::BroadcastAll => "broadcast_all",
                VmapMethod::LegacyVectorized => "legacy_vectorized",
            }
            .into(),
        )
    }
    fn parse(_: &Param) -> Option<Self> {
        None
    }
}

/// The host code of a callback.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Host(pub HostRef);

impl ParamValue for Host {
    fn print(&self) -> Param {
        Param::Text(format!("{:?}", self.0))
    }
    fn parse(_: &Param) -> Option<Self> {
        None
    }
}

ferrax_ir::params! {
    /// Parameters of the callbacks.
    pub struct Callback {
        /// The host code.
        callback: Host,
        /// Avals of the results.
        result_avals: AvalList,
        /// Whether calls keep their order.
        ordered: bool,
        /// How it is vectorized.
        vmap_method: VmapMethod,
    }
    hidden {
        /// What it may do.
        kind: CallbackKind,
    }
    print: |p: &Callback, _| printed(p)
}

/// The parameters as JAX names them; the host's language says what stands for the code.
fn printed(p: &Callback) -> Vec<(&'static str, Param)> {
    let text = |s: &str| Param::Text(s.into());
    let flag = |on: bool| text(if on { "True" } else { "False" });
    let code: &[&'static str] = match p.kind {
        CallbackKind::Print | CallbackKind::OrderedPrint => {
            &["fmt", "has_placeholders", "in_tree", "logging_record", "np_printoptions", "static_args"]
        }
        _ => &["callback"],
    };
    let mut out: Vec<(&'static str, Param)> =
        code.iter().copied().zip(p.callback.0.0.printed().into_iter().map(Param::Text)).collect();
    match p.kind {
        CallbackKind::Print | CallbackKind::OrderedPrint => out.push(("ordered", flag(p.ordered))),
        CallbackKind::Debug => out.push(("effect", text("Debug"))),
        CallbackKind::OrderedDebug => out.push(("effect", text("OrderedDebug"))),
        CallbackKind::Pure => out.push(("vmap_method", p.vmap_method.print())),
        CallbackKind::Io | CallbackKind::Ordered => out.push(("ordered", flag(p.ordered))),
    }
    if matches!(p.kind, CallbackKind::Pure | CallbackKind::Io | CallbackKind::Ordered) {
        let of = |a: &Aval| {
            let dims: Vec<String> = a.shape.iter().map(ToString::to_string).collect();
            format!("ShapedArray({}[{}])", a.dtype, dims.join(","))
        };
        let avals: Vec<String> = p.result_avals.0.iter().map(of).collect();
        let avals = match avals.as_slice() {
            [one] => format!("({one},)"),
            several => format!("({})", several.join(", ")),
        };
        out.extend([("result_avals", Param::Text(avals)), ("sharding", text("None"))]);
    } else {
        out.push(("partitioned", flag(false)));
    }
    out.sort_by_key(|(name, _)| *name);
    out
}

macro_rules! callback {
    ($static:ident, $name:literal, $doc:literal, $effects:expr, $jvp:expr, $transpose:expr) => {
        #[doc = $doc]
        pub static $static: Def<Callback> = Def {
            name: $name,
            doc: $doc,
            arity: None,
            shape: |p, _| Ok(p.result_avals.0.clone().into()),
            jvp: Slot::Rule($jvp),
            transpose: $transpose,
            batch: Slot::Rule(callback_batch),
            simplify: Slot::None("host code is opaque"),
            stablehlo: Slot::None("programs are cut there"),
            kernel: Slot::Rule(|_, p, b, args, outs| {
                let types: Vec<Type> = outs.iter().map(Type::from).collect();
                Ok(b.push_many(Kind::Host(p.callback.0.clone()), args, &types))
            }),
            reference: Slot::None("host code is opaque"),
            special: Special { effects: Some($effects), ..Special::NONE },
        };
    };
}

fn no_jvp(op: &OpRef, _: &Callback, _: &[Value], _: &[Option<Value>]) -> Result<(Values, Tangents)> {
    unsupported(op, "JVP", "custom_jvp")
}

fn no_transpose(op: &OpRef, _: &Callback, _: &[Option<Value>], _: &[TransposeArg]) -> Result<Tangents> {
    unsupported(op, "transpose", "custom_vjp")
}

fn unsupported<T>(op: &OpRef, rule: &str, instead: &str) -> Result<T> {
    if !op.is(&PURE_CALLBACK) {
        bail!(Value, "IO callbacks do not support {rule}.");
    }
    bail!(
        Value,
        "Pure callbacks do not support {rule}. Please use `jax.{instead}` to use callbacks while taking gradients."
    )
}

fn debug_jvp(op: &OpRef, _: &Callback, primals: &[Value], _: &[Option<Value>]) -> Result<(Values, Tangents)> {
    let outs = bind(op, primals)?;
    let none = smallvec::smallvec![None; outs.len()];
    Ok((outs, none))
}

callback!(
    PURE_CALLBACK,
    "pure_callback",
    "Calls a host function without side effects.",
    |_| Effects::NONE,
    no_jvp,
    Slot::Rule(no_transpose)
);
callback!(
    IO_CALLBACK,
    "io_callback",
    "Calls a host function with side effects.",
    |p| if p.ordered { Effects::ORDERED } else { Effects::IO },
    no_jvp,
    Slot::Rule(no_transpose)
);
callback!(
    DEBUG_CALLBACK,
    "debug_callback",
    "Shows values to a host function.",
    |p| if p.ordered { Effects::ORDERED_DEBUG } else { Effects::DEBUG },
    debug_jvp,
    Slot::None("it has no results")
);

callback!(
    DEBUG_PRINT,
    "debug_print",
    "Prints values as a format string says.",
    |p| if p.ordered { Effects::ORDERED_DEBUG } else { Effects::DEBUG },
    debug_jvp,
    Slot::None("it has no results")
);

/// Calls host code with `args`; the results have the announced avals.
pub fn callback(
    kind: CallbackKind,
    host: HostRef,
    avals: Vec<Aval>,
    method: VmapMethod,
    args: &[Value],
) -> Result<Values> {
    let def = match kind {
        CallbackKind::Pure => &PURE_CALLBACK,
        CallbackKind::Io | CallbackKind::Ordered => &IO_CALLBACK,
        CallbackKind::Debug | CallbackKind::OrderedDebug => &DEBUG_CALLBACK,
        CallbackKind::Print | CallbackKind::OrderedPrint => &DEBUG_PRINT,
    };
    let params = Callback {
        callback: Host(host),
        result_avals: AvalList(avals),
        ordered: kind.ordered(),
        vmap_method: if kind == CallbackKind::Pure { method } else { VmapMethod::Sequential },
        kind,
    };
    bind(&OpRef::new(def, params), args)
}

fn callback_batch(
    op: &OpRef,
    p: &Callback,
    axis: &BatchAxis,
    args: &[Value],
    dims: &[Option<usize>],
) -> Result<(Values, BatchDims)> {
    // Devices call in their order.
    if p.ordered && !axis.devices && op.is(&IO_CALLBACK) {
        bail!(Value, "Cannot `vmap` ordered IO callback: ordered IO effects are not supported in vmap.");
    }
    if p.vmap_method == VmapMethod::Unsupported && !axis.devices {
        bail!(
            NotImplemented,
            "vmap is only supported for the {} primitive when vmap_method is one of 'sequential', 'sequential_unrolled', \
             'expand_dims', 'broadcast_all', or 'legacy_vectorized'. Got vmap_method=None.",
            op.name()
        );
    }
    vectorized(op, p.vmap_method, axis, args, dims, |_| {
        OpRef::new(&PURE_CALLBACK, Callback { result_avals: p.result_avals.batched(axis), ..p.clone() })
    })
}

/// A call of host code under `vmap`, by one of the methods; `whole` makes the call on a whole
/// batch, given which operands have the axis, in front.
pub(crate) fn vectorized(
    op: &OpRef,
    method: VmapMethod,
    axis: &BatchAxis,
    args: &[Value],
    dims: &[Option<usize>],
    whole: impl FnOnce(&[bool]) -> OpRef,
) -> Result<(Values, BatchDims)> {
    let outs = match method {
        // each device makes its own call
        _ if axis.devices => sequential(op, axis, args, dims, 1)?,
        VmapMethod::Unsupported => bail!(Internal, "a call of host code without a vmap_method was vectorized"),
        VmapMethod::Sequential => sequential(op, axis, args, dims, 1)?,
        VmapMethod::SequentialUnrolled => sequential(op, axis, args, dims, axis.size.max(1))?,
        VmapMethod::ExpandDims | VmapMethod::BroadcastAll | VmapMethod::LegacyVectorized => {
            let has_axis = |d: &Option<usize>| d.is_some() || method != VmapMethod::LegacyVectorized;
            let size = |d: &Option<usize>| if d.is_none() && method == VmapMethod::ExpandDims { 1 } else { axis.size };
            let front = |(v, d): (&Value, &Option<usize>)| {
                if has_axis(d) { broadcast_batch(v, *d, size(d), 0) } else { Ok(v.clone()) }
            };
            let operands: Vec<Value> = args.iter().zip(dims).map(front).collect::<Result<_>>()?;
            let batched: Vec<bool> = dims.iter().map(has_axis).collect();
            bind(&whole(&batched), &operands)?.into_vec()
        }
    };
    let n = outs.len();
    Ok((outs.into(), smallvec::smallvec![Some(0); n]))
}

/// One call a row, in order; `unroll` of them stand in one step of the loop.
pub(crate) fn sequential(
    op: &OpRef,
    axis: &BatchAxis,
    args: &[Value],
    dims: &[Option<usize>],
    unroll: usize,
) -> Result<Vec<Value>> {
    let mut consts = Vec::new();
    let mut rows = Vec::new();
    for (v, d) in args.iter().zip(dims) {
        match d {
            Some(_) => rows.push(place_axis(v, *d, Some(0), axis.size)?),
            None => consts.push(v.clone()),
        }
    }
    let row_aval = |v: &Value| ferrax_ir::spread::without_axis(v.aval(), 0);
    let avals: Vec<Aval> = consts.iter().map(Value::aval).chain(rows.iter().map(row_aval)).collect();
    let n = consts.len();
    let jaxpr = stage_closed("vmap", DebugInfo::named(op.name()), &avals, |values| {
        let (mut consts, mut rows) = (values[..n].iter(), values[n..].iter());
        let operands: Vec<Value> =
            dims.iter().filter_map(|d| if d.is_some() { rows.next() } else { consts.next() }).cloned().collect();
        Ok(bind(op, &operands)?.into_vec())
    })?;
    let params = Scan {
        jaxpr,
        length: axis.size,
        num_carry: 0,
        num_consts: n,
        reverse: false,
        unroll,
        linear_carry: false,
        of: Loop::INNER,
    };
    consts.extend(rows);
    scan(params, &consts)
}
