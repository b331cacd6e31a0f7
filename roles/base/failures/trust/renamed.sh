# `FILES<tab>ADDRESS<tab>FIELD<tab>BEFORE<tab>AFTER` for each repository that calls itself otherwise than in the lists that
# apt has of it. What apt fetched and did not accept stays in partial/ until an update succeeds.
export LC_ALL=C
value() { sed -n "/^\(MD5Sum\|SHA1\|SHA256\):/q; s/[[:cntrl:]]/ /g; s/^$1: \(.\{1,80\}\).*/\1/p" "$2" | head -n 1; }
for new in /var/lib/apt/lists/partial/*Release; do
  old=/var/lib/apt/lists/${new##*/}
  if ! [ -f "$new" ] || ! [ -f "$old" ]; then continue; fi
  address=${new##*/}
  address=$(printf '%s' "${address%_*}" | sed 's:_:/:g; s/%5f/_/gi')
  site=${address%/dists/*} site=${site%/.}
  files=$(grep -lsF -e "$site" /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources)
  for field in Origin Label Suite Codename; do
    before=$(value "$field" "$old") after=$(value "$field" "$new")
    [ "$before" = "$after" ] || printf '%s\t%s\t%s\t%s\t%s\n' "$(printf %s "$files" | tr '\n' ' ')" "$address" "$field" "$before" "$after"
  done
done
exit 0
