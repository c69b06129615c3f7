//! Transformations of control flow against finite differences and loops written out, run on the reference rules.

use ferrax_base::{Aval, Buffer, DType, Result};
use ferrax_ir::op::BatchAxis;
use ferrax_ir::reference::RefTensor;
use ferrax_ir::{Array, DebugInfo, JaxprRef, OpRef, Value, Values};
use ferrax_ops::control::Loop;
use ferrax_ops::control::cond::cond;
use ferrax_ops::control::jit::jit_call;
use ferrax_ops::control::remat::{Remat, remat};
use ferrax_ops::control::scan::{Scan, scan};
use ferrax_ops::control::while_loop::{While, while_loop};
use ferrax_ops::{add, cos, lt, mul, reduce_sum, sin};
use ferrax_transform::{jvp, linearize, stage, vmap};

fn evaluate(op: &OpRef, args: &[Value]) -> Result<Values> {
    if let Some(r) = op.eager(op, args) {
        return r;
    }
    let arrays = args.iter().map(|v| v.to_array().unwrap()).collect::<Result<Vec<Array>>>()?;
    let avals: Vec<Aval> = args.iter().map(Value::aval).collect();
    let outs = op.abstract_eval(&avals.iter().collect::<Vec<_>>())?;
    let tensors: Vec<RefTensor> = arrays.iter().map(|a| RefTensor::from_buffer(a.aval(), &a.pin().unwrap())).collect();
    let results = op.reference(&tensors, &outs)?;
    results.iter().zip(outs).map(|(r, a)| Ok(Value::Array(Array::new(a, r.to_buffer()?)))).collect()
}

fn setup() {
    ferrax_ir::trace::set_evaluator(evaluate);
}

fn vector(data: &[f64]) -> Value {
    let buffer = Buffer::from_slice(data).unwrap();
    Value::Array(Array::new(Aval::new(DType::F64, &[data.len()]), buffer))
}

fn scalar(v: f64) -> Value {
    Value::float(DType::F64, v)
}

fn floats(v: &Value) -> Vec<f64> {
    v.to_array().unwrap().unwrap().pin().unwrap().typed::<f64>().to_vec()
}

fn program(avals: &[Aval], f: impl FnOnce(&[Value]) -> Result<Vec<Value>>) -> JaxprRef {
    let staged = stage("jit", DebugInfo::named("f"), avals, f).unwrap();
    assert!(staged.captured.is_empty());
    staged.jaxpr.into()
}

fn f64s(shape: &[usize]) -> Aval {
    Aval::new(DType::F64, shape)
}

type Fun = dyn Fn(&[Value]) -> Result<Vec<Value>>;

/// Reverse mode of a scalar function against forward mode and finite differences.
fn check_grad(f: &Fun, args: &[Value]) {
    setup();
    let n = args.len();
    let lin = linearize("grad", DebugInfo::named("f"), args, &vec![true; n], |a| f(a)).unwrap();
    assert_eq!(lin.outs[0].rank(), 0);
    let grads = lin.pull_back(&[Some(scalar(1.0))]).unwrap();
    for (i, x) in args.iter().enumerate() {
        let base = floats(x);
        let grad = grads[i].as_ref().map_or_else(|| vec![0.0; base.len()], floats);
        for k in 0..base.len() {
            let at = |d: f64| {
                let mut moved = base.clone();
                moved[k] += d;
                let mut args = args.to_vec();
                args[i] = if x.rank() == 0 { scalar(moved[0]) } else { vector(&moved) };
                floats(&f(&args).unwrap()[0])[0]
            };
            let numeric = (at(1e-6) - at(-1e-6)) / 2e-6;
            assert!((grad[k] - numeric).abs() < 1e-5, "argument {i} element {k}: {} != {numeric}", grad[k]);
            let mut direction = vec![0.0; base.len()];
            direction[k] = 1.0;
            let mut tangents: Vec<Option<Value>> = vec![None; n];
            tangents[i] = Some(if x.rank() == 0 { scalar(1.0) } else { vector(&direction) });
            if let Ok((_, out)) = jvp(DebugInfo::named("f"), args, &tangents, |a| f(a)) {
                let forward = out[0].as_ref().map_or(0.0, |t| floats(t)[0]);
                assert!((forward - numeric).abs() < 1e-5, "jvp {forward} != {numeric}");
            }
        }
    }
}

#[test]
fn grad_of_elementwise() {
    check_grad(&|a| Ok(vec![reduce_sum(&mul(&sin(&a[0])?, &a[0])?, &[0])?]), &[vector(&[0.1, 0.7, -1.3])]);
}

