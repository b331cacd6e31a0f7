/* hostwright stand-in: nvidia-smi's table, its text (-q) and its XML (-q -x). */
#include "smi.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define MIB(bytes) ((bytes) >> 20)
#define RULE "+-----------------------------------------------------------------------------+\n"
#define COLUMNS "+-------------------------------+----------------------+----------------------+\n"

static void now(char *text, int size) {
    time_t seconds = time(0);
    strftime(text, size, "%a %b %e %H:%M:%S %Y", localtime(&seconds));
}

static void table_gpu(const struct gpu *gpu) {
    char ecc[24], memory[48];

    snprintf(ecc, sizeof ecc, gpu->ecc == 1 ? "%llu" : NOT_AVAILABLE, gpu->ecc_uncorrected);
    snprintf(memory, sizeof memory, "%lluMiB / %lluMiB", MIB(gpu->memory.used), MIB(gpu->memory.total));
    printf("|%4u  %-18.18s  %-4s | %s Off | %20s |\n", gpu->index, gpu->name, gpu->persistence ? "On" : "Off",
           gpu->pci.busId, ecc);
    printf("| N/A %4uC    P8  %4uW / %3uW | %20s | %6u%%      Default |\n", gpu->temperature,
           gpu->milliwatts / 1000, gpu->limit_milliwatts / 1000, memory, gpu->utilization.gpu);
    printf("|                               |                      | %20s |\n" COLUMNS, smi_onoff(gpu->mig));
}

static unsigned table_processes(const struct gpu *gpu) {
    char name[128];

    for (unsigned i = 0; i < gpu->processes; i++) {
        smi_process_name(gpu->process[i].pid, name, sizeof name);
        printf("|%5u   N/A  N/A %9u      C   %-28.28s %8lluMiB |\n", gpu->index, gpu->process[i].pid, name,
               MIB(gpu->process[i].usedGpuMemory));
    }
    return gpu->processes;
}

void smi_table(const struct answer *answer) {
    unsigned processes = 0;
    char date[64];

    now(date, sizeof date);
    printf("%s       \n" RULE, date);
    printf("| NVIDIA-SMI %-13sDriver Version: %-13sCUDA Version: %-9s|\n", answer->driver, answer->driver,
           answer->cuda);
    printf("|-------------------------------+----------------------+----------------------+\n"
           "| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |\n"
           "| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |\n"
           "|                               |                      |               MIG M. |\n"
           "|===============================+======================+======================|\n");
    for (unsigned i = 0; i < answer->count; i++) table_gpu(&answer->gpu[i]);
    printf("%79s\n" RULE
           "| Processes:                                                                  |\n"
           "|  GPU   GI   CI        PID   Type   Process name                  GPU Memory |\n"
           "|        ID   ID                                                   Usage      |\n"
           "|=============================================================================|\n", "");
    for (unsigned i = 0; i < answer->count; i++) processes += table_processes(&answer->gpu[i]);
    if (!processes) printf("|  No running processes found                                                 |\n");
    printf(RULE);
}

static void element(int depth, const char *name, const char *value) {
    for (; depth > 0; depth--) printf("\t");
    printf("<%s>", name);
    for (; *value; value++) {
        if (*value == '<') printf("&lt;");
        else if (*value == '&') printf("&amp;");
        else printf("%c", *value);
    }
    printf("</%s>\n", name);
}

static void open_element(int depth, const char *name) {
    for (; depth > 0; depth--) printf("\t");
    printf("<%s>\n", name);
}

static void close_element(int depth, const char *name) {
    for (; depth > 0; depth--) printf("\t");
    printf("</%s>\n", name);
}

static void amount(int depth, const char *name, unsigned long long value, const char *unit) {
    char text[48];

    snprintf(text, sizeof text, "%llu%s", value, unit);
    element(depth, name, text);
}

static void watts(int depth, const char *name, unsigned milliwatts) {
    char text[32];

    snprintf(text, sizeof text, "%u.%02u W", milliwatts / 1000, milliwatts % 1000 / 10);
    element(depth, name, text);
}

static void hexadecimal(int depth, const char *name, const char *format, unsigned value) {
    char text[32];

    snprintf(text, sizeof text, format, value);
    element(depth, name, text);
}

