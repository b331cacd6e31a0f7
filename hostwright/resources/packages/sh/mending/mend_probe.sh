# looked: what mending dpkg would do, a line each: `unmet NAME (RELATION: OTHER)` for a package that lacks what it needs;
# `unpack NAME` or `gone NAME` for one that was cut off while it was unpacked and whose archive apt's lists have or do not
# have; `leave NAME` for each whose name matches a shell pattern in $leaving (the first one counts, and one that begins with
# `!` says that it stays), where one of these is not in order or anything lacks what it needs; then `Inst NAME`, `Remv NAME`
# of apt's own simulation without these, or `unknown MESSAGE`; and before these `restarts NAME SERVICE` for a package that
# is not in order, or leaves, whose scripts start or stop something and name one of $services; first of all `lost NAME` for
# each package in $unsynced, if the host stopped before its files were written to the disk. Nothing where dpkg is in order.
# Whether something is unmet costs apt 20 ms: it is not asked again while $sound, whose time is when all of the host was last
# found as desired, is newer than dpkg's database. $barred: preferences of apt's that keep it from bringing them again.
# Needs unsynced.sh.
# shellcheck disable=SC2016,SC2086  # dpkg's own expressions; $apt_options and $no_lists are words
: "${apt_options:?}"
: "${no_lists:?}"
: "${leaving?}"
: "${barred?}"
: "${services?}"
: "${sound:?}"
: "${unsynced:?}"
looked() {
  ! stopped || sed '1d; s/^/lost /' "$unsynced"
  ! damaged || mended
}
damaged() {
  unmet=''
  [ "$sound" -nt /var/lib/dpkg/status ] || unmet=$(LC_ALL=C apt-get $no_lists -o Debug::NoLocking=true -q check 2>&1 |
    sed -n 's/^ \([^ ]*\) : \([A-Za-z-]*: [^ ]*\).*/unmet \1 (\2)/p')
  [ -n "$unmet" ] ||
    grep -Eq '^Status: [^ ]+ (reinstreq|[^ ]+ (half-|unpacked|triggers-))' /var/lib/dpkg/status ||
    { set -- /var/lib/dpkg/updates/*; [ -e "$1" ]; }
}
mended() (
  # Who holds dpkg's lock is not done yet: it was not interrupted so far, and beside a dpkg that unpacks, apt's simulation
  # would keep whoever asks waiting for seconds.
  if frontend=$(stat -c %i /var/lib/dpkg/lock-frontend 2>/dev/null) && grep -q "POSIX.*:$frontend " /proc/locks; then
    echo 'unknown dpkg is at work right now'
    exit 0
  fi
  work=$(mktemp -d -p /run 2>/dev/null || mktemp -d) || exit 1
  trap 'rm -rf -- "$work"' EXIT
  [ -z "$unmet" ] || printf '%s\n' "$unmet"
  # Of names on standard input those that roles of the host take away.
  leaving() {
    set -f
    # shellcheck disable=SC2254  # the patterns are patterns
    while read -r name; do
      for pattern in $leaving; do
        case ${name%:*} in ${pattern#!}) ;; *) continue ;; esac
        case $pattern in !*) ;; *) echo "$name" ;; esac
        break
      done
    done
  }
  # Without a line break: they are words.
  native=$(dpkg --print-architecture)
  names=$(dpkg-query -W -f='${db:Status-Eflag}/${db:Status-Status} ${binary:Package}\n' |
    sed -n "/^[^ ]*\/not-installed /d; /^ok\/config-files /d; s/:$native\$//; s/^[^ ]* //p" | leaving | tr '\n' ' ')
  [ -n "$unmet" ] || dpkg-query -W -f='${db:Status-Eflag}/${db:Status-Status}\n' $names | grep -qvx ok/installed || names=''
  for name in $(dpkg-query -W -f='${db:Status-Eflag}/${db:Status-Status} ${binary:Package}\n' |
    sed -n '/^ok\/\(installed\|config-files\|not-installed\) /d; s/^[^ ]* //p') $names; do
    base=/var/lib/dpkg/info/${name%":$native"}
    does=$(sed '/^[[:space:]]*#/d' "$base".p* "$base:$native".p* 2>/dev/null) || true  # which of them are there differs
    printf '%s\n' "$does" | grep -Eq 'start|stop|kill|_dh_action' || continue
    for service in $services; do
      ! printf '%s\n' "$does" | grep -qw -e "$service" || echo "restarts ${name%":$native"} $service"
    done
  done
  gone=''
  for name in $(dpkg-query -W -f='${db:Status-Eflag} ${binary:Package}\n' | sed -n 's/^reinstreq //p'); do
    case " $names" in *" $name "*) continue ;; esac
    version=$(dpkg-query -W -f='${Version}' "$name")
    if apt-get -q --print-uris download "$name=$version" >/dev/null 2>&1; then
      echo "unpack $name"
    else
      echo "gone $name"
      gone="$gone ${name%":$native"} "
    fi
  done
  # dpkg's database as it is after that: without marks of what was cut off, which apt would refuse to think about.
  awk -v gone="$gone $names" -v native="$native" '
    BEGIN { RS = ""; ORS = "\n\n" }
    {
      name = architecture = $0
      sub(/^Package: /, "", name); sub(/\n.*/, "", name)
      sub(/.*\nArchitecture: /, "", architecture); sub(/\n.*/, "", architecture)
      if (architecture != native && architecture != "all") name = name ":" architecture
      match($0, /\nStatus: [^\n]*/)
      status = substr($0, RSTART, RLENGTH)
      sub(/ reinstreq /, " ok ", status); sub(/half-(installed|configured)/, "unpacked", status)
      if (index(gone, " " name " ")) status = "\nStatus: deinstall ok config-files"
      print substr($0, 1, RSTART - 1) status substr($0, RSTART + RLENGTH)
    }' /var/lib/dpkg/status >"$work/status"
  { cat /etc/apt/preferences 2>/dev/null || :; printf '\n%s\n' "$barred"; } >"$work/preferences"
  simulated=$(LC_ALL=C apt-get $apt_options -o Dir::State::status="$work/status" -o Dir::Cache::pkgcache= \
    -o Dir::Cache::srcpkgcache= ${names:+--ignore-hold -o Dir::Etc::Preferences="$work/preferences"} \
    -s -f --no-install-recommends --allow-change-held-packages install 2>&1) ||
    printf 'unknown %s\n' "$(printf '%s\n' "$simulated" | sed -n 's/^E: //p' | head -n 1)"
  [ -z "$names" ] || printf 'leave %s\n' $names
  printf '%s\n' "$simulated" | sed -n 's/^\(Inst\|Remv\|Purg\) \([^ ]*\).*/\1 \2/p' | sed 's/^Purg/Remv/'
)
