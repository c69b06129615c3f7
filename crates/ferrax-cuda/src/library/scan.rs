//! Running reductions along an axis.
//!
//! Where there are many lines, or they are short, a thread goes along each. Otherwise a block goes along a line, a stretch
//! of as many elements as it has threads at a time: doubling joins within the stretch, and what came before it is joined to
//! all. Sums of floats below double precision are kept in double precision, other narrow floats in single.

use crate::plan::frame::Frame;
use crate::print::body::Body;
use crate::print::convert::convert;
use crate::print::elementwise::binary;
use crate::print::kernel::{BLOCK, Kernel, blocks, element_loop, finish};
use crate::print::types::{c_type, compute, is_narrow, literal};
use ferrax_base::{DType, Result, bail};
use ferrax_loops::{BinaryOp, Node, ReduceOp, ValueId};

/// Lines from which on, and elements of a line up to which, a thread goes along each.
const LINES: usize = 4096;
const SHORT: usize = 64;

struct Scan {
    x: ValueId,
    d: DType,
    acc: DType,
    join: BinaryOp,
    start: String,
    /// Lines before the axis, its length, lines behind it.
    dims: [usize; 3],
    reverse: bool,
}

/// `Cumulative`.
pub fn cumulative(f: &mut Frame<'_>, node: &Node, op: ReduceOp, axis: usize, reverse: bool) -> Result<()> {
    let x = node.inputs[0];
    let (shape, d) = (&f.g.ty(x).shape, f.dtype(x));
    let acc = match op {
        ReduceOp::Sum if d.is_float() => DType::F64,
        _ if is_narrow(d) => compute(d),
        _ => d,
    };
    let Some(join) = op.joining() else { bail!(Internal, "a running {op:?} is other nodes") };
    let dims = [shape[..axis].iter().product(), shape[axis], shape[axis + 1..].iter().product()];
    let scan = Scan { x, d, acc, join, start: literal(op.start(acc)), dims, reverse };
    let to = f.result(node.first);
    let by_threads = dims[0] * dims[2] >= LINES || dims[1] <= SHORT;
    let kernel = f.print(|body| if by_threads { scan.by_threads(body) } else { scan.by_blocks(body) })?;
    f.launch(kernel, &[to], &[])
}

impl Scan {
    /// The number of element `k` of a line.
    fn number(&self, body: &mut Body<'_>, line: &str, k: &str) -> String {
        let [outer, n, inner] = self.dims;
        let at = body.linear(line);
        let place = body.axes(at, &[outer, inner]);
        let k = if self.reverse { body.index(format!("{} - {k}", n - 1)) } else { k.to_owned() };
        let at = body.at_axes([place[0].clone(), k, place[1].clone()]);
        body.number(at, &self.dims)
    }

    fn element(&self, body: &mut Body<'_>, number: &str) -> Result<String> {
        let at = body.linear(number);
        let element = body.element(self.x, at)?;
        convert(&element, self.d, self.acc)
    }

    fn by_threads(&self, mut body: Body<'_>) -> Result<Kernel> {
        let [outer, n, inner] = self.dims;
        let lines = outer * inner;
        body.largest = body.largest.max(lines * n);
        body.open(&element_loop(lines));
        body.line(&format!("{} a = {};", c_type(self.acc), self.start));
        body.open(&format!("for (I k = 0; k < {n}; ++k)"));
        let number = self.number(&mut body, "i", "k");
        let element = self.element(&mut body, &number)?;
        body.line(&format!("a = {};", binary(self.join, "a", &element, self.acc)?));
        body.line(&format!("o0[{number}] = {};", convert("a", self.acc, self.d)?));
        body.close();
        body.close();
        Ok(finish(body, &[self.d], 0, true, [blocks(lines), 1, 1], BLOCK))
    }

    fn by_blocks(&self, mut body: Body<'_>) -> Result<Kernel> {
        let [outer, n, inner] = self.dims;
        let (lines, t) = (outer * inner, c_type(self.acc));
        body.largest = body.largest.max(lines * n);
        body.line(&format!("__shared__ {t} s[2][{BLOCK}];"));
        body.open(&format!("for (I w = blockIdx.x; w < {lines}; w += gridDim.x)"));
        body.line(&format!("{t} before = {};", self.start));
        body.open(&format!("for (I k0 = 0; k0 < {n}; k0 += {BLOCK})"));
        body.line("const int me = threadIdx.x;");
        body.line("const I k = k0 + me;");
        body.line(&format!("{t} a = {};", self.start));
        body.open(&format!("if (k < {n})"));
        let number = self.number(&mut body, "w", "k");
        let element = self.element(&mut body, &number)?;
        body.line(&format!("a = {element};"));
        body.close();
        body.line("s[0][me] = a;");
        body.line("__syncthreads();");
        body.line("int from = 0;");
        body.open(&format!("for (int d = 1; d < {BLOCK}; d *= 2)"));
        body.line(&format!("if (me >= d) a = {};", binary(self.join, "s[from][me - d]", "a", self.acc)?));
        body.line("s[1 - from][me] = a;");
        body.line("from = 1 - from;");
        body.line("__syncthreads();");
        body.close();
        body.line(&format!("a = {};", binary(self.join, "before", "a", self.acc)?));
        body.line(&format!("before = {};", binary(self.join, "before", &format!("s[from][{}]", BLOCK - 1), self.acc)?));
        body.open(&format!("if (k < {n})"));
        let number = self.number(&mut body, "w", "k");
        body.line(&format!("o0[{number}] = {};", convert("a", self.acc, self.d)?));
        body.close();
        // The next stretch is written where this one is still read.
        body.line("__syncthreads();");
        body.close();
        body.close();
        Ok(finish(body, &[self.d], 0, true, [lines.clamp(1, 1 << 16) as u32, 1, 1], BLOCK))
    }
}
