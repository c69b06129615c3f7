//! How results are sharded of what runs on arrays over several CPU devices.
//!
//! Such devices share one memory and one engine: a program over sharded arrays is the program over whole ones, and its
//! results have their bits. What they get is a sharding, which says what part each device has. The host knows the rules
//! ([`set_rules`]); without it, results are replicated over the operands' devices.
//!
//! Read next: `device.rs` for where a computation runs.

use crate::device::Placement;
use ferrax_base::list::List;
use ferrax_base::source::is_making;
use ferrax_base::{Aval, Result};
use ferrax_ir::{Array, Atom, DebugInfo, DeviceId, Eqn, Jaxpr, JaxprRef, Lit, OpRef, Value, spread};
use ferrax_ops::elementwise::identity::NAME;
use ferrax_ops::placed::SHARDING_CONSTRAINT;
use smallvec::SmallVec;
use std::sync::OnceLock;

/// One sharding or device for every operand, `None` for those that follow, and whether the program is an operation that
/// runs by itself; gives one for each result, `None` for those that are where the program runs, and whether the same holds
/// wherever it is asked.
pub type Rules = fn(&JaxprRef, &[Option<DeviceId>], bool) -> Result<(Vec<Option<DeviceId>>, bool)>;

static RULES: OnceLock<Rules> = OnceLock::new();

/// Installs the host's rules; the first call counts.
pub fn set_rules(f: Rules) {
    let _ = RULES.set(f);
}

/// Where each result of a program goes.
pub type Places = SmallVec<[Placement; 2]>;

/// Where the results of a program went for operands with these shardings, where it ran on these devices.
#[derive(Default)]
pub struct Known(List<(SmallVec<[Option<DeviceId>; 8]>, DeviceId, Places)>);

impl Known {
    /// Where they went the last time that a program ran at `place` on operands that are sharded so.
    pub fn find(&self, operands: impl Iterator<Item = Option<DeviceId>> + Clone, place: Placement) -> Option<&Places> {
        let same = |(key, at, _): &(SmallVec<_>, DeviceId, Places)| {
            *at == place.device.replicated() && key.iter().copied().eq(operands.clone())
        };
        self.0.find(same).map(|(.., found)| found)
    }

    fn note(&self, operands: &[Option<DeviceId>], place: Placement, places: &Places) {
        self.0.push((operands.into(), place.device.replicated(), places.clone()));
    }
}

/// The start of the names of values whose shardings the host is to be told.
const ASKED: &str = "the sharding is asked for by ";

/// Whether a program, or one inside of it, says or asks how values are sharded.
pub fn says_where(jaxpr: &Jaxpr) -> bool {
    jaxpr.eqns.iter().any(|e| op_says_where(&e.op))
}

/// As [`says_where`], of one operation.
pub fn op_says_where(op: &OpRef) -> bool {
    let asks = || op.of(&NAME).is_some_and(|p| p.name.starts_with(ASKED));
    op.is(&SHARDING_CONSTRAINT) || asks() || op.subjaxprs().iter().any(|j| says_where(j))
}

/// Whether types of a program, or of one inside of it, say how values lie on devices.
pub fn types_say(jaxpr: &Jaxpr) -> bool {
    let inside = |e: &Eqn| e.op.subjaxprs().iter().any(|j| types_say(j));
    jaxpr.avals.iter().any(|a| a.spread != 0) || jaxpr.eqns.iter().any(inside)
}

/// The sharding or device of an operand that is committed.
pub fn of_array(a: &Array) -> Option<DeviceId> {
    (a.committed() || a.device().is_sharded()).then(|| a.device())
}

/// As [`of_array`], of any operand.
pub fn of_value(v: &Value) -> Option<DeviceId> {
    if let Value::Array(a) = v { of_array(a) } else { None }
}

/// Where the results of a program go that runs at `place` on operands that are sharded so.
pub fn of_program(known: &Known, jaxpr: &JaxprRef, operands: &[Option<DeviceId>], place: Placement) -> Result<Places> {
    if let Some(found) = known.find(operands.iter().copied(), place) {
        return Ok(found.clone());
    }
    let (places, _) = apply(jaxpr, operands, place, false)?;
    known.note(operands, place, &places);
    Ok(places)
}

/// As [`of_program`], of one operation.
pub fn of_operation(known: &Known, op: &OpRef, args: &[Value], outs: &[Aval], place: Placement) -> Result<Places> {
    let keeps = !op_says_where(op) && !spread::is_noted(op);
    if keeps && let Some(found) = known.find(args.iter().map(of_value), place) {
        return Ok(found.clone());
    }
    let operands: SmallVec<[_; 4]> = args.iter().filter(|a| !matches!(a, Value::Lit(_))).map(of_value).collect();
    let plain = |a: &Aval| Aval { spread: 0, ..a.clone() };
    let inputs = args.iter().map(|a| match a {
        Value::Lit(l) => Err(*l),
        other => Ok(plain(&other.aval())),
    });
    let outs: SmallVec<[Aval; 2]> = outs.iter().map(plain).collect();
    let (places, everywhere) = apply(&of_one(op, inputs, &outs).into(), &operands, place, true)?;
    if keeps && everywhere {
        let operands: SmallVec<[_; 4]> = args.iter().map(of_value).collect();
        known.note(&operands, place, &places);
    }
    Ok(places)
}

/// The program of one operation; its operands are parameters, or constants.
pub fn of_one(op: &OpRef, inputs: impl Iterator<Item = std::result::Result<Aval, Lit>>, outs: &[Aval]) -> Jaxpr {
    let mut jaxpr = Jaxpr::default();
    jaxpr.debug = DebugInfo::named(op.name());
    jaxpr.effects = op.effects();
    let inputs: SmallVec<[Atom; 4]> =
        inputs.map(|a| a.map_or_else(Atom::Lit, |a| Atom::Var(jaxpr.new_var(a)))).collect();
    jaxpr.invars = inputs.iter().filter_map(|a| if let Atom::Var(v) = a { Some(*v) } else { None }).collect();
    let outputs: SmallVec<[_; 1]> = outs.iter().map(|a| jaxpr.new_var(a.clone())).collect();
    jaxpr.outvars = outputs.iter().map(|v| Atom::Var(*v)).collect();
    let source = ferrax_base::Source { made: u32::from(is_making()), ..Default::default() };
    jaxpr.eqns.push(Eqn { op: op.clone(), inputs: inputs.into_iter().collect(), outputs, source });
    jaxpr
}

fn apply(jaxpr: &JaxprRef, operands: &[Option<DeviceId>], place: Placement, alone: bool) -> Result<(Places, bool)> {
    let other = Placement { device: place.device.replicated(), committed: place.committed };
    let Some(rules) = RULES.get() else { return Ok((jaxpr.outvars.iter().map(|_| other).collect(), true)) };
    let (found, everywhere) = rules(jaxpr, operands, alone)?;
    let at = |d: Option<DeviceId>| d.map_or(other, |device| Placement { device, committed: true });
    Ok((found.into_iter().map(at).collect(), everywhere))
}
