// What the disk below the working directory takes and gives, past the kernel's cache (direct I/O). The file has no name
// from the moment it is opened: nothing of it stays behind, however the program ends. Arguments: bytes, block_bytes,
// seconds (of each direction), reserve (the part of the file system that must stay free), blocks (sysfs's directory).
#include "protocol.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <sstream>

// The content of a word of the file: different in every place, so that a block in the wrong place is seen.
inline uint64_t content(uint64_t place) {
  uint64_t word = place * 0x9e3779b97f4a7c15ull;
  return word ^ (word >> 29);
}

// How the disk is named: its source and file system, and its model where the kernel knows one: "/dev/sda1 (SAMSUNG …)".
std::string disk(int directory, const std::string &blocks) {
  struct stat of;
  if (fstat(directory, &of) != 0) return "disk";
  const std::string number = format("%u:%u", major(of.st_dev), minor(of.st_dev));
  std::string source, kind;
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string id, parent, device, rest;
    words >> id >> parent >> device;
    const size_t dash = line.find(" - ");
    if (device != number || dash == std::string::npos) continue;
    std::istringstream(line.substr(dash + 3)) >> kind >> source;
  }
  const std::string block = blocks + "/" + number;
  std::string model = first_line(block + "/device/model");
  if (model.empty()) model = first_line(block + "/../device/model");  // of the disk that the partition is on
  while (!model.empty() && model.back() == ' ') model.pop_back();
  return "disk " + (source.empty() ? "?" : source) + " (" + (model.empty() ? kind : model) + ")";
}

int main(int count, char **words) {
  const Arguments arguments(count, words);
  const size_t block = static_cast<size_t>(arguments.number("block_bytes", 4 << 20));
  const size_t total = static_cast<size_t>(arguments.number("bytes", 1 << 30)) / block * block;
  const double longest = arguments.number("seconds", 20);
  struct statvfs room;
  if (statvfs(".", &room) != 0) fail(std::string("the working directory cannot be read: ") + strerror(errno));
  const double free_bytes = static_cast<double>(room.f_bavail) * room.f_frsize;
  const double all_bytes = static_cast<double>(room.f_blocks) * room.f_frsize;
  if (free_bytes < 2.0 * total || free_bytes - total < arguments.number("reserve", 0.05) * all_bytes)
    not_run(format("%.1f GiB are free on the disk, too few for a file of %.1f GiB", free_bytes / (1 << 30),
                   static_cast<double>(total) / (1 << 30)));
  const std::string device = disk(open(".", O_RDONLY | O_DIRECTORY), arguments.text("blocks", "/sys/dev/block"));
  const int file = open("disk.data", O_RDWR | O_CREAT | O_EXCL | O_DIRECT, 0600);
  const int opened = errno;
  unlink("disk.data");
  if (file < 0 && opened == EINVAL) not_run(device + " takes no direct I/O, and through the cache it is not measured");
  if (file < 0) fail(device + ": no file can be made: " + strerror(opened));
  void *memory = nullptr;
  if (posix_memalign(&memory, 4096, block) != 0) fail("there is no memory for a block");
  uint64_t *values = static_cast<uint64_t *>(memory);

  double busy = 0;
  size_t written = 0;
  while (written < total && busy < longest) {
    for (size_t i = 0; i < block / 8; ++i) values[i] = content(written / 8 + i);
    const double before = now_s();
    if (pwrite(file, memory, block, static_cast<off_t>(written)) != static_cast<ssize_t>(block))
      fail(device + ": a write failed: " + strerror(errno));
    busy += now_s() - before;
    written += block;
  }
  const double before = now_s();
  if (fsync(file) != 0) fail(device + ": what was written does not reach the disk: " + strerror(errno));
  busy += now_s() - before;
  measure("disk write", written / busy / 1e6, "MB/s", device, "more");

  size_t wrong = 0, read = 0;
  for (busy = 0; read < written && busy < longest; read += block) {
    const double start = now_s();
    if (pread(file, memory, block, static_cast<off_t>(read)) != static_cast<ssize_t>(block))
      fail(device + ": a read failed: " + strerror(errno));
    busy += now_s() - start;
    for (size_t i = 0; i < block / 8; ++i) wrong += values[i] != content(read / 8 + i);
  }
  measure("disk read", read / busy / 1e6, "MB/s", device, "more");
  measure("wrong words from disk", static_cast<double>(wrong), "", device);
  measure("disk file", static_cast<double>(written) / (1 << 20), "MiB", device);
  return end();
}
