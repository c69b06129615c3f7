//! What a graph becomes before its nodes are grouped: calls are inlined, barriers go, nodes without a kernel of their own
//! become simpler ones (`ferrax_loops::expand`), and concatenations of many parts become some of few. A Fourier transform that
//! is left is one that a library does, which divides by nothing, and a factorization with codes behind its results is a library's.

use super::factors::factored;
use super::narrow;
use super::products::{convolution, product};
use crate::routine::{Libraries, is_long};
use ferrax_base::{DType, Result, bail};
use ferrax_loops::expand::{divided_transform, expansion, transform};
use ferrax_loops::linalg::LinalgOp;
use ferrax_loops::passes::live_nodes;
use ferrax_loops::{BinaryOp, Builder, Graph, Kind, Node, ReduceOp, Type, UnaryOp, ValueId};
use smallvec::SmallVec;

/// Parts of a concatenation that a kernel takes.
const PARTS: usize = 16;

type Values = SmallVec<[ValueId; 1]>;

/// The graph in nodes that have kernels or steps.
pub fn rewrite(g: &Graph, libraries: Libraries) -> Result<Graph> {
    let mut b = Builder::new(g.types[..g.params].iter().cloned());
    let args: Vec<ValueId> = b.params().collect();
    let outputs = append(&mut b, g, &args, libraries)?;
    Ok(b.finish(&outputs))
}

/// Appends a graph's nodes.
fn append(b: &mut Builder, g: &Graph, args: &[ValueId], l: Libraries) -> Result<Vec<ValueId>> {
    let mut map = args.to_vec();
    for (node, live) in g.nodes.iter().zip(live_nodes(g)) {
        if !live {
            map.extend(node.outputs().map(|_| ValueId(u32::MAX)));
            continue;
        }
        let mut inputs: Vec<ValueId> = node.inputs.iter().map(|v| map[v.0 as usize]).collect();
        if let Kind::Conv(dims) = &node.kind
            && let Some(narrow) = narrow::operands(b, g, &map, dims, node)
        {
            inputs = narrow.to_vec();
        }
        let types: Vec<Type> = node.outputs().map(|v| g.ty(v).clone()).collect();
        map.extend(one(b, node, &inputs, &types, l)?);
    }
    Ok(g.outputs.iter().map(|v| map[v.0 as usize]).collect())
}

fn one(b: &mut Builder, node: &Node, inputs: &[ValueId], results: &[Type], l: Libraries) -> Result<Values> {
    match &node.kind {
        Kind::Barrier => Ok(inputs.iter().copied().collect()),
        Kind::Call(body) => Ok(append(b, body, inputs, l)?.into_iter().collect()),
        Kind::Concat(axis) => Ok(SmallVec::from_elem(concat(b, inputs, *axis), 1)),
        Kind::Dot(dims) => Ok(SmallVec::from_elem(product(b, dims, [inputs[0], inputs[1]], &results[0], l), 1)),
        kind => {
            if let Kind::Conv(dims) = kind
                && let Some(result) = convolution(b, dims, [inputs[0], inputs[1]], &results[0], l)
            {
                return Ok(SmallVec::from_elem(result, 1));
            }
            let operands: Vec<Type> = inputs.iter().map(|&v| b.ty(v).clone()).collect();
            // A special function of a narrow float is computed in single precision and rounded once.
            if special(kind) && operands[0].dtype.is_float() && operands[0].dtype.size() < 4 {
                let wide: Vec<ValueId> = inputs.iter().map(|&v| b.convert(v, DType::F32)).collect();
                let ty = Type { dtype: DType::F32, shape: results[0].shape.clone() };
                let y = one(b, node, &wide, &[ty], l)?;
                return Ok(SmallVec::from_elem(b.convert(y[0], results[0].dtype), 1));
            }
            if !takes(kind, &operands) {
                bail!(NotImplemented, "the CUDA engine has no {kind:?} for {}", operands[0].dtype);
            }
            let graph = match kind {
                Kind::Fft { kind, axes } if l.transforms && is_long(*kind, *axes, &operands[0], &results[0]) => {
                    let divided = divided_transform(*kind, *axes, &operands[0], &results[0])?;
                    return Ok(b.inline(&divided, inputs).into_iter().collect());
                }
                Kind::Fft { kind, axes } => Some(transform(*kind, *axes, &operands[0], &results[0])?),
                Kind::Linalg(op) if let Some(values) = factored(b, *op, inputs, results, l) => return Ok(values.into()),
                kind if expands(kind) => expansion(kind, &operands, results)?,
                _ => None,
            };
            match graph {
                Some(graph) => Ok(append(b, &graph, inputs, l)?.into_iter().collect()),
                None => Ok(b.push_many(kind.clone(), inputs, results)),
            }
        }
    }
}

