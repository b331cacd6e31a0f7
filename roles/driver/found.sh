first_line loaded /sys/module/nvidia/version
first_line kernel /proc/driver/nvidia/version
for file in /usr/lib/x86_64-linux-gnu/libcuda.so.[0-9]*.* /usr/lib/x86_64-linux-gnu/nvidia/libcuda.so.[0-9]*.* \
  /usr/lib/x86_64-linux-gnu/nvidia/*/libcuda.so.[0-9]*.* /usr/lib64/libcuda.so.[0-9]*.*; do
  [ ! -f "$file" ] || row library "${file##*/libcuda.so.}"
done
for file in /usr/bin/nvidia-installer /usr/bin/nvidia-uninstall; do [ ! -e "$file" ] || row installer "$file"; done
