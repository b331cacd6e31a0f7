# Takes away what has the name of a device file and is another thing: nothing that a program has open stops with it. Docker
# makes an empty directory of a missing file that a container is given.
: "${wrong?}"
eval "set -- $wrong"
for path; do
  if [ -d "$path" ]; then rmdir "$path"; else rm -f "$path"; fi
done
