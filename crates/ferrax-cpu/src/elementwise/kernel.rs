//! The shape of an elementwise kernel, and the macros that make one from an expression.
//!
//! A kernel reads operand arrays `xs[0..k]`, each of `n` elements, and writes `n` results; none of them
//! overlap. Scalars are splatted by the caller, so there is one loop per operation and dtype. Each loop is
//! compiled twice on x86-64, for the baseline and for AVX2 with FMA, functions of tiles for AVX-512 too; the fastest one
//! the machine has is picked when the kernel is looked up.

/// An elementwise loop: operands, results, element count, and an immediate whose meaning the operation says.
///
/// # Safety
/// Each operand must be valid for reads and the result valid for writes of `n` elements of the types that
/// the kernel was looked up for, aligned for them, and the result must not overlap an operand.
pub type Kernel = unsafe fn(xs: *const *const u8, out: *mut u8, n: usize, imm: u64);

/// Compiles a generic kernel body for both instruction sets and picks one.
#[cfg(target_arch = "x86_64")]
macro_rules! variants {
    ($body:ident) => {{
        #[target_feature(enable = "avx2,fma")]
        unsafe fn fast(xs: *const *const u8, out: *mut u8, n: usize, imm: u64) {
            // SAFETY: the caller keeps the contract of `Kernel`.
            unsafe { $body::<true>(xs, out, n, imm) }
        }
        if $crate::simd::wide() {
            fast as $crate::elementwise::kernel::Kernel
        } else {
            $body::<false> as $crate::elementwise::kernel::Kernel
        }
    }};
}

/// Picks the one variant there is.
#[cfg(not(target_arch = "x86_64"))]
macro_rules! variants {
    ($body:ident) => {
        $body::<{ $crate::simd::FUSED }> as $crate::elementwise::kernel::Kernel
    };
}

/// A kernel of one operand. `F` in the expression says whether fused multiply-add is there.
macro_rules! map1 {
    ($x:ident: $T:ty => $R:ty, $e:expr) => {{
        #[inline(always)]
        unsafe fn body<const F: bool>(xs: *const *const u8, out: *mut u8, n: usize, _: u64) {
            // SAFETY: the caller keeps the contract of `Kernel`.
            let (x, o) = unsafe {
                let x = std::slice::from_raw_parts((*xs).cast::<$T>(), n);
                (x, std::slice::from_raw_parts_mut(out.cast::<$R>(), n))
            };
            for (o, &$x) in o.iter_mut().zip(x) {
                *o = $e;
            }
        }
        $crate::elementwise::kernel::variants!(body)
    }};
}

/// A kernel of one operand from a function of tiles; compiled for AVX-512 too.
macro_rules! tile1 {
    ($T:ident, $m:ident::$f:ident) => {{
        #[inline(always)]
        unsafe fn tiles<const F: bool, const W: bool>(xs: *const *const u8, out: *mut u8, n: usize) {
            const TILE: usize = 256 / size_of::<$T>();
            // SAFETY: the caller keeps the contract of `Kernel`, and has `W` only with AVX-512.
            unsafe {
                let x = std::slice::from_raw_parts((*xs).cast::<$T>(), n);
                let o = std::slice::from_raw_parts_mut(out.cast::<$T>(), n);
                let ((x, last), (o, last_o)) = (x.as_chunks::<TILE>(), o.as_chunks_mut::<TILE>());
                for (x, o) in x.iter().zip(o) {
                    $m::$f::<F, W, TILE>(x, o);
                }
                if !last.is_empty() {
                    let (mut x, mut y) = ([0.0; TILE], [0.0; TILE]);
                    x[..last.len()].copy_from_slice(last);
                    $m::$f::<F, W, TILE>(&x, &mut y);
                    last_o.copy_from_slice(&y[..last.len()]);
                }
            }
        }
        $crate::elementwise::kernel::widest!(tiles)
    }};
}

