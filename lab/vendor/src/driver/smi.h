/* hostwright stand-in: nvidia-smi. What it asked NVML, for the three ways of printing it. */
#ifndef HOSTWRIGHT_SMI_H
#define HOSTWRIGHT_SMI_H

#include "nvml.h"

#define SMI_MAX_PROCESSES 64
/* What NVML would not tell is written as R470 writes it. */
#define NOT_AVAILABLE "N/A"

struct gpu {
    nvmlDevice_t device;
    unsigned index, minor;
    char name[96], uuid[96], serial[32], vbios[32];
    nvmlPciInfo_t pci;
    nvmlMemory_t memory;
    nvmlUtilization_t utilization;
    unsigned persistence, temperature, milliwatts, limit_milliwatts;
    unsigned generation, max_generation, width, max_width;
    unsigned graphics_mhz, sm_mhz, memory_mhz, max_sm_mhz, max_memory_mhz;
    unsigned long long throttle, ecc_corrected, ecc_uncorrected;
    unsigned ecc, mig;             /* 0 disabled, 1 enabled, 2 not supported */
    unsigned remap_known, remap_corrected, remap_uncorrected, remap_pending, remap_failure;
    unsigned processes;
    nvmlProcessInfo_t process[SMI_MAX_PROCESSES];
};

struct answer {
    char driver[80], cuda[16];
    unsigned count;
    struct gpu gpu[16];
};

const char *smi_onoff(unsigned state);            /* Disabled, Enabled, N/A */
void smi_process_name(unsigned pid, char *name, int size);
void smi_table(const struct answer *answer);
void smi_xml(const struct answer *answer);
void smi_text(const struct answer *answer);
int smi_csv(const struct answer *answer, const char *fields, const char *format, int processes);

#endif
