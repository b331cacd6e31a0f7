# Has the CDI specification written anew, now and at each boot. Nothing else makes /dev/nvidia-uvm before the first program
# that uses CUDA, and what is not there when the specification is written is not in it.
: "${unit:?}"
nvidia-modprobe -u -c 0 2>/dev/null || true  # without the program or its module, the specification leaves the file out
systemctl enable -q -- "$unit"
systemctl reset-failed -- "$unit" 2>/dev/null || true  # one that is not loaded has not failed
case $(timeout -k 1 20 nvidia-smi -L 2>/dev/null) in
  'GPU '*) ;;
  *) echo "hostwright: note: nvidia-smi lists no GPU: $unit has nothing to write"; exit 0 ;;
esac
systemctl restart -- "$unit" || { journalctl -u "$unit" -n 30 --no-pager; exit 1; }
