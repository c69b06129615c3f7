//! Reductions over axes, and arg-reductions.
//!
//! Axes are merged and the reduced ones taken away group by group, innermost first, each as an
//! (outer, reduced, inner) problem. Float sums are pairwise: runs of a few thousand elements go through rotating
//! accumulators, then halves are combined, so that errors grow with the logarithm of the length and the order of
//! additions is fixed by the shape alone. The machine's reductions (`region/rows.rs`) keep the same order.
//! Read next: `columns.rs` for reductions over outer axes.

use crate::elementwise::kernel::{In, Out};
use crate::elementwise::{compute_dtype, convert};
use crate::library::{columns, short_rows};
use crate::math::complex::{self, Complex};
use crate::math::{double, single};
use crate::pool;
use ferrax_base::{Buffer, DType, Result, bail};
use ferrax_loops::ReduceOp;
use smallvec::SmallVec;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::sync::Mutex;

/// A commutative monoid over one element type.
pub trait Monoid {
    /// Element type.
    type T: Copy + Send + Sync;
    /// The value that leaves others unchanged.
    const IDENTITY: Self::T;
    /// Whether results depend neither on the order of joins nor on how often an element takes part.
    const FREE: bool = false;
    /// Combines two values.
    fn join(a: Self::T, b: Self::T) -> Self::T;
}

