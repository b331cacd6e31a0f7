// A CUDA runtime whose cards are this machine's memory and threads, enough for the proofs' programs: with it g++ compiles
// them, and they run whole. A block's threads are threads that meet at __syncthreads. What is wrong with a card is told
// by the environment: CARDS (how many; 0: none), STUCK="card byte bit" (a bit of its memory that is always 1, counted
// through its allocations), FLIP="card n" (a bit of its n-th product changes), WRONG=card (every product is wrong by one
// bit), SLOW=card (it takes ten times as long), FULL=card (most of its memory is taken), GARBLED=card (one byte of each
// large copy to the host arrives changed). UUID=GPU-… is that of the first card, and PACE=milliseconds how long a product
// takes at least, so that other work of the machine does not show in it.
#pragma once
#include <atomic>
#include <barrier>
#include <cctype>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#define __shared__ static
enum cudaError_t { cudaSuccess = 0, cudaErrorMemoryAllocation = 2, cudaErrorNoDevice = 100 };
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
typedef void *cudaStream_t;
struct dim3 {
  unsigned x, y = 1, z = 1;
  explicit dim3(unsigned x) : x(x) {}
};
struct cudaDeviceProp {
  char name[256];
  struct {
    char bytes[16];
  } uuid;
};

namespace emulated {
const size_t MEMORY = 64u << 20;
inline int setting(const char *name, int otherwise) { return getenv(name) ? atoi(getenv(name)) : otherwise; }
inline thread_local int card = 0;
inline std::mutex lock;
struct Allocation {
  char *at;
  int card;
  size_t bytes;
};
inline std::vector<Allocation> allocations;
inline std::map<int, size_t> used;
inline std::map<int, int> launches;
inline thread_local std::barrier<> *block_barrier = nullptr;
inline thread_local unsigned thread_x = 0, block_x = 0, threads_x = 0, blocks_x = 0;
struct Place {
  unsigned x;
};

// The bit that is always 1, after anything wrote to the card's memory.
inline void stick() {
  int broken = 0, bit = 0;
  long long byte = 0;
  if (!getenv("STUCK") || sscanf(getenv("STUCK"), "%d %lld %d", &broken, &byte, &bit) != 3) return;
  std::lock_guard<std::mutex> held(lock);
  for (const Allocation &each : allocations) {
    if (each.card != broken || each.bytes < 1024) continue;
    if (byte < static_cast<long long>(each.bytes)) {
      each.at[byte] = static_cast<char>(each.at[byte] | 1 << bit);
      return;
    }
    byte -= each.bytes;
  }
}

// One byte of a large copy to the host.
inline void garble(char *to, size_t bytes, cudaMemcpyKind kind) {
  if (kind == cudaMemcpyDeviceToHost && bytes >= (1u << 20) && setting("GARBLED", -1) == card) to[bytes / 3] ^= 0x10;
}

inline void be_slow(std::chrono::steady_clock::time_point begin) {
  if (setting("SLOW", -1) == card) std::this_thread::sleep_for(9 * (std::chrono::steady_clock::now() - begin));
}
}  // namespace emulated

#define threadIdx (emulated::Place{emulated::thread_x})
#define blockIdx (emulated::Place{emulated::block_x})
#define blockDim (emulated::Place{emulated::threads_x})
#define gridDim (emulated::Place{emulated::blocks_x})
inline void __syncthreads() { emulated::block_barrier->arrive_and_wait(); }
inline unsigned long long atomicAdd(unsigned long long *at, unsigned long long value) {
  return std::atomic_ref<unsigned long long>(*at).fetch_add(value);
}
inline unsigned long long atomicCAS(unsigned long long *at, unsigned long long old, unsigned long long value) {
  std::atomic_ref<unsigned long long>(*at).compare_exchange_strong(old, value);
  return old;
}

