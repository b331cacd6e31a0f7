
# --- what is said, and where ------------------------------------------------------------------------------------------

open_log() {
    if ! : 2>/dev/null >"$log_file"; then
        echo "nvidia-installer: Error opening log file '$log_file' for writing; disabling logging." >&2
        log_file=/dev/null
    fi
    {
        echo "nvidia-installer log file '$log_file'"
        echo "creation time: $(date '+%a %b %e %H:%M:%S %Y')"
        echo "installer version: $VERSION"
        echo "(hostwright stand-in)"
        printf '\nPATH: %s\n\nnvidia-installer command line:\n' "$PATH"
        for word in "$PROGRAM" "$@"; do echo "    $word"; done
        echo
    } >>"$log_file"
}

log() { printf -- '-> %s\n' "$1" >>"$log_file"; }

tell() { # MESSAGE: shown unless silent
    log "$1"
    [ -n "$silent" ] || printf '\n%s\n\n' "$1" | fold -s -w 75
}

warn() {
    printf 'WARNING: %s\n' "$1" >>"$log_file"
    [ -n "$silent" ] || printf '\nWARNING: %s\n\n' "$1" | fold -s -w 75 >&2
}

error() { # MESSAGE: shown always
    printf 'ERROR: %s\n' "$1" >>"$log_file"
    printf '\nERROR: %s\n\n' "$1" | fold -s -w 75 >&2
}

give_up() {
    error "Installation has failed.  Please see the file '$log_file' for details.  You may find suggestions on fixing installation problems in the README available on the Linux driver download page at www.nvidia.com."
    exit 1
}

# A step that failed without an error of its own was cancelled by the default answer to a question.
cancelled() {
    log "Installation aborted."
    exit 1
}

run() { # COMMAND…: its output goes to $output
    output=$("$@" 2>&1)
}
