//! Printing, parsing and verifying programs, over toy primitives with JAX's names.
//!
//! The texts are what JAX 0.10.2 prints for small functions; parsing and printing them gives them back. Random
//! programs hold the law parse ∘ print = id.

use ferrax_ir::parse::{Primitive, Registry, parse};
use ferrax_ir::print::{Style, literal};
use ferrax_ir::value::Lit;
use ferrax_ir::verify::verify;
use ferrax_ir::*;
use proptest::prelude::*;
use smallvec::{SmallVec, smallvec};

const NONE: &str = "a toy of the tests";

const fn toy<P>(name: &'static str, shape: ferrax_ir::op::ShapeRule<P>) -> Def<P> {
    Def {
        name,
        doc: "A toy of the tests.",
        arity: None,
        shape,
        jvp: Slot::None(NONE),
        transpose: Slot::None(NONE),
        batch: Slot::None(NONE),
        simplify: Slot::None(NONE),
        stablehlo: Slot::None(NONE),
        kernel: Slot::None(NONE),
        reference: Slot::None(NONE),
        special: Special::NONE,
    }
}

fn unary(_: &(), args: &[&Aval]) -> Result<Avals> {
    Ok(smallvec![args[0].clone()])
}

fn binary(_: &(), args: &[&Aval]) -> Result<Avals> {
    let weak = args[0].weak && args[1].weak;
    let wide = if args[0].rank() == 0 { args[1] } else { args[0] };
    Ok(smallvec![wide.with_weak(weak)])
}

static SIN: Def<()> = toy("sin", unary);
static COS: Def<()> = toy("cos", unary);
static ADD: Def<()> = toy("add", binary);
static MUL: Def<()> = toy("mul", binary);
static LOG: Def<()> = Def {
    special: Special { effects: Some(|()| Effects::DEBUG), ..Special::NONE },
    ..toy("debug_log", |(), _| Ok(Avals::new()))
};

ferrax_ir::params! {
    /// Two results.
    pub struct TopK {
        /// Axis.
        axis: usize,
        /// Number.
        k: usize,
    }
}
static TOP_K: Def<TopK> = toy("top_k", |p, args| {
    let values = args[0].with_shape(&[p.k]);
    Ok(smallvec![values.clone(), values.with_dtype(DType::I32)])
});

ferrax_ir::params! {
    /// Parameters of an index range.
    pub struct Iota {
        /// Axis.
        dimension: usize,
        /// Element type.
        dtype: DType,
        /// Dimensions.
        shape: Vec<usize>,
        /// Placement.
        sharding: Option<usize>,
    }
}
static IOTA: Def<Iota> = toy("iota", |p, _| Ok(smallvec![Aval::new(p.dtype, &p.shape)]));

ferrax_ir::params! {
    /// A call.
    pub struct Jit {
        /// Function name.
        name: String,
        /// Program.
        jaxpr: JaxprRef,
    }
}

/// `Jit` with its name first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct JitParams(Jit);

impl Params for JitParams {
    fn print(&self) -> Vec<(&'static str, Param)> {
        vec![("name", self.0.name.print()), ("jaxpr", self.0.jaxpr.print())]
    }
    fn parse(fields: &std::collections::BTreeMap<String, Param>) -> Option<Self> {
        Jit::parse(fields).map(JitParams)
    }
    fn subjaxprs(&self) -> Vec<JaxprRef> {
        vec![self.0.jaxpr.clone()]
    }
}
static JIT: Def<JitParams> = toy("jit", |p, _| Ok(p.0.jaxpr.out_avals().into()));

ferrax_ir::params! {
    /// A choice.
    pub struct Cond {
        /// Programs.
        branches: Vec<JaxprRef>,
    }
}
static COND: Def<Cond> = toy("cond", |p, _| Ok(p.branches[0].out_avals().into()));