macro_rules! monoids {
    ($($name:ident, $T:ty, $id:expr, |$a:ident, $b:ident| $e:expr;)*) => {
        monoids! { $(false, $name, $T, $id, |$a, $b| $e;)* }
    };
    ($($free:literal, $name:ident, $T:ty, $id:expr, |$a:ident, $b:ident| $e:expr;)*) => {
        $(
            /// A monoid; see the table.
            pub struct $name;
            impl Monoid for $name {
                type T = $T;
                const IDENTITY: $T = $id;
                const FREE: bool = $free;
                #[inline(always)]
                fn join($a: $T, $b: $T) -> $T {
                    $e
                }
            }
        )*
    };
}
monoids! {
    SumF32, f32, 0.0, |a, b| a + b;
    ProdF32, f32, 1.0, |a, b| a * b;
    SumF64, f64, 0.0, |a, b| a + b;
    ProdF64, f64, 1.0, |a, b| a * b;
    SumC64, Complex<f32>, Complex::new(0.0, 0.0), |a, b| Complex::new(a.re + b.re, a.im + b.im);
    SumC128, Complex<f64>, Complex::new(0.0, 0.0), |a, b| Complex::new(a.re + b.re, a.im + b.im);
    ProdC64, Complex<f32>, Complex::new(1.0, 0.0),
        |a, b| Complex::new(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
    ProdC128, Complex<f64>, Complex::new(1.0, 0.0),
        |a, b| Complex::new(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
    MaxC64, Complex<f32>, Complex::new(f32::NEG_INFINITY, f32::NEG_INFINITY),
        |a, b| complex::max(a, b);
    MaxC128, Complex<f64>, Complex::new(f64::NEG_INFINITY, f64::NEG_INFINITY),
        |a, b| complex::max(a, b);
    MinC64, Complex<f32>, Complex::new(f32::INFINITY, f32::INFINITY),
        |a, b| complex::min(a, b);
    MinC128, Complex<f64>, Complex::new(f64::INFINITY, f64::INFINITY),
        |a, b| complex::min(a, b);
}

monoids! {
    true, MaxF32, f32, f32::NEG_INFINITY, |a, b| single::max(a, b);
    true, MinF32, f32, f32::INFINITY, |a, b| single::min(a, b);
    true, MaxF64, f64, f64::NEG_INFINITY, |a, b| double::max(a, b);
    true, MinF64, f64, f64::INFINITY, |a, b| double::min(a, b);
}

/// Monoids of a two's complement integer type, by operation.
pub struct IntMonoid<T, const OP: u8>(std::marker::PhantomData<T>);
macro_rules! integer_monoids {
    ($($T:ident)*) => {
        $(
            impl<const OP: u8> Monoid for IntMonoid<$T, OP> {
                type T = $T;
                const FREE: bool = OP == 2 || OP == 3;
                const IDENTITY: $T = match OP {
                    0 | 5 | 6 => 0,
                    1 => 1,
                    2 => $T::MIN,
                    3 => $T::MAX,
                    _ => !0,
                };
                #[inline(always)]
                fn join(a: $T, b: $T) -> $T {
                    match OP {
                        0 => a.wrapping_add(b),
                        1 => a.wrapping_mul(b),
                        2 => a.max(b),
                        3 => a.min(b),
                        4 => a & b,
                        5 => a | b,
                        _ => a ^ b,
                    }
                }
            }
        )*
    };
}
integer_monoids!(i8 i16 i32 i64 u8 u16 u32 u64);

/// Runs `$run::<M>($args)` with the monoid of an operation over a compute dtype.
macro_rules! with_monoid {
    ($op:expr, $d:expr, $run:ident($($arg:expr),*)) => {{
        #[allow(unused_imports)]
        use $crate::library::reduce::*;
        // Only order tells signed integers from unsigned ones.
        macro_rules! integers {
            ($T:ident, $signed:ident) => {
                match $op {
                    ReduceOp::Sum => $run::<IntMonoid<$signed, 0>>($($arg),*),
                    ReduceOp::Prod => $run::<IntMonoid<$signed, 1>>($($arg),*),
                    ReduceOp::Max => $run::<IntMonoid<$T, 2>>($($arg),*),
                    ReduceOp::Min => $run::<IntMonoid<$T, 3>>($($arg),*),
                    ReduceOp::And => $run::<IntMonoid<$signed, 4>>($($arg),*),
                    ReduceOp::Or => $run::<IntMonoid<$signed, 5>>($($arg),*),
                    ReduceOp::Xor => $run::<IntMonoid<$signed, 6>>($($arg),*),
                    ReduceOp::LogSumExp => return $crate::library::reduce::missing($op, $d),
                }
            };
        }
        macro_rules! inexact {
            ($sum:ident, $prod:ident, $max:ident, $min:ident) => {
                match $op {
                    ReduceOp::Sum => $run::<$sum>($($arg),*),
                    ReduceOp::Prod => $run::<$prod>($($arg),*),
                    ReduceOp::Max => $run::<$max>($($arg),*),
                    ReduceOp::Min => $run::<$min>($($arg),*),
                    _ => return $crate::library::reduce::missing($op, $d),
                }
            };
        }
        match ($d, $op) {
            // Bytes of 0 and 1: sum is or, product is and.
            (DType::Bool, ReduceOp::Sum | ReduceOp::Or | ReduceOp::Max) => $run::<IntMonoid<i8, 5>>($($arg),*),
            (DType::Bool, ReduceOp::Prod | ReduceOp::And | ReduceOp::Min) => $run::<BoolAnd>($($arg),*),
            (DType::Bool, ReduceOp::Xor) => $run::<IntMonoid<i8, 6>>($($arg),*),
            (DType::I8, _) => integers!(i8, i8),
            (DType::I16, _) => integers!(i16, i16),
            (DType::I32, _) => integers!(i32, i32),
            (DType::I64, _) => integers!(i64, i64),
            (DType::U8, _) => integers!(u8, i8),
            (DType::U16, _) => integers!(u16, i16),
            (DType::U32, _) => integers!(u32, i32),
            (DType::U64, _) => integers!(u64, i64),
            (DType::F32, _) => inexact!(SumF32, ProdF32, MaxF32, MinF32),
            (DType::F64, _) => inexact!(SumF64, ProdF64, MaxF64, MinF64),
            (DType::C64, _) => inexact!(SumC64, ProdC64, MaxC64, MinC64),
            (DType::C128, _) => inexact!(SumC128, ProdC128, MaxC128, MinC128),
            _ => return $crate::library::reduce::missing($op, $d),
        }
    }};
}
pub(crate) use with_monoid;

monoids! {
    BoolAnd, u8, 1, |a, b| a & b;
}

#[cold]
pub(crate) fn missing(op: ReduceOp, d: DType) -> Result<()> {
    bail!(NotImplemented, "the CPU engine has no {op:?} reduction of {d}")
}

/// Elements that one pass of the rotating accumulators takes before results are combined pairwise.
pub const RUN: usize = 4096;
/// Rotating accumulators.
pub const LANES: usize = 128;
/// Shorter rows are reduced one by one.
pub const FEW: usize = 32;
/// Levels of pairwise combination: enough for any length.
pub const LEVELS: usize = 48;

/// What is reduced, made from the elements of a row as they are read.
pub trait Term<T>: Copy {
    /// The elements in memory.
    type From: Copy;
    /// What element `i`, which is `x`, becomes.
    fn of(self, i: usize, x: Self::From) -> T;
    /// The same where element `i` is the first one.
    #[inline(always)]
    fn from(self, _: usize) -> Self {
        self
    }
}

/// The elements as they are.
#[derive(Clone, Copy)]
pub struct Itself;

impl<T: Copy> Term<T> for Itself {
    type From = T;
    #[inline(always)]
    fn of(self, _: usize, x: T) -> T {
        x
    }
}

/// Joins element i to accumulator i % `LANES`, `PART` accumulators at a time, which fit the registers.
#[inline(always)]
fn accumulate<M: Monoid, P: Term<M::T>, const PART: usize>(acc: &mut [M::T; LANES], x: &[P::From], term: P) {
    let (chunks, tail) = x.as_chunks::<LANES>();
    for (k, part) in acc.as_chunks_mut::<PART>().0.iter_mut().enumerate() {
        let mut a = *part;
        for (c, chunk) in chunks.iter().enumerate() {
            let term = term.from(c * LANES + k * PART);
            for j in 0..PART {
                a[j] = M::join(a[j], term.of(j, chunk[k * PART + j]));
            }
        }
        *part = a;
    }
    let term = term.from(chunks.len() * LANES);
    for (j, (a, &b)) in acc.iter_mut().zip(tail).enumerate() {
        *a = M::join(*a, term.of(j, b));
    }
}

/// The accumulators' result: their halves are joined until one is left.
#[inline(always)]
pub fn collapse<M: Monoid>(acc: &mut [M::T; LANES]) -> M::T {
    let mut width = LANES / 2;
    while width > 0 {
        for j in 0..width {
            acc[j] = M::join(acc[j], acc[j + width]);
        }
        width /= 2;
    }
    acc[0]
}

/// Reduces at most `WIDTH` elements, a power of two, as accumulators that nothing else joins. Joining the neutral
/// element at the end instead of before gives the same bits: it matters to a sum of negative zeros alone.
#[inline(always)]
fn reduce_few<M: Monoid, P: Term<M::T>, const WIDTH: usize>(x: &[P::From], term: P) -> M::T {
    let mut acc = [M::IDENTITY; WIDTH];
    match <&[P::From; WIDTH]>::try_from(x) {
        Ok(all) => (0..WIDTH).for_each(|i| acc[i] = term.of(i, all[i])),
        Err(_) => acc.iter_mut().zip(x).enumerate().for_each(|(i, (a, &b))| *a = term.of(i, b)),
    }
    let mut width = WIDTH / 2;
    while width > 0 {
        for j in 0..width {
            acc[j] = M::join(acc[j], acc[j + width]);
        }
        width /= 2;
    }
    M::join(acc[0], M::IDENTITY)
}

/// Reduces `HALF` to twice as many elements, of which those in the middle may take part twice.
#[inline(always)]
fn reduce_overlapping<M: Monoid, P: Term<M::T>, const HALF: usize>(x: &[P::From], term: P) -> M::T {
    let last = x.len() - HALF;
    let (x, y, rest) = (&x[..HALF], &x[last..][..HALF], term.from(last));
    let mut acc: [M::T; HALF] = std::array::from_fn(|i| M::join(term.of(i, x[i]), rest.of(i, y[i])));
    let mut width = HALF / 2;
    while width > 0 {
        for j in 0..width {
            acc[j] = M::join(acc[j], acc[j + width]);
        }
        width /= 2;
    }
    acc[0]
}

/// Reduces at most `RUN` contiguous elements. `WIDE` says that there are 32 registers of 64 bytes, which hold all
/// accumulators: memory is then read in one go, as prefetching wants it.
#[inline(always)]
pub fn reduce_run<M: Monoid, P: Term<M::T>, const WIDE: bool>(x: &[P::From], term: P) -> M::T {
    // A pair of numbers is aligned as one of them.
    if align_of::<M::T>() < size_of::<M::T>() {
        return reduce_pairs::<M, P>(x, term);
    }
    match x.len() {
        ..=32 => return reduce_few::<M, P, 32>(x, term),
        33..=64 => return reduce_few::<M, P, 64>(x, term),
        65..=LANES => return reduce_few::<M, P, LANES>(x, term),
        _ => {}
    }
    let mut acc = [M::IDENTITY; LANES];
    match (WIDE, size_of::<M::T>()) {
        (true, ..=8) => accumulate::<M, P, LANES>(&mut acc, x, term),
        (false, ..=4) => accumulate::<M, P, { LANES / 2 }>(&mut acc, x, term),
        _ => accumulate::<M, P, { LANES / 4 }>(&mut acc, x, term),
    }
    collapse::<M>(&mut acc)
}

/// `reduce_run` in loops that are not unrolled: pairs of numbers would take more code than that is worth.
#[inline(always)]
fn reduce_pairs<M: Monoid, P: Term<M::T>>(x: &[P::From], term: P) -> M::T {
    let mut acc = [M::IDENTITY; LANES];
    for (c, chunk) in x.chunks(LANES).enumerate() {
        let term = term.from(c * LANES);
        for (j, (a, &b)) in acc.iter_mut().zip(chunk).enumerate() {
            *a = M::join(*a, term.of(j, b));
        }
    }
    let mut width = black_box(LANES / 2);
    while width > 0 {
        let (low, high) = acc.split_at_mut(width);
        low.iter_mut().zip(high).for_each(|(a, b)| *a = M::join(*a, *b));
        width /= 2;
    }
    acc[0]
}

/// Reduces a contiguous row. Runs are combined like the digits of a counter, so that each result takes part in
/// as many joins as the logarithm of the number of runs, in an order that the length alone decides.
#[inline(always)]
pub fn reduce_row<M: Monoid, P: Term<M::T>, const WIDE: bool>(x: &[P::From], term: P) -> M::T {
    if x.len() < FEW {
        match x.len() {
            5..=8 if M::FREE => return reduce_overlapping::<M, P, 4>(x, term),
            9..=16 if M::FREE => return reduce_overlapping::<M, P, 8>(x, term),
            17.. if M::FREE => return reduce_overlapping::<M, P, 16>(x, term),
            _ => {}
        }
        return x.iter().enumerate().fold(M::IDENTITY, |a, (i, &b)| M::join(a, term.of(i, b)));
    }
    let mut levels = [MaybeUninit::<M::T>::uninit(); LEVELS];
    let mut count = 0usize;
    for (k, run) in x.chunks(RUN).enumerate() {
        let mut value = reduce_run::<M, P, WIDE>(run, term.from(k * RUN));
        if x.len() <= RUN {
            return value;
        }
        let carries = count.trailing_ones() as usize;
        for level in &levels[..carries] {
            // SAFETY: levels whose bit of the count is set hold a value.
            value = M::join(unsafe { level.assume_init() }, value);
        }
        levels[carries].write(value);
        count += 1;
    }
    let kept = levels.iter().enumerate().filter(|(k, _)| count >> k & 1 == 1);
    // SAFETY: as above.
    let kept = kept.map(|(_, level)| unsafe { level.assume_init() });
    kept.reduce(|r, level| M::join(level, r)).unwrap_or(M::IDENTITY)
}

/// The (outer, reduced, inner) problem on this thread alone.
#[inline(always)]
fn alone_body<M: Monoid>(x: &[M::T], out: &mut [M::T], [_, n, inner]: [usize; 3]) {
    if n == 1 {
        for (o, &x) in out.iter_mut().zip(x) {
            *o = M::join(M::IDENTITY, x);
        }
        return;
    }
    if inner == 1 {
        return short_rows::reduce::<M, false>(x, n, out);
    }
    for (x, out) in x.chunks_exact(n * inner).zip(out.chunks_exact_mut(inner)) {
        columns::reduce::<M>(x, out);
    }
}
crate::simd::wide_variant!(alone, alone_body, (x: &[M::T], out: &mut [M::T], dims: [usize; 3]));

fn reduce_3d<M: Monoid>(x: *const u8, out: *mut u8, dims: [usize; 3]) {
    let [outer, n, inner] = dims;
    // SAFETY: callers pass an operand of outer·n·inner and a result of outer·inner elements of the monoid's type.
    let (x, out) = unsafe {
        (
            std::slice::from_raw_parts(x.cast::<M::T>(), outer * n * inner),
            std::slice::from_raw_parts_mut(out.cast::<M::T>(), outer * inner),
        )
    };
    let time = (size_of_val(x) / 16) as u64;
    let threads = pool::threads();
    if outer >= 2 * threads && pool::worth(time) {
        let per_task = outer.div_ceil(8 * threads);
        let parts: Vec<Mutex<&mut [M::T]>> = out.chunks_mut(per_task * inner).map(Mutex::new).collect();
        return pool::share(time, parts.len(), &|_, k| {
            let mut out = parts[k].lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let outer = out.len() / inner;
            alone::<M>(&x[k * per_task * n * inner..][..outer * n * inner], &mut out, [outer, n, inner]);
        });
    }
    if inner > 1 && pool::worth(time / outer as u64) {
        for (x, out) in x.chunks_exact(n * inner).zip(out.chunks_exact_mut(inner)) {
            columns::reduce_shared::<M>(x, out, time / outer as u64);
        }
        return;
    }
    alone::<M>(x, out, dims);
}

fn run(op: ReduceOp, d: DType, x: *const u8, out: *mut u8, dims: [usize; 3]) -> Result<()> {
    with_monoid!(op, d, reduce_3d(x, out, dims));
    Ok(())
}

/// A merged axis: its extent and whether it is reduced.
type Extents = SmallVec<[(usize, bool); 6]>;

fn merged(shape: &[usize], axes: &[usize]) -> Extents {
    let mut out = Extents::new();
    for (i, &n) in shape.iter().enumerate() {
        let reduced = axes.contains(&i);
        match out.last_mut() {
            _ if n == 1 => {}
            Some(last) if last.1 == reduced => last.0 *= n,
            _ => out.push((n, reduced)),
        }
    }
    out
}

/// `Reduce`.
pub fn reduce(op: ReduceOp, axes: &[usize], x: In<'_>, out: &mut Out<'_>) -> Result<()> {
    let dtype = x.ty.dtype;
    let compute = compute_dtype(dtype);
    if x.ty.size() == 0 {
        crate::library::movement::splat(dtype, op.identity(dtype).to_bytes().as_ptr(), out.ptr, out.ty.size());
        return Ok(());
    }
    if x.ty.size() == out.ty.size() {
        // What is reduced of one element is that element, a negative zero too.
        crate::library::movement::same_bytes(x, out);
        return Ok(());
    }
    let mut extents = merged(x.shape(), axes);
    let reduced_groups = extents.iter().filter(|e| e.1).count();
    if dtype == compute && reduced_groups <= 1 {
        let dims = innermost(&extents).unwrap_or([x.ty.size(), 1, 1]);
        return run(op, compute, x.ptr, out.ptr, dims);
    }
    // Several groups, or a narrow dtype: intermediate results in the compute dtype.
    let mut held = if dtype == compute { None } else { Some(convert::widened(dtype, x.ptr, x.ty.size())?) };
    while let Some(dims) = innermost(&extents) {
        let mut next = Buffer::allocate(dims[0] * dims[2] * compute.size())?;
        let src = held.as_ref().map_or(x.ptr, Buffer::as_ptr);
        run(op, compute, src, next.as_mut_ptr(), dims)?;
        held = Some(next);
        let at = extents.iter().rposition(|e| e.1).unwrap_or(0);
        extents.remove(at);
    }
    if let Some(b) = held {
        let n = out.ty.size();
        if dtype == compute {
            out.bytes().copy_from_slice(b.bytes());
        } else {
            convert::narrowed(dtype, &b, out.bytes(), n);
        }
    }
    Ok(())
}

/// The (outer, reduced, inner) extents of a reduction over neighbouring axes.
pub fn one_group(shape: &[usize], axes: &[usize]) -> Option<[usize; 3]> {
    let extents = merged(shape, axes);
    let groups = extents.iter().filter(|e| e.1).count();
    let size = shape.iter().product();
    (groups <= 1 && size > 0).then(|| innermost(&extents).unwrap_or([size, 1, 1]))
}

/// The accumulators that a row of at most `LANES` elements has, of which element i joins accumulator i; none where
/// elements are joined one by one, as all columns' are.
pub fn accumulators(n: usize, inner: usize) -> Option<usize> {
    (inner == 1 && n >= FEW).then(|| n.next_power_of_two())
}

/// The (outer, reduced, inner) extents of the innermost reduced group.
fn innermost(extents: &Extents) -> Option<[usize; 3]> {
    let at = extents.iter().rposition(|e| e.1)?;
    let product = |s: &[(usize, bool)]| s.iter().map(|e| e.0).product();
    Some([product(&extents[..at]), extents[at].0, product(&extents[at + 1..])])
}

/// `ArgReduce`: the first largest or smallest element; NaN wins.
pub fn arg_reduce(max: bool, axis: usize, x: In<'_>, out: &mut Out<'_>) -> Result<()> {
    let dtype = x.ty.dtype;
    let compute = compute_dtype(dtype);
    let wide = if dtype == compute { None } else { Some(convert::widened(dtype, x.ptr, x.ty.size())?) };
    let src = wide.as_ref().map_or(x.ptr, Buffer::as_ptr);
    let shape = x.shape();
    let dims = [shape[..axis].iter().product(), shape[axis], shape[axis + 1..].iter().product()];
    if dims[1] == 0 {
        bail!(Value, "attempt to get {} of an empty axis", if max { "argmax" } else { "argmin" });
    }
    macro_rules! go {
        ($T:ty) => {
            arg_3d::<$T>(src, out, dims, max)
        };
    }
    match compute {
        DType::Bool | DType::U8 => go!(u8),
        DType::I8 => go!(i8),
        DType::I16 => go!(i16),
        DType::I32 => go!(i32),
        DType::I64 => go!(i64),
        DType::U16 => go!(u16),
        DType::U32 => go!(u32),
        DType::U64 => go!(u64),
        DType::F32 => go!(f32),
        DType::F64 => go!(f64),
        DType::C64 => go!(Complex<f32>),
        DType::C128 => go!(Complex<f64>),
        other => bail!(NotImplemented, "the CPU engine has no argmax of {other}"),
    }
    Ok(())
}

/// Elements that `ArgReduce` compares.
trait Ordered: Copy + PartialEq + Sync {
    /// The largest of some, or NaN.
    type Most: Monoid<T = Self>;
    /// The smallest of some, or NaN.
    type Least: Monoid<T = Self>;

    fn below(self, other: Self) -> bool;

    /// Whether this element, which comes after `best`, takes its place.
    #[inline(always)]
    fn beats(self, best: Self, max: bool) -> bool {
        let better = if max { best.below(self) } else { self.below(best) };
        (better | self.is_nan()) & !best.is_nan()
    }

    /// The first place in a row of its best element.
    #[inline(always)]
    fn place(row: &[Self], max: bool) -> usize {
        if max { arg_row::<Self::Most>(row) } else { arg_row::<Self::Least>(row) }
    }

    #[inline(always)]
    #[allow(clippy::eq_op)]
    fn is_nan(self) -> bool {
        self != self
    }
}
macro_rules! ordered {
    ($($T:ty: $most:ty, $least:ty, $below:expr;)*) => {
        $(impl Ordered for $T {
            type Most = $most;
            type Least = $least;
            #[inline(always)]
            fn below(self, other: Self) -> bool {
                $below(self, other)
            }
        })*
    };
}
macro_rules! ordered_integers {
    ($($T:ident)*) => {
        ordered! { $($T: IntMonoid<$T, 2>, IntMonoid<$T, 3>, |a, b| a < b;)* }
    };
}
ordered_integers!(i8 i16 i32 i64 u8 u16 u32 u64);
ordered! {
    f32: MaxF32, MinF32, |a, b| a < b;
    f64: MaxF64, MinF64, |a, b| a < b;
}
macro_rules! ordered_pairs {
    ($($T:ty: $most:ty, $least:ty;)*) => {
        $(impl Ordered for Complex<$T> {
            type Most = $most;
            type Least = $least;
            #[inline(always)]
            fn below(self, other: Self) -> bool {
                complex::less(self, other)
            }
            /// One element after the other: their maxima lose NaN.
            fn place(row: &[Self], max: bool) -> usize {
                let beats = |best: (usize, Self), (i, &z): (usize, &Self)| if z.beats(best.1, max) { (i, z) } else { best };
                row.iter().enumerate().fold((0, row[0]), beats).0
            }
        })*
    };
}
ordered_pairs! {
    f32: MaxC64, MinC64;
    f64: MaxC128, MinC128;
}

/// Where an element is in its row: of few bits where rows allow it, so that vectors hold many.
trait Place: Copy {
    fn of(place: usize) -> Self;
    fn number(self) -> u64;
}
macro_rules! places {
    ($($P:ty)*) => {
        $(impl Place for $P {
            #[inline(always)]
            fn of(place: usize) -> Self {
                place as $P
            }
            #[inline(always)]
            fn number(self) -> u64 {
                self.into()
            }
        })*
    };
}
places!(u32 u64);

/// Results that a thread finds before it writes them.
const FOUND: usize = 256;

fn arg_3d<T: Ordered>(x: *const u8, out: &mut Out<'_>, dims: [usize; 3], max: bool) {
    let [outer, n, inner] = dims;
    // SAFETY: the caller passes an operand of outer·n·inner elements of T.
    let x = unsafe { std::slice::from_raw_parts(x.cast::<T>(), outer * n * inner) };
    let (width, time) = (out.ty.dtype.size(), (size_of_val(x) / 8) as u64);
    let threads = pool::threads();
    let tasks = if outer >= 2 * threads && pool::worth(time) { 8 * threads } else { 1 };
    let per_task = outer.div_ceil(tasks).max(1);
    let parts: Vec<Mutex<&mut [u8]>> =
        out.bytes().chunks_mut((per_task * inner * width).max(1)).map(Mutex::new).collect();
    pool::share(time, parts.len(), &|_, k| {
        let mut out = parts[k].lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let outer = out.len() / (inner * width).max(1);
        let (x, dims) = (&x[k * per_task * n * inner..][..outer * n * inner], [n, inner, width]);
        if u32::try_from(n).is_ok() {
            arg_part::<T, u32>(x, &mut out, dims, max);
        } else {
            arg_part::<T, u64>(x, &mut out, dims, max);
        }
    });
}

/// The results of some rows, or some times `inner` columns, as integers of `width` bytes.
#[inline(always)]
fn arg_part_body<T: Ordered, P: Place>(x: &[T], out: &mut [u8], [n, inner, width]: [usize; 3], max: bool) {
    if inner == 1 {
        if n < FEW && short_rows::transposed::<T>(out.len() / width) {
            return arg_short_rows::<T, P>(x, out, (n, width), max);
        }
        for (rows, out) in x.chunks(n * FOUND).zip(out.chunks_mut(FOUND * width)) {
            let mut found = [P::of(0); FOUND];
            for (row, found) in rows.chunks_exact(n).zip(&mut found) {
                *found = P::of(T::place(row, max));
            }
            store_places(out, width, &found);
        }
        return;
    }
    for (x, out) in x.chunks_exact(n * inner).zip(out.chunks_exact_mut(inner * width)) {
        for (c, out) in out.chunks_mut(FOUND * width).enumerate() {
            let (first, count) = (c * FOUND, out.len() / width);
            let (mut best, mut found) = ([x[0]; FOUND], [P::of(0); FOUND]);
            let (best, found) = (&mut best[..count], &mut found[..]);
            best.copy_from_slice(&x[first..][..count]);
            for (k, rows) in x[inner..].chunks(BLOCK * inner).enumerate() {
                compete(best, found, (&rows[first..], inner, rows.len() / inner), 1 + k * BLOCK, max);
            }
            store_places(out, width, found);
        }
    }
}

/// Columns whose elements compete in registers, and rows that do so for some columns before it is the next ones' turn.
const TOGETHER: usize = 16;
const BLOCK: usize = 64;

/// Elements of so many rows, one every `step`, the first of which has number `first`, take the place of those that they beat.
#[inline(always)]
fn compete<T: Ordered, P: Place>(best: &mut [T], found: &mut [P], x: (&[T], usize, usize), first: usize, max: bool) {
    if max {
        compete_for::<T, P, true>(best, found, x, first);
    } else {
        compete_for::<T, P, false>(best, found, x, first);
    }
}

/// As `compete`. What is best is kept in registers over all rows: stores of single lanes are slow.
#[inline(always)]
fn compete_for<T: Ordered, P: Place, const MAX: bool>(
    best: &mut [T],
    found: &mut [P],
    (x, step, rows): (&[T], usize, usize),
    first: usize,
) {
    let winner = |b: T, f: P, v: T, r: usize| if v.beats(b, MAX) { (v, P::of(first + r)) } else { (b, f) };
    let mut at = 0;
    while at < best.len() {
        // The last columns are looked at together with some for a second time, which changes nothing of those.
        at = at.min(best.len().saturating_sub(TOGETHER));
        let (best, found) = (&mut best[at..], &mut found[at..]);
        if let (Some(best), Some(found)) = (best.first_chunk_mut::<TOGETHER>(), found.first_chunk_mut::<TOGETHER>()) {
            let (mut b, mut f) = (*best, *found);
            for r in 0..rows {
                let row = &x[r * step + at..][..TOGETHER];
                for j in 0..TOGETHER {
                    (b[j], f[j]) = winner(b[j], f[j], row[j], r);
                }
            }
            (*best, *found) = (b, f);
        } else {
            for (j, (b, f)) in best.iter_mut().zip(found).enumerate() {
                (0..rows).for_each(|r| (*b, *f) = winner(*b, *f, x[r * step + at + j], r));
            }
        }
        at += TOGETHER;
    }
}

/// The results of rows of a few elements, as columns.
#[inline(always)]
fn arg_short_rows<T: Ordered, P: Place>(x: &[T], out: &mut [u8], (n, width): (usize, usize), max: bool) {
    let mut columns = [[x[0]; short_rows::ROWS]; FEW];
    for (x, out) in x.chunks(n * short_rows::ROWS).zip(out.chunks_mut(short_rows::ROWS * width)) {
        let columns = short_rows::transpose(x, n, &mut columns);
        let (mut best, mut found) = (columns[0], [P::of(0); short_rows::ROWS]);
        compete(&mut best, &mut found, (columns[1..].as_flattened(), short_rows::ROWS, n - 1), 1, max);
        store_places(out, width, &found);
    }
}

fn arg_part<T: Ordered, P: Place>(x: &[T], out: &mut [u8], dims: [usize; 3], max: bool) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,fma")]
        fn fast<T: Ordered, P: Place>(x: &[T], out: &mut [u8], dims: [usize; 3], max: bool) {
            arg_part_body::<T, P>(x, out, dims, max);
        }
        if crate::simd::wide() {
            // SAFETY: the machine has the instructions.
            return unsafe { fast::<T, P>(x, out, dims, max) };
        }
    }
    arg_part_body::<T, P>(x, out, dims, max);
}

