//! Derivatives of every differentiable block against finite differences, forward and reverse, and batching
//! against a loop over rows; everything evaluated by the CPU engine in float64.

mod support;

use ferrax_base::{DType, Result};
use ferrax_ir::{DebugInfo, Value};
use ferrax_ops::*;
use ferrax_transform::{VmapAxis, jvp, linearize, vmap};
use smallvec::smallvec;
use support::{array, data, install};

type Fun<'a> = dyn Fn(&[Value]) -> Result<Value> + 'a;

fn name() -> DebugInfo {
    DebugInfo::named("f")
}

/// Weights that make a scalar of a result, all different.
fn weights(n: usize) -> Vec<f64> {
    (0..n).map(|i| 0.7 + 0.3 * (i as f64 * 1.7).sin()).collect()
}

fn weighted(f: &Fun<'_>, args: &[Value]) -> Result<Value> {
    let out = f(args)?;
    let w = array(out.shape(), weights(out.size()));
    let all: Vec<usize> = (0..out.rank()).collect();
    reduce_sum(&mul(&out, &w)?, &all)
}

fn moved(args: &[Value], i: usize, k: usize, by: f64) -> Vec<Value> {
    let mut args = args.to_vec();
    let mut values = data(&args[i]);
    values[k] += by;
    args[i] = array(args[i].shape(), values);
    args
}

/// Reverse and forward derivatives of a weighted sum of the results against central differences.
fn check(what: &str, f: &Fun<'_>, args: &[Value]) {
    install();
    let lin = linearize("grad", name(), args, &vec![true; args.len()], |a| Ok(vec![weighted(f, a)?]))
        .unwrap_or_else(|e| panic!("{what}: {e}"));
    let grads = lin.pull_back(&[Some(Value::float(DType::F64, 1.0))]).unwrap_or_else(|e| panic!("{what}: {e}"));
    for (i, x) in args.iter().enumerate() {
        let grad = grads[i].as_ref().map_or_else(|| vec![0.0; x.size()], data);
        assert!(grads[i].as_ref().is_none_or(|g| g.shape() == x.shape()), "{what}: shape of the gradient");
        for (k, g) in grad.iter().enumerate() {
            let h = 1e-6;
            let at = |by: f64| data(&weighted(f, &moved(args, i, k, by)).unwrap())[0];
            let numeric = (at(h) - at(-h)) / (2.0 * h);
            let tolerance = 2e-6 * (1.0 + numeric.abs());
            assert!(
                (g - numeric).abs() < tolerance,
                "{what}: gradient by argument {i}, element {k}: {g} not {numeric}"
            );
            let mut tangents = vec![None; args.len()];
            let mut direction = vec![0.0; x.size()];
            direction[k] = 1.0;
            tangents[i] = Some(array(x.shape(), direction));
            let (_, out) = jvp(name(), args, &tangents, |a| Ok(vec![weighted(f, a)?])).unwrap();
            let forward = out[0].as_ref().map_or(0.0, |t| data(t)[0]);
            assert!((forward - numeric).abs() < tolerance, "{what}: jvp {forward} not {numeric}");
        }
    }
}

/// `f` of every row, at each place of the batch axis, against the function of the whole batch.
fn check_batching(what: &str, f: &Fun<'_>, args: &[Value], batched: &[bool]) {
    install();
    const ROWS: usize = 3;
    let rows: Vec<Vec<Value>> = (0..ROWS)
        .map(|r| {
            let scale = |x: &Value| array(x.shape(), data(x).iter().map(|v| v * (1.0 - 0.1 * r as f64)));
            args.iter().zip(batched).map(|(x, &b)| if b { scale(x) } else { x.clone() }).collect()
        })
        .collect();
    let wanted: Vec<Value> = rows.iter().map(|r| f(r).unwrap()).collect();
    let wanted = stack(&wanted, 0).unwrap();
    let deepest = args.iter().map(Value::rank).max().unwrap_or(0);
    for at in 0..=deepest {
        let mut full = Vec::new();
        let mut dims = Vec::new();
        for (i, x) in args.iter().enumerate() {
            let place = at.min(x.rank());
            let column: Vec<Value> = rows.iter().map(|r| r[i].clone()).collect();
            full.push(if batched[i] { stack(&column, place).unwrap() } else { x.clone() });
            dims.push(batched[i].then_some(place));
        }
        let axis = VmapAxis::new(ROWS, None);
        let (got, dim) =
            vmap(name(), axis, &full, &dims, |a| Ok(vec![f(a)?])).unwrap_or_else(|e| panic!("{what}: {e}")).remove(0);
        let got = ferrax_transform::batching::place_axis(&got, dim, Some(0), ROWS).unwrap();
        assert_eq!(got.shape(), wanted.shape(), "{what} with the batch axis at {at}");
        for (g, w) in data(&got).iter().zip(data(&wanted)) {
            assert!((g - w).abs() <= 1e-12 * (1.0 + w.abs()), "{what} with the batch axis at {at}: {g} not {w}");
        }
    }
}

