# Leaves nothing half-installed, half-configured or waiting for a trigger. Needs lists.sh, unstarted.sh and unsynced.sh.
# A package that was cut off while it was unpacked (a full disk does that) can neither be configured nor mended by
# `apt-get -f`: dpkg wants its archive again. Only packages in $removable, which the plan has shown, are removed, and of
# those that were cut off only ones that no repository has. $leaving, which roles of the host take away, go before anything
# is configured or apt is asked for anything: nobody needs a script of theirs to succeed. `looked` prints what mend_probe.sh
# says by now; $barred are preferences that keep apt from bringing them again.
# Of the packages in $unsynced, whose files were perhaps not written to the disk when the host stopped, those go the same
# way that are not what dpkg's sums say.
# `configured` may fail for a dependency that `apt-get -f` brings only then; the last line decides.
# $patiently: a program for `sh -c` that runs its arguments, and again while another process has the lock.
# shellcheck disable=SC2016,SC2086,SC2154  # dpkg's own expressions; $apt_options are words; lists.sh sets $printed
: "${patiently:?}"
: "${unsynced:?}"
: "${apt_options:?}"
: "${removable?}"
: "${leaving?}"
: "${barred?}"
may_go() { case " $leaving $removable " in *" $1 "* | *" ${1%:*} "*) ;; *) return 1 ;; esac; }
fix() {
  DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get $apt_options -f --no-install-recommends \
    ${leaving:+--ignore-hold --allow-change-held-packages -o Dir::Etc::Preferences="$work/preferences"} "$@" install
}
only_what_was_shown() {
  more=$(for other in $1; do may_go "$other" || echo "$other"; done)
  [ -z "$more" ] || { echo "hostwright: error: apt would also remove:" $more "(to mend dpkg; see the new plan)"; exit 1; }
}
removed() { sed -n 's/^\(Remv\|Purg\) \([^ ]*\).*/\2/p'; }
unfetched() {
  printf '%s\n' "$1" | sed -n 's/^[EW]: Failed to fetch /hostwright: error: apt could not fetch /p' | head -n 3
  exit 100
}
offered() { apt-get -q --print-uris download "$name=$version" >/dev/null 2>&1; }
archive() { rm -f ./*.deb; apt-get -q download "$name=$version" 2>&1; }
differs() { # a file of the package, or a configuration file that is empty
  dpkg --verify "$1" 2>/dev/null | sed 's/^[^ ]* *//' | while read -r file; do
    case $file in 'c '*) [ ! -s "${DPKG_ROOT-}${file#c }" ] || continue ;; esac
    echo "$file"
  done
}
lost() {
  ! stopped || sed 1d "$unsynced" | while read -r name; do
    case $(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null) in
      installed | unpacked | half-configured | triggers-*) [ -z "$(differs "$name")" ] || echo "$name" ;;
    esac
  done
}
fetched=''
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
chmod 755 "$work"
if [ -n "$leaving" ]; then
  { cat /etc/apt/preferences 2>/dev/null || :; printf '\n%s\n' "$barred"; } >"$work/preferences"
  only_what_was_shown "$(looked | sed -n 's/^\(Remv\|gone\|leave\) //p')"
  sh -c "$patiently" patiently dpkg --purge --force-depends --force-remove-reinstreq --force-hold $leaving
fi
lost=$(lost)
for name in $(dpkg-query -W -f='${db:Status-Eflag} ${binary:Package}\n' | sed -n 's/^reinstreq //p') $lost; do
  version=$(dpkg-query -W -f='${Version}' "$name")
  if [ -z "$fetched" ] && ! offered; then
    fetched=yes
    fetch_lists
    # Nothing at all could be fetched: that says nothing about what repositories have.
    case $printed in *Get:* | *Hit:*) ;; *) not_fetched "$name"; [ -z "$failed" ] || exit 100 ;; esac
  fi
  if offered; then
    output=$(cd "$work" && archive) || { printf '%s\n' "$output"; unfetched "$output"; }
    # dpkg would keep an empty configuration file as somebody's own
    [ -z "$lost" ] || differs "$name" | sed -n "s|^c |${DPKG_ROOT-}|p" | xargs -r -d '\n' rm -f --
    (cd "$work" && sh -c "$patiently" patiently dpkg --unpack ./*.deb)
    echo "hostwright: note: $name $version was unpacked again"
  elif may_go "$name"; then
    sh -c "$patiently" patiently dpkg --remove --force-remove-reinstreq --force-depends "$name"
    echo "hostwright: note: $name $version was removed: it was cut off while it was unpacked, and no repository has it"
  else
    echo "hostwright: error: $name $version was cut off while it was unpacked, and no repository has it: give apt its" \
      "archive, or remove it (dpkg --remove --force-remove-reinstreq $name)"
    exit 1
  fi
done
configured || true  # the last line decides
only_what_was_shown "$(fix -s | removed)"
fix || {
  fetch_lists
  notes
  fix || {
    why=$(fix -o DPkg::Lock::Timeout=0 -d 2>&1) || :
    case $why in *'E: Unable to correct dependencies'*) ;; *) unfetched "$why" ;; esac
    echo "hostwright: note: apt cannot correct this: a role that installs another version of these can"
  }
}
sh -c "$patiently" patiently dpkg --configure -a
if stopped; then synced; fi
