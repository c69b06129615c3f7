//! Executables: a whole program compiled, with its constants bound.
//!
//! Donated arguments whose memory the program can use are taken ([`Array::donate`]); all others stay valid, as in
//! JAX. Memory that somebody else can see (a NumPy view) is never taken.

use crate::cache::Cache;
use crate::device;
use crate::{debug, dispatch};
use ferrax_base::{Aval, Result, error};
use ferrax_cpu::{Arg, Program};
use ferrax_ir::lower::lower;
use ferrax_ir::{Array, Atom, JaxprRef, Value, Values};
use rustc_hash::FxHasher;
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A program ready to run.
pub struct Executable {
    jaxpr: JaxprRef,
    out_avals: Vec<Aval>,
    program: Program,
    /// Arguments that may be donated, as asked.
    donated: SmallVec<[bool; 8]>,
    /// Arguments whose memory the program reuses when it is donated.
    reusable: SmallVec<[bool; 8]>,
    /// What the message of a donated array names.
    taker: Arc<str>,
}

/// Executables by program and donated arguments.
static EXECUTABLES: Cache<Executable> = Cache::new(1024);

/// The executable of a program that donates nothing; equal programs share one.
pub fn executable(jaxpr: &JaxprRef) -> Result<Arc<Executable>> {
    executable_donating(jaxpr, &[])
}

/// The executable of a program that may use the memory of the arguments marked in `donated` (empty: of none).
pub fn executable_donating(jaxpr: &JaxprRef, donated: &[bool]) -> Result<Arc<Executable>> {
    let donated = if donated.contains(&true) { donated } else { &[] };
    let mut hasher = FxHasher::default();
    (jaxpr, donated).hash(&mut hasher);
    let hash = hasher.finish();
    if let Some(found) = EXECUTABLES.get(hash, |e| e.donated.as_slice() == donated && e.jaxpr == *jaxpr) {
        return Ok(found);
    }
    let made = Arc::new(Executable::compile(jaxpr, donated)?);
    EXECUTABLES.put(hash, made.clone());
    Ok(made)
}

/// Forgets every executable; those in use live on.
pub fn clear_cache() {
    EXECUTABLES.clear();
}

impl Executable {
    /// Compiles a program, past the cache.
    pub fn compile(jaxpr: &JaxprRef, donated: &[bool]) -> Result<Executable> {
        debug_assert!(donated.is_empty() || donated.len() == jaxpr.invars.len());
        let graph = Arc::new(lower(jaxpr)?);
        let consts = jaxpr.constvars.len();
        let program = if donated.is_empty() {
            Program::compile(graph)?
        } else {
            let mask: Vec<bool> = std::iter::repeat_n(false, consts).chain(donated.iter().copied()).collect();
            Program::compile_donating(graph, &mask)?
        };
        let reusable = program.donations()[consts..].iter().copied().collect();
        Ok(Executable {
            out_avals: jaxpr.out_avals(),
            program,
            donated: SmallVec::from_slice(donated),
            reusable,
            taker: jaxpr.debug.describe().into(),
            jaxpr: jaxpr.clone(),
        })
    }

    /// The program.
    pub fn jaxpr(&self) -> &JaxprRef {
        &self.jaxpr
    }

    /// Types of the results, weak types included.
    pub fn out_avals(&self) -> &[Aval] {
        &self.out_avals
    }

