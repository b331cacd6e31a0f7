# note PACKAGE...: what is not there now is about to be installed by us, and what is there for another package's sake
# stays from now on because we name it: its name is added to the file $installed. Where that is missing, an earlier
# release of Hostwright may have installed others, and none is written. Needs automatic.sh.
: "${installed:?}"
note() {
  [ -e "$installed" ] || return 0
  automatic=$(automatic)
  {
    cat "$installed"
    for name; do
      if dpkg-query -W -f='${db:Status-Status}\n' "$name" 2>/dev/null | grep -qx installed; then
        printf '%s\n' "$automatic" | grep -xF -- "$name" || :
      else
        printf '%s\n' "$name"
      fi
    done
  } | sort -u >"$installed.new"
  sync "$installed.new"
  mv -f "$installed.new" "$installed"
}
