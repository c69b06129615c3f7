//! Products of matrices of 16-bit floats, and of TF32, on the GPU's matrix units, whose sums are in single precision.
//!
//! A block computes a tile of the result: both operands' tiles come to shared memory by asynchronous copies, two of them on
//! their way while the third is multiplied; a warp multiplies fragments of 16 x 16 by 16 x 8 (16 x 8 by 8 x 8 of TF32, which take as many
//! bytes) that stay in registers. The left operand of a convolution has the elements under its window, which the copies find
//! in the image. The text is in `tensor.cu`. Source: the PTX manual, "Matrix fragments for mma.m16n8k16" and "for mma.m16n8k8".

use super::matrix::Matrix;
use super::{Extents, Side};
use crate::print::body::Body;
use crate::print::convert::convert;
use crate::print::kernel::{Kernel, finish};
use crate::print::types::c_type;
use ferrax_base::{DType, Result, bail};
use ferrax_loops::ValueId;

const TEXT: &str = include_str!("tensor.cu");
/// Bytes of a piece, and pieces of a tile's contracted elements.
const PIECE: usize = 16;
const PIECES: usize = 4;
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
    /// The tile of a product.
    fn of(e: &Extents) -> Tile {
        if LARGE.count(e) >= BUSY { LARGE } else { SMALL }
    }

    fn threads(&self) -> usize {
        self.rows / self.own[0] * self.across * 32
    }

    fn count(&self, e: &Extents) -> usize {
        e.batch * e.m.div_ceil(self.rows) * e.n.div_ceil(self.columns)
    }
}

/// What is multiplied.
#[derive(Clone, Copy, PartialEq)]
struct Numbers {
    /// The operands' dtype.
    dtype: DType,
    /// Numbers of a piece of 16 bytes.
    piece: usize,
}

impl Numbers {
    fn of(dtype: DType, out: DType, tf32: bool) -> Option<Numbers> {
        let takes = match dtype {
            DType::BF16 | DType::F16 => out == dtype || out == DType::F32,
            DType::F32 => tf32 && out == DType::F32,
            _ => false,
        };
        takes.then(|| Numbers { dtype, piece: PIECE / dtype.size() })
    }

    fn is_single(&self) -> bool {
        self.dtype == DType::F32
    }

    fn c_type(&self) -> &'static str {
        if self.is_single() { "float" } else { "unsigned short" }
    }

    fn multiply(&self) -> &'static str {
        match self.dtype {
            DType::BF16 => "fx_multiply_bf16",
            DType::F16 => "fx_multiply_f16",
            _ => "fx_multiply_tf32",
        }
    }
}

/// The elements under a convolution's window as a matrix: a row for each place, a column for each cell and feature.
pub struct Windows {
    /// The image: \[batch, spatial…, features\].
    pub image: Vec<usize>,
    /// Extents of the window, and of the places that it has.
    pub window: Vec<usize>,
    /// As `window`.
    pub places: Vec<usize>,
    /// Steps of the window, and distances of its cells.
    pub strides: Vec<usize>,
    /// As `strides`.
    pub dilation: Vec<usize>,
}

impl Windows {
    fn features(&self) -> usize {
        self.image[self.image.len() - 1]
    }

    /// Statements with the number `at` of the element in row `r` and column `c`, both of which are within the matrix.
    fn element(&self) -> String {
        let (spatial, features) = (self.window.len(), self.features());
        let mut text = format!("I place = r, cell = c / {features}, far = {features}, at = c % {features};\n");
        for s in (0..spatial).rev() {
            text += &format!(
                "        at += (place % {} * {} + cell % {} * {}) * far;\n        place /= {0}; cell /= {2}; far *= {};\n",
                self.places[s],
                self.strides[s],
                self.window[s],
                self.dilation[s],
                self.image[s + 1]
            );
        }
        text + "        at += place * far;\n"
    }
}

/// An operand: a matrix in memory, or the elements under a window.
enum Operand<'a> {
    Matrix(Matrix),
    Windows(&'a Windows),
}

impl Operand<'_> {
    /// Whether contracted elements lie side by side.
    fn contracts_rows(&self) -> bool {
        match self {
            Operand::Matrix(matrix) => matrix.contracts_rows,
            Operand::Windows(_) => true,
        }
    }
}

