/* Preloaded into all programs of a lab host: one bit of one large block that is read from a disk arrives changed. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>

static ssize_t changed(int file, void *to, size_t bytes, off_t at) {
  const ssize_t got = syscall(SYS_pread64, file, to, bytes, at);
  if (got >= 1 << 20 && at == 8 << 20) ((char *)to)[4096] ^= 1;
  return got;
}
ssize_t pread(int file, void *to, size_t bytes, off_t at) { return changed(file, to, bytes, at); }
ssize_t pread64(int file, void *to, size_t bytes, off_t at) { return changed(file, to, bytes, at); }
