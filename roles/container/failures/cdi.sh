# `missing SPEC PATH` for each file of the host that a CDI specification of NVIDIA's names and that is not there, the
# first few of each. Hosts without specifications cost no process.
: "${most:?}"
for spec in /etc/cdi/*.yaml /etc/cdi/*.json /var/run/cdi/*.yaml /var/run/cdi/*.json; do
  if [ ! -f "$spec" ] || ! grep -qE '^.{0,9}kind"?: *["'\'']?nvidia[.]com/' "$spec"; then continue; fi
  head -c 1048576 "$spec" | grep -oE 'hostPath"?: *["'\'']?/[^"'\'' ,]+' | sed 's/^[^/]*//' | sort -u | {
    left=$most
    while read -r path; do
      if [ "$left" -gt 0 ] && [ ! -e "$path" ]; then echo "missing $spec $path"; left=$((left - 1)); fi
    done
  }
done
exit 0
