//! The Jaxpr: a program in SSA form, with its constants, effects and names.
//!
//! Variables are numbered in order of definition, so two traces of one function give equal programs; hash and
//! equality look at structure and scopes, not at other names or sources. Constants are arrays bound to `constvars`.

use crate::array::Array;
use crate::op::OpRef;
use crate::value::Lit;
use ferrax_base::{Aval, Result, Shape, Source, error};
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// A variable: an index into [`Jaxpr::avals`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Var(pub u32);

/// An operand: a variable or a rank-0 literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Atom {
    /// A variable.
    Var(Var),
    /// A rank-0 constant.
    Lit(Lit),
}

/// What an operation does besides computing; a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Effects(pub u8);

impl Effects {
    /// A pure operation.
    pub const NONE: Effects = Effects(0);
    /// May be neither dropped nor duplicated.
    pub const IO: Effects = Effects(1);
    /// As `IO`, and keeps its order with others.
    pub const ORDERED: Effects = Effects(3);
    /// Printing for debugging: kept, but transparent to differentiation and vmap.
    pub const DEBUG: Effects = Effects(4);
    /// As `DEBUG`, and keeps its order with others.
    pub const ORDERED_DEBUG: Effects = Effects(16);
    /// Works across the rows of a named mapped axis; nothing that forbids dropping it.
    pub const NAMED_AXIS: Effects = Effects(8);

    /// Both sets.
    #[must_use]
    pub const fn union(self, other: Effects) -> Effects {
        Effects(self.0 | other.0)
    }

    /// Whether the operation may be dropped when its results are unused.
    pub const fn is_none(self) -> bool {
        self.0 & !Effects::NAMED_AXIS.0 == 0
    }

    /// Whether something is shown.
    pub const fn shows(self) -> bool {
        self.0 & Effects::DEBUG.union(Effects::ORDERED_DEBUG).0 != 0
    }

    /// Whether all of the others are among these.
    #[inline]
    pub const fn contains(self, others: Effects) -> bool {
        self.0 & others.0 == others.0
    }
}

/// One operation of a program.
#[derive(Clone, Debug)]
pub struct Eqn {
    /// What is done.
    pub op: OpRef,
    /// Operands.
    pub inputs: SmallVec<[Atom; 3]>,
    /// Results.
    pub outputs: SmallVec<[Var; 1]>,
    /// Where the user asked for it.
    pub source: Source,
}

/// Makes the names of a function's flat arguments (`x`, `params['w']`) when a message needs them.
pub type ArgNames = Arc<dyn Fn() -> Vec<String> + Send + Sync>;

/// Names of the traced function and its arguments, for printing and messages.
#[derive(Clone, Default)]
pub struct DebugInfo {
    /// The function's name.
    pub name: Arc<str>,
    /// Where it is defined.
    pub place: Option<Arc<str>>,
    /// Names of the flat arguments.
    pub arg_names: Option<ArgNames>,
    /// What a program was recorded for; empty for what is none.
    pub traced_for: &'static str,
    /// Names of the flat results.
    pub result_names: Option<ArgNames>,
}

impl std::fmt::Debug for DebugInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.describe())
    }
}

impl DebugInfo {
    /// A function known by name only.
    pub fn named(name: &str) -> Self {
        DebugInfo { name: name.into(), ..DebugInfo::default() }
    }

    /// That of a program recorded for a transformation; one that is made of another has other arguments and results, but for
    /// `vmap`'s arguments.
    pub fn recorded(self, transform: &'static str) -> Self {
        match (self.traced_for, transform) {
            ("", _) => DebugInfo { traced_for: transform, ..self },
            (_, "vmap") => DebugInfo { result_names: None, ..self },
            _ => DebugInfo { arg_names: None, result_names: None, ..self },
        }
    }

    /// The function and its place, for messages: "f at file.py:3".
    pub fn describe(&self) -> String {
        match &self.place {
            Some(place) => format!("{} at {place}", self.name),
            None => self.name.to_string(),
        }
    }
}

/// An axis of a variable that a `vmap` added.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mapped {
    /// The axis, counted among all of the variable's.
    pub at: usize,
    /// `vmap`'s `axis_name`.
    pub name: Option<Arc<str>>,
}

/// A program.
#[derive(Debug, Default)]
pub struct Jaxpr {
    /// Parameters.
    pub invars: Vec<Var>,
    /// Variables bound to `consts`.
    pub constvars: Vec<Var>,
    /// Values of `constvars`.
    pub consts: Vec<Array>,
    /// Operations in order.
    pub eqns: Vec<Eqn>,
    /// Results.
    pub outvars: Vec<Atom>,
    /// The aval of every variable.
    pub avals: Vec<Aval>,
    /// Union of the operations' effects.
    pub effects: Effects,
    /// Names.
    pub debug: DebugInfo,
    /// Axes that `vmap` added, outer ones first; kept under the checks of numbers alone.
    pub mapped: Vec<(Var, Mapped)>,
    /// The structural hash, once somebody asked; zero before.
    hash: AtomicU64,
    /// Whether the program, shared and so fixed, was found well formed.
    verified: AtomicBool,
}

impl Clone for Jaxpr {
    fn clone(&self) -> Self {
        Jaxpr {
            invars: self.invars.clone(),
            constvars: self.constvars.clone(),
            consts: self.consts.clone(),
            eqns: self.eqns.clone(),
            outvars: self.outvars.clone(),
            avals: self.avals.clone(),
            effects: self.effects,
            debug: self.debug.clone(),
            mapped: self.mapped.clone(),
            hash: AtomicU64::new(0),
            verified: AtomicBool::new(false),
        }
    }
}

