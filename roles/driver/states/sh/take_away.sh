# Takes away what driver_files.sh, on whose functions it stands, finds. The uninstaller gives back what it
# found when it came; it ends with 1 where nothing is registered ("No driver backed up."), or cannot run at all. What is
# left goes by name, the records last: with them a step that was cut begins again. A tree that was cut off `dkms remove`
# cannot take away, so its directory goes; not every kernel has updates/dkms. The directories at the end are those that
# the archive's data are the first to need, each before the one above it.
if [ -x /usr/bin/nvidia-uninstall ] && [ -n "$(echo /usr/bin/nvidia-uninstall | unowned)" ]; then
  nvidia-uninstall -s || echo "hostwright: nvidia-uninstall ended with status $?: what it left goes by name"
fi
for version in $(entries); do
  dkms remove -m nvidia -v "$version" --all || true
  rm -rf -- "/var/lib/dkms/nvidia/$version"
done
driver_files | xargs -r -d '\n' rm -rf --
if [ -d /var/lib/dkms/nvidia ] && ! packaged; then rm -rf /var/lib/dkms/nvidia; fi
for tree in /lib/modules/*/; do
  tree=${tree%/}
  rmdir --ignore-fail-on-non-empty "$tree/updates/dkms" "$tree/updates" 2>/dev/null || true
  if [ -e "$tree/modules.dep" ]; then depmod -a "${tree##*/}"; fi
done
there /etc/OpenCL/vendors /etc/OpenCL /usr/share/nvidia /usr/share/glvnd/egl_vendor.d /usr/share/glvnd \
  /usr/share/vulkan/icd.d /usr/share/vulkan/implicit_layer.d /usr/share/vulkan \
  /usr/share/egl/egl_external_platform.d /usr/share/egl | unowned |
  xargs -r -d '\n' -n 1 rmdir --ignore-fail-on-non-empty --
ldconfig
marks | xargs -r -d '\n' rm -f --