fn unary_checks(cases: &[(&str, fn(&Value) -> Result<Value>, &[f64])]) {
    for &(what, f, points) in cases {
        let x = array(&[points.len()], points.iter().copied());
        check(what, &|a| f(&a[0]), &[x]);
        let x = array(&[2, 2], points.iter().cycle().take(4).copied());
        check_batching(what, &|a| f(&a[0]), &[x], &[true]);
        check(what, &|a| f(&a[0]), &[array(&[], [points[0]])]);
    }
}

#[test]
fn unary_functions() {
    let any: &[f64] = &[0.3, -0.7, 1.9];
    let unit: &[f64] = &[0.3, -0.7, 0.1];
    let positive: &[f64] = &[0.3, 0.7, 2.9];
    unary_checks(&[
        ("neg", neg, any),
        ("sign", sign, any),
        ("floor", floor, any),
        ("ceil", ceil, any),
        ("exp", exp, any),
        ("exp2", exp2, any),
        ("log", log, positive),
        ("expm1", expm1, any),
        ("log1p", log1p, positive),
        ("tanh", tanh, any),
        ("logistic", logistic, any),
        ("sin", sin, any),
        ("cos", cos, any),
        ("tan", tan, any),
        ("asin", asin, unit),
        ("acos", acos, unit),
        ("atan", atan, any),
        ("sinh", sinh, any),
        ("cosh", cosh, any),
        ("asinh", asinh, any),
        ("acosh", acosh, &[1.3, 2.7]),
        ("atanh", atanh, unit),
        ("sqrt", sqrt, positive),
        ("rsqrt", rsqrt, positive),
        ("cbrt", cbrt, any),
        ("square", square, any),
        ("abs", abs, any),
        ("reciprocal", reciprocal, any),
        ("erf", erf, any),
        ("erfc", erfc, any),
        ("erf_inv", erf_inv, unit),
        ("lgamma", lgamma, positive),
        ("copy", copy, any),
    ]);
    for y in [-2, 0, 1, 2, 3] {
        let f = move |a: &[Value]| integer_pow(&a[0], y);
        check("integer_pow", &f, &[array(&[3], any.iter().copied())]);
    }
    let stopped = |a: &[Value]| mul(&a[0], &stop_gradient(&a[0])?);
    let lin = linearize("grad", name(), &[array(&[], [3.0])], &[true], |a| Ok(vec![stopped(a)?])).unwrap();
    let grad = lin.pull_back(&[Some(Value::float(DType::F64, 1.0))]).unwrap();
    assert_eq!(data(grad[0].as_ref().unwrap()), [3.0]);
}

#[test]
fn binary_functions() {
    let cases: [(&str, fn(&Value, &Value) -> Result<Value>); 9] = [
        ("add", add),
        ("sub", sub),
        ("mul", mul),
        ("div", div),
        ("rem", rem),
        ("max", max),
        ("min", min),
        ("pow", pow),
        ("atan2", atan2),
    ];
    for (what, f) in cases {
        let f = move |a: &[Value]| f(&a[0], &a[1]);
        let wide = |salt: f64| array(&[2, 3], (0..6).map(|i| 0.4 + 0.31 * f64::from(i) + salt));
        let row = array(&[1, 3], [1.7, 0.33, 0.91]);
        let one = array(&[], [0.77]);
        for args in
            [[wide(0.0), wide(0.56)], [wide(0.0), one.clone()], [one.clone(), wide(0.0)], [row.clone(), wide(0.05)]]
        {
            check(what, &f, &args);
            for batched in [[true, true], [true, false], [false, true]] {
                check_batching(what, &f, &args, &batched);
            }
        }
    }
    let ties = |a: &[Value]| max(&a[0], &a[1]);
    install();
    let args = [array(&[2], [1.0, 2.0]), array(&[2], [1.0, 1.0])];
    let lin = linearize("grad", name(), &args, &[true, true], |a| Ok(vec![ties(a)?])).unwrap();
    let grads = lin.pull_back(&[Some(array(&[2], [1.0, 1.0]))]).unwrap();
    assert_eq!(data(grads[0].as_ref().unwrap()), [0.5, 1.0]);
    assert_eq!(data(grads[1].as_ref().unwrap()), [0.5, 0.0]);
}

