//! Values, traces, primitives and the Jaxpr: what every transformation works on.
//!
//! An operation is `bind(op, values)`: the innermost live trace among the operands (or the staging trace in
//! force) processes it; with none, it runs. A primitive is one [`Def`] with every rule in a slot.
//!
//! Read next: [`value`] and [`trace`] for what flows, [`op`] for what a primitive is, [`jaxpr`] for programs;
//! then `ferrax-transform` for the traces themselves.

pub mod array;
mod cells;
pub mod device;
pub mod jaxpr;
pub mod layout;
pub mod lower;
pub mod manual;
pub mod op;
pub mod params;
pub mod parse;
pub mod print;
pub mod reference;
pub mod spread;
mod sync;
pub mod tiles;
pub mod trace;
pub mod value;
pub mod verify;

pub use array::Array;
pub use device::DeviceId;
pub use jaxpr::{Atom, DebugInfo, Effects, Eqn, Jaxpr, JaxprRef, Mapped, Var};
pub use op::{Def, Op, OpRef, Prim, Slot, Special, TransposeArg};
pub use params::{Param, ParamValue, Params};
pub use tiles::Tiles;
pub use trace::{Payload, Trace, TraceId, TraceRef, Tracer, bind};
pub use value::{Avals, Lit, Tangents, Value, Values};

pub use ferrax_base::{Aval, DType, Error, ErrorKind, Result, Scalar, Shape, Source};