    /// Donated arguments whose memory no result can use.
    pub fn unusable_donations(&self) -> impl Iterator<Item = usize> + '_ {
        self.donated.iter().zip(&self.reusable).enumerate().filter(|(_, (d, r))| **d && !**r).map(|(i, _)| i)
    }

    /// Runs the program on one concrete value per parameter.
    pub fn run(&self, args: &[Value]) -> Result<Values> {
        let placement = device::place(args, |i| self.describe(i))?;
        if debug::checking() {
            return self.run_checked(args);
        }
        let consts = &self.jaxpr.consts;
        let taken = self.take_donations(args);
        let mut operands = dispatch::Operands::new();
        for c in consts {
            operands.push_array(c)?;
        }
        for (i, a) in args.iter().enumerate() {
            if taken.iter().all(|(j, _)| *j != i) {
                operands.push(a)?;
            }
        }
        let mut next = 0;
        let mut borrowed = || {
            next += 1;
            Arg::Borrowed(operands.get(next - 1))
        };
        let mut buffers: SmallVec<[Arg<'_>; 16]> = consts.iter().map(|_| borrowed()).collect();
        let mut taken = taken.into_iter().peekable();
        for i in 0..args.len() {
            buffers.push(match taken.next_if(|(j, _)| *j == i) {
                Some((_, buffer)) => Arg::Owned(buffer),
                None => borrowed(),
            });
        }
        let outs = self.program.run(&mut buffers)?;
        Ok(dispatch::placed(outs, &self.out_avals, placement))
    }

    /// The buffers of donated arguments that the program can use and that nobody else sees.
    fn take_donations(&self, args: &[Value]) -> SmallVec<[(usize, ferrax_base::Buffer); 4]> {
        let mut taken = SmallVec::new();
        if self.donated.is_empty() {
            return taken;
        }
        for (i, arg) in args.iter().enumerate().filter(|(i, _)| self.reusable[*i]) {
            let Value::Array(a) = arg else { continue };
            let elsewhere = args.iter().enumerate().any(|(j, b)| j != i && matches!(b, Value::Array(b) if b.ptr_eq(a)));
            let constant = self.jaxpr.consts.iter().any(|c| c.ptr_eq(a));
            if !elsewhere
                && !constant
                && let Some(buffer) = a.donate(&self.taker)
            {
                taken.push((i, buffer));
            }
        }
        taken
    }

    /// Runs operation by operation, so that a NaN is found where it arises.
    fn run_checked(&self, args: &[Value]) -> Result<Values> {
        let results = interpret(&self.jaxpr, args)?;
        results.into_iter().map(|v| Ok(Value::Array(materialize(v)?))).collect()
    }

    /// An argument as the message of mixed devices names it.
    fn describe(&self, i: usize) -> String {
        let debug = &self.jaxpr.debug;
        let names = debug.arg_names.as_ref().map(|names| names());
        match names.as_ref().and_then(|n| n.get(i)) {
            Some(name) => format!("argument {name} of {}", debug.name),
            None => format!("argument {i} of {}", debug.name),
        }
    }
}

/// Runs a program operation by operation: what `disable_jit` and the debug modes do.
pub fn interpret(jaxpr: &JaxprRef, args: &[Value]) -> Result<Values> {
    let mut env: Vec<Option<Value>> = vec![None; jaxpr.avals.len()];
    for (&v, c) in jaxpr.constvars.iter().zip(&jaxpr.consts) {
        env[v.0 as usize] = Some(Value::Array(c.clone()));
    }
    for (&v, a) in jaxpr.invars.iter().zip(args) {
        env[v.0 as usize] = Some(a.clone());
    }
    let read = |env: &[Option<Value>], a: &Atom| match a {
        Atom::Lit(l) => Ok(Value::Lit(*l)),
        Atom::Var(v) => {
            env[v.0 as usize].clone().ok_or_else(|| error!(Internal, "variable {} is used before it is defined", v.0))
        }
    };
    for eqn in &jaxpr.eqns {
        let inputs = eqn.inputs.iter().map(|a| read(&env, a)).collect::<Result<SmallVec<[Value; 4]>>>()?;
        let outs = dispatch::evaluate(&eqn.op, &inputs)?;
        for (&v, out) in eqn.outputs.iter().zip(outs) {
            env[v.0 as usize] = Some(out);
        }
    }
    jaxpr.outvars.iter().map(|a| read(&env, a)).collect()
}

/// The array of a concrete value.
pub fn materialize(v: Value) -> Result<Array> {
    match v {
        Value::Array(a) => Ok(a),
        Value::Lit(l) => dispatch::scalar_array(&l),
        Value::Tracer(_) => Err(error!(Internal, "a traced value where a concrete one must be")),
    }
}

