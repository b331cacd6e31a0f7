# The host's offset from UTC in the first line, then the sources: from each at most 200 lines about Xids, lost cards and
# the loading of the module, and 200 others, so that a flood of one kind does not displace the other. A journal without
# a single kernel line does not count: containers and some logging services have such journals.
#
# Only what the kernel itself wrote counts. Everybody's process can write into its buffer, too, through journald's socket
# (systemd/systemd#24139): the kernel gives that another facility. A file of rsyslog's holds what came by /dev/log with
# the kernel's tag and facility, so it counts only for the time before the journal begins, which is the line "since".
date +%z
newest() { awk -v lines="$1" '
/^status=[0-9]+$/ { status = substr($0, 8); next }
$0 !~ lines { next }
!first { first = $1 }
/NVRM: (Xid|loading|The NVIDIA GPU|GPU .* lost)|fallen off the bus|Nvlink Core is being initialized/ {
  delete keep[weighty[w % 200]]; weighty[w++ % 200] = NR; keep[NR] = substr($0, 1, 300); next }
/NVRM|[Nn]vidia|nouveau|Required key not available|module verification failed|unsigned module|PKCS#7 signature/ {
  delete keep[other[o % 200]]; other[o++ % 200] = NR; keep[NR] = substr($0, 1, 300) }
END { if (first) print "since " first; for (n = 1; n <= NR; n++) if (n in keep) print keep[n]; exit status }'; }
read=1
if timeout 10 journalctl -q --no-pager -n 1 -o cat _TRANSPORT=kernel SYSLOG_FACILITY=0 | grep -q .; then
  echo 'source journal'
  { timeout 15 journalctl -q --no-pager -o short-iso _TRANSPORT=kernel SYSLOG_FACILITY=0 --since=-7d
    printf '\nstatus=%s\n' $?; } | newest . && read=0
fi
for file in /var/log/kern.log.1 /var/log/kern.log; do
  [ -f "$file" ] && [ -r "$file" ] || continue
  echo 'source file'
  { timeout 10 tail -c 33554432 "$file"; printf '\nstatus=%s\n' $?; } |
    newest '^([A-Z][a-z][a-z] +[0-9]+ [0-9:]+|[0-9][0-9T:.+Z-]+) ([^ :]+ )?kernel:' && read=0
done
exit $read
