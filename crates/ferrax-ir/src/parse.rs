//! Reads a printed Jaxpr back.
//!
//! Primitives are found by name in a [`Registry`] and rebuild their parameters from the printed values
//! ([`Params::parse`]); what the text leaves out because the result's type tells it (`shape` of
//! `broadcast_in_dim`) is put back. Text in the exact form (`{:#}`) gives an equal program; JAX's form loses the weak
//! types of parameters and literals. An equation ends at `;`, or at a line that is indented no further than its first.
//!
//! Read next: `verify.rs`, which checks what was read.

use crate::array::Array;
use crate::jaxpr::{Atom, DebugInfo, Eqn, Jaxpr, JaxprRef, Var};
use crate::op::{Def, OpRef};
use crate::params::{Param, Params};
use crate::value::Lit;
use ferrax_base::{Aval, DType, Result, Scalar, Shape, Source, error, shape};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::{BTreeMap, VecDeque};

/// A primitive, whatever its parameters: what lists of primitives hold.
pub trait Primitive: Sync {
    /// JAX's name.
    fn name(&self) -> &'static str;
    /// One line of what it computes.
    fn doc(&self) -> &'static str;
    /// Per slot of [`crate::op::SLOTS`]: `None` when there is a rule, else the reason.
    fn coverage(&self) -> [Option<&'static str>; 7];
    /// The operation with these printed parameters; `None` when they cannot be told from text.
    fn parse(&'static self, fields: &BTreeMap<String, Param>) -> Option<OpRef>;
}

impl<P: Params> Primitive for Def<P> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn doc(&self) -> &'static str {
        self.doc
    }

    fn coverage(&self) -> [Option<&'static str>; 7] {
        self.reasons()
    }

    fn parse(&'static self, fields: &BTreeMap<String, Param>) -> Option<OpRef> {
        P::parse(fields).map(|p| OpRef::new(self, p))
    }
}

/// Primitives by name.
#[derive(Default)]
pub struct Registry(FxHashMap<&'static str, &'static dyn Primitive>);

impl Registry {
    /// The primitives of a list.
    pub fn new(primitives: impl IntoIterator<Item = &'static dyn Primitive>) -> Registry {
        Registry(primitives.into_iter().map(|p| (p.name(), p)).collect())
    }
}

/// The program of a text; `consts` are the values of its constants in the order in which they are printed.
pub fn parse(text: &str, registry: &Registry, consts: &[Array]) -> Result<Jaxpr> {
    let mut p = Parser {
        text,
        at: 0,
        registry,
        consts: consts.iter().cloned().collect(),
        shared: FxHashMap::default(),
        depth: 0,
    };
    while p.keyword("let") {
        let name = p.word()?;
        p.expect("=")?;
        p.expect("{")?;
        p.shared.insert(name, Shared::At(p.at - 1));
        p.at += close(p.rest(), '{', '}').ok_or_else(|| p.unexpected("a program"))? + 1;
        p.expect("in")?;
    }
    let j = p.jaxpr()?;
    p.space();
    if p.at < text.len() {
        return Err(p.unexpected("the end of the text"));
    }
    crate::verify::verify(&j).map_err(|e| error!(Value, "the text is no well-formed program: {e}"))?;
    Ok(j)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    registry: &'a Registry,
    consts: VecDeque<Array>,
    shared: FxHashMap<&'a str, Shared>,
    /// Programs around the one that is being read.
    depth: usize,
}

/// Programs inside each other at most: each takes room on the stack.
const DEPTH: usize = 64;

/// A program printed by itself; others may use it before its place in the text.
enum Shared {
    /// Not read yet: where it starts.
    At(usize),
    Read(JaxprRef),
}

