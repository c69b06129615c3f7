//! What a primitive is: one [`Def`] with every rule in a slot, and the dyn-safe [`Op`] that traces work with.
//!
//! A family file writes each primitive as one `static NAME: Def<Params> = Def { … }`; leaving a slot out does
//! not compile, and a rule that cannot exist is `Slot::None("reason")`. An operation (`OpRef`) is a primitive
//! with its parameters: parameterless ones are the static itself, so binding them allocates nothing.
//!
//! Read next: `ferrax-ops/src/elementwise/mod.rs` for many examples.

use crate::jaxpr::{Atom, Effects, JaxprRef, Var};
use crate::manual::{self, Vary};
use crate::params::{Param, Params};
use crate::reference::RefTensor;
use crate::value::{Avals, Tangents, Value, Values};
use ferrax_base::{Aval, Result, error, symbolic};
use ferrax_loops::{Builder, ValueId};
use smallvec::SmallVec;
use std::any::Any;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A rule, or why there is none.
#[derive(Clone, Copy, Debug)]
pub enum Slot<F> {
    /// The rule.
    Rule(F),
    /// There can be no rule, for this reason.
    None(&'static str),
}

/// An operand of a linear operation being transposed.
#[derive(Clone, Debug)]
pub enum TransposeArg {
    /// What the cotangent is wanted for.
    Linear(Aval),
    /// A value that the operation was applied with.
    Known(Value),
}

impl TransposeArg {
    /// The aval of the operand.
    pub fn aval(&self) -> Aval {
        match self {
            TransposeArg::Linear(a) => a.clone(),
            TransposeArg::Known(v) => v.aval(),
        }
    }

    /// Whether the cotangent is wanted.
    pub fn is_linear(&self) -> bool {
        matches!(self, TransposeArg::Linear(_))
    }

    /// The known value; an error when the operand is linear.
    pub fn known(&self) -> Result<&Value> {
        match self {
            TransposeArg::Known(v) => Ok(v),
            TransposeArg::Linear(_) => Err(error!(
                Value,
                "the function is not linear: an operation that is linear in some of its operands has others that depend on the arguments"
            )),
        }
    }
}

/// The part of an operation that computes some of its results from known operands alone.
pub struct KnownPart {
    /// The operation that computes them.
    pub op: OpRef,
    /// Its operands, by their places among those of the whole operation.
    pub inputs: Vec<usize>,
    /// Its results, by their places among those of the whole operation.
    pub outputs: Vec<usize>,
}

/// (…, which operands are linear) → the part that computes results from the others alone, if there are any.
pub type KnownRule<P> = fn(&P, &[bool]) -> Option<KnownPart>;

/// The mapped axis a batching rule works for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BatchAxis {
    /// Number of rows.
    pub size: usize,
    /// `vmap`'s `axis_name`.
    pub name: Option<Arc<str>>,
    /// The bit of a manual axis whose values are checked for what varies over it; zero of all others.
    pub manual: u32,
    /// The number of what divides the axis over devices, as an axis of types ([`spread`](crate::spread)); zero for nothing.
    pub spread: u32,
    /// Whether the rows are on devices of their own (`shard_map`, `pmap`): batching rules of users are not asked.
    pub devices: bool,
}

impl BatchAxis {
    /// An axis of this many rows that `vmap` adds.
    pub fn new(size: usize, name: Option<Arc<str>>) -> Self {
        BatchAxis { size, name, manual: 0, spread: 0, devices: false }
    }
}

/// Batch axes of results; `None` is unbatched.
pub type BatchDims = SmallVec<[Option<usize>; 1]>;

/// What a simplification rule sees of the program around an equation.
pub trait Rewriter {
    /// The equation that defines a variable, if it is in the same program: its operation and inputs.
    fn producer(&self, atom: &Atom) -> Option<(OpRef, SmallVec<[Atom; 3]>)>;
    /// The aval of an atom.
    fn aval(&self, atom: &Atom) -> Aval;
    /// Appends an equation and gives its result.
    fn emit(&mut self, op: OpRef, inputs: &[Atom]) -> Result<Atom>;
    /// Whether rewrites that can change bits are off.
    fn strict(&self) -> bool;
}

