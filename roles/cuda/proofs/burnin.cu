// All cards under full load at once: the same product of matrices again and again, each result compared bit for bit with
// the first, and places of the first with the processor's own result: both add in one order, with one rounding a step
// (fmaf), so that a sound card and a sound processor agree to the last bit. Meanwhile nvidia-smi is asked for
// temperatures, clocks, power and what slows the clocks down. Arguments: seconds, size (of the matrices, a multiple of
// 64), places, interval_s, pci_devices.
#include "cards.h"

#include <atomic>
#include <map>
#include <sstream>
#include <thread>

#ifndef __CUDACC__
#define __host__
#define __device__
#define __global__
#endif

const int TILE = 64, STEP = 16, SIDE = 16, EACH = 4;  // a block makes TILE * TILE values, a thread EACH * EACH of them
const unsigned THREADS = SIDE * SIDE;

// A value of a matrix, in [-1, 1): 24 bits of a mixed number are exact in a float.
__host__ __device__ inline float value(unsigned place, unsigned matrix) {
  unsigned mixed = place * 2654435761u + matrix * 40503u;
  mixed = (mixed ^ (mixed >> 15)) * 2246822519u;
  mixed ^= mixed >> 13;
  return static_cast<float>(mixed >> 8) / 8388608.0f - 1.0f;
}

__global__ void fill(float *values, unsigned count, unsigned matrix) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    values[i] = value(i, matrix);
}

__global__ void multiply(const float *a, const float *b, float *c, int size) {
  __shared__ float rows[TILE][STEP + 1];
  __shared__ float columns[STEP][TILE];
  const int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
  const int tiles = size / TILE;
  const size_t top = static_cast<size_t>(blockIdx.x / tiles) * TILE, left = static_cast<size_t>(blockIdx.x % tiles) * TILE;
  float sums[EACH][EACH] = {};
  for (int from = 0; from < size; from += STEP) {
    for (int i = threadIdx.x; i < TILE * STEP; i += THREADS) {
      rows[i / STEP][i % STEP] = a[(top + i / STEP) * size + from + i % STEP];
      columns[i / TILE][i % TILE] = b[(from + static_cast<size_t>(i / TILE)) * size + left + i % TILE];
    }
    __syncthreads();
    for (int k = 0; k < STEP; ++k)
      for (int i = 0; i < EACH; ++i)
        for (int j = 0; j < EACH; ++j)
          sums[i][j] = fmaf(rows[y + i * SIDE][k], columns[k][x + j * SIDE], sums[i][j]);
    __syncthreads();
  }
  for (int i = 0; i < EACH; ++i)
    for (int j = 0; j < EACH; ++j) c[(top + y + i * SIDE) * size + left + x + j * SIDE] = sums[i][j];
}

// How many values of two results differ in any bit.
__global__ void differ(const unsigned *one, const unsigned *other, unsigned count, unsigned long long *wrong) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    if (one[i] != other[i]) atomicAdd(wrong, 1ull);
}

// One value of the product, on the processor.
inline float reference(unsigned size, unsigned row, unsigned column) {
  float sum = 0;
  for (unsigned k = 0; k < size; ++k) sum = std::fmaf(value(row * size + k, 1), value(k * size + column, 2), sum);
  return sum;
}

#ifndef WITHOUT_MAIN
struct Burned {
  double products = 0, flops[2] = {0, 0};  // flops: per second, in the first and the last third of the time
  unsigned long long wrong = 0;
  unsigned places_wrong = 0;
};

Burned burn(const Card &card, const Arguments &arguments) {
  const int size = std::max(TILE, static_cast<int>(arguments.number("size", 4096)) / TILE * TILE);
  const unsigned count = static_cast<unsigned>(size) * size, blocks = count / (TILE * TILE);
  const double longest = arguments.number("seconds", 120);
  CALL(cudaSetDevice(card.index));
  float *a = nullptr, *b = nullptr, *first = nullptr, *again = nullptr;
  unsigned long long *wrong = nullptr;
  for (float **matrix : {&a, &b, &first, &again}) CALL(cudaMalloc(reinterpret_cast<void **>(matrix), count * sizeof(float)));
  CALL(cudaMalloc(reinterpret_cast<void **>(&wrong), sizeof *wrong));
  CALL(cudaMemset(wrong, 0, sizeof *wrong));
  launch(fill, 256, THREADS, a, count, 1);
  launch(fill, 256, THREADS, b, count, 2);
  launch(multiply, blocks, THREADS, a, b, first, size);
  std::vector<float> values(count);
  CALL(cudaMemcpy(values.data(), first, count * sizeof(float), cudaMemcpyDeviceToHost));
  Burned all;
  const unsigned places = static_cast<unsigned>(arguments.number("places", 256));
  for (unsigned i = 0; i < places; ++i) {  // spread over the whole matrix, the last value among them
    const unsigned place = static_cast<unsigned>((i + 1) * static_cast<unsigned long long>(count) / places - 1);
    const float expected = reference(size, place / size, place % size);
    all.places_wrong += memcmp(&expected, &values[place], sizeof expected) != 0;
  }
  double done[2] = {0, 0}, busy[2] = {0, 0};
  const double begin = now_s();
  for (double before = begin, after; before - begin < longest; before = after) {
    launch(multiply, blocks, THREADS, a, b, again, size);
    launch(differ, 256, THREADS, reinterpret_cast<unsigned *>(first), reinterpret_cast<unsigned *>(again), count, wrong);
    CALL(cudaDeviceSynchronize());
    after = now_s();
    ++all.products;
    const double part = (after - begin) / longest;
    const int third = part <= 1.0 / 3 ? 0 : part >= 2.0 / 3 ? 1 : -1;
    if (third >= 0) ++done[third], busy[third] += after - before;
  }
  for (int third : {0, 1})
    all.flops[third] = busy[third] > 0 ? done[third] * 2.0 * size * size * size / busy[third] : 0;
  CALL(cudaMemcpy(&all.wrong, wrong, sizeof all.wrong, cudaMemcpyDeviceToHost));
  for (float *matrix : {a, b, first, again}) CALL(cudaFree(matrix));
  CALL(cudaFree(wrong));
  return all;
}

