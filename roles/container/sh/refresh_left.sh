# What nvidia-cdi-refresh left: `specification PATH`, and `link PATH` of each link that starts its units at boot. Those links
# and the units' own files tell whose the specification is: one that an operator wrote has neither. Packages before 1.18 have
# no units, and dpkg removes no link of systemd's when it unpacks such a one. Its file of variables may say another place.
spec=/var/run/cdi/nvidia.yaml theirs=
while read -r line; do
  case $line in NVIDIA_CTK_CDI_OUTPUT_FILE_PATH=/?*) spec=${line#*=} ;; esac
done 2>/dev/null </etc/nvidia-container-toolkit/nvidia-cdi-refresh.env || :
for link in /etc/systemd/system/*.wants/nvidia-cdi-refresh.*; do
  if [ -h "$link" ]; then theirs=1; echo "link $link"; fi
done
if [ -f /lib/systemd/system/nvidia-cdi-refresh.service ]; then theirs=1; fi
if [ -n "$theirs" ] && [ -f "$spec" ]; then echo "specification $spec"; fi
