# What the next boot will do with the host's own files: "cycle LINE" of units that wait for each other, "sshd LINE" where
# it does not start with its configuration, "target NAME" that is booted, "lacks UNIT STATE" of those that Docker or sshd
# requires, "scheduled KEY VALUE" of a shutdown that is, "limit FILE:NUMBER:TEXT" of what logins may not exceed, and
# "sysctl FILE KEY VALUE" of settings of the kernel, the last file of each key, "memory KIB PAGE_KIB".
SYSTEMD_COLORS=0 timeout -k 1 20 systemd-analyze verify --man=no default.target 2>&1 |
  grep -E 'ordering cycle|Found dependency on|break cycle' | head -n 12 | cut -c 1-300 | sed 's/^/cycle /'
if ! said=$(timeout 10 "$(command -v sshd || echo /usr/sbin/sshd)" -t 2>&1); then
  printf '%s\n' "$said" | grep -v 'privilege separation directory' | head -n 5 | cut -c 1-300 | sed 's/^/sshd /'
fi
echo "target $(systemctl get-default)"
required=$(systemctl show -p Requires -p BindsTo --value docker.service containerd.service ssh.service)
# shellcheck disable=SC2086  # a list of units
systemctl show -p Id -p LoadState -- $required |
  awk -F= '$1 == "Id" { id = $2 } $1 == "LoadState" && $2 != "loaded" { print "lacks", id, $2 }'
if [ -e /run/systemd/shutdown/scheduled ]; then
  while IFS='=' read -r key value; do
    case $key in USEC | MODE) printf 'scheduled %s %s\n' "$key" "$value" ;; esac
  done </run/systemd/shutdown/scheduled
fi
grep -anHsE '^[[:space:]]*[^#[:space:]]+[[:space:]]+(hard|-)[[:space:]]+(as|nproc|nofile)[[:space:]]+[0-9]+' \
  /etc/security/limits.conf /etc/security/limits.d/*.conf | cut -c 1-300 | sed 's/^/limit /'
grep -anHsE '^[[:space:]]*ulimit[[:space:]]+(-[SH]+[[:space:]]+)?-[SH]*[vun][[:space:]]+[0-9]+' \
  /etc/profile /etc/profile.d/*.sh /etc/bash.bashrc | cut -c 1-300 | sed 's/^/limit /'
SYSTEMD_COLORS=0 systemd-analyze cat-config sysctl.d 2>/dev/null | awk '
  /^# \// { file = $2; next }
  /^[ \t]*[#;]/ { next }
  match($0, /=/) {
    key = substr($0, 1, RSTART - 1); value = substr($0, RSTART + 1); gsub(/[ \t]/, "", key); sub(/^-/, "", key)
    gsub(/^[ \t]+|[ \t]+$/, "", value); gsub("/", ".", key)
    if (key ~ /^(vm\.overcommit_memory|vm\.nr_hugepages|kernel\.pid_max|kernel\.threads-max|kernel\.modules_disabled)$/) {
      last[key] = value; where[key] = file } }
  END { for (key in last) print "sysctl", where[key], key, last[key] }'
awk '$1 == "MemTotal:" { kib = $2 } $1 == "Hugepagesize:" { page = $2 }
  END { print "memory", kib + 0, page + 0 }' /proc/meminfo
exit 0
