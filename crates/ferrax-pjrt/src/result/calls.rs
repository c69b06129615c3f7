//! The calls, in the header's order.
//!
//! The macro `calls` writes them: the named arguments are put into the function's struct, the function is called, and
//! the value after its name is made of the struct. All are unsafe for the same reason, which each says.

use super::{NamedValues, OptionValue, arguments, call, list, named_values, text};
use crate::sys::*;
use ferrax_base::Result;
use std::ffi::{c_char, c_int, c_void};

macro_rules! calls {
    ($(
        $(#[$doc:meta])*
        $name:ident($($arg:ident: $ty:ty),* $(,)?) -> $out:ty = $call:ident($args:pat) { $($value:tt)* }
    )*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            /// Handles are alive and the plugin's; addresses are valid for as long as the header says.
            #[inline]
            pub unsafe fn $name(api: &PJRT_Api, $($arg: $ty),*) -> Result<$out> {
                #[allow(unused_mut, reason = "not every call has arguments")]
                let mut args = arguments(api.$call);
                $(args.$arg = $arg;)*
                // SAFETY: the caller's promise.
                unsafe { call(api, api.$call, stringify!($call), &mut args)? };
                let $args = &args;
                // SAFETY: strings and lists of the plugin are as long as it says, and alive now.
                #[allow(unused_unsafe, reason = "not every value is read through an address")]
                Ok(unsafe { $($value)* })
            }
        )*
    };
}

