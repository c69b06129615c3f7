//! A guess of the time that nodes take: what decides whether work is worth doing twice, skipping or sharing out.
//!
//! Guesses are for one thread of a machine with vectors, in nanoseconds, by what is computed alone: right within a
//! factor of ten, which is enough to tell a sum from a factorization.

use crate::graph::{Graph, Node};
use crate::kind::{BinaryOp, Kind, UnaryOp};

/// Steps that a loop is taken to have where nothing says how many.
const ROUNDS: u64 = 64;
/// What a call of the host is taken to last.
const HOST: u64 = 100_000;
/// What calling any kernel takes.
const CALL: u64 = 20;
/// Picoseconds that an element takes operations of one instruction, and those from which on an operation is costly.
const SIMPLE: u64 = 40;
const COSTLY: u64 = 200;
/// Picoseconds for each byte of arrays that an operation reads or writes.
pub const TRAFFIC: u64 = 16;

impl Graph {
    /// A guess of the time of all nodes, one after the other.
    pub fn time(&self) -> u64 {
        self.nodes.iter().fold(0, |sum, node| sum.saturating_add(self.time_of(node)))
    }

    /// A guess of the time of a node.
    pub fn time_of(&self, node: &Node) -> u64 {
        let size = |k: usize| node.inputs.get(k).map_or(0, |&v| self.ty(v).size() as u64);
        let out: u64 = node.outputs().map(|v| self.ty(v).size() as u64).sum();
        let moved = (out.max(size(0)) / 4).saturating_add(CALL);
        match &node.kind {
            Kind::Const(_) | Kind::Dense(_) | Kind::Reshape | Kind::Bitcast | Kind::Barrier => 0,
            // Multiply-adds: of m·k, k·n and m·n the product is (m·n·k)².
            Kind::Dot(_) => CALL + ((size(0) as f64 * size(1) as f64 * out as f64).sqrt() / 50.0) as u64,
            Kind::Conv(_) => {
                let features = node.inputs.get(1).and_then(|&w| self.ty(w).shape.last()).map_or(1, |&n| n.max(1));
                CALL + (out as f64 * size(1) as f64 / features as f64 / 30.0) as u64
            }
            Kind::Linalg(_) => {
                let n = node.inputs.first().and_then(|&v| self.ty(v).shape.last()).map_or(1, |&n| n as u64);
                (10 * CALL).saturating_add(size(0).saturating_mul(n) / 2)
            }
            Kind::Fft { .. } => 5 * CALL + out.max(size(0)) * u64::from(out.max(2).ilog2()) / 4,
            Kind::Sort { .. } | Kind::TopK { .. } => CALL + size(0) * u64::from(size(0).max(2).ilog2()) / 4,
            Kind::Threefry2x32 => CALL + 4 * out,
            Kind::ReduceWindow { window, .. } => {
                CALL + out.saturating_mul(ferrax_base::shape::size(&window.window) as u64) / 4
            }
            Kind::Gather(_) | Kind::Scatter { .. } => CALL + size(2).max(out),
            Kind::ReduceWith { body, .. } => size(0).saturating_mul(CALL + body.time()),
            Kind::While { cond, body, .. } => ROUNDS.saturating_mul(cond.time().saturating_add(body.time())),
            Kind::Scan { body, length, .. } => (*length as u64).saturating_mul(CALL + body.time()),
            Kind::Switch(branches) => CALL + branches.iter().map(|b| b.time()).max().unwrap_or(0),
            Kind::Call(body) => CALL + body.time(),
            Kind::Host(_) => HOST,
            kind if kind.is_elementwise() => moved.max(CALL + out.saturating_mul(kind.cost()) / 1000),
            _ => moved,
        }
    }

    /// Whether running the graph surely ends and calls nobody.
    pub fn surely_ends(&self) -> bool {
        self.nodes.iter().all(|node| match &node.kind {
            Kind::While { .. } | Kind::Host(_) => false,
            Kind::Scan { body, .. } | Kind::Call(body) | Kind::ReduceWith { body, .. } => body.surely_ends(),
            Kind::Switch(branches) => branches.iter().all(|b| b.surely_ends()),
            _ => true,
        })
    }
}

impl Kind {
    /// A guess of the time that an element of 4 bytes takes an elementwise node, in picoseconds, apart from reading and
    /// writing it.
    pub fn cost(&self) -> u64 {
        match self {
            Kind::Unary(op) => match op {
                UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Not | UnaryOp::Sign | UnaryOp::IsFinite => SIMPLE,
                UnaryOp::Real | UnaryOp::Imag | UnaryOp::Conj => SIMPLE,
                UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::RoundAway | UnaryOp::RoundEven => SIMPLE,
                UnaryOp::Sqrt | UnaryOp::Rsqrt | UnaryOp::Exp | UnaryOp::Exp2 => 200,
                UnaryOp::Log | UnaryOp::Tanh | UnaryOp::Logistic | UnaryOp::Expm1 | UnaryOp::Log1p => 400,
                UnaryOp::Sin | UnaryOp::Cos | UnaryOp::Erf | UnaryOp::ErfInv => 800,
                UnaryOp::Lgamma | UnaryOp::Digamma => 2000,
                _ => 5000,
            },
            Kind::Binary(BinaryOp::Div) => 120,
            Kind::Binary(BinaryOp::Pow | BinaryOp::Atan2 | BinaryOp::Rem) => 8000,
            Kind::Binary(BinaryOp::Igamma | BinaryOp::Igammac | BinaryOp::Zeta | BinaryOp::Polygamma) => 60_000,
            Kind::IntegerPow(n) => SIMPLE * u64::from(n.unsigned_abs().max(2).ilog2()),
            _ => SIMPLE,
        }
    }

    /// Whether an elementwise node takes no longer than reading its operands.
    pub fn is_cheap(&self) -> bool {
        self.is_elementwise() && self.cost() <= SIMPLE
    }

    /// Whether a node costs more than reading its result.
    pub fn is_costly(&self) -> bool {
        match self {
            Kind::Reduce { .. }
            | Kind::ArgReduce { .. }
            | Kind::ReduceWith { .. }
            | Kind::Cumulative { .. }
            | Kind::ReduceWindow { .. }
            | Kind::Dot(_)
            | Kind::Conv(_)
            | Kind::Sort { .. }
            | Kind::TopK { .. }
            | Kind::Fft { .. }
            | Kind::Linalg(_)
            | Kind::Threefry2x32
            | Kind::While { .. }
            | Kind::Scan { .. } => true,
            _ => self.is_elementwise() && self.cost() >= COSTLY,
        }
    }
}
