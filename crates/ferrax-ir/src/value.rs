//! What operations take and give: a concrete array, a tracer, or a Python-like scalar.

use crate::array::Array;
use crate::trace::Tracer;
use ferrax_base::{Aval, DType, Result, Scalar, Shape};
use smallvec::SmallVec;

/// Results of an operation; nearly always one.
pub type Values = SmallVec<[Value; 1]>;
/// Avals of an operation's results.
pub type Avals = SmallVec<[Aval; 1]>;
/// Tangents of an operation's results; `None` is a symbolic zero.
pub type Tangents = SmallVec<[Option<Value>; 1]>;

/// A rank-0 constant that needs no buffer: a Python scalar, or a constant of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lit {
    /// The number.
    pub scalar: Scalar,
    /// Whether its dtype yields to others in promotion.
    pub weak: bool,
}

/// What operations take and give.
#[derive(Clone)]
pub enum Value {
    /// Data.
    Array(Array),
    /// A stand-in under a transformation.
    Tracer(Tracer),
    /// A rank-0 constant.
    Lit(Lit),
}

impl Value {
    /// A strongly typed rank-0 constant.
    pub fn scalar(s: Scalar) -> Value {
        Value::Lit(Lit { scalar: s, weak: false })
    }

    /// A strongly typed float constant.
    pub fn float(dtype: DType, v: f64) -> Value {
        Value::scalar(Scalar::from_f64(dtype, v))
    }

    /// A strongly typed integer constant.
    pub fn int(dtype: DType, v: i64) -> Value {
        Value::scalar(Scalar::from_i64(dtype, v))
    }

    /// Shape, dtype and weak type; over explicit axes of a mesh, also how they divide it.
    pub fn aval(&self) -> Aval {
        match self {
            Value::Array(a) => crate::spread::typed(a.aval().clone(), a.device()),
            Value::Tracer(t) => t.aval().clone(),
            Value::Lit(l) => Aval { shape: Shape::new(), dtype: l.scalar.dtype, weak: l.weak, vary: 0, spread: 0 },
        }
    }

    /// The number that it is, now or in the program being recorded.
    pub fn literal(&self) -> Option<Lit> {
        match self {
            Value::Lit(l) => Some(*l),
            Value::Tracer(t) => t.literal(),
            Value::Array(_) => None,
        }
    }

    /// Dimensions.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        match self {
            Value::Array(a) => &a.aval().shape,
            Value::Tracer(t) => &t.aval().shape,
            Value::Lit(_) => &[],
        }
    }

    /// Number of axes.
    #[inline]
    pub fn rank(&self) -> usize {
        self.shape().len()
    }

    /// Number of elements.
    pub fn size(&self) -> usize {
        ferrax_base::shape::size(self.shape())
    }

    /// Element type.
    #[inline]
    pub fn dtype(&self) -> DType {
        match self {
            Value::Array(a) => a.aval().dtype,
            Value::Tracer(t) => t.aval().dtype,
            Value::Lit(l) => l.scalar.dtype,
        }
    }

    /// Whether the dtype yields to others in promotion.
    #[inline]
    pub fn weak(&self) -> bool {
        match self {
            Value::Array(a) => a.aval().weak,
            Value::Tracer(t) => t.aval().weak,
            Value::Lit(l) => l.weak,
        }
    }

    /// The tracer, if it is one.
    pub fn as_tracer(&self) -> Option<&Tracer> {
        match self {
            Value::Tracer(t) => Some(t),
            _ => None,
        }
    }

    /// The data of a concrete value; `None` for tracers.
    pub fn to_array(&self) -> Option<Result<Array>> {
        match self {
            Value::Array(a) => Some(Ok(a.clone())),
            Value::Lit(l) => Some(Array::from_scalar(l.scalar, l.weak)),
            Value::Tracer(_) => None,
        }
    }
}

impl From<Array> for Value {
    fn from(a: Array) -> Self {
        Value::Array(a)
    }
}

/// A weakly typed constant, as a Python `float` is.
impl From<f32> for Value {
    fn from(v: f32) -> Self {
        Value::Lit(Lit { scalar: Scalar::from_f64(DType::F32, f64::from(v)), weak: true })
    }
}

/// A weakly typed constant, as a Python `int` is.
impl From<i32> for Value {
    fn from(v: i32) -> Self {
        Value::Lit(Lit { scalar: Scalar::from_i64(DType::I32, i64::from(v)), weak: true })
    }
}

impl From<Tracer> for Value {
    fn from(t: Tracer) -> Self {
        Value::Tracer(t)
    }
}

impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Array(a) => a.fmt(f),
            Value::Tracer(t) => t.fmt(f),
            Value::Lit(l) => write!(f, "{}:{}", l.scalar, self.aval()),
        }
    }
}
