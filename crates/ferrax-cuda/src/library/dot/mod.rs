//! Products of matrices.
//!
//! A block computes a tile of a result from tiles of both operands in shared memory, a thread a small square of it in
//! registers. Products with few results are sums (`reduce.rs`), whose lengths are shared out. Numbers are multiplied and
//! summed in the result's dtype, narrow floats in single precision. Large products of whole matrices have kernels of their
//! own: `tensor.rs` for floats of 16 bits and TF32, `single.rs` for single precision; NVIDIA's library has them where it is there.

mod matrix;
mod single;
mod tensor;

pub use matrix::Matrix;
pub use tensor::{Windows, convolution, takes_windows};

use super::reduce::sums;
use crate::plan::frame::Frame;
use crate::plan::products::by_library;
use crate::print::body::Body;
use crate::print::convert::convert;
use crate::print::elementwise::binary;
use crate::print::kernel::{BLOCK, Kernel, finish};
use crate::print::types::{c_type, compute, is_narrow, literal};
use crate::routine::{Product, Routine};
use ferrax_base::{DType, Result, Scalar, bail};
use ferrax_loops::{BinaryOp, DotDims, Node, Type, ValueId};

/// Rows and columns of a tile, and elements of their products' sums that are in shared memory at once.
pub const TILE: usize = 64;
const DEPTH: usize = 16;
/// Rows and columns of a thread.
const OWN: usize = 4;
/// Results up to which a product is a sum for each.
pub const FEW: usize = 1024;

/// The dtype in which products are summed.
pub fn accumulation(x: DType, y: DType, out: DType) -> DType {
    let wide = |d: DType| if is_narrow(d) { compute(d) } else { d };
    let acc = wide(out);
    let larger = [wide(x), wide(y)].into_iter().find(|d| d.size() > acc.size());
    larger.filter(|d| d.category() == acc.category() && d.is_inexact()).unwrap_or(acc)
}

/// `acc` with the product of two numbers added.
pub fn multiply_add(acc: &str, x: &str, y: &str, d: DType) -> Result<String> {
    if d.is_float() {
        return Ok(format!("fx_fma({x}, {y}, {acc})"));
    }
    binary(BinaryOp::Add, acc, &binary(BinaryOp::Mul, x, y, d)?, d)
}

/// One operand: its axes by their part in the product.
pub struct Side {
    pub value: ValueId,
    pub batch: Vec<usize>,
    pub free: Vec<usize>,
    pub contract: Vec<usize>,
    pub shape: Vec<usize>,
    pub dtype: DType,
}

impl Side {
    /// An operand of a type.
    pub fn of(value: ValueId, ty: &Type, batch: &[usize], contract: &[usize]) -> Side {
        let free = (0..ty.shape.len()).filter(|a| !batch.contains(a) && !contract.contains(a)).collect();
        Side {
            value,
            batch: batch.to_vec(),
            free,
            contract: contract.to_vec(),
            shape: ty.shape.to_vec(),
            dtype: ty.dtype,
        }
    }

    /// The elements of some axes.
    pub fn extent(&self, axes: &[usize]) -> usize {
        axes.iter().map(|&a| self.shape[a]).product()
    }

    /// Whether contracted elements lie side by side.
    fn contracts_rows(&self) -> bool {
        let last = (0..self.shape.len()).rev().find(|&a| self.shape[a] != 1);
        last.is_none_or(|a| self.contract.contains(&a))
    }

    /// The element of a product, row or column, and contracted index, as a number to sum with.
    fn element(&self, body: &mut Body<'_>, [b, m, k]: [&str; 3], acc: DType) -> Result<String> {
        let mut axes = vec!["0".to_owned(); self.shape.len()];
        for (name, own) in [(b, &self.batch), (m, &self.free), (k, &self.contract)] {
            let shape: Vec<usize> = own.iter().map(|&a| self.shape[a]).collect();
            let at = body.linear(name);
            let indices = body.axes(at, &shape);
            own.iter().zip(indices).for_each(|(&a, index)| axes[a] = index);
        }
        let at = body.at_axes(axes);
        let element = body.element(self.value, at)?;
        let number = convert(&element, self.dtype, acc)?;
        Ok(body.named(c_type(acc), 't', number))
    }
}

/// `Dot`.
pub fn dot(f: &mut Frame<'_>, node: &Node, dims: &DotDims) -> Result<()> {
    let x = Side::of(node.inputs[0], f.g.ty(node.inputs[0]), &dims.lhs_batch, &dims.lhs_contract);
    let y = Side::of(node.inputs[1], f.g.ty(node.inputs[1]), &dims.rhs_batch, &dims.rhs_contract);
    let out = f.dtype(node.first);
    if !out.is_number() && !out.is_bool() {
        bail!(NotImplemented, "the CUDA engine has no products of {out}");
    }
    let acc = accumulation(x.dtype, y.dtype, out);
    let (batch, k) = (x.extent(&x.batch), x.extent(&x.contract));
    let (m, n) = (x.extent(&x.free), y.extent(&y.free));
    if batch * m * n <= FEW || m == 1 || n == 1 {
        let rows = x.contracts_rows() && y.contracts_rows();
        let load = |body: &mut Body<'_>, o: &str, r: &str| {
            let at = body.linear(o);
            let place = body.axes(at, &[batch, m, n]);
            let a = x.element(body, [&place[0], &place[1], r], acc)?;
            let b = y.element(body, [&place[0], &place[2], r], acc)?;
            let product = binary(BinaryOp::Mul, &a, &b, acc)?;
            Ok(body.named(c_type(acc), 't', product))
        };
        return sums(f, node, (k, rows), acc, &load);
    }
    if by_library(f.p.libraries(), [x.dtype, y.dtype, out], [batch, m, n, k])
        && let Some(product) = routine(&x, &y, &Extents { batch, m, n, k }, out, dims.tf32)
    {
        let reads = vec![f.span(x.value)?, f.span(y.value)?];
        return f.call(Routine::Product(product), reads, node.first);
    }
    let to = f.result(node.first);
    let kernel = match whole(f, &x, &y, &Extents { batch, m, n, k }, out, dims.tf32)? {
        Some(kernel) => kernel,
        None => f.print(|body| tiles(body, &x, &y, [batch, m, n, k], acc, out))?,
    };
    f.launch(kernel, &[to], &[])
}

