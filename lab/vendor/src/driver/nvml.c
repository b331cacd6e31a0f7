/* hostwright stand-in: libnvidia-ml.so.1 of a made-up machine. It answers what R470's library answers, from the
 * machine's made-up sysfs; counters of wear (ECC, throttling, remapped rows) are those of healthy idle cards. */
#include "machine.h"
#include "nvml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))
#define MIB 1048576ull
#define CARD(handle) ((const struct card *)(handle))
/* A process of a made-up card uses as much as an empty CUDA context on a T4 does. */
#define CONTEXT_MIB 105ull

const char hostwright_note[] __attribute__((used)) = "hostwright stand-in for libnvidia-ml.so." NV_VERSION;

static struct card cards[MACHINE_MAX_CARDS];
static int count = -1; /* -1: not initialised */

PUBLIC int nvmlInit_v2(void) {
    char loaded[64];

    if (!machine_loaded(loaded, sizeof loaded)) return NVML_DRIVER_NOT_LOADED;
    if (strcmp(loaded, NV_VERSION)) return NVML_LIB_RM_VERSION_MISMATCH;
    count = machine_cards(cards, MACHINE_MAX_CARDS);
    return NVML_SUCCESS;
}
PUBLIC int nvmlInit(void) { return nvmlInit_v2(); }
PUBLIC int nvmlInitWithFlags(unsigned flags) { (void)flags; return nvmlInit_v2(); }
PUBLIC int nvmlShutdown(void) { count = -1; return NVML_SUCCESS; }

PUBLIC const char *nvmlErrorString(int result) {
    switch (result) {
    case NVML_SUCCESS: return "The operation was successful";
    case NVML_UNINITIALIZED: return "Uninitialized";
    case NVML_INVALID_ARGUMENT: return "Invalid Argument";
    case NVML_NOT_SUPPORTED: return "Not Supported";
    case NVML_NO_PERMISSION: return "Insufficient Permissions";
    case NVML_NOT_FOUND: return "Not Found";
    case NVML_DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case NVML_LIB_RM_VERSION_MISMATCH: return "Driver/library version mismatch";
    default: return "Unknown Error";
    }
}

static int text(char *target, unsigned size, const char *value) {
    if (count < 0) return NVML_UNINITIALIZED;
    if (!value[0]) return NVML_NOT_SUPPORTED;
    snprintf(target, size, "%s", value);
    return NVML_SUCCESS;
}

static int number(unsigned *target, unsigned value) {
    if (count < 0) return NVML_UNINITIALIZED;
    *target = value;
    return NVML_SUCCESS;
}

PUBLIC int nvmlSystemGetDriverVersion(char *version, unsigned size) { return text(version, size, NV_VERSION); }
PUBLIC int nvmlSystemGetNVMLVersion(char *version, unsigned size) { return text(version, size, "11." NV_VERSION); }
PUBLIC int nvmlSystemGetCudaDriverVersion_v2(int *version) {
    *version = NV_VERSION[0] == '4' ? 11040 : 13000; /* R470's, and R580's */
    return NVML_SUCCESS;
}
PUBLIC int nvmlSystemGetCudaDriverVersion(int *version) { return nvmlSystemGetCudaDriverVersion_v2(version); }
PUBLIC int nvmlDeviceGetCount_v2(unsigned *devices) { return number(devices, count); }

PUBLIC int nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device) {
    if (count < 0) return NVML_UNINITIALIZED;
    if (index >= (unsigned)count) return NVML_INVALID_ARGUMENT;
    *device = &cards[index];
    return NVML_SUCCESS;
}

PUBLIC int nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index) { return number(index, CARD(device) - cards); }
PUBLIC int nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *minor) { return number(minor, CARD(device)->minor); }
PUBLIC int nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned size) {
    return text(name, size, CARD(device)->name);
}
PUBLIC int nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned size) {
    return text(uuid, size, CARD(device)->uuid);
}
PUBLIC int nvmlDeviceGetSerial(nvmlDevice_t device, char *serial, unsigned size) {
    return text(serial, size, CARD(device)->serial);
}
PUBLIC int nvmlDeviceGetVbiosVersion(nvmlDevice_t device, char *version, unsigned size) {
    return text(version, size, CARD(device)->vbios);
}

PUBLIC int nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci) {
    const struct card *card = CARD(device);

    pci->domain = card->domain;
    pci->bus = card->bus_number;
    pci->device = card->slot;
    pci->pciDeviceId = card->device;
    pci->pciSubSystemId = card->subsystem;
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:%02X.0", card->domain, card->bus_number, card->slot);
    snprintf(pci->busId, sizeof pci->busId, "%08X:%02X:%02X.0", card->domain, card->bus_number, card->slot);
    return NVML_SUCCESS;
}

