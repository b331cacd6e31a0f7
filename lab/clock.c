/* Hostwright lab: a stand-in for a wrong clock. The hosts share the machine's kernel, whose clock must stay right. This
 * library, preloaded into every program of a host, shifts what the C library says of the time of day: the clock itself,
 * the times of files, and deadlines that are given as a time of day. Monotonic clocks, and so timeouts, stay right.
 *
 * The shift and the moment from which it holds (seconds, 64 bits each) lie in a mapped file: changed there, they change
 * in running programs too. Programs that ask the kernel without a C library (those in Go) see the right time.
 *
 * Nothing is linked: each name is found in the host's own C library, from glibc 2.30 on.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h> /* has struct stat, and not the functions that are declared otherwise below */
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>

#pragma weak pthread_cond_clockwait
#pragma weak sem_clockwait

static const volatile int64_t none[2] = {0, 0};
static const volatile int64_t *shift = none; /* shift[1]: since when */

__attribute__((constructor)) static void begin(void)
{
    int fd = syscall(SYS_openat, AT_FDCWD, SHIFT_FILE, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return;
    void *page = (void *)syscall(SYS_mmap, NULL, sizeof none, PROT_READ, MAP_SHARED, fd, 0);
    if (page != MAP_FAILED)
        shift = page;
    syscall(SYS_close, fd);
}

/* A deadline is taken for a time of day by its size: no machine has been up since 2001, and the greatest numbers mean
 * "never". */
static int of_day(const struct timespec *deadline)
{
    return deadline->tv_sec > 1000000000 && deadline->tv_sec < INT64_C(1) << 40;
}

static struct timespec right(struct timespec deadline)
{
    if (of_day(&deadline))
        deadline.tv_sec -= *shift;
    return deadline;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int failed = syscall(SYS_clock_gettime, clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI))
        now->tv_sec += *shift;
    return failed;
}

time_t time(time_t *result)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (result)
        *result = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    int failed = syscall(SYS_gettimeofday, now, zone);
    if (!failed)
        now->tv_sec += *shift;
    return failed;
}

int timespec_get(struct timespec *now, int base)
{
    return base == TIME_UTC && clock_gettime(CLOCK_REALTIME, now) == 0 ? base : 0;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *until, struct timespec *rest)
{
    struct timespec moment = flags & TIMER_ABSTIME ? right(*until) : *until;
    return syscall(SYS_clock_nanosleep, clock, flags, &moment, rest) ? errno : 0;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *old)
{
    struct itimerspec moved = *value;
    if (flags & TFD_TIMER_ABSTIME)
        moved.it_value = right(value->it_value);
    return syscall(SYS_timerfd_settime, fd, flags, &moved, old);
}

/* Return the monotonic moment of a deadline: what is waited for may be set up for either clock. */
static struct timespec monotonic(struct timespec deadline)
{
    struct timespec now, day;
    if (!of_day(&deadline))
        return deadline;
    clock_gettime(CLOCK_MONOTONIC, &now);
    clock_gettime(CLOCK_REALTIME, &day);
    int64_t left = (int64_t)(deadline.tv_sec - day.tv_sec) * 1000000000 + deadline.tv_nsec - day.tv_nsec;
    int64_t end = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec + (left > 0 ? left : 0);
    return (struct timespec){end / 1000000000, end % 1000000000};
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until)
{
    struct timespec moment = monotonic(*until);
    return pthread_cond_clockwait ? pthread_cond_clockwait(condition, mutex, CLOCK_MONOTONIC, &moment) : ETIMEDOUT;
}

int sem_timedwait(sem_t *semaphore, const struct timespec *until)
{
    struct timespec moment = monotonic(*until);
    if (sem_clockwait)
        return sem_clockwait(semaphore, CLOCK_MONOTONIC, &moment);
    errno = ETIMEDOUT;
    return -1;
}

/* The times of files: a kernel with a wrong clock stamps them with it, from the moment on in which it went wrong. */
static int64_t shown(int64_t stamp)
{
    return stamp >= shift[1] ? stamp + *shift : stamp;
}

