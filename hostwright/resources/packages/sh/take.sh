# take VERB PACKAGE...: of these packages those that are still there go, and nothing else. Whoever brings one later is
# not us, so that they are struck from the lists $brought and $installed. VERB: purge or remove. Needs along.sh.
# $patiently: a program for `sh -c` that runs its arguments, and again while another process has the lock.
# shellcheck disable=SC2016,SC2086  # dpkg's own expressions; $apt_options, $no_lists and $names are words
: "${apt_options:?}"
: "${no_lists:?}"
: "${patiently:?}"
: "${brought:?}"
: "${installed:?}"
forget() {
  for list in "$brought" "$installed"; do
    [ -e "$list" ] || continue
    printf '%s\n' "$@" | awk 'NR == FNR { gone[$1]; next } !($NF in gone)' - "$list" >"$list.new"
    mv -f "$list.new" "$list"
  done
}
# Directories of these packages at whose place somebody put a link, such as /usr/local: dpkg removes the link with the
# last package that has files there. Each with its target, after a tab.
linked() {
  dpkg-query -L "$@" 2>/dev/null | sed -n 's,/[^/]*$,,p' | sort -u | while read -r path; do
    if [ -L "$path" ] && [ -d "$path" ]; then printf '%s\t%s\n' "$path" "$(readlink -- "$path")"; fi
  done
}
link_again() {
  printf '%s\n' "$1" | while IFS=$(printf '\t') read -r path to; do
    if [ -n "$to" ] && [ ! -e "$path" ] && [ ! -L "$path" ]; then ln -s -- "$to" "$path"; fi
  done
}
take() {
  verb=$1; shift
  names=$(dpkg-query -W -f='${db:Status-Status} ${binary:Package}\n' "$@" 2>/dev/null |
    sed -n '/^not-installed /!s/^[^ ]* //p' | named)
  [ -n "$names" ] || { forget "$@"; return 0; }
  if ! also=$(along "$verb" $names); then
    echo "hostwright: error: apt cannot say what else it would remove with" $names "(${also:-no reason given}), so that" \
      "nothing was removed: run apt-get -s $verb" $names "on the host, fix what it reports, and provision again"
    exit 1
  fi
  if [ -n "$also" ]; then
    echo "hostwright: error: apt would also remove, which the plan did not show:" $also
    exit 1
  fi
  sh -c "$patiently" patiently apt-mark unhold $names
  links=$(linked $names)
  status=0
  DEBIAN_FRONTEND=noninteractive apt-get $apt_options $no_lists --allow-change-held-packages "$verb" $names || status=$?
  link_again "$links"
  [ "$status" -eq 0 ] || exit "$status"
  # Packages that hold no library but a name of one (libc6-dev) leave that in the loader's cache.
  ldconfig
  forget "$@"
}
