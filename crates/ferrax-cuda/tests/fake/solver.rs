//! cuSOLVER's calls: factorizations by their definitions, in double precision, when a stream comes to them. Columns lie one
//! behind the other.

use crate::libraries::{Number, gone, made, put, read, size, write};
use crate::work::{Call, Node, Op};
use crate::{Thing, call, state};
use std::ffi::{c_int, c_schar, c_void};
use std::sync::Arc;

const NOT_INITIALIZED: c_int = 1;
const INVALID_VALUE: c_int = 3;
/// Bytes that a call of these is given to work in, on the GPU and on the host.
const WORK: usize = 1024;
const HOST: usize = 24;

fn mul(x: Number, y: Number) -> Number {
    (x.0 * y.0 - x.1 * y.1, x.0 * y.1 + x.1 * y.0)
}
fn sub(x: Number, y: Number) -> Number {
    (x.0 - y.0, x.1 - y.1)
}
fn add(x: Number, y: Number) -> Number {
    (x.0 + y.0, x.1 + y.1)
}
fn conj(x: Number) -> Number {
    (x.0, -x.1)
}
fn scaled(x: Number, s: f64) -> Number {
    (x.0 * s, x.1 * s)
}
fn square(x: Number) -> f64 {
    x.0 * x.0 + x.1 * x.1
}
fn over(x: Number, y: Number) -> Number {
    scaled(mul(x, conj(y)), 1.0 / square(y))
}

/// A matrix, its columns one behind the other.
#[derive(Clone)]
struct Matrix {
    m: usize,
    n: usize,
    x: Vec<Number>,
}

impl Matrix {
    fn of(m: usize, n: usize, f: impl Fn(usize, usize) -> Number) -> Matrix {
        Matrix { m, n, x: (0..m * n).map(|e| f(e % m, e / m)).collect() }
    }
    unsafe fn read(dtype: c_int, at: u64, [m, n]: [usize; 2]) -> Matrix {
        Matrix::of(m, n, |i, j| unsafe { read(dtype, at, j * m + i) })
    }
    unsafe fn write(&self, dtype: c_int, at: u64) {
        self.x.iter().enumerate().for_each(|(e, x)| unsafe { write(dtype, at, e, *x) });
    }
    fn at(&self, i: usize, j: usize) -> Number {
        self.x[j * self.m + i]
    }
    fn set(&mut self, i: usize, j: usize, x: Number) {
        self.x[j * self.m + i] = x;
    }
    fn column(&self, j: usize) -> &[Number] {
        &self.x[j * self.m..][..self.m]
    }
}

/// The upper factor; the other triangle stays.
fn cholesky(a: &mut Matrix) -> i32 {
    for k in 0..a.n {
        for j in k..a.n {
            let sum = (0..k).fold(a.at(k, j), |s, i| sub(s, mul(conj(a.at(i, k)), a.at(i, j))));
            if j == k {
                if !(sum.0 > 0.0) {
                    return k as i32 + 1;
                }
                a.set(k, k, (sum.0.sqrt(), 0.0));
            } else {
                a.set(k, j, scaled(sum, 1.0 / a.at(k, k).0));
            }
        }
    }
    0
}

/// L and U with the rows that were exchanged, counted from one.
fn lu(a: &mut Matrix) -> (Vec<i64>, i32) {
    let (mut pivots, mut code) = (Vec::new(), 0);
    for k in 0..a.m.min(a.n) {
        let of = |i: usize| a.at(i, k).0.abs() + a.at(i, k).1.abs();
        let p = (k..a.m).fold(k, |best, i| if of(i) > of(best) { i } else { best });
        pivots.push(p as i64 + 1);
        for j in 0..a.n {
            let (x, y) = (a.at(k, j), a.at(p, j));
            a.set(k, j, y);
            a.set(p, j, x);
        }
        if square(a.at(k, k)) == 0.0 {
            code = if code == 0 { k as i32 + 1 } else { code };
            continue;
        }
        for i in k + 1..a.m {
            let f = over(a.at(i, k), a.at(k, k));
            a.set(i, k, f);
            (k + 1..a.n).for_each(|j| a.set(i, j, sub(a.at(i, j), mul(f, a.at(k, j)))));
        }
    }
    (pivots, code)
}

