# back: what apt would install so that packages which were here before the first change are here again: those in the
# record $before whose name matches one of the shell patterns in $patterns and none in $keep. `back NAME VERSION` for each
# that is missing now, at the version of that time or, where the host's sources have no more of that, at the one that apt
# would choose; `lost NAME VERSION` where they have none. `unknown REASON` where apt cannot install all of these together.
# Needs own_apt.sh.
# shellcheck disable=SC2016,SC2086,SC2254  # dpkg's own expressions; patterns and names are words
: "${before:?}"
: "${patterns:?}"
: "${keep?}"
missing() {
  set -f
  sed -n 's/^\([^\t]*\)\t\([^\t]*\)\t.i.*/\1 \2/p' "$before" 2>/dev/null | while read -r name version; do
    for pattern in $keep; do case ${name%%:*} in $pattern) continue 2 ;; esac; done
    for pattern in $patterns; do
      case ${name%%:*} in $pattern) ;; *) continue ;; esac
      [ "$(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || echo "$name $version"
      break
    done
  done
}
chosen() {
  while read -r name version; do
    if ! apt-cache madison "$name" | awk -F '|' -v want="$version" '{ gsub(/ /, "", $2) } $2 == want { found = 1 } END { exit !found }'
    then
      had=$version
      version=$(LC_ALL=C apt-cache policy "$name" | sed -n 's/^  Candidate: \([^(]\)/\1/p')
      [ -n "$version" ] || { echo "lost $name $had"; continue; }
    fi
    echo "back $name $version"
  done
}
back() (
  names=$(missing)
  [ -n "$names" ] || return 0
  own_apt
  rows=$(printf '%s\n' "$names" | chosen)
  words=$(printf '%s\n' "$rows" | sed -n 's/^back \([^ ]*\) /\1=/p')
  printf '%s\n' "$rows" | grep '^lost ' || true  # none is lost
  [ -n "$words" ] || return 0
  if simulated=$(LC_ALL=C apt-get -q -s -o Debug::NoLocking=true -o APT::Get::AutomaticRemove=false \
    --no-install-recommends --allow-downgrades install $words 2>&1); then
    printf '%s\n' "$rows" | grep '^back '
  else
    printf 'unknown %s\n' "$(printf '%s\n' "$simulated" | sed -n -e 's/^E: //p' -e 's/^ \([^ ]* : .*\)/\1/p' | head -n 1)"
  fi
)
