//! Symbolic sizes of axes: numbers that stand for expressions of variables.
//!
//! A program may be traced for sizes that are open until it is called. Such a size is a `usize` that no array can have,
//! the code of an expression which the host keeps ([`Algebra`]): equal expressions have one code, so shapes compare and
//! hash as always. Codes are scattered over their range, so that what comes of calculating with one as if it were a
//! number is no code, and is found ([`is_known`]). Rules that calculate with sizes use the functions of this module;
//! for plain numbers they cost a comparison. Programs with symbolic sizes are never compiled: the host puts numbers in
//! their place first. Read next: `python/ferrax/_symbolic`.

use crate::shape::Dim;
use crate::{Error, Result, error};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the highest 16 bits of a code are.
const MARK: u64 = 0x5A5A;
/// The lower bits of a code.
const LOW: u64 = (1 << 48) - 1;
/// Numbers of expressions are scattered by this factor; its inverse for 48 bits.
const SCATTER: (u64, u64) = (0x9E37_79B9_7F4B, inverse(0x9E37_79B9_7F4B));
/// How many expressions there are.
static COUNT: AtomicU64 = AtomicU64::new(0);
static ALGEBRA: OnceLock<Box<dyn Algebra>> = OnceLock::new();

/// The inverse of an odd number in 48 bits, by Newton's iteration.
const fn inverse(a: u64) -> u64 {
    let mut x = a;
    let mut k = 0;
    while k < 6 {
        x = x.wrapping_mul(2u64.wrapping_sub(a.wrapping_mul(x)));
        k += 1;
    }
    x & LOW
}

/// What is calculated with sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// a + b
    Add,
    /// a - b
    Sub,
    /// a * b
    Mul,
    /// The whole part of a / b, rounded down.
    Div,
    /// The rest of that.
    Rem,
    /// The larger one.
    Max,
    /// The smaller one.
    Min,
}

/// The host's expressions behind the codes.
pub trait Algebra: Send + Sync {
    /// A number or the code of the result.
    fn apply(&self, operation: Operation, a: i64, b: i64) -> Result<i64>;
    /// Whether a >= b; an error where that depends on the variables.
    fn at_least(&self, a: i64, b: i64) -> Result<bool>;
    /// An expression as text.
    fn text(&self, code: i64) -> String;
}

/// Says who keeps the expressions; the first one stays.
pub fn set_algebra(algebra: Box<dyn Algebra>) {
    // a second import of the host's module brings the same expressions
    let _ = ALGEBRA.set(algebra);
}

fn algebra() -> Result<&'static dyn Algebra> {
    ALGEBRA
        .get()
        .map(|a| &**a)
        .ok_or_else(|| error!(Internal, "a symbolic size without anybody who keeps its expression"))
}

/// The code of the next expression, and its number from 0 up.
pub fn new_code() -> (i64, usize) {
    let number = COUNT.fetch_add(1, Ordering::AcqRel);
    ((MARK << 48 | number.wrapping_mul(SCATTER.0) & LOW) as i64, number as usize)
}

/// The number of the expression that a code is of.
pub fn number_of(code: i64) -> Option<usize> {
    let code = code as u64;
    let number = (code & LOW).wrapping_mul(SCATTER.1) & LOW;
    (code >> 48 == MARK && number < COUNT.load(Ordering::Acquire)).then_some(number as usize)
}

/// Whether a size is symbolic.
#[inline]
pub fn is_symbolic(size: Dim) -> bool {
    size as u64 >> 48 == MARK
}

/// Whether one of the sizes is symbolic.
#[inline]
pub fn any(shape: &[Dim]) -> bool {
    shape.iter().any(|&d| is_symbolic(d))
}

/// Whether a size is a number, or the code of an expression: not what comes of calculating with codes, once there are any.
#[inline]
pub fn is_known(size: Dim) -> bool {
    (size as u64) < 1 << 56 || COUNT.load(Ordering::Acquire) == 0 || number_of(size as i64).is_some()
}

/// A size as text: the expression of a code.
pub fn text(size: i64) -> String {
    match number_of(size).and(ALGEBRA.get()) {
        Some(algebra) => algebra.text(size),
        None => size.to_string(),
    }
}

/// The text with expressions in place of their codes.
pub fn named(text: String) -> String {
    if COUNT.load(Ordering::Acquire) == 0 || !text.contains("651") {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let digits = rest[at..].find(|c: char| !c.is_ascii_digit()).map_or(rest.len(), |n| at + n);
        out.push_str(&rest[..at]);
        match rest[at..digits].parse::<i64>() {
            Ok(n) if number_of(n).is_some() => out.push_str(&self::text(n)),
            _ => out.push_str(&rest[at..digits]),
        }
        rest = &rest[digits..];
    }
    out.push_str(rest);
    out
}

