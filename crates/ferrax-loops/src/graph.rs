//! Graphs of nodes in SSA form, and the builder that lowerings use.
//!
//! Invariants (checked in debug builds by [`Graph::verify`]): a node's inputs are defined before it; types
//! are recorded for every value; results of a node are numbered consecutively.

use crate::host::HostRef;
use crate::kind::{BinaryOp, CompareOp, Kind, ReduceOp, UnaryOp};
use ferrax_base::{Aval, DType, Scalar, Shape};
use smallvec::SmallVec;

/// The number of a value in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub u32);

/// Dtype and shape of a value: an aval without a weak type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Type {
    /// Element type.
    pub dtype: DType,
    /// Dimensions.
    pub shape: Shape,
}

impl Type {
    /// A type from its parts.
    pub fn new(dtype: DType, shape: &[usize]) -> Self {
        Type { dtype, shape: Shape::from_slice(shape) }
    }

    /// Number of elements.
    pub fn size(&self) -> usize {
        ferrax_base::shape::size(&self.shape)
    }

    /// Number of bytes.
    pub fn bytes(&self) -> usize {
        self.size().saturating_mul(self.dtype.size())
    }
}

impl From<&Aval> for Type {
    fn from(a: &Aval) -> Self {
        Type { dtype: a.dtype, shape: a.shape.clone() }
    }
}

/// One operation: inputs, what it computes, and the first of its consecutive result values.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it computes.
    pub kind: Kind,
    /// Operands.
    pub inputs: SmallVec<[ValueId; 3]>,
    /// The first result; the others follow.
    pub first: ValueId,
    /// Number of results.
    pub results: u32,
}

impl Node {
    /// The result values.
    pub fn outputs(&self) -> impl Iterator<Item = ValueId> + use<> {
        (self.first.0..self.first.0 + self.results).map(ValueId)
    }
}

/// A program: parameters are the values `0..params`, then each node's results in order.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Number of parameters.
    pub params: usize,
    /// The type of every value.
    pub types: Vec<Type>,
    /// Operations in execution order.
    pub nodes: Vec<Node>,
    /// Results.
    pub outputs: Vec<ValueId>,
}

impl Graph {
    /// The type of a value.
    pub fn ty(&self, v: ValueId) -> &Type {
        &self.types[v.0 as usize]
    }

    /// The node that makes a value; none makes a parameter.
    pub fn maker(&self, v: ValueId) -> Option<&Node> {
        // Values are numbered in the order of nodes.
        let at = self.nodes.partition_point(|n| n.first <= v).checked_sub(1)?;
        Some(&self.nodes[at]).filter(|n| v.0 - n.first.0 < n.results)
    }

    /// The parameters' types.
    pub fn param_types(&self) -> &[Type] {
        &self.types[..self.params]
    }

    /// Which result takes each parameter's memory: every result, in order, that of the first donated parameter of its
    /// type that no result before it took. A donated parameter without a result is not usable.
    pub fn aliases(&self, donated: &[bool]) -> Vec<Option<usize>> {
        let mut taken = vec![None; self.params];
        for (k, &out) in self.outputs.iter().enumerate() {
            let free = |&i: &usize| donated.get(i) == Some(&true) && taken[i].is_none();
            let found = (0..self.params).filter(free).find(|&i| self.types[i] == *self.ty(out));
            if let Some(i) = found {
                taken[i] = Some(k);
            }
        }
        taken
    }

    /// Whether a run may call the host.
    pub fn calls_host(&self) -> bool {
        self.of_host_calls(&|_| Some(())).is_some()
    }

    /// The first that there is of the calls of the host, those in bodies too.
    pub fn of_host_calls<R>(&self, of: &dyn Fn(&HostRef) -> Option<R>) -> Option<R> {
        self.nodes.iter().find_map(|node| node.kind.of_host_calls(of))
    }

    /// Whether every invariant of this module holds; the text says which does not.
    pub fn verify(&self) -> Result<(), String> {
        let mut defined = self.params as u32;
        for (i, node) in self.nodes.iter().enumerate() {
            if let Some(v) = node.inputs.iter().find(|v| v.0 >= defined) {
                return Err(format!("node {i} uses {v:?} before it is defined"));
            }
            if node.first.0 != defined {
                return Err(format!("node {i} numbers its results from {:?}, not {defined}", node.first));
            }
            defined += node.results;
        }
        if defined as usize != self.types.len() {
            return Err(format!("{} values but {} types", defined, self.types.len()));
        }
        match self.outputs.iter().find(|v| v.0 >= defined) {
            Some(v) => Err(format!("output {v:?} is not defined")),
            None => Ok(()),
        }
    }
}

/// Builds a graph node by node. Constants are shared.
#[derive(Debug, Default)]
pub struct Builder {
    graph: Graph,
}

impl Builder {
    /// A graph with these parameters.
    pub fn new(params: impl IntoIterator<Item = Type>) -> Self {
        let types: Vec<Type> = params.into_iter().collect();
        Builder { graph: Graph { params: types.len(), types, nodes: Vec::new(), outputs: Vec::new() } }
    }

    /// The values of the parameters.
    pub fn params(&self) -> impl Iterator<Item = ValueId> + use<> {
        (0..self.graph.params as u32).map(ValueId)
    }

    /// The type of a value.
    pub fn ty(&self, v: ValueId) -> &Type {
        self.graph.ty(v)
    }

    /// The finished graph.
    pub fn finish(mut self, outputs: &[ValueId]) -> Graph {
        self.graph.outputs = outputs.to_vec();
        debug_assert_eq!(self.graph.verify(), Ok(()));
        self.graph
    }

