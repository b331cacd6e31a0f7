# own_apt: from here on apt reads the host's own sources and preferences alone: of both directories the files without a
# mark of ours below $files. The settings lie in a directory that goes with this shell, and $APT_CONFIG names them.
: "${files:?}"
own_apt() {
  work=$(mktemp -d -p /run 2>/dev/null || mktemp -d) || return 1
  trap 'rm -rf -- "$work"' EXIT
  chmod 755 "$work"  # apt's own user reads it
  [ -z "${APT_CONFIG:-}" ] || cat "$APT_CONFIG" >"$work/apt.conf"
  sources='' preferences=''
  eval "$(apt-config shell sources Dir::Etc::SourceParts/d preferences Dir::Etc::PreferencesParts/d)"
  for folder in "$sources" "$preferences"; do
    [ -n "$folder" ] || continue
    mkdir -p "$work$folder"
    for file in "$folder"*; do
      [ ! -e "$file" ] || [ -e "$files$file.written" ] || ln -s "$file" "$work$folder"
    done
  done
  printf '%s;\n' "Dir::Etc::SourceParts \"$work$sources\"" "Dir::Etc::PreferencesParts \"$work$preferences\"" \
    "Dir::Cache::pkgcache \"$work/packages\"" "Dir::Cache::srcpkgcache \"$work/sources\"" >>"$work/apt.conf"
  APT_CONFIG=$work/apt.conf
  export APT_CONFIG
}
