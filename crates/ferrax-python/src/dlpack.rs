//! DLPack, both ways: the protocol by which array libraries hand each other memory.
//!
//! Out: the array's own memory, pinned until the consumer lets go, marked read-only where the consumer knows the
//! versioned form. In: memory that its producer marks read-only is shared; other memory is copied, because an array never
//! changes, unless the caller asks for sharing (`copy=False`). On NVIDIA's GPUs the same goes (`dlpack/gpu.rs`).
//! Source: the DLPack specification 1.1 and the Python specification of the array API standard.

mod gpu;

pub use gpu::interface as cuda_interface;

use crate::errors::IntoPyResult;
use crate::{dtypes, host, numpy_interop};
use ferrax::device::{self, Placement};
use ferrax::engine::cuda;
use ferrax_base::shape::strides;
use ferrax_base::{Aval, Buffer, DType, Shape, config};
use ferrax_ir::Array;
use ferrax_ir::array::OwnedPin;
use pyo3::exceptions::{PyBufferError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::{ffi, intern};
use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

const CPU: i32 = 1;
/// What `__dlpack_device__` says of arrays that are on no GPU.
pub const DEVICE: (i32, i32) = (CPU, 0);
const READ_ONLY: u64 = 1;
const IS_COPIED: u64 = 2;
const NAME: &CStr = c"dltensor";
const USED: &CStr = c"used_dltensor";
const NAME_VERSIONED: &CStr = c"dltensor_versioned";
const USED_VERSIONED: &CStr = c"used_dltensor_versioned";

#[repr(C)]
#[derive(Clone, Copy)]
struct Device {
    kind: i32,
    id: i32,
}

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
struct DataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device: Device,
    ndim: i32,
    dtype: DataType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// `DLManagedTensor`.
#[repr(C)]
struct Managed {
    tensor: Tensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

#[repr(C)]
struct Version {
    major: u32,
    minor: u32,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
struct ManagedVersioned {
    version: Version,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedVersioned)>,
    flags: u64,
    tensor: Tensor,
}

/// The DLPack type of a dtype; `None` where it has none.
fn data_type(dtype: DType) -> Option<DataType> {
    let code = match dtype {
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => 0,
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => 1,
        DType::F16 | DType::F32 | DType::F64 => 2,
        DType::BF16 => 4,
        DType::C64 | DType::C128 => 5,
        DType::Bool => 6,
        _ => match dtype.name() {
            "float8_e3m4" => 7,
            "float8_e4m3" => 8,
            "float8_e4m3b11fnuz" => 9,
            "float8_e4m3fn" => 10,
            "float8_e4m3fnuz" => 11,
            "float8_e5m2" => 12,
            "float8_e5m2fnuz" => 13,
            "float8_e8m0fnu" => 14,
            _ => return None,
        },
    };
    Some(DataType { code, bits: (dtype.size() * 8) as u8, lanes: 1 })
}

/// What `__dlpack_device__` says of an array.
pub fn device_of(array: &Array) -> (i32, i32) {
    gpu::number(array).map_or(DEVICE, |number| (gpu::CUDA, number as i32))
}

/// Memory that is handed out.
enum Lent {
    Host(OwnedPin),
    Gpu(cuda::Lent),
}

/// What an exported tensor keeps alive.
struct Export {
    memory: Lent,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

impl Export {
    fn tensor(&mut self, dtype: DataType) -> Tensor {
        let (data, device) = match &self.memory {
            Lent::Host(pin) => (pin.buffer().as_ptr() as usize, Device { kind: CPU, id: 0 }),
            Lent::Gpu(lent) => (lent.address() as usize, Device { kind: gpu::CUDA, id: lent.ordinal() as i32 }),
        };
        Tensor {
            data: data as *mut c_void,
            device,
            ndim: self.shape.len() as i32,
            dtype,
            shape: self.shape.as_mut_ptr(),
            strides: self.strides.as_mut_ptr(),
            byte_offset: 0,
        }
    }
}

unsafe extern "C" fn delete(managed: *mut Managed) {
    // SAFETY: made by `export` from these two boxes; a consumer calls the deleter once.
    unsafe { drop((Box::from_raw((*managed).context.cast::<Export>()), Box::from_raw(managed))) };
}

unsafe extern "C" fn delete_versioned(managed: *mut ManagedVersioned) {
    // SAFETY: as in `delete`.
    unsafe { drop((Box::from_raw((*managed).context.cast::<Export>()), Box::from_raw(managed))) };
}

/// Frees a tensor that nobody consumed.
unsafe extern "C" fn drop_capsule(capsule: *mut ffi::PyObject) {
    // SAFETY: called by CPython with a capsule that `export` made; a consumer renames it.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, NAME.as_ptr()) == 1 {
            delete(ffi::PyCapsule_GetPointer(capsule, NAME.as_ptr()).cast());
        } else if ffi::PyCapsule_IsValid(capsule, NAME_VERSIONED.as_ptr()) == 1 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, NAME_VERSIONED.as_ptr()).cast());
        }
    }
}

