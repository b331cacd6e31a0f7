# tell: ends with the status of the command before it, after the last lines of the installer's log and DKMS's.
# The compiler's own words come last, since the last lines are those that an operator is shown. Not every log that
# failed has a compiler's error in it: a grep that finds none is no error of its own.
: "${version:?}"
: "${installer_log:?}"
tell() {
  status=$?
  for log in "$installer_log" "/var/lib/dkms/nvidia/$version/build/make.log"; do
    [ -s "$log" ] || continue
    echo "--- $log"
    tail -n 20 "$log"
    grep -E -m 10 ' error: |: error|^ERROR: modpost' "$log" || true
  done
  exit "$status"
}
