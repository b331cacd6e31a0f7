# newer FILE...: those of the files that changed after the unit was last started or reloaded; nothing where it does not
# run. A file from the future does not count: no reload could make it older.
: "${object:?}"
newer() {
  bus=org.freedesktop.systemd1
  case $(busctl get-property "$bus" "$object" "$bus.Service" MainPID) in '' | 'u 0') return 0 ;; esac
  changed_state=$(busctl get-property "$bus" "$object" "$bus.Unit" StateChangeTimestamp) || return 0
  stat -L -c '%.6Y %n' -- "$@" 2>/dev/null | while read -r changed path; do
    changed=${changed%.*}${changed#*.}
    if [ "$changed" -gt "${changed_state##* }" ] && [ "$changed" -le "$(date +%s%6N)" ]; then echo "$path"; fi
  done
}
