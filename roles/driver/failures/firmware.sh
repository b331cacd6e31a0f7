# The firmware files of the cards' system processor (GSP) that the open module on the disk names and that are in none of the
# directories in which the kernel looks for them, one per line.
command -v modinfo >/dev/null || exit 3
case $(modinfo -F license nvidia 2>/dev/null) in *GPL*) ;; *) exit 0 ;; esac
more=''
read -r more 2>/dev/null </sys/module/firmware_class/parameters/path
release=$(uname -r)
modinfo -F firmware nvidia | grep '/gsp_[^/]*\.bin$' | while read -r file; do
  for directory in $more "/lib/firmware/updates/$release" /lib/firmware/updates "/lib/firmware/$release" /lib/firmware; do
    for end in '' .zst .xz; do [ ! -e "$directory/$file$end" ] || continue 3; done
  done
  echo "$file"
done
exit 0
