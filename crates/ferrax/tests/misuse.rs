//! Wrong use of safe functions ends in an error that says what was wrong, also in release builds: nothing is read past
//! its end, and nothing panics.

use ferrax::function::{Data, jit, jvp, vjp, vmap};
use ferrax::{Aval, DType, Error, ErrorKind, Executable, JaxprRef, Result, Value, ops};
use ferrax_ir::op::{Def, Slot, Special};
use ferrax_ir::{Array, Atom, DebugInfo, Eqn, Jaxpr, OpRef, Values, Var, bind};
use ferrax_ops::control::Loop;
use ferrax_ops::control::cond::cond;
use ferrax_ops::control::custom_vmap::{CustomVmap, VmapRule, VmapRuleRef, custom_vmap_call};
use ferrax_ops::control::jit::jit_call;
use ferrax_ops::control::linear_solve::{LinearSolve, linear_solve};
use ferrax_ops::control::remat::{Remat, remat};
use ferrax_ops::control::scan::{Scan, scan};
use ferrax_ops::control::while_loop::{While, while_loop};
use ferrax_transform::stage;
use smallvec::smallvec;
use std::sync::Arc;

fn f32s(shape: &[usize]) -> Aval {
    Aval::new(DType::F32, shape)
}

/// The program of a function on these types.
fn program(avals: &[Aval], f: impl FnOnce(&[Value]) -> Result<Vec<Value>>) -> JaxprRef {
    ferrax::init();
    stage("jit", DebugInfo::named("f"), avals, f).unwrap().jaxpr.into()
}

/// The identity on one argument.
fn same(aval: &Aval) -> JaxprRef {
    program(std::slice::from_ref(aval), |v| Ok(v.to_vec()))
}

/// `x` repeated: a result larger than the argument.
fn doubled(aval: &Aval) -> JaxprRef {
    program(std::slice::from_ref(aval), |v| Ok(vec![ops::slice::concatenate(&[v[0].clone(), v[0].clone()], 0)?]))
}

fn vector(n: usize) -> Value {
    Value::vector(&vec![1.5; n]).unwrap()
}

/// The text of an error that is the caller's to correct.
fn refused<T>(result: Result<T>) -> String {
    let error: Error = result.err().expect("an error");
    let kind = &*error.0;
    assert!(matches!(kind, ErrorKind::Type(_) | ErrorKind::Value(_)), "another kind of error: {error}");
    error.to_string()
}

/// The same calls on values, under jit, under vmap and along tangents; the text on values.
fn refused_everywhere(args: &[Value], f: impl Fn(&[Value]) -> Result<Vec<Value>>) -> String {
    let text = refused(f(args));
    refused(jit("f", &f).call(args));
    refused(jvp(&f, args, args));
    refused(vjp(&f, args).map(|_| ()));
    let rows: Vec<Value> = args.iter().map(|a| ops::stack(&[a.clone(), a.clone()], 0).unwrap()).collect();
    refused(vmap(&f, vec![Some(0); args.len()])(&rows));
    text
}

#[test]
fn branches_must_give_one_type() {
    let branches = vec![same(&f32s(&[4])), doubled(&f32s(&[4]))];
    let text = refused_everywhere(&[vector(4)], |v| cond(branches.clone(), &Value::int(DType::I32, 1), v));
    assert!(text.contains("branch 1 of cond gives (f32[8])") && text.contains("(f32[4])"), "{text}");
    let other = program(&[f32s(&[4])], |v| Ok(vec![ops::convert_element_type(&v[0], DType::F64)?]));
    refused_everywhere(&[vector(4)], |v| cond(vec![same(&f32s(&[4])), other.clone()], &Value::int(DType::I32, 0), v));
    let none = program(&[f32s(&[4])], |_| Ok(Vec::new()));
    refused_everywhere(&[vector(4)], |v| cond(vec![same(&f32s(&[4])), none.clone()], &Value::int(DType::I32, 0), v));
    refused_everywhere(&[vector(3)], |v| cond(branches.clone(), &Value::int(DType::I32, 0), v));
    refused(cond(Vec::new(), &Value::int(DType::I32, 0), &[]));
    refused(cond(vec![same(&f32s(&[4]))], &vector(1), &[vector(4)]));
}

