//! Products of matrices of 16-bit floats on the GPU's matrix units, whose sums are in single precision.
//!
//! A block computes a tile of the result: both operands' tiles come to shared memory by asynchronous copies, two of them on
//! their way while the third is multiplied; a warp multiplies fragments of 16 x 16 by 16 x 8 that stay in registers. The text
//! is in `tensor.cu`. Source: the PTX manual, "Matrix fragments for mma.m16n8k16".

use super::matrix::Matrix;
use super::{Extents, Side};
use crate::print::body::Body;
use crate::print::convert::convert;
use crate::print::kernel::{Kernel, finish};
use crate::print::types::c_type;
use ferrax_base::{DType, Result};

const TEXT: &str = include_str!("tensor.cu");
/// Numbers of a piece.
const PIECE: usize = 8;
/// Contracted elements of a tile.
const DEPTH: usize = 32;
/// Tiles from which on a GPU is busy with large ones.
const BUSY: usize = 128;

/// A block's tile, and how its warps share it.
struct Tile {
    rows: usize,
    columns: usize,
    /// Warps side by side.
    across: usize,
    /// Rows and columns of a warp.
    own: [usize; 2],
}

const LARGE: Tile = Tile { rows: 128, columns: 128, across: 4, own: [64, 32] };
const SMALL: Tile = Tile { rows: 64, columns: 64, across: 2, own: [32, 32] };

impl Tile {
    fn threads(&self) -> usize {
        self.rows / self.own[0] * self.across * 32
    }

    fn count(&self, e: &Extents) -> usize {
        e.batch * e.m.div_ceil(self.rows) * e.n.div_ceil(self.columns)
    }
}

/// The kernel of a product; none where the operands are others than it is for.
pub fn tensor(mut body: Body<'_>, x: &Side, y: &Side, e: &Extents, out: DType) -> Result<Option<Kernel>> {
    let narrow = x.dtype == y.dtype && matches!(x.dtype, DType::BF16 | DType::F16);
    let result = out == x.dtype || out == DType::F32;
    let (Some(a), Some(b), true) = (Matrix::of(x, PIECE), Matrix::of(y, PIECE), narrow && result) else {
        return Ok(None);
    };
    let tile = if LARGE.count(e) >= BUSY { LARGE } else { SMALL };
    let (p, q) = (body.pointer(x.value), body.pointer(y.value));
    body.largest = body.largest.max(e.batch * e.m * e.n);
    let text = TEXT
        .replace("@PLACE\n", &place(&mut body, [tile.rows, tile.columns], e, "unsigned short", [(&a, p), (&b, q)]))
        .replace("@LOAD\n", &(load(&a, &tile, true, e.m) + &load(&b, &tile, false, e.n)))
        .replace("@LEFT\n", &left(&a, &tile))
        .replace("@RIGHT\n", &right(&b, &tile))
        .replace("@STORE\n", &store(e, out)?)
        .replace("@OWN_ROWS", &tile.own[0].to_string())
        .replace("@OWN_COLUMNS", &tile.own[1].to_string())
        .replace("@ROWS", &tile.rows.to_string())
        .replace("@COLUMNS", &tile.columns.to_string())
        .replace("@ACROSS", &tile.across.to_string())
        .replace("@THREADS", &tile.threads().to_string())
        .replace("@TOTAL", &tile.count(e).to_string())
        .replace("@MULTIPLY", &format!("fx_multiply_{}", x.dtype.short_name()))
        .replace("@K", &e.k.to_string());
    body.text = text;
    let blocks = tile.count(e).clamp(1, 1 << 16) as u32;
    Ok(Some(finish(body, &[out], 0, true, [blocks, 1, 1], tile.threads() as u32)))
}

/// Which tile `w` is, and where its matrices begin. Tiles that run at the same time share rows and columns.
pub fn place(
    body: &mut Body<'_>,
    [tile_rows, tile_columns]: [usize; 2],
    e: &Extents,
    element: &str,
    operands: [(&Matrix, usize); 2],
) -> String {
    let (rows, columns) = (e.m.div_ceil(tile_rows), e.n.div_ceil(tile_columns));
    body.line(&format!("  const I batch = w / {0}, tile = w % {0};", rows * columns));
    body.line(&format!("  const I band = tile / {0} * 8, inside = tile % {0};", 8 * columns));
    body.line(&format!("  const I height = {rows} - band < 8 ? {rows} - band : 8;"));
    body.line(&format!("  const I first_row = (band + inside % height) * {tile_rows};"));
    body.line(&format!("  const I first_column = inside / height * {tile_columns};"));
    for (name, (matrix, pointer)) in ["left", "right"].iter().zip(operands) {
        let first = matrix.first(body, "batch");
        body.line(&format!("  const {element}* {name} = p{pointer} + {first};"));
    }
    std::mem::take(&mut body.text)
}