/// (operation, params, operand avals) → result avals.
pub type ShapeRule<P> = fn(&P, &[&Aval]) -> Result<Avals>;
/// (…, primals, tangents) → primal results and their tangents; `None` is a symbolic zero.
pub type JvpRule<P> = fn(&OpRef, &P, &[Value], &[Option<Value>]) -> Result<(Values, Tangents)>;
/// (…, cotangents of the results, operands) → cotangents of the operands, `None` for zero and for known ones.
pub type TransposeRule<P> = fn(&OpRef, &P, &[Option<Value>], &[TransposeArg]) -> Result<Tangents>;
/// (…, axis, operands, their batch axes) → results and their batch axes.
pub type BatchRule<P> = fn(&OpRef, &P, &BatchAxis, &[Value], &[Option<usize>]) -> Result<(Values, BatchDims)>;
/// (…, inputs) → what replaces the results, or `None` to leave the equation.
pub type SimplifyRule<P> = fn(&OpRef, &P, &mut dyn Rewriter, &[Atom]) -> Result<Option<SmallVec<[Atom; 1]>>>;
/// (…, printer, operand names, operand avals, result avals) → result names.
pub type StableHloRule<P> = fn(&P, &mut String, &[String], &[&Aval], &[Aval]) -> Result<Vec<String>>;
/// (…, builder, operands, result avals) → result values of the kernel IR.
pub type KernelRule<P> = fn(&OpRef, &P, &mut Builder, &[ValueId], &[Aval]) -> Result<SmallVec<[ValueId; 1]>>;
/// (…, operands, result avals) → results, computed in the plainest way; the oracle of tests.
pub type ReferenceRule<P> = fn(&P, &[RefTensor], &[Aval]) -> Result<Vec<RefTensor>>;

/// Operands of an operation.
pub type Operands = SmallVec<[Value; 4]>;

/// Hooks that only higher-order and effectful primitives have.
pub struct Special<P: 'static> {
    /// Splits jvp into a primal part and a linear part that a tape can record (see `ferrax-transform`);
    /// (…, primals, tangents that are tape tracers) as [`JvpRule`].
    pub linearize: Option<JvpRule<P>>,
    /// Before the operation is recorded by a trace: what to record instead, with its operands.
    pub stage: Option<fn(&OpRef, &P, &[Value]) -> Result<(OpRef, Operands)>>,
    /// Runs the operation on concrete values in place of a compiled kernel.
    pub eager: Option<fn(&OpRef, &P, &[Value]) -> Result<Values>>,
    /// Effects that forbid dropping or reordering.
    pub effects: Option<fn(&P) -> Effects>,
    /// The named axes that it works across, for operations with [`Effects::NAMED_AXIS`].
    pub axes: Option<fn(&P) -> &[Arc<str>]>,
    /// What it says of the manual axes that its operands vary over, given those that any does; by default they must all
    /// vary over the same, and results do, too.
    pub vary: Option<fn(&P, u32) -> Vary>,
    /// What reverse mode may conclude from elements of its cotangents that cannot matter.
    pub role: Role<P>,
    /// Whether its derivative is infinite or NaN somewhere on the border of its domain.
    pub edge: bool,
    /// Whether its transpose rule is asked for cotangents that are all zero, too.
    pub pulls_zeros: bool,
    /// What computes the results that do not depend on linear operands, for operations with several results.
    pub known: Option<KnownRule<P>>,
}

