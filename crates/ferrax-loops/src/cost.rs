//! A guess of the time that nodes take: what decides whether work is worth doing twice, skipping or sharing out.
//!
//! Guesses are for one thread of a machine with vectors, in nanoseconds, by what is computed alone: right within a
//! factor of ten, which is enough to tell a sum from a factorization.

use crate::graph::{Graph, Node};
use crate::kind::{BinaryOp, Kind, UnaryOp};

/// Steps that a loop is taken to have where nothing says how many.
pub const ROUNDS: u64 = 64;
/// What a call of the host is taken to last.
const HOST: u64 = 100_000;
/// What calling any kernel takes.
const CALL: u64 = 20;

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
            Kind::Dot(_) => CALL + ((size(0) as f64 * size(1) as f64 * out as f64).sqrt() / 30.0) as u64,
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
            Kind::Unary(op) => CALL + out * unary(*op) / 16,
            Kind::Binary(BinaryOp::Pow | BinaryOp::Atan2 | BinaryOp::Rem) => CALL + 4 * out,
            Kind::Binary(BinaryOp::Igamma | BinaryOp::Igammac | BinaryOp::Zeta | BinaryOp::Polygamma) => {
                CALL + 60 * out
            }
            Kind::ReduceWindow { window, .. } => {
                CALL + out.saturating_mul(window.window.iter().product::<usize>() as u64) / 4
            }
            Kind::Gather(_) | Kind::Scatter { .. } => CALL + size(2).max(out),
            Kind::ReduceWith { body, .. } => size(0).saturating_mul(CALL + body.time()),
            Kind::While { cond, body, .. } => ROUNDS.saturating_mul(cond.time().saturating_add(body.time())),
            Kind::Scan { body, length, .. } => (*length as u64).saturating_mul(CALL + body.time()),
            Kind::Switch(branches) => CALL + branches.iter().map(|b| b.time()).max().unwrap_or(0),
            Kind::Call(body) => CALL + body.time(),
            Kind::Host(_) => HOST,
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

/// Sixteenths of a nanosecond that an element takes.
fn unary(op: UnaryOp) -> u64 {
    match op {
        UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Not | UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Sign => 2,
        UnaryOp::Real | UnaryOp::Imag | UnaryOp::Conj | UnaryOp::IsFinite => 2,
        UnaryOp::Sqrt | UnaryOp::Rsqrt | UnaryOp::Exp | UnaryOp::Exp2 => 4,
        UnaryOp::Log | UnaryOp::Tanh | UnaryOp::Logistic | UnaryOp::Expm1 | UnaryOp::Log1p => 8,
        UnaryOp::Sin | UnaryOp::Cos | UnaryOp::Erf | UnaryOp::ErfInv => 16,
        UnaryOp::Lgamma | UnaryOp::Digamma => 160,
        _ => 80,
    }
}
