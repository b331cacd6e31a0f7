# What the journal has that nobody reads: "unit UNIT: LINE" for the last $lines lines of failed units, at most $most of
# them and with "failed UNIT RESULT" and "needs UNIT: UNITS" that require it before them, and "kernel LINE" for the last
# $lines words of the kernel's since the boot about hardware, disks and memory.
: "${lines:?}"
: "${most:?}"
: "${words:?}"
systemctl list-units --state=failed --plain --no-legend --no-pager | head -n "$most" |
  while read -r unit _; do
    systemctl show -p Result -p RequiredBy -- "$unit" |
      while IFS='=' read -r key value; do
        case $key:$value in
          Result:*) printf 'failed %s %s\n' "$unit" "$value" ;;
          RequiredBy:?*) printf 'needs %s: %s\n' "$unit" "$value" ;;
        esac
      done
    timeout -k 1 5 journalctl -q -b -u "$unit" -n "$lines" -o cat --no-pager </dev/null | cut -c 1-300 |
      while IFS= read -r line; do printf 'unit %s: %s\n' "$unit" "$line"; done
  done
since_boot() {
  if timeout 10 journalctl -q --no-pager -b -n 1 -o cat _TRANSPORT=kernel SYSLOG_FACILITY=0 | grep -q .; then
    timeout 15 journalctl -q --no-pager -o cat _TRANSPORT=kernel SYSLOG_FACILITY=0 -b --since=-7d
  elif [ -r /var/log/kern.log ]; then # of the last boot's lines on
    timeout 10 tail -c 8388608 /var/log/kern.log | sed -n 's/^.\{10,60\} kernel: \(\[[ 0-9.]*\] \)\{0,1\}//p' |
      awk '/^Linux version / { n = 0 } { line[n++ % 20000] = $0 }
        END { for (i = n > 20000 ? n - 20000 : 0; i < n; i++) print line[i % 20000] }'
  fi
}
since_boot | grep -aE "$words" | tail -n "$lines" | cut -c 1-300 | sed 's/^/kernel /'
exit 0