#[test]
fn choices() {
    let x = array(&[4], [0.2, 0.9, -0.4, 1.7]);
    let y = array(&[4], [1.2, -0.9, 0.4, 0.7]);
    let select = |a: &[Value]| select(&gt(&a[0], &a[1])?, &sin(&a[0])?, &mul(&a[1], &a[0])?);
    check("select", &select, &[x.clone(), y.clone()]);
    check_batching("select", &select, &[x.clone(), y.clone()], &[true, true]);
    let scalar_which = |a: &[Value]| ferrax_ops::select(&gt(&a[2], &zeros(&a[2].aval())?)?, &a[0], &a[1]);
    check_batching(
        "select by a scalar",
        &scalar_which,
        &[x.clone(), y.clone(), array(&[], [0.3])],
        &[true, false, true],
    );
    check_batching(
        "select of constants",
        &scalar_which,
        &[x.clone(), y.clone(), array(&[], [0.3])],
        &[false, false, true],
    );
    let clamped = |a: &[Value]| clamp(&a[0], &a[1], &a[2]);
    let bounds = [array(&[], [0.0]), x.clone(), array(&[], [1.0])];
    check("clamp", &clamped, &bounds);
    for batched in [[true, true, true], [false, true, false], [true, false, false], [false, false, true]] {
        check_batching("clamp", &clamped, &bounds, &batched);
    }
    check("barrier", &|a| add(&optimization_barrier(a)?[0], &optimization_barrier(a)?[1]), &[x, y]);
}

#[test]
fn shapes() {
    let x = array(&[2, 1, 3], [0.1, -0.4, 0.9, 2.0, 1.1, -1.3]);
    let cases: Vec<(&str, Box<Fun<'static>>)> = vec![
        ("reshape", Box::new(|a| reshape(&a[0], &[3, 2]))),
        ("squeeze", Box::new(|a| squeeze(&a[0], &[1]))),
        ("expand_dims", Box::new(|a| expand_dims(&a[0], &[0, -1]))),
        ("rev", Box::new(|a| rev(&a[0], &[0, 2]))),
        ("tile", Box::new(|a| tile(&a[0], &[2, 3, 1]))),
        ("stack", Box::new(|a| stack(&[a[0].clone(), sin(&a[0])?], 1))),
        ("unstack", Box::new(|a| Ok(unstack(&a[0], 2)?.remove(1)))),
        ("transpose", Box::new(|a| transpose(&a[0], &[2, 0, 1]))),
        ("broadcast_in_dim", Box::new(|a| broadcast_in_dim(&a[0], &[2, 4, 3], &[0, 1, 2]))),
        ("convert", Box::new(|a| convert_element_type(&convert_element_type(&a[0], DType::C128)?, DType::F64))),
    ];
    for (what, f) in cases {
        check(what, &*f, std::slice::from_ref(&x));
        check_batching(what, &*f, std::slice::from_ref(&x), &[true]);
    }
}