#[test]
fn carries_must_keep_their_types() {
    let args = [vector(4)];
    let step = |jaxpr: JaxprRef, num_consts, num_carry| Scan {
        jaxpr,
        length: 3,
        num_carry,
        num_consts,
        reverse: false,
        unroll: 1,
        linear_carry: false,
        of: Loop::default(),
    };
    let text = refused_everywhere(&args, |v| scan(step(doubled(&f32s(&[4])), 0, 1), v));
    assert!(text.contains("the body of scan gives (f32[8])") && text.contains("f32[4]"), "{text}");
    for (consts, carry) in [(0, 2), (2, 0), (5, 5), (usize::MAX, 1), (usize::MAX, usize::MAX)] {
        refused_everywhere(&args, |v| scan(step(same(&f32s(&[4])), consts, carry), v));
    }
    // Rows of another size than the body takes, and another number of them.
    refused_everywhere(&[vector(3)], |v| scan(step(same(&f32s(&[4])), 0, 0), v));
    refused_everywhere(&[vector(2)], |v| scan(step(same(&f32s(&[])), 0, 0), v));
    let test =
        program(&[f32s(&[4])], |v| ops::lt(&ops::reduce_sum(&v[0], &[0])?, &Value::from(9.0_f32)).map(|v| vec![v]));
    let repeat = |body: JaxprRef, test: JaxprRef, consts: usize| While {
        body_jaxpr: body,
        body_nconsts: consts,
        cond_jaxpr: test,
        cond_nconsts: consts,
        of: Loop::default(),
    };
    let text = refused_everywhere(&args, |v| while_loop(repeat(doubled(&f32s(&[4])), test.clone(), 0), v));
    assert!(text.contains("the body of while gives (f32[8])"), "{text}");
    refused_everywhere(&args, |v| while_loop(repeat(same(&f32s(&[4])), same(&f32s(&[4])), 0), v));
    refused_everywhere(&args, |v| while_loop(repeat(same(&f32s(&[4])), test.clone(), usize::MAX), v));
    refused_everywhere(&[vector(5)], |v| while_loop(repeat(same(&f32s(&[4])), test.clone(), 0), v));
}

#[test]
fn called_programs_take_their_own_types() {
    let sin = program(&[f32s(&[4])], |v| Ok(vec![ops::sin(&v[0])?]));
    let call = |v: &[Value]| jit_call("f".into(), sin.clone(), false, v).map(Values::into_vec);
    refused_everywhere(&[vector(3)], call);
    refused_everywhere(&[vector(4), vector(4)], call);
    let again =
        |v: &[Value]| remat(Remat { differentiated: false, jaxpr: sin.clone(), policy: None, prevent_cse: true }, v);
    refused_everywhere(&[vector(3)], again);
    let solve = |matvec: &JaxprRef, solver: &JaxprRef, lengths: &[usize]| LinearSolve {
        matvec: matvec.clone(),
        solve: solver.clone(),
        vecmat: None,
        transpose_solve: None,
        const_lengths: lengths.to_vec(),
    };
    let (one, two) = (same(&f32s(&[4])), doubled(&f32s(&[4])));
    for params in
        [solve(&two, &one, &[0; 4]), solve(&one, &two, &[0; 4]), solve(&one, &one, &[0, 0]), solve(&one, &one, &[9; 4])]
    {
        refused_everywhere(&[vector(4)], |v| linear_solve(params.clone(), v).map(Values::into_vec));
    }
}

/// A batching rule that gives too little.
struct Short;

impl VmapRule for Short {
    fn apply(&self, _: usize, _: &[bool], _: &[Value]) -> Result<(Vec<Value>, Vec<bool>)> {
        Ok((Vec::new(), Vec::new()))
    }
    fn name(&self) -> String {
        "short".into()
    }
}

#[test]
fn batching_rules_must_give_every_result() {
    let rule = VmapRuleRef(Arc::new(Short));
    let params = CustomVmap { call: same(&f32s(&[4])), name: "f".into(), num_consts: 0, rule };
    let f = |v: &[Value]| custom_vmap_call(params.clone(), v).map(Values::into_vec);
    let rows = ops::stack(&[vector(4), vector(4)], 0).unwrap();
    let text = refused(vmap(f, vec![Some(0)])(&[rows]));
    assert!(text.contains("the vmap rule of f gave 0 results"), "{text}");
}

