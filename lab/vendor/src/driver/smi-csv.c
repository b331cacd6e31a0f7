/* hostwright stand-in: nvidia-smi --query-gpu and --query-compute-apps. */
#include "smi.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

struct row {
    const struct answer *answer;
    const struct gpu *gpu;
    const nvmlProcessInfo_t *process; /* null for --query-gpu */
    int units;
    char cell[160];
};

static int words(struct row *row, const char *value) {
    snprintf(row->cell, sizeof row->cell, "%s", value);
    return 1;
}

static int amount(struct row *row, unsigned long long value, const char *unit) {
    snprintf(row->cell, sizeof row->cell, row->units && unit[0] ? "%llu %s" : "%llu", value, unit);
    return 1;
}

static int watts(struct row *row, unsigned milliwatts) {
    snprintf(row->cell, sizeof row->cell, row->units ? "%u.%02u W" : "%u.%02u", milliwatts / 1000,
             milliwatts % 1000 / 10);
    return 1;
}

static int hexadecimal(struct row *row, const char *format, unsigned long long value) {
    snprintf(row->cell, sizeof row->cell, format, value);
    return 1;
}

static int ecc(struct row *row, unsigned long long errors) {
    return row->gpu->ecc == 2 ? words(row, "[N/A]") : amount(row, errors, "");
}

static int mode(struct row *row, unsigned state) {
    return words(row, state == 2 ? "[N/A]" : smi_onoff(state));
}

static int timestamp(struct row *row) {
    time_t now = time(0);
    return (int)strftime(row->cell, sizeof row->cell, "%Y/%m/%d %H:%M:%S.000", localtime(&now));
}

#define MIB(bytes) ((bytes) >> 20)
#define IS(name) (!strcmp(field, name))

static int of_identity(struct row *row, const char *field) {
    const struct gpu *gpu = row->gpu;

    if (IS("timestamp")) return timestamp(row);
    if (IS("name") || IS("gpu_name")) return words(row, gpu->name);
    if (IS("uuid") || IS("gpu_uuid")) return words(row, gpu->uuid);
    if (IS("serial") || IS("gpu_serial")) return words(row, gpu->serial);
    if (IS("index")) return amount(row, gpu->index, "");
    if (IS("count")) return amount(row, row->answer->count, "");
    if (IS("driver_version")) return words(row, row->answer->driver);
    if (IS("vbios_version")) return words(row, gpu->vbios);
    if (IS("pci.bus_id") || IS("gpu_bus_id")) return words(row, gpu->pci.busId);
    if (IS("pci.domain")) return hexadecimal(row, "0x%04llX", gpu->pci.domain);
    if (IS("pci.bus")) return hexadecimal(row, "0x%02llX", gpu->pci.bus);
    if (IS("pci.device")) return hexadecimal(row, "0x%02llX", gpu->pci.device);
    if (IS("pci.device_id")) return hexadecimal(row, "0x%08llX", gpu->pci.pciDeviceId);
    if (IS("pci.sub_device_id")) return hexadecimal(row, "0x%08llX", gpu->pci.pciSubSystemId);
    if (IS("persistence_mode")) return mode(row, gpu->persistence);
    if (IS("compute_mode")) return words(row, "Default");
    if (IS("display_mode") || IS("display_active")) return words(row, "Disabled");
    return 0;
}