/// The kernel of a product; none where the operands are others than it is for.
pub fn tensor(
    mut body: Body<'_>,
    x: &Side,
    y: &Side,
    e: &Extents,
    [dtype, out]: [DType; 2],
    tf32: bool,
) -> Result<Option<Kernel>> {
    let Some(numbers) = Numbers::of(dtype, out, tf32).filter(|_| x.dtype == y.dtype) else { return Ok(None) };
    let (Some(a), Some(b)) = (Matrix::of(x, numbers.piece), Matrix::of(y, numbers.piece)) else { return Ok(None) };
    let (p, q) = (body.pointer(x.value), body.pointer(y.value));
    body.largest = body.largest.max(e.batch * e.m * e.n);
    let tile = Tile::of(e);
    let operands = [(Some(&a), p), (Some(&b), q)];
    let place = place(&mut body, [tile.rows, tile.columns], e, numbers.c_type(), operands);
    kernel(body, numbers, tile, place, [&Operand::Matrix(a), &Operand::Matrix(b)], e, out).map(Some)
}

/// Whether a convolution of such operands, in memory at multiples of 16 bytes, is a product here.
pub fn takes_windows(windows: &Windows, features: usize, [dtype, out]: [DType; 2], tf32: bool) -> bool {
    let whole = |n: &Numbers| windows.features().is_multiple_of(n.piece) && features.is_multiple_of(n.piece);
    Numbers::of(dtype, out, tf32).is_some_and(|n| whole(&n))
}

/// The kernel of a convolution that is a product of the elements under its window with the window.
pub fn convolution(
    mut body: Body<'_>,
    [x, w]: [ValueId; 2],
    windows: &Windows,
    features: usize,
    [dtype, out]: [DType; 2],
) -> Result<Kernel> {
    let Some(numbers) = Numbers::of(dtype, out, true) else {
        bail!(Internal, "a convolution of {dtype} on matrix units")
    };
    let m = windows.image[0] * windows.places.iter().product::<usize>();
    let k = windows.window.iter().product::<usize>() * windows.features();
    let e = Extents { batch: 1, m, n: features, k };
    let window =
        Side { value: w, batch: Vec::new(), free: vec![1], contract: vec![0], shape: vec![k, features], dtype };
    let Some(b) = Matrix::of(&window, numbers.piece) else { bail!(Internal, "a window of {features} features") };
    let (p, q) = (body.pointer(x), body.pointer(w));
    body.largest = body.largest.max(m * features).max(windows.image.iter().product());
    let tile = Tile::of(&e);
    let place = place(&mut body, [tile.rows, tile.columns], &e, numbers.c_type(), [(None, p), (Some(&b), q)]);
    kernel(body, numbers, tile, place, [&Operand::Windows(windows), &Operand::Matrix(b)], &e, out)
}

