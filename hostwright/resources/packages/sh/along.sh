# along VERB PACKAGE...: the packages that apt removes beside these, since they depend on them, a line each. apt knows only
# what is installed ($no_lists): else it might install something in their place. VERB: purge or remove.
# named: names out of standard input as apt and dpkg both take them: without the host's own architecture.
# shellcheck disable=SC2086  # $no_lists are words
: "${no_lists:?}"
named() { sed "s/:$(dpkg --print-architecture)\$//" | sort -u; }
along() {
  LC_ALL=C apt-get $no_lists -o Debug::NoLocking=true -q -s --ignore-hold --allow-change-held-packages "$@" |
    sed -n 's/^\(Inst\|Remv\|Purg\) \([^ ]*\).*/\2/p' | named | grep -vxF -e "$(shift; printf '%s\n' "$@" | named)" || true
}
