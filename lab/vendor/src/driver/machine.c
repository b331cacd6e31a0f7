/* hostwright stand-in: reads the made-up machine. In a lab host the tree at STATE is also what /sys/bus/pci/devices,
 * /sys/module and /proc/driver show; in a container only STATE is there, as the container runtime's hook brings it. */
#include "machine.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STATE "/run/hostwright-lab/hardware"

static const struct model models[] = {
    /* device  MiB   cc      SMs  MHz   memory MHz, bits  W    ECC MIG */
    { 0x1eb8, 15109, 7, 5,   40, 1590,  5001, 256,        70,  1, 0 }, /* T4 */
    { 0x1db4, 16160, 7, 0,   80, 1380,  877,  4096,       250, 1, 0 }, /* V100 PCIe 16 GB */
    { 0x20f1, 40536, 8, 0,  108, 1410,  1215, 5120,       250, 1, 1 }, /* A100 PCIe 40 GB */
    { 0x20b0, 40536, 8, 0,  108, 1410,  1215, 5120,       400, 1, 1 }, /* A100 SXM4 40 GB */
    { 0x2330, 81559, 9, 0,  132, 1980,  2619, 5120,       700, 1, 1 }, /* H100 SXM5, for drivers newer than R470 */
    { 0,       4096, 5, 0,    5, 1000,  2505, 128,        75,  0, 0 }, /* any other card */
};

int machine_read(const char *path, char *line, int size) {
    char full[256];
    FILE *stream;

    snprintf(full, sizeof full, STATE "/%s", path);
    line[0] = 0;
    if (!(stream = fopen(full, "r"))) return 0;
    int got = fgets(line, size, stream) != 0;
    fclose(stream);
    if (strchr(line, '\n')) *strchr(line, '\n') = 0;
    return got;
}

int machine_loaded(char *version, int size) {
    return machine_read("module/nvidia/version", version, size);
}

static unsigned long number(const char *bus, const char *attribute) {
    char path[128], line[64];

    snprintf(path, sizeof path, "pci/%s/%s", bus, attribute);
    return machine_read(path, line, sizeof line) ? strtoul(line, 0, 0) : 0;
}

/* PCIe speeds read "8.0 GT/s PCIe" in sysfs; NVML counts generations. */
static int generation(const char *bus, const char *attribute) {
    switch (number(bus, attribute)) {
    case 2: return 1;
    case 5: return 2;
    case 8: return 3;
    case 16: return 4;
    case 32: return 5;
    default: return 0;
    }
}

/* One value of /proc/driver/nvidia/gpus/<bus>/information: "GPU UUID: <tab> GPU-…". */
static void information(const char *bus, const char *key, char *value, int size) {
    char path[256], line[160], *at;
    FILE *stream;

    value[0] = 0;
    snprintf(path, sizeof path, STATE "/proc/nvidia/gpus/%s/information", bus);
    if (!(stream = fopen(path, "r"))) return;
    while (fgets(line, sizeof line, stream)) {
        if (strncmp(line, key, strlen(key)) || !(at = strchr(line, ':'))) continue;
        for (at++; *at == ' ' || *at == '\t'; at++) {}
        if (strchr(at, '\n')) *strchr(at, '\n') = 0;
        snprintf(value, size, "%s", at);
        break;
    }
    fclose(stream);
}

static void fill(struct card *card, const char *bus) {
    char *at, minor[16];

    memset(card, 0, sizeof *card);
    snprintf(card->bus, sizeof card->bus, "%s", bus);
    card->domain = strtoul(bus, &at, 16);
    card->bus_number = strtoul(at + 1, &at, 16);
    card->slot = strtoul(at + 1, 0, 16);
    card->device = number(bus, "device") << 16 | number(bus, "vendor");
    card->subsystem = number(bus, "subsystem_device") << 16 | number(bus, "subsystem_vendor");
    information(bus, "Model", card->name, sizeof card->name);
    information(bus, "GPU UUID", card->uuid, sizeof card->uuid);
    information(bus, "Serial", card->serial, sizeof card->serial);
    information(bus, "Video BIOS", card->vbios, sizeof card->vbios);
    information(bus, "Device Minor", minor, sizeof minor);
    card->minor = atoi(minor);
    card->link_width = number(bus, "current_link_width");
    card->max_link_width = number(bus, "max_link_width");
    card->link_generation = generation(bus, "current_link_speed");
    card->max_link_generation = generation(bus, "max_link_speed");
    for (card->model = models; card->model->device && card->model->device != card->device >> 16; card->model++) {}
}

