//! The printed form of a Jaxpr, as JAX 0.10 prints it.
//!
//! Variables are named in the order they are met, with one alphabet for the whole text; results that nobody
//! uses are `_` at the top level. A program inside `jit` takes its caller's names where both are the same value.
//! Programs that occur more than once, or have more than ten equations, come first, named after their function.
//! The alternate form (`{:#}`) also tells weak types (`~f32[]`) and is what [`crate::parse`] reads back exactly.
//!
//! Read next: `parse.rs`.

use crate::array::Array;
use crate::jaxpr::{Atom, Eqn, Jaxpr, JaxprRef, Var};
use crate::layout::Doc;
use crate::params::Param;
use crate::value::Lit;
use ferrax_base::{Aval, DType, Scalar};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::fmt;

/// Columns after which lines break.
pub const WIDTH: usize = 80;

/// Equations from which on an inner program is printed by itself.
const INLINE_EQNS: usize = 10;

/// The name of the n-th variable: a, b, …, z, ba, bb, ….
pub fn var_name(n: usize) -> String {
    let mut n = n;
    let mut out = Vec::new();
    loop {
        out.push(b'a' + (n % 26) as u8);
        n /= 26;
        if n == 0 {
            break;
        }
    }
    out.reverse();
    String::from_utf8_lossy(&out).into_owned()
}

/// What the printed form shows.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Columns after which lines break.
    pub width: usize,
    /// Weak types are told and results that nobody uses have names: parses back to the same program.
    pub exact: bool,
    /// Types of variables are shown where they are defined.
    pub types: bool,
    /// Each equation ends with the user's line that asked for it.
    pub sources: bool,
}

impl Style {
    /// As `str` of a Jaxpr in JAX.
    pub const JAX: Style = Style { width: WIDTH, exact: false, types: true, sources: false };
}

impl fmt::Display for Jaxpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text(Style { exact: f.alternate(), ..Style::JAX }))
    }
}

impl Jaxpr {
    /// The program in a style of printing.
    pub fn to_text(&self, style: Style) -> String {
        Printer::new(self, style).program(self).render(style.width)
    }

    /// One equation of the program, with the names it has in the program's text.
    pub fn eqn_text(&self, index: usize) -> String {
        let mut p = Printer::new(self, Style::JAX);
        for &v in self.constvars.iter().chain(&self.invars) {
            p.name(self, v);
        }
        let docs: Vec<Doc> = self.eqns[..=index].iter().map(|e| p.eqn(self, e)).collect();
        docs[index].render(WIDTH).trim_end().to_owned()
    }
}

impl fmt::Display for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let none = Jaxpr::default();
        let mut p = Printer::new(&none, Style { exact: f.alternate(), ..Style::JAX });
        f.write_str(&p.param(self).render(WIDTH))
    }
}

/// A literal's number as Python prints it.
pub fn literal(s: Scalar) -> String {
    match s.dtype {
        d if d.is_complex() => complex(s.to_f64(), s.imag()),
        d if d.is_float() => Scalar::from_f64(DType::F64, s.to_f64()).to_string(),
        _ => s.to_string(),
    }
}

/// Python's repr of a complex number.
fn complex(re: f64, im: f64) -> String {
    let part = |v: f64| {
        let text = Scalar::from_f64(DType::F64, v).to_string();
        text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
    };
    if re == 0.0 && re.is_sign_positive() {
        return format!("{}j", part(im));
    }
    let sign = if im.is_sign_negative() && !im.is_nan() { "" } else { "+" };
    format!("({}{sign}{}j)", part(re), part(im))
}

#[derive(Clone, Copy)]
enum Name {
    Fresh(usize),
    Dropped,
}

/// Identity of a program while it is printed.
type Id = *const Jaxpr;

/// Programs inside a program: each with the first name that an equation gives it, and how often it is met.
#[derive(Default)]
struct Found {
    programs: Vec<(JaxprRef, Option<String>, usize)>,
    index: FxHashMap<Id, usize>,
    queue: VecDeque<usize>,
}

