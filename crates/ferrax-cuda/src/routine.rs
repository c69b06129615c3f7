//! What functions of NVIDIA's libraries compute, as data, and which of the libraries there are.
//!
//! A plan has such calls only for libraries that whoever asks for the plan says are there ([`Libraries`]); without them the
//! same graphs become kernels of our own. Read next: `plan/products.rs`, `plan/factors.rs`, and `driver/libraries` for the calls.

use ferrax_base::DType;
use ferrax_base::shape::product;
use ferrax_loops::fft::FftKind;
use ferrax_loops::linalg::LinalgOp;
use ferrax_loops::{Graph, Kind, Type};

/// Products and sums that are worth a call.
const WORTH: usize = 1 << 27;
/// Lengths of transforms that are better one product each.
const SHORT: usize = 32;
/// Rows or columns from which on a matrix is worth a call, and those of a Cholesky factor, which has a kernel of its own.
const FACTORED: usize = 16;
const CHOLESKY: usize = 64;

/// Libraries that a plan may call, or that a graph has work for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Libraries {
    /// cuBLASLt: products of matrices.
    pub products: bool,
    /// cuFFT: Fourier transforms.
    pub transforms: bool,
    /// cuSOLVER: factorizations.
    pub factors: bool,
    /// Its eigenvalues of many matrices in one call, which later versions have.
    pub spectra: bool,
}

impl Libraries {
    /// All of them.
    pub const ALL: Libraries = Libraries { products: true, transforms: true, factors: true, spectra: true };

    /// Those that a graph has work for.
    pub fn wanted(graph: &Graph) -> Libraries {
        let mut wanted = Libraries::default();
        for node in &graph.nodes {
            let (result, operand) = (graph.ty(node.first), |k: usize| graph.ty(node.inputs[k]));
            wanted = wanted.or(match &node.kind {
                Kind::Dot(dims) => {
                    let summed = dims.lhs_contract.iter().map(|&a| operand(0).shape[a]);
                    Libraries { products: is_worth([result.size(), product(summed)]), ..Libraries::default() }
                }
                Kind::Conv(_) => {
                    let window = &operand(1).shape;
                    let summed = product(window[..window.len() - 1].iter().copied());
                    Libraries { products: is_worth([result.size(), summed]), ..Libraries::default() }
                }
                Kind::Fft { kind, axes } => {
                    Libraries { transforms: is_long(*kind, *axes, operand(0), result), ..Libraries::default() }
                }
                Kind::Linalg(op) => {
                    let wants = is_factored(Libraries::ALL, *op, operand(0), result);
                    Libraries { factors: wants, spectra: wants, ..Libraries::default() }
                }
                Kind::While { cond, body, .. } => Libraries::wanted(cond).or(Libraries::wanted(body)),
                Kind::Scan { body, .. } | Kind::Call(body) => Libraries::wanted(body),
                Kind::Switch(branches) => {
                    branches.iter().map(|g| Libraries::wanted(g)).fold(Libraries::default(), Libraries::or)
                }
                _ => Libraries::default(),
            });
        }
        wanted
    }

    fn or(self, other: Libraries) -> Libraries {
        Libraries {
            products: self.products || other.products,
            transforms: self.transforms || other.transforms,
            factors: self.factors || other.factors,
            spectra: self.spectra || other.spectra,
        }
    }
}

/// Whether products and sums, so many times so many, are worth a call of a library, which no graph of steps has.
pub fn is_worth<const N: usize>(counts: [usize; N]) -> bool {
    product(counts.into_iter()) >= WORTH
}

/// Whether a transform is long enough for one.
pub fn is_long(kind: FftKind, axes: usize, operand: &Type, result: &Type) -> bool {
    let whole = if kind == FftKind::Real { operand } else { result };
    let lengths = &whole.shape[whole.shape.len() - axes..];
    result.size() > 0 && operand.size() > 0 && lengths.iter().any(|&n| n > SHORT)
}

/// Whether a factorization is a library's work: of matrices that are not small, nor many but where one call takes all.
pub fn is_factored(l: Libraries, op: LinalgOp, operand: &Type, result: &Type) -> bool {
    let [.., m, n] = operand.shape[..] else { return false };
    let least = match op {
        LinalgOp::Cholesky => CHOLESKY,
        // the library has no more columns than rows
        LinalgOp::HouseholderProduct if result.shape.last().is_none_or(|c| *c > m || *c < m.min(n)) => return false,
        LinalgOp::Eigh { .. } if l.spectra => 2,
        LinalgOp::Lu | LinalgOp::Qr { pivoted: false } | LinalgOp::HouseholderProduct => FACTORED,
        LinalgOp::Eigh { .. } | LinalgOp::Svd { .. } => FACTORED,
        _ => return false,
    };
    let (side, many) = (m.min(n), l.spectra && matches!(op, LinalgOp::Eigh { .. }));
    let numbers = matches!(operand.dtype, DType::F32 | DType::F64 | DType::C64 | DType::C128);
    l.factors && numbers && side >= least && operand.size() > 0 && (many || operand.size() / (m * n) <= side)
}

/// A call of a library, with everything that it depends on but addresses.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Routine {
    /// (left, right) → products of matrices, rows side by side, batch by batch.
    Product(Product),
    /// (x) → the transform, not divided by anything.
    Transform(Transform),
    /// (more operands) → what the matrices become in their place, more results, a code for each matrix (`plan/factors.rs`).
    Factor(Factor),
}

/// Products of matrices.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Product {
    /// The operands' dtype.
    pub dtype: DType,
    /// The result's.
    pub out: DType,
    /// Whether operands in single precision may be rounded to TF32.
    pub tf32: bool,
    /// How many products.
    pub batch: usize,
    /// Rows of the left operand, and of the result.
    pub m: usize,
    /// Columns of the right one, and of the result.
    pub n: usize,
    /// Products of a sum.
    pub k: usize,
    /// How the operands lie.
    pub left: Layout,
    /// As `left`.
    pub right: Layout,
}

/// How the matrices of an operand lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Whether contracted elements lie side by side; elements of the free axis do otherwise.
    pub contracts_rows: bool,
    /// Elements from a row to the next one.
    pub stride: usize,
    /// Elements from a matrix to the next one.
    pub batch_stride: usize,
}

/// Fourier transforms over the last axes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Transform {
    /// Which.
    pub kind: FftKind,
    /// Whether numbers are in double precision.
    pub double: bool,
    /// The lengths, of the axes of the side that is not halved.
    pub lengths: Vec<usize>,
    /// How many transforms.
    pub batch: usize,
}

/// Factorizations of matrices whose columns lie one behind the other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Factor {
    /// Which; a triangle is that of the transposed matrix, as rows have it.
    pub op: LinalgOp,
    /// The matrices' dtype.
    pub dtype: DType,
    /// How many matrices.
    pub batch: usize,
    /// Rows.
    pub m: usize,
    /// Columns.
    pub n: usize,
    /// Reflections of a product, or columns of the long side's singular vectors.
    pub k: usize,
}
