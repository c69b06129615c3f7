//! Transforms of a few elements, and the passes over a line of them that a longer transform is made of.
//!
//! A pass of radix R over blocks of R·m elements (decimation in frequency) replaces each group x[j + i·m], i < R, by its
//! transform, multiplied by e^(-2πi jk / (R·m)); blocks of m remain to be transformed, and results end where
//! `Plan::order` says. Six and ten are products of coprime factors (Good's mapping): no multiplication in between.
//! Sources: Cooley and Tukey 1965; I. J. Good 1958; S. Winograd 1978 for five. Read next: `plan.rs`.

use crate::simd::wave::{C, Wave};

/// A number that constants convert to.
pub trait Constant: crate::simd::lanes::Real {
    fn of(x: f64) -> Self;
}

impl Constant for f32 {
    #[inline(always)]
    fn of(x: f64) -> f32 {
        x as f32
    }
}

impl Constant for f64 {
    #[inline(always)]
    fn of(x: f64) -> f64 {
        x
    }
}

#[inline(always)]
unsafe fn constant<L: Wave<T: Constant>>(x: f64) -> L {
    // SAFETY: the caller's contract, here and below: the instruction set of L.
    unsafe { L::splat(L::T::of(x)) }
}

#[inline(always)]
unsafe fn two<L: Wave>(a: C<L>, b: C<L>) -> [C<L>; 2] {
    // SAFETY: as above.
    unsafe { [a.plus(b), a.minus(b)] }
}

#[inline(always)]
unsafe fn three<L: Wave<T: Constant>>([a, b, c]: [C<L>; 3]) -> [C<L>; 3] {
    // SAFETY: as above.
    unsafe {
        let [t, d] = two(b, c);
        let [x, y] = a.less(constant(0.5), t).turned_by(constant(0.8660254037844386), d);
        [a.plus(t), x, y]
    }
}

#[inline(always)]
unsafe fn four<L: Wave>([a, b, c, d]: [C<L>; 4]) -> [C<L>; 4] {
    // SAFETY: as above.
    unsafe {
        let ([s, t], [u, v]) = (two(a, c), two(b, d));
        let ([x0, x2], [x1, x3]) = (two(s, u), t.turned(v));
        [x0, x1, x2, x3]
    }
}

#[inline(always)]
unsafe fn five<L: Wave<T: Constant>>([a, b, c, d, e]: [C<L>; 5]) -> [C<L>; 5] {
    // cos 72°, -cos 144°, sin 72°, sin 144° / sin 72°
    const COS: [f64; 2] = [0.30901699437494745, 0.8090169943749473];
    const SIN: [f64; 2] = [0.9510565162951535, 0.618033988749895];
    // SAFETY: as above.
    unsafe {
        let ([s, t], [u, v]) = (two(b, e), two(c, d));
        let (near, far) = (constant(COS[0]), constant(COS[1]));
        let (sin, ratio) = (constant(SIN[0]), constant(SIN[1]));
        let p = t.more(ratio, v);
        let q = C { re: L::less(ratio, t.re, v.re), im: L::less(ratio, t.im, v.im) };
        let [x1, x4] = a.more(near, s).less(far, u).turned_by(sin, p);
        // q is v - ratio t: its sign is the opposite of the one that the formula has.
        let [x3, x2] = a.less(far, s).more(near, u).turned_by(sin, q);
        [a.plus(s).plus(u), x1, x2, x3, x4]
    }
}

#[inline(always)]
unsafe fn eight<L: Wave<T: Constant>>(x: [C<L>; 8]) -> [C<L>; 8] {
    // SAFETY: as above.
    unsafe {
        let half: L = constant(std::f64::consts::FRAC_1_SQRT_2);
        let [a0, a1, a2, a3] = four([x[0], x[2], x[4], x[6]]);
        let [b0, b1, b2, b3] = four([x[1], x[3], x[5], x[7]]);
        let ([y0, y4], [y2, y6]) = (two(a0, b0), a2.turned(b2));
        // (1 - i) b1 and (1 + i) b3: eighths of a turn, times the root of 2.
        let u = C { re: b1.re.plus(b1.im), im: b1.im.minus(b1.re) };
        let v = C { re: b3.re.minus(b3.im), im: b3.im.plus(b3.re) };
        let (y1, y5) = (a1.more(half, u), a1.less(half, u));
        let (y3, y7) = (a3.less(half, v), a3.more(half, v));
        [y0, y1, y2, y3, y4, y5, y6, y7]
    }
}

#[inline(always)]
unsafe fn six<L: Wave<T: Constant>>(x: [C<L>; 6]) -> [C<L>; 6] {
    // SAFETY: as above.
    unsafe {
        let [[s0, d0], [s1, d1], [s2, d2]] = [two(x[0], x[3]), two(x[2], x[5]), two(x[4], x[1])];
        let ([y0, y4, y2], [y3, y1, y5]) = (three([s0, s1, s2]), three([d0, d1, d2]));
        [y0, y1, y2, y3, y4, y5]
    }
}

#[inline(always)]
unsafe fn ten<L: Wave<T: Constant>>(x: [C<L>; 10]) -> [C<L>; 10] {
    // SAFETY: as above.
    unsafe {
        let ([s0, d0], [s1, d1], [s2, d2]) = (two(x[0], x[5]), two(x[2], x[7]), two(x[4], x[9]));
        let ([s3, d3], [s4, d4]) = (two(x[6], x[1]), two(x[8], x[3]));
        let [y0, y6, y2, y8, y4] = five([s0, s1, s2, s3, s4]);
        let [y5, y1, y7, y3, y9] = five([d0, d1, d2, d3, d4]);
        [y0, y1, y2, y3, y4, y5, y6, y7, y8, y9]
    }
}

