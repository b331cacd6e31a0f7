# Leaves nothing half-installed, half-configured or waiting for a trigger. Needs lists.sh.
# A package that was cut off while it was unpacked (a full disk does that) can neither be configured nor mended by
# `apt-get -f`: dpkg wants its archive again. Only packages in $removable, which the plan has shown, are removed, and of
# those that were cut off only ones that no repository has. $leaving, which roles of the host take away, go before anything
# is configured: nobody needs a script of theirs to succeed.
# The first `--configure -a` may fail for a dependency that `apt-get -f` brings only then; the last one decides.
# $patiently: a program for `sh -c` that runs its arguments, and again while another process has the lock.
# shellcheck disable=SC2016,SC2086,SC2154  # dpkg's own expressions; $apt_options are words; lists.sh sets $printed
: "${patiently:?}"
: "${apt_options:?}"
: "${removable?}"
: "${leaving?}"
leaves() { case " $leaving " in *" $1 "* | *" ${1%:*} "*) ;; *) return 1 ;; esac; }
may_go() { leaves "$1" || case " $removable " in *" $1 "* | *" ${1%:*} "*) ;; *) return 1 ;; esac; }
mended() { DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get $apt_options -f --no-install-recommends "$@"; }
fix() { mended "$@" install; }
purge() { mended --allow-change-held-packages "$@" purge $leaving; }
only_what_was_shown() {
  for name in $1; do
    may_go "$name" || { echo "hostwright: error: apt would also remove:" $1 "(to mend dpkg; see the new plan)"; exit 1; }
  done
}
removed() { sed -n 's/^\(Remv\|Purg\) \([^ ]*\).*/\2/p'; }
unfetched() {
  printf '%s\n' "$1" | sed -n 's/^[EW]: Failed to fetch /hostwright: error: apt could not fetch /p' | head -n 3
  exit 100
}
offered() { apt-get -q --print-uris download "$name=$version" >/dev/null 2>&1; }
archive() { rm -f ./*.deb; apt-get -q download "$name=$version" 2>&1; }
fetched=''
work=$(mktemp -d)
chmod 755 "$work"
for name in $(dpkg-query -W -f='${db:Status-Eflag} ${binary:Package}\n' | sed -n 's/^reinstreq //p'); do
  version=$(dpkg-query -W -f='${Version}' "$name")
  if leaves "$name"; then
    sh -c "$patiently" patiently dpkg --remove --force-remove-reinstreq --force-depends "$name"
    continue
  fi
  if [ -z "$fetched" ] && ! offered; then
    fetched=yes
    fetch_lists
    # Nothing at all could be fetched: that says nothing about what repositories have.
    case $printed in *Get:* | *Hit:*) ;; *) not_fetched "$name"; [ -z "$failed" ] || exit 100 ;; esac
  fi
  if offered; then
    output=$(cd "$work" && archive) || { printf '%s\n' "$output"; unfetched "$output"; }
    (cd "$work" && sh -c "$patiently" patiently dpkg --unpack ./*.deb)
  elif may_go "$name"; then
    sh -c "$patiently" patiently dpkg --remove --force-remove-reinstreq --force-depends "$name"
  else
    echo "hostwright: error: $name $version was cut off while it was unpacked, and no repository has it: give apt its" \
      "archive, or remove it (dpkg --remove --force-remove-reinstreq $name)"
    exit 1
  fi
done
rm -rf "$work"
if [ -n "$leaving" ]; then
  sh -c "$patiently" patiently dpkg --set-selections </dev/null  # folds in a journal, beside which apt would not work
  # apt purges nothing while something else lacks a package: that comes first, whatever cannot be configured beside it.
  purge -s >/dev/null 2>&1 || {
    only_what_was_shown "$(fix -s | removed)"
    fix || { fetch_lists; fix; } || true  # what it could not mend goes with the purge, or fails the last line
  }
  only_what_was_shown "$(purge -s | removed)"
  purge || { fetch_lists; purge || true; }  # what is left of it fails the last line
fi
sh -c "$patiently" patiently dpkg --configure -a --force-confdef --force-confold || true  # the last line decides
only_what_was_shown "$(fix -s | removed)"
fix || {
  fetch_lists
  notes
  fix || unfetched "$(fix -o DPkg::Lock::Timeout=0 -d 2>&1)"
}
sh -c "$patiently" patiently dpkg --configure -a
