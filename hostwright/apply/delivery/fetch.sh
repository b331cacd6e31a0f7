# The host fetches one file for itself: from the first of $urls that gives it, into $folder/$file.part first, and under
# its name once it has the sum. It can be run again after any interruption: what has arrived is continued.
: "${folder:?}"
: "${file:?}"
: "${sum:?}"
: "${urls:?}"
set -eu; umask 022; mkdir -p "$folder"; cd "$folder"; file=./$file part=$file.part
eval "set -- $urls"
if [ -f "$file" ] && found=$(sha256sum <"$file") && [ "${found%% *}" = "$sum" ]; then exit 0; fi
rm -f -- "$file"
get() {
    if command -v curl >/dev/null; then
        curl --fail --location --silent --show-error --retry 3 --connect-timeout 15 --speed-limit 1024 \
            --speed-time 60 --continue-at - --output "$part" --url "$1"
    elif command -v wget >/dev/null; then
        wget --no-verbose --continue --tries=3 --timeout=60 --output-document="$part" -- "$1"
    else
        echo 'neither curl nor wget is installed' >&2
        exit 1
    fi
}
right() { [ -f "$part" ] && found=$(sha256sum <"$part") && [ "${found%% *}" = "$sum" ]; }
# Exit statuses after which a part cannot be continued: done but wrong, 416, no ranges; and those of curl's after which
# it can: cut off, too slow, no answer, sending and receiving failed.
for url; do
    # shellcheck disable=SC2034
    for try in 1 2 3; do
        status=0
        get "$url" || status=$?
        if right; then break 2; fi
        case $status in
            0 | 8 | 22 | 33 | 36) rm -f -- "$part" ;;
            18 | 28 | 52 | 55 | 56) ;;
            *) break ;;
        esac
    done
done
if ! right; then
    echo "none of the URLs gave $file with the sha256 $sum" >&2
    exit 1
fi
chmod 0644 -- "$part"
sync -- "$part"
mv -f -- "$part" "$file"
sync .
