//! Elements of values that are other values' elements: places as functions of places.
//!
//! Read next: `body.rs`, whose functions these are.

use super::body::{At, Body};
use super::convert::{convert, joined_bits, part_of_bits, same_bits};
use super::types::{c_type, literal};
use ferrax_base::{DType, Result, bail};
use ferrax_loops::{Gathering, IndexMode, Kind, Node, PadConfig, ValueId};
use smallvec::SmallVec;

type Axes = SmallVec<[String; 4]>;

impl Body<'_> {
    /// The element of a node that moves elements.
    pub(super) fn moved(&mut self, node: &Node, v: ValueId, at: At) -> Result<String> {
        let g = self.g;
        let (ty, x) = (g.ty(v), node.inputs.first().copied());
        let Some(x) = x else {
            let Kind::Iota(axis) = node.kind else { bail!(Internal, "{:?} has no operand", node.kind) };
            let axes = self.axes(at, &ty.shape);
            let long = self.named("long long", 'j', format!("(long long){}", axes[axis]));
            let text = convert(&long, DType::I64, ty.dtype)?;
            return Ok(self.named(c_type(ty.dtype), 't', text));
        };
        let from = &g.ty(x).shape;
        match &node.kind {
            Kind::Reshape => {
                let number = self.number(at, &ty.shape);
                let at = self.linear(&number);
                self.element(x, at)
            }
            Kind::Broadcast(dims) => {
                let axes = self.axes(at, &ty.shape);
                let same = from.iter().filter(|&&n| n != 1).eq(ty.shape.iter().filter(|&&n| n != 1))
                    && dims.windows(2).all(|d| d[0] < d[1]);
                if same && self.is_linear(at) {
                    return self.element(x, at);
                }
                let pick = |(k, &d): (usize, &usize)| if from[k] == 1 { "0".to_owned() } else { axes[d].clone() };
                let at = self.at_axes(dims.iter().enumerate().map(pick));
                self.element(x, at)
            }
            Kind::Transpose(perm) => {
                let axes = self.axes(at, &ty.shape);
                let mut of = axes.clone();
                perm.iter().zip(&axes).for_each(|(&p, axis)| of[p].clone_from(axis));
                let at = self.at_axes(of);
                self.element(x, at)
            }
            Kind::Slice(dims) => {
                let axes = self.axes(at, &ty.shape);
                let mut of = Axes::new();
                for (k, axis) in axes.iter().enumerate() {
                    of.push(self.stepped(axis, dims.start[k], dims.stride[k]));
                }
                let at = self.at_axes(of);
                self.element(x, at)
            }
            Kind::Rev(turned) => {
                let mut axes = self.axes(at, &ty.shape);
                for &a in turned {
                    axes[a] = self.index(format!("{} - {}", ty.shape[a].max(1) - 1, axes[a]));
                }
                let at = self.at_axes(axes);
                self.element(x, at)
            }
            Kind::Pad(config) => self.padded(node, config, v, at),
            Kind::Concat(axis) => self.joined(node, *axis, v, at),
            Kind::DynamicSlice => {
                let axes = self.axes(at, &ty.shape);
                let starts = self.starts(&node.inputs[1..], from, &ty.shape)?;
                let mut of = Axes::new();
                for (start, axis) in starts.iter().zip(&axes) {
                    of.push(self.sum(start, axis));
                }
                let at = self.at_axes(of);
                self.element(x, at)
            }
            Kind::Gather(gathering) => self.gathered(node, gathering, v, at),
            Kind::Bitcast => self.cast(x, v, at),
            other => bail!(Internal, "{other:?} moves nothing"),
        }
    }

    fn stepped(&mut self, axis: &str, start: usize, stride: usize) -> String {
        let scaled = match (axis, stride) {
            ("0", _) => return start.to_string(),
            (_, 1) => axis.to_owned(),
            _ => format!("{axis} * {stride}"),
        };
        self.index(if start == 0 { scaled } else { format!("{start} + {scaled}") })
    }

    fn sum(&mut self, a: &str, b: &str) -> String {
        match (a, b) {
            ("0", _) => b.to_owned(),
            (_, "0") => a.to_owned(),
            _ => self.index(format!("{a} + {b}")),
        }
    }

    /// The first indices of a window of a shape inside an operand: clamped.
    pub fn starts(&mut self, indices: &[ValueId], operand: &[usize], window: &[usize]) -> Result<Axes> {
        let mut starts = Axes::new();
        for (k, &v) in indices.iter().enumerate() {
            let most = operand[k] - window[k];
            if most == 0 {
                starts.push("0".to_owned());
                continue;
            }
            let scalar = self.scalar();
            let index = self.element(v, scalar)?;
            starts.push(self.index(format!("(I)fx_within(fx_index({index}), {most}ll)")));
        }
        Ok(starts)
    }

    /// Declares what the branches that follow assign.
    fn variable(&mut self, d: DType, first: &str) -> String {
        let name = self.fresh('t');
        self.line(&format!("{} {name}{first};", c_type(d)));
        name
    }

    fn padded(&mut self, node: &Node, config: &[PadConfig], v: ValueId, at: At) -> Result<String> {
        let (ty, x) = (self.g.ty(v), node.inputs[0]);
        let from = &self.g.ty(x).shape;
        let axes = self.axes(at, &ty.shape);
        let scalar = self.scalar();
        let border = self.element(node.inputs[1], scalar)?;
        if from.contains(&0) {
            return Ok(border);
        }
        let (mut of, mut inside) = (Axes::new(), Vec::new());
        for (k, c) in config.iter().enumerate() {
            if c.low == 0 && c.interior == 0 && ty.shape[k] <= from[k] {
                of.push(axes[k].clone());
                continue;
            }
            let j = if c.low == 0 { axes[k].clone() } else { self.index(format!("{} - ({})", axes[k], c.low)) };
            let step = c.interior + 1;
            inside.push(format!("{j} >= 0 && {j} < {}", (from[k] - 1) * step + 1));
            if step > 1 {
                inside.push(format!("{j} % {step} == 0"));
            }
            of.push(if step == 1 { j } else { self.index(format!("{j} / {step}")) });
        }
        if inside.is_empty() {
            let at = self.at_axes(of);
            return self.element(x, at);
        }
        let result = self.variable(ty.dtype, &format!(" = {border}"));
        self.open(&format!("if ({})", inside.join(" && ")));
        let at = self.at_axes(of);
        let element = self.element(x, at)?;
        self.line(&format!("{result} = {element};"));
        self.close();
        Ok(result)
    }

    fn joined(&mut self, node: &Node, axis: usize, v: ValueId, at: At) -> Result<String> {
        let g = self.g;
        let ty = g.ty(v);
        let axes = self.axes(at, &ty.shape);
        let parts: Vec<ValueId> = node.inputs.iter().copied().filter(|&x| g.ty(x).size() > 0).collect();
        if let [only] = parts[..] {
            return self.element(only, at);
        }
        let result = self.variable(ty.dtype, "");
        let mut before = 0;
        for (k, &x) in parts.iter().enumerate() {
            let end = before + g.ty(x).shape[axis];
            let test = format!("if ({} < {end})", axes[axis]);
            match k {
                0 => self.open(&test),
                _ if k + 1 == parts.len() => self.open("else"),
                _ => self.open(&format!("else {test}")),
            }
            let mut of = axes.clone();
            if before > 0 {
                of[axis] = self.index(format!("{} - {before}", axes[axis]));
            }
            let at = self.at_axes(of);
            let element = self.element(x, at)?;
            self.line(&format!("{result} = {element};"));
            self.close();
            before = end;
        }
        Ok(result)
    }

    fn gathered(&mut self, node: &Node, gathering: &Gathering, v: ValueId, at: At) -> Result<String> {
        let g = self.g;
        let ty = g.ty(v);
        let (x, indices) = (node.inputs[0], node.inputs[1]);
        let (from, dims) = (g.ty(x).shape.clone(), &gathering.dims);
        let axes = self.axes(at, &ty.shape);
        let batch: Axes = (0..axes.len()).filter(|a| !dims.offset_dims.contains(a)).map(|a| axes[a].clone()).collect();
        let window: Vec<usize> = (0..from.len())
            .filter(|d| !dims.collapsed_slice_dims.contains(d) && !dims.operand_batching_dims.contains(d))
            .collect();
        let fills = gathering.mode == IndexMode::FillOrDrop;
        let mut inside = Vec::new();
        let mut of = Axes::new();
        for d in 0..from.len() {
            let mut place = "0".to_owned();
            if let Some(p) = dims.operand_batching_dims.iter().position(|&o| o == d) {
                place.clone_from(&batch[dims.start_indices_batching_dims[p]]);
            }
            if let Some(k) = dims.start_index_map.iter().position(|&o| o == d) {
                let mut where_ = batch.clone();
                if !gathering.wrap {
                    where_.push(k.to_string());
                }
                let at = self.at_axes(where_);
                let index = self.element(indices, at)?;
                let mut start = self.named("long long", 'j', format!("fx_index({index})"));
                if gathering.wrap {
                    start = self.named("long long", 'j', format!("{start} < 0 ? {start} + {}ll : {start}", from[d]));
                }
                let most = from[d] as i64 - gathering.slice_sizes[d] as i64;
                if fills {
                    inside.push(format!("{start} >= 0 && {start} <= {most}ll"));
                }
                place = self.index(format!("(I)fx_within({start}, {most}ll)"));
            }
            if let Some(w) = window.iter().position(|&o| o == d) {
                place = self.sum(&place, &axes[dims.offset_dims[w]]);
            }
            of.push(place);
        }
        if from.contains(&0) {
            return Ok(self.named(c_type(ty.dtype), 't', literal(gathering.fill)));
        }
        let at = self.at_axes(of);
        if inside.is_empty() {
            return self.element(x, at);
        }
        let result = self.variable(ty.dtype, &format!(" = {}", literal(gathering.fill)));
        self.open(&format!("if ({})", inside.join(" && ")));
        let element = self.element(x, at)?;
        self.line(&format!("{result} = {element};"));
        self.close();
        Ok(result)
    }

    fn cast(&mut self, x: ValueId, v: ValueId, at: At) -> Result<String> {
        let g = self.g;
        let (from, ty) = (g.ty(x), g.ty(v));
        let (a, b) = (from.dtype.bits(), ty.dtype.bits());
        let text = if a == b {
            let element = self.element(x, at)?;
            if from.dtype == ty.dtype { element } else { same_bits(&element, from.dtype, ty.dtype) }
        } else if a > b {
            let mut axes = self.axes(at, &ty.shape);
            let part = axes.pop().unwrap_or_default();
            let at = self.at_axes(axes);
            let element = self.element(x, at)?;
            part_of_bits(&element, &part, from.dtype, ty.dtype)
        } else {
            let axes = self.axes(at, &ty.shape);
            let mut parts = Vec::new();
            for k in 0..b / a {
                let at = self.at_axes(axes.iter().cloned().chain([k.to_string()]));
                parts.push(self.element(x, at)?);
            }
            joined_bits(&parts, from.dtype, ty.dtype)
        };
        Ok(self.named(c_type(ty.dtype), 't', text))
    }
}
