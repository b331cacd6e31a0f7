# What systemd reads of $units: "unit NAME FILE" for each file of theirs in /etc, with "of FILE" after it where the file covers
# the package's; "gone NAME PATH FILE" of each file that one needs to start (EnvironmentFile=, the program of ExecStart=) and
# that is not there, with the files that name it; and "replaced NAME PATH" where a unit runs from a program that was
# replaced on the disk since.
: "${units:?}"
eval "set -- $units"
for unit; do
  shown=$(systemctl show -p FragmentPath -p DropInPaths -p EnvironmentFiles -p ExecStart -p MainPID -- "$unit")
  files=$(printf '%s\n' "$shown" | sed -nE 's/^(FragmentPath|DropInPaths)=//p')
  for file in $files; do
    case $file in /etc/systemd/system/*) ;; *) continue ;; esac
    below=
    for place in /lib/systemd/system /usr/lib/systemd/system; do
      if [ "$file" = "/etc/systemd/system/$unit" ] && [ -f "$place/$unit" ]; then below=" of $place/$unit"; fi
    done
    echo "unit $unit $file$below"
  done
  printf '%s\n' "$shown" | sed -nE 's/^EnvironmentFiles=(\/[^ *?]+) \(ignore_errors=no\)$/\1/p; s/^ExecStart=\{ path=(\/[^ ;]+) ;.*/\1/p' |
    while read -r path; do
      # shellcheck disable=SC2086 # a name each
      if [ ! -e "$path" ]; then echo "gone $unit $path $(grep -lsF -- "$path" $files | tr '\n' ' ')"; fi
    done
  main=$(printf '%s\n' "$shown" | sed -n 's/^MainPID=//p')
  program=$(readlink "/proc/${main:-0}/exe") || continue
  case $program in /*' (deleted)') echo "replaced $unit ${program% (deleted)}" ;; esac
done
exit 0
