# What a change of a workspace leaves for its end: the container that was replaced goes, and the definition is written.
: "${name:?}"
: "${state:?}"
: "${definition:?}"
docker rm -f "workspace-$name.old" "workspace-$name.new" >/dev/null 2>&1 || :
umask 077
printf '%s' "$definition" >"$state/.definition.json.new"
mv -f -- "$state/.definition.json.new" "$state/definition.json"
