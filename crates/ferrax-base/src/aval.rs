//! Abstract values: what is known of an array without its data.

use crate::dtype::DType;
use crate::shape::{self, Dim, Shape};
use crate::{Error, Result, error, symbolic};

/// Shape, dtype and weak type of an array (JAX's `ShapedArray`).
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Aval {
    /// Dimensions.
    pub shape: Shape,
    /// Element type.
    pub dtype: DType,
    /// Whether the dtype came from a Python scalar and yields to others in promotion.
    pub weak: bool,
    /// The manual mesh axes along which devices hold different values, one bit each (`ferrax_ir::manual`); of traced
    /// values under `shard_map` alone.
    pub vary: u32,
    /// How explicit axes of a mesh divide it (`ferrax_ir::spread`), zero where nobody says; of traced values alone.
    pub spread: u32,
}

impl Clone for Aval {
    // every result of every operation has one: `SmallVec`'s own clone goes element by element
    #[inline]
    fn clone(&self) -> Aval {
        let Aval { dtype, weak, vary, spread, .. } = *self;
        Aval { shape: Shape::from_slice(&self.shape), dtype, weak, vary, spread }
    }
}

impl Aval {
    /// A strongly typed aval.
    pub fn new(dtype: DType, dims: &[Dim]) -> Self {
        Aval { shape: Shape::from_slice(dims), dtype, weak: false, vary: 0, spread: 0 }
    }

    /// A strongly typed scalar.
    pub fn scalar(dtype: DType) -> Self {
        Aval::new(dtype, &[])
    }

    /// The same aval with another dtype.
    #[must_use]
    pub fn with_dtype(&self, dtype: DType) -> Self {
        Aval { dtype, ..self.clone() }
    }

    /// The same aval with another shape, of which nobody says how it is divided.
    #[must_use]
    pub fn with_shape(&self, dims: &[Dim]) -> Self {
        Aval { shape: Shape::from_slice(dims), dtype: self.dtype, weak: self.weak, vary: self.vary, spread: 0 }
    }

    /// The same aval with another weak type.
    #[must_use]
    pub fn with_weak(&self, weak: bool) -> Self {
        Aval { weak, ..self.clone() }
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Number of elements.
    pub fn size(&self) -> usize {
        shape::size(&self.shape)
    }

    /// Number of bytes in a host buffer.
    pub fn bytes(&self) -> usize {
        self.size().saturating_mul(self.dtype.size())
    }

    /// Errors when the array would be larger than memory can be.
    #[inline]
    pub fn check_bytes(&self) -> Result<()> {
        if symbolic::any(&self.shape) {
            return Ok(());
        }
        let bytes = shape::checked_size(&self.shape).and_then(|n| n.checked_mul(self.dtype.size()));
        if bytes.is_some_and(|b| isize::try_from(b).is_ok()) { Ok(()) } else { Err(self.too_large()) }
    }

    #[cold]
    fn too_large(&self) -> Error {
        error!(Memory, "an array of {} is larger than memory can be", self.long_text())
    }

    /// The aval tangents have: same shape, the dtype's tangent dtype.
    #[must_use]
    pub fn tangent(&self) -> Self {
        self.with_dtype(self.dtype.tangent())
    }

    /// `float32[2,3]`: the type with NumPy's dtype name, for messages.
    pub fn long_text(&self) -> String {
        let dims: Vec<String> = self.shape.iter().map(ToString::to_string).collect();
        format!("{}[{}]", self.dtype.name(), dims.join(","))
    }

    /// Same shape and dtype; weak types and what divides the axes may differ.
    pub fn same_type(&self, other: &Aval) -> bool {
        self.dtype == other.dtype && self.shape == other.shape
    }
}

/// Prints `f32[2,3]`, as jaxprs do; weakly typed avals print `f32[]{weak}` only in alternate form.
impl std::fmt::Display for Aval {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}[", self.dtype.short_name())?;
        for (i, d) in self.shape.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            write!(f, "{d}")?;
        }
        f.write_str("]")
    }
}
