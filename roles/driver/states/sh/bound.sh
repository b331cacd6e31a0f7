# bound UNIT…: the active services, sockets and timers that systemd stops along with these units, since they require them or
# are part of them.
bound() {
  found=
  while [ $# -gt 0 ]; do
    requiring=$(systemctl show --value -p RequiredBy -p RequisiteOf -p BoundBy -p ConsistsOf -- "$@") || requiring=
    set --
    for unit in $requiring; do
      case " $found " in *" $unit "*) continue ;; esac
      case $unit in *.service | *.socket | *.timer) ;; *) continue ;; esac
      if systemctl -q is-active "$unit"; then found="$found $unit" && set -- "$@" "$unit"; fi
    done
  done
  for unit in $found; do echo "$unit"; done
}