PUBLIC int nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned *room, nvmlProcessInfo_t *processes) {
    unsigned pids[64];
    unsigned found = machine_processes(CARD(device)->minor, pids, 64);

    for (unsigned i = 0; i < found && i < *room; i++)
        processes[i] = (nvmlProcessInfo_t){ pids[i], CONTEXT_MIB * MIB, ~0u, ~0u };
    *room = found < *room ? found : *room;
    return NVML_SUCCESS;
}

PUBLIC int nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
    unsigned pids[64];
    unsigned busy = machine_processes(CARD(device)->minor, pids, 64);

    memory->total = CARD(device)->model->memory_mib * MIB;
    memory->used = busy * CONTEXT_MIB * MIB;
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
}

PUBLIC int nvmlDeviceGetPersistenceMode(nvmlDevice_t device, unsigned *mode) {
    return number(mode, machine_persistence(CARD(device)));
}

PUBLIC int nvmlDeviceSetPersistenceMode(nvmlDevice_t device, unsigned mode) {
    if (geteuid() != 0) return NVML_NO_PERMISSION;
    return machine_set_persistence(CARD(device), mode) ? NVML_SUCCESS : NVML_NO_PERMISSION;
}

PUBLIC int nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor, unsigned *celsius) {
    (void)device;
    return sensor ? NVML_INVALID_ARGUMENT : number(celsius, 34);
}

PUBLIC int nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned *milliwatts) {
    return number(milliwatts, CARD(device)->model->power_limit_watts * 130);
}
PUBLIC int nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned *milliwatts) {
    return number(milliwatts, CARD(device)->model->power_limit_watts * 1000);
}

PUBLIC int nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization) {
    (void)device;
    utilization->gpu = utilization->memory = 0;
    return NVML_SUCCESS;
}

PUBLIC int nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device, unsigned *generation) {
    return number(generation, CARD(device)->link_generation);
}
PUBLIC int nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned *width) {
    return number(width, CARD(device)->link_width);
}
PUBLIC int nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t device, unsigned *generation) {
    return number(generation, CARD(device)->max_link_generation);
}
PUBLIC int nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t device, unsigned *width) {
    return number(width, CARD(device)->max_link_width);
}

PUBLIC int nvmlDeviceGetClockInfo(nvmlDevice_t device, int clock, unsigned *mhz) {
    return number(mhz, clock == NVML_CLOCK_MEM ? CARD(device)->model->memory_clock_mhz : 300);
}
PUBLIC int nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, int clock, unsigned *mhz) {
    const struct model *model = CARD(device)->model;
    return number(mhz, clock == NVML_CLOCK_MEM ? model->memory_clock_mhz : model->sm_clock_mhz);
}
PUBLIC int nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, unsigned long long *reasons) {
    (void)device;
    *reasons = 1; /* nvmlClocksThrottleReasonGpuIdle */
    return NVML_SUCCESS;
}

PUBLIC int nvmlDeviceGetEccMode(nvmlDevice_t device, unsigned *current, unsigned *pending) {
    if (!CARD(device)->model->has_ecc) return NVML_NOT_SUPPORTED;
    *current = *pending = 1;
    return NVML_SUCCESS;
}
PUBLIC int nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, int type, int counter, unsigned long long *errors) {
    (void)type, (void)counter;
    *errors = 0;
    return CARD(device)->model->has_ecc ? NVML_SUCCESS : NVML_NOT_SUPPORTED;
}
PUBLIC int nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
                                     unsigned *failure) {
    *corrected = *uncorrected = *pending = *failure = 0;
    return CARD(device)->model->cc_major >= 8 ? NVML_SUCCESS : NVML_NOT_SUPPORTED;
}
PUBLIC int nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *current, unsigned *pending) {
    *current = *pending = 0;
    return CARD(device)->model->has_mig ? NVML_SUCCESS : NVML_NOT_SUPPORTED;
}
PUBLIC int nvmlDeviceGetComputeMode(nvmlDevice_t device, int *mode) {
    (void)device;
    *mode = 0; /* Default: any number of processes */
    return NVML_SUCCESS;
}
PUBLIC int nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor) {
    *major = CARD(device)->model->cc_major;
    *minor = CARD(device)->model->cc_minor;
    return NVML_SUCCESS;
}
