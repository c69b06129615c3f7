//! How programs that call the host are cut. What the pieces compute is compared in `tests/engine`.

use ferrax_base::{Aval, Buffer, DType, Result, Scalar};
use ferrax_loops::passes::segments;
use ferrax_loops::passes::segments::{Action, Plan};
use ferrax_loops::{BinaryOp, Builder, Graph, HostCall, HostRef, Kind, Type, UnaryOp, ValueId};
use std::sync::Arc;

struct Told;

impl HostCall for Told {
    fn call(&self, _: &[(&Aval, &Buffer)], _: &[Aval]) -> Result<Vec<Buffer>> {
        Ok(Vec::new())
    }

    fn name(&self) -> String {
        "told".into()
    }
}

fn tell(b: &mut Builder, x: ValueId) {
    b.push_many(Kind::Host(HostRef(Arc::new(Told))), &[x], &[]);
}

fn vector() -> Type {
    Type::new(DType::F32, &[4])
}

/// The steps of a plan, one letter each: what runs, and what loops and branches hold.
fn letters(plan: &Plan) -> String {
    let letter = |action: &Action| match action {
        Action::Run(_) => "r".into(),
        Action::Host { .. } => "h".into(),
        Action::While { cond, body, .. } => format!("w({},{})", letters(cond), letters(body)),
        Action::Scan(scan) => format!("s({})", letters(&scan.body)),
        Action::Switch(branches) => format!("b({})", branches.iter().map(letters).collect::<Vec<_>>().join(",")),
    };
    plan.steps.iter().map(|s| letter(&s.action)).collect()
}

#[test]
fn what_lies_between_calls_is_one_segment() {
    let mut b = Builder::new([vector()]);
    let x = b.params().next().unwrap();
    let (sin, dead) = (b.unary(UnaryOp::Sin, x), b.unary(UnaryOp::Exp, x));
    let two = b.push(Kind::Const(Scalar::from_f64(DType::F32, 2.0)), &[], vector());
    let twice = b.binary(BinaryOp::Mul, sin, two);
    tell(&mut b, twice);
    tell(&mut b, x);
    let sum = b.binary(BinaryOp::Add, twice, two);
    let _ = (dead, tell(&mut b, sum));
    let cut = segments(&b.finish(&[sum, x]), &[true]).unwrap();
    assert_eq!(letters(&cut.plan), "rhhrh");
    // the constant is made twice, and passed on nowhere
    let sizes: Vec<(usize, usize, usize)> =
        cut.segments.iter().map(|s| (s.graph.params, s.graph.nodes.len(), s.graph.outputs.len())).collect();
    assert_eq!(sizes, [(1, 3, 1), (1, 2, 1)]);
    // x is a result, what is told first is read for the last time in the second segment
    assert_eq!((&cut.segments[0].donated[..], &cut.segments[1].donated[..]), (&[false][..], &[true][..]));
    assert_eq!(
        cut.plan.steps.iter().map(|s| s.last.clone()).collect::<Vec<_>>(),
        [[false], [false], [false], [true], [false]]
    );
}

/// x told in the graph of a call.
fn teller() -> Arc<Graph> {
    let mut b = Builder::new([vector()]);
    let x = b.params().next().unwrap();
    tell(&mut b, x);
    let y = b.unary(UnaryOp::Cos, x);
    Arc::new(b.finish(&[y]))
}

#[test]
fn loops_and_branches_that_call_the_host_are_steps_and_others_stay_whole() {
    let mut quiet = Builder::new([vector()]);
    let x = quiet.params().next().unwrap();
    let y = quiet.unary(UnaryOp::Neg, x);
    let quiet = Arc::new(quiet.finish(&[y]));
    let mut b = Builder::new([Type::new(DType::I32, &[]), vector()]);
    let [index, x] = b.params().collect::<Vec<_>>()[..] else { unreachable!() };
    let scan = |body: &Arc<Graph>| Kind::Scan { body: body.clone(), length: 3, reverse: false, consts: 0, carry: 1 };
    let x = b.push(scan(&quiet), &[x], vector());
    let x = b.push(Kind::Switch(vec![quiet.clone(), quiet.clone()]), &[index, x], vector());
    let x = b.push(Kind::Call(teller()), &[x], vector());
    let x = b.push(scan(&teller()), &[x], vector());
    let x = b.push(Kind::Switch(vec![quiet, teller()]), &[index, x], vector());
    let cut = segments(&b.finish(&[x]), &[]).unwrap();
    assert_eq!(letters(&cut.plan), "rhrs(hr)b(r,hr)");
    assert!(cut.segments.iter().all(|s| !s.graph.calls_host() && s.graph.verify().is_ok()));
    let kinds: Vec<String> = cut.segments[0].graph.nodes.iter().map(|n| format!("{:?}", n.kind)).collect();
    assert!(["Scan", "Switch"].iter().all(|kind| kinds.iter().any(|k| k.contains(kind))), "{kinds:?}");
}

#[test]
fn a_reduction_whose_computation_calls_the_host_is_an_error_that_names_the_call() {
    let scalar = Type::new(DType::F32, &[]);
    let mut body = Builder::new([scalar.clone(), scalar.clone()]);
    let [x, y] = body.params().collect::<Vec<_>>()[..] else { unreachable!() };
    tell(&mut body, x);
    let sum = body.binary(BinaryOp::Add, x, y);
    let body = Arc::new(body.finish(&[sum]));
    let mut b = Builder::new([vector(), scalar.clone()]);
    let params: Vec<ValueId> = b.params().collect();
    let y = b.push(Kind::ReduceWith { body, axes: [0][..].into() }, &params, scalar);
    let e = segments(&b.finish(&[y]), &[]).unwrap_err().to_string();
    assert!(e.contains("computation of a reduction calls the host (told)"), "{e}");
}