/// Variables of the program being read, by name.
type Scope = FxHashMap<String, Var>;

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn unexpected(&self, wanted: &str) -> ferrax_base::Error {
        let line = self.text[..self.at].matches('\n').count() + 1;
        let found: String = self.rest().chars().take(20).collect();
        error!(Value, "line {line} of the program: expected {wanted}, found {found:?}")
    }

    fn eat(&mut self, token: &str) -> bool {
        self.space();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    /// Eats a word that nothing continues.
    fn keyword(&mut self, word: &str) -> bool {
        self.space();
        let rest = self.rest();
        let found = rest.starts_with(word) && !rest[word.len()..].starts_with(is_name);
        if found {
            self.at += word.len();
        }
        found
    }

    fn expect(&mut self, token: &str) -> Result<()> {
        if self.eat(token) { Ok(()) } else { Err(self.unexpected(token)) }
    }

    fn take_while(&mut self, wanted: &str, f: impl Fn(char) -> bool) -> Result<&'a str> {
        self.space();
        let rest = self.rest();
        let n = rest.find(|c| !f(c)).unwrap_or(rest.len());
        if n == 0 {
            return Err(self.unexpected(wanted));
        }
        self.at += n;
        Ok(&rest[..n])
    }

    fn word(&mut self) -> Result<&'a str> {
        self.take_while("a name", is_name)
    }

    /// The name of a primitive, such as `scatter-add`.
    fn primitive(&mut self) -> Result<&'a str> {
        self.take_while("a name", |c| is_name(c) || c == '-')
    }

    /// Column of a byte, and whether only spaces stand before it on its line.
    fn position(&self, at: usize) -> (usize, bool) {
        let line = self.text[..at].rfind('\n').map_or(0, |i| i + 1);
        let before = &self.text[line..at];
        (before.chars().count(), before.trim_start().is_empty() && line > 0)
    }

    fn jaxpr(&mut self) -> Result<Jaxpr> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(error!(Value, "programs are nested more than {DEPTH} deep"));
        }
        let j = self.jaxpr_inside();
        self.depth -= 1;
        j
    }

    fn jaxpr_inside(&mut self) -> Result<Jaxpr> {
        self.expect("{")?;
        if !self.keyword("lambda") {
            return Err(self.unexpected("lambda"));
        }
        let (mut j, mut scope) = (Jaxpr::default(), Scope::default());
        while !self.eat(";") {
            let (name, aval) = self.binder()?;
            let v = new_var(&mut j, &mut scope, name, aval);
            j.constvars.push(v);
            let value = self.consts.pop_front().ok_or_else(|| error!(Value, "no value for the constant {name}"))?;
            if !value.aval().same_type(j.aval(v)) {
                let (wanted, got) = (j.aval(v), value.aval());
                return Err(error!(Type, "the constant {name} has type {wanted}, but its value has type {got}"));
            }
            j.consts.push(value);
        }
        while !self.eat(".") {
            let (name, aval) = self.binder()?;
            let v = new_var(&mut j, &mut scope, name, aval);
            j.invars.push(v);
        }
        if !self.keyword("let") {
            return Err(self.unexpected("let"));
        }
        while !self.at_end_of_eqns() {
            self.eqn(&mut j, &mut scope)?;
            self.eat(";");
        }
        self.keyword("in");
        self.expect("(")?;
        while !self.eat(")") {
            let a = self.atom(&scope)?;
            j.outvars.push(a);
            self.eat(",");
        }
        self.expect("}")?;
        j.effects = j.eqns.iter().fold(j.effects, |e, q| e.union(q.op.effects()));
        j.debug = DebugInfo::default();
        Ok(j)
    }

    /// Whether `in (…) }` follows; a variable may be called `in` too.
    fn at_end_of_eqns(&mut self) -> bool {
        let start = self.at;
        let mut end = self.keyword("in") && self.eat("(");
        if end {
            end = match close(self.rest(), '(', ')') {
                Some(n) => matches!(self.rest()[n + 1..].trim_start().chars().next(), Some('}') | None),
                None => false,
            };
        }
        self.at = start;
        end
    }

    fn binder(&mut self) -> Result<(&'a str, Aval)> {
        let name = self.word()?;
        self.expect(":")?;
        Ok((name, self.aval()?))
    }

    fn aval(&mut self) -> Result<Aval> {
        let weak = self.eat("~");
        let name = self.take_while("a type", |c| is_name(c) || c == '<' || c == '>')?;
        let dtype = DType::from_short_name(name).ok_or_else(|| error!(Value, "{name} is no dtype"))?;
        self.expect("[")?;
        let mut dims = Shape::new();
        while !self.eat("]") {
            let d = self.take_while("a dimension", |c| c.is_ascii_digit())?;
            dims.push(d.parse().map_err(|_| error!(Value, "{d} is no dimension"))?);
            self.eat(",");
        }
        Ok(Aval { shape: dims, dtype, weak, vary: 0, spread: 0 })
    }

    fn eqn(&mut self, j: &mut Jaxpr, scope: &mut Scope) -> Result<()> {
        self.space();
        let (column, _) = self.position(self.at);
        let mut outs = Vec::new();
        while self.is_binder() {
            outs.push(self.binder()?);
        }
        if !outs.is_empty() {
            self.expect("=")?;
        }
        let name = self.primitive()?;
        let mut fields = if self.rest().starts_with('[') { self.params()? } else { BTreeMap::new() };
        if let Some((_, aval)) = outs.first() {
            let shape = || Param::Text(shape::Tuple(&aval.shape).to_string());
            fields.entry("shape".into()).or_insert_with(shape);
        }
        let mut inputs: SmallVec<[Atom; 3]> = SmallVec::new();
        while !self.ends_eqn(column) {
            inputs.push(self.atom(scope)?);
        }
        let primitive =
            self.registry.0.get(name).ok_or_else(|| error!(NotImplemented, "no primitive is named {name}"))?;
        let op = primitive
            .parse(&fields)
            .ok_or_else(|| error!(Value, "the parameters of {name} cannot be read from text: {fields:?}"))?;
        let avals: Vec<Aval> = inputs.iter().map(|a| j.atom_aval(a)).collect();
        let results = op.abstract_eval(&avals.iter().collect::<Vec<_>>())?;
        if results.len() != outs.len() || results.iter().zip(&outs).any(|(r, (_, o))| !r.same_type(o)) {
            return Err(error!(Type, "{name} gives {results:?}, but the text says {outs:?}"));
        }
        let outputs = outs.iter().zip(results).map(|((n, _), aval)| new_var(j, scope, n, aval)).collect();
        j.eqns.push(Eqn { op, inputs, outputs, source: Source::default() });
        Ok(())
    }

    /// Whether `name:type` follows, rather than a primitive's name.
    fn is_binder(&mut self) -> bool {
        let start = self.at;
        let found = self.word().is_ok() && self.rest().starts_with(':');
        self.at = start;
        found
    }

    fn ends_eqn(&mut self, column: usize) -> bool {
        self.space();
        if self.at == self.text.len() || self.rest().starts_with(';') || self.at_end_of_eqns() {
            return true;
        }
        let (here, first) = self.position(self.at);
        first && here <= column
    }

    fn atom(&mut self, scope: &Scope) -> Result<Atom> {
        self.space();
        let rest = self.rest();
        let number = match rest.strip_prefix('(') {
            Some(inner) => close(inner, '(', ')').map_or(0, |n| n + 2),
            None => rest.find(|c: char| !(is_name(c) || matches!(c, '.' | '+' | '-'))).unwrap_or(rest.len()),
        };
        if !rest[number..].starts_with(':') {
            let name = self.word()?;
            return scope.get(name).map(|v| Atom::Var(*v)).ok_or_else(|| error!(Value, "{name} is not defined"));
        }
        self.at += number + 1;
        let aval = self.aval()?;
        let scalar = number_of(aval.dtype, &rest[..number])
            .ok_or_else(|| error!(Value, "{} is no {}", &rest[..number], aval.dtype))?;
        Ok(Atom::Lit(Lit { scalar, weak: aval.weak }))
    }

    fn params(&mut self) -> Result<BTreeMap<String, Param>> {
        self.expect("[")?;
        let mut out = BTreeMap::new();
        while !self.eat("]") {
            let key = self.word()?.to_owned();
            self.expect("=")?;
            let value = self.param(&key)?;
            out.insert(key, value);
        }
        Ok(out)
    }

    fn param(&mut self, key: &str) -> Result<Param> {
        if let Some(j) = self.inner(key)? {
            return Ok(j);
        }
        let start = self.at;
        if self.eat("(") {
            let mut items = Vec::new();
            while let Some(j) = self.inner(key)? {
                items.push(j);
            }
            if !items.is_empty() && self.eat(")") {
                return Ok(Param::Tuple(items));
            }
            self.at = start;
        }
        let end = text_end(self.rest()).ok_or_else(|| self.unexpected("a parameter's value"))?;
        let value = self.rest()[..end].trim();
        self.at += end;
        Ok(Param::Text(value.to_owned()))
    }

    /// A program, written out or by its name.
    fn inner(&mut self, key: &str) -> Result<Option<Param>> {
        self.space();
        let rest = self.rest();
        if rest.strip_prefix('{').is_some_and(|r| r.trim_start().starts_with("lambda ")) {
            return Ok(Some(Param::Jaxpr(JaxprRef::new(self.jaxpr()?))));
        }
        let n = rest.find(|c: char| c.is_whitespace() || matches!(c, ']' | ')' | ',')).unwrap_or(rest.len());
        if key == "name" {
            return Ok(None);
        }
        let Some(shared) = self.shared.remove(&rest[..n]) else { return Ok(None) };
        let j = match shared {
            Shared::Read(j) => j,
            Shared::At(start) => {
                let here = std::mem::replace(&mut self.at, start);
                let j = JaxprRef::new(self.jaxpr()?);
                self.at = here;
                j
            }
        };
        self.shared.insert(&rest[..n], Shared::Read(j.clone()));
        self.at += n;
        Ok(Some(Param::Jaxpr(j)))
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn new_var(j: &mut Jaxpr, scope: &mut Scope, name: &str, aval: Aval) -> Var {
    let v = j.new_var(aval);
    scope.insert(name.to_owned(), v);
    v
}

/// The offset of the bracket that closes the one before the text.
fn close(text: &str, left: char, right: char) -> Option<usize> {
    let mut depth = 0;
    text.find(|c| {
        depth += i32::from(c == left) - i32::from(c == right);
        depth < 0
    })
}

/// Where a parameter's text ends: at the closing bracket of the list, or before the next `key=`.
fn text_end(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (i, c) in text.char_indices() {
        match c {
            ']' if depth == 0 => return Some(i),
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            c if depth == 0 && c.is_whitespace() => {
                let next = text[i..].trim_start();
                let key = next.find(|c| !is_name(c)).unwrap_or(0);
                if key > 0 && next[key..].starts_with('=') || next.starts_with(']') {
                    return Some(i);
                }
            }
            _ => {}
        }
    }
    None
}

/// The number that Python would read from a literal.
fn number_of(dtype: DType, text: &str) -> Option<Scalar> {
    if dtype.is_complex() {
        return complex(text).map(|(re, im)| Scalar::from_complex(dtype, re, im));
    }
    match text {
        "True" => return Some(Scalar::from_bool(true)),
        "False" => return Some(Scalar::from_bool(false)),
        _ => {}
    }
    if dtype.is_float() {
        return text.parse().ok().map(|v| Scalar::from_f64(dtype, v));
    }
    if dtype.is_unsigned() {
        return text.parse().ok().map(|v| Scalar::from_u64(dtype, v));
    }
    text.parse().ok().map(|v| Scalar::from_i64(dtype, v))
}

fn complex(text: &str) -> Option<(f64, f64)> {
    let inner = text.strip_prefix('(').and_then(|t| t.strip_suffix(')')).unwrap_or(text).strip_suffix('j')?;
    // the sign between the parts: the last one that belongs to no exponent
    let split =
        inner.char_indices().rev().find(|&(i, c)| matches!(c, '+' | '-') && i > 0 && !inner[..i].ends_with('e'));
    match split {
        None => Some((0.0, inner.parse().ok()?)),
        Some((i, _)) => Some((inner[..i].parse().ok()?, inner[i..].parse().ok()?)),
    }
}