/// A kernel of two operands from a function of tiles; compiled for AVX-512 too.
macro_rules! tile2 {
    ($T:ident, $m:ident::$f:ident) => {{
        #[inline(always)]
        unsafe fn tiles<const F: bool, const W: bool>(xs: *const *const u8, out: *mut u8, n: usize) {
            const TILE: usize = 256 / size_of::<$T>();
            // SAFETY: the caller keeps the contract of `Kernel`, and has `W` only with AVX-512.
            unsafe {
                let x = std::slice::from_raw_parts((*xs).cast::<$T>(), n);
                let y = std::slice::from_raw_parts((*xs.add(1)).cast::<$T>(), n);
                let o = std::slice::from_raw_parts_mut(out.cast::<$T>(), n);
                let ((x, last_x), (y, last_y)) = (x.as_chunks::<TILE>(), y.as_chunks::<TILE>());
                let (o, last_o) = o.as_chunks_mut::<TILE>();
                for ((x, y), o) in x.iter().zip(y).zip(o) {
                    $m::$f::<F, W, TILE>(x, y, o);
                }
                if !last_x.is_empty() {
                    let (mut x, mut y, mut r) = ([0.0; TILE], [0.0; TILE], [0.0; TILE]);
                    x[..last_x.len()].copy_from_slice(last_x);
                    y[..last_y.len()].copy_from_slice(last_y);
                    $m::$f::<F, W, TILE>(&x, &y, &mut r);
                    last_o.copy_from_slice(&r[..last_x.len()]);
                }
            }
        }
        $crate::elementwise::kernel::widest!(tiles)
    }};
}