/// How the cotangents that an operation pulls back depend on the ones it is given (see `ferrax-transform/src/live.rs`).
#[derive(Debug)]
pub enum Role<P: 'static> {
    /// In a way that only its rule knows.
    Opaque,
    /// Element by element, each weighted by known operands.
    Elementwise,
    /// Sums of elements, each weighted by known operands; with weights of one no two of them cancel.
    Weighted,
    /// As `Weighted`, and each element goes to the one operand that was selected.
    Selects,
    /// As the program that it calls once.
    Calls(fn(&P) -> JaxprRef),
}

/// [`Role`] without the parameters' type.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum OpRole {
    Opaque,
    Elementwise,
    Weighted,
    Selects,
    Calls(JaxprRef),
}

impl<P> Special<P> {
    /// No hooks: an ordinary primitive.
    pub const NONE: Special<P> = Special {
        linearize: None,
        stage: None,
        eager: None,
        effects: None,
        axes: None,
        vary: None,
        role: Role::Opaque,
        edge: false,
        pulls_zeros: false,
        known: None,
    };
    /// An ordinary linear primitive that works element by element.
    pub const ELEMENTWISE: Special<P> = Special { role: Role::Elementwise, ..Special::NONE };
    /// An ordinary linear primitive that moves and sums elements.
    pub const WEIGHTED: Special<P> = Special { role: Role::Weighted, ..Special::NONE };
    /// An elementwise primitive whose derivative is infinite or NaN somewhere on the border of its domain.
    pub const EDGE: Special<P> = Special { edge: true, ..Special::ELEMENTWISE };
}

/// A primitive: every rule in its slot.
pub struct Def<P: 'static> {
    /// JAX's name.
    pub name: &'static str,
    /// One line of what it computes.
    pub doc: &'static str,
    /// Number of operands; `None` where the shape rule says which numbers there may be.
    pub arity: Option<usize>,
    /// Shapes and dtypes of the results.
    pub shape: ShapeRule<P>,
    /// Forward derivative.
    pub jvp: Slot<JvpRule<P>>,
    /// Transpose of the linear operation.
    pub transpose: Slot<TransposeRule<P>>,
    /// Vectorization.
    pub batch: Slot<BatchRule<P>>,
    /// Rewrites.
    pub simplify: Slot<SimplifyRule<P>>,
    /// Lowering to StableHLO.
    pub stablehlo: Slot<StableHloRule<P>>,
    /// Lowering to the kernel IR.
    pub kernel: Slot<KernelRule<P>>,
    /// The plain computation.
    pub reference: Slot<ReferenceRule<P>>,
    /// Hooks of higher-order primitives.
    pub special: Special<P>,
}

/// A primitive with its parameters.
pub struct Prim<P: 'static> {
    /// The primitive.
    pub def: &'static Def<P>,
    /// Its parameters.
    pub params: P,
}

/// The names of the slots, for coverage reports.
pub const SLOTS: [&str; 7] = ["jvp", "transpose", "batching", "simplify", "stablehlo", "kernel", "reference"];

