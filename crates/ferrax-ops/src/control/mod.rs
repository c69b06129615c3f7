//! Higher-order primitives: `jit`, `cond`, `while`, `scan`, custom derivatives, `checkpoint`, linear solves.
//!
//! Their rules transform the programs in their parameters through `ferrax_transform::programs`, which caches
//! each answer by program, so differentiating a jitted function twice transforms it once.
//!
//! Read next: [`jit`], the simplest; [`scan`] for the fixpoint on what the carry needs.

pub mod cond;
pub mod custom_jvp;
pub mod custom_vjp;
pub mod custom_vmap;
pub mod forwarded;
pub mod jit;
mod kept;
mod known;
pub mod linear_solve;
pub mod remat;
mod rows;
pub mod scan;
pub mod while_loop;
pub mod while_reverse;

use ferrax_base::{Aval, Result, bail};
use ferrax_ir::jaxpr::ArgNames;
use ferrax_ir::op::{BatchAxis, BatchDims};
use ferrax_ir::reference::RefTensor;
use ferrax_ir::{Jaxpr, JaxprRef, TransposeArg, Value};
use ferrax_transform::batching::place_axis;
use ferrax_transform::structural::{broadcast_batch, instantiate};
use smallvec::SmallVec;
use std::sync::Arc;

use crate::registry::Primitive;

/// The higher-order primitives.
pub static PRIMITIVES: &[&dyn Primitive] = &[
    &jit::JIT,
    &cond::COND,
    &while_loop::WHILE,
    &while_reverse::WHILE_LINEAR,
    &scan::SCAN,
    &custom_jvp::CUSTOM_JVP,
    &custom_vjp::CUSTOM_VJP,
    &custom_vjp::CUSTOM_VJP_LINEAR,
    &custom_vmap::CUSTOM_VMAP,
    &remat::REMAT,
    &linear_solve::LINEAR_SOLVE,
];

/// What the user wrote that a loop stands for: for reports, which count its iterations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Loop {
    /// The function that was called.
    pub asked: Asked,
    /// Which part of it the loop is.
    pub part: Part,
}

/// The function that a user called for a loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Asked {
    /// The one that is named as the primitive: `scan` or `while_loop`.
    #[default]
    Itself,
    /// `fori_loop`; the first carry of the loop forward is the index.
    ForiLoop,
    /// `map`.
    Map,
}

/// What a loop does of a user's loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Part {
    /// All of it, from the first iteration to the last.
    #[default]
    Forward,
    /// All of it, from the last iteration to the first.
    Back,
    /// Segments of iterations, from the last to the first: the first carry counts them, the last constant is their length.
    Segments,
    /// The iterations of a segment, from the last to the first: the first carry counts them.
    Segment,
    /// Something of which users know nothing.
    Inner,
}

impl Loop {
    /// A loop of which users know nothing.
    pub const INNER: Loop = Loop { part: Part::Inner, ..Loop::named(Asked::Itself) };

    /// All of a loop that was asked for by this name.
    pub const fn named(asked: Asked) -> Loop {
        Loop { asked, part: Part::Forward }
    }

    /// Another part of it.
    #[must_use]
    pub const fn part(self, part: Part) -> Loop {
        Loop { part, ..self }
    }

    /// The same loop from the other end.
    #[must_use]
    pub const fn reversed(self) -> Loop {
        match self.part {
            Part::Forward => self.part(Part::Back),
            Part::Back => self.part(Part::Forward),
            _ => self,
        }
    }
}

/// A host function of values, compared by identity.
pub trait Callable: Send + Sync {
    /// Applies it.
    fn call(&self, args: &[Value]) -> Result<Vec<Value>>;
    /// Applies a rule to operands and their tangents, some of which are `zero`.
    fn call_with_zeros(&self, args: &[Value], _zero: &[bool]) -> Result<Vec<Value>> {
        self.call(args)
    }
    /// Its name, for printing.
    fn name(&self) -> String;
    /// The user's names of its arguments, where they are known.
    fn arg_names(&self) -> Option<ArgNames> {
        None
    }
}

/// A shared [`Callable`]; equal when it is the same object.
#[derive(Clone)]
pub struct CallableRef(pub Arc<dyn Callable>);

impl PartialEq for CallableRef {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for CallableRef {}

impl std::hash::Hash for CallableRef {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).cast::<u8>().hash(state);
    }
}

impl std::fmt::Debug for CallableRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.name())
    }
}

impl ferrax_ir::ParamValue for CallableRef {
    fn print(&self) -> ferrax_ir::Param {
        ferrax_ir::Param::Text(self.0.name())
    }
    fn parse(_: &ferrax_ir::Param) -> Option<Self> {
        None
    }
}

/// Which of some optional values are there.
pub(crate) fn mask<T>(items: &[Option<T>]) -> Vec<bool> {
    items.iter().map(Option::is_some).collect()
}

/// The values that are there, in order.
pub(crate) fn present(items: &[Option<Value>]) -> impl Iterator<Item = Value> + '_ {
    items.iter().flatten().cloned()
}

/// Spreads values over the positions of a mask; the others are `None`.
pub(crate) fn spread<I: IntoIterator<Item = Value>>(values: I, mask: &[bool]) -> SmallVec<[Option<Value>; 1]> {
    let mut it = values.into_iter();
    mask.iter().map(|&m| if m { it.next() } else { None }).collect()
}