/// The variants of `tiles`: the AVX-512 one where the machine has it, else what `variants` picks.
macro_rules! widest {
    ($tiles:ident) => {{
        #[inline(always)]
        unsafe fn body<const F: bool>(xs: *const *const u8, out: *mut u8, n: usize, _: u64) {
            // SAFETY: the caller keeps the contract of `Kernel`.
            unsafe { $tiles::<F, false>(xs, out, n) }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
        unsafe fn widest(xs: *const *const u8, out: *mut u8, n: usize, _: u64) {
            // SAFETY: the caller keeps the contract of `Kernel`.
            unsafe { $tiles::<true, true>(xs, out, n) }
        }
        #[cfg(target_arch = "x86_64")]
        let wide = ($crate::simd::isa() == Some($crate::simd::Isa::Avx512))
            .then_some(widest as $crate::elementwise::kernel::Kernel);
        #[cfg(not(target_arch = "x86_64"))]
        let wide = None;
        wide.unwrap_or_else(|| $crate::elementwise::kernel::variants!(body))
    }};
}

/// A kernel of one complex operand from a formula for many numbers and the function of one.
macro_rules! complex1 {
    ($C:ty, $f:ident) => {{
        unsafe fn body(xs: *const *const u8, out: *mut u8, n: usize, _: u64) {
            // SAFETY: the caller keeps the contract of `Kernel`.
            let (x, o) = unsafe {
                let x = std::slice::from_raw_parts((*xs).cast::<$C>(), n);
                (x, std::slice::from_raw_parts_mut(out.cast::<$C>(), n))
            };
            $crate::math::together::each([x], o, $crate::math::together::$f(), |[z]| $crate::math::complex::$f(z));
        }
        body as $crate::elementwise::kernel::Kernel
    }};
}

/// A kernel of two complex operands, as `complex1`.
macro_rules! complex2 {
    ($C:ty, $f:ident) => {{
        unsafe fn body(xs: *const *const u8, out: *mut u8, n: usize, _: u64) {
            // SAFETY: the caller keeps the contract of `Kernel`.
            let (x, y, o) = unsafe {
                let x = std::slice::from_raw_parts((*xs).cast::<$C>(), n);
                let y = std::slice::from_raw_parts((*xs.add(1)).cast::<$C>(), n);
                (x, y, std::slice::from_raw_parts_mut(out.cast::<$C>(), n))
            };
            $crate::math::together::each([x, y], o, $crate::math::together::$f(), |[x, y]| {
                $crate::math::complex::$f(x, y)
            });
        }
        body as $crate::elementwise::kernel::Kernel
    }};
}

/// As `map1`, with the immediate bound to a name.
macro_rules! map1_imm {
    ($imm:ident, $x:ident: $T:ty => $R:ty, $e:expr) => {{
        #[inline(always)]
        unsafe fn body<const F: bool>(xs: *const *const u8, out: *mut u8, n: usize, $imm: u64) {
            // SAFETY: the caller keeps the contract of `Kernel`.
            let (x, o) = unsafe {
                let x = std::slice::from_raw_parts((*xs).cast::<$T>(), n);
                (x, std::slice::from_raw_parts_mut(out.cast::<$R>(), n))
            };
            for (o, &$x) in o.iter_mut().zip(x) {
                *o = $e;
            }
        }
        $crate::elementwise::kernel::variants!(body)
    }};
}

/// A kernel of two operands of one type.
macro_rules! map2 {
    ($x:ident, $y:ident: $T:ty => $R:ty, $e:expr) => {{
        #[inline(always)]
        unsafe fn body<const F: bool>(xs: *const *const u8, out: *mut u8, n: usize, _: u64) {
            // SAFETY: the caller keeps the contract of `Kernel`.
            let (x, y, o) = unsafe {
                let x = std::slice::from_raw_parts((*xs).cast::<$T>(), n);
                let y = std::slice::from_raw_parts((*xs.add(1)).cast::<$T>(), n);
                (x, y, std::slice::from_raw_parts_mut(out.cast::<$R>(), n))
            };
            for ((o, &$x), &$y) in o.iter_mut().zip(x).zip(y) {
                *o = $e;
            }
        }
        $crate::elementwise::kernel::variants!(body)
    }};
}

/// A kernel of three operands; the first may have another type.
macro_rules! map3 {
    ($x:ident: $A:ty, $y:ident, $z:ident: $T:ty => $R:ty, $e:expr) => {{
        #[inline(always)]
        unsafe fn body<const F: bool>(xs: *const *const u8, out: *mut u8, n: usize, _: u64) {
            // SAFETY: the caller keeps the contract of `Kernel`.
            let (x, y, z, o) = unsafe {
                let x = std::slice::from_raw_parts((*xs).cast::<$A>(), n);
                let y = std::slice::from_raw_parts((*xs.add(1)).cast::<$T>(), n);
                let z = std::slice::from_raw_parts((*xs.add(2)).cast::<$T>(), n);
                (x, y, z, std::slice::from_raw_parts_mut(out.cast::<$R>(), n))
            };
            for (((o, &$x), &$y), &$z) in o.iter_mut().zip(x).zip(y).zip(z) {
                *o = $e;
            }
        }
        $crate::elementwise::kernel::variants!(body)
    }};
}

/// A kernel of one operand in the baseline variant only: for functions whose loops do not vectorize.
macro_rules! plain1 {
    ($x:ident: $T:ty => $R:ty, $e:expr) => {{
        unsafe fn body(xs: *const *const u8, out: *mut u8, n: usize, _: u64) {
            // SAFETY: the caller keeps the contract of `Kernel`.
            let (x, o) = unsafe {
                let x = std::slice::from_raw_parts((*xs).cast::<$T>(), n);
                (x, std::slice::from_raw_parts_mut(out.cast::<$R>(), n))
            };
            for (o, &$x) in o.iter_mut().zip(x) {
                *o = $e;
            }
        }
        body as $crate::elementwise::kernel::Kernel
    }};
}

/// A kernel of two operands in the baseline variant only.
macro_rules! plain2 {
    ($x:ident, $y:ident: $T:ty => $R:ty, $e:expr) => {{
        unsafe fn body(xs: *const *const u8, out: *mut u8, n: usize, _: u64) {
            // SAFETY: the caller keeps the contract of `Kernel`.
            let (x, y, o) = unsafe {
                let x = std::slice::from_raw_parts((*xs).cast::<$T>(), n);
                let y = std::slice::from_raw_parts((*xs.add(1)).cast::<$T>(), n);
                (x, y, std::slice::from_raw_parts_mut(out.cast::<$R>(), n))
            };
            for ((o, &$x), &$y) in o.iter_mut().zip(x).zip(y) {
                *o = $e;
            }
        }
        body as $crate::elementwise::kernel::Kernel
    }};
}

pub(crate) use {complex1, complex2, map1, map1_imm, map2, map3, plain1, plain2, tile1, tile2, variants, widest};

/// Runs `$e` with `$T` naming a plain type of this many bytes.
macro_rules! by_size {
    ($size:expr, $T:ident => $e:expr) => {
        match $size {
            1 => {
                type $T = u8;
                $e
            }
            2 => {
                type $T = u16;
                $e
            }
            4 => {
                type $T = u32;
                $e
            }
            8 => {
                type $T = u64;
                $e
            }
            _ => {
                type $T = [u64; 2];
                $e
            }
        }
    };
}
pub(crate) use by_size;

/// An operand of a node: where its elements are and what they are.
#[derive(Clone, Copy)]
pub struct In<'a> {
    /// The first element.
    pub ptr: *const u8,
    /// Dtype and shape.
    pub ty: &'a ferrax_loops::Type,
}