impl Jaxpr {
    /// The aval of a variable.
    #[inline]
    pub fn aval(&self, v: Var) -> &Aval {
        &self.avals[v.0 as usize]
    }

    /// The aval of an atom.
    pub fn atom_aval(&self, a: &Atom) -> Aval {
        match a {
            Atom::Var(v) => self.aval(*v).clone(),
            Atom::Lit(l) => Aval { shape: Shape::new(), dtype: l.scalar.dtype, weak: l.weak, vary: 0, spread: 0 },
        }
    }

    /// The parameters' avals.
    pub fn in_avals(&self) -> Vec<Aval> {
        self.invars.iter().map(|&v| self.aval(v).clone()).collect()
    }

    /// The results' avals.
    pub fn out_avals(&self) -> Vec<Aval> {
        self.outvars.iter().map(|a| self.atom_aval(a)).collect()
    }

    /// A new variable.
    pub fn new_var(&mut self, aval: Aval) -> Var {
        self.avals.push(aval);
        Var(self.avals.len() as u32 - 1)
    }

    /// Bytes that the program and its compiled form take, about: a bound from above for typical programs.
    pub fn bytes(&self) -> usize {
        const EQUATION: usize = 1100;
        const VARIABLE: usize = 160;
        const PROGRAM: usize = 3000;
        let own = PROGRAM + self.eqns.len() * EQUATION + self.avals.len() * VARIABLE;
        let constants: usize = self.consts.iter().map(|c| c.aval().bytes()).sum();
        let inner: usize = self.eqns.iter().flat_map(|e| e.op.subjaxprs()).map(|j| j.bytes()).sum();
        own + constants + inner
    }

    /// Axes of a variable that `vmap` added, outer ones first.
    pub fn mapped_axes(&self, v: Var) -> impl Iterator<Item = &Mapped> {
        self.mapped.iter().filter(move |(var, _)| *var == v).map(|(_, axis)| axis)
    }

    /// A hash of what reports say beside the structure: places, and axes that `vmap` added.
    pub fn report_hash(&self) -> u64 {
        let mut h = rustc_hash::FxHasher::default();
        self.mapped.hash(&mut h);
        for e in &self.eqns {
            e.source.hash(&mut h);
            e.op.subjaxprs().iter().for_each(|j| j.report_hash().hash(&mut h));
        }
        h.finish()
    }

    /// A hash of the structure, kept after the first call.
    pub fn structural_hash(&self) -> u64 {
        // No lock: a thread that a fork leaves behind would hold it for ever.
        let known = self.hash.load(Relaxed);
        if known != 0 {
            return known;
        }
        let mut h = rustc_hash::FxHasher::default();
        (&self.invars, &self.constvars, &self.outvars, &self.avals).hash(&mut h);
        self.consts.iter().for_each(|c| c.id().hash(&mut h));
        for e in &self.eqns {
            (&e.op, &e.inputs, &e.outputs, e.source.scope()).hash(&mut h);
        }
        let hash = h.finish().max(1);
        self.hash.store(hash, Relaxed);
        hash
    }
}

/// A shared program, which nobody can change any more: equal and hashed by structure.
#[derive(Clone, Debug)]
pub struct JaxprRef(Arc<Jaxpr>);

impl JaxprRef {
    /// A shared program.
    pub fn new(mut j: Jaxpr) -> Self {
        // What was found out before may be of another form of it.
        *j.hash.get_mut() = 0;
        *j.verified.get_mut() = false;
        JaxprRef(Arc::new(j))
    }

    /// Errors unless the program is well formed (`verify.rs`), which later calls remember. Whatever runs, lowers or
    /// binds a program that anybody may have built asks this first.
    #[inline]
    pub fn verify(&self) -> Result<()> {
        if self.verified.load(Relaxed) { Ok(()) } else { self.verify_now() }
    }

    #[cold]
    fn verify_now(&self) -> Result<()> {
        crate::verify::verify(self).map_err(|e| {
            let name: &str = if self.debug.name.is_empty() { "a program" } else { &self.debug.name };
            error!(
                Type,
                "{name} is not a well-formed program: {e}. Build programs by tracing a function (ferrax::jit, \
                 ferrax_transform::stage), or correct what built this one."
            )
        })?;
        self.verified.store(true, Relaxed);
        Ok(())
    }
}

impl From<Jaxpr> for JaxprRef {
    fn from(j: Jaxpr) -> Self {
        JaxprRef::new(j)
    }
}

impl std::ops::Deref for JaxprRef {
    type Target = Jaxpr;
    fn deref(&self) -> &Jaxpr {
        &self.0
    }
}

impl PartialEq for JaxprRef {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || *self.0 == *other.0
    }
}

impl Eq for JaxprRef {}

impl Hash for JaxprRef {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.structural_hash().hash(state);
    }
}

impl PartialEq for Jaxpr {
    fn eq(&self, o: &Self) -> bool {
        self.invars == o.invars
            && self.constvars == o.constvars
            && self.outvars == o.outvars
            && self.avals == o.avals
            && self.consts.len() == o.consts.len()
            && self.consts.iter().zip(&o.consts).all(|(a, b)| a.ptr_eq(b))
            && self.eqns.len() == o.eqns.len()
            && self.eqns.iter().zip(&o.eqns).all(|(a, b)| {
                let same_scope = a.source.scope() == b.source.scope();
                a.inputs == b.inputs && a.outputs == b.outputs && a.op == b.op && same_scope
            })
    }
}

impl Eq for Jaxpr {}
