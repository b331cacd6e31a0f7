# What the next boot will do with the host's own files: "cycle LINE" of units that wait for each other, "sshd LINE" where
# it does not start with its configuration, "unstarted WORDS" where no boot starts it, "nologin FILE: TEXT" of a file that keeps
# everybody but root out, "target NAME" that is booted, "lacks UNIT STATE BY" of those that Docker or sshd
# requires, "unit UNIT KEY=NUMBER" of limits of units, "sleeps FILE KEY=VALUE" of what logind does to an idle host, "unresolved
# NAME" of the host's own, "closed PATH MODE" of libraries, and of what profile.d names, that only root reaches,
# "scheduled KEY VALUE" of a shutdown that is, "limit FILE:NUMBER:TEXT" of what logins may not exceed, and
# "sysctl FILE KEY VALUE" of settings of the kernel, the last file of each key, "memory KIB PAGE_KIB".
SYSTEMD_COLORS=0 SYSTEMD_LOG_COLOR=0 timeout -k 1 20 systemd-analyze verify --man=no default.target 2>&1 |
  awk '/ordering cycle|Found dependency on|break cycle/ && n++ < 12 { print "cycle", substr($0, 1, 300) }'
if ! said=$(timeout 10 "$(command -v sshd || echo /usr/sbin/sshd)" -t 2>&1); then
  printf '%s\n' "$said" | grep -v 'privilege separation directory' | head -n 5 | cut -c 1-300 | sed 's/^/sshd /'
fi
echo "target $(systemctl get-default)"
started=$(systemctl is-enabled ssh.service sshd.service ssh.socket sshd.socket 2>/dev/null) || : # one is unknown
case $started in
  *enabled* | *alias* | *static* | *generated* | *linked*) ;;
  *disabled* | *masked*) printf 'unstarted ssh.service is %s\n' "${started%%[!a-z-]*}" ;;
esac
if [ -e /etc/nologin ]; then printf 'nologin /etc/nologin: %s\n' "$(head -c 200 /etc/nologin | tr '\n' ' ')"; fi
shown=$(systemctl show -p Id -p Requires -p BindsTo -p TasksMax -p LimitNPROC -p LimitNOFILE -p LimitAS \
  docker.service containerd.service ssh.service user.slice user-1000.slice)
set --
for unit in $shown; do
  case $unit in Requires=* | BindsTo=*) unit=${unit#*=} ;; *=*) continue ;; esac
  if [ -n "$unit" ]; then set -- "$@" "$unit"; fi
done
{ printf '%s\n\n' "$shown" && systemctl show -p Id -p LoadState -- "$@"; } | awk -F= '
  $1 == "Id" { id = $2 }
  $1 == "Requires" || $1 == "BindsTo" { n = split($2, unit, " "); for (i = 1; i <= n; i++) by[unit[i]] = id }
  $1 == "LoadState" && $2 != "loaded" { print "lacks", id, $2, by[id] }
  /^[A-Z][A-Za-z]*=[0-9]+$/ { row[rows++] = $0 }
  $0 == "" { for (i = 0; i < rows; i++) print "unit", id, row[i]; rows = 0 }'
if grep -qs '^IdleAction=' /etc/systemd/logind.conf /etc/systemd/logind.conf.d/*.conf \
  /run/systemd/logind.conf.d/*.conf /usr/lib/systemd/logind.conf.d/*.conf; then
  SYSTEMD_COLORS=0 systemd-analyze cat-config systemd/logind.conf 2>/dev/null | awk '
    /^# \// { file = $2 } /^IdleAction=/ { last = "sleeps " file " " $1 } END { if (last) print last }'
fi
read -r name </proc/sys/kernel/hostname
timeout 5 getent ahosts "$name" >/dev/null || echo "unresolved $name"
# each path with the directories above it: users need to pass a directory, and to read a file
closed=$({
  ldconfig -p | sed -n 's/.* => //p'
  grep -ohE '/(usr|opt)/[][A-Za-z0-9._+/-]+' /etc/environment /etc/profile.d/*.sh
  for link in /usr/local/* /opt/*; do [ ! -h "$link" ] || printf '%s\n' "$link"; done
  printf '%s\n' /etc/profile.d/*.sh /etc/ld.so.cache
} 2>/dev/null | timeout -k 1 10 xargs -r realpath -qe -- | awk -F/ '{
  path = ""; for (i = 2; i <= NF; i++) if (!seen[path = path "/" $i]++) print path }' |
  timeout -k 1 10 xargs -r stat -c '%a %G %F %n' 2>/dev/null | awk '
    $2 == "root" && !($1 % 2) && $3 == "directory" { print "closed", $4, $1 }
    $2 == "root" && $1 % 10 < 4 && $3 == "regular" { print "closed", $NF, $1 }')
[ -z "$closed" ] || printf '%s\n' "$closed" | sort | head -n 6
if [ -e /run/systemd/shutdown/scheduled ]; then
  while IFS='=' read -r key value; do
    case $key in USEC | MODE) printf 'scheduled %s %s\n' "$key" "$value" ;; esac
  done </run/systemd/shutdown/scheduled
fi
limits=$(
  grep -anHsE '^[[:space:]]*[^#[:space:]]+[[:space:]]+(hard|-)[[:space:]]+(as|nproc|nofile)[[:space:]]+[0-9]+' \
    /etc/security/limits.conf /etc/security/limits.d/*.conf
  grep -anHsE '^[[:space:]]*ulimit[[:space:]]+(-[SH]+[[:space:]]+)?-[SH]*[vun][[:space:]]+[0-9]+' \
    /etc/profile /etc/profile.d/*.sh /etc/bash.bashrc
) || : # usually none
[ -z "$limits" ] || printf '%s\n' "$limits" | cut -c 1-300 | sed 's/^/limit /'
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
