/* hostwright stand-in: libcuda.so.1 of a made-up machine. It tells a CUDA program which devices there are, so that
 * TensorFlow opens all its GPU libraries and lists the device; it cannot compute, and says CUDA_ERROR_NOT_SUPPORTED
 * where a program asks for memory or a stream. */
#include "machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PUBLIC __attribute__((visibility("default")))
#define MIB 1048576ul
#define DRIVER_API (NV_VERSION[0] == '4' ? 11040 : 13000) /* what R470 speaks, and R580 */

enum {
    SUCCESS = 0, INVALID_VALUE = 1, NOT_INITIALIZED = 3, NO_DEVICE = 100, INVALID_DEVICE = 101, INVALID_CONTEXT = 201,
    NOT_FOUND = 500, NOT_SUPPORTED = 801, SYSTEM_NOT_READY = 802, SYSTEM_DRIVER_MISMATCH = 803,
};

const char hostwright_note[] __attribute__((used)) = "hostwright stand-in for libcuda.so." NV_VERSION;

typedef struct { unsigned char bytes[16]; } cu_uuid;

static struct card cards[MACHINE_MAX_CARDS];
static int order[MACHINE_MAX_CARDS]; /* visible ordinal -> index in cards */
static int visible = -1;             /* -1: not initialised */
static char contexts[MACHINE_MAX_CARDS]; /* the address of contexts[i] is the primary context of device i */
static int retained[MACHINE_MAX_CARDS];
static void *current;

#define MODEL(device) (cards[order[device]].model)
#define CHECK(device) do { \
        if (visible < 0) return NOT_INITIALIZED; \
        if ((device) < 0 || (device) >= visible) return INVALID_DEVICE; \
    } while (0)

/* CUDA_VISIBLE_DEVICES as the driver reads it: ordinals up to the first one that is not a device. */
static void choose(int found) {
    const char *wanted = getenv("CUDA_VISIBLE_DEVICES");
    char *end;

    visible = 0;
    if (!wanted) {
        for (; visible < found; visible++) order[visible] = visible;
        return;
    }
    for (; visible < MACHINE_MAX_CARDS; wanted = end + 1) {
        long index = strtol(wanted, &end, 10);
        if (end == wanted || index < 0 || index >= found) return;
        order[visible++] = index;
        if (*end != ',') return;
    }
}

PUBLIC int cuInit(unsigned flags) {
    char loaded[64];

    if (flags) return INVALID_VALUE;
    if (!machine_loaded(loaded, sizeof loaded)) return NO_DEVICE;
    if (strcmp(loaded, NV_VERSION)) return SYSTEM_DRIVER_MISMATCH;
    if (machine_switches() && !machine_fabric_ready()) return SYSTEM_NOT_READY;
    choose(machine_cards(cards, MACHINE_MAX_CARDS));
    return visible ? SUCCESS : NO_DEVICE;
}

PUBLIC int cuDriverGetVersion(int *version) { *version = DRIVER_API; return SUCCESS; }

