//! Arrays of scalars, the slow and plain counterpart of buffers, and how to run one node on them.

#![allow(dead_code)]

mod cases;

#[allow(unused_imports)]
pub use cases::cases;
use ferrax_base::{Buffer, DType, Scalar, shape};
use ferrax_cpu::eager;
use ferrax_loops::{Kind, Type};

/// Whether this process has the machine.
pub fn has_machine() -> bool {
    #[cfg(target_arch = "x86_64")]
    let there = std::is_x86_feature_detected!("avx2")
        && std::is_x86_feature_detected!("fma")
        && std::is_x86_feature_detected!("f16c");
    #[cfg(not(target_arch = "x86_64"))]
    let there = cfg!(target_arch = "aarch64");
    there && !cfg!(feature = "portable") && std::env::var("FERRAX_CPU_ISA").as_deref() != Ok("portable")
}

/// Dtypes that arithmetic is tested on.
pub const NUMBERS: [DType; 14] = [
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::F16,
    DType::BF16,
    DType::F32,
    DType::F64,
    DType::C64,
    DType::C128,
];

/// A small deterministic generator.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    pub fn shape(&mut self, rank: usize, most: usize) -> Vec<usize> {
        (0..rank).map(|_| self.below(most + 1)).collect()
    }

    /// A random subset of the axes, in order.
    pub fn axes(&mut self, rank: usize) -> Vec<usize> {
        (0..rank).filter(|_| self.below(2) == 0).collect()
    }

    pub fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut p: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            p.swap(i, self.below(i + 1));
        }
        p
    }

    /// Any value of a dtype, the awkward ones often.
    pub fn scalar(&mut self, d: DType) -> Scalar {
        let special = self.below(6);
        if d.is_inexact() && special == 0 {
            let v = [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1.0][self.below(6)];
            return Scalar::from_complex(d, v, if d.is_complex() { self.small() } else { 0.0 });
        }
        if d.is_integer() && special == 0 {
            let extremes = [ferrax_loops::kind::lowest(d), ferrax_loops::kind::highest(d)];
            return extremes[self.below(2)];
        }
        if d.is_integer() && special < 3 {
            let bits = self.next() as u128 & ((1u128 << d.bits()) - 1);
            return Scalar::from_i64(d, Scalar { dtype: d, bits }.to_i64());
        }
        self.tame(d)
    }

    fn small(&mut self) -> f64 {
        (self.below(81) as f64 - 40.0) / 8.0
    }

    /// A small value, exact in every float format and often repeated.
    pub fn tame(&mut self, d: DType) -> Scalar {
        if d.is_bool() {
            return Scalar::from_bool(self.below(2) == 1);
        }
        if d.is_integer() {
            let v = self.below(13) as i64;
            return Scalar::from_i64(d, if d.is_signed() { v - 6 } else { v });
        }
        let (re, im) = (self.small(), self.small());
        Scalar::from_complex(d, re, im)
    }
}

/// An array of scalars.
#[derive(Clone, Debug)]
pub struct Array {
    pub ty: Type,
    pub data: Vec<Scalar>,
}

impl Array {
    pub fn new(dtype: DType, shape: &[usize], data: Vec<Scalar>) -> Array {
        let ty = Type::new(dtype, shape);
        assert_eq!(ty.size(), data.len());
        Array { ty, data }
    }

    pub fn random(rng: &mut Rng, dtype: DType, shape: &[usize]) -> Array {
        let n = shape::size(shape);
        Array::new(dtype, shape, (0..n).map(|_| rng.scalar(dtype)).collect())
    }

    pub fn tame(rng: &mut Rng, dtype: DType, shape: &[usize]) -> Array {
        let n = shape::size(shape);
        Array::new(dtype, shape, (0..n).map(|_| rng.tame(dtype)).collect())
    }

    pub fn integers(dtype: DType, shape: &[usize], data: &[i64]) -> Array {
        Array::new(dtype, shape, data.iter().map(|&v| Scalar::from_i64(dtype, v)).collect())
    }

    pub fn floats(dtype: DType, shape: &[usize], data: &[f64]) -> Array {
        Array::new(dtype, shape, data.iter().map(|&v| Scalar::from_f64(dtype, v)).collect())
    }