    /// Appends a node with several results.
    pub fn push_many(&mut self, kind: Kind, inputs: &[ValueId], results: &[Type]) -> SmallVec<[ValueId; 1]> {
        let first = ValueId(self.graph.types.len() as u32);
        self.graph.types.extend_from_slice(results);
        self.graph.nodes.push(Node {
            kind,
            inputs: SmallVec::from_slice(inputs),
            first,
            results: results.len() as u32,
        });
        (first.0..first.0 + results.len() as u32).map(ValueId).collect()
    }

    /// Appends a node with one result.
    pub fn push(&mut self, kind: Kind, inputs: &[ValueId], result: Type) -> ValueId {
        self.push_many(kind, inputs, std::slice::from_ref(&result))[0]
    }

    /// A rank-0 constant.
    pub fn scalar(&mut self, s: Scalar) -> ValueId {
        let found = self
            .graph
            .nodes
            .iter()
            .rev()
            .take(16)
            .find(|n| matches!(n.kind, Kind::Const(c) if c == s) && self.graph.ty(n.first).shape.is_empty());
        match found {
            Some(n) => n.first,
            None => self.push(Kind::Const(s), &[], Type::new(s.dtype, &[])),
        }
    }

    /// A rank-0 float constant of `dtype`.
    pub fn float(&mut self, dtype: DType, v: f64) -> ValueId {
        self.scalar(Scalar::from_f64(dtype, v))
    }

    fn elementwise_shape(&self, inputs: &[ValueId]) -> Shape {
        inputs.iter().map(|&v| &self.ty(v).shape).find(|s| !s.is_empty()).cloned().unwrap_or_default()
    }

    /// f(x).
    pub fn unary(&mut self, op: UnaryOp, x: ValueId) -> ValueId {
        let mut ty = self.ty(x).clone();
        match op {
            UnaryOp::IsFinite => ty.dtype = DType::Bool,
            UnaryOp::Abs | UnaryOp::Real | UnaryOp::Imag => ty.dtype = ty.dtype.real(),
            _ => {}
        }
        self.push(Kind::Unary(op), &[x], ty)
    }

    /// f(x, y).
    pub fn binary(&mut self, op: BinaryOp, x: ValueId, y: ValueId) -> ValueId {
        let dtype = self.ty(x).dtype;
        let dtype = if op == BinaryOp::Complex { dtype.to_complex() } else { dtype };
        let shape = self.elementwise_shape(&[x, y]);
        self.push(Kind::Binary(op), &[x, y], Type { dtype, shape })
    }

    /// x compared with y.
    pub fn compare(&mut self, op: CompareOp, x: ValueId, y: ValueId) -> ValueId {
        let shape = self.elementwise_shape(&[x, y]);
        self.push(Kind::Compare(op), &[x, y], Type { dtype: DType::Bool, shape })
    }

    /// `on_true` where `pred`, else `on_false`.
    pub fn select(&mut self, pred: ValueId, on_false: ValueId, on_true: ValueId) -> ValueId {
        let ty = Type { dtype: self.ty(on_true).dtype, shape: self.elementwise_shape(&[on_true, on_false, pred]) };
        self.push(Kind::Select, &[pred, on_false, on_true], ty)
    }

    /// x as another dtype.
    pub fn convert(&mut self, x: ValueId, dtype: DType) -> ValueId {
        if self.ty(x).dtype == dtype {
            return x;
        }
        let ty = Type { dtype, shape: self.ty(x).shape.clone() };
        self.push(Kind::Convert, &[x], ty)
    }

    /// x broadcast to `shape`, its axes mapped by `dims`.
    pub fn broadcast(&mut self, x: ValueId, shape: &[usize], dims: &[usize]) -> ValueId {
        let dtype = self.ty(x).dtype;
        self.push(Kind::Broadcast(SmallVec::from_slice(dims)), &[x], Type::new(dtype, shape))
    }

    /// x with another shape of the same size.
    pub fn reshape(&mut self, x: ValueId, shape: &[usize]) -> ValueId {
        if self.ty(x).shape.as_slice() == shape {
            return x;
        }
        let dtype = self.ty(x).dtype;
        self.push(Kind::Reshape, &[x], Type::new(dtype, shape))
    }

    /// x reduced over `axes`; what is reduced of one element is that element.
    pub fn reduce(&mut self, op: ReduceOp, x: ValueId, axes: &[usize]) -> ValueId {
        let ty = self.ty(x);
        let kept = ty.shape.iter().enumerate().filter(|(i, _)| !axes.contains(i)).map(|(_, &d)| d);
        let alone = axes.iter().all(|&a| ty.shape[a] == 1);
        let ty = Type { dtype: ty.dtype, shape: kept.collect() };
        if alone {
            return self.reshape(x, &ty.shape);
        }
        self.push(Kind::Reduce { op, axes: SmallVec::from_slice(axes) }, &[x], ty)
    }

    /// The index along `axis`.
    pub fn iota(&mut self, dtype: DType, shape: &[usize], axis: usize) -> ValueId {
        self.push(Kind::Iota(axis), &[], Type::new(dtype, shape))
    }

    /// Appends another graph's nodes with its parameters bound to `args`; gives its outputs.
    pub fn inline(&mut self, graph: &Graph, args: &[ValueId]) -> SmallVec<[ValueId; 1]> {
        let mut map: Vec<ValueId> = args.to_vec();
        for node in &graph.nodes {
            let inputs: SmallVec<[ValueId; 3]> = node.inputs.iter().map(|v| map[v.0 as usize]).collect();
            let types: SmallVec<[Type; 1]> = node.outputs().map(|v| graph.ty(v).clone()).collect();
            let outs = self.push_many(node.kind.clone(), &inputs, &types);
            map.extend(outs);
        }
        graph.outputs.iter().map(|v| map[v.0 as usize]).collect()
    }
}