// What nvidia-smi said of one card; in place of a value that it does not have it prints words. Heat: NVML's reasons SW and
// HW thermal slowdown; brake: HW slowdown, which power supply or heat cause, and the power brake.
struct Seen {
  int reasons = 0, hot = 0, braked = 0;  // samples
  std::vector<double> temperatures, clocks, powers;
};

const unsigned long HOT = 0x20 | 0x40, BRAKE = 0x08 | 0x80;
const char *QUERY = "nvidia-smi --format=csv,noheader,nounits --query-gpu=uuid,temperature.gpu,clocks.sm,power.draw,";
const char *REASONS[] = {"clocks_throttle_reasons.active", "clocks_event_reasons.active"};  // the second from R535 on

void take(const std::string &word, std::vector<double> &values) {
  char *end = nullptr;
  const double value = strtod(word.c_str(), &end);
  if (end != word.c_str() && *end == 0) values.push_back(value);
}

// Whether it told of a card. Its status does not say that: it is 14 where a card's infoROM is damaged, after all its rows.
bool ask(const char *reasons, std::map<std::string, Seen> &seen) {
  FILE *answer = popen((std::string(QUERY) + reasons + " 2>/dev/null").c_str(), "r");
  char line[512];
  int rows = 0;
  while (answer && rows < 64 && fgets(line, sizeof line, answer)) {
    std::vector<std::string> words;
    std::istringstream text(line);
    for (std::string word; std::getline(text, word, ',');) words.push_back(word.substr(0, word.find('\n')));
    if (words.size() != 5 || words[0].compare(0, 4, "GPU-") != 0) continue;
    ++rows;
    Seen &card = seen[words[0]];
    take(words[1], card.temperatures);
    take(words[2], card.clocks);
    take(words[3], card.powers);
    if (words[4].find("0x") == std::string::npos) continue;
    const unsigned long active = strtoul(words[4].c_str(), nullptr, 16);
    ++card.reasons;
    card.hot += (active & HOT) != 0;
    card.braked += (active & BRAKE) != 0;
  }
  if (answer) pclose(answer);
  return rows > 0;
}

void tell(const Card &card, const Burned &burned, Seen seen) {
  measure("products", burned.flops[1] / 1e9, "GFLOP/s", card.device, "more");
  measure("products at first", burned.flops[0] / 1e9, "GFLOP/s", card.device, "more");
  measure("wrong results", static_cast<double>(burned.wrong), "", card.device);
  measure("differs from the processor", burned.places_wrong, "", card.device);
  measure("rounds", burned.products, "", card.device);
  for (auto values : {&seen.temperatures, &seen.clocks, &seen.powers}) std::sort(values->begin(), values->end());
  if (!seen.temperatures.empty()) measure("temperature", seen.temperatures.back(), "C", card.device);
  if (!seen.clocks.empty()) {
    measure("clock", seen.clocks[seen.clocks.size() / 2], "MHz", card.device);
    measure("lowest clock", seen.clocks.front(), "MHz", card.device);
  }
  if (!seen.powers.empty()) measure("power", seen.powers.back(), "W", card.device);
  if (seen.reasons == 0) return;
  measure("slowed down by heat", 100.0 * seen.hot / seen.reasons, "%", card.device);
  measure("slowed down by the hardware", 100.0 * seen.braked / seen.reasons, "%", card.device);
}

int main(int count, char **words) {
  const Arguments arguments(count, words);
  const std::vector<Card> all = cards(arguments);
  if (all.empty()) {
    no_gpu("products", "GFLOP/s");
    no_gpu("wrong results", "");
    return end();
  }
  std::vector<Burned> burned(all.size());
  std::vector<std::thread> threads;
  std::atomic<size_t> running(all.size());
  for (const Card &each : all)
    threads.emplace_back([&, each] {
      burned[each.index] = burn(each, arguments);
      --running;
    });
  std::map<std::string, Seen> seen;
  const char *reasons = ask(REASONS[0], seen) ? REASONS[0] : REASONS[1];
  if (seen.empty()) ask(reasons, seen);  // at once: a short run may be over when that is answered
  for (double next = now_s(); running > 0;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (now_s() < next) continue;
    ask(reasons, seen);
    next = now_s() + arguments.number("interval_s", 1);
  }
  for (auto &thread : threads) thread.join();
  for (const Card &each : all) tell(each, burned[each.index], seen[each.uuid]);
  return end();
}
#endif
