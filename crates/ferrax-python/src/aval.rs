//! `ShapedArray`: shape, dtype and weak type of a value, as Python sees them (`jax.typeof(x)`, `x.aval`).

use crate::dtypes;
use crate::symbolic::{shape_tuple, size_object};
use crate::tracer::LongAval;
use crate::value::ShapeArg;
use ferrax_base::Aval;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::hash::{Hash, Hasher};

/// Shape, dtype and weak type of an array.
#[pyclass(subclass, frozen, eq, hash, module = "ferrax.core", name = "ShapedArray", from_py_object)]
#[derive(Clone, PartialEq, Eq)]
pub struct ShapedArray(pub Aval);

impl Hash for ShapedArray {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

#[pymethods]
impl ShapedArray {
    #[new]
    #[pyo3(signature = (shape, dtype, weak_type=false, *, sharding=None, manual_axis_type=None, memory_space=None))]
    fn new(
        shape: ShapeArg,
        dtype: &Bound<'_, PyAny>,
        weak_type: bool,
        sharding: Option<&Bound<'_, PyAny>>,
        manual_axis_type: Option<&Bound<'_, PyAny>>,
        memory_space: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        // a type says nothing of memory
        let _ = (manual_axis_type, memory_space);
        let dtype = dtypes::parse(dtype, "ShapedArray")?.dtype;
        let spread = spread_of(sharding, &shape.0)?;
        Ok(ShapedArray(Aval { shape: shape.0, dtype, weak: weak_type, vary: 0, spread }))
    }

    /// Sizes of the axes.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        shape_tuple(py, &self.0.shape)
    }

    /// Element type.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dtypes::to_object(py, self.0.dtype)
    }

    /// Whether the dtype yields to others in promotion.
    #[getter]
    fn weak_type(&self) -> bool {
        self.0.weak
    }

    /// Number of axes.
    #[getter]
    fn ndim(&self) -> usize {
        self.0.rank()
    }

    /// Number of elements.
    #[getter]
    fn size<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        size_object(py, self.0.size())
    }

    /// Bytes of one element.
    #[getter]
    fn itemsize(&self) -> usize {
        self.0.dtype.size()
    }

    /// Bytes of all elements.
    #[getter]
    fn nbytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        size_object(py, self.0.size())?.mul(self.0.dtype.size())
    }

    /// Manual mesh axes over which the value varies; of traced values under `shard_map` alone.
    #[getter]
    fn vma<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyFrozenSet>> {
        if self.0.vary == 0 {
            return pyo3::types::PyFrozenSet::empty(py);
        }
        let names = ferrax_ir::manual::names(self.0.vary);
        pyo3::types::PyFrozenSet::new(py, names.iter().map(|n| &**n))
    }

    /// The number of how explicit axes of a mesh divide it; zero where nobody says.
    #[getter]
    fn _spread(&self) -> u32 {
        self.0.spread
    }

    /// `float32[3]`, or `f32[3]` with `short_dtypes`.
    #[pyo3(signature = (short_dtypes=false, mesh_axis_types=false))]
    fn str_short(&self, short_dtypes: bool, mesh_axis_types: bool) -> String {
        let _ = mesh_axis_types; // axes are shown by their names
        if short_dtypes {
            ferrax_base::symbolic::named(ferrax_ir::spread::text(&self.0))
        } else {
            LongAval(&self.0.with_weak(false)).to_string()
        }
    }

    /// The same without the weak type.
    fn strip_weak_type(&self) -> Self {
        ShapedArray(self.0.with_weak(false))
    }

    /// The same with another weak type.
    fn update_weak_type(&self, weak_type: bool) -> Self {
        ShapedArray(self.0.with_weak(weak_type))
    }

    /// The type of tangents of such values.
    fn to_tangent_aval(&self) -> Self {
        ShapedArray(self.0.tangent())
    }

    /// The type of cotangents of such values.
    fn to_ct_aval(&self) -> Self {
        ShapedArray(self.0.tangent())
    }

    /// The same with some fields replaced.
    #[pyo3(signature = (shape=None, dtype=None, weak_type=None, sharding=None))]
    fn update(
        &self,
        shape: Option<ShapeArg>,
        dtype: Option<&Bound<'_, PyAny>>,
        weak_type: Option<bool>,
        sharding: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let sizes = shape.as_ref().map_or(&self.0.shape, |s| &s.0);
        let kept = if sizes.len() == self.0.rank() { self.0.spread } else { 0 };
        let spread = if sharding.is_some() { spread_of(sharding, sizes)? } else { kept };
        let dtype = dtype.map(|d| dtypes::parse(d, "ShapedArray.update")).transpose()?;
        Ok(ShapedArray(Aval {
            shape: shape.map_or_else(|| self.0.shape.clone(), |s| s.0),
            dtype: dtype.map_or(self.0.dtype, |d| d.dtype),
            weak: weak_type.unwrap_or(self.0.weak),
            vary: self.0.vary,
            spread,
        }))
    }

    fn __repr__(&self) -> String {
        let strong = self.0.with_weak(false);
        format!("ShapedArray({}{})", LongAval(&strong), if self.0.weak { ", weak_type=True" } else { "" })
    }

    fn __str__(&self) -> String {
        LongAval(&self.0).to_string()
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        match self.0.shape.first() {
            Some(&first) => size_object(py, first)?.extract(),
            None => Err(pyo3::exceptions::PyTypeError::new_err("len() of unsized object")),
        }
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let kwargs = PyDict::new(py);
        kwargs.set_item("weak_type", self.0.weak)?;
        if self.0.spread != 0 {
            let module = py.import("ferrax.sharding._typed")?;
            kwargs.set_item("sharding", module.call_method1("sharding_of", (self.0.spread,))?)?;
        }
        let args = (self.shape(py)?, self.dtype(py)?).into_pyobject(py)?;
        Ok((args, kwargs))
    }
}

/// The number of a sharding over explicit axes in the type of an array of a shape; zero for others.
pub fn spread_of(sharding: Option<&Bound<'_, PyAny>>, shape: &[usize]) -> PyResult<u32> {
    let Some(sharding) = sharding.filter(|s| !s.is_none()) else { return Ok(0) };
    let module = sharding.py().import("ferrax.sharding._typed")?;
    module.call_method1("of_sharding", (sharding, shape.len(), shape.to_vec()))?.extract()
}

/// Adds the class to the extension module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<ShapedArray>()
}
