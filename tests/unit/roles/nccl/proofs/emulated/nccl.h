// An NCCL whose cards are those of the emulated CUDA runtime, enough for the proof's program. SAYS is what it writes to its
// log, OFF=card one whose result has one wrong value, BROKEN=1 an NCCL whose cards cannot be joined.
#pragma once
#include <cuda_runtime.h>

#include <fstream>

enum ncclResult_t { ncclSuccess = 0, ncclSystemError = 2 };
enum ncclDataType_t { ncclFloat = 7 };
enum ncclRedOp_t { ncclSum = 0 };
typedef int *ncclComm_t;

namespace emulated {
struct Part {
  const float *in;
  float *out;
  size_t count;
  int card;
};
inline std::vector<Part> parts;
}  // namespace emulated

inline const char *ncclGetErrorString(ncclResult_t status) {
  return status == ncclSuccess ? "no error" : "unhandled system error";
}
inline ncclResult_t ncclCommInitAll(ncclComm_t *comms, int count, const int *devices) {
  if (getenv("BROKEN")) return ncclSystemError;
  for (int i = 0; i < count; ++i) comms[i] = new int(devices[i]);
  std::ofstream(getenv("NCCL_DEBUG_FILE")) << (getenv("SAYS") ? getenv("SAYS") : "");
  return ncclSuccess;
}
inline ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  delete comm;
  return ncclSuccess;
}
inline ncclResult_t ncclGroupStart() { return ncclSuccess; }
inline ncclResult_t ncclAllReduce(const void *in, void *out, size_t count, ncclDataType_t, ncclRedOp_t, ncclComm_t comm, cudaStream_t) {
  emulated::parts.push_back({static_cast<const float *>(in), static_cast<float *>(out), count, *comm});
  return ncclSuccess;
}
inline ncclResult_t ncclGroupEnd() {
  for (const emulated::Part &part : emulated::parts) {
    for (size_t i = 0; i < part.count; ++i) {
      float sum = 0;
      for (const emulated::Part &each : emulated::parts) sum += each.in[i];
      part.out[i] = sum;
    }
    if (emulated::setting("OFF", -1) == part.card) part.out[part.count - 1] += 1;
  }
  emulated::parts.clear();
  return ncclSuccess;
}
