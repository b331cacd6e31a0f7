# The files on a host that belong to a driver from a .run, for removal.py: functions that print one path per line.
# `unowned` passes on the paths that no package owns; dpkg is run once, since each query takes 40 ms, and under both
# names if /lib is a link to /usr/lib.
# `versioned` and `linked` are the libraries' files and the links to them (or broken links): the links of a
# distribution's driver belong to its packages, or lead to another directory. The names are those of R470's archive,
# except those that other vendors use too (libOpenCL, glvnd's).
# `packaged` tells whether the module is a package's: DKMS built it for a package, from the sources in Ubuntu's or
# Debian's (not those of nvidia-fs), or a package contains it. `entries` are DKMS's, by version.
# `sure` are files that only the installer makes; `driver_files` adds those in our record and, together with any sure
# file, the archive's other files with less specific names.
# An empty result and missing directories are not errors, although grep and find exit with 1 for them.
: "${installing:?}"
: "${record:?}"
: "${programs:?}"
both() { sed 'p; s,^/usr/lib/,/lib/,; t; s,^/lib/,/usr/lib/,'; }
unowned() {
  paths=$(cat)
  [ -n "$paths" ] || return 0
  owned=$(printf '%s\n' "$paths" | both | xargs -d '\n' dpkg-query -S -- 2>/dev/null | sed 's/^[^/]*: //' | both)
  printf '%s\n' "$paths" | grep -vxF -e "$owned" || true  # all are owned
}
there() { for path; do if [ -e "$path" ] || [ -L "$path" ]; then printf '%s\n' "$path"; fi; done; }
libraries() {
  find /usr/lib/x86_64-linux-gnu /usr/lib/x86_64-linux-gnu/vdpau /usr/lib64 /usr/lib /usr/lib/i386-linux-gnu \
    /usr/lib32 -maxdepth 1 ! -name 'libnvidia-container*' \( -name 'libcuda.so*' -o -name 'libcudadebugger.so*' \
    -o -name 'libnvidia-*.so*' -o -name 'libnvcuvid.so*' -o -name 'libnvoptix.so*' -o -name 'libGLX_nvidia.so*' \
    -o -name 'libEGL_nvidia.so*' -o -name 'libGLESv1_CM_nvidia.so*' -o -name 'libGLESv2_nvidia.so*' \
    -o -name 'libvdpau_nvidia.so*' \) "$@" 2>/dev/null || true  # not every host has all of these directories
}
versioned() {
  libraries -type f -regextype posix-extended -regex '.*[.]so[.][0-9]{3}[.][0-9]+([.][0-9]+)?' | unowned
}
linked() {
  files=$(versioned)
  libraries -type l ! -lname '*/*' | while read -r link; do
    to=$(readlink -m -- "$link")
    if [ ! -e "$to" ] || printf '%s\n' "$files" | grep -qxF -e "$to"; then printf '%s\n' "$link"; fi
  done | unowned
}
packaged() {
  [ -z "$(dpkg-query -S -- '/usr/src/nvidia-[0-9]*' '/usr/src/nvidia-current-*' '/usr/src/nvidia-tesla-*' \
    '/usr/src/nvidia-legacy-*' '/usr/src/nvidia-open-*' '/usr/src/nvidia-kernel-*' 2>/dev/null)" ] || return 0
  module=$(modinfo -F filename nvidia 2>/dev/null) && dpkg-query -S -- "$module" >/dev/null 2>&1
}
entries() {
  for entry in /var/lib/dkms/nvidia/*/; do
    entry=${entry%/}
    if [ -L "$entry" ] || [ ! -d "$entry" ]; then continue; fi
    dpkg-query -S -- "/usr/src/nvidia-${entry##*/}" >/dev/null 2>&1 || printf '%s\n' "${entry##*/}"
  done
}
modules() {
  if packaged; then return 0; fi
  find /lib/modules/*/updates /lib/modules/*/kernel/drivers/video -regextype posix-extended \
    -regex '.*/nvidia(-uvm|-modeset|-drm|-peermem)?[.]ko([.](xz|zst|gz))?' 2>/dev/null | unowned
  if [ -d /var/lib/dkms/nvidia ] && [ -z "$(entries)" ]; then echo /var/lib/dkms/nvidia; fi
}
sure() {
  there /usr/bin/nvidia-installer /usr/bin/nvidia-uninstall /var/lib/nvidia \
    /etc/modprobe.d/nvidia-installer-disable-nouveau.conf \
    /usr/lib/modprobe.d/nvidia-installer-disable-nouveau.conf | unowned
  there /usr/src/nvidia-[0-9]*.[0-9]* /lib/firmware/nvidia/[0-9]*.[0-9]* | unowned
  versioned
  linked
  modules
}
recorded() {
  [ -e "$record" ] || return 0
  cut -d'|' -f1 "$record" | xargs -r -d '\n' stat -c '%n|%s|%Y' 2>/dev/null | grep -xF -f "$record" |
    cut -d'|' -f1 | unowned
}
others() {
  eval "there $programs"
  there /usr/bin/nvidia-bug-report.sh /usr/bin/nvidia-debugdump /usr/bin/nvidia-ngx-updater \
    /usr/bin/nvidia-powerd /usr/bin/nvidia-sleep.sh /usr/bin/nvidia-settings /usr/bin/nvidia-xconfig \
    /usr/lib/x86_64-linux-gnu/libnvidia-egl-wayland.so* /usr/lib/xorg/modules/drivers/nvidia_drv.so \
    /usr/lib/xorg/modules/extensions/libglxserver_nvidia.so* /etc/OpenCL/vendors/nvidia.icd \
    /usr/share/doc/NVIDIA_GLX-1.0 /usr/share/glvnd/egl_vendor.d/10_nvidia.json \
    /usr/share/vulkan/icd.d/nvidia_icd.json /usr/share/vulkan/implicit_layer.d/nvidia_layers.json \
    /usr/share/egl/egl_external_platform.d/10_nvidia_wayland.json \
    /usr/share/X11/xorg.conf.d/nvidia-drm-outputclass.conf /usr/share/nvidia/nvidia-application-profiles-*
}
driver_files() {
  certain=$(sure)
  {
    printf '%s\n' "$certain"
    recorded
    if [ -n "$certain$(entries)" ]; then others | unowned; fi
  } | sort -u | sed '/^$/d'
}
marks() { there "$installing" "$record" "$record.new" "$record.theirs"; }
