//! The printed form of a Jaxpr, as JAX prints it.

use crate::jaxpr::{Atom, Jaxpr, Var};
use crate::params::Param;
use std::fmt;

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

fn typed(j: &Jaxpr, v: Var) -> String {
    format!("{}:{}", var_name(v.0 as usize), j.aval(v))
}

fn atom(a: &Atom) -> String {
    match a {
        Atom::Var(v) => var_name(v.0 as usize),
        Atom::Lit(l) => format!("{}:{}[]", l.scalar, l.scalar.dtype.short_name()),
    }
}

impl fmt::Display for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Param::Text(t) => f.write_str(t),
            Param::Jaxpr(j) => write!(f, "{}", **j),
            Param::Tuple(items) => {
                f.write_str("(")?;
                for (i, p) in items.iter().enumerate() {
                    write!(f, "{}{p}", if i > 0 { " " } else { "" })?;
                }
                f.write_str(")")
            }
        }
    }
}

impl fmt::Display for Jaxpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let vars = |vs: &[Var]| vs.iter().map(|&v| typed(self, v)).collect::<Vec<_>>().join(" ");
        write!(f, "{{ lambda {}; {}. let", vars(&self.constvars), vars(&self.invars))?;
        for e in &self.eqns {
            write!(f, "\n    {} = {}", vars(&e.outputs), e.op.name())?;
            let params = e.op.print_params();
            if !params.is_empty() {
                let text: Vec<String> = params.iter().map(|(k, v)| format!("{k}={v}")).collect();
                write!(f, "[{}]", text.join(" "))?;
            }
            for a in &e.inputs {
                write!(f, " {}", atom(a))?;
            }
        }
        let outs: Vec<String> = self.outvars.iter().map(atom).collect();
        write!(f, "\n  in ({}{}) }}", outs.join(", "), if outs.len() == 1 { "," } else { "" })
    }
}
