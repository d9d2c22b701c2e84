/* A TensorFlow pluggable device of type "GPU" whose memory is the host's and whose kernels never run.
 *
 * SIMPLACE_GPU_COUNT and SIMPLACE_GPU_MEMORY (bytes per device) say what TensorFlow sees. TensorFlow's CUDA kernels
 * would reach a driver that is not there. So each kernel is stopped where TensorFlow starts it, whoever asked for it (a
 * function, a session, an eager op, a thread of a dataset): its node ends with RESOURCE_EXHAUSTED and `REFUSAL`. Only
 * kernels that hand tensors on, copy them or keep them are let through.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tensorflow/c/experimental/stream_executor/stream_executor.h"
#include "tensorflow/c/kernels.h"
#include "tensorflow/c/tf_status.h"

#define REFUSAL "an emulated GPU computes nothing" /* devices.py looks for it */
#define MAX_GPUS 256
#define ALIGNMENT 256 /* TensorFlow aborts on tensors that are not aligned to its Eigen packets */

struct SP_Stream_st { int unused; };
struct SP_Event_st { int unused; };
struct SP_Timer_st { int unused; };

static char bus_ids[MAX_GPUS][16];

static int64_t number_from(const char *variable, int64_t otherwise) {
  const char *text = getenv(variable);
  return text && *text ? strtoll(text, NULL, 10) : otherwise;
}

static void ok(TF_Status *status) { TF_SetStatus(status, TF_OK, ""); }

static void *aligned(uint64_t size) {
  void *memory = NULL;
  if (posix_memalign(&memory, ALIGNMENT, size ? size : 1) != 0) return NULL;
  return memory;
}

static void allocate(const SP_Device *device, uint64_t size, int64_t memory_space, SP_DeviceMemoryBase *memory) {
  (void)device;
  (void)memory_space;
  memory->struct_size = SP_DEVICE_MEMORY_BASE_STRUCT_SIZE;
  memory->opaque = aligned(size);
  memory->size = memory->opaque ? size : 0;
}

static void deallocate(const SP_Device *device, SP_DeviceMemoryBase *memory) {
  (void)device;
  free(memory->opaque);
  memory->opaque = NULL;
  memory->size = 0;
}

static void *host_allocate(const SP_Device *device, uint64_t size) {
  (void)device;
  return aligned(size);
}

static void host_deallocate(const SP_Device *device, void *memory) {
  (void)device;
  free(memory);
}

static TF_Bool allocator_stats(const SP_Device *device, SP_AllocatorStats *stats) {
  (void)device;
  memset(stats, 0, sizeof *stats);
  stats->struct_size = SP_ALLOCATORSTATS_STRUCT_SIZE;
  stats->has_bytes_limit = 1;
  stats->bytes_limit = number_from("SIMPLACE_GPU_MEMORY", (int64_t)16 << 30);
  return 1;
}

static TF_Bool memory_usage(const SP_Device *device, int64_t *free_bytes, int64_t *total_bytes) {
  (void)device;
  *free_bytes = *total_bytes = number_from("SIMPLACE_GPU_MEMORY", (int64_t)16 << 30);
  return 1;
}

static void create_stream(const SP_Device *device, SP_Stream *stream, TF_Status *status) {
  (void)device;
  *stream = calloc(1, sizeof(struct SP_Stream_st));
  ok(status);
}

static void destroy_stream(const SP_Device *device, SP_Stream stream) {
  (void)device;
  free(stream);
}

static void stream_depends(const SP_Device *device, SP_Stream dependent, SP_Stream other, TF_Status *status) {
  (void)device, (void)dependent, (void)other;
  ok(status);
}

static void stream_status(const SP_Device *device, SP_Stream stream, TF_Status *status) {
  (void)device, (void)stream;
  ok(status);
}

static void create_event(const SP_Device *device, SP_Event *event, TF_Status *status) {
  (void)device;
  *event = calloc(1, sizeof(struct SP_Event_st));
  ok(status);
}

