//! Memory on NVIDIA's GPUs, shared with PyTorch, CuPy and others by DLPack and by `__cuda_array_interface__`.
//!
//! Who takes an array says by the number of its stream which of its work waits for the elements. Memory of others is that of
//! an array where its elements lie row by row from a multiple of 256 bytes on, which our kernels count on.
//! Source: the DLPack specification, the array API's "Data interchange", Numba's "CUDA Array Interface", version 3.

use super::{Consumed, Elements};
use crate::errors::IntoPyResult;
use ferrax::device;
use ferrax::engine::{self, cuda};
use ferrax_base::DType;
use ferrax_ir::{Array, DeviceId};
use pyo3::exceptions::{PyAttributeError, PyBufferError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

pub const CUDA: i32 = 2;
/// The default stream of old, that of who names none.
const DEFAULT_STREAM: u64 = 1;
/// What addresses are multiples of.
const ALIGNED: u64 = 256;

/// The number of the GPU that an array is on, as our engine's.
pub fn number(array: &Array) -> Option<usize> {
    let device = array.device();
    let ours = || engine::of(device).is_ok_and(|engine| engine.platform() == cuda::PLATFORM);
    (cuda::is_registered() && !device.on_cpu() && !device.is_sharded() && ours()).then(|| device.index())
}

/// The number of the stream that a producer hands a GPU's memory to; none where there is no such GPU of ours.
pub fn stream(id: i32) -> PyResult<Option<u64>> {
    match usize::try_from(id) {
        Ok(number) if cuda::is_registered() => cuda::stream(number).py().map(Some),
        _ => Ok(None),
    }
}

/// Lends an array to who works on a stream.
pub fn lend(array: &Array, stream: Option<&Bound<'_, PyAny>>) -> PyResult<cuda::Lent> {
    let given: Option<i64> = stream.map(PyAnyMethods::extract).transpose()?.flatten();
    let (stream, waits) = match given {
        None => (DEFAULT_STREAM, true),
        Some(-1) => (DEFAULT_STREAM, false),
        Some(n) if n > 0 => (n as u64, true),
        Some(n) => {
            return Err(PyValueError::new_err(format!(
                "__dlpack__: stream must be None, -1, 1 for the default stream, 2 for that of the thread, or a stream's \
                 handle, got {n}"
            )));
        }
    };
    let memory = array.pin_memory().py()?;
    let Some(found) = cuda::array(&memory) else { return Err(PyBufferError::new_err("the array is on no GPU")) };
    found.lend(stream, waits).py()
}

/// An array of another library's memory on a GPU.
pub fn imported(consumed: Consumed, id: i32, copy: Option<bool>) -> PyResult<Array> {
    let elements = Elements::of(consumed.tensor())?;
    let (aval, address, compact) = (elements.aval.clone(), elements.data as u64, elements.are_compact());
    if !compact {
        return Err(PyBufferError::new_err(
            "from_dlpack: the elements of the array on the GPU do not lie row by row without gaps; make it contiguous first",
        ));
    }
    let share = match copy {
        None => consumed.is_constant() && address.is_multiple_of(ALIGNED),
        Some(copy) => !copy,
    };
    if share && !address.is_multiple_of(ALIGNED) {
        return Err(PyBufferError::new_err(format!(
            "from_dlpack with copy=False cannot share the array's memory: it does not begin at a multiple of {ALIGNED} bytes"
        )));
    }
    let number = id as usize;
    let memory = cuda::borrowed(number, address, aval.bytes(), Box::new(consumed)).py()?;
    let platform = engine::platform(cuda::PLATFORM).unwrap_or_default();
    let array = Array::placed(aval, memory, DeviceId::new(platform, number), true);
    if share { Ok(array) } else { device::copied(&array, false, array.device(), true).py() }
}

/// `x.__cuda_array_interface__`, which arrays elsewhere do not have.
pub fn interface<'py>(py: Python<'py>, array: &Array) -> PyResult<Bound<'py, PyDict>> {
    let dtype = array.aval().dtype;
    let (Some(_), Some(text)) = (number(array), type_text(dtype)) else {
        return Err(PyAttributeError::new_err(format!(
            "__cuda_array_interface__ is of arrays on NVIDIA's GPUs whose dtype NumPy has; this one is {dtype} on {:?}",
            array.device()
        )));
    };
    let memory = array.pin_memory().py()?;
    let Some(found) = cuda::array(&memory) else { return Err(PyAttributeError::new_err("the array is on no GPU")) };
    let (address, stream) = found.place().py()?;
    let shape = pyo3::types::PyTuple::new(py, array.aval().shape.iter())?;
    let interface = PyDict::new(py);
    interface.set_item("shape", shape)?;
    interface.set_item("typestr", text)?;
    interface.set_item("data", (address, true))?;
    interface.set_item("strides", py.None())?;
    interface.set_item("version", 3)?;
    interface.set_item("stream", stream)?;
    Ok(interface)
}

/// NumPy's text of a dtype.
fn type_text(dtype: DType) -> Option<String> {
    let kind = match dtype {
        DType::Bool => return Some("|b1".to_owned()),
        DType::F16 | DType::F32 | DType::F64 => 'f',
        DType::C64 | DType::C128 => 'c',
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => 'i',
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => 'u',
        _ => return None,
    };
    Some(format!("{}{kind}{}", if dtype.size() == 1 { '|' } else { '<' }, dtype.size()))
}