static void xml_pci(const struct gpu *gpu) {
    open_element(2, "pci");
    hexadecimal(3, "pci_bus", "%02X", gpu->pci.bus);
    hexadecimal(3, "pci_device", "%02X", gpu->pci.device);
    hexadecimal(3, "pci_domain", "%04X", gpu->pci.domain);
    hexadecimal(3, "pci_device_id", "%08X", gpu->pci.pciDeviceId);
    element(3, "pci_bus_id", gpu->pci.busId);
    hexadecimal(3, "pci_sub_system_id", "%08X", gpu->pci.pciSubSystemId);
    open_element(3, "pci_gpu_link_info");
    open_element(4, "pcie_gen");
    amount(5, "max_link_gen", gpu->max_generation, "");
    amount(5, "current_link_gen", gpu->generation, "");
    close_element(4, "pcie_gen");
    open_element(4, "link_widths");
    amount(5, "max_link_width", gpu->max_width, "x");
    amount(5, "current_link_width", gpu->width, "x");
    close_element(4, "link_widths");
    close_element(3, "pci_gpu_link_info");
    amount(3, "replay_counter", 0, "");
    close_element(2, "pci");
}

static void xml_clocks(const struct gpu *gpu) {
    open_element(2, "clocks_throttle_reasons");
    element(3, "clocks_throttle_reason_gpu_idle", gpu->throttle & 1 ? "Active" : "Not Active");
    element(3, "clocks_throttle_reason_sw_power_cap", gpu->throttle & 4 ? "Active" : "Not Active");
    element(3, "clocks_throttle_reason_hw_slowdown", gpu->throttle & 8 ? "Active" : "Not Active");
    element(3, "clocks_throttle_reason_hw_thermal_slowdown", gpu->throttle & 64 ? "Active" : "Not Active");
    element(3, "clocks_throttle_reason_sw_thermal_slowdown", gpu->throttle & 32 ? "Active" : "Not Active");
    close_element(2, "clocks_throttle_reasons");
    open_element(2, "clocks");
    amount(3, "graphics_clock", gpu->graphics_mhz, " MHz");
    amount(3, "sm_clock", gpu->sm_mhz, " MHz");
    amount(3, "mem_clock", gpu->memory_mhz, " MHz");
    close_element(2, "clocks");
    open_element(2, "max_clocks");
    amount(3, "graphics_clock", gpu->max_sm_mhz, " MHz");
    amount(3, "sm_clock", gpu->max_sm_mhz, " MHz");
    amount(3, "mem_clock", gpu->max_memory_mhz, " MHz");
    close_element(2, "max_clocks");
}

/* One counter of ECC errors, volatile or aggregate. */
static void xml_ecc_counts(const struct gpu *gpu, const char *name) {
    unsigned long long corrected = gpu->ecc_corrected, uncorrected = gpu->ecc_uncorrected;

    open_element(3, name);
    if (gpu->ecc == 1) {
        amount(4, "sram_correctable", corrected, "");
        amount(4, "sram_uncorrectable", uncorrected, "");
        amount(4, "dram_correctable", corrected, "");
        amount(4, "dram_uncorrectable", uncorrected, "");
    } else {
        element(4, "sram_correctable", NOT_AVAILABLE);
        element(4, "sram_uncorrectable", NOT_AVAILABLE);
        element(4, "dram_correctable", NOT_AVAILABLE);
        element(4, "dram_uncorrectable", NOT_AVAILABLE);
    }
    close_element(3, name);
}

static void xml_wear(const struct gpu *gpu) {
    open_element(2, "ecc_mode");
    element(3, "current_ecc", smi_onoff(gpu->ecc));
    element(3, "pending_ecc", smi_onoff(gpu->ecc));
    close_element(2, "ecc_mode");
    open_element(2, "ecc_errors");
    xml_ecc_counts(gpu, "volatile");
    xml_ecc_counts(gpu, "aggregate");
    close_element(2, "ecc_errors");
    open_element(2, "retired_pages");
    open_element(3, "multiple_single_bit_retirement");
    element(4, "retired_count", gpu->remap_known || gpu->ecc == 2 ? NOT_AVAILABLE : "0");
    close_element(3, "multiple_single_bit_retirement");
    open_element(3, "double_bit_retirement");
    element(4, "retired_count", gpu->remap_known || gpu->ecc == 2 ? NOT_AVAILABLE : "0");
    close_element(3, "double_bit_retirement");
    element(3, "pending_blacklist", gpu->remap_known || gpu->ecc == 2 ? NOT_AVAILABLE : "No");
    element(3, "pending_retirement", gpu->remap_known || gpu->ecc == 2 ? NOT_AVAILABLE : "No");
    close_element(2, "retired_pages");
    if (!gpu->remap_known) {
        element(2, "remapped_rows", NOT_AVAILABLE);
        return;
    }
    open_element(2, "remapped_rows");
    amount(3, "remapped_row_corr", gpu->remap_corrected, "");
    amount(3, "remapped_row_unc", gpu->remap_uncorrected, "");
    element(3, "remapped_row_pending", gpu->remap_pending ? "Yes" : "No");
    element(3, "remapped_row_failure", gpu->remap_failure ? "Yes" : "No");
    close_element(2, "remapped_rows");
}