static void destroy_event(const SP_Device *device, SP_Event event) {
  (void)device;
  free(event);
}

static SE_EventStatus event_status(const SP_Device *device, SP_Event event) {
  (void)device, (void)event;
  return SE_EVENT_COMPLETE;
}

static void record_event(const SP_Device *device, SP_Stream stream, SP_Event event, TF_Status *status) {
  (void)device, (void)stream, (void)event;
  ok(status);
}

static void wait_for_event(const SP_Device *device, SP_Stream stream, SP_Event event, TF_Status *status) {
  (void)device, (void)stream, (void)event;
  ok(status);
}

static void block_for_event(const SP_Device *device, SP_Event event, TF_Status *status) {
  (void)device, (void)event;
  ok(status);
}

static void create_timer(const SP_Device *device, SP_Timer *timer, TF_Status *status) {
  (void)device;
  *timer = calloc(1, sizeof(struct SP_Timer_st));
  ok(status);
}

static void destroy_timer(const SP_Device *device, SP_Timer timer) {
  (void)device;
  free(timer);
}

static void touch_timer(const SP_Device *device, SP_Stream stream, SP_Timer timer, TF_Status *status) {
  (void)device, (void)stream, (void)timer;
  ok(status);
}

static void copy_out(const SP_Device *device, SP_Stream stream, void *to, const SP_DeviceMemoryBase *from,
                     uint64_t size, TF_Status *status) {
  (void)device, (void)stream;
  memcpy(to, from->opaque, size);
  ok(status);
}

static void copy_in(const SP_Device *device, SP_Stream stream, SP_DeviceMemoryBase *to, const void *from,
                    uint64_t size, TF_Status *status) {
  (void)device, (void)stream;
  memcpy(to->opaque, from, size);
  ok(status);
}

static void copy_across(const SP_Device *device, SP_Stream stream, SP_DeviceMemoryBase *to,
                        const SP_DeviceMemoryBase *from, uint64_t size, TF_Status *status) {
  (void)device, (void)stream;
  memcpy(to->opaque, from->opaque, size);
  ok(status);
}

static void copy_out_now(const SP_Device *device, void *to, const SP_DeviceMemoryBase *from, uint64_t size,
                         TF_Status *status) {
  copy_out(device, NULL, to, from, size, status);
}

static void copy_in_now(const SP_Device *device, SP_DeviceMemoryBase *to, const void *from, uint64_t size,
                        TF_Status *status) {
  copy_in(device, NULL, to, from, size, status);
}

static void copy_across_now(const SP_Device *device, SP_DeviceMemoryBase *to, const SP_DeviceMemoryBase *from,
                            uint64_t size, TF_Status *status) {
  copy_across(device, NULL, to, from, size, status);
}

static void wait_for_stream(const SP_Device *device, SP_Stream stream, TF_Status *status) {
  (void)device, (void)stream;
  ok(status);
}

static void wait_for_all(const SP_Device *device, TF_Status *status) {
  (void)device;
  ok(status);
}

static void fill_zero(const SP_Device *device, SP_Stream stream, SP_DeviceMemoryBase *memory, uint64_t size,
                      TF_Status *status) {
  (void)device, (void)stream;
  memset(memory->opaque, 0, size);
  ok(status);
}

static void fill_bytes(const SP_Device *device, SP_Stream stream, SP_DeviceMemoryBase *memory, uint8_t pattern,
                       uint64_t size, TF_Status *status) {
  (void)device, (void)stream;
  memset(memory->opaque, pattern, size);
  ok(status);
}

static void fill_words(const SP_Device *device, SP_Stream stream, SP_DeviceMemoryBase *memory, uint32_t pattern,
                       uint64_t size, TF_Status *status) {
  (void)device, (void)stream;
  for (uint64_t at = 0; at + sizeof pattern <= size; at += sizeof pattern)
    memcpy((char *)memory->opaque + at, &pattern, sizeof pattern);
  ok(status);
}

