# What keeps DKMS from building the driver's module for the next kernel, a line each: "off FILE" where its own dkms.conf
# does not say AUTOINSTALL, "theirs FILE" where a file that wins over it says no, "hook FILE" where the kernel packages
# do not call DKMS. Without a process. said FILE: sets $value to what the last AUTOINSTALL of a file says, without the
# quote before it.
: "${version:?}"
said() {
  value=
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in AUTOINSTALL=*) value=${line#*=} value=${value#[\"\']} ;; esac
  done <"$1"
}
built=
for conf in "/usr/src/nvidia"*"-$version/dkms.conf"; do
  if [ -r "$conf" ]; then built=yes; else continue; fi
  said "$conf"
  case $value in [Yy]*) ;; *) echo "off $conf" ;; esac
done
for conf in /etc/dkms/nvidia*.conf; do
  if [ -z "$built" ] || [ ! -r "$conf" ]; then continue; fi
  said "$conf"
  case $value in '' | [Yy]*) ;; *) echo "theirs $conf" ;; esac
done
hook=/etc/kernel/postinst.d/dkms
if [ -n "$built" ] && [ -d "${hook%/*}" ] && [ ! -x "$hook" ]; then echo "hook $hook"; fi