fn registry() -> Registry {
    let all: [&'static dyn Primitive; 9] = [&SIN, &COS, &ADD, &MUL, &LOG, &TOP_K, &IOTA, &JIT, &COND];
    Registry::new(all)
}

fn read(text: &str) -> Jaxpr {
    let j = parse(text, &registry(), &[]).unwrap_or_else(|e| panic!("{e}\n{text}"));
    verify(&j).unwrap();
    j
}

/// Texts printed by JAX 0.10.2.
const TEXTS: &[&str] = &[
    "{ lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }",
    "{ lambda ; a:f32[3]. let  in (a,) }",
    "{ lambda ; . let  in (1.0:f32[],) }",
    "{ lambda ; a:f32[3]. let  in (a, 1.0:f32[]) }",
    "{ lambda ; a:f32[3]. let b:f32[3] = sin a; c:f32[3] = sin b in (c,) }",
    "{ lambda ; a:f32[3]. let b:f32[2] _:i32[2] = top_k[axis=0 k=2] a in (b,) }",
    "{ lambda ; . let
    a:i32[3] = iota[dimension=0 dtype=int32 shape=(3,) sharding=None] 
  in (a,) }",
    "{ lambda ; a:f32[3]. let
    b:f32[3] _:f32[3] = jit[
      name=<lambda>
      jaxpr={ lambda ; a:f32[3]. let
          b:f32[3] = sin a
          _:f32[3] = cos a
        in (b, _) }
    ] a
  in (b,) }",
    "{ lambda ; a:f32[3]. let
    b:f32[3] = jit[name=<lambda> jaxpr={ lambda ; a:f32[3]. let  in (a,) }] a
  in (b,) }",
    "{ lambda ; a:f32[3]. let
    c:f32[3] d:f32[3] b:f32[3] = jit[
      name=<lambda>
      jaxpr={ lambda ; a:f32[3] b:f32[3]. let  in (a, a, b) }
    ] a a
  in (c, d, b) }",
    "let lambda = { lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) } in
let lambda1 = { lambda ; c:f32[3]. let d:f32[3] = cos c in (d,) } in
{ lambda ; e:f32[3]. let
    f:f32[3] = jit[name=<lambda> jaxpr=lambda] e
    g:f32[3] = jit[name=<lambda> jaxpr=lambda] f
    h:f32[3] = jit[name=<lambda> jaxpr=lambda1] e
    i:f32[3] = jit[name=<lambda> jaxpr=lambda1] h
    j:f32[3] = add g i
  in (j,) }",
    "let a = { lambda ; b:f32[3]. let c:f32[3] = sin b in (c,) } in
{ lambda ; d:f32[3]. let
    e:f32[3] = jit[name=a jaxpr=a] d
    f:f32[3] = jit[name=a jaxpr=a] e
  in (f,) }",
    "let sin = { lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) } in
{ lambda ; c:f32[3]. let
    d:f32[3] = cond[
      branches=(
        { lambda ; e:f32[3]. let f:f32[3] = jit[name=sin jaxpr=sin] e in (f,) }
        { lambda ; g:f32[3]. let h:f32[3] = jit[name=sin jaxpr=sin] g in (h,) }
      )
    ] 0:i32[] c
    i:f32[3] = jit[name=sin jaxpr=sin] c
    j:f32[3] = add d i
  in (j,) }",
    "{ lambda ; a:c64[]. let
    b:c64[] = mul a (1+2j):c64[]
    c:c64[] = mul b 1j:c64[]
    d:c64[] = mul c (-1.500000013088254e-09+0j):c64[]
    e:c64[] = mul d (nan+0j):c64[]
  in (e,) }",
    "{ lambda ; a:f32[]. let
    b:f32[] = mul a -0.9999999403953552:f32[]
    c:f32[] = mul b 1.0000000200408773e+20:f32[]
    d:f32[] = mul c -inf:f32[]
    debug_log d
  in (d,) }",
];

#[test]
fn texts_of_jax_come_back() {
    for text in TEXTS {
        assert_eq!(read(text).to_string(), *text);
    }
}

#[test]
fn long_lists_fill_lines() {
    let mut j = Jaxpr::default();
    let aval = Aval::scalar(DType::F32);
    j.invars = (0..20).map(|_| j.new_var(aval.clone())).collect();
    j.outvars = j.invars.iter().map(|&v| Atom::Var(v)).collect();
    let text = "{ lambda ; a:f32[] b:f32[] c:f32[] d:f32[] e:f32[] f:f32[] g:f32[] h:f32[] i:f32[]
    j:f32[] k:f32[] l:f32[] m:f32[] n:f32[] o:f32[] p:f32[] q:f32[] r:f32[] s:f32[]
    t:f32[]. let
    
  in (a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t) }";
    assert_eq!(j.to_string(), text);
    assert_eq!(read(text), j);
}

