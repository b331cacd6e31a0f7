# The host's offset from UTC in the first line, then the sources: from each at most 200 lines about Xids, lost cards and
# the loading of the module, and 200 others, so that a flood of one kind does not displace the other. A journal without
# a single kernel line does not count: containers and some logging services have such journals.
date +%z
newest() { awk '
/^status=[0-9]+$/ { status = substr($0, 8); next }
/NVRM: (Xid|loading|The NVIDIA GPU|GPU .* lost)|fallen off the bus|Nvlink Core is being initialized/ {
  delete keep[weighty[w % 200]]; weighty[w++ % 200] = NR; keep[NR] = substr($0, 1, 300); next }
/NVRM|[Nn]vidia|nouveau|Required key not available|module verification failed|unsigned module|PKCS#7 signature/ {
  delete keep[other[o % 200]]; other[o++ % 200] = NR; keep[NR] = substr($0, 1, 300) }
END { for (n = 1; n <= NR; n++) if (n in keep) print keep[n]; exit status }'; }
read=1
if timeout 10 journalctl -q --no-pager -n 1 -o cat _TRANSPORT=kernel | grep -q .; then
  echo 'source journal'
  { timeout 15 journalctl -q --no-pager -o short-iso _TRANSPORT=kernel --since=-7d
    printf '\nstatus=%s\n' $?; } | newest && read=0
fi
for file in /var/log/kern.log.1 /var/log/kern.log; do
  [ -f "$file" ] && [ -r "$file" ] || continue
  echo 'source file'
  { timeout 10 tail -c 33554432 "$file"; printf '\nstatus=%s\n' $?; } | newest && read=0
done
exit $read
