# The dkms.conf of this version that do not say AUTOINSTALL=yes, as DKMS reads it: a line each. Without a process.
: "${version:?}"
for conf in "/usr/src/nvidia"*"-$version/dkms.conf"; do
  [ -r "$conf" ] || continue
  value=
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in AUTOINSTALL=*) value=${line#*=} value=${value#[\"\']} ;; esac
  done <"$conf"
  case $value in [Yy]*) ;; *) echo "$conf" ;; esac
done
