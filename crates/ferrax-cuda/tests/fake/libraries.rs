//! cuBLASLt's and cuFFT's calls: products and transforms by their definitions, one element after another, when a stream comes
//! to them.

use crate::work::{Call, Node, Op};
use crate::{Held, Thing, call, state};
use std::ffi::{c_int, c_longlong, c_void};
use std::sync::Arc;

const NOT_THERE: c_int = 1;
const INVALID_VALUE: c_int = 7;
const NOT_SUPPORTED: c_int = 15;
/// Bytes that a call of these is given to work in.
const WORK: usize = 1024;

/// A matrix as cuBLASLt describes it: columns, each of so many rows, at distances.
#[derive(Clone, Copy, Default)]
pub struct Layout {
    dtype: c_int,
    rows: usize,
    columns: usize,
    ld: usize,
    batch: usize,
    stride: usize,
}

/// A product as cuBLASLt describes it.
#[derive(Clone, Copy, Default)]
pub struct Desc {
    compute: c_int,
    turned: [bool; 2],
}

/// A transform as cuFFT describes it.
#[derive(Clone, Default)]
pub struct Plan {
    kind: c_int,
    lengths: Vec<usize>,
    batch: usize,
    stream: u64,
    work: u64,
}

/// A number with its imaginary part.
pub type Number = (f64, f64);

pub fn size(dtype: c_int) -> usize {
    match dtype {
        2 | 14 => 2,
        0 => 4,
        1 | 4 => 8,
        5 => 16,
        _ => panic!("the fake has no dtype {dtype}"),
    }
}

/// The number of an element.
pub unsafe fn read(dtype: c_int, base: u64, at: usize) -> Number {
    let place = base + (at * size(dtype)) as u64;
    unsafe {
        match dtype {
            2 => (half(*(place as *const u16)), 0.0),
            14 => (f64::from(f32::from_bits(u32::from(*(place as *const u16)) << 16)), 0.0),
            0 => (f64::from(*(place as *const f32)), 0.0),
            1 => (*(place as *const f64), 0.0),
            4 => (f64::from(*(place as *const f32)), f64::from(*((place + 4) as *const f32))),
            _ => (*(place as *const f64), *((place + 8) as *const f64)),
        }
    }
}

pub unsafe fn write(dtype: c_int, base: u64, at: usize, (re, im): Number) {
    let place = base + (at * size(dtype)) as u64;
    unsafe {
        match dtype {
            2 => *(place as *mut u16) = of_half(re),
            14 => {
                let bits = (re as f32).to_bits();
                *(place as *mut u16) = ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16;
            }
            0 => *(place as *mut f32) = re as f32,
            1 => *(place as *mut f64) = re,
            4 => {
                *(place as *mut f32) = re as f32;
                *((place + 4) as *mut f32) = im as f32;
            }
            _ => {
                *(place as *mut f64) = re;
                *((place + 8) as *mut f64) = im;
            }
        }
    }
}

fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let size = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 => f64::INFINITY,
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    };
    if bits >> 15 == 1 { -size } else { size }
}

/// The nearest of the finite ones, the even one of two.
fn of_half(x: f64) -> u16 {
    let sign = if x.is_sign_negative() { 0x8000 } else { 0 };
    let (mut low, mut high) = (0u16, 0x7bff);
    while low < high {
        let middle = low + (high - low) / 2 + 1;
        if half(middle) <= x.abs() { low = middle } else { high = middle - 1 }
    }
    let up = (low + 1).min(0x7bff);
    let (below, above) = (x.abs() - half(low), half(up) - x.abs());
    sign | if above < below || (above == below && low % 2 == 1) { up } else { low }
}

pub unsafe fn put<T>(to: *mut T, value: T) {
    unsafe { *to = value };
}

/// Makes an object of a call.
pub unsafe fn made(name: &str, to: *mut u64, thing: Thing) -> c_int {
    let (mut held, code) = call(name);
    if code == 0 {
        unsafe { put(to, held.add(thing)) };
    }
    code
}

pub fn gone(name: &str, handle: u64) -> c_int {
    let (mut held, code) = call(name);
    if held.things.remove(&handle).is_none() {
        held.violate(format!("{name} of {handle:#x}, which is not there"));
    }
    code
}