static TF_Bool call_host(const SP_Device *device, SP_Stream stream, SE_StatusCallbackFn callback, void *argument) {
  (void)device, (void)stream;
  TF_Status *status = TF_NewStatus();
  callback(argument, status);
  TF_Bool fine = TF_GetCode(status) == TF_OK;
  TF_DeleteStatus(status);
  return fine;
}

static void device_count(const SP_Platform *platform, int *count, TF_Status *status) {
  (void)platform;
  int64_t wanted = number_from("SIMPLACE_GPU_COUNT", 1);
  *count = wanted > MAX_GPUS ? MAX_GPUS : (int)wanted;
  ok(status);
}

static void create_device(const SP_Platform *platform, SE_CreateDeviceParams *params, TF_Status *status) {
  (void)platform;
  int ordinal = params->ordinal;
  snprintf(bus_ids[ordinal % MAX_GPUS], sizeof bus_ids[0], "0000:%02x:00.0", ordinal + 1);
  params->device->struct_size = SP_DEVICE_STRUCT_SIZE;
  params->device->ordinal = ordinal;
  params->device->hardware_name = "emulated GPU";
  params->device->device_vendor = "simplace";
  params->device->pci_bus_id = bus_ids[ordinal % MAX_GPUS];
  ok(status);
}

static void destroy_device(const SP_Platform *platform, SP_Device *device) {
  (void)platform, (void)device;
}

static int32_t numa_node(const SP_Device *device) {
  (void)device;
  return -1;
}

static int64_t bandwidth(const SP_Device *device) {
  (void)device;
  return -1;
}

static double gflops(const SP_Device *device) {
  (void)device;
  return -1;
}

static void create_device_fns(const SP_Platform *platform, SE_CreateDeviceFnsParams *params, TF_Status *status) {
  (void)platform;
  SP_DeviceFns fns = {SP_DEVICE_FNS_STRUCT_SIZE, NULL, numa_node, bandwidth, gflops};
  *params->device_fns = fns;
  ok(status);
}

static void destroy_device_fns(const SP_Platform *platform, SP_DeviceFns *fns) {
  (void)platform, (void)fns;
}

static void create_stream_executor(const SP_Platform *platform, SE_CreateStreamExecutorParams *params,
                                   TF_Status *status) {
  (void)platform;
  SP_StreamExecutor *executor = params->stream_executor;
  executor->struct_size = SP_STREAMEXECUTOR_STRUCT_SIZE;
  executor->allocate = allocate;
  executor->deallocate = deallocate;
  executor->host_memory_allocate = host_allocate;
  executor->host_memory_deallocate = host_deallocate;
  executor->get_allocator_stats = allocator_stats;
  executor->device_memory_usage = memory_usage;
  executor->create_stream = create_stream;
  executor->destroy_stream = destroy_stream;
  executor->create_stream_dependency = stream_depends;
  executor->get_stream_status = stream_status;
  executor->create_event = create_event;
  executor->destroy_event = destroy_event;
  executor->get_event_status = event_status;
  executor->record_event = record_event;
  executor->wait_for_event = wait_for_event;
  executor->create_timer = create_timer;
  executor->destroy_timer = destroy_timer;
  executor->start_timer = touch_timer;
  executor->stop_timer = touch_timer;
  executor->memcpy_dtoh = copy_out;
  executor->memcpy_htod = copy_in;
  executor->memcpy_dtod = copy_across;
  executor->sync_memcpy_dtoh = copy_out_now;
  executor->sync_memcpy_htod = copy_in_now;
  executor->sync_memcpy_dtod = copy_across_now;
  executor->block_host_for_event = block_for_event;
  executor->block_host_until_done = wait_for_stream;
  executor->synchronize_all_activity = wait_for_all;
  executor->mem_zero = fill_zero;
  executor->memset = fill_bytes;
  executor->memset32 = fill_words;
  executor->host_callback = call_host;
  ok(status);
}

