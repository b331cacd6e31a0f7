// What the CUDA programs of the proofs share: the cards with their UUIDs, calls that are checked, and the launch of kernels.
#pragma once
#include <cuda_runtime.h>
#include <dirent.h>

#include <algorithm>
#include <vector>

#include "protocol.h"

#define CALL(call) checked(call, #call)

inline void checked(cudaError_t status, const char *call) {
  if (status == cudaSuccess) return;
  const std::string text(call);
  fail(text.substr(0, text.find('(')) + ": " + cudaGetErrorString(status));
}

struct Card {
  int index;
  std::string uuid;    // GPU-6e2c1c5e-…
  std::string model;   // NVIDIA A100-SXM4-80GB
  std::string bus;     // 0000:3b:00.0
  std::string device;  // how it is named in rows
};

// The display and 3D controllers of the vendor on the PCI bus, whether or not they have a driver.
inline int on_the_bus(const std::string &devices) {
  DIR *folder = opendir(devices.c_str());
  int cards = 0;
  while (dirent *entry = folder ? readdir(folder) : nullptr) {
    const std::string path = devices + "/" + entry->d_name;
    const std::string kind = first_line(path + "/class");
    cards += first_line(path + "/vendor") == "0x10de" && (kind.substr(0, 6) == "0x0300" || kind.substr(0, 6) == "0x0302");
  }
  if (folder) closedir(folder);
  return cards;
}

inline Card card(int index) {
  cudaDeviceProp properties;
  CALL(cudaGetDeviceProperties(&properties, index));
  char bus[32] = "";
  CALL(cudaDeviceGetPCIBusId(bus, sizeof bus, index));
  Card found{index, "GPU", properties.name, bus, ""};
  for (int byte = 0; byte < 16; ++byte) {
    if (byte == 0 || byte == 4 || byte == 6 || byte == 8 || byte == 10) found.uuid += '-';
    found.uuid += format("%02x", static_cast<unsigned char>(properties.uuid.bytes[byte]));
  }
  std::transform(found.bus.begin(), found.bus.end(), found.bus.begin(), ::tolower);
  found.device = found.uuid + " (" + found.model + ")";
  return found;
}

// Every card that CUDA sees. None where the PCI bus has none either; a bus with cards that CUDA does not see is a fault.
inline std::vector<Card> cards(const Arguments &arguments) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  const int bus = on_the_bus(arguments.text("pci_devices", "/sys/bus/pci/devices"));
  if (status != cudaSuccess || count == 0) {
    if (bus > 0) fail(format("CUDA sees none of %d cards on the PCI bus: %s", bus, cudaGetErrorString(status)));
    return {};
  }
  measure("cards", count, "", "cpu");
  std::vector<Card> all;
  for (int index = 0; index < count; ++index) all.push_back(card(index));
  return all;
}

template <class... Parameters, class... Values>
void launch(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, Values... values) {
#ifdef __CUDACC__
  kernel<<<blocks, threads>>>(static_cast<Parameters>(values)...);
  CALL(cudaGetLastError());
#else  // the runtime of the tests, whose cards are this machine's memory and threads
  emulated::launch(kernel, blocks, threads, static_cast<Parameters>(values)...);
#endif
}
