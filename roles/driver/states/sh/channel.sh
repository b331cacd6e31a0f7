# Makes the device file of a channel, as NVIDIA's CUDA programming guide says.
: "${channel:?}"
major=$(sed -n 's/^ *\([0-9]*\) nvidia-caps-imex-channels$/\1/p' /proc/devices)
[ -n "$major" ] || { echo "hostwright: the driver has no IMEX channels (/proc/devices)" >&2; exit 1; }
mkdir -p "${channel%/*}"
[ -c "$channel" ] || mknod -m 666 "$channel" c "$major" 0
