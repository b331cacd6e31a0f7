# has DIRECTORY: `has PATH` for each library of CUDA's, cuDNN's, NCCL's or the driver's in it, once for a directory.
seen=:
has() {
  case $seen in *":$1:"*) return 0 ;; esac
  seen=$seen$1:
  set +f
  for library in "$1"/lib*.so.[0-9]*; do
    case ${library##*/} in
      libcuda.so.1 | libnvidia-ml.so.1 | libcudart.so.* | libcudnn.so.* | libcublas.so.* | libnccl.so.*)
        if [ -e "$library" ]; then echo "has $library"; fi ;;
    esac
  done
  set -f
}
