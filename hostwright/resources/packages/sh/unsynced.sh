# stopped: whether the host stopped before the files of the packages in $unsynced were on the disk: the list is of another
# boot. Without a process.
# synced: they are on the disk now.
: "${unsynced:?}"
stopped() {
  [ -e "$unsynced" ] && read -r boot <"$unsynced" && read -r now </proc/sys/kernel/random/boot_id && [ "$boot" != "$now" ]
}
synced() {
  sync -f / /usr /var /opt /boot
  rm -f "$unsynced"
}