#[test]
fn executables_run_on_the_types_that_they_were_compiled_for() {
    let sum = program(&[f32s(&[1000])], |v| Ok(vec![ops::reduce_sum(&v[0], &[0])?]));
    let exe = Arc::new(Executable::new(&sum).unwrap());
    let text = refused(exe.run(&[vector(10)], &[]));
    assert!(text.contains("float32[1000]") && text.contains("float32[10]") && text.contains("compiled for"), "{text}");
    let ints = ops::convert_element_type(&vector(1000), DType::I16).unwrap();
    refused(exe.run(&[ints], &[]));
    refused(exe.run(&[Value::from(1.0_f32)], &[]));
    refused(exe.run(&[], &[]));
    refused(exe.run(&[vector(1000), vector(1000)], &[]));
    refused(exe.run(&[vector(1000)], &[true, true]));
    refused(exe.unusable_donations(&[true, false]));
    let Value::Array(short) = vector(10) else { unreachable!() };
    refused(exe.run_arrays(&[&short], |_| ()));
    refused(ferrax::executable::interpret(&sum, &[]));
    assert_eq!(exe.run(&[vector(1000)], &[]).unwrap()[0].to_f64().unwrap(), 1500.0);
}

/// A program built by hand: one equation, whose result is said to have type `out`.
fn by_hand(op: OpRef, inputs: &[Atom], out: Aval) -> JaxprRef {
    let mut j = Jaxpr::default();
    j.debug = DebugInfo::named("by_hand");
    j.invars = vec![j.new_var(f32s(&[4]))];
    let result = j.new_var(out);
    j.eqns.push(Eqn { op, inputs: inputs.into(), outputs: smallvec![result], source: ferrax_base::Source::default() });
    j.outvars = vec![Atom::Var(result)];
    j.into()
}

#[test]
fn programs_from_outside_are_verified() {
    ferrax::init();
    let x = Atom::Var(Var(0));
    let sin = || ops::SIN.op();
    let mut programs = vec![
        by_hand(sin(), &[x], f32s(&[400])),
        by_hand(sin(), &[x], Aval::new(DType::F64, &[4])),
        by_hand(sin(), &[Atom::Var(Var(1))], f32s(&[4])),
        by_hand(sin(), &[Atom::Var(Var(77))], f32s(&[4])),
        by_hand(sin(), &[], f32s(&[4])),
        by_hand(sin(), &[x, x], f32s(&[4])),
        by_hand(ops::ADD.op(), &[x], f32s(&[4])),
        by_hand(ops::SELECT_N.op(), &[], f32s(&[4])),
        by_hand(ops::dynamic_slice::DYNAMIC_UPDATE_SLICE.op(), &[x], f32s(&[4])),
    ];
    let mut twice = (*by_hand(sin(), &[x], f32s(&[4]))).clone();
    twice.eqns.push(twice.eqns[0].clone());
    let mut constant = (*by_hand(sin(), &[x], f32s(&[4]))).clone();
    let v = constant.new_var(f32s(&[400]));
    constant.constvars.push(v);
    let Value::Array(small) = vector(4) else { unreachable!() };
    constant.consts.push(small);
    let mut nowhere = (*by_hand(sin(), &[x], f32s(&[4]))).clone();
    nowhere.outvars.push(Atom::Var(Var(99)));
    programs.extend([twice.into(), constant.into(), nowhere.into()]);
    // A program inside another is looked at too.
    let bad = programs[0].clone();
    programs.push(by_hand(
        OpRef::new(&ops::control::jit::JIT, ops::control::jit::Jit { name: "inner".into(), jaxpr: bad, inline: false }),
        &[x],
        f32s(&[400]),
    ));
    for p in &programs {
        let text = refused(Executable::new(p));
        assert!(text.contains("is not a well-formed program"), "{text}");
        refused(ferrax::executable(p));
        refused(ferrax::executable::interpret(p, &[vector(4)]));
        refused_everywhere(&[vector(4)], |v| jit_call("f".into(), p.clone(), false, v).map(Values::into_vec));
        refused_everywhere(&[vector(4)], |v| cond(vec![p.clone(), p.clone()], &Value::int(DType::I32, 0), v));
    }
    let good = by_hand(sin(), &[x], f32s(&[4]));
    let out = Arc::new(Executable::new(&good).unwrap()).run(&[vector(4)], &[]).unwrap();
    assert!((out[0].to_vec().unwrap()[3] - 1.5_f32.sin()).abs() < 1e-6);
}

