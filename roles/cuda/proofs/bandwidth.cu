// What every card moves to and from the host's memory, within itself, and to the other cards: the median of several copies
// of pinned memory, in GB/s of 10^9 bytes. Arguments: bytes (of one copy), rounds, pci_devices (sysfs's directory).
#include "cards.h"

struct Events {
  cudaEvent_t begin, end;
  Events() {
    CALL(cudaEventCreate(&begin));
    CALL(cudaEventCreate(&end));
  }
};

// The median of the seconds that a copy takes on the current card, after one that is not counted.
template <class Copy>
double seconds(int rounds, Copy copy) {
  Events events;
  std::vector<double> all;
  for (int round = 0; round <= rounds; ++round) {
    float milliseconds = 0;
    CALL(cudaEventRecord(events.begin, nullptr));
    copy();
    CALL(cudaEventRecord(events.end, nullptr));
    CALL(cudaEventSynchronize(events.end));
    CALL(cudaEventElapsedTime(&milliseconds, events.begin, events.end));
    if (round > 0) all.push_back(milliseconds / 1e3);
  }
  CALL(cudaEventDestroy(events.begin));
  CALL(cudaEventDestroy(events.end));
  std::sort(all.begin(), all.end());
  return std::max(all[all.size() / 2], 1e-9);
}

// What the card's PCIe link carries in one direction, in GB/s, by speed and width as they are now, under load; 0 where
// the kernel does not tell. Up to 5 GT/s a byte takes 10 bits on the line, from 8 GT/s on 130 for 16 bytes.
double link(const std::string &device) {
  const double speed = strtod(first_line(device + "/current_link_speed").c_str(), nullptr);
  const double width = strtod(first_line(device + "/current_link_width").c_str(), nullptr);
  return width > 32 ? 0 : speed * width / 8 * (speed > 5 ? 128.0 / 130 : 0.8);
}

void alone(const Card &card, char *host, char *back, size_t bytes, int rounds, const std::string &devices) {
  CALL(cudaSetDevice(card.index));
  char *first = nullptr, *second = nullptr;
  CALL(cudaMalloc(reinterpret_cast<void **>(&first), bytes));
  CALL(cudaMalloc(reinterpret_cast<void **>(&second), bytes));
  const double there = seconds(rounds, [=] { CALL(cudaMemcpyAsync(first, host, bytes, cudaMemcpyHostToDevice, nullptr)); });
  const double within =
      seconds(rounds, [=] { CALL(cudaMemcpyAsync(second, first, bytes, cudaMemcpyDeviceToDevice, nullptr)); });
  const double here = seconds(rounds, [=] { CALL(cudaMemcpyAsync(back, second, bytes, cudaMemcpyDeviceToHost, nullptr)); });
  const std::string device = devices + "/" + card.bus;
  const double carries = link(device);
  measure("host to device", bytes / there / 1e9, "GB/s", card.device, "more");
  measure("device to host", bytes / here / 1e9, "GB/s", card.device, "more");
  measure("within the card", 2.0 * bytes / within / 1e9, "GB/s", card.device, "more");  // read and written
  size_t wrong = 0;
  for (size_t i = 0; i < bytes; ++i) wrong += host[i] != back[i];
  measure("wrong bytes", static_cast<double>(wrong), "", card.device);
  if (carries > 0) measure("link", carries, "GB/s", card.device);
  const std::string id = first_line(device + "/device");
  if (id.size() > 2) measure("pci id", id.substr(2), card.device);
  CALL(cudaFree(first));
  CALL(cudaFree(second));
}

// Copies from one card to each other one; the slowest is what the card's row says.
void together(const Card &from, const std::vector<Card> &all, size_t bytes, int rounds) {
  double slowest = 0;
  const Card *peer = nullptr;
  bool direct = false;
  for (const Card &to : all) {
    if (to.index == from.index) continue;
    char *source = nullptr, *target = nullptr;
    int access = 0;
    CALL(cudaSetDevice(to.index));
    CALL(cudaMalloc(reinterpret_cast<void **>(&target), bytes));
    CALL(cudaSetDevice(from.index));
    CALL(cudaMalloc(reinterpret_cast<void **>(&source), bytes));
    CALL(cudaDeviceCanAccessPeer(&access, from.index, to.index));
    if (access) CALL(cudaDeviceEnablePeerAccess(to.index, 0));
    const double took =
        seconds(rounds, [&] { CALL(cudaMemcpyPeerAsync(target, to.index, source, from.index, bytes, nullptr)); });
    if (access) CALL(cudaDeviceDisablePeerAccess(to.index));
    CALL(cudaFree(source));
    CALL(cudaFree(target));
    if (took > slowest) slowest = took, peer = &to, direct = access;
  }
  if (!peer) return;
  const std::string device = from.uuid + " to " + peer->uuid + " (" + from.model + ")";
  measure("card to card", bytes / slowest / 1e9, "GB/s", device, "more");
  measure("peer access", direct ? "yes" : "no", device);
}

int main(int count, char **words) {
  const Arguments arguments(count, words);
  const size_t bytes = static_cast<size_t>(arguments.number("bytes", 256 << 20));
  const int rounds = std::max(1, static_cast<int>(arguments.number("rounds", 16)));
  const std::vector<Card> all = cards(arguments);
  if (all.empty()) {
    for (const char *name : {"host to device", "device to host", "within the card"}) no_gpu(name, "GB/s");
    return end();
  }
  for (const Card &each : all) {
    size_t unused = 0, total = 0;
    CALL(cudaSetDevice(each.index));
    CALL(cudaMemGetInfo(&unused, &total));
    if (unused < 3 * bytes) not_run(format("%s has %.2f GiB free: something else uses it", each.device.c_str(), unused / 1073741824.0));
  }
  char *host = nullptr, *back = nullptr;
  CALL(cudaMallocHost(reinterpret_cast<void **>(&host), bytes));
  CALL(cudaMallocHost(reinterpret_cast<void **>(&back), bytes));
  for (size_t i = 0; i < bytes; ++i) host[i] = static_cast<char>(i * 31 + i / 4096);
  for (const Card &each : all) {
    std::fill(back, back + bytes, 0);
    alone(each, host, back, bytes, rounds, arguments.text("pci_devices", "/sys/bus/pci/devices"));
  }
  for (const Card &each : all) together(each, all, bytes, rounds);
  return end();
}
