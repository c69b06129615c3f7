//! Transformations of Rust closures: [`jit`], [`grad`], [`value_and_grad`], [`jvp`], [`vjp`], [`vmap`].
//!
//! A function takes and gives flat lists of [`Value`]s. The closures may be nested at will: `jit` of `grad` of
//! `vmap` composes as in Python, and without `jit` values inside are concrete.
//!
//! ```
//! use ferrax::function::{Data, grad, jit};
//! use ferrax::{Value, numpy};
//! # fn main() -> ferrax::Result<()> {
//! let f = |v: &[Value]| numpy::multiply(&numpy::sin(&v[0])?, &v[0]);
//! let slope = jit("slope", grad(f));
//! let out = slope.call(&[Value::from(1.5_f32)])?;
//! assert!((out[0].to_f64()? - (1.5_f64.cos() * 1.5 + 1.5_f64.sin())).abs() < 1e-6);
//! # Ok(()) }
//! ```

use crate::executable::{Executable, executable, materialize};
use ferrax_base::list::List;
use ferrax_base::{Aval, Buffer, DType, Result, Scalar, bail, config, error};
use ferrax_cache::{Cache, OwnerId};
use ferrax_ir::{Array, DebugInfo, JaxprRef, Value};
use ferrax_ops::control::jit::jit_call;
use ferrax_transform::batching::place_axis;
use ferrax_transform::linearize::{Linearized, linearize};
use ferrax_transform::structural::instantiate;
use ferrax_transform::{VmapAxis, stage};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};

/// Data from Rust and back.
pub trait Data: Sized {
    /// A one-dimensional array of these numbers.
    fn vector(data: &[f32]) -> Result<Self>;
    /// An array of this shape (row-major) of these numbers; errors when the sizes differ.
    fn array(data: &[f32], shape: &[usize]) -> Result<Self>;
    /// The elements as `f32`; errors for tracers.
    fn to_vec(&self) -> Result<Vec<f32>>;
    /// The one element; errors for tracers and for larger arrays.
    fn to_f64(&self) -> Result<f64>;
}

impl Data for Value {
    fn vector(data: &[f32]) -> Result<Value> {
        Value::array(data, &[data.len()])
    }

    fn array(data: &[f32], shape: &[usize]) -> Result<Value> {
        let aval = Aval::new(DType::F32, shape);
        if aval.size() != data.len() {
            bail!(Value, "{} numbers cannot fill an array of shape {}", data.len(), ferrax_base::shape::Tuple(shape));
        }
        Ok(Value::Array(Array::new(aval, Buffer::from_slice(data)?)))
    }

    fn to_vec(&self) -> Result<Vec<f32>> {
        let array = materialize(self.clone())?;
        let (dtype, pin) = (array.aval().dtype, array.pin()?);
        let element = |b: &[u8]| Scalar::from_bytes(dtype, b).to_f64() as f32;
        Ok(pin.bytes().chunks_exact(dtype.size()).map(element).collect())
    }

    fn to_f64(&self) -> Result<f64> {
        Ok(materialize(self.clone())?.item()?.to_f64())
    }
}

/// A program of a jitted function: the types of its arguments and the settings it is for, and what runs.
type Known = (Vec<Aval>, u64, JaxprRef, Arc<Executable>);

/// Signatures that a function keeps as long as it lives, and finds without a lock.
const FIRST: usize = 32;
/// Bytes of all functions' further programs that are kept, those used last.
const LIMIT: usize = 64 << 20;

/// Of the functions with more than `FIRST` signatures the further programs, by function, types and settings.
static FURTHER: LazyLock<Cache<(u64, Vec<Aval>, u64), (JaxprRef, Arc<Executable>)>> =
    LazyLock::new(|| Cache::new(LIMIT));

/// A compiled function: traced once per signature of its arguments.
pub struct Jit<F> {
    name: Arc<str>,
    fun: F,
    owner: OwnerId,
    first: List<Known>,
    /// How many these are.
    count: AtomicUsize,
}

/// Compiles a function; `name` is what programs and messages call it.
pub fn jit<F: Fn(&[Value]) -> Result<Vec<Value>>>(name: &str, fun: F) -> Jit<F> {
    crate::init();
    Jit { name: name.into(), fun, owner: OwnerId::fresh(), first: List::new(), count: AtomicUsize::new(0) }
}

