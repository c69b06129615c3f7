//! Transpositions around products: no copies, and the bits of the products with copies.

use ferrax_base::Arg;
use ferrax_base::{Buffer, DType};
use ferrax_cpu::{Program, eager};
use ferrax_loops::passes::fold_transpositions;
use ferrax_loops::{Builder, DotDims, Graph, Kind, Type, ValueId};
use smallvec::SmallVec;
use std::sync::Arc;

fn floats(n: usize, seed: usize) -> Buffer {
    let bytes: Vec<u8> = (0..n).flat_map(|i| (((i * 7919 + seed) % 997) as f32 / 997.0 - 0.4).to_le_bytes()).collect();
    Buffer::from_bytes(&bytes).unwrap()
}

/// A graph of one product with transpositions before and after it, batched, and how many of them remain.
fn build(shapes: [&[usize]; 2], perms: [&[usize]; 3], dims: DotDims) -> Graph {
    let mut b = Builder::new(shapes.map(|s| Type::new(DType::F32, s)));
    let params: Vec<ValueId> = b.params().collect();
    let transposed = |b: &mut Builder, v: ValueId, perm: &[usize]| {
        let shape: Vec<usize> = perm.iter().map(|&p| b.ty(v).shape[p]).collect();
        b.push(Kind::Transpose(perm.into()), &[v], Type::new(DType::F32, &shape))
    };
    let x = transposed(&mut b, params[0], perms[0]);
    let y = transposed(&mut b, params[1], perms[1]);
    let out = |b: &Builder, v: ValueId, batch: &[usize], contract: &[usize]| -> Vec<usize> {
        let shape = &b.ty(v).shape;
        (0..shape.len()).filter(|a| !batch.contains(a) && !contract.contains(a)).map(|a| shape[a]).collect()
    };
    let mut shape: Vec<usize> = dims.lhs_batch.iter().map(|&a| b.ty(x).shape[a]).collect();
    shape.extend(out(&b, x, &dims.lhs_batch, &dims.lhs_contract));
    shape.extend(out(&b, y, &dims.rhs_batch, &dims.rhs_contract));
    let z = b.push(Kind::Dot(Box::new(dims)), &[x, y], Type::new(DType::F32, &shape));
    let z = transposed(&mut b, z, perms[2]);
    b.finish(&[z])
}

/// Runs a graph as it is given, node by node.
fn by_node(g: &Graph, params: &[Buffer]) -> Buffer {
    let mut values: Vec<Buffer> = params.iter().map(|p| Buffer::from_bytes(p.bytes()).unwrap()).collect();
    for node in &g.nodes {
        let ins: Vec<(&Type, &Buffer)> = node.inputs.iter().map(|&v| (g.ty(v), &values[v.0 as usize])).collect();
        let out = eager::run_node(&node.kind, &ins, &[g.ty(node.first).clone()]).unwrap();
        values.extend(out);
    }
    values.pop().unwrap()
}

#[test]
fn products_without_copies_have_the_same_bits() {
    let axes = |a: &[usize]| SmallVec::from_slice(a);
    let flat = DotDims { lhs_contract: axes(&[1]), rhs_contract: axes(&[0]), ..DotDims::default() };
    let batched = DotDims {
        lhs_contract: axes(&[2]),
        rhs_contract: axes(&[1]),
        lhs_batch: axes(&[0]),
        rhs_batch: axes(&[0]),
        ..DotDims::default()
    };
    let cases: [([&[usize]; 2], [&[usize]; 3], DotDims, bool); 4] = [
        ([&[40, 30], &[50, 40]], [&[1, 0], &[1, 0], &[1, 0]], flat.clone(), true),
        ([&[30, 300], &[70, 300]], [&[0, 1], &[1, 0], &[1, 0]], flat.clone(), true),
        ([&[3, 20, 9], &[9, 30, 3]], [&[0, 1, 2], &[2, 0, 1], &[0, 2, 1]], batched, true),
        ([&[40, 30], &[1, 40]], [&[1, 0], &[1, 0], &[1, 0]], flat, false),
    ];
    for (shapes, perms, dims, folds) in cases {
        let g = build(shapes, perms, dims);
        let params: Vec<Buffer> = shapes.iter().enumerate().map(|(i, s)| floats(s.iter().product(), i)).collect();
        let want = by_node(&g, &params);
        let program = fold_transpositions(Arc::new(g.clone()));
        let last = &program.nodes[program.nodes.len() - 1];
        assert_eq!(matches!(last.kind, Kind::Dot(_)), folds);
        assert_eq!(folds, last.inputs.iter().all(|v| v.0 < 2), "operands are the parameters");
        let mut args: SmallVec<[Arg<'_>; 4]> = params.iter().map(Arg::Host).collect();
        let got = Program::compile(Arc::new(g)).unwrap().run(&mut args).unwrap();
        assert_eq!(got[0].bytes(), want.bytes());
    }
}
