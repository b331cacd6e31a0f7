# holders: the processes that hold a device file of NVIDIA's open.
holders() { find /proc/[0-9]*/fd -lname '/dev/nvidia*' 2>/dev/null | cut -d/ -f3 | sort -un; }