impl<F> Drop for Jit<F> {
    fn drop(&mut self) {
        if *self.count.get_mut() > FIRST {
            FURTHER.forget(self.owner);
        }
    }
}

impl<F: Fn(&[Value]) -> Result<Vec<Value>>> Jit<F> {
    /// Runs the function, tracing it first when these types are new.
    pub fn call(&self, args: &[Value]) -> Result<Vec<Value>> {
        let avals: Vec<Aval> = args.iter().map(Value::aval).collect();
        let config = config::trace_key();
        if let Some((.., jaxpr, exe)) = self.first.find(|(a, c, ..)| *a == avals && *c == config) {
            return self.run(jaxpr, exe, args);
        }
        let key = (self.owner.0, avals, config);
        if self.count.load(Relaxed) > FIRST
            && let Some(found) = FURTHER.get(&key)
        {
            return self.run(&found.value.0, &found.value.1, args);
        }
        let staged = stage("jit", DebugInfo::named(&self.name), &key.1, &self.fun)?;
        let jaxpr: JaxprRef = staged.jaxpr.into();
        if !staged.captured.is_empty() {
            let all: Vec<Value> = staged.captured.into_iter().chain(args.iter().cloned()).collect();
            return Ok(jit_call(self.name.clone(), jaxpr, false, &all)?.into_vec());
        }
        let exe = executable(&jaxpr)?;
        if self.count.fetch_add(1, Relaxed) < FIRST {
            let (.., jaxpr, exe) = self.first.push((key.1, config, jaxpr, exe));
            return self.run(jaxpr, exe, args);
        }
        let bytes = 2000 + 2 * jaxpr.bytes();
        let known = FURTHER.insert(key, (jaxpr, exe), bytes, Some(self.owner));
        self.run(&known.value.0, &known.value.1, args)
    }

    fn run(&self, jaxpr: &JaxprRef, exe: &Arc<Executable>, args: &[Value]) -> Result<Vec<Value>> {
        if args.iter().any(|v| v.as_tracer().is_some()) || !ferrax_ir::trace::is_eager() {
            return Ok(jit_call(self.name.clone(), jaxpr.clone(), false, args)?.into_vec());
        }
        Ok(exe.run(args, &[])?.into_vec())
    }

    /// The program for arguments of these types.
    pub fn jaxpr(&self, avals: &[Aval]) -> Result<JaxprRef> {
        Ok(stage("jit", DebugInfo::named(&self.name), avals, &self.fun)?.jaxpr.into())
    }
}

fn scalar_seed(lin: &Linearized) -> Result<Value> {
    let out = &lin.outs[0];
    if out.rank() != 0 || !out.dtype().is_float() {
        bail!(Type, "Gradient only defined for scalar-output functions. Output had type: {}.", out.aval());
    }
    Ok(Value::scalar(Scalar::one(out.dtype())))
}

/// Value and gradients (one per argument) of a scalar function.
pub fn value_and_grad<F: Fn(&[Value]) -> Result<Value>>(fun: F) -> impl Fn(&[Value]) -> Result<(Value, Vec<Value>)> {
    move |args| {
        crate::init();
        let on: Vec<bool> = args.iter().map(|v| v.dtype().is_inexact()).collect();
        let lin = linearize("grad", DebugInfo::named("function"), args, &on, |v| Ok(vec![fun(v)?]))?;
        let pulled = lin.pull_back(&[Some(scalar_seed(&lin)?)])?;
        let grads = pulled.into_iter().zip(args).map(|(g, x)| instantiate(g, &x.aval().tangent()));
        Ok((lin.outs[0].clone(), grads.collect::<Result<_>>()?))
    }
}

/// Gradients (one per argument) of a scalar function.
pub fn grad<F: Fn(&[Value]) -> Result<Value>>(fun: F) -> impl Fn(&[Value]) -> Result<Vec<Value>> {
    let both = value_and_grad(fun);
    move |args| Ok(both(args)?.1)
}

