/* A plugin that computes nothing: it counts what it hands out, records its calls, and fails those it is told to.
 *
 * `layout.h` is written by the tests from our own tables: where the fields of each struct lie, and the functions in
 * order. Handles are objects with a mark; every one that is destroyed twice, or used after that, is counted in
 * `fake_broken`. Variants are compiled by macros: MAJOR, MINOR, SIZE, NULL_TABLE, NO_SYMBOL, AT_LOAD (code that runs when
 * the library is loaded), FAIL_AT_START (a call that fails from the start).
 */
#include "layout.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AT(a, S, f, T) (*(T *)((char *)(a) + AT_##S##_##f))
#define COUNT(list) (sizeof(list) / sizeof *(list))

typedef enum { ERROR, EVENT, CLIENT, LOADED, PROGRAM, BUFFER, TOPOLOGY, BYTES, KINDS } Kind;
typedef struct Object {
  Kind kind;
  bool alive, deleted;
  int code;          /* of an error, or of what an event ends with */
  char message[128];
  char data[64];     /* of a buffer */
  const void *alias; /* of a buffer that was not copied */
  struct Object *buffer; /* of an event that ends with its buffer */
  void (*callback)(void *, void *);
  void *callback_arg;
} Object;

static int counts[KINDS], broken;
static char fail_name[128], fail_message[128];
static int fail_code, fail_after;
static int poison_code;
static bool donate, empty_handed;
static char record[1 << 16];

/* What the tests call. */
void fake_fail(const char *name, int after, int code, const char *message) {
  snprintf(fail_name, sizeof fail_name, "%s", name);
  snprintf(fail_message, sizeof fail_message, "%s", message);
  fail_after = after;
  fail_code = code;
}
void fake_poison(int code) { poison_code = code; }
void fake_donate(bool on) { donate = on; }
void fake_empty_handed(bool on) { empty_handed = on; }
int fake_count(int kind) { return counts[kind]; }
int fake_broken(void) { return broken; }
const char *fake_record(void) { return record; }
void fake_forget(void) { record[0] = 0; }

static void *make(Kind kind) {
  Object *o = calloc(1, sizeof *o);
  o->kind = kind;
  o->alive = true;
  counts[kind]++;
  return o;
}
/* Memory of objects is kept, so that a use after the end is seen. */
static Object *use(void *handle, Kind kind) {
  Object *o = handle;
  if (!o || !o->alive || o->kind != kind) {
    broken++;
    return NULL;
  }
  return o;
}
static void end(void *handle, Kind kind) {
  Object *o = use(handle, kind);
  if (!o) return;
  o->alive = false;
  counts[kind]--;
}
static void *error(int code, const char *message) {
  Object *e = make(ERROR);
  e->code = code;
  snprintf(e->message, sizeof e->message, "%s", message);
  return e;
}
static void *failing(Object *o) { return o->code ? error(o->code, o->message) : NULL; }

static void *enter(const char *name, char *args, size_t size) {
  strncat(record, name, sizeof record - strlen(record) - 2);
  strcat(record, "\n");
  if (*(size_t *)args != size) return error(3, "wrong struct_size");
  if (!strcmp(name, fail_name) && fail_after-- == 0) return error(fail_code, fail_message);
  return NULL;
}

static char *devices[2] = {"0", "1"};
static int64_t coords[3] = {1, 2, 3};
static int64_t dims[1] = {3};
static size_t ranks[1] = {1};
static int types[1] = {11};

static char attributes[2 * SIZE_PJRT_NamedValue];
static void attribute(int at, const char *name, int type, int64_t value, size_t size) {
  char *v = attributes + at * SIZE_PJRT_NamedValue;
  AT(v, PJRT_NamedValue, struct_size, size_t) = SIZE_PJRT_NamedValue;
  AT(v, PJRT_NamedValue, name, const char *) = name;
  AT(v, PJRT_NamedValue, name_size, size_t) = strlen(name);
  AT(v, PJRT_NamedValue, type, int) = type;
  AT(v, PJRT_NamedValue, value, int64_t) = value;
  AT(v, PJRT_NamedValue, value_size, size_t) = size;
}