/// The first place in a row of its best element, of which `M` makes the value.
#[inline(always)]
fn arg_row<M: Monoid<T: Ordered>>(row: &[M::T]) -> usize {
    let best = reduce_row::<M, _, false>(row, Itself);
    match row.len() {
        16.. => first_of::<M::T, 16>(row, best),
        8.. => first_of::<M::T, 8>(row, best),
        4.. => first_of::<M::T, 4>(row, best),
        _ => row.iter().position(|&v| v == best || v.is_nan()).unwrap_or(0),
    }
}

/// The first place of an element, or of a NaN; of those only NaN is left to be the best. The last `WIDTH` elements are looked at
/// together, some of them twice.
#[inline(always)]
fn first_of<T: Ordered, const WIDTH: usize>(row: &[T], best: T) -> usize {
    let found = |x: &[T; WIDTH]| (0..WIDTH).fold(0, |bits, i| bits | u32::from((x[i] == best) | x[i].is_nan()) << i);
    for (c, chunk) in row.as_chunks::<WIDTH>().0.iter().enumerate() {
        let bits = found(chunk);
        if bits != 0 {
            return c * WIDTH + bits.trailing_zeros() as usize;
        }
    }
    row.last_chunk().map_or(0, |last| row.len() - WIDTH + found(last).trailing_zeros() as usize)
}

/// Writes places as integers of `width` bytes.
#[inline(always)]
fn store_places<P: Place>(out: &mut [u8], width: usize, found: &[P]) {
    match width {
        1 => store::<1, P>(out, found),
        2 => store::<2, P>(out, found),
        4 => store::<4, P>(out, found),
        _ => store::<8, P>(out, found),
    }
}

#[inline(always)]
fn store<const WIDTH: usize, P: Place>(out: &mut [u8], found: &[P]) {
    for (o, f) in out.as_chunks_mut::<WIDTH>().0.iter_mut().zip(found) {
        o.copy_from_slice(&f.number().to_le_bytes()[..WIDTH]);
    }
}

/// Writes an index in the result's integer dtype.
pub fn store_index(out: &mut Out<'_>, at: usize, index: i64) {
    match out.ty.dtype.size() {
        1 => out.of::<i8>()[at] = index as i8,
        2 => out.of::<i16>()[at] = index as i16,
        4 => out.of::<i32>()[at] = index as i32,
        _ => out.of::<i64>()[at] = index,
    }
}