/// Errors unless there is one value of the tangent's type for each of `of`.
fn check_types(name: &str, base: &str, of: &[Value], what: &str, given: &[Value]) -> Result<()> {
    if of.len() != given.len() {
        bail!(Type, "{name} takes one {what} for each {base}: got {} for {}", given.len(), of.len());
    }
    for (i, (v, g)) in of.iter().zip(given).enumerate() {
        let want = v.aval().tangent();
        if !g.aval().same_type(&want) {
            bail!(
                Type,
                "{name} takes for {base} {i} of type {} a {what} of type {}, got {}",
                v.aval().long_text(),
                want.long_text(),
                g.aval().long_text()
            );
        }
    }
    Ok(())
}

/// Results of a function and their tangents along a direction.
pub fn jvp(
    fun: impl Fn(&[Value]) -> Result<Vec<Value>>,
    primals: &[Value],
    tangents: &[Value],
) -> Result<(Vec<Value>, Vec<Value>)> {
    crate::init();
    check_types("jvp", "primal", primals, "tangent", tangents)?;
    let directions: Vec<Option<Value>> = tangents.iter().cloned().map(Some).collect();
    let (outs, moved) = ferrax_transform::jvp(DebugInfo::named("function"), primals, &directions, fun)?;
    let moved = moved.into_iter().zip(&outs).map(|(t, o)| instantiate(t, &o.aval().tangent()));
    let moved = moved.collect::<Result<_>>()?;
    Ok((outs, moved))
}

/// Results of a function, and the function that pulls cotangents of them back to the arguments.
pub fn vjp(
    fun: impl Fn(&[Value]) -> Result<Vec<Value>>,
    primals: &[Value],
) -> Result<(Vec<Value>, impl Fn(&[Value]) -> Result<Vec<Value>>)> {
    crate::init();
    let on = vec![true; primals.len()];
    let lin = linearize("vjp", DebugInfo::named("function"), primals, &on, fun)?;
    let avals: Vec<Aval> = primals.iter().map(|v| v.aval().tangent()).collect();
    let results = lin.outs.clone();
    let outs = results.clone();
    let pull = move |cts: &[Value]| {
        check_types("vjp", "result", &outs, "cotangent", cts)?;
        let cts: Vec<Option<Value>> = cts.iter().cloned().map(Some).collect();
        lin.pull_back(&cts)?.into_iter().zip(&avals).map(|(ct, a)| instantiate(ct, a)).collect()
    };
    Ok((results, pull))
}

/// A function over axis `in_axes[i]` of each argument (`None`: shared by all rows); results have the axis first.
pub fn vmap<F: Fn(&[Value]) -> Result<Vec<Value>>>(
    fun: F,
    in_axes: Vec<Option<usize>>,
) -> impl Fn(&[Value]) -> Result<Vec<Value>> {
    move |args| {
        crate::init();
        if in_axes.len() != args.len() {
            bail!(Value, "vmap in_axes must have an entry for each argument: got {} for {}", in_axes.len(), args.len());
        }
        let mapped = in_axes.iter().zip(args).find_map(|(a, v)| a.and_then(|a| v.shape().get(a).copied()));
        let size = mapped.ok_or_else(|| error!(Value, "vmap must have at least one non-None value in in_axes"))?;
        for (i, (a, v)) in in_axes.iter().zip(args).enumerate() {
            if a.is_some_and(|a| v.shape().get(a) != Some(&size)) {
                bail!(Value, "vmap argument {i} of type {} has no axis {a:?} of size {size}", v.aval());
            }
        }
        let axis = VmapAxis::new(size, None);
        let outs = ferrax_transform::vmap(DebugInfo::named("function"), axis, args, &in_axes, &fun)?;
        outs.iter().map(|(v, d)| place_axis(v, *d, Some(0), size)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_without_end_are_kept_within_bounds() {
        let double = jit("double", |v: &[Value]| Ok(vec![crate::numpy::add(&v[0], &v[0])?]));
        let owner = double.owner;
        for _ in 0..2 {
            for n in 1..=3 * FIRST {
                let x = vec![n as f32; n];
                let out = double.call(&[Value::vector(&x).unwrap()]).unwrap();
                assert_eq!(out[0].to_vec().unwrap(), vec![2.0 * n as f32; n]);
            }
        }
        // Each signature was traced once.
        assert_eq!(double.count.load(Relaxed), 3 * FIRST);
        assert_eq!(FURTHER.entries(Some(owner)).len(), 2 * FIRST);
        drop(double);
        assert!(FURTHER.entries(Some(owner)).is_empty());
    }
}