/// An operation: what traces, passes and printers see of a primitive with parameters.
#[allow(missing_docs)]
pub trait Op: Send + Sync + 'static {
    fn name(&self) -> &str;
    fn doc(&self) -> &'static str;
    /// Identifies the primitive, whatever its parameters.
    fn def_id(&self) -> usize;
    fn params(&self) -> &dyn Any;
    fn print_params(&self) -> Vec<(&'static str, Param)>;
    fn params_eq(&self, other: &dyn Op) -> bool;
    fn params_hash(&self, state: &mut dyn Hasher);
    fn subjaxprs(&self) -> Vec<JaxprRef>;
    fn effects(&self) -> Effects;
    /// Per slot of [`SLOTS`]: `None` when there is a rule, else the reason.
    fn coverage(&self) -> [Option<&'static str>; 7];
    fn abstract_eval(&self, args: &[&Aval]) -> Result<Avals>;
    fn jvp(&self, this: &OpRef, primals: &[Value], tangents: &[Option<Value>]) -> Result<(Values, Tangents)>;
    fn linearize(&self, this: &OpRef, primals: &[Value], tangents: &[Option<Value>]) -> Result<(Values, Tangents)>;
    fn transpose(&self, this: &OpRef, cts: &[Option<Value>], args: &[TransposeArg]) -> Result<Tangents>;
    fn batch(
        &self,
        this: &OpRef,
        axis: &BatchAxis,
        args: &[Value],
        dims: &[Option<usize>],
    ) -> Result<(Values, BatchDims)>;
    fn simplify(&self, this: &OpRef, cx: &mut dyn Rewriter, inputs: &[Atom]) -> Result<Option<SmallVec<[Atom; 1]>>>;
    fn kernel(&self, this: &OpRef, b: &mut Builder, args: &[ValueId], outs: &[Aval]) -> Result<SmallVec<[ValueId; 1]>>;
    fn reference(&self, args: &[RefTensor], outs: &[Aval]) -> Result<Vec<RefTensor>>;
    fn stage(&self, this: &OpRef, args: &[Value]) -> Option<Result<(OpRef, Operands)>>;
    /// Whether there is something else to record in its place: its types may not be known before.
    fn stages(&self) -> bool;
    /// Whether it calls a function of the user that no trace has recorded yet, and that may close over traced values.
    fn is_unrecorded(&self) -> bool {
        false
    }
    fn eager(&self, this: &OpRef, args: &[Value]) -> Option<Result<Values>>;
    /// Whether a function of the user's is what runs it outside of programs: there may be nothing to compile.
    fn runs_itself(&self) -> bool {
        false
    }
    /// Whether its rules are functions of the user's, which are asked about operands that there are, and no others.
    fn asks_host(&self) -> bool {
        false
    }
    /// The named axes that it works across itself, programs in it aside.
    fn axes(&self) -> &[Arc<str>];
    /// What it says of the manual axes that its operands vary over, given those that any does; `None` when its programs
    /// say it.
    fn vary(&self, operands: u32) -> Option<Vary>;
    fn role(&self) -> OpRole;
    fn edge(&self) -> bool;
    fn pulls_zeros(&self) -> bool;
    fn known_part(&self, _linear: &[bool]) -> Option<KnownPart> {
        None
    }
}

/// A shared operation.
#[derive(Clone)]
pub enum OpRef {
    /// A primitive without parameters.
    Static(&'static dyn Op),
    /// A primitive with parameters.
    Shared(Arc<dyn Op>),
}

impl std::ops::Deref for OpRef {
    type Target = dyn Op;
    #[inline]
    fn deref(&self) -> &(dyn Op + 'static) {
        match self {
            OpRef::Static(op) => *op,
            OpRef::Shared(op) => &**op,
        }
    }
}

impl OpRef {
    /// A primitive with parameters.
    pub fn new<P: Params>(def: &'static Def<P>, params: P) -> OpRef {
        OpRef::Shared(Arc::new(Prim { def, params }))
    }

    /// The parameters, when the operation is of this primitive.
    pub fn of<P: Params>(&self, def: &'static Def<P>) -> Option<&P> {
        if self.def_id() == std::ptr::from_ref(def) as usize { self.params().downcast_ref() } else { None }
    }

    /// Whether the operation is of this primitive.
    pub fn is<P: 'static>(&self, def: &'static Def<P>) -> bool {
        self.def_id() == std::ptr::from_ref(def) as usize
    }
}

impl<P> Def<P> {
    /// Per slot of [`SLOTS`]: `None` when there is a rule, else the reason.
    pub fn reasons(&self) -> [Option<&'static str>; 7] {
        [
            reason(&self.jvp),
            reason(&self.transpose),
            reason(&self.batch),
            reason(&self.simplify),
            reason(&self.stablehlo),
            reason(&self.kernel),
            reason(&self.reference),
        ]
    }
}

impl Def<()> {
    /// The operation of a primitive without parameters.
    pub const fn op(&'static self) -> OpRef {
        OpRef::Static(self)
    }
}

impl PartialEq for OpRef {
    fn eq(&self, other: &Self) -> bool {
        self.def_id() == other.def_id() && self.params_eq(&**other)
    }
}

impl Eq for OpRef {}

impl Hash for OpRef {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.def_id().hash(state);
        self.params_hash(state);
    }
}

