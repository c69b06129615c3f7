//! What a node computes. Operand order and result types are said at each variant; `Builder` checks them.
//!
//! Semantics are those of JAX's `lax` functions of the same names (NaN propagation, integer wrap-around,
//! division by zero, shift overflow, …). Elementwise operands have equal shapes, or are scalars (rank 0)
//! that stand for every element.

use crate::fft::FftKind;
use crate::graph::Graph;
use crate::host::HostRef;
use crate::linalg::LinalgOp;
use ferrax_base::{DType, Scalar, Shape};
use smallvec::SmallVec;
use std::sync::Arc;

/// Elementwise functions of one operand; the result has the operand's dtype unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum UnaryOp {
    /// Integers wrap.
    Neg,
    /// -1, 0 or 1 (NaN stays NaN; -0.0 stays -0.0); complex: x/|x|, 0 at 0.
    Sign,
    /// Complex gives the real dtype.
    Abs,
    Floor,
    Ceil,
    /// Ties away from zero.
    RoundAway,
    /// Ties to even.
    RoundEven,
    /// Gives `bool`.
    IsFinite,
    Exp,
    Exp2,
    Expm1,
    Log,
    Log1p,
    Sqrt,
    Rsqrt,
    Cbrt,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Tanh,
    Asinh,
    Acosh,
    Atanh,
    /// 1 / (1 + exp(-x)).
    Logistic,
    Erf,
    Erfc,
    ErfInv,
    Lgamma,
    Digamma,
    /// Bitwise on integers, logical on `bool`.
    Not,
    PopulationCount,
    CountLeadingZeros,
    /// Complex to its real part.
    Real,
    /// Complex to its imaginary part.
    Imag,
    Conj,
    BesselI0e,
    BesselI1e,
}

/// Elementwise functions of two operands of one dtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum BinaryOp {
    /// `bool`: or.
    Add,
    Sub,
    /// `bool`: and.
    Mul,
    /// Floats: IEEE. Integers: truncating; x/0 = -1 (all ones unsigned); MIN/-1 = MIN.
    Div,
    /// Sign of the dividend, as C's fmod; integers: x rem 0 = x.
    Rem,
    /// Float to float power.
    Pow,
    /// NaN wins; complex compare lexicographically, and the second one is the result where neither is beyond the other.
    Max,
    Min,
    Atan2,
    And,
    Or,
    Xor,
    /// Shift amounts of at least the width give 0.
    ShiftLeft,
    /// Shift amounts of at least the width give the sign.
    ShiftRightArithmetic,
    /// Shift amounts of at least the width give 0.
    ShiftRightLogical,
    Nextafter,
    /// Two reals to a complex.
    Complex,
    /// Regularized incomplete gamma functions and their kin.
    Igamma,
    Igammac,
    /// zeta(x, q) and polygamma(n, x).
    Zeta,
    Polygamma,
}

/// Comparisons; give `bool`. `Ne` is true for NaN, the others false. Complex: `Eq` and `Ne` only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum CompareOp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// IEEE total order: -NaN < -inf < … < -0 < +0 < … < inf < NaN.
    LtTotal,
    LeTotal,
    EqTotal,
}

/// Monoids for reductions, cumulative scans and reduce-windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum ReduceOp {
    Sum,
    Prod,
    Max,
    Min,
    And,
    Or,
    Xor,
    /// log of the sum of exponentials; cumulative scans only.
    LogSumExp,
}

/// Contracting and batch axes of a dot product. The result's axes are: batch, lhs free, rhs free.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct DotDims {
    /// Contracted axes of the left operand.
    pub lhs_contract: SmallVec<[usize; 2]>,
    /// Contracted axes of the right operand, in the same order.
    pub rhs_contract: SmallVec<[usize; 2]>,
    /// Batch axes of the left operand.
    pub lhs_batch: SmallVec<[usize; 2]>,
    /// Batch axes of the right operand, in the same order.
    pub rhs_batch: SmallVec<[usize; 2]>,
    /// Whether an engine may round operands in single precision to TF32, 10 bits behind the point.
    pub tf32: bool,
}

