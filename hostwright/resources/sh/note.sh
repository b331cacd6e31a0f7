# note PACKAGE...: what is not there now is about to be installed by us; its name is added to the file $installed. Where
# that is missing, an earlier release of Hostwright may have installed others, and none is written.
: "${installed:?}"
note() {
  [ -e "$installed" ] || return 0
  {
    cat "$installed"
    for name; do
      dpkg-query -W -f='${db:Status-Status}\n' "$name" 2>/dev/null | grep -qx installed || printf '%s\n' "$name"
    done
  } | sort -u >"$installed.new"
  sync "$installed.new"
  mv -f "$installed.new" "$installed"
}
