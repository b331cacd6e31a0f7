// All cards of the host add up their buffers by one all-reduce of NCCL. Every value of every card's result is compared
// with the sum, which float holds exactly. The bandwidth is nccl-tests' bus bandwidth (its doc/PERFORMANCE.md): of n cards,
// 2 (n - 1) / n of the bytes in the seconds that the median of the rounds took. Which way NCCL took, its own log tells.
// Arguments: bytes, rounds, pci_devices.
#include "cards.h"

#include <nccl.h>

#define NCCL(call) joined(call, #call)

inline void joined(ncclResult_t status, const char *call) {
  if (status == ncclSuccess) return;
  const std::string text(call);
  fail(text.substr(0, text.find('(')) + ": " + ncclGetErrorString(status));
}

struct Member {
  Card card;
  cudaStream_t stream;
  float *in, *out;
};

const char *LOG = "nccl.log";
const size_t PERIOD = 1024;  // of the values of a buffer: their sums over all cards stay whole numbers below 2^24

inline bool begins(const std::string &text, const char *with) { return text.compare(0, strlen(with), with) == 0; }

// By what the cards of the host reach each other. NCCL's lines, of 2.8 and of 2.19: "Pattern 4, crossNic 0, nChannels 12,
// speed 20/20, type NVL/PIX, sameChannels 1" is the ring, "Channel 00 : 0[7000] -> 1[f000] via P2P/direct pointer" a step
// of it. Before 2.9 host memory was "direct shared memory", since then it is "SHM/direct". "NVLS comm 0x55d9 headRank 0"
// is the sum made in the NVSwitches: since 2.22 steps are connected when they are first needed, and that one needs none.
std::string way() {
  std::ifstream file(LOG);
  std::string line, kind;
  bool direct = false, memory = false, network = false, switches = false;
  while (std::getline(file, line)) {
    const size_t type = line.find(", type "), via = line.find(" via ");
    if (kind.empty() && line.find("Pattern 4,") != std::string::npos && type != std::string::npos)
      kind = line.substr(type + 7, 3);
    switches |= line.find(" NVLS comm ") != std::string::npos;
    if (via == std::string::npos || line.find(" -> ") == std::string::npos) continue;
    const std::string by = line.substr(via + 5);
    direct |= begins(by, "P2P/");
    memory |= begins(by, "SHM") || begins(by, "direct shared memory");
    network |= begins(by, "NET/");
  }
  if (network) return "network";
  if (memory) return "host memory";
  if (switches) return "NVLink";
  if (!direct || kind.empty()) return "not told";
  return kind == "NVL" || kind == "NVB" || kind == "C2C" ? "NVLink" : "PCIe";
}

void all_reduce(std::vector<Member> &members, const std::vector<ncclComm_t> &comms, size_t count) {
  NCCL(ncclGroupStart());
  for (size_t rank = 0; rank < members.size(); ++rank)
    NCCL(ncclAllReduce(members[rank].in, members[rank].out, count, ncclFloat, ncclSum, comms[rank], members[rank].stream));
  NCCL(ncclGroupEnd());
  for (Member &each : members) {
    CALL(cudaSetDevice(each.card.index));
    CALL(cudaStreamSynchronize(each.stream));
  }
}

Member member(const Card &card, size_t rank, std::vector<float> &host) {
  Member made{card, nullptr, nullptr, nullptr};
  const size_t bytes = host.size() * sizeof(float);
  size_t unused = 0, total = 0;
  CALL(cudaSetDevice(card.index));
  CALL(cudaMemGetInfo(&unused, &total));
  if (unused < 3 * bytes) not_run(format("%s has %.2f GiB free: something else uses it", card.device.c_str(), unused / 1073741824.0));
  CALL(cudaStreamCreate(&made.stream));
  CALL(cudaMalloc(reinterpret_cast<void **>(&made.in), bytes));
  CALL(cudaMalloc(reinterpret_cast<void **>(&made.out), bytes));
  for (size_t i = 0; i < host.size(); ++i) host[i] = static_cast<float>(i % PERIOD + rank);
  CALL(cudaMemcpy(made.in, host.data(), bytes, cudaMemcpyHostToDevice));
  CALL(cudaMemset(made.out, 0, bytes));
  return made;
}

double wrong_sums(const Member &of, size_t members, std::vector<float> &host) {
  CALL(cudaSetDevice(of.card.index));
  CALL(cudaMemcpy(host.data(), of.out, host.size() * sizeof(float), cudaMemcpyDeviceToHost));
  size_t wrong = 0;
  for (size_t i = 0; i < host.size(); ++i)
    wrong += host[i] != static_cast<float>(members * (i % PERIOD) + members * (members - 1) / 2);
  return static_cast<double>(wrong);
}

int main(int count, char **words) {
  const Arguments arguments(count, words);
  setenv("NCCL_DEBUG", "INFO", 1);
  setenv("NCCL_DEBUG_SUBSYS", "INIT,GRAPH", 1);
  setenv("NCCL_DEBUG_FILE", LOG, 1);
  const std::vector<Card> all = cards(arguments);
  if (all.empty()) {
    no_gpu("all-reduce", "GB/s");
    return end();
  }
  std::vector<float> host(static_cast<size_t>(arguments.number("bytes", 256 << 20)) / sizeof(float));
  const int rounds = std::max(1, static_cast<int>(arguments.number("rounds", 20)));
  std::vector<Member> members;
  std::vector<int> devices;
  for (const Card &each : all) {
    members.push_back(member(each, members.size(), host));
    devices.push_back(each.index);
  }
  std::vector<ncclComm_t> comms(all.size());
  NCCL(ncclCommInitAll(comms.data(), static_cast<int>(all.size()), devices.data()));
  std::vector<double> seconds;
  for (int round = -3; round < rounds; ++round) {  // the first are not counted: NCCL connects the cards in them
    const double begin = now_s();
    all_reduce(members, comms, host.size());
    if (round >= 0) seconds.push_back(now_s() - begin);
  }
  for (const Member &each : members) measure("wrong sums", wrong_sums(each, all.size(), host), "", each.card.device);
  if (all.size() > 1) {
    std::sort(seconds.begin(), seconds.end());
    const double n = static_cast<double>(all.size()), bytes = static_cast<double>(host.size() * sizeof(float));
    const std::string label = format("all GPUs (%zu x %s)", all.size(), all[0].model.c_str());
    const double took = std::max(seconds[seconds.size() / 2], 1e-9);
    measure("all-reduce", 2 * (n - 1) / n * bytes / took / 1e9, "GB/s", label, "more");
    measure("way", way(), label);
  }
  for (ncclComm_t each : comms) NCCL(ncclCommDestroy(each));
  return end();
}
