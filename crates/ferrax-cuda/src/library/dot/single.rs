//! Large products of matrices in single precision.
//!
//! A block of 256 threads computes a tile of 128 x 128, a thread eight rows and eight columns of it, in registers. The next
//! tiles of both operands are fetched while the present ones are multiplied. The text is in `single.cu`.

use super::matrix::Matrix;
use super::tensor::place;
use super::{Extents, Side};
use crate::print::body::Body;
use crate::print::kernel::{BLOCK, Kernel, finish};
use ferrax_base::{DType, Result};

const TEXT: &str = include_str!("single.cu");
/// Rows and columns of a tile, its contracted elements, and numbers of a piece.
const TILE: usize = 128;
const DEPTH: usize = 16;
const PIECE: usize = 4;
/// Tiles from which on a GPU is busy with them.
const BUSY: usize = 96;

/// The kernel of a product; none where operands are others than it is for, or where there are too few tiles.
pub fn single(mut body: Body<'_>, x: &Side, y: &Side, e: &Extents, out: DType) -> Result<Option<Kernel>> {
    let (Some(a), Some(b)) = (Matrix::of(x, PIECE), Matrix::of(y, PIECE)) else { return Ok(None) };
    let (rows, columns) = (e.m.div_ceil(TILE), e.n.div_ceil(TILE));
    let total = e.batch * rows * columns;
    if [x.dtype, y.dtype, out] != [DType::F32; 3] || total < BUSY {
        return Ok(None);
    }
    let (p, q) = (body.pointer(x.value), body.pointer(y.value));
    body.largest = body.largest.max(e.batch * e.m * e.n);
    body.text = TEXT
        .replace("@PLACE\n", &place(&mut body, [TILE; 2], e, "float", [(Some(&a), p), (Some(&b), q)]))
        .replace("@FETCH\n", &(fetch(&a, 0, e.m) + &fetch(&b, 1, e.n)))
        .replace("@PUT\n", &(put(&a, 0) + &put(&b, 1)))
        .replace("@STORE\n", &store(e))
        .replace("@TOTAL", &total.to_string())
        .replace("@K", &e.k.to_string());
    Ok(Some(finish(body, &[out], 0, true, [total.clamp(1, 1 << 16) as u32, 1, 1], BLOCK)))
}

/// Row and piece that a thread brings, of two; pieces lie along the contracted axis or along the free one.
fn which(matrix: &Matrix) -> String {
    let pieces = if matrix.contracts_rows { DEPTH } else { TILE } / PIECE;
    format!("        const int e = u * {BLOCK} + threadIdx.x, row = e / {pieces}, piece = e % {pieces};\n")
}

fn fetch(matrix: &Matrix, operand: usize, extent: usize) -> String {
    let (name, first) = [("left", "first_row"), ("right", "first_column")][operand];
    let place = if matrix.contracts_rows {
        format!("r = {first} + row, c = depth + piece * 4;\n        const bool there = r < {extent} && c < @K")
    } else {
        format!("r = depth + row, c = {first} + piece * 4;\n        const bool there = r < @K && c < {extent}")
    };
    format!(
        "      #pragma unroll\n      for (int u = 0; u < 2; ++u) {{\n{}        const I {place};\n        \
         next[{operand}][u] = there ? *(const Piece*)({name} + r * {} + c) : Piece{{{{0, 0, 0, 0}}}};\n      }}\n",
        which(matrix),
        matrix.stride
    )
}

fn put(matrix: &Matrix, operand: usize) -> String {
    let store = if matrix.contracts_rows {
        format!(
            "for (int v = 0; v < 4; ++v) ((float*)tiles[slot][{operand}][piece * 4 + v])[row] = next[{operand}][u].x[v];"
        )
    } else {
        format!("tiles[slot][{operand}][row][piece] = next[{operand}][u];")
    };
    format!("      #pragma unroll\n      for (int u = 0; u < 2; ++u) {{\n{}        {store}\n      }}\n", which(matrix))
}

/// Writes four neighbours of the result, `r` and `c` being the place of the first.
fn store(e: &Extents) -> String {
    let Extents { m, n, .. } = e;
    let at = format!("(batch * {m} + r) * {n} + c");
    if n.is_multiple_of(4) {
        format!("        if (r < {m} && c < {n}) *(Piece*)(o0 + {at}) = Piece{{{{sum[0], sum[1], sum[2], sum[3]}}}};\n")
    } else {
        format!("        for (int v = 0; v < 4; ++v) if (r < {m} && c + v < {n}) o0[{at} + v] = sum[v];\n")
    }
}
