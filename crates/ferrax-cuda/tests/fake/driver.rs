//! The driver's calls.

use crate::nvrtc::CUBIN;
use crate::sys::*;
use crate::work::{Life, Memory, Node, Op, Queue};
use crate::{CURRENT, Entry, Held, State, Thing, call, host, state, text};
use std::ffi::{c_char, c_int, c_uint, c_void};

const INVALID_VALUE: CUresult = 1;
const INVALID_CONTEXT: CUresult = 201;
const INVALID_HANDLE: CUresult = 400;
/// Streams that every context has.
const DEFAULT_STREAMS: [u64; 2] = [1, 2];
/// Handles of contexts: that of the first device, and so on.
const CONTEXTS: u64 = 0xc000_0000;

/// Names and texts of some codes, as CUDA has them.
const CODES: [(CUresult, &std::ffi::CStr, &std::ffi::CStr); 12] = [
    (1, c"CUDA_ERROR_INVALID_VALUE", c"invalid argument"),
    (2, c"CUDA_ERROR_OUT_OF_MEMORY", c"out of memory"),
    (100, c"CUDA_ERROR_NO_DEVICE", c"no CUDA-capable device is detected"),
    (200, c"CUDA_ERROR_INVALID_IMAGE", c"device kernel image is invalid"),
    (201, c"CUDA_ERROR_INVALID_CONTEXT", c"invalid device context"),
    (209, c"CUDA_ERROR_NO_BINARY_FOR_GPU", c"no kernel image is available for execution on the device"),
    (400, c"CUDA_ERROR_INVALID_HANDLE", c"invalid resource handle"),
    (500, c"CUDA_ERROR_NOT_FOUND", c"named symbol not found"),
    (700, c"CUDA_ERROR_ILLEGAL_ADDRESS", c"an illegal memory access was encountered"),
    (719, c"CUDA_ERROR_LAUNCH_FAILED", c"unspecified launch failure"),
    (801, c"CUDA_ERROR_NOT_SUPPORTED", c"operation not supported"),
    (999, c"CUDA_ERROR_UNKNOWN", c"unknown error"),
];

/// Begins a call that does nothing when it fails.
macro_rules! begin {
    ($name:literal) => {{
        let (held, code) = call($name);
        if code != 0 {
            return code;
        }
        held
    }};
}

/// What a call needs; the code of what is wrong where it is not there.
macro_rules! need {
    ($held:ident, $found:expr, $($what:tt)*) => {
        match $found {
            Some(found) => found,
            None => {
                let text = format!($($what)*);
                $held.violate(text);
                return INVALID_HANDLE;
            }
        }
    };
}

/// The device of the thread's current context.
fn current() -> Option<i32> {
    CURRENT.with_borrow(|c| c.last().map(|context| (context - CONTEXTS) as i32))
}

fn stream_of(held: &State, stream: u64) -> Option<i32> {
    match held.things.get(&stream) {
        _ if DEFAULT_STREAMS.contains(&stream) => current(),
        Some(Thing::Stream { device }) => Some(*device),
        _ => None,
    }
}