static int by_bus(const void *left, const void *right) {
    return strcmp(((const struct card *)left)->bus, ((const struct card *)right)->bus);
}

int machine_cards(struct card *cards, int max) {
    int count = 0;
    DIR *directory = opendir(STATE "/proc/nvidia/gpus");
    struct dirent *entry;

    if (!directory) return 0;
    while (count < max && (entry = readdir(directory)))
        if (entry->d_name[0] != '.') fill(&cards[count++], entry->d_name);
    closedir(directory);
    qsort(cards, count, sizeof *cards, by_bus);
    return count;
}

int machine_switches(void) {
    int count = 0;
    DIR *directory = opendir(STATE "/pci");
    struct dirent *entry;

    if (!directory) return 0;
    while ((entry = readdir(directory)))
        if (entry->d_name[0] != '.' && number(entry->d_name, "vendor") == 0x10de)
            count += number(entry->d_name, "class") == 0x068000;
    closedir(directory);
    return count;
}

int machine_fabric_ready(void) {
    return access("/run/nvidia-fabricmanager/nv-fabricmanager.pid", F_OK) == 0;
}

int machine_persistence(const struct card *card) {
    char path[64], line[8];

    snprintf(path, sizeof path, "persistence/%s", card->bus);
    return machine_read(path, line, sizeof line);
}

int machine_set_persistence(const struct card *card, int on) {
    char path[128];
    int file;

    snprintf(path, sizeof path, STATE "/persistence/%s", card->bus);
    if (!on) return unlink(path) == 0 || access(path, F_OK) != 0;
    if ((file = open(path, O_WRONLY | O_CREAT, 0644)) < 0) return 0;
    int wrote = write(file, "1\n", 2) == 2;
    close(file);
    return wrote;
}

static int holds(const char *pid, const char *device) {
    char path[300], target[64];
    struct dirent *entry;
    int found = 0;

    snprintf(path, sizeof path, "/proc/%s/fd", pid);
    DIR *directory = opendir(path);
    if (!directory) return 0;
    while (!found && (entry = readdir(directory))) {
        snprintf(path, sizeof path, "/proc/%s/fd/%s", pid, entry->d_name);
        long length = readlink(path, target, sizeof target - 1);
        target[length > 0 ? length : 0] = 0;
        found = strcmp(target, device) == 0;
    }
    closedir(directory);
    return found;
}

/* The persistence daemon holds the cards open too, and no tool of NVIDIA's counts it as work. */
static int is_daemon(const char *pid) {
    char path[64], name[32] = "";
    FILE *stream;

    snprintf(path, sizeof path, "/proc/%.20s/comm", pid);
    if (!(stream = fopen(path, "r"))) return 1;
    if (!fgets(name, sizeof name, stream)) name[0] = 0;
    fclose(stream);
    return strncmp(name, "nvidia-persiste", 15) == 0;
}

int machine_processes(int minor, unsigned *pids, int max) {
    char device[32];
    int count = 0;
    DIR *directory = opendir("/proc");
    struct dirent *entry;

    snprintf(device, sizeof device, "/dev/nvidia%d", minor);
    if (!directory) return 0;
    while (count < max && (entry = readdir(directory)))
        if (atoi(entry->d_name) > 0 && holds(entry->d_name, device) && !is_daemon(entry->d_name))
            pids[count++] = atoi(entry->d_name);
    closedir(directory);
    return count;
}
