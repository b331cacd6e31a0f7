for file in /usr/bin/dockerd /usr/local/bin/dockerd /snap/bin/docker /usr/bin/podman /usr/local/bin/podman /usr/bin/nerdctl; do
  [ ! -x "$file" ] || row engine "$file"
done
for file in /etc/cdi/*nvidia* /var/run/cdi/*nvidia*; do [ ! -f "$file" ] || row cdi "$file"; done
