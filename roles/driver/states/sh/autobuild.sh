# What keeps DKMS from building the driver's module for the next kernel, a line each: "off FILE" where its own dkms.conf
# does not say AUTOINSTALL, "theirs FILE" where a file that wins over it says no, "hook FILE" where the kernel packages
# do not call DKMS. Without a process.
: "${version:?}"
# said FILE: what the last AUTOINSTALL of a file says, without quotes and in small letters as far as it counts
said() {
  value=
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in AUTOINSTALL=*) value=${line#*=} value=${value#[\"\']} ;; esac
  done <"$1"
}
built=
for conf in "/usr/src/nvidia"*"-$version/dkms.conf"; do
  [ -r "$conf" ] || continue
  built=yes
  said "$conf"
  case $value in [Yy]*) ;; *) echo "off $conf" ;; esac
done
[ -n "$built" ] || exit 0
for conf in /etc/dkms/nvidia*.conf; do
  [ -r "$conf" ] || continue
  said "$conf"
  case $value in '' | [Yy]*) ;; *) echo "theirs $conf" ;; esac
done
hook=/etc/kernel/postinst.d/dkms
[ -x "$hook" ] || [ ! -d "${hook%/*}" ] || echo "hook $hook"
exit 0
