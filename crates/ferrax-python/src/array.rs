//! The array classes of Python: `Array` (the base that users test for), `ArrayImpl` (data), `PRNGKeyArray`.
//!
//! One Rust struct holds the value for every class, tracers included, so that slots and properties are written
//! once; subclasses only say what a value is called. Methods of the long tail (`x.mean`, `x.reshape`, …) are
//! attached from Python.
//!
//! Read next: `host.rs` for NumPy, buffers and numbers; `tracer.rs` for tracers.

use crate::aval::ShapedArray;
use crate::devices::{self, SingleDeviceSharding};
use crate::errors::IntoPyResult;
use crate::indexing::{self, IndexUpdateHelper};
use crate::rows::Rows;
use crate::{dlpack, dtypes, host, numpy_interop, objects, sharded, tracer, ufunc};
use ferrax::numpy as np;
use ferrax_base::DType;
use ferrax_ir::{Array, Lit, Tracer, Value};
use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyAttributeError, PyNotImplementedError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PySet, PyTuple};
use pyo3::{PyTypeInfo, ffi, intern};
use std::ffi::c_int;
use std::sync::atomic::AtomicUsize;

/// An array, or a traced stand-in for one.
///
/// Arrays are immutable; `x.at[index].set(value)` gives a changed copy. They are made by the functions of
/// `ferrax.numpy` and `ferrax.random`, and NumPy takes them without a copy.
///
/// >>> import ferrax
/// >>> isinstance(ferrax.numpy.arange(3), ferrax.Array)
/// True
#[pyclass(frozen, subclass, weakref, module = "ferrax", name = "Array")]
pub struct PyArray {
    /// What it stands for.
    pub value: Value,
}

/// An array with data.
#[pyclass(frozen, dict, extends = PyArray, module = "ferrax", name = "ArrayImpl")]
pub struct ArrayImpl;

/// An array of typed PRNG keys.
#[pyclass(frozen, dict, extends = PyArray, module = "ferrax.random", name = "PRNGKeyArray")]
pub struct KeyArray;

/// The Python object of a value.
#[inline]
pub fn wrap(py: Python<'_>, value: Value) -> PyResult<Bound<'_, PyAny>> {
    match value {
        Value::Array(a) => wrap_array(py, a),
        Value::Tracer(t) => tracer::wrap(py, t),
        Value::Lit(l) => match ferrax_ir::trace::made(value).py()? {
            Value::Tracer(t) => tracer::wrap(py, t),
            _ => wrap_number(py, &l),
        },
    }
}

/// The Python object of a number, also where a function is traced.
pub fn wrap_number<'py>(py: Python<'py>, number: &Lit) -> PyResult<Bound<'py, PyAny>> {
    wrap_array(py, ferrax::dispatch::scalar_array(number).py()?)
}

