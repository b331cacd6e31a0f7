# tell: prints the last lines of the installer's log and DKMS's, and exits with the status of the preceding command.
# The compiler's messages come last, since an operator is shown the last lines. Not every failed log contains a compiler
# error: a grep that finds none is not an error. Needs `cannot_load`.
: "${version:?}"
: "${installer_log:?}"
tell() {
  status=$?
  for log in "$installer_log" "/var/lib/dkms/nvidia/$version/build/make.log"; do
    [ -s "$log" ] || continue
    echo "--- $log"
    tail -n 20 "$log"
    grep -E -m 10 ' error: |: error|^ERROR: modpost' "$log" || true  # a log may lack such a line
  done
  [ ! -s "$installer_log" ] || cannot_load <"$installer_log"
  exit "$status"
}
