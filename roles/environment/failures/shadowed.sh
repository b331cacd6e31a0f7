# The libraries in the wheels of the environments in /opt, `library PATH`, and what the loader's cache has under their
# names, `cached NAME PATH`. An unreadable cache is a failed probe.
cache=$(/sbin/ldconfig -p) || exit 1
libraries=$(for library in /opt/*/lib/python3*/site-packages/nvidia/*/lib/lib*.so.[0-9]*; do
  if [ -e "$library" ]; then printf '%s\n' "$library"; fi
done)
[ -n "$libraries" ] || exit 0
printf '%s\n' "$libraries" | sed 's/^/library\t/'
names=$(printf '%s\n' "$libraries" | sed 's,.*/,,' | sort -u)
printf '%s\n' "$cache" | sed -nE 's/^[[:space:]]*(lib[^ ]*\.so\.[0-9.]+) \(libc6,x86-64[^)]*\) => (\/.*)$/cached\t\1\t\2/p' |
  while IFS='	' read -r kind name path; do
    if printf '%s\n' "$names" | grep -qxF -- "$name"; then printf '%s\t%s\t%s\n' "$kind" "$name" "$path"; fi
  done
exit 0