// SAFETY: by the contract of `In::new` the elements can be read, and nobody writes them meanwhile.
unsafe impl Send for In<'_> {}
// SAFETY: as above.
unsafe impl Sync for In<'_> {}

impl<'a> In<'a> {
    /// An operand.
    ///
    /// # Safety
    /// `ptr` must be valid for reads of `ty.bytes()` bytes for `'a`, aligned for the dtype.
    pub unsafe fn new(ptr: *const u8, ty: &'a ferrax_loops::Type) -> Self {
        In { ptr, ty }
    }

    /// The elements, row-major. `T` must have the dtype's size.
    pub fn of<T: Copy>(&self) -> &'a [T] {
        debug_assert_eq!(size_of::<T>(), self.ty.dtype.size());
        // SAFETY: by the contract of `new`; `T` is a plain number of the dtype's size.
        unsafe { std::slice::from_raw_parts(self.ptr.cast(), self.ty.size()) }
    }

    /// Sizes of the axes.
    pub fn shape(&self) -> &'a [usize] {
        &self.ty.shape
    }

    /// The bytes of all elements.
    pub fn bytes(&self) -> &'a [u8] {
        // SAFETY: by the contract of `new`.
        unsafe { std::slice::from_raw_parts(self.ptr, self.ty.bytes()) }
    }

    /// The first element as an integer.
    pub fn integer(&self) -> i64 {
        let d = self.ty.dtype;
        let s = ferrax_base::Scalar::from_bytes(d, self.bytes());
        if d.is_unsigned() { i64::try_from(s.bits as u64).unwrap_or(i64::MAX) } else { s.to_i64() }
    }
}

/// A result of a node: where its elements go and what they are.
pub struct Out<'a> {
    /// The first element.
    pub ptr: *mut u8,
    /// Dtype and shape.
    pub ty: &'a ferrax_loops::Type,
}

impl<'a> Out<'a> {
    /// A result.
    ///
    /// # Safety
    /// `ptr` must be valid for reads and writes of `ty.bytes()` bytes for `'a`, aligned for the dtype, and
    /// not overlap operands (where the node does not work in place) nor other results.
    pub unsafe fn new(ptr: *mut u8, ty: &'a ferrax_loops::Type) -> Self {
        Out { ptr, ty }
    }

    /// The elements, row-major. `T` must have the dtype's size.
    pub fn of<T: Copy>(&mut self) -> &mut [T] {
        debug_assert_eq!(size_of::<T>(), self.ty.dtype.size());
        // SAFETY: by the contract of `new`; `T` is a plain number of the dtype's size.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.cast(), self.ty.size()) }
    }

    /// The bytes of all elements.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: by the contract of `new`.
        unsafe { std::slice::from_raw_parts_mut(self.ptr, self.ty.bytes()) }
    }

    /// Sizes of the axes.
    pub fn shape(&self) -> &'a [usize] {
        &self.ty.shape
    }
}
