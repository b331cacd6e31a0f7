# What installs packages: only what they need decides, whatever else apt cannot fetch. Needs lists.sh and unsynced.sh.
# bring WORD...: installs them. Just before apt starts dpkg, it tells $fits what it is about to do, and does nothing where
# that may not be. Lists that are stale, and those of an archive that is no longer at its address, are fetched once.
# dpkg does not wait for the disk after each file, which takes most of its time: everything is written at the end. Until
# then the packages are in $unsynced, below the id of this boot; mending dpkg unpacks what a crash cut short again.
# prepare WORD...: it ends the step when apt knows no way to install these, and where that may not be.
# offered WORD...: it ends the step where no source has one of these, whatever they need; lists are fetched once.
# $fits: the program fits.sh, for `sh -eu`.
# $source: the source list that should know them, which is fetched first and alone; may be empty for all of the host's.
# $mirrored: package files, in directories that are named by their sha256. Where there are some, apt gets a list of these
# for this step, with $source and no other source of the host, whose lists stay as they are.
# shellcheck disable=SC2030,SC2031,SC2086  # functions of the same subshell; options and $mirrored are words
: "${apt_options:?}"
: "${flags:?}"
: "${source?}"
: "${mirrored?}"
: "${fits:?}"
: "${unsynced:?}"
folder=''
fast=''
own=''
only=''
printed=''
install() {
  DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get $apt_options $only $flags "$@"
}
# The files may lie where apt's own user cannot look, and their sums have been checked.
from_files() {
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
prepare() (
  lists_of "$@"
  [ -n "$mirrored" ] || simulated_at_last "$@"
  printf '%s\n' "$simulated" | sh -eu "$folder/fits" || exit 1
)
lists_of() {
  folder=$(mktemp -d /var/tmp/hostwright-packages.XXXXXX)
  trap 'find "$folder" -delete' EXIT
  printf '%s\n' "$fits" >"$folder/fits"
  if [ -n "$mirrored" ]; then
    from_files "$@"
  elif [ -n "$source" ]; then
    fetch_lists -o "Dir::Etc::SourceList=$source" -o Dir::Etc::SourceParts=/dev/null -o APT::Get::List-Cleanup=0
    own=$failed
  fi
}
simulated_at_last() {
  known "$@" && return 0
  all_lists
  known "$@" || unknown "$@"
}
all_lists() {
  fetched=yes
  fetch_lists
}
bring() (
  lists_of "$@"
  # else what is in the list was not mended yet, or no record is kept of this host
  list=-
  if ! stopped && [ -d "${unsynced%/*}" ]; then
    list=$unsynced
    fast='-o Dpkg::Options::=--force-unsafe-io'
  fi
  # The options of a hook are those of its first word: no other hook begins with this one.
  printf '%s\n' 'DPkg::Tools::Options::exec::Version "3";' \
    "DPkg::Pre-Install-Pkgs:: \"exec sh -eu $folder/fits $list\";" >"$folder/hook"
  fetched=$mirrored
  # apt reports success where it has no file to install a package again from.
  case " $flags:$mirrored" in *' --reinstall:') simulated_at_last "$@" ;; esac
  if brought "$@"; then status=0; else status=$?; fi
  [ -z "$fast" ] || synced
  exit "$status"
)
brought() {
  done_by_apt "$@" && return 0
  if [ -z "$fetched" ]; then
    if known "$@" && can_download "$@"; then return 100; fi
    all_lists
    known "$@" || unknown "$@"
    done_by_apt "$@" && return 0
  fi
  can_download "$@" && return 100
  printf '%s\n' "$downloaded" | sed -n 's/^E: Failed to fetch /hostwright: error: apt could not fetch /p' | head -n 3
  return 100
}
done_by_apt() {
  if install -c "$folder/hook" $fast install "$@"; then notes; return 0; fi
  [ ! -e "$folder/fits.refused" ] || exit 1
  return 1
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