/// What a slice takes of each axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SliceDims {
    /// The first index.
    pub start: Shape,
    /// The index behind the last one.
    pub limit: Shape,
    /// Steps between the indices.
    pub stride: Shape,
}

/// The windows of a reduction over windows, on each axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WindowDims {
    /// Extent of the window.
    pub window: Shape,
    /// Distance between windows.
    pub strides: Shape,
    /// Elements of padding before and after.
    pub padding: SmallVec<[(i64, i64); 4]>,
    /// Distance between operand elements once holes are put between them.
    pub base_dilation: Shape,
    /// Distance between the elements of a window.
    pub window_dilation: Shape,
}

/// Where the windows of a convolution lie.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConvDims {
    /// Steps of the window, one a spatial axis.
    pub strides: Shape,
    /// Spacing of the kernel's cells.
    pub rhs_dilation: Shape,
    /// Groups of features: outputs of a group see the inputs of that group.
    pub groups: usize,
    /// As for products: whether operands in single precision may be rounded to TF32.
    pub tf32: bool,
}

/// Low, high and interior padding of one axis; low and high may be negative (they crop).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct PadConfig {
    pub low: i64,
    pub high: i64,
    pub interior: usize,
}

impl PadConfig {
    /// The operand's indices along an axis of `n` that the padding leaves inside the result's `extent`.
    pub fn kept(&self, n: usize, extent: usize) -> std::ops::Range<usize> {
        // Index k lands at low + k * step.
        let (step, extent) = (self.interior as i64 + 1, extent as i64);
        let first = if self.low < 0 { (-self.low + step - 1) / step } else { 0 };
        let end = ((extent - self.low + step - 1).max(0) / step).min(n as i64);
        first as usize..end.max(first) as usize
    }

    /// Where an index that the padding keeps lies in the result; the first of none lies at or behind the beginning.
    pub fn landing(&self, k: usize) -> usize {
        (self.low + (k * (self.interior + 1)) as i64).max(0) as usize
    }
}

/// What gather and scatter do with indices outside the operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IndexMode {
    /// The window is moved inside.
    Clip,
    /// Gather gives the fill value; scatter drops the update.
    FillOrDrop,
    /// The caller promises that they are inside; the engine clips where it cannot trust.
    PromiseInBounds,
}

/// XLA's gather dimension numbers, with batching dimensions. The index vector is the last axis of the indices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct GatherDims {
    pub offset_dims: SmallVec<[usize; 4]>,
    pub collapsed_slice_dims: SmallVec<[usize; 4]>,
    pub start_index_map: SmallVec<[usize; 4]>,
    pub operand_batching_dims: SmallVec<[usize; 2]>,
    pub start_indices_batching_dims: SmallVec<[usize; 2]>,
}

/// What a gather takes, and how.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Gathering {
    /// Which axes the indices go along, and where the slices' axes come to lie.
    pub dims: GatherDims,
    /// Extent of a slice on each axis of the operand.
    pub slice_sizes: Shape,
    /// What becomes of indices outside.
    pub mode: IndexMode,
    /// The value of elements outside, under `FillOrDrop`.
    pub fill: Scalar,
    /// The caller promises ascending indices.
    pub sorted: bool,
    /// The caller promises different indices.
    pub unique: bool,
    /// Indices along one axis, without the vector axis; those below 0 count from the end. Lowerings write that as
    /// operations on the indices; engines that gain by it set this.
    pub wrap: bool,
}

/// XLA's scatter dimension numbers, with batching dimensions. The index vector is the last axis of the indices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct ScatterDims {
    pub update_window_dims: SmallVec<[usize; 4]>,
    pub inserted_window_dims: SmallVec<[usize; 4]>,
    pub scatter_dims_to_operand_dims: SmallVec<[usize; 4]>,
    pub operand_batching_dims: SmallVec<[usize; 2]>,
    pub scatter_indices_batching_dims: SmallVec<[usize; 2]>,
}

