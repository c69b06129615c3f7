//! Arguments of jitted functions that have a type and no value (`ShapeDtypeStruct`): functions that ask for no more than
//! the type take them.
//!
//! Such an argument is a tracer of no transformation while the call lasts, and its program's parameter is left out.

use ferrax_base::{Aval, Result, error};
use ferrax_ir::{Atom, DebugInfo, Jaxpr, JaxprRef, OpRef, Payload, Trace, TraceId, TraceRef, Tracer, Value, Values};
use std::sync::{Arc, LazyLock};

struct TypeOnly;

static TYPES: LazyLock<TraceRef> = LazyLock::new(|| Arc::new(TypeOnly));
static DEBUG: LazyLock<DebugInfo> = LazyLock::new(|| DebugInfo::named("a type"));

impl Trace for TypeOnly {
    fn id(&self) -> TraceId {
        TraceId(0)
    }
    fn is_live(&self) -> bool {
        true
    }
    fn process(&self, _: &TraceRef, op: &OpRef, _: &[Value]) -> Result<Values> {
        Err(error!(Type, "{} met a ShapeDtypeStruct, which does not have a value", op.name()))
    }
    fn transform(&self) -> &'static str {
        "a type"
    }
    fn debug(&self) -> &DebugInfo {
        &DEBUG
    }
}

/// What stands for an argument of a type.
pub fn of_type(aval: Aval) -> Value {
    let payload = Payload::Hosted(Arc::new(()));
    Value::Tracer(Tracer::new(TYPES.clone(), aval, payload))
}

fn is_type(value: &Value) -> bool {
    matches!(value, Value::Tracer(t) if t.trace().id() == TraceId(0))
}

/// A program and its arguments without those that are types; an error where it reads one.
pub fn without_types(jaxpr: JaxprRef, args: &[Value]) -> Result<(JaxprRef, Vec<Value>)> {
    if !args.iter().any(is_type) {
        return Ok((jaxpr, args.to_vec()));
    }
    let mut kept = Jaxpr::clone(&jaxpr);
    kept.invars.clear();
    let mut values = Vec::with_capacity(args.len());
    for (i, (&var, arg)) in jaxpr.invars.iter().zip(args).enumerate() {
        if !is_type(arg) {
            kept.invars.push(var);
            values.push(arg.clone());
        } else if jaxpr.eqns.iter().flat_map(|e| &e.inputs).chain(&jaxpr.outvars).any(|a| *a == Atom::Var(var)) {
            let names = jaxpr.debug.arg_names.as_ref().map(|names| names()).unwrap_or_default();
            let name =
                (i + names.len()).checked_sub(args.len()).and_then(|i| names.get(i)).cloned().unwrap_or_default();
            return Err(error!(
                Type,
                "Argument '{name}' of shape {} of type <class 'ferrax._shape_dtype.ShapeDtypeStruct'> is not a valid JAX \
                 type.",
                crate::tracer::LongAval(&arg.aval())
            ));
        }
    }
    kept.debug.arg_names = None;
    Ok((JaxprRef::new(kept), values))
}
