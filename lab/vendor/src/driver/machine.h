/* hostwright stand-in: what the doubles of NVIDIA's libraries know of the (made-up) machine. */
#ifndef HOSTWRIGHT_MACHINE_H
#define HOSTWRIGHT_MACHINE_H

#define MACHINE_MAX_CARDS 16

struct model {
    unsigned device;          /* PCI device id, vendor 10de */
    unsigned long memory_mib; /* as nvidia-smi of R470 reports it */
    int cc_major, cc_minor;   /* compute capability */
    int multiprocessors;
    int sm_clock_mhz, memory_clock_mhz, memory_bus_bits;
    int power_limit_watts;
    int has_ecc, has_mig;
};

struct card {
    char bus[16];             /* 0000:3b:00.0 */
    unsigned domain, bus_number, slot;
    int minor;                /* of its device file: in a container with only some cards not their place in the list */
    unsigned device, subsystem; /* (device id << 16) | vendor id */
    char name[64], uuid[48], serial[32], vbios[32];
    int link_generation, link_width, max_link_generation, max_link_width;
    const struct model *model;
};

/* The version of the module in the kernel; returns 0 when none is loaded. */
int machine_loaded(char *version, int size);

/* The cards that the loaded driver drives, in bus order; returns how many. */
int machine_cards(struct card *cards, int max);

/* How many NVSwitches the machine has, and whether the Fabric Manager runs. */
int machine_switches(void);
int machine_fabric_ready(void);

/* Persistence mode of a card: kept beside the made-up kernel state, gone when the module is unloaded. */
int machine_persistence(const struct card *card);
int machine_set_persistence(const struct card *card, int on);

/* Processes that hold the card's device file open; returns how many, at most max. */
int machine_processes(int minor, unsigned *pids, int max);

/* The first line of a file below the made-up kernel state, without its newline; returns 0 when it cannot be read. */
int machine_read(const char *path, char *line, int size);

#endif