/// `x.__dlpack__(...)`.
pub fn export<'py>(
    py: Python<'py>,
    array: &Array,
    stream: Option<&Bound<'py, PyAny>>,
    max_version: Option<(u32, u32)>,
    device: Option<(i32, i32)>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let here = device_of(array);
    let wanted = device.unwrap_or(here);
    let on_gpu = wanted == here && here.0 != CPU;
    if wanted != here && (wanted.0 != CPU || copy == Some(false)) {
        return Err(PyBufferError::new_err(format!(
            "__dlpack__: the array is on {}, DLPack device {here:?}, and cannot be handed out on device {device:?}",
            if here.0 == CPU { "the CPU" } else { "a GPU" }
        )));
    }
    if !on_gpu && stream.is_some_and(|s| !s.is_none()) {
        return Err(PyValueError::new_err("__dlpack__: stream must be None for an array on the CPU"));
    }
    let aval = array.aval();
    let Some(dtype) = data_type(aval.dtype) else {
        return Err(PyBufferError::new_err(format!(
            "{} has no DLPack type; convert the array first",
            aval.dtype.name()
        )));
    };
    let copied = copy == Some(true);
    if here.0 == CPU {
        host::on_cpu(array, "__dlpack__")?;
    }
    let array =
        if copied { device::copied(array, aval.weak, array.device(), array.committed()).py()? } else { array.clone() };
    let memory = if on_gpu { Lent::Gpu(gpu::lend(&array, stream)?) } else { Lent::Host(array.pin_owned().py()?) };
    let numbers = |dims: &[usize]| dims.iter().map(|&d| d as i64).collect();
    let shape: Vec<i64> = numbers(&array.aval().shape);
    let strides: Vec<i64> = numbers(&strides(&array.aval().shape));
    let mut context = Box::new(Export { memory, shape, strides });
    let tensor = context.tensor(dtype);
    let context = Box::into_raw(context).cast();
    let (pointer, name): (*mut c_void, _) = if max_version.is_some_and(|v| v.0 >= 1) {
        let flags = if copied { IS_COPIED } else { READ_ONLY };
        let version = Version { major: 1, minor: 0 };
        let managed = ManagedVersioned { version, context, deleter: Some(delete_versioned), flags, tensor };
        (Box::into_raw(Box::new(managed)).cast(), NAME_VERSIONED)
    } else {
        (Box::into_raw(Box::new(Managed { tensor, context, deleter: Some(delete) })).cast(), NAME)
    };
    // SAFETY: the pointer is not null and stays valid until a deleter runs.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(pointer, name.as_ptr(), Some(drop_capsule))) }
}

/// A consumed tensor; its deleter runs when this is dropped.
enum Consumed {
    Old(*mut Managed),
    Versioned(*mut ManagedVersioned),
}

// SAFETY: the protocol lets a deleter be called on any thread; `drop` takes the interpreter's lock first, which
// deleters written in Python need.
unsafe impl Send for Consumed {}
// SAFETY: as above; nothing is mutable through a shared reference.
unsafe impl Sync for Consumed {}

