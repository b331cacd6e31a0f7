
# --- files, and the record by which they are removed again --------------------------------------------------------------
# The record is NVIDIA's: two lines of title, then per entry "0: link" + its target, "1: file" + its checksum, or
# "<number from 100>: file" + checksum, mode, owner and group of a file that was in the way and is kept beside the record.

RECORD=/var/lib/nvidia/log
DIRECTORIES=/var/lib/nvidia/dirs

installed_version() { [ ! -r "$RECORD" ] || head -n 1 "$RECORD"; }
checksum() { cksum <"$1" | cut -d' ' -f1; }

begin_record() {
    mkdir -p /var/lib/nvidia && chmod 711 /var/lib/nvidia
    printf '%s\n%s\n' "$VERSION" "$DESCRIPTION" >"$RECORD"
    : >"$DIRECTORIES"
}

make_directory() {
    [ ! -d "$1" ] || return 0
    make_directory "$(dirname "$1")" || return 1
    mkdir "$1" && echo "$1" >>"$DIRECTORIES"
}

keep_former() {
    [ -e "$1" ] || [ -L "$1" ] || return 0
    if [ -L "$1" ]; then
        printf '2: %s\n%s\n%s\n' "$1" "$(readlink "$1")" "$(stat -c '%a %u %g' "$1")" >>"$RECORD"
        rm "$1"
        return
    fi
    number=100
    while [ -e /var/lib/nvidia/$number ]; do number=$((number + 1)); done
    printf '%s: %s\n%s %s\n' $number "$1" "$(checksum "$1")" "$(stat -c '%a %u %g' "$1")" >>"$RECORD"
    mv "$1" /var/lib/nvidia/$number
}

put_file() { # MODE SOURCE TARGET
    make_directory "$(dirname "$3")" && keep_former "$3" && cp "$2" "$3" && chmod "$1" "$3" || return 1
    printf '1: %s\n%s\n' "$3" "$(checksum "$3")" >>"$RECORD"
}

put_link() { # TARGET LINK
    make_directory "$(dirname "$2")" && keep_former "$2" && ln -s "$1" "$2" || return 1
    printf '0: %s\n%s\n' "$2" "$1" >>"$RECORD"
}

# .manifest of the archive: "file MODE SOURCE TARGET" or "link TARGET LINK" a line.
install_files() {
    log "Installing '$DESCRIPTION' ($VERSION):"
    fill_dkms_conf kernel/dkms.conf kernel/dkms.conf.filled
    while read -r kind first second third; do
        case $kind in
        file) put_file "$first" "$second" "$third" ;;
        link) put_link "$first" "$second" ;;
        esac || return 1
    done <.manifest
    log "done."
}

refresh_caches() {
    log "Running depmod and ldconfig:"
    [ -n "$skip_depmod" ] || depmod -a "$(kernel)" >>"$log_file" 2>&1
    ldconfig
    if [ -d /run/systemd/system ]; then systemctl daemon-reload >>"$log_file" 2>&1; fi
    log "done."
}

# Calls COMMAND KIND PATH DETAIL for each entry of the record.
each_entry() {
    tail -n +3 "$RECORD" | while IFS= read -r line; do
        IFS= read -r detail
        kind=${line%%: *}
        if [ "$kind" = 2 ]; then IFS= read -r _mode; fi
        "$1" "$kind" "${line#*: }" "$detail"
    done
}

remove_entry() {
    case $1 in
    0) [ "$(readlink "$2")" != "$3" ] || rm -f "$2" ;;
    1) rm -f "$2" ;;
    esac
}

restore_entry() {
    case $1 in
    0 | 1) ;;
    2) ln -s "$3" "$2" ;;
    *) mv "/var/lib/nvidia/$1" "$2" ;;
    esac
}

check_entry() {
    case $1 in
    0)
        if [ ! -L "$2" ]; then
            error "The installed symbolic link '$2' no longer exists."
        elif [ "$(readlink "$2")" != "$3" ]; then
            error "The installed symbolic link '$2' has target '$(readlink "$2")', but it was installed with target '$3'."
        fi ;;
    1)
        if [ ! -e "$2" ]; then
            error "The installed file '$2' no longer exists."
        elif [ "$(checksum "$2")" != "$3" ]; then
            error "The installed file '$2' has a different checksum ($(checksum "$2")) than when it was installed ($3)."
        fi ;;
    esac
}

do_uninstall() {
    former=$(installed_version)
    log "Uninstalling $DESCRIPTION ($former):"
    if command -v dkms >/dev/null && [ -n "$(dkms status -m nvidia -v "$former" 2>/dev/null)" ]; then
        log "DKMS module detected; removing..."
        run_dkms remove -m nvidia -v "$former" --all || warn "Failed to remove installed DKMS module!"
    fi
    each_entry remove_entry
    each_entry restore_entry
    sort -r "$DIRECTORIES" | while IFS= read -r directory; do
        rmdir "$directory" 2>/dev/null || log "Failed to delete the directory '$directory'."
    done
    rm -rf /var/lib/nvidia
    [ -n "$keep_loaded" ] || unload_quietly
    refresh_caches
}

# As NVIDIA's: the installed uninstaller does it where there is one, else the record.
remove_existing_driver() {
    [ -n "$(installed_version)" ] || return 0
    log "Uninstalling the previous installation with $(command -v nvidia-uninstall)."
    if ! run nvidia-uninstall -s --log-file-name=/var/log/nvidia-uninstall.log; then
        log "nvidia-uninstall failed; see /var/log/nvidia-uninstall.log for more details."
        do_uninstall
    fi
}