#[test]
fn grad_through_jit_is_grad() {
    check_grad(
        &|a| {
            let j = program(&[f64s(&[2]), f64s(&[])], |a| Ok(vec![mul(&sin(&a[0])?, &a[1])?, cos(&a[1])?]));
            let outs = jit_call("f".into(), j, false, a)?;
            Ok(vec![add(&reduce_sum(&outs[0], &[0])?, &outs[1])?])
        },
        &[vector(&[0.3, 0.9]), scalar(0.4)],
    );
}

fn scan_sum(a: &[Value], reverse: bool) -> Result<Vec<Value>> {
    // consts: w; carry: c; xs: x → c' = sin(c * w) + x, y = c * x
    let body = program(&[f64s(&[]), f64s(&[]), f64s(&[])], |v| {
        let next = add(&sin(&mul(&v[1], &v[0])?)?, &v[2])?;
        Ok(vec![next, mul(&v[1], &v[2])?])
    });
    let params = Scan {
        jaxpr: body,
        length: 4,
        num_carry: 1,
        num_consts: 1,
        reverse,
        unroll: 1,
        linear_carry: false,
        of: Loop::default(),
    };
    let outs = scan(params, a)?;
    Ok(vec![add(&outs[0], &reduce_sum(&mul(&outs[1], &outs[1])?, &[0])?)?])
}

#[test]
fn grad_of_scan() {
    for reverse in [false, true] {
        check_grad(&move |a| scan_sum(a, reverse), &[scalar(0.8), scalar(0.3), vector(&[0.1, -0.5, 0.9, 0.2])]);
    }
}

#[test]
fn scan_keeps_constant_residuals_unstacked() {
    setup();
    let args = [scalar(0.8), scalar(0.3), vector(&[0.1, -0.5, 0.9, 0.2])];
    let lin = linearize("grad", DebugInfo::named("f"), &args, &[true; 3], |a| scan_sum(a, false)).unwrap();
    let eqn = lin.tape.eqns.iter().find(|e| e.op.name() == "scan").unwrap();
    let params = eqn.op.of(&ferrax_ops::control::scan::SCAN).unwrap();
    assert!(params.num_consts >= 2, "w and its tangent are constants of the linear scan: {}", *params.jaxpr);
}

#[test]
fn second_derivatives_of_scan() {
    check_grad(
        &|a| {
            let lin = linearize("grad", DebugInfo::named("f"), a, &[true; 3], |b| scan_sum(b, false))?;
            let g = lin.pull_back(&[Some(scalar(1.0))])?;
            Ok(vec![g[0].clone().unwrap()])
        },
        &[scalar(0.8), scalar(0.3), vector(&[0.1, -0.5, 0.9, 0.2])],
    );
}

#[test]
fn grad_of_cond() {
    let f = |a: &[Value]| {
        let yes = program(&[f64s(&[]), f64s(&[])], |v| Ok(vec![mul(&sin(&v[0])?, &v[1])?]));
        let no = program(&[f64s(&[]), f64s(&[])], |v| Ok(vec![mul(&v[0], &v[0])?]));
        let index = ferrax_ops::convert_element_type(&lt(&a[0], &scalar(0.0))?, DType::I32)?;
        cond(vec![yes, no], &index, a)
    };
    check_grad(&f, &[scalar(0.7), scalar(1.1)]);
    check_grad(&f, &[scalar(-0.7), scalar(1.1)]);
}

#[test]
fn jvp_of_while() {
    setup();
    // doubles until at least 10: x → 16x for x = 1
    let test = program(&[f64s(&[])], |v| Ok(vec![lt(&v[0], &scalar(10.0))?]));
    let body = program(&[f64s(&[])], |v| Ok(vec![add(&v[0], &v[0])?]));
    let params = While { body_jaxpr: body, body_nconsts: 0, cond_jaxpr: test, cond_nconsts: 0, of: Loop::default() };
    let p = params.clone();
    let (outs, tangents) =
        jvp(DebugInfo::named("f"), &[scalar(1.0)], &[Some(scalar(1.0))], |a| while_loop(p, a)).unwrap();
    assert_eq!(floats(&outs[0]), [16.0]);
    assert_eq!(floats(tangents[0].as_ref().unwrap()), [16.0]);
    let axis = BatchAxis::new(3, None);
    let rows = vmap(DebugInfo::named("f"), axis, &[vector(&[1.0, 3.0, 20.0])], &[Some(0)], |a| while_loop(params, a));
    let rows = rows.unwrap();
    assert_eq!(rows[0].1, Some(0));
    assert_eq!(floats(&rows[0].0), [16.0, 12.0, 20.0]);
}

