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
[ -z "${BASH_VERSION-}" ] || unset -f id find tr printf command read
refuse() { printf '%s %s\n' hostwright-become "$(printf %s "$1" | tr '\n' ' ')" >&2; exit 77; }
# The effective user id of this shell, which `id` would tell for a process more.
user_id() {
    uid=
    while read -r field _ uid _; do [ "$field" != Uid: ] || break; uid=; done 2>/dev/null </proc/self/status
    [ -n "$uid" ] || uid=$(id -u)
}
run_as_root() {
    if ! { [ -c /dev/null ] && [ -w /dev/null ]; }; then refuse 'no null device'; fi
    user_id
    if [ "$uid" = 0 ]; then printf '%s\n' "$program" | eval "$clean /bin/sh"; return; fi
    sudo=; eval "$find_sudo"
    if [ -z "$sudo" ]; then
        [ -z "$named" ] || refuse "no trusted sudo at $named"
        command -v sudo >/dev/null || refuse 'no sudo'
        refuse 'no trusted sudo'
    fi
    if [ -z "$use_password" ]; then
        printf 'hostwright-begin\n%s\n' "$program" | "$sudo" -n /bin/sh -c "$start"; status=$?
        # sudo ends with 1 where it refuses. So may the program: then sudo is asked once more, for nothing.
        [ "$status" = 1 ] || return "$status"
        answer=$("$sudo" -n /bin/sh -c : 2>&1 </dev/null) || refuse "$answer"
        return 1
    fi
    [ "$(command -v printf)" = printf ] || refuse 'printf is not built in'
    answer=$(printf '%s\n' "$password" | "$sudo" -k -S -p '' /bin/sh -c : 2>&1) || refuse "$answer"
    printf '%s\nhostwright-begin\n%s\n' "$password" "$program" | "$sudo" -k -S -p '' /bin/sh -c "$start"
}
run_as_root; exit
