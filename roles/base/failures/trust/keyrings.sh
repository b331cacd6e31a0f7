# `source FILE NUMBER LINE` of each line of an apt source that names keyrings, or is in deb822, with tabs; then `ring
# PATH STATE` for each keyring named: missing, unreadable (for apt's user _apt), or its bytes in hexadecimal digits; no
# digits of what is no file, or too large for a keyring: a pipe, or a disk's worth of zeros, would never end. Needs
# dearmor.
export LC_ALL=C
set --
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do [ ! -f "$file" ] || set -- "$@" "$file"; done
[ $# -eq 0 ] || grep -Hn -e '^[[:space:]]*deb.*signed-by=' "$@" | sed 's/^\([^:]*\):\([0-9]*\):/source\t\1\t\2\t/'
for file in /etc/apt/sources.list.d/*.sources; do
  [ ! -f "$file" ] || awk '{ printf "source\t%s\t%d\t%s\n", FILENAME, FNR, substr($0, 1, 600) }' "$file"
  [ ! -f "$file" ] || set -- "$@" "$file"
done
[ $# -gt 0 ] || exit 0
# Ubuntu 18.04 has setpriv in a package of its own, which few hosts have.
if command -v setpriv >/dev/null; then group=$(id -g _apt 2>/dev/null); else group=; fi
# One-line style has commas between them, deb822 spaces, and lines of its own.
sed -n '/^#/d; s/.*[Ss]igned-[Bb]y[:=][[:space:]]*\([^]]*\).*/\1/p; s/^[[:space:]]\{1,\}\//\//p' "$@" |
  tr ', \t' '\n' | grep '^/' | sort -u | while IFS= read -r ring; do
  if [ ! -e "$ring" ]; then state=missing
  elif [ -n "$group" ] && ! setpriv --reuid=_apt --regid="$group" --clear-groups test -r "$ring"; then state="unreadable $(stat -Lc %a -- "$ring")"
  elif [ ! -f "$ring" ] || [ ! -s "$ring" ] || [ "$(stat -Lc %s -- "$ring")" -gt 1048576 ]; then state=
  else state=$(dearmor "$ring" 2>/dev/null | head -c 60000 | od -An -v -tx1 | tr -d ' \n'); fi
  printf 'ring\t%s\t%s\n' "$ring" "$state"
done
exit 0
