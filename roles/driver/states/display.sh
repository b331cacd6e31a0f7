# A display manager's unit, and `X server PID` for X servers whose lock names a live process: nvidia-installer looks for
# the same. systemd is asked only where there is such a unit. Everybody may put things into /tmp: a pipe or a link there is
# not read, and only a process that runs an X server of root's counts.
unit=display-manager.service
for place in /etc /run /usr/lib /lib; do
  [ -L "$place/systemd/system/$unit" ] || [ -e "$place/systemd/system/$unit" ] || continue
  systemctl -q is-active "$unit" && systemctl show -p Id --value "$unit"
  break
done
for lock in /tmp/.X[0-9]-lock /tmp/.X[0-9][0-9]-lock; do
  [ -f "$lock" ] && [ ! -L "$lock" ] || continue
  process=$(dd if="$lock" iflag=nofollow,nonblock bs=32 count=1 | tr -d ' \000\n')
  case $process in '' | *[!0-9]*) continue ;; esac
  program=$(readlink "/proc/$process/exe")
  case ${program##*/} in X* | nx*) ;; *) continue ;; esac
  # shellcheck disable=SC3067  # every sh of a distribution has it
  if [ -O "/proc/$process/exe" ]; then echo "X server $process"; fi
done
:
