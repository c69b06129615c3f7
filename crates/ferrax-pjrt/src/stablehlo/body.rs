//! The vocabulary that families print with: values with their types, operations, regions, scalars of other shapes.

use super::types::{array, constant, tensor};
use super::verify::{Region, check};
use super::{Module, Places, node};
use ferrax_base::{DType, Result, Scalar, error};
use ferrax_loops::{Graph, Type};
use std::fmt::{self, Display, Write};
use std::sync::Arc;

/// A value's name in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    /// A parameter of the function.
    Argument(u32),
    /// The result of an operation, or a parameter of a region.
    Local(u32),
    /// One of several results of an operation.
    Part(u32, u32),
}

impl Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Argument(i) => write!(f, "%arg{i}"),
            Name::Local(i) => write!(f, "%{i}"),
            Name::Part(i, part) => write!(f, "%{i}#{part}"),
        }
    }
}

/// A value: its name and its type in the kernel graph.
#[derive(Clone, Debug)]
pub(crate) struct Val {
    pub(crate) name: Name,
    pub(crate) ty: Type,
}

impl Val {
    pub(crate) fn argument(i: usize, ty: &Type) -> Val {
        Val { name: Name::Argument(i as u32), ty: ty.clone() }
    }

    pub(crate) fn dtype(&self) -> DType {
        self.ty.dtype
    }

    pub(crate) fn shape(&self) -> &[usize] {
        &self.ty.shape
    }
}

/// The operations of one function, or of one region of it: names count on through all regions of a function.
pub(crate) struct Body<'m, 'a> {
    pub(crate) module: &'m mut Module<'a>,
    text: String,
    indent: usize,
    next: u32,
    /// The regions of the next operation that has some.
    regions: Vec<Region>,
    /// What stands behind operations now: where they come from.
    place: String,
}

