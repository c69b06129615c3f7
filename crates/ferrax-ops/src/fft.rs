//! Fourier transforms over the last axes. Linear: each is the transpose of one of the others, up to weights.
//!
//! The transform of a real array is Hermitian, so that only half of it along the last axis is kept; entries between the
//! ends of that half stand for two. With m = 1 at the ends and 2 between, and N the number of elements transformed:
//! irfft(z) = Re Σ m z e^{iθ} / N, so that its transpose is conj(m rfft(t)) / N, and that of rfft is N irfft(conj(t) / m).
//! Inverse transforms divide by N. Read next: `ferrax-cpu/src/library/fft/mod.rs`.

use crate::common::{Accept, constant};
use crate::common::{FROM_KERNEL, NO_REWRITE, unary_aval};
use crate::elementwise::binary::{div, mul};
use crate::elementwise::compare::ne;
use crate::elementwise::select::select;
use crate::elementwise::unary::conj;
use crate::numbers::{Complex, complex, to_complex};
use crate::registry::Primitive;
use crate::shape::iota;
use ferrax_base::shape::Tuple;
use ferrax_base::symbolic::{Operation, dims, is_symbolic};
use ferrax_base::{Aval, DType, Result, Scalar, Shape, bail};
use ferrax_ir::reference::RefTensor;
use ferrax_ir::trace::bind1;
use ferrax_ir::{Avals, Def, OpRef, Param, ParamValue, Slot, Special, Value, params};
use ferrax_loops::fft::FftKind;
use ferrax_loops::{Kind, Type};
use ferrax_transform::structural::{broadcast_in_dim, linear_jvp, move_axis};
use smallvec::smallvec;

/// The kind of a transform; prints as JAX's number of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FftType {
    /// Complex to complex.
    Fft,
    /// Its inverse.
    Ifft,
    /// Real to half of its transform.
    Rfft,
    /// Its inverse.
    Irfft,
}

const TYPES: [FftType; 4] = [FftType::Fft, FftType::Ifft, FftType::Rfft, FftType::Irfft];

impl FftType {
    /// The type with JAX's number.
    pub fn from_number(n: usize) -> Option<FftType> {
        TYPES.get(n).copied()
    }

    /// JAX's name.
    pub const fn name(self) -> &'static str {
        ["FFT", "IFFT", "RFFT", "IRFFT"][self as usize]
    }

    const fn kind(self) -> FftKind {
        [FftKind::Forward, FftKind::Inverse, FftKind::Real, FftKind::RealInverse][self as usize]
    }
}

impl ParamValue for FftType {
    fn print(&self) -> Param {
        Param::Text((*self as usize).to_string())
    }
    fn parse(text: &Param) -> Option<Self> {
        FftType::from_number(usize::parse(text)?)
    }
}

params! {
    /// Parameters of `fft`.
    pub struct Fft {
        /// Sizes of the last axes, of the real array where one is.
        fft_lengths: Shape,
        /// Which transform.
        fft_type: FftType,
    }
}

/// A Fourier transform over the last axes.
pub static FFT: Def<Fft> = Def {
    name: "fft",
    doc: "The Fourier transform, or its inverse, of complex or real arrays over their last axes.",
    arity: Some(1),
    shape: fft_shape,
    jvp: Slot::Rule(linear_jvp),
    transpose: Slot::Rule(|_, p, cts, _| {
        let Some(t) = &cts[0] else { return Ok(smallvec![None]) };
        Ok(smallvec![Some(transposed(p, t)?)])
    }),
    batch: Slot::Rule(|op, _, _, args, dims| {
        let x = move_axis(&args[0], dims[0].unwrap_or(0), 0)?;
        Ok((smallvec![bind1(op, &[x])?], smallvec![Some(0)]))
    }),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, p, b, args, outs| {
        let kind = Kind::Fft { kind: p.fft_type.kind(), axes: p.fft_lengths.len() };
        Ok(smallvec![b.push(kind, args, Type::from(&outs[0]))])
    }),
    reference: Slot::Rule(|p, args, outs| Ok(vec![fft_reference(p, &args[0], &outs[0])])),
    special: Special::NONE,
};