impl std::fmt::Debug for OpRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

fn missing(slot: &str, name: &str, why: &str) -> ferrax_base::Error {
    error!(NotImplemented, "{slot} for '{name}' not implemented: {why}")
}

#[cold]
fn wrong_arity(name: &str, arity: Option<usize>, args: &[&Aval]) -> ferrax_base::Error {
    let types: Vec<String> = args.iter().map(ToString::to_string).collect();
    let n = arity.unwrap_or(0);
    let s = if n == 1 { "" } else { "s" };
    error!(Type, "{name} takes {n} operand{s}, got {}: ({})", args.len(), types.join(", "))
}

/// The error of running what has symbolic sizes.
#[cold]
pub fn open_program() -> ferrax_base::Error {
    error!(
        NotImplemented,
        "arrays of symbolic sizes cannot be made: such sizes are for `jax.export`, `jax.eval_shape` and `jax.make_jaxpr`"
    )
}

fn reason<F>(slot: &Slot<F>) -> Option<&'static str> {
    match slot {
        Slot::Rule(_) => None,
        Slot::None(why) => Some(why),
    }
}

macro_rules! call {
    ($self:ident, $slot:ident, $text:literal, $($arg:expr),*) => {
        match &$self.def().$slot {
            Slot::Rule(f) => f($($arg),*),
            Slot::None(why) => Err(missing($text, $self.name(), why)),
        }
    };
}