impl Consumed {
    /// Takes the tensor out of a capsule.
    fn new(capsule: &Bound<'_, PyAny>) -> PyResult<Consumed> {
        let raw = capsule.as_ptr();
        // SAFETY: names are checked before pointers are read; a renamed capsule is the consumer's.
        unsafe {
            if ffi::PyCapsule_IsValid(raw, NAME_VERSIONED.as_ptr()) == 1 {
                let managed: *mut ManagedVersioned = ffi::PyCapsule_GetPointer(raw, NAME_VERSIONED.as_ptr()).cast();
                if (*managed).version.major != 1 {
                    let (major, minor) = ((*managed).version.major, (*managed).version.minor);
                    return Err(PyBufferError::new_err(format!("from_dlpack knows DLPack 1, got {major}.{minor}")));
                }
                ffi::PyCapsule_SetName(raw, USED_VERSIONED.as_ptr());
                return Ok(Consumed::Versioned(managed));
            }
            if ffi::PyCapsule_IsValid(raw, NAME.as_ptr()) == 1 {
                let managed = ffi::PyCapsule_GetPointer(raw, NAME.as_ptr()).cast();
                ffi::PyCapsule_SetName(raw, USED.as_ptr());
                return Ok(Consumed::Old(managed));
            }
        }
        Err(PyTypeError::new_err("__dlpack__ returned no DLPack capsule, or one that was used before"))
    }

    fn tensor(&self) -> &Tensor {
        // SAFETY: valid until the deleter runs.
        unsafe {
            match self {
                Consumed::Old(m) => &(**m).tensor,
                Consumed::Versioned(m) => &(**m).tensor,
            }
        }
    }

    /// Whether nobody writes to the memory.
    fn is_constant(&self) -> bool {
        match self {
            Consumed::Old(_) => false,
            // SAFETY: as in `tensor`.
            Consumed::Versioned(m) => unsafe { (**m).flags & (READ_ONLY | IS_COPIED) != 0 },
        }
    }
}

impl Drop for Consumed {
    fn drop(&mut self) {
        Python::attach(|_| {
            // SAFETY: this is the only owner, and this runs once.
            unsafe {
                match *self {
                    Consumed::Old(m) => (*m).deleter.into_iter().for_each(|f| f(m)),
                    Consumed::Versioned(m) => (*m).deleter.into_iter().for_each(|f| f(m)),
                }
            }
        });
    }
}

/// The elements of a strided tensor in row-major order.
///
/// # Safety
/// The tensor's memory must be valid.
unsafe fn gather(data: *const u8, shape: &[i64], strides: &[i64], size: usize, out: &mut [u8]) {
    let mut index = vec![0i64; shape.len()];
    for element in out.chunks_exact_mut(size) {
        let offset: i64 = index.iter().zip(strides).map(|(i, s)| i * s).sum();
        // SAFETY: the index is inside the shape.
        unsafe { data.offset(offset as isize * size as isize).copy_to_nonoverlapping(element.as_mut_ptr(), size) };
        for (i, n) in index.iter_mut().zip(shape).rev() {
            *i += 1;
            if *i < *n {
                break;
            }
            *i = 0;
        }
    }
}

/// What a tensor says of its elements.
struct Elements<'a> {
    aval: Aval,
    data: *mut u8,
    shape: &'a [i64],
    /// In elements; none for row-major order.
    strides: Option<&'a [i64]>,
}

