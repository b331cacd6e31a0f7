# Takes over the key in $source as $path; one with another fingerprint than $fingerprint is refused. Needs dearmor.
: "${source:?}"
: "${path:?}"
: "${fingerprint?}"
new=$path.hostwright-new
install -m 644 -o root -g root /dev/null "$new"
dearmor "$source" >"$new"
if [ -n "$fingerprint" ]; then
  home=$(mktemp -d)
  shown=$(gpg --homedir "$home" --batch --quiet --no-auto-check-trustdb --with-colons \
    --import-options show-only --import "$new")
  rm -rf -- "$home"
  key=$(printf '%s\n' "$shown" | sed -n '/^pub/,/^fpr/s/^fpr:*\([0-9A-F]*\):*$/\1/p')
  if [ "$key" != "$fingerprint" ]; then
    rm -f -- "$new"
    echo "hostwright: $source holds the key $key"
    exit 1
  fi
  ended=$(printf '%s\n' "$shown" | sed -n 's/^pub:[^:]*:[^:]*:[^:]*:[^:]*:[^:]*:\([0-9][0-9]*\):.*/\1/p')
  if [ -n "$ended" ] && [ "$ended" -le "$(date +%s)" ]; then
    rm -f -- "$new"
    echo "hostwright: the key $key in $source expired on $(date -ud "@$ended" +%Y-%m-%d), and apt trusts nothing that it" \
      "signs; fetch the repository's new key, and name its fingerprint in the stack"
    exit 1
  fi
fi
mv -fT -- "$new" "$path"
case $(stat -c %A -- "${path%/*}") in *r-[xt] | *rw[xt]) ;; *) chmod o+rx -- "${path%/*}" ;; esac # apt's own user reads it