impl Found {
    fn visit(&mut self, j: &Jaxpr) {
        for e in j.eqns.iter().filter(|e| !e.op.subjaxprs().is_empty()) {
            let (name, inner) = printed_programs(e);
            for sub in inner {
                let i = *self.index.entry(&raw const *sub).or_insert_with(|| {
                    let count = extra(&sub);
                    self.programs.push((sub, None, count));
                    self.programs.len() - 1
                });
                let known = &mut self.programs[i].1;
                *known = known.take().or_else(|| name.clone());
                self.queue.push_back(i);
            }
        }
    }
}

/// Programs above a size count once more.
fn extra(j: &Jaxpr) -> usize {
    usize::from(j.eqns.len() > INLINE_EQNS)
}

struct Printer {
    style: Style,
    names: FxHashMap<(Id, Var), Name>,
    next: usize,
    /// Programs printed by themselves, in order.
    shared: Vec<(JaxprRef, String)>,
    shared_names: FxHashSet<String>,
    /// Programs that were printed: names are known by addresses, which no other may have as long as one prints.
    kept: Vec<JaxprRef>,
}

impl Printer {
    fn new(top: &Jaxpr, style: Style) -> Printer {
        let mut p = Printer {
            style,
            names: FxHashMap::default(),
            next: 0,
            shared: Vec::new(),
            shared_names: FxHashSet::default(),
            kept: Vec::new(),
        };
        p.find_shared(top);
        if !style.exact {
            p.find_dropped(top);
        }
        p
    }

    /// Marks the results at the top level that nothing uses.
    fn find_dropped(&mut self, top: &Jaxpr) {
        let mut used = vec![false; top.avals.len()];
        let mark = |used: &mut Vec<bool>, atoms: &[Atom]| {
            for a in atoms {
                if let Atom::Var(v) = a {
                    used[v.0 as usize] = true;
                }
            }
        };
        mark(&mut used, &top.outvars);
        for e in top.eqns.iter().rev() {
            for &v in e.outputs.iter().filter(|v| !used[v.0 as usize]) {
                self.names.insert((std::ptr::from_ref(top), v), Name::Dropped);
            }
            mark(&mut used, &e.inputs);
        }
    }

    /// Collects the programs to print by themselves, breadth first.
    fn find_shared(&mut self, top: &Jaxpr) {
        let mut found = Found::default();
        found.visit(top);
        while let Some(i) = found.queue.pop_front() {
            let (j, _, count) = &mut found.programs[i];
            *count += 1;
            // the insides of a program met twice are met twice too; a third time tells nothing new
            if *count <= 2 + extra(j) {
                let j = j.clone();
                found.visit(&j);
            }
        }
        let mut uses: FxHashMap<String, usize> = FxHashMap::default();
        for (j, name, _) in found.programs.into_iter().filter(|(_, _, count)| *count > 1) {
            let name = name.unwrap_or_else(|| "jaxpr".into());
            // what reads the text wants one word: `vmap(f)` is none
            let name =
                if self.style.exact { name.replace(|c: char| !(c.is_alphanumeric() || c == '_'), "_") } else { name };
            let count = uses.entry(name.clone()).or_default();
            let unique = if *count > 0 { format!("{name}{count}") } else { name };
            *count += 1;
            self.shared_names.insert(unique.clone());
            self.shared.push((j, unique));
        }
    }

    fn program(&mut self, top: &Jaxpr) -> Doc {
        let mut docs = Vec::new();
        for i in 0..self.shared.len() {
            let (j, name) = self.shared[i].clone();
            docs.push(Doc::text(format!("let {name} = ")));
            docs.push(self.jaxpr(&j));
            docs.push(Doc::text(" in"));
            docs.push(Doc::Line(" "));
        }
        docs.push(self.jaxpr(top));
        Doc::Seq(docs)
    }

