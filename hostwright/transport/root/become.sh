# Runs $program as root, with sudo where the user is not root. $start drops what sudo did not take of the password and
# begins a shell; where $use_password is empty, sudo is expected to ask for none. Exit status 77, and a line with the
# reason on standard error, where the user cannot become root. The user's own PATH counts no more, nor functions that
# their shell exported: sudo is the one that $find_sudo, a command, finds, or the one that is $named in the inventory.
: "${program:?}"
: "${start:?}"
: "${clean:?}"
: "${find_sudo:?}"
: "${search:?}"
: "${named?}"
: "${use_password?}"
: "${password?}"
PATH=$search
# Not in dash, which hands no functions on, and finds no program any more whose name it was to forget.
[ -z "${BASH_VERSION-}" ] || unset -f id find tr printf command
refuse() { printf '%s %s\n' hostwright-become "$(printf %s "$1" | tr '\n' ' ')" >&2; exit 77; }
run_as_root() {
    if [ "$(id -u)" = 0 ]; then printf '%s\n' "$program" | eval "$clean /bin/sh"; return; fi
    [ "$(command -v printf)" = printf ] || refuse 'printf is not built in'
    sudo=; eval "$find_sudo"
    if [ -z "$sudo" ]; then
        [ -z "$named" ] || refuse "no trusted sudo at $named"
        command -v sudo >/dev/null || refuse 'no sudo'
        refuse 'no trusted sudo'
    fi
    if [ -z "$use_password" ]; then
        answer=$("$sudo" -n /bin/sh -c : 2>&1 </dev/null) || refuse "$answer"
        printf 'hostwright-begin\n%s\n' "$program" | "$sudo" -n /bin/sh -c "$start"
    else
        answer=$(printf '%s\n' "$password" | "$sudo" -k -S -p '' /bin/sh -c : 2>&1) || refuse "$answer"
        printf '%s\nhostwright-begin\n%s\n' "$password" "$program" | "$sudo" -k -S -p '' /bin/sh -c "$start"
    fi
}
run_as_root; exit
