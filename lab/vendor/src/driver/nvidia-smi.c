/* hostwright stand-in: nvidia-smi as R470 has it: options, exit codes (those of NVML) and sentences. */
#include "smi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *library;

static void *nvml(const char *name) {
    void *function = dlsym(library, name);

    if (function) return function;
    printf("Failed to initialize NVML: Function Not Found\n");
    exit(13);
}

/* Calls a function of NVML by its name; the compiler cannot check the arguments, nvml.c beside this file is the reference. */
#define CALL(name, ...) (((int (*)())nvml(name))(__VA_ARGS__))

const char *smi_onoff(unsigned state) {
    return state == 0 ? "Disabled" : state == 1 ? "Enabled" : NOT_AVAILABLE;
}

void smi_process_name(unsigned pid, char *name, int size) {
    char path[64];
    FILE *stream;

    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    snprintf(name, size, "[Not Found]");
    if (!(stream = fopen(path, "r"))) return;
    fgets(name, size, stream); /* ends at the first argument's NUL */
    fclose(stream);
}

static void ask(struct gpu *gpu, unsigned index) {
    unsigned pending;

    CALL("nvmlDeviceGetHandleByIndex_v2", index, &gpu->device);
    gpu->index = index;
    CALL("nvmlDeviceGetMinorNumber", gpu->device, &gpu->minor);
    CALL("nvmlDeviceGetName", gpu->device, gpu->name, sizeof gpu->name);
    CALL("nvmlDeviceGetUUID", gpu->device, gpu->uuid, sizeof gpu->uuid);
    if (CALL("nvmlDeviceGetSerial", gpu->device, gpu->serial, sizeof gpu->serial)) strcpy(gpu->serial, NOT_AVAILABLE);
    CALL("nvmlDeviceGetVbiosVersion", gpu->device, gpu->vbios, sizeof gpu->vbios);
    CALL("nvmlDeviceGetPciInfo_v3", gpu->device, &gpu->pci);
    CALL("nvmlDeviceGetMemoryInfo", gpu->device, &gpu->memory);
    CALL("nvmlDeviceGetUtilizationRates", gpu->device, &gpu->utilization);
    CALL("nvmlDeviceGetPersistenceMode", gpu->device, &gpu->persistence);
    CALL("nvmlDeviceGetTemperature", gpu->device, 0, &gpu->temperature);
    CALL("nvmlDeviceGetPowerUsage", gpu->device, &gpu->milliwatts);
    CALL("nvmlDeviceGetEnforcedPowerLimit", gpu->device, &gpu->limit_milliwatts);
    CALL("nvmlDeviceGetCurrPcieLinkGeneration", gpu->device, &gpu->generation);
    CALL("nvmlDeviceGetMaxPcieLinkGeneration", gpu->device, &gpu->max_generation);
    CALL("nvmlDeviceGetCurrPcieLinkWidth", gpu->device, &gpu->width);
    CALL("nvmlDeviceGetMaxPcieLinkWidth", gpu->device, &gpu->max_width);
    CALL("nvmlDeviceGetClockInfo", gpu->device, NVML_CLOCK_GRAPHICS, &gpu->graphics_mhz);
    CALL("nvmlDeviceGetClockInfo", gpu->device, NVML_CLOCK_SM, &gpu->sm_mhz);
    CALL("nvmlDeviceGetClockInfo", gpu->device, NVML_CLOCK_MEM, &gpu->memory_mhz);
    CALL("nvmlDeviceGetMaxClockInfo", gpu->device, NVML_CLOCK_SM, &gpu->max_sm_mhz);
    CALL("nvmlDeviceGetMaxClockInfo", gpu->device, NVML_CLOCK_MEM, &gpu->max_memory_mhz);
    CALL("nvmlDeviceGetCurrentClocksThrottleReasons", gpu->device, &gpu->throttle);
    if (CALL("nvmlDeviceGetEccMode", gpu->device, &gpu->ecc, &pending)) gpu->ecc = 2;
    CALL("nvmlDeviceGetTotalEccErrors", gpu->device, NVML_ERROR_CORRECTED, NVML_VOLATILE, &gpu->ecc_corrected);
    CALL("nvmlDeviceGetTotalEccErrors", gpu->device, NVML_ERROR_UNCORRECTED, NVML_VOLATILE, &gpu->ecc_uncorrected);
    if (CALL("nvmlDeviceGetMigMode", gpu->device, &gpu->mig, &pending)) gpu->mig = 2;
    gpu->remap_known = !CALL("nvmlDeviceGetRemappedRows", gpu->device, &gpu->remap_corrected, &gpu->remap_uncorrected,
                             &gpu->remap_pending, &gpu->remap_failure);
    gpu->processes = SMI_MAX_PROCESSES;
    CALL("nvmlDeviceGetComputeRunningProcesses_v2", gpu->device, &gpu->processes, gpu->process);
}

/* -i takes an index, a UUID or a bus id. */
static int chosen(const struct gpu *gpu, const char *id) {
    char index[16];

    snprintf(index, sizeof index, "%u", gpu->index);
    return !id || !strcmp(id, index) || !strcmp(id, gpu->uuid) || !strcasecmp(id, gpu->pci.busId)
        || !strcasecmp(id, gpu->pci.busId + 4);
}