/// Operands with every batched one's axis moved to the front.
pub(crate) fn batch_first(args: &[Value], dims: &[Option<usize>], size: usize) -> Result<Vec<Value>> {
    let move_first = |(v, d): (&Value, &Option<usize>)| match d {
        Some(_) => place_axis(v, *d, Some(0), size),
        None => Ok(v.clone()),
    };
    args.iter().zip(dims).map(move_first).collect()
}

/// Operands all batched on axis 0 where the mask says so; unbatched ones there are broadcast.
pub(crate) fn batch_where(args: &[Value], dims: &[Option<usize>], on: &[bool], axis: &BatchAxis) -> Result<Vec<Value>> {
    let place = |((v, d), on): ((&Value, &Option<usize>), &bool)| {
        if *on { broadcast_batch(v, *d, axis.size, 0) } else { Ok(v.clone()) }
    };
    args.iter().zip(dims).zip(on).map(place).collect()
}

/// Batch axes of results batched on axis 0 where the mask says so.
pub(crate) fn dims_of(batched: &[bool]) -> BatchDims {
    batched.iter().map(|&b| b.then_some(0)).collect()
}

/// The known operands of a transposition and the mask of linear ones.
pub(crate) fn split_linear(args: &[TransposeArg]) -> (Vec<bool>, Vec<Value>) {
    let linear = args.iter().map(TransposeArg::is_linear).collect();
    let known = args.iter().filter_map(|a| match a {
        TransposeArg::Known(v) => Some(v.clone()),
        TransposeArg::Linear(_) => None,
    });
    (linear, known.collect())
}

/// Cotangents with zeros for the missing ones.
pub(crate) fn instantiate_all(cts: &[Option<Value>], avals: &[Aval]) -> Result<Vec<Value>> {
    cts.iter().zip(avals).map(|(c, a)| instantiate(c.clone(), &a.tangent())).collect()
}

/// Elementwise or of masks.
pub(crate) fn or(a: &[bool], b: &[bool]) -> Vec<bool> {
    a.iter().zip(b).map(|(x, y)| x | y).collect()
}

/// Checks a program, and operands against its parameters (weak types aside).
pub(crate) fn check_args(name: &str, jaxpr: &JaxprRef, args: &[&Aval]) -> Result<()> {
    jaxpr.verify()?;
    if jaxpr.invars.len() != args.len() {
        bail!(Type, "{name} takes {} operands, got {}", jaxpr.invars.len(), args.len());
    }
    for (i, (v, a)) in jaxpr.invars.iter().zip(args).enumerate() {
        if !jaxpr.aval(*v).same_type(a) {
            bail!(Type, "{name} operand {i} must have type {}, got {a}", jaxpr.aval(*v));
        }
    }
    Ok(())
}

/// Checks results of a program against the types that they must have (weak types aside): `what` says of whom the
/// results are, and `must` why.
pub(crate) fn check_results(what: &str, got: &[Aval], want: &[Aval], must: &str) -> Result<()> {
    if got.len() == want.len() && got.iter().zip(want).all(|(g, w)| g.same_type(w)) {
        return Ok(());
    }
    let list = |avals: &[Aval]| avals.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    bail!(Type, "{what} gives ({}), where {must} ({})", list(got), list(want))
}

/// The first `n` operands and the others; an error of the operation `name` when there are fewer.
pub(crate) fn split_operands<'a, T>(name: &str, args: &'a [T], n: usize) -> Result<(&'a [T], &'a [T])> {
    match args.split_at_checked(n) {
        Some(parts) => Ok(parts),
        None => bail!(Type, "{name} takes {n} operands at least, got {}", args.len()),
    }
}

/// The reference of a program: every operation's own reference, in order.
pub(crate) fn eval_reference(jaxpr: &Jaxpr, args: &[RefTensor]) -> Result<Vec<RefTensor>> {
    use ferrax_ir::Atom;
    let mut env: Vec<Option<RefTensor>> = vec![None; jaxpr.avals.len()];
    for (v, c) in jaxpr.constvars.iter().zip(&jaxpr.consts) {
        env[v.0 as usize] = Some(RefTensor::from_buffer(c.aval(), &*c.pin()?));
    }
    for (v, a) in jaxpr.invars.iter().zip(args) {
        env[v.0 as usize] = Some(a.clone());
    }
    let read = |env: &[Option<RefTensor>], a: &Atom| match a {
        Atom::Lit(l) => Ok(RefTensor { aval: Aval::scalar(l.scalar.dtype), data: vec![l.scalar] }),
        Atom::Var(v) => {
            env[v.0 as usize].clone().ok_or_else(|| ferrax_base::error!(Internal, "variable {} is undefined", v.0))
        }
    };
    for eqn in &jaxpr.eqns {
        let inputs = eqn.inputs.iter().map(|a| read(&env, a)).collect::<Result<Vec<_>>>()?;
        let outs: Vec<Aval> = eqn.outputs.iter().map(|&v| jaxpr.aval(v).clone()).collect();
        for (v, out) in eqn.outputs.iter().zip(eqn.op.reference(&inputs, &outs)?) {
            env[v.0 as usize] = Some(out);
        }
    }
    jaxpr.outvars.iter().map(|a| read(&env, a)).collect()
}