#[unsafe(no_mangle)]
pub extern "C" fn cublasLtGetVersion() -> usize {
    state().setting("blas", 120_803) as usize
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtCreate(to: *mut u64) -> c_int {
    unsafe { made("cublasLtCreate", to, Thing::Blas) }
}

#[unsafe(no_mangle)]
pub extern "C" fn cublasLtDestroy(handle: u64) -> c_int {
    gone("cublasLtDestroy", handle)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulDescCreate(to: *mut u64, compute: c_int, _scale: c_int) -> c_int {
    let desc = Desc { compute, turned: [false; 2] };
    unsafe { made("cublasLtMatmulDescCreate", to, Thing::Desc(desc)) }
}

#[unsafe(no_mangle)]
pub extern "C" fn cublasLtMatmulDescDestroy(handle: u64) -> c_int {
    gone("cublasLtMatmulDescDestroy", handle)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulDescSetAttribute(
    handle: u64,
    attribute: c_int,
    value: *const c_int,
    bytes: usize,
) -> c_int {
    let (mut held, code) = call("cublasLtMatmulDescSetAttribute");
    let Some(Thing::Desc(desc)) = held.things.get_mut(&handle) else { return INVALID_VALUE };
    match (attribute, bytes) {
        (3 | 4, 4) => desc.turned[attribute as usize - 3] = unsafe { *value } == 1,
        _ => return NOT_SUPPORTED,
    }
    code
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatrixLayoutCreate(
    to: *mut u64,
    dtype: c_int,
    rows: u64,
    columns: u64,
    ld: i64,
) -> c_int {
    if ld < rows as i64 {
        return INVALID_VALUE;
    }
    let (rows, columns, ld) = (rows as usize, columns as usize, ld as usize);
    let layout = Layout { dtype, rows, columns, ld, batch: 1, stride: 0 };
    unsafe { made("cublasLtMatrixLayoutCreate", to, Thing::Layout(layout)) }
}

#[unsafe(no_mangle)]
pub extern "C" fn cublasLtMatrixLayoutDestroy(handle: u64) -> c_int {
    gone("cublasLtMatrixLayoutDestroy", handle)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatrixLayoutSetAttribute(
    handle: u64,
    attribute: c_int,
    value: *const c_void,
    bytes: usize,
) -> c_int {
    let (mut held, code) = call("cublasLtMatrixLayoutSetAttribute");
    let Some(Thing::Layout(layout)) = held.things.get_mut(&handle) else { return INVALID_VALUE };
    match (attribute, bytes) {
        (5, 4) => layout.batch = unsafe { *value.cast::<i32>() } as usize,
        (6, 8) => layout.stride = unsafe { *value.cast::<i64>() } as usize,
        _ => return NOT_SUPPORTED,
    }
    code
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulPreferenceCreate(to: *mut u64) -> c_int {
    unsafe { made("cublasLtMatmulPreferenceCreate", to, Thing::Wishes) }
}

#[unsafe(no_mangle)]
pub extern "C" fn cublasLtMatmulPreferenceDestroy(handle: u64) -> c_int {
    gone("cublasLtMatmulPreferenceDestroy", handle)
}

#[unsafe(no_mangle)]
pub extern "C" fn cublasLtMatmulPreferenceSetAttribute(
    handle: u64,
    _attribute: c_int,
    _value: *const c_void,
    bytes: usize,
) -> c_int {
    let (held, code) = call("cublasLtMatmulPreferenceSetAttribute");
    let wished = matches!(held.things.get(&handle), Some(Thing::Wishes)) && [4, 8].contains(&bytes);
    if wished { code } else { INVALID_VALUE }
}

/// The extents of a product, if its matrices fit.
fn fitting(held: &Held, desc: u64, [a, b, d]: [u64; 3]) -> Option<(Desc, [Layout; 3], usize)> {
    let Some(Thing::Desc(desc)) = held.things.get(&desc) else { return None };
    let layout = |handle: u64| match held.things.get(&handle) {
        Some(Thing::Layout(layout)) => Some(*layout),
        _ => None,
    };
    let layouts = [layout(a)?, layout(b)?, layout(d)?];
    let side = |l: &Layout, turned: bool| if turned { (l.columns, l.rows) } else { (l.rows, l.columns) };
    let (left, right) = (side(&layouts[0], desc.turned[0]), side(&layouts[1], desc.turned[1]));
    let result = (layouts[2].rows, layouts[2].columns);
    let fits = left.1 == right.0 && result == (left.0, right.1) && layouts.iter().all(|l| l.batch == layouts[2].batch);
    fits.then_some((*desc, layouts, left.1))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulAlgoGetHeuristic(
    handle: u64,
    desc: u64,
    a: u64,
    b: u64,
    _c: u64,
    d: u64,
    wishes: u64,
    wanted: c_int,
    results: *mut u64,
    count: *mut c_int,
) -> c_int {
    let (held, code) = call("cublasLtMatmulAlgoGetHeuristic");
    if code != 0 {
        return code;
    }
    let there = matches!(held.things.get(&handle), Some(Thing::Blas));
    if !there || !matches!(held.things.get(&wishes), Some(Thing::Wishes)) || wanted < 1 {
        return NOT_THERE;
    }
    let found = fitting(&held, desc, [a, b, d]).is_some() && held.setting("ways", 1) > 0;
    unsafe {
        *count = c_int::from(found);
        // the ninth word is the number of bytes that it works in
        *results = 0x5eed;
        *results.add(8) = WORK as u64;
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmul(
    handle: u64,
    desc: u64,
    one: *const c_void,
    a: u64,
    a_layout: u64,
    b: u64,
    b_layout: u64,
    zero: *const c_void,
    _c: u64,
    _c_layout: u64,
    d: u64,
    d_layout: u64,
    algo: *const u64,
    workspace: u64,
    bytes: usize,
    stream: u64,
) -> c_int {
    let (mut held, code) = call("cublasLtMatmul");
    if code != 0 {
        return code;
    }
    let fits = fitting(&held, desc, [a_layout, b_layout, d_layout]);
    let there = matches!(held.things.get(&handle), Some(Thing::Blas)) && unsafe { *algo } == 0x5eed;
    let (Some((desc, [x, y, to], k)), true, true) = (fits, there, bytes >= WORK) else { return INVALID_VALUE };
    let wide = matches!(desc.compute, 70 | 71);
    let factor = |p: *const c_void| unsafe { if wide { *p.cast::<f64>() } else { f64::from(*p.cast::<f32>()) } };
    if (factor(one), factor(zero)) != (1.0, 0.0) {
        return NOT_SUPPORTED;
    }
    let name = if desc.compute == 77 { "product in TF32" } else { "product" };
    held.ran.push(name.to_owned());
    let span = |base: u64, l: &Layout| {
        let last = (l.batch - 1) * l.stride + (l.columns - 1) * l.ld + l.rows;
        (base, last * size(l.dtype))
    };
    let spans = vec![span(a, &x), span(b, &y), span(d, &to), (workspace, WORK)];
    let run = move || unsafe { multiply(&desc, [(a, &x), (b, &y), (d, &to)], k) };
    held.push(stream, Op::Node(Node::Library(Call { name, spans, run: Arc::new(run) })));
    0
}

unsafe fn multiply(desc: &Desc, [(a, x), (b, y), (d, to)]: [(u64, &Layout); 3], k: usize) {
    // elements from one to the next along the axis of the result, and along the one that is summed
    let steps = |l: &Layout, own_columns: bool| if own_columns { (l.ld, 1) } else { (1, l.ld) };
    let (left, right) = (steps(x, desc.turned[0]), steps(y, !desc.turned[1]));
    for batch in 0..to.batch {
        let numbers = |base: u64, l: &Layout, (own, summed): (usize, usize), count: usize| {
            let at = move |i: usize, s: usize| batch * l.stride + i * own + s * summed;
            (0..count).flat_map(move |i| (0..k).map(move |s| unsafe { read(l.dtype, base, at(i, s)) })).collect::<Vec<_>>()
        };
        let (xs, ys) = (numbers(a, x, left, to.rows), numbers(b, y, right, to.columns));
        let complex = matches!(to.dtype, 4 | 5);
        for column in 0..to.columns {
            let other = &ys[column * k..][..k];
            for row in 0..to.rows {
                let pairs = xs[row * k..][..k].iter().zip(other);
                let sum = if complex {
                    pairs.fold((0.0, 0.0), |s, (p, q)| (s.0 + p.0 * q.0 - p.1 * q.1, s.1 + p.0 * q.1 + p.1 * q.0))
                } else {
                    (pairs.map(|(p, q)| p.0 * q.0).sum(), 0.0)
                };
                unsafe { write(to.dtype, d, batch * to.stride + column * to.ld + row, sum) };
            }
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cufftGetVersion(version: *mut c_int) -> c_int {
    unsafe { put(version, state().setting("fft", 11_303) as c_int) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cufftCreate(plan: *mut c_int) -> c_int {
    let mut handle = 0;
    let code = unsafe { made("cufftCreate", &raw mut handle, Thing::Plan(Plan::default())) };
    unsafe { put(plan, handle as c_int) };
    code
}

#[unsafe(no_mangle)]
pub extern "C" fn cufftDestroy(plan: c_int) -> c_int {
    gone("cufftDestroy", plan as u64)
}

/// Changes a plan.
fn change(name: &str, plan: c_int, with: impl FnOnce(&mut Plan)) -> c_int {
    let (mut held, code) = call(name);
    if code != 0 {
        return code;
    }
    let Some(Thing::Plan(plan)) = held.things.get_mut(&(plan as u64)) else { return NOT_THERE };
    with(plan);
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cufftSetAutoAllocation(plan: c_int, automatic: c_int) -> c_int {
    assert_eq!(automatic, 0);
    change("cufftSetAutoAllocation", plan, |_| ())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cufftMakePlanMany64(
    plan: c_int,
    rank: c_int,
    n: *const c_longlong,
    inembed: *const c_longlong,
    _istride: c_longlong,
    _idist: c_longlong,
    _onembed: *const c_longlong,
    _ostride: c_longlong,
    _odist: c_longlong,
    kind: c_int,
    batch: c_longlong,
    bytes: *mut usize,
) -> c_int {
    assert!(inembed.is_null());
    let lengths = unsafe { std::slice::from_raw_parts(n, rank as usize) };
    let lengths: Vec<usize> = lengths.iter().map(|&n| n as usize).collect();
    unsafe { put(bytes, WORK) };
    change("cufftMakePlanMany64", plan, |plan| *plan = Plan { kind, lengths, batch: batch as usize, stream: 0, work: 0 })
}

#[unsafe(no_mangle)]
pub extern "C" fn cufftSetStream(plan: c_int, stream: u64) -> c_int {
    change("cufftSetStream", plan, |plan| plan.stream = stream)
}

#[unsafe(no_mangle)]
pub extern "C" fn cufftSetWorkArea(plan: c_int, area: u64) -> c_int {
    change("cufftSetWorkArea", plan, |plan| plan.work = area)
}

/// Gives a transform to its stream.
fn exec(name: &'static str, plan: c_int, kind: c_int, [from, to]: [u64; 2], forward: bool) -> c_int {
    let (mut held, code) = call(name);
    if code != 0 {
        return code;
    }
    let Some(Thing::Plan(plan)) = held.things.get(&(plan as u64)) else { return NOT_THERE };
    let plan = plan.clone();
    if plan.kind != kind {
        return NOT_SUPPORTED;
    }
    let (own, made) = plan.dtypes();
    let [given, gives] = plan.shapes();
    let count = |shape: &[usize]| plan.batch * shape.iter().product::<usize>();
    let spans = vec![(from, count(&given) * size(own)), (to, count(&gives) * size(made)), (plan.work, WORK)];
    held.ran.push("transform".to_owned());
    let stream = plan.stream;
    let run = move || unsafe { plan.run(from, to, forward) };
    held.push(stream, Op::Node(Node::Library(Call { name: "transform", spans, run: Arc::new(run) })));
    0
}

impl Plan {
    fn dtypes(&self) -> (c_int, c_int) {
        match self.kind {
            0x2a => (0, 4),
            0x2c => (4, 0),
            0x29 => (4, 4),
            0x6a => (1, 5),
            0x6c => (5, 1),
            _ => (5, 5),
        }
    }

    /// The shapes of what it reads and of what it writes.
    fn shapes(&self) -> [Vec<usize>; 2] {
        let (whole, mut halved) = (self.lengths.clone(), self.lengths.clone());
        let last = halved.len() - 1;
        halved[last] = halved[last] / 2 + 1;
        match self.kind {
            0x2a | 0x6a => [whole, halved],
            0x2c | 0x6c => [halved, whole],
            _ => [whole.clone(), whole],
        }
    }

    unsafe fn run(&self, from: u64, to: u64, forward: bool) {
        let [given, gives] = self.shapes();
        let (own, made) = self.dtypes();
        let (read_count, write_count) = (given.iter().product::<usize>(), gives.iter().product::<usize>());
        let last = self.lengths.len() - 1;
        for batch in 0..self.batch {
            let mut x: Vec<Number> = (0..read_count).map(|i| unsafe { read(own, from, batch * read_count + i) }).collect();
            let backward = matches!(self.kind, 0x2c | 0x6c);
            let mut shape = given.clone();
            for axis in 0..last {
                x = along(&x, &shape, axis, forward && !backward);
            }
            if backward {
                // lines that are halved, made whole by their mirrored ends, whose own imaginary parts do not count
                let (n, half) = (self.lengths[last], shape[last]);
                let whole = |line: &[Number]| -> Vec<Number> {
                    let mirrored = |i: usize| if i < half { line[i] } else { (line[n - i].0, -line[n - i].1) };
                    (0..n).map(mirrored).collect()
                };
                x = x.chunks(half).flat_map(whole).collect();
                shape[last] = n;
            }
            x = along(&x, &shape, last, forward && !backward);
            if shape[last] != gives[last] {
                x = x.chunks(shape[last]).flat_map(|line| line[..gives[last]].to_vec()).collect();
            }
            (0..write_count).for_each(|i| unsafe { write(made, to, batch * write_count + i, x[i]) });
        }
        if self.kind == 0x2c || self.kind == 0x6c {
            // what it read is anything after that
            let count = self.batch * read_count;
            (0..count).for_each(|i| unsafe { write(own, from, i, (f64::NAN, f64::NAN)) });
        }
    }
}

/// The transform along an axis.
fn along(x: &[Number], shape: &[usize], axis: usize, forward: bool) -> Vec<Number> {
    let (n, inner) = (shape[axis], shape[axis + 1..].iter().product::<usize>());
    let sign = if forward { -1.0 } else { 1.0 };
    let roots: Vec<Number> = (0..n).map(|i| (sign * std::f64::consts::TAU * i as f64 / n as f64).sin_cos()).collect();
    let mut y = vec![(0.0, 0.0); x.len()];
    for (i, to) in y.iter_mut().enumerate() {
        let (outer, k, rest) = (i / (n * inner), i / inner % n, i % inner);
        for j in 0..n {
            let (sin, cos) = roots[j * k % n];
            let (re, im) = x[outer * n * inner + j * inner + rest];
            *to = (to.0 + re * cos - im * sin, to.1 + re * sin + im * cos);
        }
    }
    y
}

#[unsafe(no_mangle)]
pub extern "C" fn cufftExecC2C(plan: c_int, from: u64, to: u64, direction: c_int) -> c_int {
    exec("cufftExecC2C", plan, 0x29, [from, to], direction == -1)
}

#[unsafe(no_mangle)]
pub extern "C" fn cufftExecR2C(plan: c_int, from: u64, to: u64) -> c_int {
    exec("cufftExecR2C", plan, 0x2a, [from, to], true)
}

#[unsafe(no_mangle)]
pub extern "C" fn cufftExecC2R(plan: c_int, from: u64, to: u64) -> c_int {
    exec("cufftExecC2R", plan, 0x2c, [from, to], false)
}

#[unsafe(no_mangle)]
pub extern "C" fn cufftExecZ2Z(plan: c_int, from: u64, to: u64, direction: c_int) -> c_int {
    exec("cufftExecZ2Z", plan, 0x69, [from, to], direction == -1)
}

#[unsafe(no_mangle)]
pub extern "C" fn cufftExecD2Z(plan: c_int, from: u64, to: u64) -> c_int {
    exec("cufftExecD2Z", plan, 0x6a, [from, to], true)
}

#[unsafe(no_mangle)]
pub extern "C" fn cufftExecZ2D(plan: c_int, from: u64, to: u64) -> c_int {
    exec("cufftExecZ2D", plan, 0x6c, [from, to], false)
}