    fn jaxpr(&mut self, j: &Jaxpr) -> Doc {
        let mut head = vec![Doc::text("{ lambda ")];
        head.push(self.binders(j, &j.constvars));
        head.push(Doc::text("; "));
        head.push(self.binders(j, &j.invars));
        head.push(Doc::text(". let"));
        let eqns = j.eqns.iter().map(|e| self.eqn(j, e)).collect();
        head.push(Doc::Nest(vec![Doc::Line(" "), Doc::join(&Doc::Line("; "), eqns)]));
        head.push(Doc::Line(" "));
        head.push(Doc::text("in ("));
        head.push(self.atoms(j, &j.outvars, ","));
        head.push(Doc::text(if j.outvars.len() == 1 { ",)" } else { ")" }));
        Doc::Seq(vec![Doc::Group(vec![Doc::Nest(head)]), Doc::text(" }")])
    }

    fn shared_name(&self, j: &JaxprRef) -> Option<&str> {
        self.shared.iter().find(|(s, _)| std::ptr::eq(&raw const **s, &raw const **j)).map(|(_, n)| n.as_str())
    }

    fn inner(&mut self, j: &JaxprRef) -> Doc {
        match self.shared_name(j) {
            Some(name) => Doc::text(name),
            None => {
                self.kept.push(j.clone());
                self.jaxpr(j)
            }
        }
    }

    fn eqn(&mut self, j: &Jaxpr, e: &Eqn) -> Doc {
        let params = e.op.print_params();
        if e.op.name() == "jit" {
            self.share_names(j, e, &params);
        }
        let mut docs = Vec::new();
        if !e.outputs.is_empty() {
            docs.push(self.binders(j, &e.outputs));
            docs.push(Doc::text(" = "));
        }
        docs.push(Doc::text(e.op.name()));
        if !params.is_empty() {
            docs.push(self.params(&params));
        }
        docs.push(Doc::text(" "));
        docs.push(self.atoms(j, &e.inputs, ""));
        if self.style.sources
            && let Some(at) = e.source.location()
        {
            docs.push(Doc::text(format!("    # {at}")));
        }
        Doc::Seq(docs)
    }