/// Cosines and sines of 2πk / R, k from 1 to R / 2.
type Circle<const H: usize> = [(f64, f64); H];

const SEVENTHS: Circle<3> = [
    (0.62348980185873359, 0.7818314824680298),
    (-0.22252093395631434, 0.97492791218182362),
    (-0.90096886790241903, 0.43388373911755823),
];
const ELEVENTHS: Circle<5> = [
    (0.84125353283118121, 0.54064081745559756),
    (0.41541501300188644, 0.90963199535451833),
    (-0.142314838273285, 0.9898214418809328),
    (-0.65486073394528499, 0.75574957435425827),
    (-0.95949297361449737, 0.28173255684142967),
];
const THIRTEENTHS: Circle<6> = [
    (0.88545602565320991, 0.46472317204376851),
    (0.56806474673115592, 0.82298386589365635),
    (0.12053668025532301, 0.99270887409805397),
    (-0.35460488704253545, 0.93501624268541483),
    (-0.74851074817110119, 0.66312265824079519),
    (-0.97094181742605201, 0.23931566428755768),
];

/// An odd prime R = 2H + 1: sums and differences of pairs, H² products of each.
#[inline(always)]
unsafe fn odd<L: Wave<T: Constant>, const R: usize, const H: usize>(x: &mut [C<L>; R], circle: &Circle<H>) {
    // SAFETY: as above.
    unsafe {
        let first = x[0];
        let (mut s, mut d) = ([first; H], [first; H]);
        for i in 0..H {
            [s[i], d[i]] = two(x[i + 1], x[R - 1 - i]);
            x[0] = x[0].plus(s[i]);
        }
        for k in 1..=H {
            let (cos, sin) = circle[k - 1];
            let (mut m, mut n) = (first.more(constant(cos), s[0]), d[0].scaled(constant(sin)));
            for i in 2..=H {
                let turn = i * k % R;
                let (cos, sin) = if turn <= H { circle[turn - 1] } else { circle[R - turn - 1] };
                m = m.more(constant(cos), s[i - 1]);
                n = n.more(constant(if turn <= H { sin } else { -sin }), d[i - 1]);
            }
            [x[k], x[R - k]] = m.turned(n);
        }
    }
}

/// The transform of R elements.
#[inline(always)]
unsafe fn transform<L: Wave<T: Constant>, const R: usize>(x: &mut [C<L>; R]) {
    macro_rules! fixed {
        ($n:literal, $f:ident) => {
            *x.as_mut_ptr().cast::<[C<L>; $n]>() = $f(*x.as_ptr().cast::<[C<L>; $n]>())
        };
    }
    macro_rules! prime {
        ($n:literal, $circle:ident) => {
            odd::<L, $n, { $n / 2 }>(&mut *x.as_mut_ptr().cast::<[C<L>; $n]>(), &$circle)
        };
    }
    // SAFETY: as above; the arrays have R elements, whatever the type is said to be.
    unsafe {
        match R {
            2 => [x[0], x[1]] = two(x[0], x[1]),
            3 => fixed!(3, three),
            4 => fixed!(4, four),
            5 => fixed!(5, five),
            6 => fixed!(6, six),
            7 => prime!(7, SEVENTHS),
            8 => fixed!(8, eight),
            10 => fixed!(10, ten),
            11 => prime!(11, ELEVENTHS),
            13 => prime!(13, THIRTEENTHS),
            _ => unreachable!("radices are those of `RADICES`"),
        }
    }
}

/// A pass over `blocks` blocks of R·m elements, in place: element i is the vectors at `re` and `im` + i · 2N.
#[inline(always)]
unsafe fn pass<L: Wave<T: Constant>, const R: usize>(
    (re, im): (*mut L::T, *mut L::T),
    m: usize,
    blocks: usize,
    turns: *const L::T,
) {
    let line = 2 * L::N;
    // SAFETY: the caller's contract: the blocks are there, and R - 1 turns for each j < m unless m is 1.
    unsafe {
        for block in 0..blocks {
            for j in 0..m {
                let at = (block * R * m + j) * line;
                let mut x = [C::<L>::load(re, im, at); R];
                for i in 1..R {
                    x[i] = C::load(re, im, at + i * m * line);
                }
                transform::<L, R>(&mut x);
                if m > 1 {
                    for k in 1..R {
                        x[k] = x[k].by(turns.add(2 * ((R - 1) * j + k - 1)));
                    }
                }
                for k in 0..R {
                    x[k].store(re, im, at + k * m * line);
                }
            }
        }
    }
}

/// Radices that there are passes of.
pub const RADICES: [usize; 10] = [13, 11, 10, 8, 7, 6, 5, 4, 3, 2];

/// A pass of the given radix.
///
/// # Safety
/// The machine must have the instruction set of L; as for `pass`.
#[inline(always)]
pub unsafe fn any_pass<L: Wave<T: Constant>>(
    radix: usize,
    parts: (*mut L::T, *mut L::T),
    m: usize,
    blocks: usize,
    turns: *const L::T,
) {
    macro_rules! of {
        ($($R:literal)*) => {
            // SAFETY: the caller's contract.
            unsafe {
                match radix {
                    $($R => pass::<L, $R>(parts, m, blocks, turns),)*
                    _ => unreachable!("radices are those of `RADICES`"),
                }
            }
        };
    }
    of!(2 3 4 5 6 7 8 10 11 13);
}