/// Copies of one operand's tile, whose free axis has so many elements.
fn load(matrix: &Matrix, tile: &Tile, is_left: bool, extent: usize) -> String {
    let (name, first, size) =
        if is_left { ("left", "first_row", tile.rows) } else { ("right", "first_column", tile.columns) };
    let from = if is_left { String::new() } else { format!(" + {}", tile.rows * 4) };
    let (pieces, exchange, row, column) = if matrix.contracts_rows {
        (DEPTH / PIECE, "row / 2 % 4", format!("{first} + row"), "depth + piece * 8".to_owned())
    } else {
        (size / PIECE, "row % 8", "depth + row".to_owned(), format!("{first} + piece * 8"))
    };
    let (most_rows, most_columns) =
        if matrix.contracts_rows { (extent.to_string(), "@K".into()) } else { ("@K".into(), extent.to_string()) };
    format!(
        "      for (int e = threadIdx.x; e < {0}; e += @THREADS) {{\n        \
         const int row = e / {pieces}, piece = e % {pieces};\n        \
         const I r = {row}, c = {column};\n        \
         const bool there = r < {most_rows} && c < {most_columns};\n        \
         fx_copy_async(to{from} + row * {pieces} + (piece ^ {exchange}), there ? {name} + r * {1} + c : {name}, there);\n      \
         }}\n",
        size * DEPTH / PIECE,
        matrix.stride,
    )
}

/// A fragment of 16 rows and 16 contracted elements of the left operand.
fn left(matrix: &Matrix, tile: &Tile) -> String {
    if matrix.contracts_rows {
        "          const int row = row0 + i * 16 + lane % 16, piece = half * 2 + lane / 16;\n          \
         fx_matrices(a[i], x + row * 4 + (piece ^ row / 2 % 4));\n"
            .to_owned()
    } else {
        format!(
            "          const int row = half * 16 + lane % 8 + lane / 16 * 8, piece = (row0 + i * 16) / 8 + lane / 8 % 2;\n          \
             fx_matrices_transposed(a[i], x + row * {} + (piece ^ row % 8));\n",
            tile.rows / PIECE
        )
    }
}

/// A fragment of 16 contracted elements and 16 columns of the right operand.
fn right(matrix: &Matrix, tile: &Tile) -> String {
    if matrix.contracts_rows {
        "          const int row = column0 + j * 16 + lane % 8 + lane / 16 * 8, piece = half * 2 + lane / 8 % 2;\n          \
         fx_matrices(both, y + row * 4 + (piece ^ row / 2 % 4));\n"
            .to_owned()
    } else {
        format!(
            "          const int row = half * 16 + lane % 16, piece = (column0 + j * 16) / 8 + lane / 16;\n          \
             fx_matrices_transposed(both, y + row * {} + (piece ^ row % 8));\n",
            tile.columns / PIECE
        )
    }
}

/// Writes two neighbours of the result, `r` and `c` being the place of the first.
fn store(e: &Extents, out: DType) -> Result<String> {
    let Extents { m, n, .. } = e;
    let (one, two) = (convert("sum[0]", DType::F32, out)?, convert("sum[1]", DType::F32, out)?);
    let at = format!("(batch * {m} + r) * {n} + c");
    Ok(if n.is_multiple_of(2) {
        let t = c_type(out);
        format!(
            "          if (r < {m} && c < {n}) *(fx_pack<{t}, 2>*)(o0 + {at}) = fx_pack<{t}, 2>{{{{{one}, {two}}}}};\n"
        )
    } else {
        format!(
            "          if (r < {m} && c < {n}) o0[{at}] = {one};\n          if (r < {m} && c + 1 < {n}) o0[{at} + 1] = {two};\n"
        )
    })
}
