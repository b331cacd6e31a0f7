# What CDI specifications of NVIDIA's say, and what of it is not so on this host.
# It needs `most`: how many files that are gone are named of each specification.
# shellcheck disable=SC2013,SC2016  # IFS parts lines; the program is awk's
: "${most:?}"

# For /proc/devices and a specification in YAML, as the toolkit writes it: `version V`, `node DEVICE`, `file PATH` for each
# library that is mounted and bears the driver's version (any other file is the driver's concern), and `number DEVICE HAVE
# IS` for a device file whose major number is not the one under which the kernel has its driver.
cdi_program='
  function driver(device) {
    if (device ~ /^\/dev\/nvidia-uvm(-tools)?$/) return "nvidia-uvm"
    if (device ~ /^\/dev\/nvidia-caps\//) return "nvidia-caps"
    if (device ~ /^\/dev\/nvidia(ctl|-modeset|[0-9]+)$/) return "nvidia"
    return ""
  }
  function ends() {
    if (path ~ /^\/dev\//) {
      device = host == "" ? path : host
      print "node " device
      name = driver(device)
      if (name in majors && major ~ /^[0-9]+$/ && major + 0 != majors[name])
        print "number " device " " major " " majors[name]
    } else if (path == "" && host ~ /\.so\.[0-9]+\.[0-9]+/) print "file " host
    path = host = major = ""
  }
  FILENAME == "/proc/devices" {
    if ($2 == "nvidia-frontend") $2 = "nvidia"
    if ($1 ~ /^[0-9]+$/ && $2 ~ /^nvidia/) majors[$2] = $1
    next
  }
  FNR > 100000 { exit }
  /^ *- / { ends(); sub(/- /, "  ") }
  /^ *[A-Za-z]+: *$/ || /^[^ ]/ { ends() }
  {
    key = $1; value = $2
    gsub(/["\047,]/, "", value)
    if (key == "cdiVersion:") print "version " value
    else if (key == "path:") path = value
    else if (key == "hostPath:") host = value
    else if (key == "major:") major = value
  }
  END { ends() }'

# What is wrong with the specification that nvidia-cdi-refresh writes, on a host with cards: `absent`, `number …` as above,
# `missing PATH`, `lacks DEVICE`; `disabled` where it is not written at boot. `unlisted` instead where nvidia-smi lists no
# card: the unit asks that first, and ends there. So it does where the toolkit is there and no device file of a card.
cdi_refreshed() {
  for card in /dev/nvidia[0-9]*; do
    [ -e "$card" ] && break
    if [ -e /lib/systemd/system/nvidia-cdi-refresh.path ]; then echo unlisted; fi
    return 0
  done
  flaws=
  cdi_wrong >/dev/null
  [ -n "$flaws" ] || return 0
  case $(timeout -k 1 20 nvidia-smi -L 2>/dev/null) in
    'GPU '*) cdi_wrong ;;
    *) echo unlisted ;;
  esac
}

flaw() { flaws=yes; echo "$1"; }

# The unit's file of variables may say another place. It sets $flaws where anything is wrong.
cdi_wrong() {
  [ -e /etc/systemd/system/multi-user.target.wants/nvidia-cdi-refresh.service ] || flaw disabled
  spec=/var/run/cdi/nvidia.yaml nodes=' ' left=$most
  while read -r line; do
    case $line in NVIDIA_CTK_CDI_OUTPUT_FILE_PATH=/?*) spec=${line#*=} ;; esac
  done 2>/dev/null </etc/nvidia-container-toolkit/nvidia-cdi-refresh.env || :
  if [ ! -f "$spec" ]; then flaw absent; return 0; fi
  IFS='
'
  set -f
  for line in $(awk "$cdi_program" /proc/devices "$spec"); do
    case $line in
      number\ *) flaw "$line" ;;
      node\ *) nodes="$nodes${line#node } " ;;
      file\ *)
        if [ "$left" -gt 0 ] && [ ! -e "${line#file }" ]; then flaw "missing ${line#file }"; left=$((left - 1)); fi ;;
    esac
  done
  for node in /dev/nvidiactl /dev/nvidia-uvm; do
    case $nodes in
      *" $node "*) ;;
      *) [ ! -c "$node" ] || flaw "lacks $node" ;;
    esac
  done
}

# `version SPEC V`, `number SPEC DEVICE HAVE IS` and `missing SPEC PATH` of all specifications of NVIDIA's, also those that
# somebody wrote, in JSON too. Hosts without any cost no process.
cdi_all() {
  for spec in /etc/cdi/*.yaml /etc/cdi/*.json /var/run/cdi/*.yaml /var/run/cdi/*.json; do
    if [ ! -f "$spec" ] || ! grep -qE '^.{0,9}kind"?: *["'\'']?nvidia[.]com/' "$spec"; then continue; fi
    head -c 1048576 "$spec" | grep -oE 'hostPath"?: *["'\'']?/[^"'\'' ,]+' | sed 's/^[^/]*//' | sort -u | {
      left=$most
      while read -r path; do
        if [ "$left" -gt 0 ] && [ ! -e "$path" ]; then echo "missing $spec $path"; left=$((left - 1)); fi
      done
    }
    awk "$cdi_program" /proc/devices "$spec" | sed -nE "s|^(number\|version) |\1 $spec |p"
  done
}