/// How scatter combines an update with what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum ScatterOp {
    /// Overwrite; of several updates of one element the last wins.
    Set,
    Add,
    Sub,
    Mul,
    Min,
    Max,
}

impl ScatterOp {
    /// The operation that joins an update to an element; none where it takes its place.
    pub fn joining(self) -> Option<BinaryOp> {
        Some(match self {
            ScatterOp::Set => return None,
            ScatterOp::Add => BinaryOp::Add,
            ScatterOp::Sub => BinaryOp::Sub,
            ScatterOp::Mul => BinaryOp::Mul,
            ScatterOp::Min => BinaryOp::Min,
            ScatterOp::Max => BinaryOp::Max,
        })
    }
}

/// The bytes of a constant array, shared with whoever holds the array: nothing is copied.
#[derive(Clone)]
pub struct Bytes(Arc<dyn AsRef<[u8]> + Send + Sync>);

impl Bytes {
    /// The bytes of an owner that keeps them where they are as long as it lives.
    pub fn of(owner: impl AsRef<[u8]> + Send + Sync + 'static) -> Bytes {
        Bytes(Arc::new(owner))
    }
}

impl std::ops::Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}

/// What is wanted of a division of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DivisionPart {
    /// The quotient rounded to zero.
    Quotient,
    /// What that leaves; it has the dividend's sign.
    Remainder,
    /// The quotient rounded down.
    Floor,
    /// What that leaves, which is not negative.
    Modulo,
}

/// Division of 32-bit integers by a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Division {
    /// The divisor, whose absolute value is at least 2; for `Floor` and `Modulo` it is positive.
    pub by: i64,
    /// What is wanted.
    pub part: DivisionPart,
}

