# The disk quotas of people's files: "filesystem TARGET TYPE OPTIONS" of where they are, "tools absent" where nothing can
# set any, "limit PROJECT KIB" of each project that has one, "project ID FLAGS DIRECTORY" of each workspace; "end" as the
# last line.
: "${directory:?}"
place=$directory
while [ ! -d "$place" ]; do
  place=${place%/*}
  place=${place:-/}
done
filesystem=$(findmnt -nro TARGET,FSTYPE,OPTIONS -T "$place" | tail -n 1)
echo "filesystem $filesystem"
case $filesystem in
*prjquota* | *pquota*)
  if command -v setquota >/dev/null 2>&1; then
    timeout 30 repquota -Pn -O csv -- "${filesystem%% *}" 2>/dev/null |
      awk -F, '$1 ~ /^#[0-9]+$/ && $6 + 0 > 0 { print "limit", substr($1, 2), $6 }'
  else
    echo "tools absent"
  fi
  for folder in "$directory"/*/*/; do
    [ ! -d "$folder" ] || [ -L "${folder%/}" ] || lsattr -pd -- "${folder%/}" 2>/dev/null | sed 's/^ */project /'
  done
  ;;
esac
echo end