static const struct { int code; const char *name, *text; } errors[] = {
    { SUCCESS, "CUDA_SUCCESS", "no error" },
    { INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument" },
    { NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error" },
    { NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected" },
    { INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal" },
    { INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context" },
    { NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found" },
    { NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported" },
    { SYSTEM_NOT_READY, "CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized" },
    { SYSTEM_DRIVER_MISMATCH, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
      "system has unsupported display driver / cuda driver combination" },
};

static int error(int code, const char **text, int name) {
    for (unsigned i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == code) {
            *text = name ? errors[i].name : errors[i].text;
            return SUCCESS;
        }
    *text = 0;
    return INVALID_VALUE;
}
PUBLIC int cuGetErrorName(int code, const char **text) { return error(code, text, 1); }
PUBLIC int cuGetErrorString(int code, const char **text) { return error(code, text, 0); }

PUBLIC int cuDeviceGetCount(int *count) {
    if (visible < 0) return NOT_INITIALIZED;
    *count = visible;
    return SUCCESS;
}
PUBLIC int cuDeviceGet(int *device, int ordinal) { CHECK(ordinal); *device = ordinal; return SUCCESS; }
PUBLIC int cuDeviceGetName(char *name, int size, int device) {
    CHECK(device);
    snprintf(name, size, "%s", cards[order[device]].name);
    return SUCCESS;
}
PUBLIC int cuDeviceGetUuid(cu_uuid *uuid, int device) {
    const char *at;
    int digits = 0;

    CHECK(device);
    memset(uuid, 0, sizeof *uuid);
    for (at = cards[order[device]].uuid + 4; *at && digits < 32; at++) { /* after "GPU-" */
        if (*at == '-') continue;
        int value = *at <= '9' ? *at - '0' : (*at | 32) - 'a' + 10;
        uuid->bytes[digits / 2] |= value << (digits % 2 ? 0 : 4);
        digits++;
    }
    return SUCCESS;
}
PUBLIC int cuDeviceGetUuid_v2(cu_uuid *uuid, int device) { return cuDeviceGetUuid(uuid, device); }
PUBLIC int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    CHECK(device);
    *bytes = MODEL(device)->memory_mib * MIB;
    return SUCCESS;
}
PUBLIC int cuDeviceComputeCapability(int *major, int *minor, int device) {
    CHECK(device);
    *major = MODEL(device)->cc_major;
    *minor = MODEL(device)->cc_minor;
    return SUCCESS;
}
PUBLIC int cuDeviceGetPCIBusId(char *bus, int size, int device) {
    CHECK(device);
    const struct card *card = &cards[order[device]];
    snprintf(bus, size, "%04X:%02X:%02X.0", card->domain, card->bus_number, card->slot);
    return SUCCESS;
}
PUBLIC int cuDeviceGetByPCIBusId(int *device, const char *bus) {
    for (*device = 0; *device < visible; ++*device)
        if (!strcasecmp(bus, cards[order[*device]].bus)) return SUCCESS;
    return visible < 0 ? NOT_INITIALIZED : INVALID_VALUE;
}

/* Attribute numbers are those of cuda.h 11.4 (CU_DEVICE_ATTRIBUTE_…). */
PUBLIC int cuDeviceGetAttribute(int *value, int attribute, int device) {
    CHECK(device);
    const struct card *card = &cards[order[device]];
    const struct model *model = card->model;
    switch (attribute) {
    case 1: case 2: case 3: *value = 1024; break;          /* threads a block; block x, y */
    case 4: *value = 64; break;                            /* block z */
    case 5: *value = 2147483647; break;                    /* grid x */
    case 6: case 7: *value = 65535; break;                 /* grid y, z */
    case 8: *value = 49152; break;                         /* shared memory a block */
    case 9: *value = 65536; break;                         /* constant memory */
    case 10: *value = 32; break;                           /* warp */
    case 12: case 82: *value = 65536; break;               /* registers a block, a multiprocessor */
    case 13: *value = model->sm_clock_mhz * 1000; break;
    case 16: *value = model->multiprocessors; break;
    case 32: *value = model->has_ecc; break;
    case 33: *value = card->bus_number; break;
    case 34: *value = card->slot; break;
    case 36: *value = model->memory_clock_mhz * 1000; break;
    case 37: *value = model->memory_bus_bits; break;
    case 38: *value = 4194304; break;                      /* second-level cache */
    case 39: *value = model->cc_major == 7 && model->cc_minor == 5 ? 1024 : 2048; break; /* threads a multiprocessor */
    case 41: *value = 1; break;                            /* unified addressing */
    case 50: *value = card->domain; break;
    case 75: *value = model->cc_major; break;
    case 76: *value = model->cc_minor; break;
    case 81: *value = 65536; break;                        /* shared memory a multiprocessor */
    case 97: *value = 65536; break;                        /* shared memory a block, opted in */
    default: *value = 0; break;
    }
    return SUCCESS;
}

PUBLIC int cuDevicePrimaryCtxRetain(void **context, int device) {
    CHECK(device);
    retained[device]++;
    *context = &contexts[device];
    return SUCCESS;
}
PUBLIC int cuDevicePrimaryCtxRelease_v2(int device) { CHECK(device); retained[device]--; return SUCCESS; }
PUBLIC int cuDevicePrimaryCtxRelease(int device) { return cuDevicePrimaryCtxRelease_v2(device); }
PUBLIC int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags) { (void)flags; CHECK(device); return SUCCESS; }
PUBLIC int cuDevicePrimaryCtxSetFlags(int device, unsigned flags) { return cuDevicePrimaryCtxSetFlags_v2(device, flags); }
PUBLIC int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
    CHECK(device);
    *flags = 0;
    *active = retained[device] > 0;
    return SUCCESS;
}
PUBLIC int cuCtxGetCurrent(void **context) { *context = current; return visible < 0 ? NOT_INITIALIZED : SUCCESS; }
PUBLIC int cuCtxSetCurrent(void *context) { current = context; return visible < 0 ? NOT_INITIALIZED : SUCCESS; }
PUBLIC int cuCtxPushCurrent_v2(void *context) { return cuCtxSetCurrent(context); }
PUBLIC int cuCtxPopCurrent_v2(void **context) { *context = current; current = 0; return SUCCESS; }
PUBLIC int cuCtxGetDevice(int *device) {
    if (!current) return INVALID_CONTEXT;
    *device = (char *)current - contexts;
    return SUCCESS;
}
PUBLIC int cuCtxSynchronize(void) { return current ? SUCCESS : INVALID_CONTEXT; }
PUBLIC int cuCtxGetStreamPriorityRange(int *least, int *greatest) { *least = 0; *greatest = -5; return SUCCESS; }
PUBLIC int cuCtxEnablePeerAccess(void *context, unsigned flags) { (void)context, (void)flags; return NOT_SUPPORTED; }
PUBLIC int cuDeviceCanAccessPeer(int *can, int device, int peer) { CHECK(device); CHECK(peer); *can = 0; return SUCCESS; }
PUBLIC int cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes) {
    int device;

    if (cuCtxGetDevice(&device)) return INVALID_CONTEXT;
    *total_bytes = MODEL(device)->memory_mib * MIB;
    *free_bytes = *total_bytes - 316 * MIB; /* what an empty context takes */
    return SUCCESS;
}

PUBLIC int cuMemAlloc_v2(void **pointer, size_t bytes) { (void)bytes; *pointer = 0; return NOT_SUPPORTED; }
PUBLIC int cuMemFree_v2(void *pointer) { return pointer ? INVALID_VALUE : SUCCESS; }
PUBLIC int cuStreamCreate(void **stream, unsigned flags) { (void)flags; *stream = 0; return NOT_SUPPORTED; }
PUBLIC int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority) {
    (void)priority;
    return cuStreamCreate(stream, flags);
}
PUBLIC int cuEventCreate(void **event, unsigned flags) { return cuStreamCreate(event, flags); }
PUBLIC int cuModuleLoadDataEx(void **module, const void *image, unsigned options, int *names, void **values) {
    (void)image, (void)options, (void)names, (void)values;
    *module = 0;
    return NOT_SUPPORTED;
}
PUBLIC int cuGetExportTable(const void **table, const cu_uuid *id) { (void)id; *table = 0; return NOT_FOUND; }
