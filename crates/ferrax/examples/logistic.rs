//! Logistic regression with no Python in the process: a loss, its gradient, compiled into one training step.
//!
//! `cargo run --release --example logistic`

use ferrax::function::{Data, jit, value_and_grad};
use ferrax::{Result, Value, numpy, ops};
use std::time::Instant;

const ROWS: usize = 200;

/// Points in the plane, labelled by which side of a line they lie on.
fn data() -> Result<(Value, Value)> {
    let mut state = 7u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32 * 2.0 - 1.0
    };
    let (mut points, mut labels) = (Vec::new(), Vec::new());
    for _ in 0..ROWS {
        let (x, y) = (next(), next());
        points.extend([x, y]);
        labels.push(if 1.5 * x - y + 0.2 > 0.0 { 1.0 } else { 0.0 });
    }
    Ok((Value::array(&points, &[ROWS, 2])?, Value::vector(&labels)?))
}

/// Mean cross-entropy of `points @ w + b`; arguments: w, b, points, labels.
fn loss(v: &[Value]) -> Result<Value> {
    let [w, b, points, labels] = v else { return Err(ferrax::error!(Type, "loss takes four arguments")) };
    let row = ops::broadcast_in_dim(w, &[ROWS, 2], &[1])?;
    let logits = numpy::add(&ops::reduce_sum(&numpy::multiply(points, &row)?, &[1])?, b)?;
    // log(1 + exp(z)) - label * z, written so that large |z| does not overflow
    let softplus = numpy::add(
        &numpy::maximum(&logits, &Value::from(0.0f32))?,
        &numpy::log1p(&numpy::exp(&numpy::negative(&numpy::absolute(&logits)?)?)?)?,
    )?;
    let each = numpy::subtract(&softplus, &numpy::multiply(labels, &logits)?)?;
    numpy::divide(&ops::reduce_sum(&each, &[0])?, &Value::from(ROWS as f32))
}

fn main() -> Result<()> {
    let (points, labels) = data()?;
    let differentiated = value_and_grad(loss);
    let step = jit("step", |v: &[Value]| {
        let (value, grads) = differentiated(v)?;
        let rate = Value::from(1.0f32);
        let mut out = vec![value];
        for (p, g) in v[..2].iter().zip(&grads) {
            out.push(numpy::subtract(p, &numpy::multiply(&rate, g)?)?);
        }
        Ok(out)
    });
    let mut params = vec![Value::vector(&[0.0, 0.0])?, Value::from(0.0f32)];
    let start = Instant::now();
    let mut last = 0.0;
    for i in 0..500 {
        let mut out = step.call(&[params[0].clone(), params[1].clone(), points.clone(), labels.clone()])?;
        params = out.split_off(1);
        last = out[0].to_f64()?;
        if i % 100 == 0 {
            show(&format!("step {i:3}: loss {last:.4}"));
        }
    }
    let per_step = start.elapsed() / 500;
    let w = params[0].to_vec()?;
    show(&format!("loss {last:.4}, w = {w:?}, b = {:.3}, {per_step:?} per step", params[1].to_f64()?));
    assert!(last < 0.25, "the line is learnt");
    Ok(())
}

/// An example talks to its user on standard output.
#[allow(clippy::print_stdout)]
fn show(line: &str) {
    println!("{line}");
}
