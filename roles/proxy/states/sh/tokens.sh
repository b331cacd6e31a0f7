# The tokens of workspaces whose pages ask for none themselves, as nginx reads them: for each, whether the token in a
# request's address and the one in its cookie are right. $names are the workspaces, $state is where their tokens lie.
: "${file:?}"
: "${state:?}"
: "${names?}"

wanted() {
  echo '# Written by Hostwright, for root alone.'
  eval "set -- $names"
  for name; do
    # the file is its user's: anything but a token of ours would be somebody's text in nginx's configuration
    right=$(head -c 200 -- "$state/$name/token" 2>/dev/null | tr -d '\0' | grep -xE '[0-9a-f]{48}' | head -n 1) || right=''
    variable=$(printf %s "$name" | tr - _)
    for pair in "arg_token hostwright_asked_$variable" "cookie_hostwright hostwright_known_$variable"; do
      echo "map \$${pair% *} \$${pair#* } {"
      echo '  default 0;'
      [ -z "$right" ] || echo "  ~^$right\$ 1;"
      echo '}'
    done
  done
}

problems() { # what is wrong with the file, without any token
  [ -f "$file" ] || { echo absent; return; }
  [ "$(stat -c %u:%a -- "$file")" = "$(id -u):600" ] || echo 'others may read it'
  wanted | cmp -s - "$file" || echo 'not the tokens that the workspaces have'
}

make() {
  (umask 077 && wanted >"$file.new")
  sync -- "$file.new"
  mv -fT -- "$file.new" "$file"
}
