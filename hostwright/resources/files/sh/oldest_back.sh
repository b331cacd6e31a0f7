# oldest_back PATH: puts the oldest PATH.before-hostwright.* back to PATH where nothing is there now.
oldest_back() {
  # shellcheck disable=SC2012  # by their times; the names are ours but for PATH, which find could not quote either
  old=$(ls -1dtrc -- "$1".before-hostwright.* 2>/dev/null | head -n 1)
  if [ -n "$old" ] && [ ! -e "$1" ] && [ ! -L "$1" ]; then mv -T -- "$old" "$1"; fi
}