#[test]
fn reductions() {
    let x = array(&[2, 3, 2], [0.5, -0.4, 0.9, 2.0, 1.1, -1.3, 0.2, 0.7, -0.8, 1.6, 0.35, 1.25]);
    for axes in [vec![0], vec![1], vec![0, 2], vec![0, 1, 2]] {
        for (what, f) in [
            ("reduce_sum", reduce_sum as fn(&Value, &[usize]) -> Result<Value>),
            ("reduce_prod", reduce_prod),
            ("reduce_max", reduce_max),
            ("reduce_min", reduce_min),
        ] {
            let axes = axes.clone();
            let f = move |a: &[Value]| f(&a[0], &axes);
            check(what, &f, std::slice::from_ref(&x));
            check_batching(what, &f, std::slice::from_ref(&x), &[true]);
        }
    }
    let arg = |a: &[Value]| convert_element_type(&argmax(&a[0], 1, DType::I32)?, DType::F64);
    check_batching("argmax", &arg, std::slice::from_ref(&x), &[true]);
    let zeros = array(&[4], [0.0, 2.0, 3.0, 0.0]);
    check("product with zeros", &|a| reduce_prod(&a[0], &[0]), &[zeros]);
    let ties = array(&[4], [1.0, 3.0, 3.0, 0.0]);
    let lin = linearize("grad", name(), &[ties], &[true], |a| Ok(vec![reduce_max(&a[0], &[0])?])).unwrap();
    let grad = lin.pull_back(&[Some(Value::float(DType::F64, 1.0))]).unwrap();
    assert_eq!(data(grad[0].as_ref().unwrap()), [0.0, 0.5, 0.5, 0.0]);
}

#[test]
fn running_reductions() {
    let x = array(&[2, 5], [0.5, -0.4, 0.9, 2.0, 1.1, -1.3, 0.2, 0.7, -0.8, 1.6]);
    for (axis, reverse) in [(0, false), (1, false), (1, true)] {
        for (what, f) in [
            ("cumsum", cumsum as fn(&Value, usize, bool) -> Result<Value>),
            ("cumprod", cumprod),
            ("cummax", cummax),
            ("cummin", cummin),
            ("cumlogsumexp", cumlogsumexp),
        ] {
            let f = move |a: &[Value]| f(&a[0], axis, reverse);
            check(what, &f, std::slice::from_ref(&x));
            check_batching(what, &f, std::slice::from_ref(&x), &[true]);
        }
    }
}

#[test]
fn windows() {
    let x = array(&[3, 4], [0.5, -0.4, 0.9, 2.0, 1.1, -1.3, 0.2, 0.7, -0.8, 1.6, 0.05, 1.4]);
    let windows = [
        Window::new(&[2, 3]),
        Window { padding: smallvec![(1, 0), (2, 1)], window_strides: smallvec![2, 1], ..Window::new(&[2, 2]) },
        Window { base_dilation: smallvec![2, 1], window_dilation: smallvec![1, 2], ..Window::new(&[3, 2]) },
        Window { padding: smallvec![(-1, 0), (0, -1)], window_strides: smallvec![1, 2], ..Window::new(&[1, 2]) },
    ];
    for w in windows {
        let sum = {
            let w = w.clone();
            move |a: &[Value]| reduce_window_sum(&a[0], w.clone())
        };
        check("reduce_window_sum", &sum, std::slice::from_ref(&x));
        check_batching("reduce_window_sum", &sum, std::slice::from_ref(&x), &[true]);
        let finite = data(&reduce_window_max(&x, w.clone()).unwrap()).iter().all(|v| v.is_finite());
        if finite {
            let top = {
                let w = w.clone();
                move |a: &[Value]| reduce_window_max(&a[0], w.clone())
            };
            check("reduce_window_max", &top, std::slice::from_ref(&x));
            let least = move |a: &[Value]| reduce_window_min(&a[0], w.clone());
            check("reduce_window_min", &least, std::slice::from_ref(&x));
        }
    }
}

#[test]
fn complex_numbers() {
    let parts = [array(&[3], [0.4, -0.7, 1.2]), array(&[3], [0.9, 0.3, -0.5])];
    let make = |a: &[Value]| complex(&a[0], &a[1]);
    for (what, f) in [("real", real as fn(&Value) -> Result<Value>), ("imag", imag), ("abs", abs)] {
        check(what, &|a| f(&sin(&mul(&make(a)?, &make(a)?)?)?), &parts);
    }
    for (what, f) in [
        ("exp", exp as fn(&Value) -> Result<Value>),
        ("log", log),
        ("sqrt", sqrt),
        ("tanh", tanh),
        ("conj", conj),
        ("sin", sin),
        ("square", square),
    ] {
        check(what, &|a| real(&f(&make(a)?)?), &parts);
        check(what, &|a| imag(&f(&make(a)?)?), &parts);
    }
}
