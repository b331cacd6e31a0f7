# TERM, ten seconds to end, KILL: a training job writes its checkpoint on TERM. Most hosts have no display manager to
# stop, and a process may end before its signal arrives: neither is an error, and the `holders` are read again. Nothing
# starts them again, so that each is named.
systemctl stop display-manager 2>/dev/null || true  # there is none
signal() { for p in $(holders); do kill "-$1" "$p" 2>/dev/null || true; done; }  # it has ended meanwhile
for p in $(holders); do
  read -r name 2>/dev/null <"/proc/$p/comm" || continue
  service "$p"
  # shellcheck disable=SC2154  # of holders.sh
  case $person in
    -) whose='' ;;
    */-) whose=" of ${person%/*}" ;;
    *) whose=" of ${person#*/} of ${person%/*}" ;;
  esac
  echo "hostwright: note: $name ($p)$whose used the driver and was ended: nothing here starts it again"
done
signal TERM
n=0; while [ -n "$(holders)" ] && [ "$n" -lt 100 ]; do n=$((n + 1)); sleep 0.1; done
signal KILL