#[test]
fn texts_that_are_no_programs_are_refused() {
    let registry = ops::registry::parser();
    let parse = |text: &str, consts: &[Array]| ferrax_ir::parse::parse(text, &registry, consts);
    for text in [
        "{ lambda ; a:f32[4]. let b:f32[4] = sin in (b,) }",
        "{ lambda ; a:f32[4]. let b:f32[4] = add a in (b,) }",
        "{ lambda ; a:f32[4]. let b:f32[400] = sin a in (b,) }",
        "{ lambda ; a:f32[4]. let b:f32[4] = select_n in (b,) }",
        "{ lambda ; a:f32[4] a:f32[4]. let b:f32[4] = sin c in (b,) }",
    ] {
        refused(parse(text, &[]).map(|_| ()));
    }
    let Value::Array(small) = vector(4) else { unreachable!() };
    let text = refused(parse("{ lambda a:f32[400]; . let b:f32[400] = sin a in (b,) }", &[small]).map(|_| ()));
    assert!(text.contains("constant a"), "{text}");
    let deep = "{ lambda ; a:f32[]. let b:f32[] = jit[name=f jaxpr=".repeat(20_000);
    assert!(parse(&deep, &[]).is_err());
}

#[test]
fn transformations_take_as_many_values_as_their_functions() {
    let sin = |v: &[Value]| Ok(vec![ops::sin(&v[0])?]);
    let x = [vector(4)];
    refused(jvp(sin, &x, &[]));
    let text = refused(jvp(sin, &x, &[vector(3)]));
    assert!(text.contains("float32[4]") && text.contains("float32[3]"), "{text}");
    refused(jvp(sin, &x, &[ops::convert_element_type(&x[0], DType::I32).unwrap()]));
    let (_, pull) = vjp(sin, &x).unwrap();
    refused(pull(&[]));
    refused(pull(&[vector(3)]));
    assert_eq!(pull(&[vector(4)]).unwrap()[0].shape(), [4]);
    refused(vmap(sin, vec![])(&x));
    refused(vmap(sin, vec![Some(0), Some(0)])(&x));
    refused(vmap(sin, vec![Some(3)])(&x));
}

#[test]
fn bytes_and_shapes_must_agree() {
    refused(ferrax::dispatch::array_from_bytes(f32s(&[100]), &[0; 4]));
    let Value::Array(a) = vector(4) else { unreachable!() };
    refused(ferrax::direct::reshape(&a, smallvec![100]));
    assert!(std::panic::catch_unwind(|| Array::new(f32s(&[100]), ferrax::Buffer::allocate(4).unwrap())).is_err());
}

/// A primitive whose lowering gives less than its shape rule promises.
static LIAR: Def<()> = Def {
    name: "liar",
    doc: "Promises more than it gives.",
    arity: Some(1),
    shape: |(), _| Ok(smallvec![Aval::new(DType::F32, &[400])]),
    jvp: Slot::None("a test"),
    transpose: Slot::None("a test"),
    batch: Slot::None("a test"),
    simplify: Slot::None("a test"),
    stablehlo: Slot::None("a test"),
    kernel: Slot::Rule(|_, (), _, args, _| Ok(smallvec![args[0]])),
    reference: Slot::None("a test"),
    special: Special::NONE,
};

#[test]
fn lowerings_must_give_what_shape_rules_promise() {
    ferrax::init();
    let eager = bind(&LIAR.op(), &[vector(4)]).unwrap_err().to_string();
    assert!(eager.contains("the lowering of liar"), "{eager}");
    let f = jit("f", |v: &[Value]| Ok(bind(&LIAR.op(), v)?.into_vec()));
    assert!(f.call(&[vector(4)]).is_err());
}
