# Runs $program as root, with sudo where the user is not root. $start drops what sudo did not take of the password and
# begins a shell; where $use_password is empty, sudo is expected to ask for none. Exit status 77, and a line with the
# reason on standard error, where the user cannot become root.
: "${program:?}"
: "${start:?}"
: "${use_password?}"
: "${password?}"
refuse() { printf '%s %s\n' hostwright-become "$(printf %s "$1" | tr '\n' ' ')" >&2; exit 77; }
run_as_root() {
    if [ "$(id -u)" = 0 ]; then printf '%s\n' "$program" | /bin/sh; return; fi
    [ "$(command -v printf)" = printf ] || refuse 'printf is not built in'
    command -v sudo >/dev/null || refuse 'no sudo'
    if [ -z "$use_password" ]; then
        answer=$(sudo -n /bin/sh -c : 2>&1 </dev/null) || refuse "$answer"
        printf 'hostwright-begin\n%s\n' "$program" | sudo -n /bin/sh -c "$start"
    else
        answer=$(printf '%s\n' "$password" | sudo -k -S -p '' /bin/sh -c : 2>&1) || refuse "$answer"
        printf '%s\nhostwright-begin\n%s\n' "$password" "$program" | sudo -k -S -p '' /bin/sh -c "$start"
    fi
}
run_as_root; exit