/// What a node computes.
#[derive(Clone, Debug)]
pub enum Kind {
    /// () → the scalar, splatted over the result's shape.
    Const(Scalar),
    /// () → these bytes as an array (row-major).
    Dense(Bytes),
    /// (x) → f(x).
    Unary(UnaryOp),
    /// (x, y) → f(x, y).
    Binary(BinaryOp),
    /// (x, y) → bool.
    Compare(CompareOp),
    /// (which: bool or int32, case0, case1, …) → the case `which` selects (`false` → case0); out of range clamps. `which` may be rank 0.
    Select,
    /// (min, x, max); min and max may be rank 0.
    Clamp,
    /// (x, y integer exponent scalar static) → x**n by repeated multiplication; negative n gives 1/x**|n|.
    IntegerPow(i32),
    /// (x) → x divided by a constant. Lowerings write `Binary(Div)`; engines that gain by it write this.
    DivideBy(Division),
    /// (x) → x as the result's dtype: float to int truncates and saturates, NaN gives 0; complex to real drops the imaginary part; any to bool is x != 0.
    Convert,
    /// (x) → the same bits as the result's dtype; a change of width adds or removes a minor axis.
    Bitcast,
    /// (x) → x rounded to a float of this many exponent and mantissa bits.
    ReducePrecision {
        #[allow(missing_docs)]
        exponent_bits: u32,
        #[allow(missing_docs)]
        mantissa_bits: u32,
    },
    /// () → the index along this axis.
    Iota(usize),
    /// (x) → result; `dims[i]` is the result axis of operand axis i; operand axes of size 1 stretch.
    Broadcast(SmallVec<[usize; 4]>),
    /// (x) → same elements in row-major order, the result's shape.
    Reshape,
    /// (x) → axes permuted: result axis i is operand axis perm[i].
    Transpose(SmallVec<[usize; 4]>),
    /// (x) → x[start:limit:stride] on each axis.
    Slice(Box<SliceDims>),
    /// (x, value: rank 0).
    Pad(Box<[PadConfig]>),
    /// (x) → these axes reversed.
    Rev(SmallVec<[usize; 4]>),
    /// (x0, x1, …) joined along this axis.
    Concat(usize),
    /// (x, i0, i1, … : rank-0 integers) → the window starting there, clamped inside; its size is the result's shape.
    DynamicSlice,
    /// (x, update, i0, i1, …) → x with the window replaced; starts are clamped.
    DynamicUpdateSlice,
    /// (x) → reduced over these axes (removed). The dtype is the operand's.
    #[allow(missing_docs)]
    Reduce { op: ReduceOp, axes: SmallVec<[usize; 4]> },
    /// (x) → index (result dtype) of the first largest or smallest element along the axis (NaN wins), axis removed.
    #[allow(missing_docs)]
    ArgReduce { max: bool, axis: usize },
    /// (x0, …, xn, init0, …, initn) → n results; body takes (acc…, elem…) rank-0 values.
    #[allow(missing_docs)]
    ReduceWith { body: Arc<Graph>, axes: SmallVec<[usize; 4]> },
    /// (x) → running reduction along the axis.
    #[allow(missing_docs)]
    Cumulative { op: ReduceOp, axis: usize, reverse: bool },
    /// (x, init: rank 0) → windows reduced; the padding holds init.
    #[allow(missing_docs)]
    ReduceWindow { op: ReduceOp, window: Box<WindowDims> },
    /// (lhs, rhs) → dot product; the result's dtype is also the accumulation type (f32 for f16 and bf16 inside).
    Dot(Box<DotDims>),
    /// (x: batch, spatial…, features; kernel: spatial…, features of a group, outputs) → batch, spatial…, outputs. All
    /// windows lie inside x; the three have one dtype.
    Conv(Box<ConvDims>),
    /// (x0, x1, …) sorted together along the axis by the first `num_keys` in lexicographic order; NaN last, -0.0 = 0.0.
    #[allow(missing_docs)]
    Sort { axis: usize, num_keys: usize, stable: bool },
    /// (x) → the k largest along the axis and their int32 indices.
    #[allow(missing_docs)]
    TopK { k: usize, axis: usize },
    /// (operand, indices: integer) → result.
    Gather(Box<Gathering>),
    /// (operand, indices, updates) → result.
    #[allow(missing_docs)]
    Scatter { op: ScatterOp, dims: Box<ScatterDims>, mode: IndexMode, sorted: bool, unique: bool },
    /// (x) → the transform over this many of its last axes.
    #[allow(missing_docs)]
    Fft { kind: FftKind, axes: usize },
    /// (matrices…) → results, all with the same batch axes in front.
    Linalg(LinalgOp),
    /// (k0: u32 rank 0, k1, x0: u32[n], x1: u32[n]) → two u32[n]: the Threefry-2x32 block cipher (20 rounds). Keys may also have the counts' shape.
    Threefry2x32,
    /// (consts of cond…, consts of body…, carry…) → carry. cond gives a rank-0 bool.
    #[allow(missing_docs)]
    While { cond: Arc<Graph>, body: Arc<Graph>, cond_consts: usize, body_consts: usize },
    /// (consts…, carry…, xs… stacked on axis 0) → (carry…, ys… stacked). body: (consts, carry, x) → (carry, y).
    #[allow(missing_docs)]
    Scan { body: Arc<Graph>, length: usize, reverse: bool, consts: usize, carry: usize },
    /// (index: int32 rank 0, operands…) → the results of the chosen branch; the index clamps.
    Switch(Vec<Arc<Graph>>),
    /// (args…) → results of the graph.
    Call(Arc<Graph>),
    /// (args…) → results of host code.
    Host(HostRef),
    /// (x0, …) → the same; nothing moves across.
    Barrier,
}

impl Kind {
    /// Whether a run may call the host, which can be seen from outside.
    pub fn calls_host(&self) -> bool {
        self.of_host_calls(&|_| Some(())).is_some()
    }