/// Applies I - tau v vᴴ, with v below row k of a column of `vs` and one there, to columns from `first` on.
fn reflect(a: &mut Matrix, vs: &Matrix, k: usize, tau: Number, first: usize) {
    let v = |i: usize| if i == k { (1.0, 0.0) } else { vs.at(i, k) };
    for j in first..a.n {
        let dot = (k..a.m).fold((0.0, 0.0), |s, i| add(s, mul(conj(v(i)), a.at(i, j))));
        (k..a.m).for_each(|i| a.set(i, j, sub(a.at(i, j), mul(mul(tau, v(i)), dot))));
    }
}

fn qr(a: &mut Matrix) -> Vec<Number> {
    let mut taus = Vec::new();
    for k in 0..a.m.min(a.n) {
        let (alpha, below) = (a.at(k, k), (k + 1..a.m).map(|i| square(a.at(i, k))).sum::<f64>());
        if below == 0.0 && alpha.1 == 0.0 {
            taus.push((0.0, 0.0));
            continue;
        }
        let norm = (square(alpha) + below).sqrt();
        let beta = if alpha.0 > 0.0 { -norm } else { norm };
        let tau = ((beta - alpha.0) / beta, -alpha.1 / beta);
        (k + 1..a.m).for_each(|i| a.set(i, k, over(a.at(i, k), sub(alpha, (beta, 0.0)))));
        a.set(k, k, (beta, 0.0));
        let vs = a.clone();
        // the adjoint reflection makes the column's rest zero
        reflect(a, &vs, k, conj(tau), k + 1);
        taus.push(tau);
    }
    taus
}

fn product(a: &Matrix, taus: &[Number]) -> Matrix {
    let mut q = Matrix::of(a.m, a.n, |i, j| (f64::from(i == j), 0.0));
    (0..taus.len()).rev().for_each(|k| reflect(&mut q, a, k, taus[k], 0));
    q
}

/// Eigenvalues in ascending order, with their vectors, by rotations of Jacobi's of the columns of (A + cI), which are
/// orthogonal in the end: their lengths are values, their directions vectors.
fn eigh(a: &Matrix) -> (Vec<f64>, Matrix) {
    let n = a.n;
    let shift = 1.0 + a.x.iter().map(|x| square(*x)).sum::<f64>().sqrt();
    let moved = Matrix::of(n, n, |i, j| add(a.at(i, j), (if i == j { shift } else { 0.0 }, 0.0)));
    let (u, s, _) = svd(&moved);
    let vectors = Matrix::of(n, n, |i, j| u.at(i, n - 1 - j));
    (s.iter().rev().map(|s| s - shift).collect(), vectors)
}

