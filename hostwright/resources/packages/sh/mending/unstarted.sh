# configured: configures what dpkg left; what fails then is configured without its services, since a package whose
# service cannot start for a file that a later role writes would keep apt from all that comes before that file. It says
# which of these services do not start afterwards. A policy of the host's own is not touched.
# The policy forbids only those who carry the variable to start services: left by a kill, it forbids nothing and removes
# itself when a package asks it.
# shellcheck disable=SC2016  # the policy expands them
: "${patiently:?}"
policy=/usr/sbin/policy-rc.d
own='# Hostwright: while it configures packages whose services do not start'
configure() {
  sh -c "$patiently" patiently dpkg --configure -a --force-confdef --force-confold ${lost:+--force-confmiss}
}
configured() {
  configure && return 0
  grep -qsxF "$own" "$policy" || { [ ! -e "$policy" ] && [ ! -L "$policy" ]; } || return 1
  asked=$(mktemp)
  (
    trap 'rm -f -- "$policy"' EXIT
    printf '%s\n' '#!/bin/sh' "$own" '[ -n "$HOSTWRIGHT_ASKED" ] || { rm -f -- "$0"; exit 0; }' \
      'case $2 in start | restart | try-restart) echo "$2 ${1%.service}" >>"$HOSTWRIGHT_ASKED" ;; esac' 'exit 101' >"$policy"
    chmod 755 "$policy"
    export HOSTWRIGHT_ASKED="$asked"
    configure
  ) && status=0 || status=$?
  sort -u "$asked" | while read -r action unit; do
    systemctl is-enabled --quiet -- "$unit" 2>/dev/null || continue
    [ "$action" != start ] || ! systemctl is-active --quiet -- "$unit" || continue
    systemctl reset-failed -- "$unit" 2>/dev/null || true  # it had not failed
    systemctl "$action" -- "$unit" >/dev/null 2>&1 ||
      echo "hostwright: note: $unit does not start; its package was configured without it (systemctl status $unit)"
    # a later role starts it: these tries do not count then
    systemctl reset-failed -- "$unit" 2>/dev/null || true  # a unit that started and ended is no longer loaded
  done
  rm -f -- "$asked"
  return "$status"
}