static void destroy_stream_executor(const SP_Platform *platform, SP_StreamExecutor *executor) {
  (void)platform, (void)executor;
}

static uint64_t nanoseconds(SP_Timer timer) {
  (void)timer;
  return 0;
}

static void create_timer_fns(const SP_Platform *platform, SP_TimerFns *fns, TF_Status *status) {
  (void)platform;
  fns->struct_size = SP_TIMER_FNS_STRUCT_SIZE;
  fns->nanoseconds = nanoseconds;
  ok(status);
}

static void destroy_timer_fns(const SP_Platform *platform, SP_TimerFns *fns) {
  (void)platform, (void)fns;
}

/* The kernels' C++ classes, as the first part of their mangled names. All need no more than memory and copies; what a
 * RemoteCall calls is guarded like the rest. */
static const char *const harmless[] = {
    "N10tensorflow10ConstantOpE",        "N10tensorflow10IdentityOpE",       "N10tensorflow11IdentityNOpE",
    "N10tensorflow11VarHandleOpE",       "N10tensorflow12RemoteCallOpE",     "N10tensorflow13TensorArrayOpE",
    "N10tensorflow14ReadVariableOpE",    "N10tensorflow15EmptyTensorListE",  "N10tensorflow15ReadVariablesOpE",
    "N10tensorflow15_HostConstantOpE",   "N10tensorflow16AssignVariableOpI", "N10tensorflow16ResourceHandleOpI",
    "N10tensorflow17DestroyResourceOpE", "N10tensorflow18VarIsInitializedOpE", "N10tensorflow4NoOpE",
    "N10tensorflow4data",                "N10tensorflow5ArgOpE",             "N10tensorflow6RecvOpE",
    "N10tensorflow6SendOpE",             "N10tensorflow7StackOpE",           "N10tensorflow8RetvalOpE",
    "N10tensorflow9ReshapeOpE",
    /* queues, which hand tensors on, and mutexes, which hold none */
    "N10tensorflow11FIFOQueueOpE",       "N10tensorflow9EnqueueOpE",         "N10tensorflow9DequeueOpE",
    "N10tensorflow11QueueSizeOpE",       "N10tensorflow15QueueIsClosedOpE",  "N10tensorflow12QueueCloseOpE",
    "N10tensorflow11MutexLockOpE",       "N10tensorflow18ConsumeMutexLockOpE",
    /* control flow around a resource that is on a GPU, such as a replica's iterator */
    "N10tensorflow10LoopCondOpE",        "N10tensorflow15NextIterationOpE",  "N10tensorflow16ControlTriggerOpE",
    "N10tensorflow17PartitionedCallOpE", "N10tensorflow6ExitOpE",            "N10tensorflow7EnterOpE",
    "N10tensorflow7MergeOpE",            "N10tensorflow8SwitchOpE",          "N10tensorflow9SwitchNOpE",
};

struct done { /* std::function<void()> of libstdc++ */
  void *held[2];
  void *manager;
  void (*invoke)(const struct done *);
};

typedef void compute(void *device, void *kernel, void *context);
typedef void compute_async(void *device, void *kernel, void *context, struct done *done);

/* tensorflow::PluggableDevice: its table of virtual functions, and two of them. */
extern void *virtual_table[] __asm__("_ZTVN10tensorflow15PluggableDeviceE") __attribute__((weak));
extern compute start __asm__("_ZN10tensorflow15PluggableDevice7ComputeEPNS_8OpKernelEPNS_15OpKernelContextE")
    __attribute__((weak));
extern compute_async start_async __asm__(
    "_ZN10tensorflow15PluggableDevice12ComputeAsyncEPNS_13AsyncOpKernelEPNS_15OpKernelContextESt8functionIFvvEE")
    __attribute__((weak));

