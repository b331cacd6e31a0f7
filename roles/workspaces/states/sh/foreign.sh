# What $directory holds, where nothing in it is a directory that Hostwright made for a person: the name of one such thing.
: "${directory:?}"
[ -d "$directory" ] || exit 0
made=$(find "$directory/" -mindepth 1 -maxdepth 1 -type d -uid 0 -perm 711 -printf 1 -quit)
[ -n "$made" ] || find "$directory/" -mindepth 1 -maxdepth 1 ! -name lost+found -printf '%f\n' -quit
