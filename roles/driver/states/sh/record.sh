# Records name, size and time of the files of the driver's $version: $programs, if they exist, and libraries.
# $theirs: whether somebody else installed it.
: "${version:?}"
: "${record:?}"
: "${programs:?}"
: "${theirs:?}"
library=$(ldconfig -p | sed -n 's/^.*libcuda\.so\.1 (libc6,x86-64.*=> //p' | head -n 1)
mkdir -p "${record%/*}"
eval "set -- $programs"
for file in "$@" "${library%/*}"/lib*.so."$version"; do
  if [ -e "$file" ]; then stat -c '%n|%s|%Y' "$file"; fi
done >"$record.new"
sync "$record.new"
if [ "$theirs" = yes ]; then : >"$record.theirs"; else rm -f "$record.theirs"; fi
mv -f "$record.new" "$record"