impl<'a> Elements<'a> {
    fn of(t: &'a Tensor) -> PyResult<Elements<'a>> {
        let Some(&dtype) = DType::ALL.iter().find(|d| data_type(**d) == Some(t.dtype)) else {
            let DataType { code, bits, lanes } = t.dtype;
            return Err(PyTypeError::new_err(format!(
                "from_dlpack: there is no dtype for DLPack type code {code} with {bits} bits and {lanes} lanes"
            )));
        };
        let rank = t.ndim as usize;
        // SAFETY: the protocol: `shape` (and `strides`, where there are any) have `ndim` entries.
        let list = |p: *mut i64| unsafe { if rank == 0 { &[][..] } else { std::slice::from_raw_parts(p, rank) } };
        let shape = list(t.shape);
        let dims: Shape = shape.iter().map(|&d| d as usize).collect();
        Ok(Elements {
            aval: Aval { shape: dims, dtype, weak: false, vary: 0, spread: 0 },
            data: t.data.cast::<u8>().wrapping_add(t.byte_offset as usize),
            shape,
            strides: (!t.strides.is_null()).then(|| list(t.strides)),
        })
    }

    /// Whether the elements lie row by row without gaps.
    fn are_compact(&self) -> bool {
        let Some(strides) = self.strides else { return true };
        let mut expected = 1;
        let fits = |(&n, &s): (&i64, &i64)| {
            let fits = n == 1 || s == expected;
            expected *= n;
            fits
        };
        self.shape.contains(&0) || self.shape.iter().zip(strides).rev().all(fits)
    }

    fn copy(&self) -> PyResult<Buffer> {
        let bytes = self.aval.bytes();
        let mut buffer = Buffer::allocate(bytes).py()?;
        match self.strides.filter(|_| !self.are_compact()) {
            // SAFETY: the protocol: shape and strides stay inside the tensor's memory.
            Some(s) => unsafe { gather(self.data, self.shape, s, self.aval.dtype.size(), buffer.bytes_mut()) },
            // SAFETY: a compact tensor has this many bytes.
            None if bytes > 0 => unsafe { self.data.cast_const().copy_to_nonoverlapping(buffer.as_mut_ptr(), bytes) },
            None => {}
        }
        numpy_interop::settle_truths(self.aval.dtype, buffer.bytes_mut());
        Ok(buffer)
    }
}

fn imported(consumed: Consumed, copy: Option<bool>) -> PyResult<Array> {
    let elements = Elements::of(consumed.tensor())?;
    let (compact, size) = (elements.are_compact(), elements.aval.dtype.size());
    let can_share = compact && (elements.data as usize).is_multiple_of(size);
    let share = match copy {
        None => can_share && consumed.is_constant(),
        Some(copy) => !copy,
    };
    if share && !can_share {
        let why =
            if compact { "its elements are not aligned" } else { "its elements do not lie row by row without gaps" };
        return Err(PyBufferError::new_err(format!(
            "from_dlpack with copy=False cannot share the array's memory: {why}"
        )));
    }
    let aval = elements.aval.clone();
    let buffer = match NonNull::new(elements.data) {
        // SAFETY: the memory is valid while `consumed` lives, and constant or declared so by the caller.
        Some(data) if share => unsafe { Buffer::foreign(data, aval.bytes(), Box::new(consumed)) },
        _ => elements.copy()?,
    };
    Placement::uncommitted().array(aval, buffer).py()
}

/// An array of another library's memory; see `ferrax.numpy.from_dlpack`.
#[pyfunction]
#[pyo3(signature = (external, copy))]
fn from_dlpack<'py>(external: &Bound<'py, PyAny>, copy: Option<bool>) -> PyResult<Bound<'py, PyAny>> {
    let py = external.py();
    let missing =
        || PyTypeError::new_err("The array passed to from_dlpack must have __dlpack__ and __dlpack_device__ methods.");
    let method = external.getattr_opt(intern!(py, "__dlpack__"))?.ok_or_else(missing)?;
    let device = external.getattr_opt(intern!(py, "__dlpack_device__"))?.ok_or_else(missing)?;
    let (kind, id): (i32, i32) = device.call0()?.extract()?;
    let stream = if kind == gpu::CUDA { gpu::stream(id)? } else { None };
    if kind != CPU && stream.is_none() {
        return Err(PyRuntimeError::new_err(format!(
            "from_dlpack takes memory on the CPU{}; the array is on DLPack device ({kind}, {id})",
            if cuda::is_registered() { " and on NVIDIA's GPUs" } else { "" }
        )));
    }
    let options = PyDict::new(py);
    if let Some(stream) = stream {
        options.set_item(intern!(py, "stream"), stream)?;
    }
    let old = options.copy()?;
    options.set_item(intern!(py, "max_version"), (1, 1))?;
    let capsule = match method.call((), Some(&options)) {
        // producers of before version 1 do not know the argument
        Err(e) if e.is_instance_of::<PyTypeError>(py) => method.call((), Some(&old))?,
        other => other?,
    };
    let consumed = Consumed::new(&capsule)?;
    let array = if stream.is_some() { gpu::imported(consumed, id, copy)? } else { imported(consumed, copy)? };
    let dtype = array.aval().dtype;
    let wanted = dtype.canonical(config::x64());
    let object = crate::array::wrap_array(py, array)?;
    if wanted == dtype { Ok(object) } else { object.call_method1(intern!(py, "astype"), (wanted.name(),)) }
}

/// Whether a dtype has a DLPack type.
#[pyfunction]
fn has_dlpack_type(dtype: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(data_type(dtypes::parse(dtype, "is_supported_dtype")?.dtype).is_some())
}

/// Adds the functions of this file to the extension module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(has_dlpack_type, m)?)?;
    m.add_function(wrap_pyfunction!(from_dlpack, m)?)
}
