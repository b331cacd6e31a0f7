# along VERB PACKAGE...: the packages that apt removes beside these, since they depend on them, a line each; it fails where
# apt cannot tell, and prints why. apt knows only what is installed ($no_lists): else it might install something in their
# place. VERB: purge or remove.
# named: names out of standard input as apt and dpkg both take them: without the host's own architecture.
# look VERB MATCHING PATTERNS KEEP: `along NAME` for each package that goes with those whose name matches one of the shell
# patterns in PATTERNS and none in KEEP, or `unknown REASON`. MATCHING is both as an expression of Perl's: a host without
# such packages is asked no more.
# shellcheck disable=SC2016,SC2086  # dpkg's own expressions; $no_lists, patterns and names are words
: "${no_lists:?}"
named() { sed "s/:$(dpkg --print-architecture)\$//" | sort -u; }
along() {
  if ! simulated=$(LC_ALL=C apt-get $no_lists -o Debug::NoLocking=true -o APT::Get::AutomaticRemove=false -q -s \
    --ignore-hold --allow-change-held-packages "$@" 2>&1); then
    printf '%s\n' "$simulated" | sed -n 's/^E: //p' | tail -n 1
    return 1
  fi
  printf '%s\n' "$simulated" | sed -n 's/^\(Inst\|Remv\|Purg\) \([^ ]*\).*/\2/p' | named |
    { grep -vxF -e "$(shift; printf '%s\n' "$@" | named)" || [ $? -eq 1 ]; }
}
look() {
  grep -qP -e "^Package: $2" /var/lib/dpkg/status || return 0
  set -f
  names=$(dpkg-query -W -f='${db:Status-Status} ${binary:Package}\n' $3 2>/dev/null |
    sed -n '/^\(not-installed\|config-files\) /!s/^[^ ]* //p' |
    grep -vxF -e "${4:+$(dpkg-query -W -f='${binary:Package}\n' $4 2>/dev/null)}")
  [ -n "$names" ] || return 0
  if found=$(along "$1" $names); then printf '%s\n' "$found" | sed -n 's/^./along &/p'; else echo "unknown $found"; fi
}