static int initialise(struct answer *answer, const char *id) {
    unsigned devices;
    int cuda;
    int status = CALL("nvmlInit_v2");

    if (status == NVML_DRIVER_NOT_LOADED) {
        printf("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
               "Make sure that the latest NVIDIA driver is installed and running.\n\n");
        return status;
    }
    if (status) {
        printf("Failed to initialize NVML: %s\n", ((const char *(*)(int))nvml("nvmlErrorString"))(status));
        return status;
    }
    CALL("nvmlSystemGetDriverVersion", answer->driver, sizeof answer->driver);
    CALL("nvmlSystemGetCudaDriverVersion_v2", &cuda);
    snprintf(answer->cuda, sizeof answer->cuda, "%d.%d", cuda / 1000, cuda % 1000 / 10);
    CALL("nvmlDeviceGetCount_v2", &devices);
    for (unsigned i = 0; i < devices && i < 16; i++) {
        ask(&answer->gpu[answer->count], i);
        answer->count += chosen(&answer->gpu[answer->count], id);
    }
    if (answer->count) return NVML_SUCCESS;
    printf(id && devices ? "No devices were found matching the given id.\n" : "No devices were found\n");
    return NVML_NOT_FOUND;
}

static int set_persistence(const struct answer *answer, unsigned mode) {
    for (unsigned i = 0; i < answer->count; i++) {
        const struct gpu *gpu = &answer->gpu[i];
        int status = gpu->persistence == mode ? 0 : CALL("nvmlDeviceSetPersistenceMode", gpu->device, mode);
        if (status) {
            printf("Unable to set persistence mode for GPU %s: Insufficient Permissions\n"
                   "Terminating early due to previous errors.\n", gpu->pci.busId);
            return status;
        }
        if (gpu->persistence == mode)
            printf("Persistence mode is already %s for GPU %s.\n", smi_onoff(mode), gpu->pci.busId);
        else printf("%s persistence mode for GPU %s.\n", smi_onoff(mode), gpu->pci.busId);
    }
    printf("All done.\n");
    return 0;
}

static void list(const struct answer *answer) {
    for (unsigned i = 0; i < answer->count; i++)
        printf("GPU %u: %s (UUID: %s)\n", answer->gpu[i].index, answer->gpu[i].name, answer->gpu[i].uuid);
}

static int usage(int status) {
    printf("NVIDIA System Management Interface -- v" NV_VERSION " (hostwright stand-in)\n\n"
           "nvidia-smi [OPTION1 [ARG1]] [OPTION2 [ARG2]] ...\n\n"
           "    -h,   --help                Print usage information and exit.\n"
           "    -L,   --list-gpus           Display a list of GPUs connected to the system.\n"
           "    -i,   --id=                 Target a specific GPU: index, UUID or bus id.\n"
           "    -q,   --query               Display GPU info.\n"
           "    -x,   --xml-format          Produce XML output.\n"
           "    -pm,  --persistence-mode=   Set persistence mode: 0/DISABLED, 1/ENABLED.\n"
           "    --query-gpu=                Information about GPU: a list of fields.\n"
           "    --query-compute-apps=       List of currently active compute processes.\n"
           "    --format=                   csv[,noheader][,nounits]\n");
    return status;
}

struct options {
    const char *id, *fields, *apps, *format;
    int list, query, xml, mode; /* mode: -1 leave, 0 disable, 1 enable */
};

/* The value of an option: what follows "=", or the next word. */
static const char *value(int argc, char **argv, int *at) {
    const char *equals = strchr(argv[*at], '=');

    if (equals) return equals + 1;
    return *at + 1 < argc ? argv[++*at] : "";
}

static int named(const char *word, const char *name) {
    unsigned long length = strlen(name);
    return !strncmp(word, name, length) && (word[length] == 0 || word[length] == '=');
}

static int parse(int argc, char **argv, struct options *options) {
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (named(word, "-h") || named(word, "--help") || named(word, "--version")) return exit(usage(0)), 0;
        else if (named(word, "-L") || named(word, "--list-gpus")) options->list = 1;
        else if (named(word, "-q") || named(word, "--query")) options->query = 1;
        else if (named(word, "-x") || named(word, "--xml-format")) options->xml = 1;
        else if (named(word, "-i") || named(word, "--id")) options->id = value(argc, argv, &i);
        else if (named(word, "-d") || named(word, "--display")) value(argc, argv, &i);
        else if (named(word, "--query-gpu")) options->fields = value(argc, argv, &i);
        else if (named(word, "--query-compute-apps")) options->apps = value(argc, argv, &i);
        else if (named(word, "--format")) options->format = value(argc, argv, &i);
        else if (named(word, "-pm") || named(word, "--persistence-mode")) {
            const char *mode = value(argc, argv, &i);
            options->mode = !strcmp(mode, "1") || !strcasecmp(mode, "ENABLED");
        } else return 0;
    }
    return 1;
}

int main(int argc, char **argv) {
    static struct answer answer;
    struct options options = { .mode = -1 };
    int status;

    if (!parse(argc, argv, &options) || ((options.fields || options.apps) && !options.format)) {
        printf("Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n");
        return NVML_INVALID_ARGUMENT;
    }
    if (!(library = dlopen("libnvidia-ml.so.1", RTLD_NOW))) {
        printf("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that the NVIDIA "
               "Display Driver is properly installed and present in your system.\n"
               "Please also try adding directory that contains libnvidia-ml.so to your system PATH.\n");
        return NVML_LIBRARY_NOT_FOUND;
    }
    if ((status = initialise(&answer, options.id))) return status;
    if (options.mode >= 0) return set_persistence(&answer, options.mode);
    if (options.fields) return smi_csv(&answer, options.fields, options.format, 0);
    if (options.apps) return smi_csv(&answer, options.apps, options.format, 1);
    if (options.list) list(&answer);
    else if (options.xml) smi_xml(&answer);
    else if (options.query) smi_text(&answer);
    else smi_table(&answer);
    return 0;
}
