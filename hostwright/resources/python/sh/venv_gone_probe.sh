# What there is of an environment, one thing a line: `ours=` (the link $path leads into $homes), `home=DIR` for each of
# its venvs $stem-pyX.Y-KEY, `aside=` (something waits to come back to $path: $kept, or moved aside), `empty=` ($homes
# holds nothing), `added=HOME\tPATH` for what people put into a venv (needs users_files), and `user=NAME (PID)` for each
# process that runs a program of $places, a regular expression, or has a library of a venv open (whose path the kernel
# tells with links followed). A venv's Python is a link to the system's, so the program's own file says nothing.
: "${path:?}"
: "${homes:?}"
: "${stem:?}"
: "${kept:?}"
: "${places:?}"
free=yes
case $(readlink -- "$path") in
  "$homes"/*) echo ours= ;;
  *) if [ -e "$path" ] || [ -L "$path" ]; then free=; fi ;;
esac
for home in "$stem"-py3.*-???????????? "$stem"-py3.*-????????????.wheels; do
  [ -d "$home" ] || continue
  echo "home=$home"
  case $home in *.wheels) continue ;; esac
  users_files "$home" | while IFS= read -r added; do printf 'added=%s\t%s\n' "$home" "$added"; done
done
for old in "$path".before-hostwright.* "$kept"; do
  if [ -n "$free" ] && { [ -e "$old" ] || [ -L "$old" ]; }; then echo aside=; break; fi
done
if [ -d "$homes" ] && [ -z "$(ls -A -- "$homes")" ]; then echo empty=; fi
for pid in $(grep -lzEe "^($places)/" /proc/[0-9]*/cmdline; \
  grep -lFe "$stem-py3." -e "$(readlink -m -- "$homes")/${stem##*/}-py3." /proc/[0-9]*/maps); do
  pid=${pid#/proc/}; echo "${pid%%/*}"
done | sort -un | while read -r pid; do read -r name <"/proc/$pid/comm" && echo "user=$name ($pid)"; done
exit 0
