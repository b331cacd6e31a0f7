/* hostwright stand-in: the part of NVML's public interface (11.4, the one of R470) that the doubles speak. */
#ifndef HOSTWRIGHT_NVML_H
#define HOSTWRIGHT_NVML_H

typedef void *nvmlDevice_t;

enum {
    NVML_SUCCESS = 0,
    NVML_UNINITIALIZED = 1,
    NVML_INVALID_ARGUMENT = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_NO_PERMISSION = 4,
    NVML_NOT_FOUND = 6,
    NVML_DRIVER_NOT_LOADED = 9,
    NVML_LIBRARY_NOT_FOUND = 12,
    NVML_LIB_RM_VERSION_MISMATCH = 18,
};

typedef struct {
    char busIdLegacy[16];
    unsigned domain, bus, device;
    unsigned pciDeviceId, pciSubSystemId;
    char busId[32];
} nvmlPciInfo_t;

typedef struct { unsigned long long total, free, used; } nvmlMemory_t;
typedef struct { unsigned gpu, memory; } nvmlUtilization_t;
typedef struct {
    unsigned pid;
    unsigned long long usedGpuMemory;
    unsigned gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_t;

enum { NVML_CLOCK_GRAPHICS, NVML_CLOCK_SM, NVML_CLOCK_MEM };
enum { NVML_ERROR_CORRECTED, NVML_ERROR_UNCORRECTED };
enum { NVML_VOLATILE, NVML_AGGREGATE };

#endif
