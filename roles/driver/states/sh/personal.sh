# personal NAME VERB UNIT: systemctl as this account, for the units of its own systemd.
personal() {
  XDG_RUNTIME_DIR=/run/user/$(id -u -- "$1") timeout 60 runuser -u "$1" -- systemctl --user "$2" -- "$3" </dev/null
}