impl<'m, 'a> Body<'m, 'a> {
    pub(crate) fn new(module: &'m mut Module<'a>, level: usize) -> Self {
        Body { module, text: String::new(), indent: 2 * level, next: 0, regions: Vec::new(), place: String::new() }
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    fn fresh(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    fn line(&mut self, line: impl Display) {
        let _ = writeln!(self.text, "{:indent$}{line}", "", indent = self.indent);
    }

    /// An operation with one result. `rest` is what stands between the operands and the types: attributes in braces, and
    /// regions in parentheses before them; empty when there is nothing.
    pub(crate) fn op(&mut self, name: &str, operands: &[&Val], rest: &str, result: &Type) -> Val {
        let id = self.fresh();
        self.write(&format!("%{id} = "), name, operands, rest, std::slice::from_ref(result));
        Val { name: Name::Local(id), ty: result.clone() }
    }

    /// An operation with any number of results.
    pub(crate) fn ops(&mut self, name: &str, operands: &[&Val], rest: &str, results: &[Type]) -> Vec<Val> {
        match results {
            [] => {
                self.write("", name, operands, rest, results);
                Vec::new()
            }
            [one] => vec![self.op(name, operands, rest, one)],
            many => {
                let id = self.fresh();
                self.write(&format!("%{id}:{} = ", many.len()), name, operands, rest, results);
                let parts = many.iter().enumerate();
                parts.map(|(i, ty)| Val { name: Name::Part(id, i as u32), ty: ty.clone() }).collect()
            }
        }
    }

    fn write(&mut self, given: &str, name: &str, operands: &[&Val], rest: &str, results: &[Type]) {
        let regions = if rest.starts_with('(') { std::mem::take(&mut self.regions) } else { Vec::new() };
        let types: Vec<&Type> = operands.iter().map(|v| &v.ty).collect();
        if let Err(fault) = check(name, &types, rest, results, &regions, &self.module.signatures) {
            self.module.fault.get_or_insert(fault);
        }
        let names: Vec<String> = operands.iter().map(|v| v.name.to_string()).collect();
        let takes: Vec<String> = operands.iter().map(|v| tensor(&v.ty)).collect();
        let gives: Vec<String> = results.iter().map(tensor).collect();
        let gap = if rest.is_empty() { "" } else { " " };
        let (names, takes, gives) = (names.join(", "), takes.join(", "), gives.join(", "));
        let place = std::mem::take(&mut self.place);
        self.line(format_args!("{given}\"{name}\"({names}){gap}{rest} : ({takes}) -> ({gives}){place}"));
        self.place = place;
    }

    /// The operation that ends a function or region.
    pub(crate) fn finish(&mut self, name: &str, results: &[Val]) {
        self.write("", name, &results.iter().collect::<Vec<_>>(), "", &[]);
    }

    /// A region with these parameters, as text `{ ... }` to stand in parentheses in an operation's `rest`.
    pub(crate) fn region(
        &mut self,
        params: &[Type],
        fill: impl FnOnce(&mut Body<'_, 'a>, &[Val]) -> Result<Vec<Val>>,
    ) -> Result<String> {
        let args: Vec<Val> = params.iter().map(|ty| Val { name: Name::Local(self.fresh()), ty: ty.clone() }).collect();
        let (indent, next) = (self.indent + 2, self.next);
        let (text, place) = (String::new(), self.place.clone());
        let mut inner = Body { module: &mut *self.module, text, indent, next, regions: Vec::new(), place };
        let results = fill(&mut inner, &args)?;
        inner.finish("stablehlo.return", &results);
        let (text, next) = (inner.text, inner.next);
        self.next = next;
        self.regions.push(Region { params: params.to_vec(), results: results.into_iter().map(|r| r.ty).collect() });
        let listed: Vec<String> = args.iter().map(|a| format!("{}: {}", a.name, tensor(&a.ty))).collect();
        let head = if args.is_empty() {
            String::new()
        } else {
            format!("{:w$}^bb0({}):\n", "", listed.join(", "), w = self.indent)
        };
        Ok(format!("{{\n{head}{text}{:w$}}}", "", w = self.indent))
    }

    /// The nodes of a graph with its parameters bound to `args`; gives its results.
    pub(crate) fn inline(&mut self, graph: &Graph, args: &[Val]) -> Result<Vec<Val>> {
        self.inline_at(graph, args, None)
    }

    /// As [`Body::inline`], with the places where the nodes come from behind their operations.
    pub(crate) fn inline_at(&mut self, graph: &Graph, args: &[Val], places: Option<&Places>) -> Result<Vec<Val>> {
        let mut values: Vec<Val> = args.to_vec();
        for (i, value) in values.iter_mut().enumerate() {
            self.constrain(value, i as u32, places);
        }
        for n in &graph.nodes {
            if let Some(places) = places {
                self.place = places.value(n.first.0);
            }
            let inputs: Vec<Val> = n.inputs.iter().map(|v| values[v.0 as usize].clone()).collect();
            let mut results = node(self, graph, n, &inputs)?;
            if let Some(fault) = self.module.fault.take() {
                return Err(error!(Internal, "{:?} is printed as an ill-typed program: {fault}", n.kind));
            }
            let given: Vec<&Type> = results.iter().map(|r| &r.ty).collect();
            let wanted: Vec<&Type> = n.outputs().map(|v| graph.ty(v)).collect();
            if given != wanted {
                return Err(error!(Internal, "{:?} is printed with results {given:?}, not {wanted:?}", n.kind));
            }
            for (v, result) in n.outputs().zip(&mut results) {
                self.constrain(result, v.0, places);
            }
            values.extend(results);
        }
        if places.is_some() {
            self.place.clear();
        }
        Ok(graph.outputs.iter().map(|v| values[v.0 as usize].clone()).collect())
    }

    /// The value with the shardings that the program says it has.
    fn constrain(&mut self, value: &mut Val, number: u32, places: Option<&Places>) {
        for (_, sharding) in places.iter().flat_map(|p| &p.shardings).filter(|(v, _)| *v == number) {
            let id = self.fresh();
            self.line(format!("%{id} = sdy.sharding_constraint {} {sharding} : {}", value.name, tensor(&value.ty)));
            value.name = Name::Local(id);
        }
    }

    /// A comment for whoever makes the text readable: what there is to say of the operations that give these values.
    pub(crate) fn note(&mut self, what: &str, results: &[Val], said: &str) {
        for v in results.iter().filter(|_| !said.is_empty()) {
            if let Name::Local(id) | Name::Part(id, _) = v.name {
                self.line(format!("// {what} %{id} {said}"));
            }
        }
    }

    /// A call of the function that a nested graph becomes, printed once in the module.
    pub(crate) fn call(&mut self, graph: &Arc<Graph>, args: &[Val]) -> Result<Vec<Val>> {
        let name = self.module.function_of(graph)?;
        let results: Vec<Type> = graph.outputs.iter().map(|&v| graph.ty(v).clone()).collect();
        let operands: Vec<&Val> = args.iter().collect();
        Ok(self.ops("func.call", &operands, &format!("{{callee = {name}}}"), &results))
    }

    /// A scalar in every place of a shape.
    pub(crate) fn splat(&mut self, scalar: Scalar, shape: &[usize]) -> Val {
        let ty = Type::new(scalar.dtype, shape);
        let value = constant(scalar, &ty);
        self.op("stablehlo.constant", &[], &format!("{{value = {value}}}"), &ty)
    }

    /// A rank-0 value in every place of a shape; one of that shape itself.
    pub(crate) fn spread(&mut self, x: &Val, shape: &[usize]) -> Val {
        if x.shape() == shape {
            return x.clone();
        }
        self.broadcast(x, shape, &[])
    }

    /// `stablehlo.broadcast_in_dim`: axis i of x becomes axis `dims[i]`.
    pub(crate) fn broadcast(&mut self, x: &Val, shape: &[usize], dims: &[usize]) -> Val {
        let rest = format!("{{broadcast_dimensions = {}}}", array(dims));
        self.op("stablehlo.broadcast_in_dim", &[x], &rest, &Type::new(x.dtype(), shape))
    }

    /// An operation of one operand whose result has the operand's type.
    pub(crate) fn un(&mut self, name: &str, x: &Val) -> Val {
        self.op(name, &[x], "", &x.ty)
    }

    /// An operation of two operands whose result has the first one's type.
    pub(crate) fn bin(&mut self, name: &str, x: &Val, y: &Val) -> Val {
        self.op(name, &[x, y], "", &x.ty)
    }

    /// A number in every place of x's shape, as x's dtype.
    pub(crate) fn like(&mut self, x: &Val, value: f64) -> Val {
        self.splat(Scalar::from_f64(x.dtype(), value), x.shape())
    }

    /// x compared with y: `EQ`, `NE`, `LT`, `LE`, `GT` or `GE`; complex numbers by `EQ` and `NE` alone.
    pub(crate) fn compare(&mut self, direction: &str, x: &Val, y: &Val) -> Val {
        let kind = match x.dtype() {
            d if d.is_float() || d.is_complex() => "FLOAT",
            d if d.is_signed() => "SIGNED",
            _ => "UNSIGNED",
        };
        self.compare_as(kind, direction, x, y)
    }

    /// x compared with y in the sense of a comparison type of the dialect.
    pub(crate) fn compare_as(&mut self, kind: &str, direction: &str, x: &Val, y: &Val) -> Val {
        let rest = format!(
            "{{comparison_direction = #stablehlo<comparison_direction {direction}>, \
             compare_type = #stablehlo<comparison_type {kind}>}}"
        );
        self.op("stablehlo.compare", &[x, y], &rest, &Type::new(DType::Bool, x.shape()))
    }

    /// `on_true` where `pred`, which may be of rank 0, else `on_false`.
    pub(crate) fn select(&mut self, pred: &Val, on_true: &Val, on_false: &Val) -> Val {
        self.op("stablehlo.select", &[pred, on_true, on_false], "", &on_true.ty)
    }

    /// The bits of x as another dtype of the same width.
    pub(crate) fn bits(&mut self, x: &Val, dtype: DType) -> Val {
        self.op("stablehlo.bitcast_convert", &[x], "", &Type::new(dtype, x.shape()))
    }

    /// The real part of complex numbers.
    pub(crate) fn real(&mut self, x: &Val) -> Val {
        self.op("stablehlo.real", &[x], "", &Type::new(x.dtype().real(), x.shape()))
    }

    /// The imaginary part of complex numbers.
    pub(crate) fn imag(&mut self, x: &Val) -> Val {
        self.op("stablehlo.imag", &[x], "", &Type::new(x.dtype().real(), x.shape()))
    }

    /// Complex numbers of their parts.
    pub(crate) fn complex(&mut self, re: &Val, im: &Val) -> Val {
        self.op("stablehlo.complex", &[re, im], "", &Type::new(re.dtype().to_complex(), re.shape()))
    }

    /// The part of a shape that begins at an index.
    pub(crate) fn slice(&mut self, x: &Val, start: &[usize], shape: &[usize]) -> Val {
        let limit: Vec<usize> = start.iter().zip(shape).map(|(s, n)| s + n).collect();
        self.strided_slice(x, (start, &limit, &vec![1; shape.len()]), shape)
    }

    /// What a slice takes of each axis: from where, to where, in which steps.
    pub(crate) fn strided_slice(
        &mut self,
        x: &Val,
        (start, limit, strides): (&[usize], &[usize], &[usize]),
        shape: &[usize],
    ) -> Val {
        let (start, limit, strides) = (array(start), array(limit), array(strides));
        let rest = format!("{{start_indices = {start}, limit_indices = {limit}, strides = {strides}}}");
        self.op("stablehlo.slice", &[x], &rest, &Type::new(x.dtype(), shape))
    }

    /// The part of a shape that begins at an index of scalars, as far as it has room.
    pub(crate) fn dynamic_slice(&mut self, x: &Val, starts: &[&Val], shape: &[usize]) -> Val {
        let operands: Vec<&Val> = [x].into_iter().chain(starts.iter().copied()).collect();
        let rest = format!("{{slice_sizes = {}}}", array(shape));
        self.op("stablehlo.dynamic_slice", &operands, &rest, &Type::new(x.dtype(), shape))
    }

    /// Arrays joined along an axis.
    pub(crate) fn concat(&mut self, parts: &[&Val], axis: usize) -> Val {
        let mut ty = parts[0].ty.clone();
        ty.shape[axis] = parts.iter().map(|p| p.shape()[axis]).sum();
        self.op("stablehlo.concatenate", parts, &format!("{{dimension = {axis} : i64}}"), &ty)
    }

    /// The index along an axis.
    pub(crate) fn iota(&mut self, dtype: DType, shape: &[usize], axis: usize) -> Val {
        let rest = format!("{{iota_dimension = {axis} : i64}}");
        self.op("stablehlo.iota", &[], &rest, &Type::new(dtype, shape))
    }

    /// x as another dtype, by `stablehlo.convert`, whose values the two dtypes have in common: see `convert.rs` for others.
    pub(crate) fn convert(&mut self, x: &Val, dtype: DType) -> Val {
        if x.dtype() == dtype {
            return x.clone();
        }
        self.op("stablehlo.convert", &[x], "", &Type::new(dtype, x.shape()))
    }

    /// The same elements in another shape.
    pub(crate) fn reshape(&mut self, x: &Val, shape: &[usize]) -> Val {
        if x.shape() == shape {
            return x.clone();
        }
        self.op("stablehlo.reshape", &[x], "", &Type::new(x.dtype(), shape))
    }
}