    /// Each element from its index.
    pub fn from_fn(dtype: DType, shape: &[usize], mut f: impl FnMut(&[usize]) -> Scalar) -> Array {
        let n = shape::size(shape);
        let data = (0..n).map(|i| f(&unravel(i, shape))).collect();
        Array::new(dtype, shape, data)
    }

    pub fn at(&self, index: &[usize]) -> Scalar {
        self.data[ravel(index, &self.ty.shape)]
    }

    pub fn buffer(&self) -> Buffer {
        let size = self.ty.dtype.size();
        let bytes: Vec<u8> = self.data.iter().flat_map(|s| storage(*s)[..size].to_vec()).collect();
        Buffer::from_bytes(&bytes).unwrap()
    }

    pub fn of(ty: &Type, b: &Buffer) -> Array {
        let d = ty.dtype;
        let data = b.bytes().chunks_exact(d.size()).map(|c| load(d, c)).collect();
        Array { ty: ty.clone(), data }
    }
}

/// Bytes as the host keeps them: sub-byte integers sign-extended.
fn storage(s: Scalar) -> [u8; 16] {
    if s.dtype.is_signed() { (s.to_i64() as u64 as u128).to_le_bytes() } else { s.to_bytes() }
}

fn load(d: DType, bytes: &[u8]) -> Scalar {
    let s = Scalar::from_bytes(d, bytes);
    if d.is_integer() && d.bits() < 8 {
        let low = Scalar { dtype: d, bits: s.bits & ((1 << d.bits()) - 1) };
        assert_eq!(storage(low)[0], bytes[0], "{d} is stored extended");
        return low;
    }
    s
}

pub fn unravel(mut linear: usize, shape: &[usize]) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    for (i, &n) in index.iter_mut().zip(shape).rev() {
        *i = linear % n;
        linear /= n;
    }
    index
}

pub fn ravel(index: &[usize], shape: &[usize]) -> usize {
    index.iter().zip(shape).fold(0, |l, (&i, &n)| l * n + i)
}

/// Runs one node.
pub fn node(kind: &Kind, inputs: &[&Array], results: &[Type]) -> Vec<Array> {
    let buffers: Vec<Buffer> = inputs.iter().map(|a| a.buffer()).collect();
    let args: Vec<(&Type, &Buffer)> = inputs.iter().zip(&buffers).map(|(a, b)| (&a.ty, b)).collect();
    let out = eager::run_node(kind, &args, results).unwrap_or_else(|e| panic!("{kind:?}: {e}"));
    out.iter().zip(results).map(|(b, ty)| Array::of(ty, b)).collect()
}

/// The same bits, or both NaN (part by part).
pub fn same(a: Scalar, b: Scalar) -> bool {
    let part = |x: f64, y: f64| x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan());
    a.bits == b.bits || (a.dtype.is_inexact() && part(a.to_f64(), b.to_f64()) && part(a.imag(), b.imag()))
}

#[track_caller]
pub fn assert_same(got: &Array, want: &Array, what: &dyn std::fmt::Debug) {
    assert_eq!(got.ty, want.ty, "{what:?}");
    for (i, (g, w)) in got.data.iter().zip(&want.data).enumerate() {
        assert!(same(*g, *w), "{what:?} at {:?}: got {g}, want {w} ({})", unravel(i, &got.ty.shape), got.ty);
    }
}

/// Distance in units in the last place of `dtype` at `want`; 0 when both are NaN or the same infinity.
pub fn ulps(dtype: DType, got: f64, want: f64) -> f64 {
    if got == want || (got.is_nan() && want.is_nan()) {
        return 0.0;
    }
    if !got.is_finite() || got.is_nan() != want.is_nan() {
        // An overflow of the rounded result counts by the value just above the largest.
        let limit = if dtype == DType::F32 { f64::from(f32::MAX) } else { f64::MAX };
        return if want.abs() >= limit * (1.0 - 1e-6) && got.is_infinite() { 1.0 } else { f64::INFINITY };
    }
    let (digits, least) = if dtype == DType::F32 { (23, -126) } else { (52, -1022) };
    let exponent = if want == 0.0 { least } else { (want.abs().log2().floor() as i32).max(least) };
    (got - want).abs() / 2f64.powi(exponent) * 2f64.powi(digits)
}