/// The call of a library that computes a product; none where the operands do not lie as it takes them.
fn routine(x: &Side, y: &Side, e: &Extents, out: DType, tf32: bool) -> Option<Product> {
    let (left, right) = (Matrix::of(x, 1)?.layout()?, Matrix::of(y, 1)?.layout()?);
    let Extents { batch, m, n, k } = *e;
    Some(Product { dtype: x.dtype, out, tf32, batch, m, n, k, left, right })
}

/// A kernel for operands that lie in memory as matrices whose rows begin at multiples of 16 bytes.
fn whole(f: &Frame<'_>, x: &Side, y: &Side, e: &Extents, out: DType, tf32: bool) -> Result<Option<Kernel>> {
    for v in [x.value, y.value] {
        if !f.span(v)?.offset.is_multiple_of(16) {
            return Ok(None);
        }
    }
    match f.print(|body| tensor::tensor(body, x, y, e, [x.dtype, out], tf32))? {
        Some(kernel) => Ok(Some(kernel)),
        None => f.print(|body| single::single(body, x, y, e, out)),
    }
}

/// How much there is to multiply.
struct Extents {
    batch: usize,
    m: usize,
    n: usize,
    k: usize,
}

fn tiles(
    mut body: Body<'_>,
    x: &Side,
    y: &Side,
    [batch, m, n, k]: [usize; 4],
    acc: DType,
    out: DType,
) -> Result<Kernel> {
    let (rows, columns) = (m.div_ceil(TILE), n.div_ceil(TILE));
    let total = batch * rows * columns;
    let t = c_type(acc);
    let zero = literal(Scalar::zero(acc));
    body.largest = body.largest.max(batch * m * n);
    ["xs", "ys"].iter().for_each(|array| body.line(&format!("__shared__ {t} {array}[{DEPTH}][{}];", TILE + 1)));
    body.line(&format!("const int row = threadIdx.x / {0} * {OWN}, column = threadIdx.x % {0} * {OWN};", TILE / OWN));
    body.open(&format!("for (I w = blockIdx.x; w < {total}; w += gridDim.x)"));
    let at = body.linear("w");
    let place = body.axes(at, &[batch, rows, columns]);
    // The tile's first row and column.
    let first = [body.index(format!("{} * {TILE}", place[1])), body.index(format!("{} * {TILE}", place[2]))];
    body.line(&format!("{t} sums[{OWN}][{OWN}];"));
    body.line(&format!("for (int i = 0; i < {OWN}; ++i) for (int j = 0; j < {OWN}; ++j) sums[i][j] = {zero};"));
    body.open(&format!("for (I k0 = 0; k0 < {k}; k0 += {DEPTH})"));
    for (side, array, first, extent) in [(x, "xs", &first[0], m), (y, "ys", &first[1], n)] {
        body.line("#pragma unroll 1");
        body.open(&format!("for (int e = threadIdx.x; e < {}; e += {BLOCK})", TILE * DEPTH));
        // Neighbours read neighbours.
        let (d, i) = if side.contracts_rows() {
            (body.index(format!("e % {DEPTH}")), body.index(format!("e / {DEPTH}")))
        } else {
            (body.index(format!("e / {TILE}")), body.index(format!("e % {TILE}")))
        };
        let (place_m, place_k) = (body.index(format!("{first} + {i}")), body.index(format!("k0 + {d}")));
        body.line(&format!("{t} s = {zero};"));
        body.open(&format!("if ({place_m} < {extent} && {place_k} < {k})"));
        let element = side.element(&mut body, [&place[0], &place_m, &place_k], acc)?;
        body.line(&format!("s = {element};"));
        body.close();
        body.line(&format!("{array}[{d}][{i}] = s;"));
        body.close();
    }
    body.line("__syncthreads();");
    // compilers take long for what is unrolled
    body.line("#pragma unroll 4");
    body.open(&format!("for (int d = 0; d < {DEPTH}; ++d)"));
    body.line(&format!("{t} a[{OWN}], b[{OWN}];"));
    body.line(&format!("for (int i = 0; i < {OWN}; ++i) {{ a[i] = xs[d][row + i]; b[i] = ys[d][column + i]; }}"));
    let sum = multiply_add("sums[i][j]", "a[i]", "b[j]", acc)?;
    body.line(&format!("for (int i = 0; i < {OWN}; ++i) for (int j = 0; j < {OWN}; ++j) sums[i][j] = {sum};"));
    body.close();
    body.line("__syncthreads();");
    body.close();
    body.open(&format!("for (int i = 0; i < {OWN}; ++i) for (int j = 0; j < {OWN}; ++j)"));
    let (r, c) = (body.index(format!("{} + row + i", first[0])), body.index(format!("{} + column + j", first[1])));
    body.line(&format!(
        "if ({r} < {m} && {c} < {n}) o0[({} * {m} + {r}) * {n} + {c}] = {};",
        place[0],
        convert("sums[i][j]", acc, out)?
    ));
    body.close();
    body.close();
    Ok(finish(body, &[out], 0, true, [total.clamp(1, 1 << 16) as u32, 1, 1], BLOCK))
}
