//! The text of a kernel under construction: elements of values as statements of CUDA C.
//!
//! [`Body::element`] writes what computes one element of a value: a value that is in memory is read, another is computed of
//! elements of its operands, at places that follow from its own. Nodes that only move elements thus become arithmetic on
//! indices, which is exact for every shape; what is asked for twice is computed once.
//!
//! Invariants: a name is used only in the block that defines it or in one inside; statements inside a condition are
//! forgotten where it ends. Read next: `moves.rs` for the nodes that move elements, `kernel.rs` for whole kernels.

use super::elementwise::expression;
use super::types::{c_type, literal};
use ferrax_base::{DType, Result, bail};
use ferrax_loops::{Graph, Kind, Node, ValueId};
use smallvec::SmallVec;
use std::collections::HashMap;

/// Where an element is: a place among those of a value, whose shape says what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct At(u32);

/// How a place is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Form {
    /// As the number of the element.
    Linear(String),
    /// As an index along each axis.
    Axes(SmallVec<[String; 4]>),
}

/// Names that hold inside a block.
#[derive(Default)]
struct Scope {
    values: HashMap<(ValueId, At), String>,
    expressions: HashMap<String, String>,
}

/// The statements of a kernel, so far.
pub struct Body<'a> {
    /// The graph whose values are computed.
    pub g: &'a Graph,
    held: &'a dyn Fn(ValueId) -> bool,
    /// The statements.
    pub text: String,
    /// The values that are read, in the order of the kernel's pointers `p0`, `p1`, …
    pub reads: Vec<ValueId>,
    /// Elements of the largest array that indices go through.
    pub largest: usize,
    /// The place whose elements a thread reads as a vector, and the pointers that it reads so.
    pub lanes: Option<(At, Vec<usize>)>,
    /// Values of which one element is meant wherever they are asked for, with its name.
    pub known: HashMap<ValueId, String>,
    forms: Vec<Form>,
    scopes: Vec<Scope>,
    names: u32,
}

/// Whether a node's elements are written as expressions where they are needed.
pub fn inlines(node: &Node) -> bool {
    match &node.kind {
        Kind::Const(_)
        | Kind::Bitcast
        | Kind::Iota(_)
        | Kind::Broadcast(_)
        | Kind::Reshape
        | Kind::Transpose(_)
        | Kind::Slice(_)
        | Kind::Pad(_)
        | Kind::Rev(_)
        | Kind::Concat(_)
        | Kind::DynamicSlice
        | Kind::Gather(_) => true,
        kind => kind.is_elementwise(),
    }
}

impl<'a> Body<'a> {
    /// No statements yet. `held` says which values are in memory.
    pub fn new(g: &'a Graph, held: &'a dyn Fn(ValueId) -> bool) -> Self {
        Body {
            g,
            held,
            text: String::new(),
            reads: Vec::new(),
            largest: 1,
            lanes: None,
            known: HashMap::new(),
            forms: Vec::new(),
            scopes: vec![Scope::default()],
            names: 0,
        }
    }