    /// The first that there is of the calls of the host, those in bodies too.
    pub fn of_host_calls<R>(&self, of: &dyn Fn(&HostRef) -> Option<R>) -> Option<R> {
        match self {
            Kind::Host(call) => of(call),
            Kind::While { cond, body, .. } => cond.of_host_calls(of).or_else(|| body.of_host_calls(of)),
            Kind::Scan { body, .. } | Kind::Call(body) | Kind::ReduceWith { body, .. } => body.of_host_calls(of),
            Kind::Switch(branches) => branches.iter().find_map(|branch| branch.of_host_calls(of)),
            _ => None,
        }
    }

    /// Whether each result element depends only on the operand elements at the same place.
    pub fn is_elementwise(&self) -> bool {
        matches!(
            self,
            Kind::Unary(_)
                | Kind::Binary(_)
                | Kind::Compare(_)
                | Kind::Select
                | Kind::Clamp
                | Kind::IntegerPow(_)
                | Kind::DivideBy(_)
                | Kind::Convert
                | Kind::ReducePrecision { .. }
        )
    }
}

impl ReduceOp {
    /// The value that leaves others unchanged.
    pub fn identity(self, dtype: DType) -> Scalar {
        match self {
            ReduceOp::Sum | ReduceOp::Or | ReduceOp::Xor => Scalar::zero(dtype),
            ReduceOp::Prod => Scalar::one(dtype),
            ReduceOp::And if dtype.is_bool() => Scalar::from_bool(true),
            ReduceOp::And => Scalar::from_i64(dtype, -1),
            ReduceOp::Max | ReduceOp::LogSumExp => lowest(dtype),
            ReduceOp::Min => highest(dtype),
        }
    }

    /// What a fold of elements starts from: no element changes it into another than itself.
    pub fn start(self, dtype: DType) -> Scalar {
        match self {
            ReduceOp::Max => least(dtype),
            ReduceOp::Min => most(dtype),
            op => op.identity(dtype),
        }
    }

    /// The elementwise operation that it repeats; none for log-sum-exp.
    pub fn joining(self) -> Option<BinaryOp> {
        Some(match self {
            ReduceOp::Sum => BinaryOp::Add,
            ReduceOp::Prod => BinaryOp::Mul,
            ReduceOp::Max => BinaryOp::Max,
            ReduceOp::Min => BinaryOp::Min,
            ReduceOp::And => BinaryOp::And,
            ReduceOp::Or => BinaryOp::Or,
            ReduceOp::Xor => BinaryOp::Xor,
            ReduceOp::LogSumExp => return None,
        })
    }
}

/// What no value is less than: [`lowest`], in both parts of a complex number.
pub fn least(dtype: DType) -> Scalar {
    if dtype.is_complex() { Scalar::from_complex(dtype, f64::NEG_INFINITY, f64::NEG_INFINITY) } else { lowest(dtype) }
}

/// As [`least`], the largest.
pub fn most(dtype: DType) -> Scalar {
    if dtype.is_complex() { Scalar::from_complex(dtype, f64::INFINITY, f64::INFINITY) } else { highest(dtype) }
}

/// Minus infinity, or the least value of a dtype without infinities.
pub fn lowest(dtype: DType) -> Scalar {
    if dtype.is_signed() {
        Scalar::from_i64(dtype, -1i64 << (dtype.bits() - 1))
    } else if dtype.is_inexact() {
        Scalar::from_f64(dtype, f64::NEG_INFINITY)
    } else {
        Scalar::zero(dtype)
    }
}

/// Infinity, or the largest value of a dtype without infinities.
pub fn highest(dtype: DType) -> Scalar {
    if dtype.is_bool() {
        Scalar::from_bool(true)
    } else if dtype.is_unsigned() {
        Scalar::from_i64(dtype, -1)
    } else if dtype.is_signed() {
        Scalar::from_u64(dtype, (1u64 << (dtype.bits() - 1)) - 1)
    } else {
        Scalar::from_f64(dtype, f64::INFINITY)
    }
}
