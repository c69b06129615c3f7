//! A pretty printer for documents whose line breaks depend on the width.
//!
//! A group prints on one line when what is inside it fits there (what follows the group does not count, as in
//! JAX's printer); otherwise the breaks directly inside it become newlines. Sources: Wadler, "A prettier
//! printer" (1998); Lindig, "Strictly Pretty" (2000).

/// A document.
#[derive(Clone, Debug)]
pub enum Doc {
    /// Printed as it is.
    Text(String),
    /// A newline, or this text when the enclosing group fits on its line.
    Line(&'static str),
    /// Two more columns of indentation for the newlines inside.
    Nest(Vec<Doc>),
    /// Fits on one line as a whole, or breaks.
    Group(Vec<Doc>),
    /// One after the other.
    Seq(Vec<Doc>),
}

impl Doc {
    /// Text.
    pub fn text(t: impl Into<String>) -> Doc {
        Doc::Text(t.into())
    }

    /// Documents with a separator between each two.
    pub fn join(separator: &Doc, docs: Vec<Doc>) -> Doc {
        let mut out = Vec::with_capacity(docs.len() * 2);
        for (i, d) in docs.into_iter().enumerate() {
            if i > 0 {
                out.push(separator.clone());
            }
            out.push(d);
        }
        Doc::Seq(out)
    }

    /// The text in lines of about `width` columns.
    pub fn render(&self, width: usize) -> String {
        let mut out = String::new();
        let mut column = 0;
        let mut stack = vec![(0usize, false, self)];
        while let Some((indent, flat, doc)) = stack.pop() {
            match doc {
                Doc::Text(t) => {
                    out.push_str(t);
                    column += columns(t);
                }
                Doc::Line(t) if flat => {
                    out.push_str(t);
                    column += t.len();
                }
                Doc::Line(_) => {
                    out.push('\n');
                    out.extend(std::iter::repeat_n(' ', indent));
                    column = indent;
                }
                Doc::Nest(docs) => stack.extend(docs.iter().rev().map(|d| (indent + 2, flat, d))),
                Doc::Seq(docs) => stack.extend(docs.iter().rev().map(|d| (indent, flat, d))),
                Doc::Group(docs) => {
                    let flat = flat || fits(docs, width as isize - column as isize);
                    stack.extend(docs.iter().rev().map(|d| (indent, flat, d)));
                }
            }
        }
        out
    }
}

fn columns(t: &str) -> usize {
    t.chars().count()
}

fn fits(docs: &[Doc], mut left: isize) -> bool {
    let mut stack: Vec<std::slice::Iter<'_, Doc>> = vec![docs.iter()];
    while left >= 0 {
        let Some(top) = stack.last_mut() else { return true };
        match top.next() {
            None => drop(stack.pop()),
            Some(Doc::Text(t)) => left -= columns(t) as isize,
            Some(Doc::Line(t)) => left -= t.len() as isize,
            Some(Doc::Nest(d) | Doc::Group(d) | Doc::Seq(d)) => stack.push(d.iter()),
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_break_when_they_do_not_fit() {
        let words = |n: usize| (0..n).map(|_| Doc::text("abc")).collect();
        let doc =
            |n| Doc::Group(vec![Doc::text("("), Doc::Nest(vec![Doc::join(&Doc::Line(" "), words(n))]), Doc::text(")")]);
        assert_eq!(doc(2).render(9), "(abc abc)");
        assert_eq!(doc(2).render(8), "(abc\n  abc)");
    }
}