/// The Python object of an array.
#[inline]
pub fn wrap_array(py: Python<'_>, a: Array) -> PyResult<Bound<'_, PyAny>> {
    let dtype = a.aval().dtype;
    if dtype == DType::Float0 {
        return numpy_interop::float0_zeros(py, &a.aval().shape);
    }
    let value = PyArray { value: Value::Array(a) };
    Ok(match dtype {
        DType::KeyFry => Bound::new(py, PyClassInitializer::from(value).add_subclass(KeyArray))?.into_any(),
        _ => objects::fresh(py, value)?,
    })
}

impl PyArray {
    /// The data; an error that names `what` for tracers.
    fn data(&self, what: &str) -> PyResult<&Array> {
        match &self.value {
            Value::Array(a) => Ok(a),
            Value::Tracer(t) => Err(tracer::no_such_data(t, what)),
            Value::Lit(_) => Err(PyRuntimeError::new_err("a constant stands where an array must be")),
        }
    }

    fn tracer(&self) -> Option<&Tracer> {
        self.value.as_tracer()
    }

    /// Errors for traced values, which methods about memory and time say nothing of.
    fn concrete_only(&self, method: &str) -> PyResult<()> {
        match &self.value {
            v @ Value::Tracer(_) => Err(tracer::unless_leaked(v, || {
                PyAttributeError::new_err(format!(
                    "The '{method}' method is not available on a traced array of type {}: what is traced runs later. \
                     Call it on what the transformed function returns.",
                    v.aval().long_text()
                ))
            })),
            _ => Ok(()),
        }
    }

    /// Waits until the elements are there; tracers have nothing to wait for.
    pub fn wait(&self) -> PyResult<()> {
        match &self.value {
            Value::Array(a) => a.block_until_ready().py(),
            _ => Ok(()),
        }
    }
}

fn no_modulo(modulo: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    match modulo {
        Some(m) if !m.is_none() => Err(PyTypeError::new_err("pow() of arrays takes no modulo")),
        _ => Ok(()),
    }
}

#[pymethods]
impl PyArray {
    #[classattr]
    #[allow(non_upper_case_globals)]
    const __array_priority__: i32 = 100;

    /// Sizes of the axes.
    ///
    /// >>> import ferrax.numpy as jnp
    /// >>> jnp.ones((2, 3)).shape
    /// (2, 3)
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        crate::symbolic::shape_tuple(py, self.value.shape())
    }

    /// Type of the elements, a NumPy dtype.
    ///
    /// >>> import ferrax.numpy as jnp
    /// >>> jnp.ones(2).dtype
    /// dtype('float32')
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dtypes::to_object(py, self.value.dtype())
    }

    /// Number of axes.
    #[getter]
    fn ndim(&self) -> usize {
        self.value.rank()
    }

    /// Number of elements.
    #[getter]
    fn size<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        crate::symbolic::size_object(py, self.value.size())
    }

    /// Bytes of one element.
    #[getter]
    fn itemsize(&self) -> usize {
        self.value.dtype().size()
    }

    /// Bytes of all elements.
    #[getter]
    fn nbytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.size(py)?.mul(self.value.dtype().size())
    }

    /// Whether the dtype yields to others in promotion, as that of a Python number does.
    #[getter]
    fn weak_type(&self) -> bool {
        self.value.weak()
    }

    /// Shape, dtype and weak type as one object.
    #[getter]
    fn aval(&self) -> ShapedArray {
        ShapedArray(self.value.aval())
    }

    /// The device that holds the elements, the sharding where several do; not there on traced arrays.
    #[getter]
    fn device<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match &self.value {
            Value::Tracer(t) => {
                let name = tracer::class(t).name();
                Err(pyo3::exceptions::PyAttributeError::new_err(format!("{name} has no attribute device")))
            }
            _ => sharded::any_object(py, self.data("device")?.device()),
        }
    }

    /// The set of devices that hold the elements.
    fn devices<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PySet>> {
        let id = self.data("The devices() method was called on")?.device();
        let all = id.devices().iter().map(|&d| devices::object(py, d)).collect::<PyResult<Vec<_>>>()?;
        PySet::new(py, all)
    }

    /// How the elements are placed on devices; not there on traced arrays.
    #[getter]
    fn sharding<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(t) = self.tracer() {
            return Err(pyo3::exceptions::PyAttributeError::new_err(format!(
                "The 'sharding' attribute is not available on {}. To query sharding information on tracers, use \
                 `jax.typeof(x)`.",
                tracer::error_repr(t)
            )));
        }
        let device = self.data("sharding")?.device();
        match sharded::object(py, device)? {
            Some(object) => Ok(object),
            None => Ok(Bound::new(py, SingleDeviceSharding { device, memory: devices::Memory::default() })?.into_any()),
        }
    }

    /// Whether the array was put on its device on purpose, as `device_put` with a device does, and stays there.
    #[getter]
    fn committed(&self) -> PyResult<bool> {
        Ok(self.data("The 'committed' attribute is not available on")?.committed())
    }

    #[getter]
    fn _committed(&self) -> PyResult<bool> {
        self.committed()
    }

    /// Whether this process can read all elements.
    #[getter]
    fn is_fully_addressable(&self) -> PyResult<bool> {
        let devices = self.data("The is_fully_addressable property was called on")?.device().devices();
        devices.iter().try_fold(true, |own, d| Ok(own && ferrax::device::is_own(*d).py()?))
    }

    /// Whether each device of the array holds all elements.
    #[getter]
    fn is_fully_replicated(&self, py: Python<'_>) -> PyResult<bool> {
        let device = self.data("The is_fully_replicated property was called on")?.device();
        match sharded::object(py, device)? {
            Some(object) => object.getattr(intern!(py, "is_fully_replicated"))?.extract(),
            None => Ok(true),
        }
    }

    /// The parts of the array that this process can read, one for each device.
    #[getter]
    fn addressable_shards<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().data("The 'addressable_shards' attribute is not available on")?;
        slf.py().import("ferrax.sharding._shards")?.call_method1("shards", (slf,))
    }

    /// The parts of the array on all devices of all processes.
    #[getter]
    fn global_shards<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().data("The global_shards property was called on")?;
        slf.py().import("ferrax.sharding._shards")?.call_method1("global_shards", (slf,))
    }

    /// The part of the array that the device of this number holds.
    fn addressable_data<'py>(slf: &Bound<'py, Self>, index: isize) -> PyResult<Bound<'py, PyAny>> {
        slf.get().data("The addressable_data() method was called on")?;
        Self::addressable_shards(slf)?.get_item(index)?.getattr("data")
    }

    #[getter]
    fn _value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.__array__(py, None, None, None)
    }

    #[getter]
    fn _sharding<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.getattr(intern!(slf.py(), "sharding"))
    }

    /// The parts, one for each device; None once the memory was given up.
    #[getter]
    fn _arrays<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        if slf.get().is_deleted()? {
            return Ok(slf.py().None().into_bound(slf.py()));
        }
        let shards = Self::addressable_shards(slf)?.try_iter()?;
        let data: Vec<_> = shards.map(|s| s?.getattr(intern!(slf.py(), "data"))).collect::<PyResult<_>>()?;
        Ok(pyo3::types::PyList::new(slf.py(), data)?.into_any())
    }

    /// Whether the memory was given up: by `delete`, or by donation to a compiled function.
    fn is_deleted(&self) -> PyResult<bool> {
        Ok(self.data("The is_deleted() method was called on")?.is_deleted())
    }

    /// Whether the elements are computed; does not wait.
    fn is_ready(&self) -> PyResult<bool> {
        self.data("The is_ready() method was called on").map(Array::is_ready)
    }

    /// Gives up the memory now; using the array afterwards is an error.
    fn delete(&self) -> PyResult<()> {
        let a = self.data("The delete() method was called on")?;
        if !a.is_deleted() {
            a.delete();
        }
        Ok(())
    }

    /// Waits until the elements are computed; gives the array itself.
    ///
    /// >>> import ferrax.numpy as jnp
    /// >>> jnp.ones(2).block_until_ready()
    /// Array([1., 1.], dtype=float32)
    fn block_until_ready<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        slf.get().concrete_only("block_until_ready")?;
        slf.get().wait().map(|()| slf.clone())
    }

    /// Begins to copy the elements to the host, without waiting; on the CPU they are there already.
    fn copy_to_host_async(&self) -> PyResult<()> {
        self.concrete_only("copy_to_host_async")?;
        match &self.value {
            Value::Array(a) => a.reserve().py().map(drop),
            _ => Ok(()),
        }
    }

    /// Bytes that the elements take on their device.
    fn on_device_size_in_bytes(&self) -> PyResult<usize> {
        Ok(self.data("The on_device_size_in_bytes() method was called on")?.aval().bytes())
    }

    /// Address of the elements in memory, valid while the array is neither deleted nor freed.
    fn unsafe_buffer_pointer(&self) -> PyResult<usize> {
        let a = self.data("The unsafe_buffer_pointer() method was called on")?;
        host::on_cpu(a, "unsafe_buffer_pointer()")?;
        Ok(a.pin().py()?.as_ptr() as usize)
    }

    /// Where the array was made, where that is recorded; `None` here.
    #[getter]
    fn traceback<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.data("The traceback property was called on")?;
        Ok(py.None().into_bound(py))
    }

    /// Not there, as in JAX: `x.flatten()` gives the elements in one axis.
    #[getter]
    fn flat(&self) -> PyResult<()> {
        Err(PyNotImplementedError::new_err(
            "JAX Arrays do not implement the arr.flat property: consider arr.flatten() instead.",
        ))
    }

    // ---- numbers --------------------------------------------------------------------------------------------------

    fn __bool__(&self) -> PyResult<bool> {
        host::truth(&self.value)
    }

    fn __int__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        host::int(py, &self.value)
    }

    fn __float__(&self, py: Python<'_>) -> PyResult<f64> {
        host::float(py, &self.value)
    }

    fn __complex__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        host::complex(py, &self.value)
    }

    fn __index__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        host::index(py, &self.value)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        match self.value.shape().first() {
            Some(&n) => crate::symbolic::size_object(py, n)?.extract(),
            None => Err(tracer::unless_leaked(&self.value, || PyTypeError::new_err("len() of unsized object"))),
        }
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Rows>> {
        if slf.get().value.rank() == 0 {
            let error = || PyTypeError::new_err("iteration over a 0-d array");
            return Err(tracer::unless_leaked(&slf.get().value, error));
        }
        // rows of a symbolic number cannot be gone through: its length is an error
        let _ = slf.get().__len__(slf.py())?;
        Bound::new(slf.py(), Rows { of: slf.clone().unbind(), next: AtomicUsize::new(0) })
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        indexing::getitem(slf, index)
    }

    fn __setitem__(&self, index: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let _ = (index, value);
        Err(indexing::immutable())
    }

    fn __delitem__(&self, index: &Bound<'_, PyAny>) -> PyResult<()> {
        let _ = index;
        Err(PyAttributeError::new_err(
            "__delitem__: arrays are immutable, and del x[i] cannot take entries out of one. Make another array with x = \
             jnp.delete(x, i).",
        ))
    }

    /// Functional updates: `x.at[index].set(values)` is `x` with other values at the index; `x` stays as it is.
    ///
    /// Indices are those of `x[index]`: integers, slices, arrays, masks. What each method gives is what the statement
    /// beside it would leave in a NumPy array:
    ///
    ///     x.at[i].set(y)        x[i] = y
    ///     x.at[i].add(y)        x[i] += y, once for each time that i names an entry
    ///     x.at[i].subtract(y)   x[i] -= y
    ///     x.at[i].multiply(y)   x[i] *= y; also `mul`
    ///     x.at[i].divide(y)     x[i] /= y
    ///     x.at[i].power(y)      x[i] **= y
    ///     x.at[i].min(y)        x[i] = minimum(x[i], y)
    ///     x.at[i].max(y)        x[i] = maximum(x[i], y)
    ///     x.at[i].apply(f)      x[i] = f(x[i])
    ///     x.at[i].get()         the entries x[i]
    ///
    /// Each takes `indices_are_sorted` and `unique_indices` (promises that make it faster), `mode` and
    /// `wrap_negative_indices` (whether -1 is the last entry). The `mode` says what becomes of indices out of bounds:
    ///
    /// * `"drop"`: updates there are left out. It is what updates do where no mode is given.
    /// * `"clip"`: the entry at the nearest end is meant. It is what `get` does where no mode is given.
    /// * `"fill"`: `get` gives `fill_value` (NaN, or the least or greatest integer), and updates are left out.
    /// * `"promise_in_bounds"`: there are none; anything may come out otherwise.
    ///
    /// Under `jit` an update of an array that is not needed afterwards takes place in its memory.
    ///
    /// >>> import ferrax.numpy as jnp
    /// >>> x = jnp.arange(4)
    /// >>> x.at[1].set(10)
    /// Array([ 0, 10,  2,  3], dtype=int32)
    /// >>> x.at[jnp.array([0, 0, 3])].add(1)
    /// Array([2, 1, 2, 4], dtype=int32)
    /// >>> x.at[9].get(mode="fill", fill_value=-1)
    /// Array(-1, dtype=int32)
    /// >>> x
    /// Array([0, 1, 2, 3], dtype=int32)
    #[getter]
    fn at(slf: &Bound<'_, Self>) -> IndexUpdateHelper {
        IndexUpdateHelper::new(slf.clone())
    }

    /// The only element, or the one at an index, as a Python number.
    ///
    /// >>> import ferrax.numpy as jnp
    /// >>> jnp.arange(3).item(2)
    /// 2
    #[pyo3(signature = (*args))]
    fn item<'py>(slf: &Bound<'py, Self>, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        host::item(slf, args)
    }

    /// The elements as Python numbers in nested lists.
    ///
    /// >>> import ferrax.numpy as jnp
    /// >>> jnp.arange(3).tolist()
    /// [0, 1, 2]
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let a = self.data("The tolist() method was called on")?;
        numpy_interop::to_array(py, a)?.call_method0(intern!(py, "tolist"))
    }

    /// The bytes of the elements, in the order of their indices.
    #[pyo3(signature = (order=None))]
    fn tobytes<'py>(&self, py: Python<'py>, order: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
        let a = self.data("The tobytes() method was called on")?;
        numpy_interop::to_array(py, a)?.call_method1(intern!(py, "tobytes"), (order.unwrap_or("C"),))
    }

    // ---- operators ------------------------------------------------------------------------------------------------

    fn __add__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        ufunc::operator(&np::ADD, slf, other)
    }

    fn __radd__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        ufunc::operator(&np::ADD, other, slf)
    }

    fn __sub__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        ufunc::operator(&np::SUBTRACT, slf, other)
    }

    fn __rsub__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        ufunc::operator(&np::SUBTRACT, other, slf)
    }

    fn __mul__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        ufunc::operator(&np::MULTIPLY, slf, other)
    }

    fn __rmul__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        ufunc::operator(&np::MULTIPLY, other, slf)
    }

    fn __truediv__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        ufunc::operator(&np::TRUE_DIVIDE, slf, other)
    }

    fn __rtruediv__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        ufunc::operator(&np::TRUE_DIVIDE, other, slf)
    }

    fn __floordiv__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        ufunc::operator(&np::FLOOR_DIVIDE, slf, other)
    }

    fn __rfloordiv__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        ufunc::operator(&np::FLOOR_DIVIDE, other, slf)
    }

    fn __mod__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        ufunc::operator(&np::REMAINDER, slf, other)
    }

    fn __rmod__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        ufunc::operator(&np::REMAINDER, other, slf)
    }

    fn __and__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        ufunc::operator(&np::BITWISE_AND, slf, other)
    }

    fn __rand__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        ufunc::operator(&np::BITWISE_AND, other, slf)
    }

    fn __or__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        ufunc::operator(&np::BITWISE_OR, slf, other)
    }

    fn __ror__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        ufunc::operator(&np::BITWISE_OR, other, slf)
    }

    fn __xor__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        ufunc::operator(&np::BITWISE_XOR, slf, other)
    }

    fn __rxor__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        ufunc::operator(&np::BITWISE_XOR, other, slf)
    }

    fn __lshift__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        ufunc::operator(&np::LEFT_SHIFT, slf, other)
    }

    fn __rlshift__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        ufunc::operator(&np::LEFT_SHIFT, other, slf)
    }

    fn __rshift__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        ufunc::operator(&np::RIGHT_SHIFT, slf, other)
    }

    fn __rrshift__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        ufunc::operator(&np::RIGHT_SHIFT, other, slf)
    }

    fn __pow__(
        slf: &Bound<'_, Self>,
        other: &Bound<'_, PyAny>,
        modulo: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        no_modulo(modulo)?;
        ufunc::power(slf, other)
    }

    fn __rpow__(
        slf: &Bound<'_, Self>,
        other: &Bound<'_, PyAny>,
        modulo: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        no_modulo(modulo)?;
        ufunc::power(other, slf)
    }

    fn __divmod__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        ufunc::divmod(slf, other)
    }

    fn __rdivmod__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        ufunc::divmod(other, slf)
    }

    fn __matmul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Py<PyAny>> {
        host::matmul(slf, other)
    }

    fn __rmatmul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Py<PyAny>> {
        host::matmul(other, slf)
    }

    fn __neg__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        ufunc::unary(&np::NEGATIVE, slf)
    }

    fn __pos__<'py>(slf: &Bound<'py, Self>) -> Bound<'py, Self> {
        slf.clone()
    }

    fn __abs__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        ufunc::unary(&np::ABS, slf)
    }

    fn __invert__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        ufunc::unary(&np::INVERT, slf)
    }

    fn __richcmp__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<Py<PyAny>> {
        let row = match op {
            CompareOp::Lt => &np::LESS,
            CompareOp::Le => &np::LESS_EQUAL,
            CompareOp::Eq => &np::EQUAL,
            CompareOp::Ne => &np::NOT_EQUAL,
            CompareOp::Gt => &np::GREATER,
            CompareOp::Ge => &np::GREATER_EQUAL,
        };
        ufunc::operator(row, slf, other)
    }

    #[pyo3(signature = (ndigits=None))]
    fn __round__<'py>(slf: &Bound<'py, Self>, ndigits: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        host::round(slf, ndigits)
    }

    /// The array's memory as a DLPack capsule, read-only for those who know of it.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let array = self.data("The __dlpack__() method was called on")?;
        dlpack::export(py, array, stream.as_ref(), max_version, dl_device, copy)
    }

    /// DLPack's number of the kind of device, and the device's own.
    fn __dlpack_device__(&self) -> (i32, i32) {
        if let Value::Array(array) = &self.value { dlpack::device_of(array) } else { dlpack::DEVICE }
    }

    /// Where the elements lie on an NVIDIA GPU; arrays elsewhere have no such attribute.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyDict>> {
        dlpack::cuda_interface(py, self.data("The __cuda_array_interface__ attribute was taken of")?)
    }

    fn __reversed__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let rows = slf.as_any().try_iter()?.collect::<PyResult<Vec<_>>>()?;
        pyo3::types::PyList::new(py, rows.into_iter().rev())?.call_method0("__iter__")
    }

    fn __contains__(slf: &Bound<'_, Self>, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        let rank = slf.get().value.rank();
        if rank != 1 {
            return Err(PyValueError::new_err(format!(
                "Array.__contains__: search array must be one-dimensional, got arr.shape={}. Use jnp.isin, or \
                 (x == value).any() for any shape.",
                ferrax_base::shape::Tuple(slf.get().value.shape())
            )));
        }
        let equal = ufunc::operator(&np::EQUAL, slf, item)?;
        equal.bind(slf.py()).call_method0(intern!(slf.py(), "any"))?.is_truthy()
    }

    /// The real parts of the elements.
    #[getter]
    fn real(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        ufunc::unary(&np::REAL, slf)
    }

    /// The imaginary parts of the elements.
    #[getter]
    fn imag(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        ufunc::unary(&np::IMAG, slf)
    }

    /// The array with its axes in reverse order.
    ///
    /// >>> import ferrax.numpy as jnp
    /// >>> jnp.ones((2, 3)).T.shape
    /// (3, 2)
    #[getter]
    #[pyo3(name = "T")]
    fn transposed(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        crate::value::from_value(py, np::transpose(&self.value, None).py()?)
    }

    /// The array with its last two axes exchanged.
    #[getter]
    #[pyo3(name = "mT")]
    fn matrix_transposed(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        crate::value::from_value(py, np::matrix_transpose(&self.value).py()?)
    }

    // ---- the outside ----------------------------------------------------------------------------------------------

    #[pyo3(signature = (dtype=None, copy=None, context=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
        context: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = context;
        match &self.value {
            Value::Tracer(t) => Err(tracer::array_conversion(t)),
            _ => host::to_numpy(py, self.data("__array__")?, dtype, copy),
        }
    }

    #[pyo3(signature = (*, api_version=None))]
    fn __array_namespace__<'py>(&self, py: Python<'py>, api_version: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
        match api_version {
            Some(v) if !matches!(v, "2021.12" | "2022.12" | "2023.12" | "2024.12" | "2025.12") => {
                Err(PyValueError::new_err(format!("api_version='{v}' is not available")))
            }
            _ => Ok(py.import("ferrax.numpy")?.into_any()),
        }
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        host::reduce(slf)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        host::repr(py, &self.value)
    }

    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        host::text(py, &self.value)
    }

    fn __format__<'py>(slf: &Bound<'py, Self>, spec: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        host::format(slf, spec)
    }
}

#[pymethods]
impl ArrayImpl {
    unsafe fn __getbuffer__(slf: &Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let a = slf.as_super().get().data("the buffer protocol was used on")?;
        // SAFETY: CPython passes a buffer structure to fill
        unsafe { host::fill_buffer(slf.as_any(), a, view, flags) }
    }

    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: a structure that `__getbuffer__` filled
        unsafe { host::release_buffer(view) }
    }
}

/// Adds the array classes to the extension module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyArray>()?;
    // SAFETY: the class is this module's, and no class derives from it yet.
    unsafe {
        let class = PyArray::type_object_raw(m.py());
        // the length of a sequence, too: C asks for it by that name (`numpy.concatenate(x)`)
        if let (Some(sequence), Some(mapping)) = ((*class).tp_as_sequence.as_mut(), (*class).tp_as_mapping.as_ref()) {
            sequence.sq_length = mapping.mp_length;
        }
    }
    m.add_class::<ArrayImpl>()?;
    m.add_class::<KeyArray>()?;
    objects::find_value(m.py())
}