static void xml_use(const struct gpu *gpu) {
    char name[128];

    open_element(2, "fb_memory_usage");
    amount(3, "total", MIB(gpu->memory.total), " MiB");
    amount(3, "used", MIB(gpu->memory.used), " MiB");
    amount(3, "free", MIB(gpu->memory.free), " MiB");
    close_element(2, "fb_memory_usage");
    element(2, "compute_mode", "Default");
    open_element(2, "utilization");
    amount(3, "gpu_util", gpu->utilization.gpu, " %");
    amount(3, "memory_util", gpu->utilization.memory, " %");
    close_element(2, "utilization");
    open_element(2, "temperature");
    amount(3, "gpu_temp", gpu->temperature, " C");
    amount(3, "gpu_temp_max_threshold", 96, " C");
    amount(3, "gpu_temp_slow_threshold", 93, " C");
    close_element(2, "temperature");
    open_element(2, "power_readings");
    element(3, "power_state", "P8");
    watts(3, "power_draw", gpu->milliwatts);
    watts(3, "power_limit", gpu->limit_milliwatts);
    close_element(2, "power_readings");
    open_element(2, "processes");
    for (unsigned i = 0; i < gpu->processes; i++) {
        smi_process_name(gpu->process[i].pid, name, sizeof name);
        open_element(3, "process_info");
        amount(4, "pid", gpu->process[i].pid, "");
        element(4, "type", "C");
        element(4, "process_name", name);
        amount(4, "used_memory", MIB(gpu->process[i].usedGpuMemory), " MiB");
        close_element(3, "process_info");
    }
    close_element(2, "processes");
}

static void xml_gpu(const struct gpu *gpu) {
    printf("\t<gpu id=\"%s\">\n", gpu->pci.busId);
    element(2, "product_name", gpu->name);
    element(2, "product_brand", strstr(gpu->name, "Tesla") ? "Tesla" : "NVIDIA");
    element(2, "display_mode", "Disabled");
    element(2, "display_active", "Disabled");
    element(2, "persistence_mode", smi_onoff(gpu->persistence));
    open_element(2, "mig_mode");
    element(3, "current_mig", smi_onoff(gpu->mig));
    element(3, "pending_mig", smi_onoff(gpu->mig));
    close_element(2, "mig_mode");
    element(2, "serial", gpu->serial);
    element(2, "uuid", gpu->uuid);
    amount(2, "minor_number", gpu->minor, "");
    element(2, "vbios_version", gpu->vbios);
    xml_pci(gpu);
    element(2, "fan_speed", NOT_AVAILABLE);
    element(2, "performance_state", "P8");
    xml_clocks(gpu);
    xml_wear(gpu);
    xml_use(gpu);
    close_element(1, "gpu");
}

void smi_xml(const struct answer *answer) {
    char date[64];

    now(date, sizeof date);
    printf("<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v11.dtd\">\n"
           "<!-- hostwright stand-in -->\n<nvidia_smi_log>\n");
    element(1, "timestamp", date);
    element(1, "driver_version", answer->driver);
    element(1, "cuda_version", answer->cuda);
    amount(1, "attached_gpus", answer->count, "");
    for (unsigned i = 0; i < answer->count; i++) xml_gpu(&answer->gpu[i]);
    printf("</nvidia_smi_log>\n");
}

void smi_text(const struct answer *answer) {
    char date[64];

    now(date, sizeof date);
    printf("\n==============NVSMI LOG==============\n\n");
    printf("%-42s: %s\n%-42s: %s\n", "Timestamp", date, "Driver Version", answer->driver);
    printf("%-42s: %s\n\n%-42s: %u\n", "CUDA Version", answer->cuda, "Attached GPUs", answer->count);
    for (unsigned i = 0; i < answer->count; i++) {
        const struct gpu *gpu = &answer->gpu[i];
        printf("GPU %s\n", gpu->pci.busId);
        printf("    %-38s: %s\n    %-38s: %s\n", "Product Name", gpu->name, "Persistence Mode",
               smi_onoff(gpu->persistence));
        printf("    %-38s: %s\n    %-38s: %s\n", "Serial Number", gpu->serial, "GPU UUID", gpu->uuid);
        printf("    %-38s: %u\n    %-38s: %s\n", "Minor Number", gpu->minor, "VBIOS Version", gpu->vbios);
        printf("    FB Memory Usage\n        %-34s: %llu MiB\n        %-34s: %llu MiB\n        %-34s: %llu MiB\n",
               "Total", MIB(gpu->memory.total), "Used", MIB(gpu->memory.used), "Free", MIB(gpu->memory.free));
        printf("    Temperature\n        %-34s: %u C\n\n", "GPU Current Temp", gpu->temperature);
    }
}