fn kernel(
    mut body: Body<'_>,
    numbers: Numbers,
    tile: Tile,
    place: String,
    [a, b]: [&Operand<'_>; 2],
    e: &Extents,
    out: DType,
) -> Result<Kernel> {
    body.text = TEXT
        .replace("@PLACE\n", &place)
        .replace("@LOAD\n", &(load(a, &tile, numbers, true, e.m) + &load(b, &tile, numbers, false, e.n)))
        .replace("@LEFT\n", &left(a, &tile, numbers))
        .replace("@RIGHT\n", &right(b, &tile, numbers))
        .replace("@STORE\n", &store(e, out)?)
        .replace("@OWN_ROWS", &tile.own[0].to_string())
        .replace("@OWN_COLUMNS", &tile.own[1].to_string())
        .replace("@ROWS", &tile.rows.to_string())
        .replace("@COLUMNS", &tile.columns.to_string())
        .replace("@ACROSS", &tile.across.to_string())
        .replace("@THREADS", &tile.threads().to_string())
        .replace("@TOTAL", &tile.count(e).to_string())
        .replace("@MULTIPLY", numbers.multiply())
        .replace("@DEPTH", &(numbers.piece * PIECES).to_string())
        .replace("@K", &e.k.to_string());
    let blocks = tile.count(e).clamp(1, 1 << 16) as u32;
    Ok(finish(body, &[out], 0, true, [blocks, 1, 1], tile.threads() as u32))
}

/// Which tile `w` is, and where its matrices begin. Tiles that run at the same time share rows and columns.
pub fn place(
    body: &mut Body<'_>,
    [tile_rows, tile_columns]: [usize; 2],
    e: &Extents,
    element: &str,
    operands: [(Option<&Matrix>, usize); 2],
) -> String {
    let (rows, columns) = (e.m.div_ceil(tile_rows), e.n.div_ceil(tile_columns));
    body.line(&format!("  const I batch = w / {0}, tile = w % {0};", rows * columns));
    body.line(&format!("  const I band = tile / {0} * 8, inside = tile % {0};", 8 * columns));
    body.line(&format!("  const I height = {rows} - band < 8 ? {rows} - band : 8;"));
    body.line(&format!("  const I first_row = (band + inside % height) * {tile_rows};"));
    body.line(&format!("  const I first_column = inside / height * {tile_columns};"));
    for (name, (matrix, pointer)) in ["left", "right"].iter().zip(operands) {
        let first = matrix.map_or_else(|| "0".to_owned(), |matrix| matrix.first(body, "batch"));
        body.line(&format!("  const {element}* {name} = (const {element}*)p{pointer} + {first};"));
    }
    std::mem::take(&mut body.text)
}

/// Copies of one operand's tile, whose free axis has so many elements.
fn load(operand: &Operand<'_>, tile: &Tile, numbers: Numbers, is_left: bool, extent: usize) -> String {
    let (name, first, size) =
        if is_left { ("left", "first_row", tile.rows) } else { ("right", "first_column", tile.columns) };
    let (from, n) = (if is_left { String::new() } else { format!(" + {}", tile.rows * PIECES) }, numbers.piece);
    let (pieces, exchange, row, column) = if operand.contracts_rows() {
        (PIECES, "row / 2 % 4", format!("{first} + row"), format!("depth + piece * {n}"))
    } else {
        (size / n, "row % 8", "depth + row".to_owned(), format!("{first} + piece * {n}"))
    };
    let (most_rows, most_columns) =
        if operand.contracts_rows() { (extent.to_string(), "@K".into()) } else { ("@K".into(), extent.to_string()) };
    let element = match operand {
        Operand::Matrix(matrix) => format!("const I at = r * {} + c;\n", matrix.stride),
        Operand::Windows(windows) => windows.element(),
    };
    format!(
        "      for (int e = threadIdx.x; e < {0}; e += @THREADS) {{\n        \
         const int row = e / {pieces}, piece = e % {pieces};\n        \
         const I r = {row}, c = {column};\n        \
         const bool there = r < {most_rows} && c < {most_columns};\n        \
         {element}        \
         fx_copy_async(to{from} + row * {pieces} + (piece ^ {exchange}), there ? {name} + at : {name}, there);\n      \
         }}\n",
        size * PIECES,
    )
}

/// Fragments of single precision are rounded, as the matrix units cut off what they do not take.
fn rounded(numbers: Numbers, name: &str) -> String {
    if !numbers.is_single() {
        return String::new();
    }
    format!("          for (int v = 0; v < 4; ++v) {name}[v] = fx_tf32({name}[v]);\n")
}

/// The numbers of a fragment in single precision whose contracted elements are rows of a tile of `size` columns: those of
/// two rows, a distance of four, in two columns, a distance of eight; `order` says which come in which order.
fn gathered(name: &str, tile: &str, size: usize, column: &str, order: [[usize; 2]; 4]) -> String {
    let mut text = format!("          const int row = half * 8 + lane % 4, column = {column} + lane / 4;\n");
    for (v, [rows, columns]) in order.into_iter().enumerate() {
        text += &format!(
            "          {name}[{v}] = {tile}[(row + {rows}) * {} + ((column + {columns}) / 4 ^ (row + {rows}) % 8)].x[column % 4];\n",
            size / 4
        );
    }
    text
}

/// A fragment of 16 rows, and of the contracted elements of two pieces, of the left operand.
fn left(operand: &Operand<'_>, tile: &Tile, numbers: Numbers) -> String {
    let fragment = if operand.contracts_rows() {
        "          const int row = row0 + i * 16 + lane % 16, piece = half * 2 + lane / 16;\n          \
         fx_matrices(a[i], x + row * 4 + (piece ^ row / 2 % 4));\n"
            .to_owned()
    } else if numbers.is_single() {
        gathered("a[i]", "x", tile.rows, "row0 + i * 16", [[0, 0], [0, 8], [4, 0], [4, 8]])
    } else {
        format!(
            "          const int row = half * 16 + lane % 8 + lane / 16 * 8, piece = (row0 + i * 16) / 8 + lane / 8 % 2;\n          \
             fx_matrices_transposed(a[i], x + row * {} + (piece ^ row % 8));\n",
            tile.rows / numbers.piece
        )
    };
    fragment + &rounded(numbers, "a[i]")
}

/// A fragment of the contracted elements of two pieces, and 16 columns, of the right operand.
fn right(operand: &Operand<'_>, tile: &Tile, numbers: Numbers) -> String {
    let fragment = if operand.contracts_rows() {
        "          const int row = column0 + j * 16 + lane % 8 + lane / 16 * 8, piece = half * 2 + lane / 8 % 2;\n          \
         fx_matrices(both, y + row * 4 + (piece ^ row / 2 % 4));\n"
            .to_owned()
    } else if numbers.is_single() {
        gathered("both", "y", tile.columns, "column0 + j * 16", [[0, 0], [4, 0], [0, 8], [4, 8]])
    } else {
        format!(
            "          const int row = half * 16 + lane % 16, piece = (column0 + j * 16) / 8 + lane / 16;\n          \
             fx_matrices_transposed(both, y + row * {} + (piece ^ row % 8));\n",
            tile.columns / numbers.piece
        )
    };
    fragment + &rounded(numbers, "both")
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
