# What apt is about to do in order to install $packages is read from standard input, and refused with 1 where it would
# remove packages that are not in the list $installed of ours, change others that somebody holds, or install one whose
# name matches $guard. Packages that get another version for the sake of these are named.
# fits [UNSYNCED]: as apt's hook, with version 3 of its protocol; the names of what will be unpacked are then added to the
# list UNSYNCED, below the id of this boot, unless UNSYNCED is `-`. Without an argument, a simulation's lines are read,
# and the program ends there. Text that is added to this program runs in the hook, before dpkg.
# shellcheck disable=SC2086  # $going, $bad and $held are words
: "${packages?}"
: "${guard?}"
: "${installed:?}"
eval "set -- \"\${1-}\" $packages"
unsynced=$1; shift
asked=$*
refuse() {
  echo "hostwright: error: to install $asked, apt would" "$@"
  : >"$0.refused"
  exit 1
}
# A line each: `Inst NAME OLD NEW` or `Remv NAME`. A hook that was told of files alone (version 1) could judge nothing.
doing=$(awk -v hooked="$unsynced" '
  function named(arch) { return $1 (arch == own || arch == "all" || arch == "-" ? "" : ":" arch) }
  /^VERSION 3$/ { hook = 1; next }
  /^APT::Architecture=/ { own = substr($0, 19) }
  hook && NF == 0 { listed = 1; next }
  hook && !listed { next }
  hook { if ($9 ~ /^\//) print "Inst", named($7), $2, $6; else if ($9 == "**REMOVE**") print "Remv", named($3); next }
  $1 == "Remv" { print "Remv", $2 }
  $1 == "Inst" {
    old = "-"; at = 3
    if ($3 ~ /^\[/) { old = $3; gsub(/[][]/, "", old); at = 4 }
    print "Inst", $2, old, substr($at, 2)
  }
  END { exit (hooked != "" && !hook) }')
going=$(printf '%s\n' "$doing" | sed -n 's/^Remv //p' | grep -vxF -e "$(cat "$installed" 2>/dev/null)" || true)
[ -z "$going" ] || refuse remove $going
moved=$(printf '%s\n' "$doing" | while read -r what name old new; do
  if [ "$what" != Inst ] || [ "$old" = - ] || [ "$old" = "$new" ]; then continue; fi
  for word; do [ "${word%%=*}" != "$name" ] || continue 2; done
  echo "$name $old → $new"
done)
if [ -n "$moved" ]; then
  held=$(apt-mark showhold | grep -vxF -e "$(cat "$installed" 2>/dev/null)" || true)
  held=$(printf '%s\n' "$moved" | while read -r name rest; do
    if printf '%s\n' "$held" | grep -qxF -e "$name"; then echo "$name ($rest)"; fi
  done)
  [ -z "$held" ] ||
    refuse "change packages that are on hold on this host (apt-mark unhold NAME on the host lets them change):" $held
  printf '%s\n' "$moved" | sed 's/^/hostwright: note: installed with them, as they need it: /'
fi
names=$(printf '%s\n' "$doing" | sed -n 's/^Inst \([^ ]*\) .*/\1/p' | sort -u)
bad=''
[ -z "$guard" ] || bad=$(printf '%s\n' "$names" | grep -E -e "$guard" || true)
if [ -n "$bad" ]; then echo "hostwright: apt would also install:" $bad; : >"$0.refused"; exit 1; fi
[ -n "$unsynced" ] || exit 0
if [ "$unsynced" != - ]; then
  read -r boot </proc/sys/kernel/random/boot_id
  {
    sed 1d "$unsynced" 2>/dev/null || true # most often there is none
    printf '%s\n' "$names"
  } | sort -u | sed "1i $boot" >"$unsynced.new"
  sync "$unsynced.new"
  mv -f "$unsynced.new" "$unsynced"
  sync "${unsynced%/*}"
fi