/// Parts one behind the other.
pub fn concat(b: &mut Builder, parts: &[ValueId], axis: usize) -> ValueId {
    if let [only] = parts {
        return *only;
    }
    if parts.len() > PARTS {
        let fewer: Vec<ValueId> = parts.chunks(PARTS).map(|some| concat(b, some, axis)).collect();
        return concat(b, &fewer, axis);
    }
    let mut ty = b.ty(parts[0]).clone();
    ty.shape[axis] = parts.iter().map(|&v| b.ty(v).shape[axis]).sum();
    b.push(Kind::Concat(axis), parts, ty)
}

fn special(kind: &Kind) -> bool {
    use UnaryOp::*;
    match kind {
        Kind::Unary(op) => matches!(op, Erf | Erfc | ErfInv | Lgamma | Digamma | BesselI0e | BesselI1e),
        Kind::Binary(op) => matches!(op, BinaryOp::Igamma | BinaryOp::Igammac | BinaryOp::Zeta | BinaryOp::Polygamma),
        _ => false,
    }
}

/// Whether a node has no kernel of its own.
fn expands(kind: &Kind) -> bool {
    special(kind)
        || match kind {
            Kind::Cumulative { op, .. } => *op == ReduceOp::LogSumExp,
            Kind::Linalg(LinalgOp::PivotsToPermutation) => false,
            Kind::Sort { .. } | Kind::TopK { .. } | Kind::Threefry2x32 | Kind::Linalg(_) => true,
            _ => false,
        }
}

/// Whether there are simpler nodes for a node of these operands, if it needs some.
fn takes(kind: &Kind, operands: &[Type]) -> bool {
    let sorts = |ty: &Type| ty.dtype.is_number() || ty.dtype.is_bool();
    match kind {
        kind if special(kind) => operands[0].dtype.is_float(),
        Kind::Cumulative { op: ReduceOp::LogSumExp, .. } => operands[0].dtype.is_float(),
        Kind::Sort { num_keys, .. } => operands[..*num_keys].iter().all(sorts),
        Kind::TopK { .. } => sorts(&operands[0]),
        _ => true,
    }
}

/// A scan's body as that of a loop over (number of the step: int64, constants, carry, whole stacked operands, whole stacked
/// results), which gives (carry, whole stacked results).
pub fn scan_body(body: &Graph, length: usize, reverse: bool, consts: usize, carry: usize) -> Result<Graph> {
    let stacked = |ty: &Type| {
        let shape: Vec<usize> = std::iter::once(length).chain(ty.shape.iter().copied()).collect();
        Type::new(ty.dtype, &shape)
    };
    if body.params < consts + carry || body.outputs.len() < carry {
        bail!(Internal, "a scan's body has too few parameters or results");
    }
    let (own, xs) = body.types[..body.params].split_at(consts + carry);
    let ys: Vec<Type> = body.outputs[carry..].iter().map(|&v| body.ty(v).clone()).collect();
    let params =
        std::iter::once(Type::new(DType::I64, &[])).chain(own.iter().cloned()).chain(xs.iter().chain(&ys).map(stacked));
    let mut b = Builder::new(params);
    let all: Vec<ValueId> = b.params().collect();
    let int = |b: &mut Builder, v: usize| b.scalar(ferrax_base::Scalar::from_i64(DType::I64, v as i64));
    let (mut at, zero) = (all[0], int(&mut b, 0));
    if reverse {
        let last = int(&mut b, length - 1);
        at = b.binary(BinaryOp::Sub, last, at);
    }
    let mut args: Vec<ValueId> = all[1..=consts + carry].to_vec();
    for (k, ty) in xs.iter().enumerate() {
        let mut row = stacked(ty);
        row.shape[0] = 1;
        let inputs: Vec<ValueId> =
            [all[1 + consts + carry + k], at].into_iter().chain(ty.shape.iter().map(|_| zero)).collect();
        let row = b.push(Kind::DynamicSlice, &inputs, row);
        args.push(b.reshape(row, &ty.shape));
    }
    let mut outputs: Vec<ValueId> = b.inline(body, &args).to_vec();
    for (k, ty) in ys.iter().enumerate() {
        let (whole, mut row) = (all[1 + body.params + k], stacked(ty).shape);
        row[0] = 1;
        let row = b.reshape(outputs[carry + k], &row);
        let inputs: Vec<ValueId> = [whole, row, at].into_iter().chain(ty.shape.iter().map(|_| zero)).collect();
        outputs[carry + k] = b.push(Kind::DynamicUpdateSlice, &inputs, stacked(ty));
    }
    Ok(b.finish(&outputs))
}
