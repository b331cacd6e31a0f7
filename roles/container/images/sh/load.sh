# Docker loads $archive, and its own words say which names it loaded. The load is undone unless these are the $names that
# the operator gave; without any, unless it is one name that led to no other image before. A single name in $names may be
# given to an image that has another or none. $record gets a line "ID NAME" of each.
# $record.before is what Docker had before the load, until that has been judged: a load that was killed, which a
# further one of the same archive repeats, is judged by it too.
: "${archive:?}"
: "${record:?}"
: "${names?}"
export DOCKER_HOST=unix:///var/run/docker.sock # whatever context root has
export LC_ALL=C # for sort and comm
before=$record.before
work=$(mktemp -d)
list() { # FILE: "NAME ID" of each name, "<none>:<none> ID" of an image without one
  docker image ls --no-trunc --format '{{.Repository}}:{{.Tag}} {{.ID}}' >"$work/listed"
  sort -- "$work/listed" >"$1"
}
id_of() { awk -v name="$2" '$1 == name { print $2 }' "$1"; } # LIST NAME
joined() { paste -s -d , -- "$1" | cut -c 1-500; }
keep() { # FILE: keep the standard input as it, also if the power fails
  cat >"$1.new"
  sync -- "$1.new"
  mv -fT -- "$1.new" "$1"
}
refuse() {
  echo "hostwright: error: $*: the load was undone"
  exit 1
}
put_back() { # FILE of names: each leads to where it led before the load
  while read -r name; do
    former=$(id_of "$before" "$name")
    if [ -n "$former" ]; then docker tag "$former" "$name"; else docker image rm -f -- "$name" >/dev/null; fi || failed=1
  done <"$1"
}
undo() {
  trap - EXIT
  failed=
  list "$work/after" || exit 1
  # Docker says nothing of an archive of before its 1.10, and not all of a load that failed
  [ -n "$told" ] || comm -13 "$work/now" "$work/after" | grep -v '<none>' | cut -d ' ' -f 1 >>"$work/loaded" || :
  put_back "$work/loaded"
  list "$work/after"
  cut -d ' ' -f 2 "$before" | sort -u >"$work/ids"
  grep '<none>' "$work/after" | cut -d ' ' -f 2 | sort -u | comm -23 - "$work/ids" >"$work/unnamed" || :
  while read -r id; do docker image rm "$id" >/dev/null 2>&1 || :; done <"$work/unnamed" # one with a container stays
  [ -n "$failed" ] || rm -f -- "$before"
  rm -rf -- "$work"
}

told=
trap 'rm -rf -- "$work"' EXIT
mkdir -p -- "${record%/*}"
list "$work/now"
[ -e "$before" ] || keep "$before" <"$work/now"
: >"$work/loaded"
trap undo EXIT
trap 'exit 143' HUP INT TERM
status=0
docker load -q -i "$archive" >"$work/said" 2>&1 || status=$?
cat -- "$work/said"
sed -n 's/^Loaded image: //p' "$work/said" | sort -u >"$work/loaded"
sed -n 's/^Loaded image ID: //p' "$work/said" | sort -u >"$work/ids"
if [ "$status" -ne 0 ]; then
  refuse "Docker cannot load this archive: $(tail -n 1 -- "$work/said" | cut -c 1-300)." \
    "It takes what \`docker save\` writes (of an OCI layout: skopeo copy oci-archive:FILE docker-archive:NEW:NAME:TAG)"
fi
[ -s "$work/loaded" ] || [ -s "$work/ids" ] ||
  refuse "Docker does not say which images it loaded: save them by name and tag, with Docker 1.10 or later"
told=1
list "$work/after"
while read -r name; do id_of "$work/after" "$name"; done <"$work/loaded" | sort -u - "$work/ids" >"$work/images"
platform=$(docker version --format '{{.Server.Os}}/{{.Server.Arch}}')
while read -r id; do
  of=$(docker image inspect --format '{{.Os}}/{{.Architecture}}' "$id")
  [ "$of" = "$platform" ] || refuse "an image in the archive is for $of, and this host is $platform"
done <"$work/images"

eval "set -- $names"
printf '%s\n' "$@" | sort -u >"$work/names"
if [ $# -eq 1 ]; then
  [ "$(wc -l <"$work/images")" -eq 1 ] ||
    refuse "--name $1 is the name of one image, and Docker loaded several from the archive, as $(joined "$work/loaded")"
  grep -vxF -- "$1" "$work/loaded" >"$work/others" || :
  echo "$1" >>"$work/loaded"
  docker tag "$(cat -- "$work/images")" "$1"
  put_back "$work/others"
elif [ $# -gt 1 ]; then
  cmp -s "$work/names" "$work/loaded" ||
    refuse "Docker loaded $(joined "$work/loaded") from the archive, and --name has $(joined "$work/names")"
else
  [ -s "$work/loaded" ] || refuse "the archive gives its image no name: give it one with --name NAME:TAG"
  [ "$(wc -l <"$work/loaded")" -eq 1 ] ||
    refuse "Docker loaded several names from the archive; if all of them are meant: --name $(joined "$work/loaded")"
  cp -- "$work/loaded" "$work/names"
  name=$(cat -- "$work/names")
  former=$(id_of "$before" "$name")
  [ "${former:-$(cat -- "$work/images")}" = "$(cat -- "$work/images")" ] ||
    refuse "the archive moves $name away from the image $former; if that is meant: --name $name"
fi
list "$work/after"
while read -r name; do echo "$(id_of "$work/after" "$name") $name"; done <"$work/names" >"$work/record"
keep "$record" <"$work/record"
rm -f -- "$before"
trap 'rm -rf -- "$work"' EXIT
while read -r id name; do echo "hostwright: note: Docker loaded $name ($id)"; done <"$work/record"
rm -rf -- "${archive%/*}"
