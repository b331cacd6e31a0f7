# automatic: the packages that apt has marked as installed for others' sake, those of another architecture with it. apt-mark
# says the same, and reads all of apt's lists for it.
automatic() {
  [ ! -e /var/lib/apt/extended_states ] || awk -v native="$(dpkg --print-architecture)" '
    $1 == "Package:" { name = $2 }
    $1 == "Architecture:" && $2 != native && $2 != "all" { name = name ":" $2 }
    $1 == "Auto-Installed:" && $2 == 1 { print name }' /var/lib/apt/extended_states
}
