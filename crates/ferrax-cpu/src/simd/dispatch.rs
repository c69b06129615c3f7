//! What picks a variant: functions compiled for several instruction sets, and the vectors that they are written in.
//!
//! Read next: `lanes.rs` and `wave.rs` for the vectors.

/// Whether the baseline of the architecture has fused multiply-add: every AArch64 has.
pub const FUSED: bool = cfg!(target_arch = "aarch64");

/// Whether the machine has the instruction sets of the fast variants: on AArch64 the baseline has.
#[cfg(any(target_arch = "x86_64", test))]
#[inline]
pub fn wide() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma")
    }
    #[cfg(not(target_arch = "x86_64"))]
    FUSED
}

/// `a * b + c`, fused where the machine fuses.
#[inline(always)]
pub fn fma<const F: bool>(a: f32, b: f32, c: f32) -> f32 {
    if F { a.mul_add(b, c) } else { a * b + c }
}

/// As `fma`, in double precision.
#[inline(always)]
pub fn fma64<const F: bool>(a: f64, b: f64, c: f64) -> f64 {
    if F { a.mul_add(b, c) } else { a * b + c }
}

/// Makes a function of a monoid, compiled for the baseline and for AVX2, from a body that is inlined into it.
macro_rules! wide_variant {
    ($vis:vis $name:ident, $body:ident, ($($x:ident: $T:ty),*)) => {
        $vis fn $name<M: Monoid>($($x: $T),*) {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                fn fast<M: Monoid>($($x: $T),*) {
                    $body::<M>($($x),*);
                }
                if $crate::simd::wide() {
                    // SAFETY: the machine has the instructions.
                    return unsafe { fast::<M>($($x),*) };
                }
            }
            $body::<M>($($x),*);
        }
    };
}

/// The vectors that products, and transforms, are computed with.
pub enum Set {
    #[cfg(target_arch = "x86_64")]
    Wide,
    #[cfg(target_arch = "x86_64")]
    Half,
    #[cfg(target_arch = "aarch64")]
    Neon,
    /// Arrays, with fused multiply-add and without.
    Fused,
    #[cfg(target_arch = "x86_64")]
    Plain,
}

pub fn set() -> Set {
    #[cfg(target_arch = "x86_64")]
    return match crate::simd::isa() {
        Some(crate::simd::Isa::Avx512) => Set::Wide,
        Some(crate::simd::Isa::Avx2) => Set::Half,
        None if crate::simd::wide() => Set::Fused,
        None => Set::Plain,
    };
    #[cfg(target_arch = "aarch64")]
    return if crate::simd::isa().is_some() { Set::Neon } else { Set::Fused };
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    Set::Fused
}

/// An expression with the vectors of the machine; those of x86-64 are given, those of NEON found by the element.
macro_rules! with_lanes {
    ($T:ty, $wide:ident, $half:ident, $L:ident => $e:expr) => {
        match $crate::simd::set() {
            #[cfg(target_arch = "x86_64")]
            $crate::simd::Set::Wide => {
                type $L = core::arch::x86_64::$wide;
                $e
            }
            #[cfg(target_arch = "x86_64")]
            $crate::simd::Set::Half => {
                type $L = core::arch::x86_64::$half;
                $e
            }
            #[cfg(target_arch = "aarch64")]
            $crate::simd::Set::Neon => {
                type $L = <$T as $crate::simd::lanes::Neon>::Vector;
                $e
            }
            _ => {
                type $L = $crate::simd::lanes::Plain<$T, 8, true>;
                $e
            }
        }
    };
}

/// Calls a function of one vector type, compiled for its instruction set; with the smaller vectors where `$small`.
macro_rules! dispatch {
    ($T:ty, $wide:ident, $half:ident, $($f:ident)::+, $p:ident: $P:ty, $small:expr) => {{
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
        unsafe fn wide(p: $P) {
            // SAFETY: the caller's contract.
            unsafe { $($f)::+::<core::arch::x86_64::$wide>(p) }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn half(p: $P) {
            // SAFETY: the caller's contract.
            unsafe { $($f)::+::<core::arch::x86_64::$half>(p) }
        }
        #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma"))]
        unsafe fn fused(p: $P) {
            // SAFETY: the caller's contract.
            unsafe { $($f)::+::<$crate::simd::lanes::Plain<$T, 8, true>>(p) }
        }
        // SAFETY: the caller's contract; the machine has the instruction set.
        unsafe {
            match $crate::simd::set() {
                #[cfg(target_arch = "x86_64")]
                $crate::simd::Set::Wide if !$small => wide($p),
                #[cfg(target_arch = "x86_64")]
                $crate::simd::Set::Wide | $crate::simd::Set::Half => half($p),
                #[cfg(target_arch = "aarch64")]
                $crate::simd::Set::Neon => $($f)::+::<<$T as $crate::simd::lanes::Neon>::Vector>($p),
                $crate::simd::Set::Fused => fused($p),
                #[cfg(target_arch = "x86_64")]
                $crate::simd::Set::Plain => $($f)::+::<$crate::simd::lanes::Plain<$T, 8, false>>($p),
            }
        }
    }};
}
pub(crate) use {dispatch, wide_variant, with_lanes};