#[test]
fn remat_has_the_same_gradient() {
    check_grad(
        &|a| {
            let j = program(&[f64s(&[2])], |v| Ok(vec![reduce_sum(&sin(&mul(&sin(&v[0])?, &v[0])?)?, &[0])?]));
            remat(Remat { differentiated: false, jaxpr: j, policy: None, prevent_cse: true }, a)
        },
        &[vector(&[0.3, 0.9])],
    );
}

#[test]
fn vmap_of_scan_is_a_loop_over_rows() {
    setup();
    let axis = BatchAxis::new(4, None);
    let xs: Vec<f64> = (0..16).map(|i| f64::from(i) * 0.1 - 0.7).collect();
    let whole = Value::Array(Array::new(f64s(&[4, 4]), Buffer::from_slice(&xs).unwrap()));
    let args = [scalar(0.8), vector(&[0.1, 0.2, 0.3, 0.4]), whole];
    let dims = [None, Some(0), Some(0)];
    let out = vmap(DebugInfo::named("f"), axis, &args, &dims, |a| scan_sum(a, false)).unwrap();
    let rows: Vec<f64> = (0..4)
        .map(|i| {
            let row = [scalar(0.8), scalar(0.1 * (i + 1) as f64), vector(&xs[4 * i..4 * i + 4])];
            floats(&scan_sum(&row, false).unwrap()[0])[0]
        })
        .collect();
    let got = floats(&out[0].0);
    assert!(got.iter().zip(&rows).all(|(a, b)| (a - b).abs() < 1e-12), "{got:?} != {rows:?}");
}

#[test]
fn vmap_of_cond_selects_rows() {
    setup();
    let yes = program(&[f64s(&[])], |v| Ok(vec![mul(&v[0], &scalar(2.0))?]));
    let no = program(&[f64s(&[])], |v| Ok(vec![mul(&v[0], &scalar(-1.0))?]));
    let axis = BatchAxis::new(3, None);
    let out = vmap(DebugInfo::named("f"), axis, &[vector(&[1.0, -2.0, 3.0])], &[Some(0)], |a| {
        let index = ferrax_ops::convert_element_type(&lt(&a[0], &scalar(0.0))?, DType::I32)?;
        cond(vec![yes, no], &index, a)
    });
    assert_eq!(floats(&out.unwrap()[0].0), [2.0, 2.0, 6.0]);
}

/// The addresses of the constants in a graph and the graphs in it.
fn constants(graph: &ferrax_loops::Graph, out: &mut Vec<usize>) {
    use ferrax_loops::Kind;
    for node in &graph.nodes {
        match &node.kind {
            Kind::Dense(bytes) => out.push(bytes.as_ptr() as usize),
            Kind::Scan { body, .. } | Kind::Call(body) => constants(body, out),
            Kind::While { cond, body, .. } => [cond, body].iter().for_each(|g| constants(g, out)),
            Kind::Switch(branches) => branches.iter().for_each(|g| constants(g, out)),
            _ => {}
        }
    }
}

#[test]
fn constants_of_programs_in_programs_are_not_copied() {
    setup();
    let table = vector(&vec![0.5; 4096]);
    let before = ferrax_base::buffer::stats();
    let inner = program(&[f64s(&[4096])], |a| Ok(vec![mul(&a[0], &table)?]));
    let outer = program(&[f64s(&[4096])], |a| {
        let called = jit_call("g".into(), inner.clone(), false, a)?.remove(0);
        let stepped = scan(
            Scan {
                jaxpr: inner.clone(),
                length: 3,
                num_carry: 1,
                num_consts: 0,
                reverse: false,
                unroll: 1,
                linear_carry: false,
                of: Loop::default(),
            },
            std::slice::from_ref(&called),
        )?
        .remove(0);
        let index = Value::int(DType::I32, 0);
        Ok(vec![cond(vec![inner.clone(), inner.clone()], &index, &[stepped])?.remove(0)])
    });
    let graph = ferrax_ir::lower::lower(&outer).unwrap();
    let mut found = Vec::new();
    constants(&graph, &mut found);
    let at = table.to_array().unwrap().unwrap().pin().unwrap().as_ptr() as usize;
    assert_eq!(found.len(), 4, "the called program, the loop's body and two branches");
    assert!(found.iter().all(|&p| p == at), "the array's own memory");
    let after = ferrax_base::buffer::stats();
    assert!(after.live < before.live + 4096 * 8, "no second copy: {} bytes, then {}", before.live, after.live);
}