    /// Names the variables of a program inside `jit` as its caller does.
    fn share_names(&mut self, j: &Jaxpr, e: &Eqn, params: &[(&'static str, Param)]) {
        let Some(inner) = params.iter().find_map(|(_, p)| if let Param::Jaxpr(i) = p { Some(i) } else { None }) else {
            return;
        };
        if self.shared_name(inner).is_some() {
            return;
        }
        let params: Vec<Atom> = inner.invars.iter().map(|&v| Atom::Var(v)).collect();
        let results: Vec<Atom> = e.outputs.iter().map(|&v| Atom::Var(v)).collect();
        self.suggest(inner, &params, j, &e.inputs);
        self.suggest(inner, &inner.outvars, j, &results);
    }

    fn suggest(&mut self, inner: &Jaxpr, theirs: &[Atom], outer: &Jaxpr, ours: &[Atom]) {
        if theirs.len() != ours.len() {
            return;
        }
        let mut used: FxHashSet<Var> = FxHashSet::default();
        for pair in theirs.iter().zip(ours) {
            if let (Atom::Var(their), Atom::Var(our)) = pair
                && !used.contains(our)
                && !self.names.contains_key(&(std::ptr::from_ref(inner), *their))
            {
                used.insert(*our);
                let name = self.name(outer, *our);
                self.names.insert((std::ptr::from_ref(inner), *their), name);
            }
        }
    }

    fn params(&mut self, params: &[(&'static str, Param)]) -> Doc {
        let docs = params.iter().map(|(k, v)| Doc::Seq(vec![Doc::text(format!("{k}=")), self.param(v)])).collect();
        let body = vec![Doc::text("["), Doc::Line(""), Doc::join(&Doc::Line(" "), docs)];
        Doc::Group(vec![Doc::Nest(body), Doc::Line(""), Doc::text("]")])
    }

    fn param(&mut self, p: &Param) -> Doc {
        match p {
            // functions are shown by their names; what tells those of one name apart is for programs
            Param::Text(t) => Doc::text(without_address(t)),
            Param::Jaxpr(j) => self.inner(j),
            Param::Tuple(items) => {
                let docs = items.iter().map(|i| self.param(i)).collect();
                let body = vec![Doc::text("("), Doc::Line(""), Doc::join(&Doc::Line(" "), docs)];
                Doc::Group(vec![Doc::Nest(body), Doc::Line(""), Doc::text(")")])
            }
        }
    }

    fn name(&mut self, j: &Jaxpr, v: Var) -> Name {
        let key = (std::ptr::from_ref(j), v);
        if let Some(name) = self.names.get(&key) {
            return *name;
        }
        while !self.shared_names.is_empty() && self.shared_names.contains(&var_name(self.next)) {
            self.next += 1;
        }
        let name = Name::Fresh(self.next);
        self.next += 1;
        self.names.insert(key, name);
        name
    }

    fn name_text(&mut self, j: &Jaxpr, v: Var) -> String {
        match self.name(j, v) {
            Name::Fresh(n) => var_name(n),
            Name::Dropped => "_".into(),
        }
    }

    fn aval(&self, a: &Aval) -> String {
        // exact text is read again, in other processes too
        if self.style.exact { format!("{}{a}", if a.weak { "~" } else { "" }) } else { crate::spread::text(a) }
    }

    fn binders(&mut self, j: &Jaxpr, vars: &[Var]) -> Doc {
        let docs = vars.iter().map(|&v| {
            let name = self.name_text(j, v);
            Doc::Text(if self.style.types { format!("{name}:{}", self.aval(j.aval(v))) } else { name })
        });
        list(docs.collect(), "")
    }

    fn atoms(&mut self, j: &Jaxpr, atoms: &[Atom], separator: &str) -> Doc {
        let docs = atoms.iter().map(|a| {
            Doc::Text(match a {
                Atom::Var(v) => self.name_text(j, *v),
                Atom::Lit(l) => self.lit(*l),
            })
        });
        list(docs.collect(), separator)
    }

    fn lit(&self, l: Lit) -> String {
        let aval = Aval::scalar(l.scalar.dtype).with_weak(l.weak);
        format!("{}:{}", literal(l.scalar), self.aval(&aval))
    }
}

/// Items that fill lines, further lines indented.
fn list(docs: Vec<Doc>, separator: &str) -> Doc {
    let separator = Doc::Seq(vec![Doc::text(separator), Doc::Group(vec![Doc::Line(" ")])]);
    Doc::Nest(vec![Doc::Group(vec![Doc::join(&separator, docs)])])
}

/// A text up to where something is in memory; an address that is struck out with `X` stays.
fn without_address(text: &str) -> &str {
    match text.rsplit_once(" at 0x") {
        Some((name, address)) if !address.starts_with('X') => name,
        _ => text,
    }
}

/// The `name` parameter of an equation and the programs that its text shows.
fn printed_programs(e: &Eqn) -> (Option<String>, Vec<JaxprRef>) {
    fn collect(p: &Param, out: &mut Vec<JaxprRef>) {
        match p {
            Param::Text(_) => {}
            Param::Jaxpr(j) => out.push(j.clone()),
            Param::Tuple(items) => items.iter().for_each(|i| collect(i, out)),
        }
    }
    let (mut name, mut inner) = (None, Vec::new());
    for (key, p) in &e.op.print_params() {
        match p {
            Param::Text(t) if *key == "name" => name = Some(t.trim_matches(['<', '>']).to_owned()),
            p => collect(p, &mut inner),
        }
    }
    (name, inner)
}

/// The values of a program's constants and of those inside of it, in the order in which [`crate::parse`] meets them.
pub fn printed_consts(j: &Jaxpr) -> Vec<Array> {
    fn collect(j: &Jaxpr, seen: &mut FxHashSet<Id>, out: &mut Vec<Array>) {
        out.extend(j.consts.iter().cloned());
        for e in j.eqns.iter().filter(|e| !e.op.subjaxprs().is_empty()) {
            for inner in printed_programs(e).1 {
                // a program that is met again was printed once, by itself
                if seen.insert(&raw const *inner) {
                    collect(&inner, seen, out);
                }
            }
        }
    }
    let mut out = Vec::new();
    collect(j, &mut FxHashSet::default(), &mut out);
    out
}