inline const char *cudaGetErrorString(cudaError_t status) {
  return status == cudaSuccess ? "no error" : status == cudaErrorNoDevice ? "no CUDA-capable device is detected" : "out of memory";
}
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline cudaError_t cudaGetDeviceCount(int *count) {
  *count = emulated::setting("CARDS", 1);
  return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp *all, int index) {
  memset(all, 0, sizeof *all);
  snprintf(all->name, sizeof all->name, "Emulated \"E100\"");
  for (int i = 0; i < 16; ++i) all->uuid.bytes[i] = static_cast<char>(0xf0 + i);
  all->uuid.bytes[15] = static_cast<char>(index);
  const char *told = index == 0 ? getenv("UUID") : nullptr;
  for (int i = 0; told && i < 16; ++i, told += 2) {
    while (*told && !isxdigit(*told)) ++told;  // "GPU-", and the lines between
    unsigned byte = 0;
    sscanf(told, "%2x", &byte);
    all->uuid.bytes[i] = static_cast<char>(byte);
  }
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetPCIBusId(char *bus, int size, int index) {
  snprintf(bus, size, "0000:%02X:00.0", 0x3a + index);
  return cudaSuccess;
}
inline cudaError_t cudaSetDevice(int index) {
  emulated::card = index;
  return cudaSuccess;
}
inline cudaError_t cudaMemGetInfo(size_t *unused, size_t *total) {
  std::lock_guard<std::mutex> held(emulated::lock);
  *total = emulated::MEMORY;
  const size_t taken = emulated::setting("FULL", -1) == emulated::card ? emulated::MEMORY * 9 / 10 : 0;
  *unused = *total - taken - emulated::used[emulated::card];
  return cudaSuccess;
}
inline cudaError_t cudaMalloc(void **at, size_t bytes) {
  std::lock_guard<std::mutex> held(emulated::lock);
  if (emulated::used[emulated::card] + bytes > emulated::MEMORY) return cudaErrorMemoryAllocation;
  emulated::used[emulated::card] += bytes;
  *at = malloc(bytes);
  emulated::allocations.push_back({static_cast<char *>(*at), emulated::card, bytes});
  return cudaSuccess;
}
inline cudaError_t cudaFree(void *at) {
  std::lock_guard<std::mutex> held(emulated::lock);
  auto found = emulated::allocations.begin();
  while (found != emulated::allocations.end() && found->at != at) ++found;
  if (found == emulated::allocations.end()) abort();
  emulated::used[found->card] -= found->bytes;
  emulated::allocations.erase(found);
  free(at);
  return cudaSuccess;
}
inline cudaError_t cudaMallocHost(void **at, size_t bytes) {
  *at = malloc(bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemset(void *at, int value, size_t bytes) {
  memset(at, value, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t) {
  const auto begin = std::chrono::steady_clock::now();
  memcpy(to, from, bytes);
  emulated::garble(static_cast<char *>(to), bytes, kind);
  emulated::stick();
  emulated::be_slow(begin);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
  return cudaMemcpyAsync(to, from, bytes, kind, nullptr);
}
inline cudaError_t cudaMemcpyPeerAsync(void *to, int, const void *from, int, size_t bytes, cudaStream_t) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, nullptr);
}
inline cudaError_t cudaDeviceCanAccessPeer(int *can, int, int) {
  *can = 1;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }
inline cudaError_t cudaDeviceDisablePeerAccess(int) { return cudaSuccess; }
inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
inline cudaError_t cudaStreamCreate(cudaStream_t *stream) {
  *stream = nullptr;
  return cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }

typedef std::chrono::steady_clock::time_point *cudaEvent_t;
inline cudaError_t cudaEventCreate(cudaEvent_t *event) {
  *event = new std::chrono::steady_clock::time_point;
  return cudaSuccess;
}
inline cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  *event = std::chrono::steady_clock::now();
  return cudaSuccess;
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  *milliseconds = std::chrono::duration<float, std::milli>(*end - *begin).count();
  return cudaSuccess;
}

namespace emulated {
template <class... Parameters>
void launch(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, Parameters... values) {
  static std::mutex one_at_a_time;  // the shared memory of a block is one static variable here
  const auto begin = std::chrono::steady_clock::now();
  {
    std::lock_guard<std::mutex> held(one_at_a_time);
    std::barrier<> barrier(threads);
    std::vector<std::thread> all;
    const int on = card;
    // No kernel here uses a block's shared memory after its last __syncthreads: blocks may follow without a pause.
    for (unsigned x = 0; x < threads; ++x)
      all.emplace_back([&, x] {
        card = on, thread_x = x, threads_x = threads, blocks_x = blocks, block_barrier = &barrier;
        for (block_x = 0; block_x < blocks; ++block_x) kernel(values...);
      });
    for (auto &thread : all) thread.join();
  }
  stick();
  if constexpr (std::is_same_v<std::tuple<Parameters...>, std::tuple<const float *, const float *, float *, int>>) {
    const std::tuple<Parameters...> given(values...);
    int broken = -1, at = -1, size = std::get<3>(given);
    unsigned *product = reinterpret_cast<unsigned *>(std::get<2>(given));
    if (getenv("FLIP")) sscanf(getenv("FLIP"), "%d %d", &broken, &at);
    if (broken == card && ++launches[card] == at) product[0] ^= 1;
    if (setting("WRONG", -1) == card) product[size * size - 1] ^= 1;
    std::this_thread::sleep_until(begin + std::chrono::milliseconds(setting("PACE", 0)));
  }
  be_slow(begin);
}
}  // namespace emulated