#[test]
fn big_programs_are_printed_by_themselves() {
    let mut text = String::from("{ lambda ; a:f32[3]. let b:f32[3] = jit[name=f jaxpr={ lambda ; a:f32[3]. let ");
    for i in 0..12 {
        text += &format!("v{}:f32[3] = sin {}; ", i, if i == 0 { "a".into() } else { format!("v{}", i - 1) });
    }
    text += "in (v11,) }] a in (b,) }";
    let printed = read(&text).to_string();
    assert!(printed.starts_with("let f = { lambda ; a:f32[3]. let\n    b:f32[3] = sin a\n"), "{printed}");
    assert!(printed.ends_with("{ lambda ; o:f32[3]. let p:f32[3] = jit[name=f jaxpr=f] o in (p,) }"), "{printed}");
}

#[test]
fn equations_print_alone_and_styles_differ() {
    let j = read("{ lambda ; a:f32[3]. let b:f32[3] = mul a 2.0:~f32[] in (b,) }");
    assert_eq!(j.eqn_text(0), "b:f32[3] = mul a 2.0:f32[]");
    assert_eq!(j.to_text(Style { types: false, ..Style::JAX }), "{ lambda ; a. let b = mul a 2.0:f32[] in (b,) }");
    assert_eq!(format!("{j:#}"), "{ lambda ; a:f32[3]. let b:f32[3] = mul a 2.0:~f32[] in (b,) }");
}

#[test]
fn literals_are_pythons() {
    let cases = [
        (Scalar::from_f64(DType::F32, 0.1), "0.10000000149011612"),
        (Scalar::from_f64(DType::F64, 0.1), "0.1"),
        (Scalar::from_f64(DType::BF16, 1.1), "1.1015625"),
        (Scalar::from_bool(true), "True"),
        (Scalar::from_complex(DType::C64, 0.0, 2.0), "2j"),
        (Scalar::from_complex(DType::C64, -0.0, -0.5), "(-0-0.5j)"),
        (Scalar::from_complex(DType::C128, 1.0, f64::NAN), "(1+nanj)"),
    ];
    for (s, text) in cases {
        assert_eq!(literal(s), text);
    }
}