static int64_t stored(int64_t stamp)
{
    return stamp >= shift[1] + *shift ? stamp - *shift : stamp;
}

static int look(int at, const char *path, struct stat *found, int flags)
{
    int failed = syscall(SYS_newfstatat, at, path, found, flags);
    if (!failed) {
        found->st_atim.tv_sec = shown(found->st_atim.tv_sec);
        found->st_mtim.tv_sec = shown(found->st_mtim.tv_sec);
        found->st_ctim.tv_sec = shown(found->st_ctim.tv_sec);
    }
    return failed;
}

#define LOOK(name, arguments, call) int name arguments { return call; } int name##64 arguments { return call; }
LOOK(stat, (const char *path, struct stat *found), look(AT_FDCWD, path, found, 0))
LOOK(lstat, (const char *path, struct stat *found), look(AT_FDCWD, path, found, AT_SYMLINK_NOFOLLOW))
LOOK(fstat, (int fd, struct stat *found), look(fd, "", found, AT_EMPTY_PATH))
LOOK(fstatat, (int at, const char *path, struct stat *found, int flags), look(at, path, found, flags))
/* What the four were before glibc 2.33. */
#define ANY __attribute__((unused)) int version
LOOK(__xstat, (ANY, const char *path, struct stat *found), look(AT_FDCWD, path, found, 0))
LOOK(__lxstat, (ANY, const char *path, struct stat *found), look(AT_FDCWD, path, found, AT_SYMLINK_NOFOLLOW))
LOOK(__fxstat, (ANY, int fd, struct stat *found), look(fd, "", found, AT_EMPTY_PATH))
LOOK(__fxstatat, (ANY, int at, const char *path, struct stat *found, int flags), look(at, path, found, flags))

struct moment { int64_t seconds; uint32_t nanoseconds; int32_t reserved; };
struct statx { /* as in linux/stat.h, which declares struct stat's fields anew */
    uint32_t mask, blksize; uint64_t attributes; uint32_t nlink, uid, gid; uint16_t mode, pad;
    uint64_t inode, size, blocks, attributes_mask; struct moment times[4]; uint64_t rest[16];
};

int statx(int at, const char *path, int flags, unsigned mask, struct statx *found)
{
    int failed = syscall(SYS_statx, at, path, flags, mask, found);
    for (int index = 0; !failed && index < 4; index++)
        found->times[index].seconds = shown(found->times[index].seconds);
    return failed;
}

/* Setting times: those of the wrong clock are shifted back, older ones are what they are, "now" is the kernel's. */
int utimensat(int at, const char *path, const struct timespec times[2], int flags)
{
    struct timespec back[2];
    if (!times)
        return syscall(SYS_utimensat, at, path, NULL, flags);
    for (int index = 0; index < 2; index++) {
        back[index] = times[index];
        if (back[index].tv_nsec != UTIME_NOW && back[index].tv_nsec != UTIME_OMIT)
            back[index].tv_sec = stored(back[index].tv_sec);
    }
    return syscall(SYS_utimensat, at, path, back, flags);
}

int futimens(int fd, const struct timespec times[2])
{
    return utimensat(fd, NULL, times, 0);
}

static int micro(int at, const char *path, const struct timeval times[2], int flags)
{
    if (!times)
        return utimensat(at, path, NULL, flags);
    struct timespec exact[2] = {{times[0].tv_sec, times[0].tv_usec * 1000}, {times[1].tv_sec, times[1].tv_usec * 1000}};
    return utimensat(at, path, exact, flags);
}

typedef const struct timeval times_t[2];
int utimes(const char *path, times_t times) { return micro(AT_FDCWD, path, times, 0); }
int lutimes(const char *path, times_t times) { return micro(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW); }
int futimes(int fd, times_t times) { return micro(fd, NULL, times, 0); }
int futimesat(int at, const char *path, times_t times) { return micro(at, path, times, 0); }

int utime(const char *path, const struct utimbuf *times)
{
    if (!times)
        return utimensat(AT_FDCWD, path, NULL, 0);
    struct timespec exact[2] = {{times->actime, 0}, {times->modtime, 0}};
    return utimensat(AT_FDCWD, path, exact, 0);
}