    /// A statement.
    pub fn line(&mut self, text: &str) {
        for _ in 0..self.scopes.len() {
            self.text.push_str("  ");
        }
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// Begins a block: a condition or a loop.
    pub fn open(&mut self, head: &str) {
        self.line(&format!("{head} {{"));
        self.scopes.push(Scope::default());
    }

    /// Ends the innermost block.
    pub fn close(&mut self) {
        self.close_with("}");
    }

    /// Ends the innermost block with something behind the brace.
    pub fn close_with(&mut self, end: &str) {
        self.scopes.pop();
        self.line(end);
    }

    fn name(&mut self, letter: char) -> String {
        self.names += 1;
        format!("{letter}{}", self.names)
    }

    /// A name for the value of an expression of some type; the one that it has where it is known.
    pub fn named(&mut self, ty: &str, letter: char, expression: String) -> String {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if expression.chars().all(plain) && !(ty != "I" && expression.starts_with(|c: char| c.is_ascii_digit())) {
            return expression;
        }
        let key = format!("{ty} {expression}");
        if let Some(found) = self.scopes.iter().rev().find_map(|s| s.expressions.get(&key)) {
            return found.clone();
        }
        let name = self.name(letter);
        self.line(&format!("const {ty} {name} = {expression};"));
        self.remember_expression(key, &name);
        name
    }

    fn remember_expression(&mut self, key: String, name: &str) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.expressions.insert(key, name.to_owned());
        }
    }

    /// A name for an index.
    pub fn index(&mut self, expression: String) -> String {
        self.named("I", 'j', expression)
    }

    /// Says what an index is called that an expression gives.
    pub fn bind_index(&mut self, expression: &str, name: &str) {
        self.remember_expression(format!("I {expression}"), name);
    }

    /// A name that nothing has yet.
    pub fn fresh(&mut self, letter: char) -> String {
        self.name(letter)
    }

    /// Says what an element is called.
    pub fn bind(&mut self, v: ValueId, at: At, name: &str) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.values.insert((v, at), name.to_owned());
        }
    }

    fn intern(&mut self, form: Form) -> At {
        // Few places are told apart in a kernel.
        let found = self.forms.iter().position(|f| *f == form);
        At(found.unwrap_or_else(|| {
            self.forms.push(form);
            self.forms.len() - 1
        }) as u32)
    }

    /// The place of the element with this number.
    pub fn linear(&mut self, name: &str) -> At {
        self.intern(Form::Linear(name.to_owned()))
    }

    /// The place at these indices.
    pub fn at_axes(&mut self, axes: impl IntoIterator<Item = String>) -> At {
        let axes: SmallVec<[String; 4]> = axes.into_iter().collect();
        if axes.is_empty() { self.scalar() } else { self.intern(Form::Axes(axes)) }
    }

    /// The only place of a value of rank 0.
    pub fn scalar(&mut self) -> At {
        self.linear("0")
    }

    /// Whether a place is known as the number of its element.
    pub fn is_linear(&self, at: At) -> bool {
        matches!(self.forms[at.0 as usize], Form::Linear(_))
    }

    /// The indices of a place along the axes of a shape.
    pub fn axes(&mut self, at: At, shape: &[usize]) -> SmallVec<[String; 4]> {
        let linear = match &self.forms[at.0 as usize] {
            Form::Axes(axes) => return axes.clone(),
            Form::Linear(name) => name.clone(),
        };
        let size = ferrax_base::shape::size(shape);
        self.largest = self.largest.max(size);
        let mut axes: SmallVec<[String; 4]> = SmallVec::from_elem("0".to_owned(), shape.len());
        let mut below = 1;
        for (k, &n) in shape.iter().enumerate().rev().filter(|(_, n)| **n != 1) {
            let mut text = format!("(U){linear}");
            if below > 1 {
                text.push_str(&format!(" / {below}u"));
            }
            if below * n < size {
                text = format!("{text} % {n}u");
            }
            axes[k] = if below * n >= size && below == 1 { linear.clone() } else { self.index(format!("(I)({text})")) };
            below *= n;
        }
        axes
    }

    /// The number of the element at a place of a shape.
    pub fn number(&mut self, at: At, shape: &[usize]) -> String {
        let axes = match &self.forms[at.0 as usize] {
            Form::Linear(name) => return name.clone(),
            Form::Axes(axes) => axes.clone(),
        };
        self.largest = self.largest.max(ferrax_base::shape::size(shape));
        let mut terms = Vec::new();
        let mut stride = 1;
        for (axis, &n) in axes.iter().zip(shape).rev() {
            if axis != "0" {
                terms.push(if stride == 1 { axis.clone() } else { format!("{axis} * {stride}") });
            }
            stride *= n;
        }
        terms.reverse();
        if terms.is_empty() { "0".to_owned() } else { self.index(terms.join(" + ")) }
    }

    /// The kernel's pointer to a value in memory.
    pub fn pointer(&mut self, v: ValueId) -> usize {
        self.largest = self.largest.max(self.g.ty(v).size());
        match self.reads.iter().position(|&r| r == v) {
            Some(k) => k,
            None => {
                self.reads.push(v);
                self.reads.len() - 1
            }
        }
    }

    /// The name of a value's element at a place; statements that compute it come first.
    pub fn element(&mut self, v: ValueId, at: At) -> Result<String> {
        let bound = || self.scopes.iter().rev().find_map(|s| s.values.get(&(v, at)));
        if let Some(name) = self.known.get(&v).or_else(bound) {
            return Ok(name.clone());
        }
        let name = if (self.held)(v) { self.load(v, at) } else { self.computed(v, at)? };
        self.bind(v, at, &name);
        Ok(name)
    }

    fn load(&mut self, v: ValueId, at: At) -> String {
        let ty = self.g.ty(v);
        let k = self.pointer(v);
        let place = self.number(at, &ty.shape);
        let vector = self.lanes.as_mut().is_some_and(|(lane, pointers)| {
            let here = *lane == at;
            if here && !pointers.contains(&k) {
                pointers.push(k);
            }
            here
        });
        let text = if vector { format!("v{k}.x[u]") } else { format!("p{k}[{place}]") };
        self.named(c_type(ty.dtype), 't', text)
    }

    fn computed(&mut self, v: ValueId, at: At) -> Result<String> {
        let g = self.g;
        let Some(node) = g.maker(v) else { bail!(Internal, "a parameter is not in memory") };
        let ty = g.ty(v);
        match &node.kind {
            Kind::Const(s) => Ok(self.named(c_type(ty.dtype), 't', literal(*s))),
            kind if kind.is_elementwise() => {
                let scalar = self.scalar();
                let mut names: SmallVec<[String; 3]> = SmallVec::new();
                for &x in &node.inputs {
                    let spread = g.ty(x).shape.is_empty() && !ty.shape.is_empty();
                    names.push(self.element(x, if spread { scalar } else { at })?);
                }
                let of: SmallVec<[DType; 3]> = node.inputs.iter().map(|&x| g.ty(x).dtype).collect();
                let texts: SmallVec<[&str; 3]> = names.iter().map(String::as_str).collect();
                let text = expression(kind, &texts, &of, ty.dtype)?;
                Ok(self.named(c_type(ty.dtype), 't', text))
            }
            _ if inlines(node) => self.moved(node, v, at),
            other => bail!(Internal, "{other:?} is not computed element by element"),
        }
    }
}
