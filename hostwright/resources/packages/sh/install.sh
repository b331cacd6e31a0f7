# What installs packages: only what they need decides, whatever else apt cannot fetch. Needs lists.sh and unsynced.sh.
# prepare WORD...: lists that are stale are fetched once; it ends the step when apt knows no way to install these, when apt
# would remove a package for their sake that is not in the list $installed of ours, and when apt would install with them
# one whose name matches $guard.
# offered WORD...: it ends the step where no source has one of these, whatever they need; lists are fetched once.
# bring WORD...: installs them; where an archive is no longer at its address, lists are fetched and it is tried again.
# dpkg does not wait for the disk after each file, which takes most of its time: everything is written at the end. Until
# then the packages are in $unsynced, below the id of this boot; mending dpkg unpacks what a crash cut short again.
# $source: the source list that should know them, which is fetched first and alone; may be empty for all of the host's.
# $mirrored: package files, in directories that are named by their sha256. Where there are some, apt gets a list of these
# for this step, with $source and no other source of the host, whose lists stay as they are.
# shellcheck disable=SC2086  # $apt_options, $flags, $mirrored, $only, $keep, $fast, $going and $bad are words
: "${apt_options:?}"
: "${flags:?}"
: "${guard?}"
: "${source?}"
: "${mirrored?}"
: "${installed:?}"
: "${unsynced:?}"
keep=''
fast=''
own=''
only=''
fetched=''
printed=''
install() {
  DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get $apt_options $only $flags "$@"
}
# The files may lie where apt's own user cannot look, and their sums have been checked.
from_files() {
  folder=$(mktemp -d /var/tmp/hostwright-packages.XXXXXX)
  trap 'find "$folder" -delete' EXIT
  mkdir -p "$folder/lists/partial"
  for file in $mirrored; do
    sum=${file%/*}
    dpkg-deb -f "$file" >"$folder/control"
    cat "$folder/control" >>"$folder/Packages"
    printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' "${file##*/}" "$(stat -L -c %s "$file")" "${sum##*/}" >>"$folder/Packages"
    ln -s "$file" "$folder/${file##*/}"
  done
  listed=$(sha256sum "$folder/Packages")
  printf 'SHA256:\n %s %s Packages\n' "${listed%% *}" "$(stat -c %s "$folder/Packages")" >"$folder/Release"
  printf 'deb [trusted=yes] file:%s ./\n' "$folder" >"$folder/sources.list"
  [ -z "$source" ] || cat "$source" >>"$folder/sources.list"
  only="-o Dir::Etc::SourceList=$folder/sources.list -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists=$folder/lists
    -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=root"
  fetch_lists $only
  lost=''
  if known "$@"; then
    # What a source has for another architecture, or under another name, the mirror may not have.
    lost=$(printf '%s\n' "$simulated" | sed -n 's/^Remv \([^ ]*\).*/\1/p' | tr '\n' ' ')
    [ -n "$lost" ] || return 0
  fi
  printf '%s\n' "$printed" "$simulated"
  held_named
  echo "hostwright: error: the packages of the mirror do not fit what this host has${lost:+: apt would remove ${lost% }}:" \
    "run \`invoke mirror --renew\`, which takes the versions of today, and provision again${held:+; held there:$held}"
  exit 100
}
held_named() { # those on hold that apt's lines name
  held=''
  for name in $(apt-mark showhold); do
    case $simulated in *": $name "* | *" $name "*"is to be installed"*) held="$held $name" ;; esac
  done
}
known() {
  simulated=$(install -s install "$@" 2>&1) || return 1
  case $simulated in *'is not possible, it cannot be downloaded'*) return 1 ;; esac
}
offered() {
  alone "$@" && return 0
  all_lists
  alone "$@" || unknown "$@"
}
alone() {
  simulated=$(install --print-uris download "$@" 2>&1)
}
prepare() {
  if [ -n "$mirrored" ]; then
    from_files "$@"
  elif [ -n "$source" ]; then
    fetch_lists -o "Dir::Etc::SourceList=$source" -o Dir::Etc::SourceParts=/dev/null -o APT::Get::List-Cleanup=0
    own=$failed
  fi
  if [ -z "$mirrored" ] && ! known "$@"; then
    all_lists
    known "$@" || unknown "$@"
  fi
  going=$(printf '%s\n' "$simulated" | sed -n 's/^Remv \([^ ]*\).*/\1/p')
  [ -n "$going" ] || keep=--no-remove
  going=$(printf '%s\n' "$going" | grep -vxF -e "$(cat "$installed" 2>/dev/null)" || true)
  [ -z "$going" ] || { echo "hostwright: error: to install $*, apt would remove" $going; exit 1; }
  moving "$@"
  [ -n "$guard" ] || return 0
  bad=$(printf '%s\n' "$simulated" | sed -n 's/^Inst \([^ ]*\).*/\1/p' | grep -E -e "$guard" || true)
  if [ -n "$bad" ]; then echo "hostwright: apt would also install:" $bad; exit 1; fi
}
# Installed packages that get another version for the sake of these words are named, and one that somebody holds is not
# moved: our own flag for held packages is for the words themselves.
moving() {
  moved=$(printf '%s\n' "$simulated" | sed -n '/ local-deb /!s/^Inst \([^ ]*\) \[\([^]]*\)\] (\([^ ]*\) .*/\1 \2 → \3/p' |
    while read -r name old arrow new; do
      for word; do [ "${word%%=*}" != "$name" ] || continue 2; done
      [ "$old" = "$new" ] || echo "$name $old $arrow $new"
    done)
  [ -n "$moved" ] || return 0
  held=$(apt-mark showhold | grep -vxF -e "$(cat "$installed" 2>/dev/null)" || true)
  held=$(printf '%s\n' "$moved" | while read -r name rest; do
    if printf '%s\n' "$held" | grep -qxF -e "$name"; then echo "$name ($rest)"; fi
  done)
  if [ -n "$held" ]; then
    echo "hostwright: error: to install $*, apt would change packages that are on hold on this host:" $held
    echo "hostwright: error: they stay as they are; apt-mark unhold NAME on the host lets them change"
    exit 1
  fi
  printf '%s\n' "$moved" | sed "s/^/hostwright: note: installed with them, as they need it: /"
}
all_lists() {
  fetched=yes
  fetch_lists
}
bring() {
  # else what is in the list was not mended yet, or no record is kept of this host
  if ! stopped && [ -d "${unsynced%/*}" ]; then
    read -r boot </proc/sys/kernel/random/boot_id
    {
      sed 1d "$unsynced" 2>/dev/null || true  # most often there is none
      printf '%s\n' "$simulated" | sed -n 's/^Inst \([^ ]*\).*/\1/p'
    } | sort -u | sed "1i $boot" >"$unsynced.new"
    sync "$unsynced.new"
    mv -f "$unsynced.new" "$unsynced"
    sync "${unsynced%/*}"
    fast='-o Dpkg::Options::=--force-unsafe-io'
  fi
  status=0
  brought "$@" || status=$?
  [ -z "$fast" ] || synced
  return "$status"
}
brought() {
  if install $keep $fast install "$@"; then notes; return 0; fi
  can_download "$@" && return 100
  if [ -z "$fetched" ] && [ -z "$mirrored" ]; then
    all_lists
    if install $keep $fast install "$@"; then notes; return 0; fi
    can_download "$@" && return 100
  fi
  printf '%s\n' "$downloaded" | sed -n 's/^E: Failed to fetch /hostwright: error: apt could not fetch /p' | head -n 3
  return 100
}
can_download() {
  downloaded=$(install -o DPkg::Lock::Timeout=0 -d install "$@" 2>&1)
}
# Ends the step: which packages or versions no list has, which of them do not fit together, which lists are missing, or
# which preferences keep apt from them.
unknown() {
  printf '%s\n' "$printed" "$simulated"
  missing=$(printf '%s\n' "$simulated" | sed -n \
    -e "s/.*Unable to locate package \([^ ]*\).*/\1/p" \
    -e "s/.*Package '\([^']*\)' has no installation candidate.*/\1/p" \
    -e "s/.*Version '[^']*' for '\([^']*\)' was not found.*/\1/p" \
    -e "s/.*epends: \([^ ]*\) .*but it is not installable.*/\1/p" \
    -e "s/.*Reinstallation of \([^ ]*\) is not possible.*/\1/p" | sort -u | tr '\n' ' ')
  if [ -z "$missing" ]; then
    held_named
    if [ -n "$held" ]; then
      echo "hostwright: error: $* cannot be installed beside what is on hold on this host:$held" \
        "(apt-mark unhold NAME on the host lets it change)"
    else
      printf '%s\n' "$simulated" | awk '
        / unmet dependencies:$/ { on = 1; next }
        /^[^ ]/ { on = 0 }
        on { sub(/^ +/, /^ [^ ]/ && all != "" ? "; " : /^ [^ ]/ ? "" : " "); all = all $0 }
        END { if (all != "") print "hostwright: error: apt cannot install these together: " substr(all, 1, 400) }'
    fi
    exit 100
  fi
  missing=${missing% }
  failed=${own:-$failed}
  not_fetched "$missing"
  [ -z "$failed" ] || exit 100
  preferences='' parts=''
  eval "$(apt-config shell preferences Dir::Etc::Preferences/f parts Dir::Etc::PreferencesParts/f)"
  for name in $missing; do
    version=''
    for word; do case $word in "$name="*) version=${word#*=} ;; esac; done
    others=$(LC_ALL=C apt-cache madison "$name" 2>/dev/null | cut -d '|' -f 2 | sort -u | tr -s '\n ' ' ')
    case $version:$others in
      :* | *: | *" $version "*) ;;
      *) echo "hostwright: error: no source of this host has $name $version: they have${others% }"; continue ;;
    esac
    case $(LC_ALL=C apt-cache policy "$name") in
      *'Candidate: (none)'*' -'[0-9]*)
        pins=$(grep -ls '^Pin-Priority: *-' "$preferences" "$parts"/* | tr '\n' ' ')
        echo "hostwright: error: preferences keep apt from $name: ${pins% }" ;;
    esac
  done
  exit 100
}
