libraries libnccl /usr/local/cuda-[0-9]*.[0-9]*/targets/*/lib /usr/local/cuda-[0-9]*.[0-9]*/lib64 /usr/lib/x86_64-linux-gnu \
  /usr/local/lib /usr/local/nccl*/lib* /opt/nccl*/lib*