/// Gives work to a stream.
fn push(mut held: Held, stream: u64, op: Op) -> CUresult {
    let device = need!(held, stream_of(&held, stream), "work for {stream:#x}, which is no stream");
    if current() != Some(device) {
        held.violate(format!("work for a stream of device {device} in the context of {:?}", current()));
        return INVALID_CONTEXT;
    }
    held.queues.entry(stream).or_default();
    held.push(stream, op);
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> CUresult {
    unsafe { *version = state().setting("version", 12040) as c_int };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuInit(_flags: c_uint) -> CUresult {
    let held = begin!("cuInit");
    if held.setting("devices", 2) == 0 { CUDA_ERROR_NO_DEVICE } else { 0 }
}

fn named(code: CUresult, to: *mut *const c_char, at: usize) -> CUresult {
    match CODES.iter().find(|c| c.0 == code) {
        Some(found) => {
            unsafe { *to = [found.1, found.2][at].as_ptr() };
            0
        }
        None => INVALID_VALUE,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGetErrorName(code: CUresult, to: *mut *const c_char) -> CUresult {
    named(code, to, 0)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGetErrorString(code: CUresult, to: *mut *const c_char) -> CUresult {
    named(code, to, 1)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetCount(count: *mut c_int) -> CUresult {
    let held = begin!("cuDeviceGetCount");
    unsafe { *count = held.setting("devices", 2) as c_int };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGet(device: *mut CUdevice, ordinal: c_int) -> CUresult {
    let _held = begin!("cuDeviceGet");
    unsafe { *device = ordinal };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, _len: c_int, _device: CUdevice) -> CUresult {
    let _held = begin!("cuDeviceGetName");
    let text = c"Fake GPU";
    unsafe { name.copy_from_nonoverlapping(text.as_ptr(), text.to_bytes_with_nul().len()) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, _device: CUdevice) -> CUresult {
    let held = begin!("cuDeviceGetAttribute");
    let capability = held.setting("capability", 90);
    let answer = match attribute {
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR => capability / 10,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR => capability % 10,
        CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED => held.setting("pools_supported", 1),
        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT => 4,
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN => 227 << 10,
        _ => return INVALID_VALUE,
    };
    unsafe { *value = answer as c_int };
    0
}

fn room(held: &State) -> usize {
    held.setting("memory", 1 << 30) as usize
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceTotalMem_v2(bytes: *mut usize, _device: CUdevice) -> CUresult {
    let held = begin!("cuDeviceTotalMem_v2");
    unsafe { *bytes = room(&held) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceCanAccessPeer(can: *mut c_int, _device: CUdevice, _peer: CUdevice) -> CUresult {
    let held = begin!("cuDeviceCanAccessPeer");
    unsafe { *can = held.setting("peers", 1) as c_int };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDevicePrimaryCtxRetain(context: *mut u64, device: CUdevice) -> CUresult {
    let mut held = begin!("cuDevicePrimaryCtxRetain");
    *held.contexts.entry(device).or_default() += 1;
    unsafe { *context = CONTEXTS + device as u64 };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxRelease_v2(device: CUdevice) -> CUresult {
    let (mut held, code) = call("cuDevicePrimaryCtxRelease_v2");
    held.drive_all();
    *held.contexts.entry(device).or_default() -= 1;
    if held.contexts[&device] == 0 {
        held.memory.retain(|_, m| m.device != device || m.is_used());
    }
    if held.contexts[&device] < 0 {
        held.violate(format!("the context of device {device} was released too often"));
    }
    code
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxPushCurrent_v2(context: u64) -> CUresult {
    let mut held = begin!("cuCtxPushCurrent_v2");
    if held.contexts.get(&((context - CONTEXTS) as i32)).copied().unwrap_or(0) <= 0 {
        held.violate("a context is entered that nobody holds".into());
        return INVALID_CONTEXT;
    }
    CURRENT.with_borrow_mut(|c| c.push(context));
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxPopCurrent_v2(context: *mut u64) -> CUresult {
    let (mut held, code) = call("cuCtxPopCurrent_v2");
    match CURRENT.with_borrow_mut(Vec::pop) {
        Some(left) => unsafe { *context = left },
        None => held.violate("a context is left that was not entered".into()),
    }
    code
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamCreate(stream: *mut u64, flags: c_uint) -> CUresult {
    let mut held = begin!("cuStreamCreate");
    let Some(device) = current() else { return INVALID_CONTEXT };
    assert_eq!(flags, CU_STREAM_NON_BLOCKING);
    let handle = held.add(Thing::Stream { device });
    held.queues.insert(handle, Queue::default());
    unsafe { *stream = handle };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamDestroy_v2(stream: u64) -> CUresult {
    let (mut held, code) = call("cuStreamDestroy_v2");
    held.drive(stream, u64::MAX);
    held.queues.remove(&stream);
    take_down(&mut held, stream);
    code
}

/// Removes what a handle stands for.
fn take_down(held: &mut State, handle: u64) {
    if held.things.remove(&handle).is_none() {
        held.violate(format!("{handle:#x} is taken down, which is not there"));
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamSynchronize(stream: u64) -> CUresult {
    let mut held = begin!("cuStreamSynchronize");
    need!(held, stream_of(&held, stream), "a wait for {stream:#x}, which is no stream");
    held.drive(stream, u64::MAX);
    held.lost
}

/// The point of an event that is there.
fn point(held: &State, event: u64) -> Option<Option<(u64, u64)>> {
    match held.things.get(&event) {
        Some(Thing::Event { at, .. }) => Some(*at),
        _ => None,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamWaitEvent(stream: u64, event: u64, _flags: c_uint) -> CUresult {
    let mut held = begin!("cuStreamWaitEvent");
    let at = need!(held, point(&held, event), "a stream is to wait for {event:#x}, which is no event");
    match at {
        Some((of, number)) => push(held, stream, Op::Wait { stream: of, number }),
        None => 0,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventCreate(event: *mut u64, _flags: c_uint) -> CUresult {
    let mut held = begin!("cuEventCreate");
    if current().is_none() {
        return INVALID_CONTEXT;
    }
    unsafe { *event = held.add(Thing::Event { at: None, asked: false }) };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventDestroy_v2(event: u64) -> CUresult {
    let (mut held, code) = call("cuEventDestroy_v2");
    take_down(&mut held, event);
    code
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventRecord(event: u64, stream: u64) -> CUresult {
    let mut held = begin!("cuEventRecord");
    if DEFAULT_STREAMS.contains(&stream) {
        held.queues.entry(stream).or_default();
    }
    let given = need!(held, held.queues.get(&stream).map(|q| q.given), "{stream:#x} is no stream");
    let Some(Thing::Event { at, asked }) = held.things.get_mut(&event) else { return INVALID_HANDLE };
    (*at, *asked) = (Some((stream, given)), false);
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventQuery(event: u64) -> CUresult {
    let mut held = begin!("cuEventQuery");
    let at = need!(held, point(&held, event), "{event:#x} is no event");
    let Some((stream, number)) = at else { return 0 };
    if held.queues.get(&stream).is_some_and(|q| !q.is_done(number)) {
        let Some(Thing::Event { asked, .. }) = held.things.get_mut(&event) else { return INVALID_HANDLE };
        if !std::mem::replace(asked, true) {
            return CUDA_ERROR_NOT_READY;
        }
        held.drive(stream, number);
    }
    held.lost
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventSynchronize(event: u64) -> CUresult {
    let mut held = begin!("cuEventSynchronize");
    if let Some((stream, number)) = need!(held, point(&held, event), "{event:#x} is no event") {
        held.drive(stream, number);
    }
    held.lost
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleLoadData(module: *mut u64, image: *const u8) -> CUresult {
    let mut held = begin!("cuModuleLoadData");
    if current().is_none() {
        return INVALID_CONTEXT;
    }
    let refused = held.setting("refuse", 0);
    if refused > 0 {
        held.settings.insert("refuse".into(), refused - 1);
        return CUDA_ERROR_INVALID_IMAGE;
    }
    let start = unsafe { std::slice::from_raw_parts(image, CUBIN.len()) };
    let lines = if start == CUBIN {
        let length = unsafe { image.add(8).cast::<u64>().read_unaligned() } as usize;
        std::str::from_utf8(unsafe { std::slice::from_raw_parts(image.add(16), length) }).expect("text")
    } else if start.starts_with(b"//PTX ") {
        unsafe { text(image.add(6).cast()) }
    } else {
        return CUDA_ERROR_INVALID_IMAGE;
    };
    let (mut kernels, mut library) = (Vec::new(), None);
    for line in lines.lines().skip(1) {
        if let Some(path) = line.strip_prefix("library ") {
            library = host::Library::open(path);
            if library.is_none() {
                return CUDA_ERROR_INVALID_IMAGE;
            }
            continue;
        }
        let mut words = line.split(' ');
        let mut word = || words.next().expect("a name, a number, whether it waits");
        let (name, params, waits) = (word().to_owned(), word().parse().expect("a number"), word() == "true");
        kernels.push(Entry { name, params, waits });
    }
    unsafe { *module = held.add(Thing::Module { kernels, library }) };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuModuleUnload(module: u64) -> CUresult {
    let (mut held, code) = call("cuModuleUnload");
    if held.is_awaited(module, 0) {
        held.violate("a module is unloaded while its kernels run".into());
    }
    held.things.retain(|_, thing| !matches!(thing, Thing::Function { module: of, .. } if *of == module));
    take_down(&mut held, module);
    code
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleGetFunction(function: *mut u64, module: u64, name: *const c_char) -> CUresult {
    let mut held = begin!("cuModuleGetFunction");
    let name = unsafe { text(name) };
    let Some(Thing::Module { kernels, .. }) = held.things.get(&module) else { return INVALID_HANDLE };
    let Some(kernel) = kernels.iter().find(|k| k.name == name).cloned() else { return CUDA_ERROR_NOT_FOUND };
    unsafe { *function = held.add(Thing::Function { module, kernel }) };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuFuncSetAttribute(function: u64, _attribute: c_int, value: c_int) -> CUresult {
    let held = begin!("cuFuncSetAttribute");
    match held.things.get(&function) {
        Some(Thing::Function { .. }) if value <= 227 << 10 => 0,
        _ => INVALID_VALUE,
    }
}

/// A kernel with its arguments, which are read now.
unsafe fn kernel(
    held: &mut State,
    function: u64,
    grid: [u32; 3],
    block: [u32; 3],
    args: *mut *mut c_void,
) -> Option<Node> {
    let Some(Thing::Function { module, kernel }) = held.things.get(&function) else { return None };
    let params = (0..kernel.params).map(|i| unsafe { (*args.add(i)).cast::<u64>().read() }).collect();
    Some(Node::Kernel { module: *module, kernel: kernel.clone(), params, grid, block })
}

#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)]
pub unsafe extern "C" fn cuLaunchKernel(
    function: u64,
    x: c_uint,
    y: c_uint,
    z: c_uint,
    a: c_uint,
    b: c_uint,
    c: c_uint,
    _shared: c_uint,
    stream: u64,
    params: *mut *mut c_void,
    _extra: *mut *mut c_void,
) -> CUresult {
    let mut held = begin!("cuLaunchKernel");
    let node = unsafe { kernel(&mut held, function, [x, y, z], [a, b, c], params) };
    let node = need!(held, node, "{function:#x} is no kernel");
    push(held, stream, Op::Node(node))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemPoolCreate(pool: *mut u64, props: *const CUmemPoolProps) -> CUresult {
    let mut held = begin!("cuMemPoolCreate");
    let props = unsafe { &*props };
    assert_eq!((props.allocType, props.location.kind), (CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_DEVICE));
    unsafe { *pool = held.add(Thing::Pool { device: props.location.id }) };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemPoolDestroy(pool: u64) -> CUresult {
    let (mut held, code) = call("cuMemPoolDestroy");
    if let Some(Thing::Pool { device }) = held.things.get(&pool) {
        let device = *device;
        let left = held.memory.values().filter(|m| m.device == device && m.is_live()).count();
        if left > 0 {
            held.violate(format!("a pool is destroyed with {left} blocks that live"));
        }
    }
    take_down(&mut held, pool);
    code
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemPoolSetAttribute(_pool: u64, _attribute: c_int, _value: *mut c_void) -> CUresult {
    let _held = begin!("cuMemPoolSetAttribute");
    0
}

/// Bytes of a device that blocks have, or will have until a stream comes to their end.
fn used(held: &State, device: i32) -> usize {
    held.memory.values().filter(|m| m.device == device && m.is_used()).map(|m| m.bytes).sum()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemPoolGetAttribute(pool: u64, attribute: c_int, value: *mut u64) -> CUresult {
    let held = begin!("cuMemPoolGetAttribute");
    let Some(Thing::Pool { device }) = held.things.get(&pool) else { return INVALID_HANDLE };
    let all: usize = held.memory.values().filter(|m| m.device == *device).map(|m| m.bytes).sum();
    let used = used(&held, *device);
    unsafe { *value = if attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT { used } else { all } as u64 };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemPoolTrimTo(_pool: u64, _keep: usize) -> CUresult {
    let _held = begin!("cuMemPoolTrimTo");
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemPoolSetAccess(_pool: u64, _map: *const c_void, _count: usize) -> CUresult {
    let _held = begin!("cuMemPoolSetAccess");
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAllocFromPoolAsync(to: *mut u64, bytes: usize, pool: u64, stream: u64) -> CUresult {
    let mut held = begin!("cuMemAllocFromPoolAsync");
    let Some(Thing::Pool { device }) = held.things.get(&pool) else { return INVALID_HANDLE };
    let device = *device;
    if bytes == 0 {
        return INVALID_VALUE;
    }
    // like the driver's pool, when asked to: the same stream may have at once what it is going to free
    let fits = |m: &Memory| m.freed_on == Some(stream) && m.bytes == bytes;
    let again = held.memory.iter().find(|(_, m)| fits(m)).map(|(address, _)| *address);
    let address = match again.filter(|_| held.setting("recycle", 0) != 0) {
        Some(address) => {
            held.memory.get_mut(&address).expect("it was found").freed_on = None;
            address
        }
        None if used(&held, device) + bytes > room(&held) => return CUDA_ERROR_OUT_OF_MEMORY,
        None => {
            let address = crate::work::take(bytes);
            held.memory.insert(address, Memory { bytes, device, life: Life::Coming, freed_on: None });
            address
        }
    };
    unsafe { *to = address };
    push(held, stream, Op::Alloc { address })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFreeAsync(address: u64, stream: u64) -> CUresult {
    let (mut held, code) = call("cuMemFreeAsync");
    match held.memory.get_mut(&address) {
        Some(memory) if memory.is_live() => memory.freed_on = Some(stream),
        _ => {
            held.violate(format!("{address:#x} is freed, which is not there"));
            return INVALID_VALUE;
        }
    }
    match push(held, stream, Op::Free { address }) {
        0 => code,
        wrong => wrong,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemHostAlloc(to: *mut u64, bytes: usize, _flags: c_uint) -> CUresult {
    let mut held = begin!("cuMemHostAlloc");
    let layout = std::alloc::Layout::from_size_align(bytes, 4096).expect("a size");
    let address = unsafe { std::alloc::alloc(layout) } as u64;
    held.things.insert(address, Thing::Pinned { bytes });
    unsafe { *to = address };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFreeHost(address: u64) -> CUresult {
    let (mut held, code) = call("cuMemFreeHost");
    let bytes = match held.things.get(&address) {
        Some(Thing::Pinned { bytes }) => *bytes,
        _ => {
            held.violate(format!("{address:#x} is freed, which is no pinned memory"));
            return INVALID_VALUE;
        }
    };
    if held.is_awaited(address, bytes) {
        held.violate("pinned memory is freed while a copy uses it".into());
    }
    // the memory itself stays, so that a copy that comes too late is seen
    take_down(&mut held, address);
    code
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyHtoDAsync_v2(to: u64, from: *const u8, bytes: usize, stream: u64) -> CUresult {
    let held = begin!("cuMemcpyHtoDAsync_v2");
    let was = unsafe { std::slice::from_raw_parts(from, bytes) }.to_vec();
    push(held, stream, Op::Upload { to, from: from as u64, was })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoHAsync_v2(to: u64, from: u64, bytes: usize, stream: u64) -> CUresult {
    push(begin!("cuMemcpyDtoHAsync_v2"), stream, Op::Download { to, from, bytes })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: u64) -> CUresult {
    push(begin!("cuMemcpyDtoDAsync_v2"), stream, Op::Node(Node::Copy { to, from, bytes }))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyPeerAsync(to: u64, ours: u64, from: u64, theirs: u64, bytes: usize, stream: u64) -> CUresult {
    let mut held = begin!("cuMemcpyPeerAsync");
    let device = |held: &State, at: u64| held.memory.get(&at).map(|m| CONTEXTS + m.device as u64);
    if device(&held, to) != Some(ours) || device(&held, from) != Some(theirs) {
        held.violate("a copy between devices has the wrong contexts".into());
    }
    push(held, stream, Op::Node(Node::Copy { to, from, bytes }))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemsetD8Async(to: u64, byte: u8, count: usize, stream: u64) -> CUresult {
    push(begin!("cuMemsetD8Async"), stream, Op::Node(Node::Fill { to, pattern: vec![byte], count }))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemsetD32Async(to: u64, word: u32, count: usize, stream: u64) -> CUresult {
    let pattern = word.to_ne_bytes().to_vec();
    push(begin!("cuMemsetD32Async"), stream, Op::Node(Node::Fill { to, pattern, count }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphCreate(graph: *mut u64, _flags: c_uint) -> CUresult {
    let mut held = begin!("cuGraphCreate");
    unsafe { *graph = held.add(Thing::Graph { nodes: Vec::new() }) };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGraphDestroy(graph: u64) -> CUresult {
    let (mut held, code) = call("cuGraphDestroy");
    take_down(&mut held, graph);
    code
}

/// Adds a node to a graph, which has to be a chain.
unsafe fn add(mut held: Held, to: *mut u64, graph: u64, after: *const u64, count: usize, node: Node) -> CUresult {
    held.handles += 1;
    let handle = 0x1000 + 16 * held.handles;
    let Some(Thing::Graph { nodes }) = held.things.get_mut(&graph) else { return INVALID_HANDLE };
    let before = if count == 0 { None } else { Some(unsafe { *after }) };
    if nodes.last().map(|(last, _)| *last) != before {
        held.violate("a node of a graph does not follow the one before".into());
        return INVALID_VALUE;
    }
    nodes.push((handle, node));
    unsafe { *to = handle };
    0
}

unsafe fn kernel_node(held: &mut State, params: *const CUDA_KERNEL_NODE_PARAMS) -> Option<Node> {
    unsafe {
        let params = &*params;
        kernel(held, params.func as u64, params.grid, params.block, params.kernelParams)
    }
}

unsafe fn copy_node(params: *const CUDA_MEMCPY3D) -> Node {
    let params = unsafe { &*params };
    assert_eq!((params.srcMemoryType, params.dstMemoryType), (CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE));
    assert_eq!((params.Height, params.Depth), (1, 1));
    Node::Copy { to: params.dstDevice, from: params.srcDevice, bytes: params.WidthInBytes }
}

unsafe fn fill_node(params: *const CUDA_MEMSET_NODE_PARAMS) -> Node {
    let params = unsafe { &*params };
    assert_eq!((params.elementSize, params.height), (1, 1));
    Node::Fill { to: params.dst, pattern: vec![params.value as u8], count: params.width }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphAddKernelNode_v2(
    to: *mut u64,
    graph: u64,
    after: *const u64,
    count: usize,
    params: *const CUDA_KERNEL_NODE_PARAMS,
) -> CUresult {
    let mut held = begin!("cuGraphAddKernelNode_v2");
    let node = need!(held, unsafe { kernel_node(&mut held, params) }, "a node of no kernel");
    unsafe { add(held, to, graph, after, count, node) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphAddMemcpyNode(
    to: *mut u64,
    graph: u64,
    after: *const u64,
    count: usize,
    params: *const CUDA_MEMCPY3D,
    _context: u64,
) -> CUresult {
    let held = begin!("cuGraphAddMemcpyNode");
    unsafe { add(held, to, graph, after, count, copy_node(params)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphAddMemsetNode(
    to: *mut u64,
    graph: u64,
    after: *const u64,
    count: usize,
    params: *const CUDA_MEMSET_NODE_PARAMS,
    _context: u64,
) -> CUresult {
    let held = begin!("cuGraphAddMemsetNode");
    unsafe { add(held, to, graph, after, count, fill_node(params)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphInstantiateWithFlags(exec: *mut u64, graph: u64, _flags: u64) -> CUresult {
    let mut held = begin!("cuGraphInstantiateWithFlags");
    let Some(Thing::Graph { nodes }) = held.things.get(&graph) else { return INVALID_HANDLE };
    let nodes = nodes.clone();
    unsafe { *exec = held.add(Thing::Exec { nodes }) };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGraphExecDestroy(exec: u64) -> CUresult {
    let (mut held, code) = call("cuGraphExecDestroy");
    take_down(&mut held, exec);
    code
}

/// Tells a node of a graph what it is now.
fn change(mut held: Held, exec: u64, node: u64, now: Node) -> CUresult {
    let Some(Thing::Exec { nodes }) = held.things.get_mut(&exec) else { return INVALID_HANDLE };
    let Some((_, old)) = nodes.iter_mut().find(|(handle, _)| *handle == node) else { return INVALID_VALUE };
    if std::mem::discriminant(old) != std::mem::discriminant(&now) {
        held.violate("a node of a graph becomes another kind of node".into());
        return INVALID_VALUE;
    }
    *old = now;
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphExecKernelNodeSetParams_v2(
    exec: u64,
    node: u64,
    params: *const CUDA_KERNEL_NODE_PARAMS,
) -> CUresult {
    let mut held = begin!("cuGraphExecKernelNodeSetParams_v2");
    let now = need!(held, unsafe { kernel_node(&mut held, params) }, "a node of no kernel");
    change(held, exec, node, now)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphExecMemcpyNodeSetParams(
    exec: u64,
    node: u64,
    params: *const CUDA_MEMCPY3D,
    _context: u64,
) -> CUresult {
    let held = begin!("cuGraphExecMemcpyNodeSetParams");
    change(held, exec, node, unsafe { copy_node(params) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphExecMemsetNodeSetParams(
    exec: u64,
    node: u64,
    params: *const CUDA_MEMSET_NODE_PARAMS,
    _context: u64,
) -> CUresult {
    let held = begin!("cuGraphExecMemsetNodeSetParams");
    change(held, exec, node, unsafe { fill_node(params) })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGraphLaunch(exec: u64, stream: u64) -> CUresult {
    let mut held = begin!("cuGraphLaunch");
    let Some(Thing::Exec { nodes }) = held.things.get(&exec) else { return INVALID_HANDLE };
    let nodes: Vec<Node> = nodes.iter().map(|(_, node)| node.clone()).collect();
    let device = need!(held, stream_of(&held, stream), "{stream:#x} is no stream");
    if current() != Some(device) {
        return INVALID_CONTEXT;
    }
    nodes.into_iter().for_each(|node| held.push(stream, Op::Node(node)));
    0
}
