# Removes what driver_files.sh finds; it uses that file's functions. The uninstaller restores the files that the
# installer replaced; it exits with 1 if nothing is registered ("No driver backed up."), or cannot run at all. The rest
# is removed by name, the records last, since an interrupted step needs them to start again. `dkms remove` cannot remove
# a truncated tree, so its directory is removed; not every kernel has updates/dkms. The directories at the end are those
# that may have been created for the archive's data, each before its parent.
if [ -x /usr/bin/nvidia-uninstall ] && [ -n "$(echo /usr/bin/nvidia-uninstall | unowned)" ]; then
  nvidia-uninstall -s || echo "hostwright: nvidia-uninstall ended with status $?: what it left goes by name"
fi
for version in $(entries); do
  dkms remove -m nvidia -v "$version" --all || true  # its tree goes below
  rm -rf -- "/var/lib/dkms/nvidia/$version"
done
driver_files | xargs -r -d '\n' rm -rf --
if [ -d /var/lib/dkms/nvidia ] && ! packaged; then rm -rf /var/lib/dkms/nvidia; fi
for tree in /lib/modules/*/; do
  tree=${tree%/}
  rmdir --ignore-fail-on-non-empty "$tree/updates/dkms" "$tree/updates" 2>/dev/null || true  # not every kernel has them
  if [ -e "$tree/modules.dep" ]; then depmod -a "${tree##*/}"; fi
done
there /etc/OpenCL/vendors /etc/OpenCL /usr/share/nvidia /usr/share/glvnd/egl_vendor.d /usr/share/glvnd \
  /usr/share/vulkan/icd.d /usr/share/vulkan/implicit_layer.d /usr/share/vulkan \
  /usr/share/egl/egl_external_platform.d /usr/share/egl | unowned |
  xargs -r -d '\n' -n 1 rmdir --ignore-fail-on-non-empty --
ldconfig
marks | xargs -r -d '\n' rm -f --