/* The mangled name of an object's class, by the C++ ABI: virtual table, the entry before it, the name therein. */
static const char *class_of(const void *object) {
  const char *const *type = (*(const char *const *const *const *)object)[-1];
  return type[1] + (*type[1] == '*');
}

static int is_harmless(const void *kernel) {
  const char *name = class_of(kernel);
  for (size_t at = 0; at < sizeof harmless / sizeof *harmless; at++)
    if (strncmp(name, harmless[at], strlen(harmless[at])) == 0) return 1;
  return 0;
}

static void refuse(void *context) {
  TF_Status *status = TF_NewStatus();
  TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, REFUSAL);
  TF_OpKernelContext_Failure(context, status); /* a TF_OpKernelContext is an OpKernelContext */
  TF_DeleteStatus(status);
}

static void start_if_harmless(void *device, void *kernel, void *context) {
  if (is_harmless(kernel)) {
    start(device, kernel, context);
  } else {
    refuse(context);
  }
}

static void start_async_if_harmless(void *device, void *kernel, void *context, struct done *done) {
  if (is_harmless(kernel)) {
    start_async(device, kernel, context, done);
  } else {
    refuse(context);
    done->invoke(done);
  }
}

static int replace(void *old, void *new) {
  Dl_info info;
  const ElfW(Sym) *symbol = NULL;
  if (!dladdr1(virtual_table, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol) return 0;
  for (size_t at = 0; at < symbol->st_size / sizeof(void *); at++) {
    if (virtual_table[at] != old) continue;
    uintptr_t page = (uintptr_t)&virtual_table[at] & -(uintptr_t)sysconf(_SC_PAGESIZE);
    size_t length = (uintptr_t)(&virtual_table[at] + 1) - page;
    if (mprotect((void *)page, length, PROT_READ | PROT_WRITE) != 0) return 0;
    virtual_table[at] = new;
    return 1;
  }
  return 0;
}

/* Take the place of the functions by which TensorFlow starts the kernels of a pluggable device. */
static int guard_kernels(void) {
  return virtual_table && start && start_async && replace((void *)start, (void *)start_if_harmless) &&
         replace((void *)start_async, (void *)start_async_if_harmless);
}

static void destroy_platform(SP_Platform *platform) { (void)platform; }

static void destroy_platform_fns(SP_PlatformFns *fns) { (void)fns; }

__attribute__((visibility("default"))) void SE_InitPlugin(SE_PlatformRegistrationParams *params, TF_Status *status) {
  params->struct_size = SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE;
  params->major_version = SE_MAJOR;
  params->minor_version = SE_MINOR;
  params->patch_version = SE_PATCH;

  SP_Platform *platform = params->platform;
  platform->struct_size = SP_PLATFORM_STRUCT_SIZE;
  platform->name = "SIMPLACE";
  platform->type = "GPU";
  platform->supports_unified_memory = 0;
  platform->use_bfc_allocator = 0;
  platform->force_memory_growth = 0;

  SP_PlatformFns *fns = params->platform_fns;
  fns->struct_size = SP_PLATFORM_FNS_STRUCT_SIZE;
  fns->get_device_count = device_count;
  fns->create_device = create_device;
  fns->destroy_device = destroy_device;
  fns->create_device_fns = create_device_fns;
  fns->destroy_device_fns = destroy_device_fns;
  fns->create_stream_executor = create_stream_executor;
  fns->destroy_stream_executor = destroy_stream_executor;
  fns->create_timer_fns = create_timer_fns;
  fns->destroy_timer_fns = destroy_timer_fns;

  params->destroy_platform = destroy_platform;
  params->destroy_platform_fns = destroy_platform_fns;
  if (guard_kernels()) {
    ok(status);
  } else {
    TF_SetStatus(status, TF_UNIMPLEMENTED, "this TensorFlow starts kernels in a way that simplace does not know");
  }
}
