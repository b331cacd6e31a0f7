libraries libnvinfer /usr/local/TensorRT-[0-9]*/lib /opt/TensorRT-[0-9]*/lib /usr/local/tensorrt*/lib /opt/tensorrt*/lib \
  /usr/lib/x86_64-linux-gnu /usr/local/lib