#[inline]
fn either(a: i64, b: i64) -> bool {
    is_symbolic(a as usize) || is_symbolic(b as usize)
}

/// The result of an operation on numbers of which some may be symbolic; the nearest number where it does not fit.
#[inline]
pub fn apply(operation: Operation, a: i64, b: i64) -> Result<i64> {
    if either(a, b) {
        return algebra()?.apply(operation, a, b);
    }
    Ok(match operation {
        Operation::Add => a.saturating_add(b),
        Operation::Sub => a.saturating_sub(b),
        Operation::Mul => a.saturating_mul(b),
        Operation::Div => a.div_euclid(b),
        Operation::Rem => a.rem_euclid(b),
        Operation::Max => a.max(b),
        Operation::Min => a.min(b),
    })
}

/// Whether a >= b; an error where that depends on the variables.
#[inline]
pub fn at_least(a: i64, b: i64) -> Result<bool> {
    if either(a, b) { algebra()?.at_least(a, b) } else { Ok(a >= b) }
}

/// The sum of numbers less others.
pub fn difference(sum: &[i64], less: &[i64]) -> Result<i64> {
    let total = sum.iter().try_fold(0, |n, &a| apply(Operation::Add, n, a))?;
    less.iter().try_fold(total, |n, &a| apply(Operation::Sub, n, a))
}

/// As [`apply`], for sizes of axes.
#[inline]
pub fn dims(operation: Operation, a: Dim, b: Dim) -> Result<Dim> {
    if either(a as i64, b as i64) {
        return Ok(algebra()?.apply(operation, a as i64, b as i64)? as Dim);
    }
    Ok(match operation {
        Operation::Add => a.saturating_add(b),
        Operation::Sub => a.saturating_sub(b),
        Operation::Mul => a.saturating_mul(b),
        Operation::Div => a / b,
        Operation::Rem => a % b,
        Operation::Max => a.max(b),
        Operation::Min => a.min(b),
    })
}

/// Whether a size is at least another one; an error where that depends on the variables.
#[inline]
pub fn dim_at_least(a: Dim, b: Dim) -> Result<bool> {
    if either(a as i64, b as i64) { algebra()?.at_least(a as i64, b as i64) } else { Ok(a >= b) }
}

/// Whether all sizes are at least those of another shape, as far as is known: where that depends on the variables, it is
/// asked again when they have numbers.
pub fn all_at_least(shape: &[Dim], least: &[Dim]) -> bool {
    shape.iter().zip(least).all(|(&a, &b)| dim_at_least(a, b).unwrap_or(true))
}

/// The error of what takes sizes for numbers.
#[cold]
pub fn unsupported(what: &str) -> Error {
    error!(NotImplemented, "{what} is not implemented for symbolic sizes of axes")
}

/// Errors where a size is symbolic, for rules that take as many steps as it says.
pub fn check_number(what: &str, sizes: &[Dim]) -> Result<()> {
    if any(sizes) { Err(unsupported(what)) } else { Ok(()) }
}

/// The product or sum of sizes; the largest number where they are no sizes of one program.
#[cold]
pub(crate) fn fold(operation: Operation, start: Dim, mut sizes: impl Iterator<Item = Dim>) -> Dim {
    sizes.try_fold(start, |n, d| dims(operation, n, d)).unwrap_or(usize::MAX)
}

/// The least number that is a code.
pub const LEAST: usize = (MARK << 48) as usize;
/// The largest one.
pub const LARGEST: usize = LEAST + LOW as usize;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_found_and_what_is_calculated_with_them_is_not() {
        let codes: Vec<i64> = (0..100).map(|_| new_code().0).collect();
        for (k, &code) in codes.iter().enumerate() {
            assert!(is_symbolic(code as usize) && is_known(code as usize));
            assert_eq!(number_of(code).unwrap() - number_of(codes[0]).unwrap(), k);
            for other in [code + 1, code - 1, code.wrapping_mul(2), code / 2, code - codes[(k + 1) % 100]] {
                assert_eq!(number_of(other), None, "{other}");
            }
        }
        assert!(is_known(0) && is_known(1 << 50) && !is_known(codes[0] as usize / 2) && !is_symbolic(1 << 40));
    }

    #[test]
    fn numbers_are_calculated_with_as_always() {
        let of = |op, a, b| apply(op, a, b).unwrap();
        assert_eq!((of(Operation::Add, 2, 3), of(Operation::Sub, 2, 3), of(Operation::Mul, 2, 3)), (5, -1, 6));
        assert_eq!((of(Operation::Div, 7, 2), of(Operation::Rem, 7, 2)), (3, 1));
        assert_eq!((of(Operation::Max, 7, 2), of(Operation::Min, 7, 2)), (7, 2));
        assert!(at_least(3, 3).unwrap() && !at_least(2, 3).unwrap());
        assert_eq!(named("a 5 of 65".to_string()), "a 5 of 65");
    }
}