static Object *event(void) { return make(EVENT); }
static Object *buffer_like(const void *data, size_t size) {
  Object *b = make(BUFFER);
  memcpy(b->data, data, size < sizeof b->data ? size : sizeof b->data);
  return b;
}
static Object *ending(Object *b) {
  Object *e = event();
  e->code = b->code;
  strcpy(e->message, b->message);
  return e;
}
static void free_bytes(void *bytes) { end(bytes, BYTES); }

#define ACT(name) static void *act_##name(char *a)
#define NOTHING(name) ACT(name) { (void)a; return NULL; }
#define TEXT(name, field, what) \
  ACT(name) { AT(a, name##_Args, field, const char *) = what; AT(a, name##_Args, field##_size, size_t) = strlen(what); return NULL; }
#define NUMBER(name, field, T, what) ACT(name) { AT(a, name##_Args, field, T) = what; return NULL; }
#define END(name, field, kind) ACT(name) { end(AT(a, name##_Args, field, void *), kind); return NULL; }
#define LIST(name, field, num, list) \
  ACT(name) { AT(a, name##_Args, field, void *) = list; AT(a, name##_Args, num, size_t) = COUNT(list); return NULL; }

static void *act_PJRT_Error_Destroy(char *a) { end(AT(a, PJRT_Error_Destroy_Args, error, void *), ERROR); return NULL; }
static void *act_PJRT_Error_Message(char *a) {
  Object *e = use(AT(a, PJRT_Error_Message_Args, error, void *), ERROR);
  AT(a, PJRT_Error_Message_Args, message, const char *) = e ? e->message : "";
  AT(a, PJRT_Error_Message_Args, message_size, size_t) = e ? strlen(e->message) : 0;
  return NULL;
}
ACT(PJRT_Error_GetCode) {
  Object *e = use(AT(a, PJRT_Error_GetCode_Args, error, void *), ERROR);
  AT(a, PJRT_Error_GetCode_Args, code, int) = e ? e->code : 0;
  return NULL;
}
NOTHING(PJRT_Plugin_Initialize)
ACT(PJRT_Plugin_Attributes) {
  attribute(0, "stablehlo_current_version", 2, (int64_t)coords, 3);
  attribute(1, "of_a_type_to_come", 77, 0, 1);
  AT(a, PJRT_Plugin_Attributes_Args, attributes, void *) = attributes;
  AT(a, PJRT_Plugin_Attributes_Args, num_attributes, size_t) = 2;
  return NULL;
}
END(PJRT_Event_Destroy, event, EVENT)
NUMBER(PJRT_Event_IsReady, is_ready, bool, true)
ACT(PJRT_Event_Error) { Object *e = use(AT(a, PJRT_Event_Error_Args, event, void *), EVENT); return e ? failing(e) : NULL; }
ACT(PJRT_Event_Await) { Object *e = use(AT(a, PJRT_Event_Await_Args, event, void *), EVENT); return e ? failing(e) : NULL; }
ACT(PJRT_Event_OnReady) {
  Object *e = use(AT(a, PJRT_Event_OnReady_Args, event, void *), EVENT);
  void (*callback)(void *, void *) = AT(a, PJRT_Event_OnReady_Args, callback, void *);
  void *arg = AT(a, PJRT_Event_OnReady_Args, user_arg, void *);
  if (e && e->buffer && e->buffer->alive) {
    e->buffer->callback = callback;
    e->buffer->callback_arg = arg;
  } else {
    callback(e ? failing(e) : NULL, arg);
  }
  return NULL;
}
ACT(PJRT_Client_Create) {
  if (AT(a, PJRT_Client_Create_Args, num_options, size_t) > 5) return error(3, "too many options");
  AT(a, PJRT_Client_Create_Args, client, void *) = empty_handed ? NULL : make(CLIENT);
  return NULL;
}
END(PJRT_Client_Destroy, client, CLIENT)
TEXT(PJRT_Client_PlatformName, platform_name, "fake")
TEXT(PJRT_Client_PlatformVersion, platform_version, "fake 1")
NUMBER(PJRT_Client_ProcessIndex, process_index, int, 0)
LIST(PJRT_Client_Devices, devices, num_devices, devices)
LIST(PJRT_Client_AddressableDevices, addressable_devices, num_addressable_devices, devices)
LIST(PJRT_Client_AddressableMemories, addressable_memories, num_addressable_memories, devices)
ACT(PJRT_Client_Compile) {
  use(AT(a, PJRT_Client_Compile_Args, client, void *), CLIENT);
  AT(a, PJRT_Client_Compile_Args, executable, void *) = empty_handed ? NULL : make(LOADED);
  return NULL;
}
ACT(PJRT_Client_BufferFromHostBuffer) {
  use(AT(a, PJRT_Client_BufferFromHostBuffer_Args, client, void *), CLIENT);
  const void *data = AT(a, PJRT_Client_BufferFromHostBuffer_Args, data, void *);
  Object *b = buffer_like(data, 12), *done = event();
  if (AT(a, PJRT_Client_BufferFromHostBuffer_Args, host_buffer_semantics, int) == 2) {
    b->alias = data;
    done->buffer = b;
  }
  AT(a, PJRT_Client_BufferFromHostBuffer_Args, buffer, void *) = b;
  AT(a, PJRT_Client_BufferFromHostBuffer_Args, done_with_host_buffer, void *) = done;
  return NULL;
}
NUMBER(PJRT_DeviceDescription_Id, id, int, 40 + AT(a, PJRT_DeviceDescription_Id_Args, device_description, char *)[0])
NUMBER(PJRT_DeviceDescription_ProcessIndex, process_index, int, 0)
ACT(PJRT_DeviceDescription_Attributes) {
  attribute(0, "coords", 2, (int64_t)coords, 3);
  attribute(1, "cores", 1, 2, 1);
  AT(a, PJRT_DeviceDescription_Attributes_Args, attributes, void *) = attributes;
  AT(a, PJRT_DeviceDescription_Attributes_Args, num_attributes, size_t) = 2;
  return NULL;
}
TEXT(PJRT_DeviceDescription_Kind, device_kind, "fake device")
TEXT(PJRT_DeviceDescription_DebugString, debug_string, "a fake device")
TEXT(PJRT_DeviceDescription_ToString, to_string, "Fake(0)")
NUMBER(PJRT_Device_GetDescription, device_description, void *, AT(a, PJRT_Device_GetDescription_Args, device, void *))
NUMBER(PJRT_Device_IsAddressable, is_addressable, bool, true)
NUMBER(PJRT_Device_LocalHardwareId, local_hardware_id, int, -1)
LIST(PJRT_Device_AddressableMemories, memories, num_memories, devices)
NUMBER(PJRT_Device_DefaultMemory, memory, void *, devices[0])
ACT(PJRT_Device_MemoryStats) {
  AT(a, PJRT_Device_MemoryStats_Args, bytes_in_use, int64_t) = 100;
  AT(a, PJRT_Device_MemoryStats_Args, bytes_limit, int64_t) = 1000;
  AT(a, PJRT_Device_MemoryStats_Args, bytes_limit_is_set, bool) = true;
  return NULL;
}
NUMBER(PJRT_Memory_Id, id, int, 7)
TEXT(PJRT_Memory_Kind, kind, "device")
TEXT(PJRT_Memory_DebugString, debug_string, "a fake memory")
TEXT(PJRT_Memory_ToString, to_string, "FakeMemory(7)")
LIST(PJRT_Memory_AddressableByDevices, devices, num_devices, devices)
END(PJRT_Executable_Destroy, executable, PROGRAM)
TEXT(PJRT_Executable_Name, executable_name, "main")
NUMBER(PJRT_Executable_NumReplicas, num_replicas, size_t, 1)
NUMBER(PJRT_Executable_NumPartitions, num_partitions, size_t, 1)
NUMBER(PJRT_Executable_NumOutputs, num_outputs, size_t, 1)
NUMBER(PJRT_Executable_SizeOfGeneratedCodeInBytes, size_in_bytes, int64_t, -1)
ACT(PJRT_Executable_GetCostAnalysis) {
  attribute(0, "flops", 3, 0x40400000, 1); /* 3.0 */
  AT(a, PJRT_Executable_GetCostAnalysis_Args, properties, void *) = attributes;
  AT(a, PJRT_Executable_GetCostAnalysis_Args, num_properties, size_t) = 1;
  return NULL;
}
ACT(PJRT_Executable_OptimizedProgram) {
  char *p = AT(a, PJRT_Executable_OptimizedProgram_Args, program, char *);
  AT(p, PJRT_Program, format, const char *) = "text";
  AT(p, PJRT_Program, format_size, size_t) = 4;
  char *code = AT(p, PJRT_Program, code, char *);
  if (code) memcpy(code, "HloModule", 9);
  AT(p, PJRT_Program, code_size, size_t) = 9;
  return NULL;
}
ACT(PJRT_Executable_Serialize) {
  AT(a, PJRT_Executable_Serialize_Args, serialized_bytes, const char *) = "saved";
  AT(a, PJRT_Executable_Serialize_Args, serialized_bytes_size, size_t) = 5;
  AT(a, PJRT_Executable_Serialize_Args, serialized_executable, void *) = make(BYTES);
  AT(a, PJRT_Executable_Serialize_Args, serialized_executable_deleter, void *) = (void *)free_bytes;
  return NULL;
}
END(PJRT_LoadedExecutable_Destroy, executable, LOADED)
NUMBER(PJRT_LoadedExecutable_GetExecutable, executable, void *, make(PROGRAM))
LIST(PJRT_LoadedExecutable_AddressableDevices, addressable_devices, num_addressable_devices, devices)
ACT(PJRT_LoadedExecutable_Execute) {
  use(AT(a, PJRT_LoadedExecutable_Execute_Args, executable, void *), LOADED);
  Object ***in = AT(a, PJRT_LoadedExecutable_Execute_Args, argument_lists, void *);
  void ***out = AT(a, PJRT_LoadedExecutable_Execute_Args, output_lists, void *);
  char *options = AT(a, PJRT_LoadedExecutable_Execute_Args, options, void *);
  int64_t *keep = AT(options, PJRT_ExecuteOptions, non_donatable_input_indices, void *);
  void **ends = AT(a, PJRT_LoadedExecutable_Execute_Args, device_complete_events, void *);
  size_t kept = AT(options, PJRT_ExecuteOptions, num_non_donatable_input_indices, size_t);
  for (size_t d = 0; d < AT(a, PJRT_LoadedExecutable_Execute_Args, num_devices, size_t); d++) {
    Object *first = use(in[d][0], BUFFER);
    if (!first || first->deleted) return error(3, "Buffer has been deleted or donated.");
    Object *result = buffer_like(first->data, 12);
    result->code = poison_code;
    strcpy(result->message, "the run failed");
    out[d][0] = result;
    if (ends) ends[d] = ending(result);
    if (donate && !(kept == 1 && keep[0] == 0)) first->deleted = true;
  }
  return NULL;
}
ACT(PJRT_Executable_DeserializeAndLoad) {
  AT(a, PJRT_Executable_DeserializeAndLoad_Args, loaded_executable, void *) = make(LOADED);
  return NULL;
}
ACT(PJRT_Buffer_Destroy) {
  Object *b = use(AT(a, PJRT_Buffer_Destroy_Args, buffer, void *), BUFFER);
  if (b && b->callback) b->callback(NULL, b->callback_arg);
  end(b, BUFFER);
  return NULL;
}
NUMBER(PJRT_Buffer_ElementType, type, int, 11)
LIST(PJRT_Buffer_Dimensions, dims, num_dims, dims)
LIST(PJRT_Buffer_UnpaddedDimensions, unpadded_dims, num_dims, dims)
NUMBER(PJRT_Buffer_OnDeviceSizeInBytes, on_device_size_in_bytes, size_t, 16)
NUMBER(PJRT_Buffer_Device, device, void *, devices[0])
NUMBER(PJRT_Buffer_Memory, memory, void *, devices[0])
NUMBER(PJRT_Buffer_IsDeleted, is_deleted, bool, use(AT(a, PJRT_Buffer_IsDeleted_Args, buffer, void *), BUFFER)->deleted)
static void *copied(void *from) { Object *b = use(from, BUFFER); return b ? buffer_like(b->data, 12) : NULL; }
NUMBER(PJRT_Buffer_CopyToDevice, dst_buffer, void *, copied(AT(a, PJRT_Buffer_CopyToDevice_Args, buffer, void *)))
NUMBER(PJRT_Buffer_CopyToMemory, dst_buffer, void *, copied(AT(a, PJRT_Buffer_CopyToMemory_Args, buffer, void *)))
ACT(PJRT_Buffer_ToHostBuffer) {
  Object *b = use(AT(a, PJRT_Buffer_ToHostBuffer_Args, src, void *), BUFFER);
  memcpy(AT(a, PJRT_Buffer_ToHostBuffer_Args, dst, void *), b->alias ? b->alias : b->data, 12);
  AT(a, PJRT_Buffer_ToHostBuffer_Args, event, void *) = ending(b);
  return NULL;
}
NUMBER(PJRT_Buffer_IsOnCpu, is_on_cpu, bool, false)
NUMBER(PJRT_Buffer_ReadyEvent, event, void *, ending(use(AT(a, PJRT_Buffer_ReadyEvent_Args, buffer, void *), BUFFER)))
NUMBER(PJRT_Buffer_UnsafePointer, buffer_pointer, uintptr_t, 4096)
NOTHING(PJRT_Buffer_IncreaseExternalReferenceCount)
NOTHING(PJRT_Buffer_DecreaseExternalReferenceCount)
NUMBER(PJRT_TopologyDescription_Create, topology, void *, make(TOPOLOGY))
END(PJRT_TopologyDescription_Destroy, topology, TOPOLOGY)
TEXT(PJRT_TopologyDescription_PlatformName, platform_name, "fake")
TEXT(PJRT_TopologyDescription_PlatformVersion, platform_version, "fake 1")
LIST(PJRT_TopologyDescription_GetDeviceDescriptions, descriptions, num_descriptions, devices)
ACT(PJRT_TopologyDescription_Serialize) {
  AT(a, PJRT_TopologyDescription_Serialize_Args, serialized_bytes, const char *) = "topology";
  AT(a, PJRT_TopologyDescription_Serialize_Args, serialized_bytes_size, size_t) = 8;
  AT(a, PJRT_TopologyDescription_Serialize_Args, serialized_topology, void *) = make(BYTES);
  AT(a, PJRT_TopologyDescription_Serialize_Args, serialized_topology_deleter, void *) = (void *)free_bytes;
  return NULL;
}
NUMBER(PJRT_TopologyDescription_Deserialize, topology, void *, make(TOPOLOGY))
NUMBER(PJRT_Compile, executable, void *, make(PROGRAM))
LIST(PJRT_Executable_OutputElementTypes, output_types, num_output_types, types)
ACT(PJRT_Executable_OutputDimensions) {
  AT(a, PJRT_Executable_OutputDimensions_Args, num_outputs, size_t) = 1;
  AT(a, PJRT_Executable_OutputDimensions_Args, dims, void *) = dims;
  AT(a, PJRT_Executable_OutputDimensions_Args, dim_sizes, void *) = ranks;
  return NULL;
}
NUMBER(PJRT_Executable_GetCompiledMemoryStats, temp_size_in_bytes, int64_t, 64)

/* Functions that the tests list as unused have no act, and say so. */
#define X(name, size) \
  static void *call_##name(char *a) { \
    void *failed = enter(#name, a, size); \
    return failed ? failed : act_##name(a); \
  }
CALLED(X)
#undef X
#define X(name) static void *call_##name(char *a) { (void)a; return error(12, "fake: " #name); }
UNCALLED(X)
#undef X

static char table[TABLE_SIZE + 64];

#ifndef MAJOR
#define MAJOR 0
#endif
#ifndef MINOR
#define MINOR 90
#endif
#ifndef SIZE
#define SIZE TABLE_SIZE
#endif

#ifdef AT_LOAD
__attribute__((constructor)) static void at_load(void) { AT_LOAD; }
#endif

#ifndef NO_SYMBOL
const void *GetPjrtApi(void) {
#ifdef NULL_TABLE
  return NULL;
#endif
#ifdef FAIL_AT_START
  fake_fail(FAIL_AT_START, 0, 13, "no such device");
#endif
  *(size_t *)table = SIZE;
  *(int *)(table + VERSION_AT) = MAJOR;
  *(int *)(table + VERSION_AT + 4) = MINOR;
#define X(name, size) *(void **)(table + AT_PJRT_Api_##name) = (void *)call_##name;
  CALLED(X)
#undef X
#define X(name) *(void **)(table + AT_PJRT_Api_##name) = (void *)call_##name;
  UNCALLED(X)
#undef X
  /* these two give nothing back and are not recorded */
  *(void **)(table + AT_PJRT_Api_PJRT_Error_Destroy) = (void *)act_PJRT_Error_Destroy;
  *(void **)(table + AT_PJRT_Api_PJRT_Error_Message) = (void *)act_PJRT_Error_Message;
  return table;
}
#endif