fn fft_shape(p: &Fft, args: &[&Aval]) -> Result<Avals> {
    let x = args[0];
    let (name, axes) = (p.fft_type.name(), p.fft_lengths.len());
    let accept = if p.fft_type == FftType::Rfft { Accept::FLOAT } else { Accept::COMPLEX };
    unary_aval("fft", accept, args)?;
    if !matches!(x.dtype.real(), DType::F32 | DType::F64) {
        bail!(Value, "{name} requires input of type float32, float64, complex64 or complex128, got {}.", x.dtype);
    }
    if axes == 0 || axes > x.rank() {
        bail!(Value, "{name} over {axes} axes takes arrays with as many axes, got shape {}.", Tuple(&x.shape));
    }
    let mut expected = p.fft_lengths.clone();
    if p.fft_type == FftType::Irfft {
        expected[axes - 1] = half(expected[axes - 1])?;
    }
    let own = &x.shape[x.rank() - axes..];
    if own != expected.as_slice() {
        bail!(
            Value,
            "{name} input shape {} minor dimensions must be equal to {}{} for fft_lengths={}",
            Tuple(&x.shape),
            if p.fft_type == FftType::Irfft { "all but the last fft_length, " } else { "fft_lengths " },
            Tuple(&expected),
            Tuple(&p.fft_lengths)
        );
    }
    let mut shape = x.shape.clone();
    let last = shape.len() - 1;
    shape[last] = match p.fft_type {
        FftType::Rfft => half(p.fft_lengths[axes - 1])?,
        _ => p.fft_lengths[axes - 1],
    };
    let dtype = if p.fft_type == FftType::Irfft { x.dtype.real() } else { x.dtype.to_complex() };
    Ok(smallvec![Aval::new(dtype, &shape)])
}

/// How many entries of `n` say what the others are.
fn half(n: usize) -> Result<usize> {
    dims(Operation::Add, dims(Operation::Div, n, 2)?, 1)
}

/// `x` with the entries of the half of a transform that stand for two multiplied by `inner`.
fn weighted(x: &Value, n: usize, inner: f64) -> Result<Value> {
    if is_symbolic(n) {
        bail!(NotImplemented, "derivatives of real Fourier transforms are not implemented for symbolic sizes of axes");
    }
    let half = n / 2 + 1;
    let index = iota(DType::I32, &[half], 0)?;
    let at = |v: usize| Value::Lit(ferrax_ir::Lit { scalar: Scalar::from_i64(DType::I32, v as i64), weak: false });
    let mut twice = ne(&index, &at(0))?;
    if n.is_multiple_of(2) {
        twice = crate::bitwise_and(&twice, &ne(&index, &at(n / 2))?)?;
    }
    let last = x.rank() - 1;
    let twice = broadcast_in_dim(&twice, x.shape(), &[last])?;
    select(&twice, &mul(x, &constant(x, inner))?, x)
}

fn transposed(p: &Fft, t: &Value) -> Result<Value> {
    let lengths = &p.fft_lengths;
    let (n, total) = (lengths[lengths.len() - 1], ferrax_base::shape::size(lengths) as f64);
    match p.fft_type {
        FftType::Fft | FftType::Ifft => fft(t, p.fft_type, lengths),
        FftType::Rfft => {
            let x = fft(&weighted(&conj(t)?, n, 0.5)?, FftType::Irfft, lengths)?;
            mul(&x, &constant(&x, total))
        }
        FftType::Irfft => {
            let z = conj(&weighted(&fft(t, FftType::Rfft, lengths)?, n, 2.0)?)?;
            div(&z, &constant(&z, total))
        }
    }
}

/// The sums of the definition.
fn fft_reference(p: &Fft, x: &RefTensor, out: &Aval) -> RefTensor {
    let lengths = &p.fft_lengths;
    let (rank, axes) = (out.rank(), lengths.len());
    let inverse = matches!(p.fft_type, FftType::Ifft | FftType::Irfft);
    let sign = if inverse { 1.0 } else { -1.0 };
    let total: f64 = if inverse { ferrax_base::shape::size(lengths) as f64 } else { 1.0 };
    let last = lengths[axes - 1];
    RefTensor::build(out, |i| {
        let mut at: Vec<usize> = i.to_vec();
        at[rank - axes..].fill(0);
        let mut sum = complex(0.0, 0.0);
        let own = &x.aval.shape[rank - axes..];
        for _ in 0..ferrax_base::shape::size(own) {
            let k = &at[rank - axes..];
            let turn: f64 = (0..axes).map(|d| (k[d] * i[rank - axes + d]) as f64 / lengths[d] as f64).sum();
            let angle = sign * 2.0 * std::f64::consts::PI * turn;
            let mut term: Complex = to_complex(x.at(&at)) * complex(angle.cos(), angle.sin());
            if p.fft_type == FftType::Irfft {
                let edge = k[axes - 1] == 0 || 2 * k[axes - 1] == last;
                term = complex(if edge { term.re } else { 2.0 * term.re }, 0.0);
            }
            sum = sum + term;
            ferrax_ir::reference::advance(&mut at[rank - axes..], own);
        }
        if out.dtype.is_complex() {
            Scalar::from_complex(out.dtype, sum.re / total, sum.im / total)
        } else {
            Scalar::from_f64(out.dtype, sum.re / total)
        }
    })
}

/// A Fourier transform over as many of the last axes as `lengths` has entries.
pub fn fft(x: &Value, fft_type: FftType, lengths: &[usize]) -> Result<Value> {
    let params = Fft { fft_lengths: Shape::from_slice(lengths), fft_type };
    bind1(&OpRef::new(&FFT, params), std::slice::from_ref(x))
}

/// The primitives of this file.
pub(crate) static PRIMITIVES: &[&'static dyn Primitive] = &[&FFT];
