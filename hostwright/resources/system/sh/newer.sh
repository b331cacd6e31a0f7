# newer FILE...: those of the files that changed after the unit's process began; nothing when it does not run. $object
# is the unit's object on systemd's bus, which gives the time in µs on every systemd (`systemctl show --timestamp=us` is
# younger than Ubuntu 20.04's).
# A file from the future, written before the clock was set, does not count: no restart could make it older.
: "${object:?}"
newer() {
  bus=org.freedesktop.systemd1
  began=$(busctl get-property "$bus" "$object" "$bus.Service" MainPID ExecMainStartTimestamp) || return 0
  case $began in "u 0"*) return 0 ;; esac
  stat -L -c '%.6Y %n' -- "$@" 2>/dev/null | while read -r changed path; do
    changed=${changed%.*}${changed#*.}
    if [ "$changed" -gt "${began##* }" ] && [ "$changed" -le "$(date +%s%6N)" ]; then echo "$path"; fi
  done
}
