//! The static check of `where`: is the derivative of a branch that may not be taken infinite at the edge of a domain?
//!
//! While a function is linearized with the check on, every value remembers the first operation in its past whose
//! derivative has such an edge (`sqrt`, `log`, a division ...). A selection whose operand remembers one is reported
//! with both lines. The check looks at no numbers, so it finds what only some inputs would show. An operation whose
//! operands come from a selection themselves counts as guarded: that is the advised way to write it.

use ferrax_base::config::Flag;
use ferrax_base::warning::warn;
use ferrax_base::{Result, Source};
use ferrax_ir::op::OpRole;
use ferrax_ir::{OpRef, Tracer, Value};
use rustc_hash::FxHashMap;
use std::sync::Mutex;

#[derive(Clone)]
enum Past {
    /// An operation with an edge, and where it was asked for.
    Edge(OpRef, Source),
    /// A selection.
    Guarded,
}

/// What the values of one trace remember; the tracers are kept so that an address stays one value's.
#[derive(Default)]
pub(crate) struct WhereCheck(Mutex<FxHashMap<usize, (Tracer, Past)>>);

impl WhereCheck {
    /// A check, when the setting asks for one.
    pub(crate) fn when_asked() -> Option<WhereCheck> {
        Flag::CheckWhere.get().then(WhereCheck::default)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, FxHashMap<usize, (Tracer, Past)>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Forgets all values: the trace ends.
    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    /// Notes an operation's results, and warns when it selects a value with an edge in its past.
    pub(crate) fn note(&self, op: &OpRef, args: &[Value], outs: &[Value]) -> Result<()> {
        let past = |v: &Value| v.as_tracer().and_then(|t| self.lock().get(&t.id()).map(|(_, p)| p.clone()));
        let new = if op.role() == OpRole::Selects {
            for (case, arg) in args.iter().skip(1).enumerate() {
                if let Some(Past::Edge(edge, at)) = past(arg) {
                    warn(&report(args.len() - 1, case, &edge, at))?;
                }
            }
            Some(Past::Guarded)
        } else {
            let pasts: Vec<Option<Past>> = args.iter().filter(|a| a.as_tracer().is_some()).map(past).collect();
            let guarded = !pasts.is_empty() && pasts.iter().all(|p| matches!(p, Some(Past::Guarded)));
            let edge = pasts.into_iter().flatten().find(|p| matches!(p, Past::Edge(..)));
            match edge {
                Some(edge) => Some(edge),
                None if guarded => Some(Past::Guarded),
                None if op.edge() => Some(Past::Edge(op.clone(), Source::here())),
                None => None,
            }
        };
        if let Some(new) = new {
            let mut table = self.lock();
            for t in outs.iter().filter_map(Value::as_tracer) {
                table.insert(t.id(), (t.clone(), new.clone()));
            }
        }
        Ok(())
    }
}

/// The warning about one operand of a selection.
fn report(cases: usize, case: usize, edge: &OpRef, at: Source) -> String {
    let place = |s: Source| s.location().map_or_else(|| "an unknown line".to_owned(), |l| l.to_string());
    let branch = match (cases, case) {
        (2, 0) => "its branch for false".to_owned(),
        (2, _) => "its branch for true".to_owned(),
        _ => format!("its case {case}"),
    };
    format!(
        "where at {}: the gradient through {branch} can be NaN at elements that take another one. `{}` at {} has an \
         infinite or undefined derivative at the edge of its domain, and zero times that is NaN. Give `{}` an operand \
         that is inside its domain everywhere (jnp.where(condition, x, 1.0)), or differentiate under \
         ferrax.safe_where().",
        place(Source::here()),
        edge.name(),
        place(at),
        edge.name(),
    )
}
