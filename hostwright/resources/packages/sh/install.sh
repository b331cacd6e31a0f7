# install WORD...: apt-get with the options of an installation; `install -s install gcc` only simulates one.
# none_guarded PACKAGE...: ends the step when apt would install with these a package whose name matches $guard.
# shellcheck disable=SC2086  # $apt_options, $flags and $bad are words
: "${apt_options:?}"
: "${flags:?}"
: "${guard?}"
install() {
  DEBIAN_FRONTEND=noninteractive apt-get $apt_options $flags "$@"
}
none_guarded() {
  planned=$(install -s install "$@" | sed -n 's/^Inst \([^ ]*\).*/\1/p')
  bad=$(printf '%s\n' "$planned" | grep -E -e "$guard" || true)
  if [ -n "$bad" ]; then echo "hostwright: apt would also install:" $bad; exit 1; fi
}