calls! {
    /// Prepares a plugin; before everything else.
    plugin_initialize() -> () = PJRT_Plugin_Initialize(_) { () }
    /// What a plugin says of itself.
    plugin_attributes() -> Vec<(String, OptionValue)> = PJRT_Plugin_Attributes(a) {
        named_values(a.attributes, a.num_attributes)
    }

    /// Frees an event.
    event_destroy(event: *mut PJRT_Event) -> () = PJRT_Event_Destroy(_) { () }
    /// Whether an event has happened, with an error or without.
    event_is_ready(event: *mut PJRT_Event) -> bool = PJRT_Event_IsReady(a) { a.is_ready }
    /// The error of an event that has happened.
    event_error(event: *mut PJRT_Event) -> () = PJRT_Event_Error(_) { () }
    /// Waits for an event; gives its error.
    event_await(event: *mut PJRT_Event) -> () = PJRT_Event_Await(_) { () }
    /// Calls a function when an event has happened.
    event_on_ready(event: *mut PJRT_Event, callback: PJRT_Event_OnReadyCallback, user_arg: *mut c_void) -> ()
        = PJRT_Event_OnReady(_) { () }

    /// Frees a client, after everything that it made.
    client_destroy(client: *mut PJRT_Client) -> () = PJRT_Client_Destroy(_) { () }
    /// The platform: `"cpu"`, `"cuda"`.
    client_platform_name(client: *mut PJRT_Client) -> String = PJRT_Client_PlatformName(a) {
        text(a.platform_name, a.platform_name_size)
    }
    /// Versions of what the platform is made of, as text.
    client_platform_version(client: *mut PJRT_Client) -> String = PJRT_Client_PlatformVersion(a) {
        text(a.platform_version, a.platform_version_size)
    }
    /// The number of this process among those of a client.
    client_process_index(client: *mut PJRT_Client) -> c_int = PJRT_Client_ProcessIndex(a) { a.process_index }
    /// The topology of a client's devices, which belongs to the client.
    client_topology(client: *mut PJRT_Client) -> *mut PJRT_TopologyDescription = PJRT_Client_TopologyDescription(a) {
        a.topology
    }
    /// All devices, those of other processes included.
    client_devices(client: *mut PJRT_Client) -> Vec<*mut PJRT_Device> = PJRT_Client_Devices(a) {
        list(a.devices, a.num_devices).to_vec()
    }
    /// The devices that this process can use.
    client_addressable_devices(client: *mut PJRT_Client) -> Vec<*mut PJRT_Device> = PJRT_Client_AddressableDevices(a) {
        list(a.addressable_devices, a.num_addressable_devices).to_vec()
    }
    /// The memories that this process can use.
    client_addressable_memories(client: *mut PJRT_Client) -> Vec<*mut PJRT_Memory>
        = PJRT_Client_AddressableMemories(a) {
        list(a.addressable_memories, a.num_addressable_memories).to_vec()
    }
    /// Shows a plugin memory of its device that somebody else owns, as a buffer.
    client_create_view(
        client: *mut PJRT_Client,
        device_buffer_ptr: *mut c_void,
        dims: *const i64,
        num_dims: usize,
        element_type: PJRT_Buffer_Type,
        device: *mut PJRT_Device,
        on_delete_callback: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>,
        on_delete_callback_arg: *mut c_void,
    ) -> *mut PJRT_Buffer = PJRT_Client_CreateViewOfDeviceBuffer(a) { a.buffer }

    /// A device's number among those of its kind.
    description_id(device_description: *mut PJRT_DeviceDescription) -> c_int = PJRT_DeviceDescription_Id(a) { a.id }
    /// The process that a device belongs to.
    description_process_index(device_description: *mut PJRT_DeviceDescription) -> c_int
        = PJRT_DeviceDescription_ProcessIndex(a) { a.process_index }
    /// What a plugin says of a device: its coordinates, say.
    description_attributes(device_description: *mut PJRT_DeviceDescription) -> Vec<(String, OptionValue)>
        = PJRT_DeviceDescription_Attributes(a) { named_values(a.attributes, a.num_attributes) }
    /// The model of a device.
    description_kind(device_description: *mut PJRT_DeviceDescription) -> String = PJRT_DeviceDescription_Kind(a) {
        text(a.device_kind, a.device_kind_size)
    }
    /// A device for logs.
    description_debug_string(device_description: *mut PJRT_DeviceDescription) -> String
        = PJRT_DeviceDescription_DebugString(a) { text(a.debug_string, a.debug_string_size) }
    /// A device for people.
    description_to_string(device_description: *mut PJRT_DeviceDescription) -> String
        = PJRT_DeviceDescription_ToString(a) { text(a.to_string, a.to_string_size) }

    /// The description of a device.
    device_description(device: *mut PJRT_Device) -> *mut PJRT_DeviceDescription = PJRT_Device_GetDescription(a) {
        a.device_description
    }
    /// Whether this process can use a device.
    device_is_addressable(device: *mut PJRT_Device) -> bool = PJRT_Device_IsAddressable(a) { a.is_addressable }
    /// The number that a driver gives a device; -1 where it has none.
    device_local_hardware_id(device: *mut PJRT_Device) -> c_int = PJRT_Device_LocalHardwareId(a) { a.local_hardware_id }
    /// The memories that a device can use.
    device_memories(device: *mut PJRT_Device) -> Vec<*mut PJRT_Memory> = PJRT_Device_AddressableMemories(a) {
        list(a.memories, a.num_memories).to_vec()
    }
    /// The memory that a device uses where nobody names one.
    device_default_memory(device: *mut PJRT_Device) -> *mut PJRT_Memory = PJRT_Device_DefaultMemory(a) { a.memory }
    /// What the allocator of a device has counted.
    device_memory_stats(device: *mut PJRT_Device) -> PJRT_Device_MemoryStats_Args = PJRT_Device_MemoryStats(a) { *a }

    /// A memory's number.
    memory_id(memory: *mut PJRT_Memory) -> c_int = PJRT_Memory_Id(a) { a.id }
    /// A memory's kind: `"device"`, `"pinned_host"`.
    memory_kind(memory: *mut PJRT_Memory) -> String = PJRT_Memory_Kind(a) { text(a.kind, a.kind_size) }
    /// A memory for logs.
    memory_debug_string(memory: *mut PJRT_Memory) -> String = PJRT_Memory_DebugString(a) {
        text(a.debug_string, a.debug_string_size)
    }
    /// A memory for people.
    memory_to_string(memory: *mut PJRT_Memory) -> String
        = PJRT_Memory_ToString(a) { text(a.to_string, a.to_string_size) }
    /// The devices that can use a memory.
    memory_devices(memory: *mut PJRT_Memory) -> Vec<*mut PJRT_Device> = PJRT_Memory_AddressableByDevices(a) {
        list(a.devices, a.num_devices).to_vec()
    }

    /// Frees a description of an executable.
    executable_destroy(executable: *mut PJRT_Executable) -> () = PJRT_Executable_Destroy(_) { () }
    /// The program's name.
    executable_name(executable: *mut PJRT_Executable) -> String = PJRT_Executable_Name(a) {
        text(a.executable_name, a.executable_name_size)
    }
    /// How many replicas it runs.
    executable_num_replicas(executable: *mut PJRT_Executable) -> usize
        = PJRT_Executable_NumReplicas(a) { a.num_replicas }
    /// How many partitions it runs.
    executable_num_partitions(executable: *mut PJRT_Executable) -> usize = PJRT_Executable_NumPartitions(a) {
        a.num_partitions
    }
    /// How many results it has on each device.
    executable_num_outputs(executable: *mut PJRT_Executable) -> usize = PJRT_Executable_NumOutputs(a) { a.num_outputs }
    /// Bytes of its machine code.
    executable_code_size(executable: *mut PJRT_Executable) -> i64 = PJRT_Executable_SizeOfGeneratedCodeInBytes(a) {
        a.size_in_bytes
    }
    /// What it costs, by the platform's names.
    executable_costs(executable: *mut PJRT_Executable) -> Vec<(String, OptionValue)>
        = PJRT_Executable_GetCostAnalysis(a) {
        named_values(a.properties, a.num_properties)
    }
    /// Kinds of the memories of its results.
    executable_output_memory_kinds(executable: *mut PJRT_Executable) -> Vec<String>
        = PJRT_Executable_OutputMemoryKinds(a) {
        let sizes = list(a.memory_kind_sizes, a.num_outputs);
        list(a.memory_kinds, a.num_outputs).iter().zip(sizes).map(|(k, n)| text(*k, *n)).collect()
    }
    /// A name that executables of equal programs, options and compilers have in common.
    executable_fingerprint(executable: *mut PJRT_Executable) -> String = PJRT_Executable_Fingerprint(a) {
        text(a.executable_fingerprint, a.executable_fingerprint_size)
    }
    /// Bytes that a run needs.
    executable_memory(executable: *mut PJRT_Executable) -> PJRT_Executable_GetCompiledMemoryStats_Args
        = PJRT_Executable_GetCompiledMemoryStats(a) { *a }
    /// Element types of its results.
    executable_output_types(executable: *mut PJRT_Executable) -> Vec<PJRT_Buffer_Type>
        = PJRT_Executable_OutputElementTypes(a) { list(a.output_types, a.num_output_types).to_vec() }
    /// Dimensions of its results.
    executable_output_dims(executable: *mut PJRT_Executable) -> Vec<Vec<i64>> = PJRT_Executable_OutputDimensions(a) {
        let ranks = list(a.dim_sizes, a.num_outputs);
        let mut rest = list(a.dims, ranks.iter().sum());
        let mut take = |rank: &usize| {
            let (dims, others) = rest.split_at(*rank);
            rest = others;
            dims.to_vec()
        };
        ranks.iter().map(&mut take).collect()
    }

    /// Frees an executable; runs that have started end.
    loaded_destroy(executable: *mut PJRT_LoadedExecutable) -> () = PJRT_LoadedExecutable_Destroy(_) { () }
    /// The description of an executable, which the caller frees.
    loaded_executable(loaded_executable: *mut PJRT_LoadedExecutable) -> *mut PJRT_Executable
        = PJRT_LoadedExecutable_GetExecutable(a) { a.executable }
    /// The devices that it runs on.
    loaded_devices(executable: *mut PJRT_LoadedExecutable) -> Vec<*mut PJRT_Device>
        = PJRT_LoadedExecutable_AddressableDevices(a) {
            list(a.addressable_devices, a.num_addressable_devices).to_vec()
        }
    /// Lets go of what an executable holds.
    loaded_delete(executable: *mut PJRT_LoadedExecutable) -> () = PJRT_LoadedExecutable_Delete(_) { () }
    /// Whether that was done.
    loaded_is_deleted(executable: *mut PJRT_LoadedExecutable) -> bool
        = PJRT_LoadedExecutable_IsDeleted(a) { a.is_deleted }

    /// Frees a buffer.
    buffer_destroy(buffer: *mut PJRT_Buffer) -> () = PJRT_Buffer_Destroy(_) { () }
    /// The type of a buffer's elements.
    buffer_element_type(buffer: *mut PJRT_Buffer) -> PJRT_Buffer_Type = PJRT_Buffer_ElementType(a) { a.r#type }
    /// A buffer's dimensions.
    buffer_dims(buffer: *mut PJRT_Buffer) -> Vec<i64> = PJRT_Buffer_Dimensions(a) { list(a.dims, a.num_dims).to_vec() }
    /// A buffer's dimensions without padding.
    buffer_logical_dims(buffer: *mut PJRT_Buffer) -> Vec<i64> = PJRT_Buffer_UnpaddedDimensions(a) {
        list(a.unpadded_dims, a.num_dims).to_vec()
    }
    /// Bytes that a buffer takes.
    buffer_on_device_size(buffer: *mut PJRT_Buffer) -> usize = PJRT_Buffer_OnDeviceSizeInBytes(a) {
        a.on_device_size_in_bytes
    }
    /// The device of a buffer.
    buffer_device(buffer: *mut PJRT_Buffer) -> *mut PJRT_Device = PJRT_Buffer_Device(a) { a.device }
    /// The memory of a buffer.
    buffer_memory(buffer: *mut PJRT_Buffer) -> *mut PJRT_Memory = PJRT_Buffer_Memory(a) { a.memory }
    /// Frees a buffer's elements, and keeps the handle.
    buffer_delete(buffer: *mut PJRT_Buffer) -> () = PJRT_Buffer_Delete(_) { () }
    /// Whether the elements were freed or donated.
    buffer_is_deleted(buffer: *mut PJRT_Buffer) -> bool = PJRT_Buffer_IsDeleted(a) { a.is_deleted }
    /// A copy on another device.
    buffer_copy_to_device(buffer: *mut PJRT_Buffer, dst_device: *mut PJRT_Device) -> *mut PJRT_Buffer
        = PJRT_Buffer_CopyToDevice(a) { a.dst_buffer }
    /// A copy in another memory.
    buffer_copy_to_memory(buffer: *mut PJRT_Buffer, dst_memory: *mut PJRT_Memory) -> *mut PJRT_Buffer
        = PJRT_Buffer_CopyToMemory(a) { a.dst_buffer }
    /// Starts to copy the elements to the host; the event tells the end.
    buffer_to_host(src: *mut PJRT_Buffer, host_layout: *mut PJRT_Buffer_MemoryLayout, dst: *mut c_void, dst_size: usize)
        -> *mut PJRT_Event = PJRT_Buffer_ToHostBuffer(a) { a.event }
    /// Whether the elements lie where the host can read them.
    buffer_is_on_cpu(buffer: *mut PJRT_Buffer) -> bool = PJRT_Buffer_IsOnCpu(a) { a.is_on_cpu }
    /// The event of the elements being there.
    buffer_ready_event(buffer: *mut PJRT_Buffer) -> *mut PJRT_Event = PJRT_Buffer_ReadyEvent(a) { a.event }
    /// The address of the elements on the device.
    buffer_unsafe_pointer(buffer: *mut PJRT_Buffer) -> usize = PJRT_Buffer_UnsafePointer(a) { a.buffer_pointer }
    /// Keeps the elements from being freed or donated.
    buffer_hold(buffer: *mut PJRT_Buffer) -> () = PJRT_Buffer_IncreaseExternalReferenceCount(_) { () }
    /// Ends one [`buffer_hold`].
    buffer_release(buffer: *mut PJRT_Buffer) -> () = PJRT_Buffer_DecreaseExternalReferenceCount(_) { () }

    /// Frees a topology.
    topology_destroy(topology: *mut PJRT_TopologyDescription) -> () = PJRT_TopologyDescription_Destroy(_) { () }
    /// The platform of a topology.
    topology_platform_name(topology: *const PJRT_TopologyDescription) -> String
        = PJRT_TopologyDescription_PlatformName(a) {
        text(a.platform_name, a.platform_name_size)
    }
    /// Versions of what the platform is made of, as text.
    topology_platform_version(topology: *mut PJRT_TopologyDescription) -> String
        = PJRT_TopologyDescription_PlatformVersion(a) { text(a.platform_version, a.platform_version_size) }
    /// The devices of a topology.
    topology_devices(topology: *const PJRT_TopologyDescription) -> Vec<*mut PJRT_DeviceDescription>
        = PJRT_TopologyDescription_GetDeviceDescriptions(a) { list(a.descriptions, a.num_descriptions).to_vec() }
    /// What a plugin says of a topology.
    topology_attributes(topology: *mut PJRT_TopologyDescription) -> Vec<(String, OptionValue)>
        = PJRT_TopologyDescription_Attributes(a) { named_values(a.attributes, a.num_attributes) }
    /// A topology from its serialized form.
    topology_deserialize(serialized_topology: *const c_char, serialized_topology_size: usize)
        -> *mut PJRT_TopologyDescription = PJRT_TopologyDescription_Deserialize(a) { a.topology }
}

/// Makes a client; `keys` says where it finds the store that it shares with other processes, if anywhere.
///
/// # Safety
/// The plugin was initialized; what `keys` has outlives the client.
pub unsafe fn client_create(
    api: &PJRT_Api,
    options: &[(String, OptionValue)],
    keys: PJRT_Client_Create_Args,
) -> Result<*mut PJRT_Client> {
    let options = NamedValues::new(options);
    let (create_options, num_options) = options.raw();
    let mut args = PJRT_Client_Create_Args { create_options, num_options, ..keys };
    // SAFETY: the options outlive the call.
    unsafe { call(api, api.PJRT_Client_Create, "PJRT_Client_Create", &mut args)? };
    Ok(args.client)
}

/// A program for the compiler: its bytes, and their format (`"mlir"`, `"hlo"`).
fn program(code: &[u8], format: &str) -> PJRT_Program {
    PJRT_Program {
        code: code.as_ptr().cast_mut().cast(),
        code_size: code.len(),
        format: format.as_ptr().cast(),
        format_size: format.len(),
        ..Args::new()
    }
}

/// Compiles a program for devices of a client; `options` are a serialized `CompileOptionsProto`.
///
/// # Safety
/// The client is alive and the plugin's.
pub unsafe fn client_compile(
    api: &PJRT_Api,
    client: *mut PJRT_Client,
    code: &[u8],
    format: &str,
    options: &[u8],
) -> Result<*mut PJRT_LoadedExecutable> {
    let program = program(code, format);
    let mut args = PJRT_Client_Compile_Args {
        client,
        program: &raw const program,
        compile_options: options.as_ptr().cast(),
        compile_options_size: options.len(),
        ..Args::new()
    };
    // SAFETY: the program, which is only read, and the options outlive the call.
    unsafe { call(api, api.PJRT_Client_Compile, "PJRT_Client_Compile", &mut args)? };
    Ok(args.executable)
}

/// Compiles a program for devices that need not be there.
///
/// # Safety
/// The topology is alive and the plugin's.
pub unsafe fn compile(
    api: &PJRT_Api,
    topology: *const PJRT_TopologyDescription,
    code: &[u8],
    format: &str,
    options: &[u8],
) -> Result<*mut PJRT_Executable> {
    let program = program(code, format);
    let mut args = PJRT_Compile_Args {
        topology,
        program: &raw const program,
        compile_options: options.as_ptr().cast(),
        compile_options_size: options.len(),
        ..Args::new()
    };
    // SAFETY: as in `client_compile`.
    unsafe { call(api, api.PJRT_Compile, "PJRT_Compile", &mut args)? };
    Ok(args.executable)
}

/// Which device each program of a run would get: by replica, then by partition.
///
/// # Safety
/// The client is alive and the plugin's.
pub unsafe fn client_default_assignment(
    api: &PJRT_Api,
    client: *mut PJRT_Client,
    replicas: usize,
    partitions: usize,
) -> Result<Vec<c_int>> {
    let mut ids = vec![0; replicas * partitions];
    let mut args = PJRT_Client_DefaultDeviceAssignment_Args {
        client,
        num_replicas: replicas as c_int,
        num_partitions: partitions as c_int,
        default_assignment_size: ids.len(),
        default_assignment: ids.as_mut_ptr(),
        ..Args::new()
    };
    // SAFETY: the list has the length that the plugin is told.
    unsafe {
        call(api, api.PJRT_Client_DefaultDeviceAssignment, "PJRT_Client_DefaultDeviceAssignment", &mut args)?;
    };
    Ok(ids)
}

/// Bytes of the plugin with what frees them, copied; then they are freed.
///
/// # Safety
/// `start` has `len` bytes, which live as long as `owner`; `owner` is not used after this.
unsafe fn taken<T>(
    start: *const c_char,
    len: usize,
    owner: *mut T,
    free: Option<unsafe extern "C" fn(*mut T)>,
) -> Vec<u8> {
    // SAFETY: the caller's promise.
    let bytes = unsafe { list(start.cast::<u8>(), len) }.to_vec();
    if let Some(free) = free {
        // SAFETY: the caller's promise.
        unsafe { free(owner) };
    }
    bytes
}

/// An executable as bytes that the same version of the plugin can load.
///
/// # Safety
/// The executable is alive and the plugin's.
pub unsafe fn executable_serialize(api: &PJRT_Api, executable: *const PJRT_Executable) -> Result<Vec<u8>> {
    let mut args = PJRT_Executable_Serialize_Args { executable, ..Args::new() };
    // SAFETY: the caller's promise; the bytes are the caller's once the call succeeds.
    unsafe {
        call(api, api.PJRT_Executable_Serialize, "PJRT_Executable_Serialize", &mut args)?;
        let (owner, free) = (args.serialized_executable, args.serialized_executable_deleter);
        Ok(taken(args.serialized_bytes, args.serialized_bytes_size, owner, free))
    }
}

/// A topology as bytes.
///
/// # Safety
/// The topology is alive and the plugin's.
pub unsafe fn topology_serialize(api: &PJRT_Api, topology: *mut PJRT_TopologyDescription) -> Result<Vec<u8>> {
    let mut args = PJRT_TopologyDescription_Serialize_Args { topology, ..Args::new() };
    // SAFETY: as in `executable_serialize`.
    unsafe {
        call(api, api.PJRT_TopologyDescription_Serialize, "PJRT_TopologyDescription_Serialize", &mut args)?;
        let (owner, free) = (args.serialized_topology, args.serialized_topology_deleter);
        Ok(taken(args.serialized_bytes, args.serialized_bytes_size, owner, free))
    }
}

/// Loads an executable from [`executable_serialize`]'s bytes; `options` of `None` are those it was compiled with.
///
/// # Safety
/// The client is alive and the plugin's.
pub unsafe fn deserialize_and_load(
    api: &PJRT_Api,
    client: *mut PJRT_Client,
    bytes: &[u8],
    options: Option<&[u8]>,
) -> Result<*mut PJRT_LoadedExecutable> {
    let mut args = PJRT_Executable_DeserializeAndLoad_Args {
        client,
        serialized_executable: bytes.as_ptr().cast(),
        serialized_executable_size: bytes.len(),
        overridden_serialized_compile_options: options.map_or(std::ptr::null(), |o| o.as_ptr().cast()),
        overridden_serialized_compile_options_size: options.map_or(0, <[u8]>::len),
        ..Args::new()
    };
    // SAFETY: both lists of bytes outlive the call.
    unsafe { call(api, api.PJRT_Executable_DeserializeAndLoad, "PJRT_Executable_DeserializeAndLoad", &mut args)? };
    Ok(args.loaded_executable)
}

/// The program as the compiler left it, and the format of its bytes.
///
/// # Safety
/// The executable is alive and the plugin's.
pub unsafe fn executable_program(api: &PJRT_Api, executable: *mut PJRT_Executable) -> Result<(String, Vec<u8>)> {
    const NAME: &str = "PJRT_Executable_OptimizedProgram";
    let mut program: PJRT_Program = Args::new();
    let mut args = PJRT_Executable_OptimizedProgram_Args { executable, program: &raw mut program, ..Args::new() };
    // SAFETY: without room for the bytes the plugin says how many there are.
    unsafe { call(api, api.PJRT_Executable_OptimizedProgram, NAME, &mut args)? };
    let mut bytes = vec![0u8; program.code_size];
    program.code = bytes.as_mut_ptr().cast();
    // SAFETY: now there is room for so many.
    unsafe { call(api, api.PJRT_Executable_OptimizedProgram, NAME, &mut args)? };
    bytes.truncate(program.code_size);
    // SAFETY: the format is the plugin's own string.
    Ok((unsafe { text(program.format, program.format_size) }, bytes))
}

/// A topology by its name.
///
/// # Safety
/// The plugin was initialized.
pub unsafe fn topology_create(
    api: &PJRT_Api,
    name: &str,
    options: &[(String, OptionValue)],
) -> Result<*mut PJRT_TopologyDescription> {
    let options = NamedValues::new(options);
    let (create_options, num_options) = options.raw();
    let mut args = PJRT_TopologyDescription_Create_Args {
        topology_name: name.as_ptr().cast(),
        topology_name_size: name.len(),
        create_options,
        num_options,
        ..Args::new()
    };
    // SAFETY: name and options outlive the call.
    unsafe { call(api, api.PJRT_TopologyDescription_Create, "PJRT_TopologyDescription_Create", &mut args)? };
    Ok(args.topology)
}
