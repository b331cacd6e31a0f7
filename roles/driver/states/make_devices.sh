# Has nvidia-modprobe make the driver's device files, as NVIDIA's own programs do: it takes their mode from the module. It
# fails without a word: what is missing afterwards is seen by the next plan.
make_devices() {
  set -- -c 255
  for card in /proc/driver/nvidia/gpus/*/information; do
    [ -e "$card" ] || continue
    while read -r key field minor; do
      case $key-$field-$minor in Device-Minor:-[0-9]*) set -- "$@" -c "$minor" ;; esac
    done <"$card"
  done
  nvidia-modprobe "$@"
  if [ -d /sys/module/nvidia_uvm ]; then nvidia-modprobe -u -c 0; fi
  if [ -d /sys/module/nvidia_modeset ]; then nvidia-modprobe -m; fi
  for access in /proc/driver/nvidia/capabilities/gpu*/mig/gi*/access /proc/driver/nvidia/capabilities/gpu*/mig/gi*/ci*/access; do
    if [ -e "$access" ]; then nvidia-modprobe -f "$access"; fi
  done
}
if command -v nvidia-modprobe >/dev/null; then make_devices || true; fi