#[test]
fn errors_say_where() {
    let wrong = [
        ("{ lambda ; a:f32[3]. let b:f32[3] = sin c in (b,) }", "c is not defined"),
        ("{ lambda ; a:f32[3]. let\n    b:f32[3] = tan a\n  in (b,) }", "no primitive is named tan"),
        ("{ lambda ; a:f32[3]. let b:i32[3] = sin a in (b,) }", "sin gives"),
        ("{ lambda ; a:f32[3]. let b:f32[2] c:i32[2] = top_k[k=2] a in (b,) }", "parameters of top_k cannot be read"),
        ("{ lambda ; a:f32[3].\n let b:f32[3] = sin a in (b,)", "line 2 of the program: expected }"),
        ("{ lambda a:f32[3]; . let  in (a,) }", "no value for the constant a"),
    ];
    for (text, message) in wrong {
        let error = parse(text, &registry(), &[]).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn constants_are_given() {
    let one = Array::from_scalar(Scalar::one(DType::F32), false).unwrap();
    let text = "{ lambda a:f32[]; b:f32[]. let c:f32[] = add a b in (c,) }";
    let j = parse(text, &registry(), &[one]).unwrap();
    verify(&j).unwrap();
    assert_eq!(j.to_string(), text);
}

fn broken(change: impl FnOnce(&mut Jaxpr)) -> String {
    let mut j = read("{ lambda ; a:f32[3]. let b:f32[3] = sin a; c:f32[3] = sin b; debug_log c in (c,) }");
    change(&mut j);
    verify(&j).unwrap_err().to_string()
}

#[test]
fn the_verifier_finds_what_is_broken() {
    let swapped = broken(|j| j.eqns.swap(0, 1));
    assert!(swapped.contains("equation 0, sin: variable 1 is used before it is defined"), "{swapped}");
    let twice = broken(|j| j.eqns[1].outputs[0] = Var(1));
    assert!(twice.contains("defined twice"), "{twice}");
    let aval = broken(|j| j.avals[2] = Aval::new(DType::F32, &[4]));
    assert!(aval.contains("result 0 has type f32[4] where the primitive gives f32[3]"), "{aval}");
    let weak = broken(|j| j.avals[2] = j.avals[2].with_weak(true));
    assert!(weak.contains("f32[3] (weak)"), "{weak}");
    let effects = broken(|j| j.effects = Effects::NONE);
    assert!(effects.contains("effects"), "{effects}");
    let out = broken(|j| j.outvars = vec![Atom::Var(Var(9))]);
    assert!(out.contains("result: variable 9"), "{out}");
    let consts = broken(|j| j.constvars.push(Var(0)));
    assert!(consts.contains("0 constants for 1 variables"), "{consts}");
}

/// A program from a list of choices; inner programs come from the same list.
fn build(choices: &[(u8, usize, usize, i64)], depth: usize) -> Jaxpr {
    let mut j = Jaxpr::default();
    let x = Aval::new(DType::F32, &[3]);
    j.invars = (0..2).map(|i| j.new_var(x.with_weak(i == 1))).collect();
    let mut live: Vec<Var> = j.invars.clone();
    for (n, &(kind, a, b, number)) in choices.iter().enumerate() {
        let (a, b) = (Atom::Var(live[a % live.len()]), Atom::Var(live[b % live.len()]));
        let weak = number % 2 == 0;
        let lit = Atom::Lit(Lit { scalar: Scalar::from_f64(DType::F32, number as f64 / 3.0), weak });
        let (op, inputs): (OpRef, SmallVec<[Atom; 3]>) = match kind {
            0 => (SIN.op(), smallvec![a]),
            1 => (ADD.op(), smallvec![a, b]),
            2 => (MUL.op(), smallvec![a, lit]),
            3 => (LOG.op(), smallvec![a]),
            4 => (OpRef::new(&TOP_K, TopK { axis: 0, k: 3 }), smallvec![a]),
            _ if depth == 0 => (COS.op(), smallvec![b]),
            5 => {
                let inner = build(&choices[..n], depth - 1);
                let params = JitParams(Jit { name: "<lambda>".into(), jaxpr: inner.into() });
                (OpRef::new(&JIT, params), smallvec![a, b])
            }
            _ => {
                let inner: JaxprRef = build(&choices[..n / 2], depth - 1).into();
                (OpRef::new(&COND, Cond { branches: vec![inner.clone(), inner] }), smallvec![lit, a, b])
            }
        };
        let avals: Vec<Aval> = inputs.iter().map(|a| j.atom_aval(a)).collect();
        let outs = op.abstract_eval(&avals.iter().collect::<Vec<_>>()).unwrap();
        let outputs: SmallVec<[Var; 1]> = outs.into_iter().map(|a| j.new_var(a)).collect();
        live.extend(outputs.first());
        j.effects = j.effects.union(op.effects());
        j.eqns.push(Eqn { op, inputs, outputs, source: Source::default() });
    }
    j.outvars = live.iter().rev().take(2).map(|&v| Atom::Var(v)).collect();
    j
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn parsing_undoes_printing(choices in prop::collection::vec((0u8..7, 0usize..9, 0usize..9, -9i64..9), 0..24)) {
        let j = build(&choices, 2);
        verify(&j).unwrap();
        let text = format!("{j:#}");
        let back = parse(&text, &registry(), &[]).unwrap_or_else(|e| panic!("{e}\n{text}"));
        prop_assert_eq!(back.structural_hash(), j.structural_hash());
        prop_assert!(back == j, "{}\n{:#}", text, back);
        let plain = j.to_string();
        let plain_again = parse(&plain, &registry(), &[]).unwrap_or_else(|e| panic!("{e}\n{plain}")).to_string();
        // JAX's form calls several values `_`
        prop_assert!(plain.contains('_') || plain_again == plain);
    }
}