macro_rules! impl_op {
    (($($g:tt)*), $ty:ty) => {
        impl $($g)* Op for $ty {
            fn name(&self) -> &str {
                Params::name(self.p()).unwrap_or(self.def().name)
            }
            fn doc(&self) -> &'static str { self.def().doc }
            fn def_id(&self) -> usize { std::ptr::from_ref(self.def()) as usize }
            fn params(&self) -> &dyn Any { self.p() }
            fn print_params(&self) -> Vec<(&'static str, Param)> { Params::print(self.p()) }
            fn params_eq(&self, other: &dyn Op) -> bool {
                let mine = self.p();
                other.params().downcast_ref().is_some_and(|theirs| same(mine, theirs))
            }
            fn params_hash(&self, mut state: &mut dyn Hasher) { self.p().hash(&mut state) }
            fn subjaxprs(&self) -> Vec<JaxprRef> { Params::subjaxprs(self.p()) }
            fn effects(&self) -> Effects {
                self.def().special.effects.map_or(Effects::NONE, |f| f(self.p()))
            }
            fn coverage(&self) -> [Option<&'static str>; 7] {
                self.def().reasons()
            }
            fn abstract_eval(&self, args: &[&Aval]) -> Result<Avals> {
                if self.def().arity.is_some_and(|n| n != args.len()) {
                    return Err(wrong_arity(self.name(), self.def().arity, args));
                }
                let mut outs = (self.def().shape)(self.p(), args)?;
                manual::note(self, args, &mut outs);
                let open = args.iter().any(|a| symbolic::any(&a.shape));
                if open && !outs.iter().flat_map(|a| &a.shape).all(|&d| symbolic::is_known(d)) {
                    return Err(symbolic::unsupported(self.name()));
                }
                outs.iter().try_for_each(Aval::check_bytes)?;
                Ok(outs)
            }
            fn jvp(&self, this: &OpRef, primals: &[Value], tangents: &[Option<Value>]) -> Result<(Values, Tangents)> {
                call!(self, jvp, "Differentiation rule", this, self.p(), primals, tangents)
            }
            fn linearize(&self, this: &OpRef, primals: &[Value], tangents: &[Option<Value>]) -> Result<(Values, Tangents)> {
                match self.def().special.linearize {
                    Some(f) => f(this, self.p(), primals, tangents),
                    None => self.jvp(this, primals, tangents),
                }
            }
            fn transpose(&self, this: &OpRef, cts: &[Option<Value>], args: &[TransposeArg]) -> Result<Tangents> {
                call!(self, transpose, "Transpose rule (for reverse-mode differentiation)", this, self.p(), cts, args)
            }
            fn batch(&self, this: &OpRef, axis: &BatchAxis, args: &[Value], dims: &[Option<usize>]) -> Result<(Values, BatchDims)> {
                call!(self, batch, "Batching rule", this, self.p(), axis, args, dims)
            }
            fn simplify(&self, this: &OpRef, cx: &mut dyn Rewriter, inputs: &[Atom]) -> Result<Option<SmallVec<[Atom; 1]>>> {
                match &self.def().simplify {
                    Slot::Rule(f) => f(this, self.p(), cx, inputs),
                    Slot::None(_) => Ok(None),
                }
            }
            fn kernel(&self, this: &OpRef, b: &mut Builder, args: &[ValueId], outs: &[Aval]) -> Result<SmallVec<[ValueId; 1]>> {
                if outs.iter().any(|a| symbolic::any(&a.shape)) {
                    return Err(open_program());
                }
                call!(self, kernel, "Lowering rule", this, self.p(), b, args, outs)
            }
            fn reference(&self, args: &[RefTensor], outs: &[Aval]) -> Result<Vec<RefTensor>> {
                call!(self, reference, "the reference", self.p(), args, outs)
            }
            fn stage(&self, this: &OpRef, args: &[Value]) -> Option<Result<(OpRef, Operands)>> {
                self.def().special.stage.map(|f| f(this, self.p(), args))
            }
            fn stages(&self) -> bool { self.def().special.stage.is_some() }
            #[inline]
            fn is_unrecorded(&self) -> bool { self.stages() && Params::subjaxprs(self.p()).is_empty() }
            fn eager(&self, this: &OpRef, args: &[Value]) -> Option<Result<Values>> {
                self.def().special.eager.map(|f| f(this, self.p(), args))
            }
            fn axes(&self) -> &[Arc<str>] { self.def().special.axes.map_or(&[], |f| f(self.p())) }
            #[inline]
            fn vary(&self, operands: u32) -> Option<Vary> {
                match self.def().special.vary {
                    Some(f) => Some(f(self.p(), operands)),
                    None if !Params::subjaxprs(self.p()).is_empty() => None,
                    None => Some(Vary { operands, results: operands }),
                }
            }
            fn role(&self) -> OpRole {
                match &self.def().special.role {
                    Role::Opaque => OpRole::Opaque,
                    Role::Elementwise => OpRole::Elementwise,
                    Role::Weighted => OpRole::Weighted,
                    Role::Selects => OpRole::Selects,
                    Role::Calls(f) => OpRole::Calls(f(self.p())),
                }
            }
            fn edge(&self) -> bool { self.def().special.edge }
            fn pulls_zeros(&self) -> bool { self.def().special.pulls_zeros }
            fn known_part(&self, linear: &[bool]) -> Option<KnownPart> {
                self.def().special.known.and_then(|f| f(self.p(), linear))
            }
        }
    };
}

fn same<P: PartialEq>(a: &P, b: &P) -> bool {
    a == b
}

impl<P: Params> Prim<P> {
    #[inline]
    fn def(&self) -> &'static Def<P> {
        self.def
    }

    #[inline]
    fn p(&self) -> &P {
        &self.params
    }
}

impl Def<()> {
    #[inline]
    const fn def(&self) -> &Self {
        self
    }

    #[inline]
    #[allow(clippy::unused_self)]
    const fn p(&self) -> &() {
        &()
    }
}

impl_op!((<P: Params>), Prim<P>);
impl_op!((), Def<()>);

/// Appends the results of an equation to a program being built; shared by tests and passes.
pub type Outputs = SmallVec<[Var; 1]>;
