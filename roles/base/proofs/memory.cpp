// What one processor, and then all of them, move to and from memory: copy and triad as STREAM defines them (McCalpin,
// 1995), counted as it counts them: bytes read and written, the best of several rounds: what else the host does for a
// moment does not show.
// Arguments, for one and for all: bytes (of each of three arrays), rounds (at least), seconds (as long as that at least);
// and cpuinfo (the kernel's file about the processors, or another for a test).
//
// In a virtual machine, what all move is not compared with other hosts: the hypervisor puts its processors now on parts
// of the real ones that share one link to the memory, now on parts with a link each. On an EPYC of the 5th generation
// two of them had 45 GB/s for minutes and then 70, while either alone had 36 all the time.
#include "protocol.h"

#include <sched.h>

#include <algorithm>
#include <functional>
#include <thread>
#include <vector>

const int MOST_ROUNDS = 500;  // a value triples in each, and a double holds 1e308

// The processors that it may use: a host may give it less than all.
unsigned processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : std::thread::hardware_concurrency();
}

// The memory that the kernel says is available, in bytes.
double available() {
  std::ifstream file("/proc/meminfo");
  for (std::string name, unit; file >> name;) {
    double value = 0;
    file >> value;
    std::getline(file, unit);
    if (name == "MemAvailable:") return value * 1024;
  }
  return 0;
}

// Whether this is a virtual machine: the processor says so.
bool is_virtual(const std::string &cpuinfo) {
  std::ifstream file(cpuinfo);
  for (std::string word; file >> word;)
    if (word == "hypervisor") return true;
  return false;
}

// Every thread works on its own part, as it did when the part was first written: so it lies in its own node's memory.
template <class Work>
double seconds(unsigned threads, size_t count, Work work) {
  const double before = now_s();
  std::vector<std::thread> all;
  for (unsigned each = 0; each < threads; ++each)
    all.emplace_back(work, count * each / threads, count * (each + 1) / threads);
  for (auto &thread : all) thread.join();
  return now_s() - before;
}

struct Best {
  double copy = 1e300, triad = 1e300;  // seconds
  size_t wrong = 0;                    // values
};

Best best(unsigned threads, size_t values, int rounds, double lasts) {
  double *a = static_cast<double *>(malloc(values * sizeof(double)));
  double *b = static_cast<double *>(malloc(values * sizeof(double)));
  double *c = static_cast<double *>(malloc(values * sizeof(double)));
  if (!a || !b || !c) fail("the memory that the kernel calls available cannot be had");
  seconds(threads, values, [=](size_t from, size_t to) {
    for (size_t i = from; i < to; ++i) a[i] = 1, b[i] = 2, c[i] = 0;
  });
  Best one;
  int done = 0;
  for (const double until = now_s() + lasts; done < rounds || (now_s() < until && done < MOST_ROUNDS); ++done) {
    one.copy = std::min(one.copy, seconds(threads, values, [=](size_t from, size_t to) {
      for (size_t i = from; i < to; ++i) c[i] = a[i];
    }));
    one.triad = std::min(one.triad, seconds(threads, values, [=](size_t from, size_t to) {
      for (size_t i = from; i < to; ++i) a[i] = b[i] + 3.0 * c[i];
    }));
  }
  // a after each round: 2 + 3 a, from 1; rounded as the loop above rounds it
  double expected = 1;
  for (int round = 0; round < done; ++round) expected = 2 + 3 * expected;
  for (size_t i = 0; i < values; ++i) one.wrong += a[i] != expected;
  free(a), free(b), free(c);
  return one;
}

int main(int count, char **words) {
  const Arguments arguments(count, words);
  const double bytes = arguments.number("bytes", 256.0 * 1024 * 1024);
  const int rounds = static_cast<int>(arguments.number("rounds", 10));
  const double lasts = arguments.number("seconds", 0);
  if (available() < 8 * bytes)
    not_run(format("%.1f GiB of memory are available, and it works with %.1f", available() / (1 << 30),
                   3 * bytes / (1 << 30)));
  const size_t values = static_cast<size_t>(bytes / sizeof(double));
  const unsigned threads = std::max(1u, processors());
  const Best one = best(1, values, rounds, lasts), all = best(threads, values, rounds, lasts);
  const char *better = is_virtual(arguments.text("cpuinfo", "/proc/cpuinfo")) ? "" : "more";
  measure("memory copy by one processor", 2 * bytes / one.copy / 1e9, "GB/s", "cpu", "more");
  measure("memory triad by one processor", 3 * bytes / one.triad / 1e9, "GB/s", "cpu", "more");
  measure("memory copy", 2 * bytes / all.copy / 1e9, "GB/s", "cpu", better);
  measure("memory triad", 3 * bytes / all.triad / 1e9, "GB/s", "cpu", better);
  measure("wrong values in memory", static_cast<double>(one.wrong + all.wrong), "", "cpu");
  measure("threads", threads, "", "cpu");
  return end();
}
