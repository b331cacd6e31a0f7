/* hostwright stand-in: nvidia-persistenced. Holds the device files open and persistence mode on until it is stopped. */
#include "machine.h"

#include <fcntl.h>
#include <pwd.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RUN_DIRECTORY "/var/run/nvidia-persistenced"
#define PID_FILE RUN_DIRECTORY "/nvidia-persistenced.pid"

static struct card cards[MACHINE_MAX_CARDS];
static int count;

static void finish(int signal_number) {
    (void)signal_number;
    for (int i = 0; i < count; i++) machine_set_persistence(&cards[i], 0);
    unlink(PID_FILE);
    _exit(0);
}

static int fail(const char *message) {
    dprintf(2, "nvidia-persistenced failed to initialize. Check syslog for more details.\n%s\n", message);
    return 1;
}

static int become(const char *user) {
    const struct passwd *entry = getpwnam(user);

    if (!entry) return 0;
    if (chown(RUN_DIRECTORY, entry->pw_uid, entry->pw_gid)) return 0;
    return !initgroups(user, entry->pw_gid) && !setgid(entry->pw_gid) && !setuid(entry->pw_uid);
}

/* A daemon that kept the caller's pipes would keep the caller waiting for their end. */
static void detach(void) {
    int nothing = open("/dev/null", O_RDWR);

    for (int stream = 0; stream < 3; stream++) dup2(nothing, stream);
}

static void usage(void) {
    printf("nvidia-persistenced:  version %s (hostwright stand-in)\n"
           "Options: -v --version  -h --help  -V --verbose  -u USER --user=USER  --persistence-mode "
           "--no-persistence-mode\n", NV_VERSION);
}

int main(int argc, char **argv) {
    const char *user = 0;
    int mode = 1;
    char device[32];

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--no-persistence-mode")) mode = 0;
        else if (!strcmp(argv[i], "--persistence-mode")) mode = 1;
        else if (!strncmp(argv[i], "--user=", 7)) user = argv[i] + 7;
        else if ((!strcmp(argv[i], "--user") || !strcmp(argv[i], "-u")) && i + 1 < argc) user = argv[++i];
        else if (!strcmp(argv[i], "--verbose") || !strcmp(argv[i], "-V")) continue;
        else return usage(), strcmp(argv[i], "--version") && strcmp(argv[i], "-v") && strcmp(argv[i], "--help");
    }
    if (!(count = machine_cards(cards, MACHINE_MAX_CARDS)))
        return fail("Failed to query NVIDIA devices. Please ensure that the NVIDIA device files (/dev/nvidia*) exist.");
    mkdir(RUN_DIRECTORY, 0755);
    for (int i = 0; i < count; i++) {
        if (mode && !machine_set_persistence(&cards[i], 1)) return fail("Failed to enable persistence mode.");
        snprintf(device, sizeof device, "/dev/nvidia%d", i);
        if (open(device, O_RDWR) < 0) return fail("Failed to open an NVIDIA device file.");
    }
    if (user && !become(user)) return fail("Failed to set the daemon's user.");
    int file = open(PID_FILE, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file < 0) return fail("Failed to write the pid file.");
    if (fork()) _exit(0);
    setsid();
    detach();
    dprintf(file, "%d\n", getpid());
    close(file);
    signal(SIGTERM, finish);
    signal(SIGINT, finish);
    for (;;) pause();
}