static int of_state(struct row *row, const char *field) {
    const struct gpu *gpu = row->gpu;

    if (IS("memory.total")) return amount(row, MIB(gpu->memory.total), "MiB");
    if (IS("memory.used")) return amount(row, MIB(gpu->memory.used), "MiB");
    if (IS("memory.free")) return amount(row, MIB(gpu->memory.free), "MiB");
    if (IS("temperature.gpu")) return amount(row, gpu->temperature, "");
    if (IS("utilization.gpu")) return amount(row, gpu->utilization.gpu, "%");
    if (IS("utilization.memory")) return amount(row, gpu->utilization.memory, "%");
    if (IS("power.draw")) return watts(row, gpu->milliwatts);
    if (IS("power.limit") || IS("enforced.power.limit")) return watts(row, gpu->limit_milliwatts);
    if (IS("pcie.link.gen.current")) return amount(row, gpu->generation, "");
    if (IS("pcie.link.gen.max")) return amount(row, gpu->max_generation, "");
    if (IS("pcie.link.width.current")) return amount(row, gpu->width, "");
    if (IS("pcie.link.width.max")) return amount(row, gpu->max_width, "");
    if (IS("clocks.sm") || IS("clocks.current.sm")) return amount(row, gpu->sm_mhz, "MHz");
    if (IS("clocks.gr") || IS("clocks.current.graphics")) return amount(row, gpu->graphics_mhz, "MHz");
    if (IS("clocks.mem") || IS("clocks.current.memory")) return amount(row, gpu->memory_mhz, "MHz");
    if (IS("clocks.max.sm")) return amount(row, gpu->max_sm_mhz, "MHz");
    if (IS("clocks.max.mem")) return amount(row, gpu->max_memory_mhz, "MHz");
    if (IS("clocks_throttle_reasons.active")) return hexadecimal(row, "0x%016llX", gpu->throttle);
    if (IS("ecc.mode.current") || IS("ecc.mode.pending")) return mode(row, gpu->ecc);
    if (IS("ecc.errors.corrected.volatile.total")) return ecc(row, gpu->ecc_corrected);
    if (IS("ecc.errors.uncorrected.volatile.total")) return ecc(row, gpu->ecc_uncorrected);
    if (IS("ecc.errors.corrected.aggregate.total")) return ecc(row, gpu->ecc_corrected);
    if (IS("ecc.errors.uncorrected.aggregate.total")) return ecc(row, gpu->ecc_uncorrected);
    if (IS("mig.mode.current") || IS("mig.mode.pending")) return mode(row, gpu->mig);
    return 0;
}

static int of_process(struct row *row, const char *field) {
    char name[128];

    if (IS("pid")) return amount(row, row->process->pid, "");
    if (IS("process_name") || IS("name")) {
        smi_process_name(row->process->pid, name, sizeof name);
        return words(row, name);
    }
    if (IS("used_gpu_memory") || IS("used_memory")) return amount(row, MIB(row->process->usedGpuMemory), "MiB");
    return (IS("timestamp") || IS("gpu_name") || IS("gpu_uuid") || IS("gpu_serial") || IS("gpu_bus_id"))
        && of_identity(row, field);
}

static int cell(struct row *row, const char *field) {
    if (row->process) return of_process(row, field);
    return of_identity(row, field) || of_state(row, field);
}

static const char *unit(const char *field) {
    if (strstr(field, "memory.") == field || strstr(field, "used_")) return " [MiB]";
    if (strstr(field, "utilization.")) return " [%]";
    if (strstr(field, "power.")) return " [W]";
    return strstr(field, "clocks.") == field ? " [MHz]" : "";
}

static int split(char *list, char **fields, int max) {
    int count = 0;
    char *rest;

    for (char *field = strtok_r(list, ",", &rest); field && count < max; field = strtok_r(0, ",", &rest)) {
        while (*field == ' ') field++;
        fields[count++] = field;
    }
    return count;
}

static void line(struct row *row, char **fields, int count) {
    for (int i = 0; i < count; i++) {
        cell(row, fields[i]);
        printf("%s%s", row->cell, i + 1 < count ? ", " : "\n");
    }
}

static void header(char **fields, int count, int units) {
    for (int i = 0; i < count; i++)
        printf("%s%s%s", fields[i], units ? unit(fields[i]) : "", i + 1 < count ? ", " : "\n");
}

int smi_csv(const struct answer *answer, const char *list, const char *format, int processes) {
    char copy[1024];
    char *fields[64];
    static const nvmlProcessInfo_t nobody;
    struct row row = { answer, &answer->gpu[0], processes ? &nobody : 0, !strstr(format, "nounits"), "" };

    snprintf(copy, sizeof copy, "%s", list);
    int count = split(copy, fields, 64);
    for (int i = 0; i < count; i++)
        if (!cell(&row, fields[i])) {
            printf("Field \"%s\" is not a valid field to query.\n\n", fields[i]);
            return NVML_INVALID_ARGUMENT;
        }
    if (!strstr(format, "noheader")) header(fields, count, row.units);
    for (unsigned i = 0; i < answer->count; i++) {
        row.gpu = &answer->gpu[i];
        if (!processes) line(&row, fields, count);
        for (unsigned p = 0; processes && p < row.gpu->processes; p++) {
            row.process = &row.gpu->process[p];
            line(&row, fields, count);
        }
    }
    return 0;
}