/// U, values in descending order, V of a matrix with no fewer rows than columns: rotations from the right make its columns
/// orthogonal (Hestenes).
fn svd(a: &Matrix) -> (Matrix, Vec<f64>, Matrix) {
    let (mut w, n) = (a.clone(), a.n);
    let mut v = Matrix::of(n, n, |i, j| (f64::from(i == j), 0.0));
    for _ in 0..60 {
        let mut off = 0.0f64;
        for p in 0..n {
            for q in p + 1..n {
                let dot = w.column(p).iter().zip(w.column(q)).fold((0.0, 0.0), |s, (x, y)| add(s, mul(conj(*x), *y)));
                let [x, y] = [p, q].map(|j| w.column(j).iter().map(|z| square(*z)).sum::<f64>());
                let length = square(dot).sqrt();
                if length <= 1e-17 * (x * y).sqrt() || length == 0.0 {
                    continue;
                }
                off = off.max(length / (x * y).sqrt());
                let zeta = (y - x) / (2.0 * length);
                let t = zeta.signum() / (zeta.abs() + (1.0 + zeta * zeta).sqrt());
                let t = if zeta == 0.0 { 1.0 } else { t };
                let c = 1.0 / (1.0 + t * t).sqrt();
                let phase = scaled(dot, 1.0 / length);
                for matrix in [&mut w, &mut v] {
                    for i in 0..matrix.m {
                        let (x, y) = (matrix.at(i, p), mul(matrix.at(i, q), conj(phase)));
                        matrix.set(i, p, sub(scaled(x, c), scaled(y, c * t)));
                        matrix.set(i, q, add(scaled(x, c * t), scaled(y, c)));
                    }
                }
            }
        }
        if off < 1e-15 {
            break;
        }
    }
    let lengths: Vec<f64> = (0..n).map(|j| w.column(j).iter().map(|z| square(*z)).sum::<f64>().sqrt()).collect();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|i, j| lengths[*j].total_cmp(&lengths[*i]));
    // what is missing of a basis of all rows: unit vectors less what they have of the others
    let mut u = Matrix::of(w.m, w.m, |_, _| (0.0, 0.0));
    let mut unit = 0;
    for j in 0..w.m {
        let mut x: Vec<Number> = Vec::new();
        if j < n && lengths[order[j]] > 1e-14 * lengths[order[0]] {
            x = w.column(order[j]).iter().map(|z| scaled(*z, 1.0 / lengths[order[j]])).collect();
        }
        while x.is_empty() {
            let mut next: Vec<Number> = (0..w.m).map(|i| (f64::from(i == unit), 0.0)).collect();
            unit += 1;
            for _ in 0..2 {
                for k in 0..j {
                    let dot = u.column(k).iter().zip(&next).fold((0.0, 0.0), |s, (x, y)| add(s, mul(conj(*x), *y)));
                    (0..w.m).for_each(|i| next[i] = sub(next[i], mul(dot, u.at(i, k))));
                }
            }
            let length = next.iter().map(|z| square(*z)).sum::<f64>().sqrt();
            if length > 1e-8 {
                x = next.iter().map(|z| scaled(*z, 1.0 / length)).collect();
            }
        }
        (0..w.m).for_each(|i| u.set(i, j, x[i]));
    }
    let v = Matrix::of(n, n, |i, j| v.at(i, order[j]));
    (u, order.iter().map(|j| lengths[*j]).collect(), v)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cusolverGetVersion(version: *mut c_int) -> c_int {
    unsafe { put(version, state().setting("solver", 11_703) as c_int) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cusolverDnCreate(to: *mut u64) -> c_int {
    unsafe { made("cusolverDnCreate", to, Thing::Solver { stream: 0 }) }
}

#[unsafe(no_mangle)]
pub extern "C" fn cusolverDnDestroy(handle: u64) -> c_int {
    gone("cusolverDnDestroy", handle)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cusolverDnCreateParams(to: *mut u64) -> c_int {
    unsafe { made("cusolverDnCreateParams", to, Thing::Wishes) }
}

#[unsafe(no_mangle)]
pub extern "C" fn cusolverDnDestroyParams(params: u64) -> c_int {
    gone("cusolverDnDestroyParams", params)
}

#[unsafe(no_mangle)]
pub extern "C" fn cusolverDnSetStream(handle: u64, to: u64) -> c_int {
    let (mut held, code) = call("cusolverDnSetStream");
    let Some(Thing::Solver { stream }) = held.things.get_mut(&handle) else { return NOT_INITIALIZED };
    *stream = to;
    code
}

/// Says how much memory a call works in.
unsafe fn sizes(name: &str, device: *mut usize, host: *mut usize) -> c_int {
    let (_, code) = call(name);
    unsafe {
        put(device, WORK);
        put(host, HOST);
    }
    code
}

/// What a call is given to work in: on the GPU, how much, on the host, how much.
type Work = (u64, usize, *mut c_void, usize);

/// Gives a call to its handle's stream.
fn start(
    name: &'static str,
    handle: u64,
    mut spans: Vec<(u64, usize)>,
    work: Work,
    run: impl Fn() + Send + Sync + 'static,
) -> c_int {
    let (mut held, code) = call(name);
    if code != 0 {
        return code;
    }
    let Some(&Thing::Solver { stream }) = held.things.get(&handle) else { return NOT_INITIALIZED };
    if work.1 < WORK || work.3 < HOST || work.2.is_null() {
        return INVALID_VALUE;
    }
    unsafe { work.2.cast::<u8>().write_bytes(0x5a, HOST) };
    spans.push((work.0, WORK));
    let name = name.trim_start_matches("cusolverDn").trim_start_matches('X');
    held.ran.push(name.to_owned());
    held.push(stream, Op::Node(Node::Library(Call { name, spans, run: Arc::new(run) })));
    0
}

unsafe fn code(to: u64, i: usize, value: i32) {
    unsafe { *(to as *mut i32).add(i) = value };
}

#[unsafe(no_mangle)]
#[rustfmt::skip]
pub unsafe extern "C" fn cusolverDnXpotrf_bufferSize(_: u64, _: u64, _: c_int, _: i64, _: c_int, _: u64, _: i64, _: c_int, device: *mut usize, host: *mut usize) -> c_int {
    unsafe { sizes("cusolverDnXpotrf_bufferSize", device, host) }
}

#[unsafe(no_mangle)]
#[rustfmt::skip]
pub unsafe extern "C" fn cusolverDnXpotrf(handle: u64, _: u64, uplo: c_int, n: i64, dtype: c_int, a: u64, lda: i64, compute: c_int, device: u64, bytes: usize, host: *mut c_void, host_bytes: usize, info: u64) -> c_int {
    assert!(uplo == 1 && lda == n && compute == dtype);
    let n = n as usize;
    start("cusolverDnXpotrf", handle, vec![(a, n * n * size(dtype)), (info, 4)], (device, bytes, host, host_bytes), move || unsafe {
        let mut x = Matrix::read(dtype, a, [n, n]);
        code(info, 0, cholesky(&mut x));
        x.write(dtype, a);
    })
}

#[unsafe(no_mangle)]
#[rustfmt::skip]
pub unsafe extern "C" fn cusolverDnXgetrf_bufferSize(_: u64, _: u64, _: i64, _: i64, _: c_int, _: u64, _: i64, _: c_int, device: *mut usize, host: *mut usize) -> c_int {
    unsafe { sizes("cusolverDnXgetrf_bufferSize", device, host) }
}

#[unsafe(no_mangle)]
#[rustfmt::skip]
pub unsafe extern "C" fn cusolverDnXgetrf(handle: u64, _: u64, m: i64, n: i64, dtype: c_int, a: u64, lda: i64, pivots: u64, compute: c_int, device: u64, bytes: usize, host: *mut c_void, host_bytes: usize, info: u64) -> c_int {
    assert!(lda == m && compute == dtype);
    let (m, n) = (m as usize, n as usize);
    let spans = vec![(a, m * n * size(dtype)), (pivots, 8 * m.min(n)), (info, 4)];
    start("cusolverDnXgetrf", handle, spans, (device, bytes, host, host_bytes), move || unsafe {
        let mut x = Matrix::read(dtype, a, [m, n]);
        let (rows, singular) = lu(&mut x);
        code(info, 0, singular);
        (pivots as *mut i64).copy_from_nonoverlapping(rows.as_ptr(), rows.len());
        x.write(dtype, a);
    })
}

#[unsafe(no_mangle)]
#[rustfmt::skip]
pub unsafe extern "C" fn cusolverDnXgeqrf_bufferSize(_: u64, _: u64, _: i64, _: i64, _: c_int, _: u64, _: i64, _: c_int, _: u64, _: c_int, device: *mut usize, host: *mut usize) -> c_int {
    unsafe { sizes("cusolverDnXgeqrf_bufferSize", device, host) }
}

#[unsafe(no_mangle)]
#[rustfmt::skip]
pub unsafe extern "C" fn cusolverDnXgeqrf(handle: u64, _: u64, m: i64, n: i64, dtype: c_int, a: u64, lda: i64, tau_type: c_int, tau: u64, compute: c_int, device: u64, bytes: usize, host: *mut c_void, host_bytes: usize, info: u64) -> c_int {
    assert!(lda == m && compute == dtype && tau_type == dtype);
    let (m, n) = (m as usize, n as usize);
    let spans = vec![(a, m * n * size(dtype)), (tau, m.min(n) * size(dtype)), (info, 4)];
    start("cusolverDnXgeqrf", handle, spans, (device, bytes, host, host_bytes), move || unsafe {
        let mut x = Matrix::read(dtype, a, [m, n]);
        qr(&mut x).iter().enumerate().for_each(|(k, t)| write(dtype, tau, k, *t));
        x.write(dtype, a);
        code(info, 0, 0);
    })
}

#[unsafe(no_mangle)]
#[rustfmt::skip]
pub unsafe extern "C" fn cusolverDnXsyevd_bufferSize(_: u64, _: u64, _: c_int, _: c_int, _: i64, _: c_int, _: u64, _: i64, _: c_int, _: u64, _: c_int, device: *mut usize, host: *mut usize) -> c_int {
    unsafe { sizes("cusolverDnXsyevd_bufferSize", device, host) }
}

#[unsafe(no_mangle)]
#[rustfmt::skip]
pub unsafe extern "C" fn cusolverDnXsyevd(handle: u64, _: u64, mode: c_int, uplo: c_int, n: i64, dtype: c_int, a: u64, lda: i64, w_type: c_int, w: u64, compute: c_int, device: u64, bytes: usize, host: *mut c_void, host_bytes: usize, info: u64) -> c_int {
    assert!(mode == 1 && lda == n && compute == dtype);
    spectra("cusolverDnXsyevd", handle, uplo, n as usize, [dtype, w_type], [a, w, info], 1, (device, bytes, host, host_bytes))
}

#[unsafe(no_mangle)]
#[rustfmt::skip]
pub unsafe extern "C" fn cusolverDnXsyevBatched_bufferSize(_: u64, _: u64, _: c_int, _: c_int, _: i64, _: c_int, _: u64, _: i64, _: c_int, _: u64, _: c_int, device: *mut usize, host: *mut usize, _: i64) -> c_int {
    unsafe { sizes("cusolverDnXsyevBatched_bufferSize", device, host) }
}

#[unsafe(no_mangle)]
#[rustfmt::skip]
pub unsafe extern "C" fn cusolverDnXsyevBatched(handle: u64, _: u64, mode: c_int, uplo: c_int, n: i64, dtype: c_int, a: u64, lda: i64, w_type: c_int, w: u64, compute: c_int, device: u64, bytes: usize, host: *mut c_void, host_bytes: usize, info: u64, batch: i64) -> c_int {
    assert!(mode == 1 && lda == n && compute == dtype);
    spectra("cusolverDnXsyevBatched", handle, uplo, n as usize, [dtype, w_type], [a, w, info], batch as usize, (device, bytes, host, host_bytes))
}

#[rustfmt::skip]
fn spectra(name: &'static str, handle: u64, uplo: c_int, n: usize, [dtype, w_type]: [c_int; 2], [a, w, info]: [u64; 3], batch: usize, work: Work) -> c_int {
    let spans = vec![(a, batch * n * n * size(dtype)), (w, batch * n * size(w_type)), (info, 4 * batch)];
    let fails = state().setting("diverges", 0) != 0;
    start(name, handle, spans, work, move || unsafe {
        for i in 0..batch {
            let at = a + (i * n * n * size(dtype)) as u64;
            let x = Matrix::read(dtype, at, [n, n]);
            // one triangle is read
            let counts = |r: usize, c: usize| if uplo == 0 { r >= c } else { r <= c };
            let x = Matrix::of(n, n, |r, c| if r == c { (x.at(r, r).0, 0.0) } else if counts(r, c) { x.at(r, c) } else { conj(x.at(c, r)) });
            let (values, vectors) = eigh(&x);
            (0..n).for_each(|k| write(w_type, w, i * n + k, (values[k], 0.0)));
            vectors.write(dtype, at);
            code(info, i, i32::from(fails && i + 1 == batch));
        }
    })
}

#[unsafe(no_mangle)]
#[rustfmt::skip]
pub unsafe extern "C" fn cusolverDnXgesvd_bufferSize(_: u64, _: u64, _: c_schar, _: c_schar, m: i64, n: i64, _: c_int, _: u64, _: i64, _: c_int, _: u64, _: c_int, _: u64, _: i64, _: c_int, _: u64, _: i64, _: c_int, device: *mut usize, host: *mut usize) -> c_int {
    if m < n {
        return INVALID_VALUE;
    }
    unsafe { sizes("cusolverDnXgesvd_bufferSize", device, host) }
}

#[unsafe(no_mangle)]
#[rustfmt::skip]
pub unsafe extern "C" fn cusolverDnXgesvd(handle: u64, _: u64, u_job: c_schar, vt_job: c_schar, m: i64, n: i64, dtype: c_int, a: u64, lda: i64, s_type: c_int, s: u64, u_type: c_int, u: u64, ldu: i64, vt_type: c_int, vt: u64, ldvt: i64, compute: c_int, device: u64, bytes: usize, host: *mut c_void, host_bytes: usize, info: u64) -> c_int {
    assert!(u_job == vt_job && m >= n && lda == m && ldu == m && ldvt == n && [u_type, vt_type, compute] == [dtype; 3]);
    let (m, n, wide) = (m as usize, n as usize, u_job as u8 == b'A');
    let mut spans = vec![(a, m * n * size(dtype)), (s, n * size(s_type)), (info, 4)];
    let vectors = u_job as u8 != b'N';
    let columns = if wide { m } else { n };
    if vectors {
        spans.extend([(u, m * columns * size(dtype)), (vt, n * n * size(dtype))]);
    }
    start("cusolverDnXgesvd", handle, spans, (device, bytes, host, host_bytes), move || unsafe {
        let x = Matrix::read(dtype, a, [m, n]);
        let (left, values, right) = svd(&x);
        (0..n).for_each(|k| write(s_type, s, k, (values[k], 0.0)));
        if vectors {
            Matrix::of(m, columns, |i, j| left.at(i, j)).write(dtype, u);
            Matrix::of(n, n, |i, j| conj(right.at(j, i))).write(dtype, vt);
        }
        // what the matrix was is gone
        Matrix::of(m, n, |_, _| (f64::NAN, f64::NAN)).write(dtype, a);
        code(info, 0, 0);
    })
}

macro_rules! reflections {
    ($($size:ident $run:ident $dtype:literal;)*) => {
        $(
            #[unsafe(no_mangle)]
            #[rustfmt::skip]
            pub unsafe extern "C" fn $size(_: u64, m: c_int, n: c_int, k: c_int, _: u64, _: c_int, _: u64, elements: *mut c_int) -> c_int {
                let (_, code) = call(stringify!($size));
                if m < n || n < k { return INVALID_VALUE; }
                unsafe { put(elements, (WORK / size($dtype)) as c_int) };
                code
            }

            #[unsafe(no_mangle)]
            #[rustfmt::skip]
            pub unsafe extern "C" fn $run(handle: u64, m: c_int, n: c_int, k: c_int, a: u64, lda: c_int, tau: u64, work: u64, elements: c_int, info: u64) -> c_int {
                assert_eq!(lda, m);
                let (m, n, k, d) = (m as usize, n as usize, k as usize, $dtype);
                let spans = vec![(a, m * n * size(d)), (tau, k * size(d)), (info, 4)];
                let mut host = [0u8; HOST];
                let room = (work, elements as usize * size(d), host.as_mut_ptr().cast(), HOST);
                start(stringify!($run), handle, spans, room, move || unsafe {
                    let x = Matrix::read(d, a, [m, n]);
                    let taus: Vec<Number> = (0..k).map(|i| read(d, tau, i)).collect();
                    product(&x, &taus).write(d, a);
                    code(info, 0, 0);
                })
            }
        )*
    };
}
reflections! {
    cusolverDnSorgqr_bufferSize cusolverDnSorgqr 0;
    cusolverDnDorgqr_bufferSize cusolverDnDorgqr 1;
    cusolverDnCungqr_bufferSize cusolverDnCungqr 4;
    cusolverDnZungqr_bufferSize cusolverDnZungqr 5;
}
