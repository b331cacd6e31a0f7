# "hides FILE OTHER" for each of the $programs that lies in /usr/local, where a shell and root's jobs look first, as well as
# where its package has it.
: "${programs:?}"
eval "set -- $programs"
for name; do
  for own in "/usr/local/sbin/$name" "/usr/local/bin/$name"; do
    [ -x "$own" ] || continue
    for other in "/usr/bin/$name" "/usr/sbin/$name" "/sbin/$name"; do
      if [ -e "$other" ] && ! [ "$own" -ef "$other" ]; then echo "hides $own $other"; break; fi
    done
  done
done
exit 0
