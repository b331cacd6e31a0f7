// A test of every card's memory: each word is written and read again with every pattern, most of the free memory at once.
// The last two patterns are the word's own number and its complement: memory that appears in two places is seen by them.
// Arguments: part (of the free memory), least (of all memory, else it is refused), chunk_bytes, pci_devices.
#include "cards.h"

#ifndef __CUDACC__
#define __host__
#define __device__
#define __global__
#endif

typedef unsigned long long Word;
const int PATTERNS = 7;
const unsigned BLOCKS = 1024, THREADS = 256;

// The word that belongs in a place. The third mixes the place's number (splitmix64), so that neighbours differ in half
// of their bits.
__host__ __device__ inline Word belongs(int pattern, Word place) {
  Word mixed = place + 0x9e3779b97f4a7c15ull;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ull;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebull;
  mixed ^= mixed >> 31;
  switch (pattern) {
    case 0: return 0;
    case 1: return ~0ull;
    case 2: return mixed;
    case 3: return 0x5555555555555555ull;
    case 4: return 0xaaaaaaaaaaaaaaaaull;
    case 5: return place;
    default: return ~place;
  }
}

struct Found {
  Word wrong;      // how many words
  Word claimed;    // 1 once the first of them is noted below
  Word place, read;
  Word pattern;
};

__global__ void write_all(Word *words, Word count, Word first, int pattern) {
  for (Word i = blockIdx.x * static_cast<Word>(blockDim.x) + threadIdx.x; i < count; i += static_cast<Word>(gridDim.x) * blockDim.x)
    words[i] = belongs(pattern, first + i);
}

__global__ void check_all(const Word *words, Word count, Word first, int pattern, Found *found) {
  for (Word i = blockIdx.x * static_cast<Word>(blockDim.x) + threadIdx.x; i < count; i += static_cast<Word>(gridDim.x) * blockDim.x) {
    const Word read = words[i];
    if (read == belongs(pattern, first + i)) continue;
    atomicAdd(&found->wrong, 1ull);
    if (atomicCAS(&found->claimed, 0ull, 1ull) == 0) {
      found->place = first + i;
      found->read = read;
      found->pattern = pattern;
    }
  }
}

#ifndef WITHOUT_MAIN
void test(const Card &card, const Arguments &arguments) {
  CALL(cudaSetDevice(card.index));
  size_t unused = 0, total = 0;
  CALL(cudaMemGetInfo(&unused, &total));
  const size_t chunk = static_cast<size_t>(arguments.number("chunk_bytes", 256 << 20));
  const size_t most = static_cast<size_t>(unused * arguments.number("part", 0.95));
  std::vector<Word *> chunks;
  Found *found = nullptr;
  CALL(cudaMalloc(reinterpret_cast<void **>(&found), sizeof *found));
  CALL(cudaMemset(found, 0, sizeof *found));
  for (void *words = nullptr; (chunks.size() + 1) * chunk <= most; chunks.push_back(static_cast<Word *>(words)))
    if (cudaMalloc(&words, chunk) != cudaSuccess) {
      cudaGetLastError();  // what is free lies in pieces: the rest stays untested
      break;
    }
  const double tested = static_cast<double>(chunks.size() * chunk);
  if (tested < total * arguments.number("least", 0.5))
    not_run(format("%s: %.1f of its %.1f GiB are free: something else uses it", card.device.c_str(), unused / 1073741824.0,
                   total / 1073741824.0));
  const Word count = chunk / sizeof(Word);
  const double before = now_s();
  for (int pattern = 0; pattern < PATTERNS; ++pattern) {
    for (size_t i = 0; i < chunks.size(); ++i) launch(write_all, BLOCKS, THREADS, chunks[i], count, i * count, pattern);
    CALL(cudaDeviceSynchronize());
    for (size_t i = 0; i < chunks.size(); ++i) launch(check_all, BLOCKS, THREADS, chunks[i], count, i * count, pattern, found);
    CALL(cudaDeviceSynchronize());
  }
  const double took = now_s() - before;
  Found all;
  CALL(cudaMemcpy(&all, found, sizeof all, cudaMemcpyDeviceToHost));
  for (Word *words : chunks) CALL(cudaFree(words));
  CALL(cudaFree(found));
  measure("wrong words", static_cast<double>(all.wrong), "", card.device);
  measure("memory tested", tested / 1073741824.0, "GiB", card.device);
  measure("memory", total / 1073741824.0, "GiB", card.device);
  measure("patterns through memory", 2.0 * PATTERNS * tested / took / 1e9, "GB/s", card.device, "more");
  if (all.wrong)
    measure("first wrong word", format("byte %llu: wrote %016llx, read %016llx", all.place * 8,
                                       belongs(static_cast<int>(all.pattern), all.place), all.read), card.device);
}

int main(int count, char **words) {
  const Arguments arguments(count, words);
  const std::vector<Card> all = cards(arguments);
  if (all.empty()) {
    no_gpu("wrong words", "");
    no_gpu("memory tested", "GiB");
  }
  for (const Card &each : all) test(each, arguments);
  return end();
}
#endif
