"""No NVIDIA driver from a ``.run``, whether it was there whole or half; a distribution's driver is left alone.

What belongs to such a driver is decided by what lies on the host and by no package: libraries that are named after a
driver's version, the installer's own programs, records and blacklist, DKMS's entries and what they built. Programs and
data whose names say less count where there is also one of those, or where our record of the installation names them as
they are: what the uninstaller gave back to whoever had it before stays.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hostwright.common.quoting import sh, words
from hostwright.plan.model import Change, Facts, Probe, Refusal, Resource, Step
from hostwright.plan.state_identity import NO_IDENTITY
from hostwright.resources.files.paths import ABSENT, few
from hostwright.standard.roles.driver.states import steps
from hostwright.standard.roles.driver.states.gpu_use import DISPLAY, display

#: What it does to those who use the GPU.
TAKES = "takes the driver away"

LIBRARY_DIRECTORIES = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu/vdpau", "/usr/lib64", "/usr/lib",
                       "/usr/lib/i386-linux-gnu", "/usr/lib32")  # fmt: skip

#: Names of the libraries of R470's archive, but for those that other vendors' have too (libOpenCL, glvnd's).
_LIBRARIES = (
    "libcuda.so*", "libcudadebugger.so*", "libnvidia-*.so*", "libnvcuvid.so*", "libnvoptix.so*", "libGLX_nvidia.so*",
    "libEGL_nvidia.so*", "libGLESv1_CM_nvidia.so*", "libGLESv2_nvidia.so*", "libvdpau_nvidia.so*",
)  # fmt: skip

#: The installer's own: nobody else has such files.
_INSTALLER = (
    "/usr/bin/nvidia-installer", "/usr/bin/nvidia-uninstall", "/var/lib/nvidia",
    "/etc/modprobe.d/nvidia-installer-disable-nouveau.conf",
    "/usr/lib/modprobe.d/nvidia-installer-disable-nouveau.conf",
)  # fmt: skip

#: What the archive also brings, as shell patterns.
_REST = (
    *(f"/usr/bin/{name}" for name in steps.PROGRAMS),
    "/usr/bin/nvidia-bug-report.sh", "/usr/bin/nvidia-debugdump", "/usr/bin/nvidia-ngx-updater",
    "/usr/bin/nvidia-powerd", "/usr/bin/nvidia-sleep.sh", "/usr/bin/nvidia-settings", "/usr/bin/nvidia-xconfig",
    "/usr/lib/x86_64-linux-gnu/libnvidia-egl-wayland.so*", "/usr/lib/xorg/modules/drivers/nvidia_drv.so",
    "/usr/lib/xorg/modules/extensions/libglxserver_nvidia.so*", "/etc/OpenCL/vendors/nvidia.icd",
    "/usr/share/doc/NVIDIA_GLX-1.0", "/usr/share/glvnd/egl_vendor.d/10_nvidia.json",
    "/usr/share/vulkan/icd.d/nvidia_icd.json", "/usr/share/vulkan/implicit_layer.d/nvidia_layers.json",
    "/usr/share/egl/egl_external_platform.d/10_nvidia_wayland.json",
    "/usr/share/X11/xorg.conf.d/nvidia-drm-outputclass.conf", "/usr/share/nvidia/nvidia-application-profiles-*",
)  # fmt: skip

#: Sources that a distribution's packages bring to DKMS (Ubuntu's, then Debian's); not those of nvidia-fs.
_PACKAGED_SOURCES = tuple(
    f"/usr/src/nvidia-{name}*" for name in ("[0-9]", "current-", "tesla-", "legacy-", "open-", "kernel-")
)

#: Directories that the archive's data are the first to need, each before the one above it.
_FOLDERS = (
    "/etc/OpenCL/vendors", "/etc/OpenCL", "/usr/share/nvidia", "/usr/share/glvnd/egl_vendor.d", "/usr/share/glvnd",
    "/usr/share/vulkan/icd.d", "/usr/share/vulkan/implicit_layer.d", "/usr/share/vulkan",
    "/usr/share/egl/egl_external_platform.d", "/usr/share/egl",
)  # fmt: skip

_NAMES = " -o ".join(sh("-name %s", name) for name in _LIBRARIES)

#: ``unowned`` passes on the paths that no package owns; dpkg is asked once, since each question takes it 40 ms, and
#: under both names where /lib leads to /usr/lib.
#: ``versioned`` and ``linked`` are the libraries' files and the links to them (or into nothing): the links of a
#: distribution's driver belong to its packages, or lead to another directory. ``entries`` are DKMS's, by version.
#: A module that DKMS built for a package, or that lies in one, is that package's.
#: Nothing unowned, and directories that are not there, are no errors: grep and find end with 1 for them.
_LOOK = f"""\
both() {{ sed 'p; s,^/usr/lib/,/lib/,; t; s,^/lib/,/usr/lib/,'; }}
unowned() {{
  paths=$(cat)
  [ -n "$paths" ] || return 0
  owned=$(printf '%s\\n' "$paths" | both | xargs -d '\\n' dpkg-query -S -- 2>/dev/null | sed 's/^[^/]*: //' | both)
  printf '%s\\n' "$paths" | grep -vxF -e "$owned" || true
}}
there() {{ for path; do if [ -e "$path" ] || [ -L "$path" ]; then printf '%s\\n' "$path"; fi; done; }}
libraries() {{
  find {words(LIBRARY_DIRECTORIES)} -maxdepth 1 ! -name 'libnvidia-container*' \\( {_NAMES} \\) "$@" 2>/dev/null || true
}}
versioned() {{
  libraries -type f -regextype posix-extended -regex '.*[.]so[.][0-9]{{3}}[.][0-9]+([.][0-9]+)?' | unowned
}}
linked() {{
  files=$(versioned)
  libraries -type l ! -lname '*/*' | while read -r link; do
    to=$(readlink -m -- "$link")
    if [ ! -e "$to" ] || printf '%s\\n' "$files" | grep -qxF -e "$to"; then printf '%s\\n' "$link"; fi
  done | unowned
}}
packaged() {{
  [ -z "$(dpkg-query -S -- {words(_PACKAGED_SOURCES)} 2>/dev/null)" ] || return 0
  module=$(modinfo -F filename nvidia 2>/dev/null) && dpkg-query -S -- "$module" >/dev/null 2>&1
}}
entries() {{
  for entry in /var/lib/dkms/nvidia/*/; do
    entry=${{entry%/}}
    if [ -L "$entry" ] || [ ! -d "$entry" ]; then continue; fi
    dpkg-query -S -- "/usr/src/nvidia-${{entry##*/}}" >/dev/null 2>&1 || printf '%s\\n' "${{entry##*/}}"
  done
}}
modules() {{
  if packaged; then return 0; fi
  find /lib/modules/*/updates /lib/modules/*/kernel/drivers/video -regextype posix-extended \\
    -regex '.*/nvidia(-uvm|-modeset|-drm|-peermem)?[.]ko([.](xz|zst|gz))?' 2>/dev/null | unowned
  if [ -d /var/lib/dkms/nvidia ] && [ -z "$(entries)" ]; then echo /var/lib/dkms/nvidia; fi
}}
sure() {{
  there {words(_INSTALLER)} | unowned
  there /usr/src/nvidia-[0-9]*.[0-9]* /lib/firmware/nvidia/[0-9]*.[0-9]* | unowned
  versioned
  linked
  modules
}}
recorded() {{
  [ -e {steps.RECORD} ] || return 0
  cut -d'|' -f1 {steps.RECORD} | xargs -r -d '\\n' stat -c '%n|%s|%Y' 2>/dev/null | grep -xF -f {steps.RECORD} |
    cut -d'|' -f1 | unowned
}}
driver_files() {{
  certain=$(sure)
  {{
    printf '%s\\n' "$certain"
    recorded
    if [ -n "$certain$(entries)" ]; then there {" ".join(_REST)} | unowned; fi
  }} | sort -u | sed '/^$/d'
}}
marks() {{ there {steps.INSTALLING} {steps.RECORD} {steps.RECORD}.new; }}
"""

#: ``key=value`` lines.
STATE = Probe(
    _LOOK
    + """\
if [ -d /sys/module/nvidia ] && ! packaged; then echo "loaded=$(cat /sys/module/nvidia/version)"; fi
entries | sed 's/^/dkms=/'
driver_files | sed 's/^/file=/'
marks | sed 's/^/mark=/'
exit 0
""",
    root=True,
    cap_bytes=256 * 1024,
)

#: The uninstaller gives back what it found when it came; it ends with 1 where nothing is registered ("No driver backed
#: up."), or cannot run at all. What is left goes by name, the records last: with them a step that was cut begins again.
#: A tree that was cut off `dkms remove` cannot take away, so its directory goes; not every kernel has updates/dkms.
_TAKE_AWAY = f"""\
if [ -x /usr/bin/nvidia-uninstall ] && [ -n "$(echo /usr/bin/nvidia-uninstall | unowned)" ]; then
  nvidia-uninstall -s || echo "hostwright: nvidia-uninstall ended with status $?: what it left goes by name"
fi
for version in $(entries); do
  dkms remove -m nvidia -v "$version" --all || true
  rm -rf -- "/var/lib/dkms/nvidia/$version"
done
driver_files | xargs -r -d '\\n' rm -rf --
if [ -d /var/lib/dkms/nvidia ] && ! packaged; then rm -rf /var/lib/dkms/nvidia; fi
for tree in /lib/modules/*/; do
  tree=${{tree%/}}
  rmdir --ignore-fail-on-non-empty "$tree/updates/dkms" "$tree/updates" 2>/dev/null || true
  if [ -e "$tree/modules.dep" ]; then depmod -a "${{tree##*/}}"; fi
done
there {words(_FOLDERS)} | unowned | xargs -r -d '\\n' -n 1 rmdir --ignore-fail-on-non-empty --
ldconfig
rm -f -- {steps.INSTALLING} {steps.RECORD} {steps.RECORD}.new
"""


@dataclass(frozen=True, slots=True)
class Remains:
    """What a host has of a driver from a ``.run``."""

    loaded: str  #: version of the module in the kernel, ``unknown`` where it does not say; empty when there is none
    dkms: tuple[str, ...]  #: versions that DKMS would build for the next kernel
    files: tuple[str, ...]
    marks: tuple[str, ...]  #: our own records of it

    @classmethod
    def read(cls, text: str) -> Remains:
        """The remains in the answer to ``STATE``."""
        found: dict[str, list[str]] = {"loaded": [], "dkms": [], "file": [], "mark": []}
        for line in text.splitlines():
            key, equals, value = line.partition("=")
            if equals and key in found and (value or key == "loaded"):
                found[key].append(value)
        loaded = (found["loaded"][0].strip() or "unknown") if found["loaded"] else ""
        return cls(loaded, tuple(found["dkms"]), tuple(found["file"]), tuple(found["mark"]))

    def __str__(self) -> str:
        parts = [
            *([f"module {self.loaded} in the kernel"] if self.loaded else []),
            *([f"DKMS entry {', '.join(self.dkms)}"] if self.dkms else []),
            *([few(list(self.files))] if self.files else []),
            *([few(list(self.marks))] if self.marks else []),
        ]
        return "; ".join(parts) or ABSENT


@dataclass(frozen=True, slots=True)
class DriverGone:
    """Nothing of a driver from a ``.run``: no module in the kernel or on disk, no DKMS entry, no file, no record.

    ``force`` ends the processes and the display that use the GPU; without it the module stays in the kernel while it
    is in use, the step fails with who uses it, and a host with a display is refused. The installer's logs stay.
    """

    force: bool = field(default=False, metadata=NO_IDENTITY)

    def probes(self) -> tuple[Probe, ...]:
        return (STATE, DISPLAY)

    def plan(self, facts: Facts) -> Change | Refusal | None:
        remains = Remains.read(facts[STATE].text)
        if str(remains) == ABSENT:
            return None
        what, have = "NVIDIA driver", str(remains)
        shown = "" if self.force or not remains.loaded else display(facts)
        if shown:
            sentence = (
                f"the driver must be taken away and the GPU shows a screen ({shown}): "
                "end that first, or set driver_force: true to have it ended"
            )
            return Refusal(what, have, ABSENT, "display", sentence)
        unload = Step(steps.unload(force=self.force, build=False), timeout_s=300)
        todo = (*((unload,) if remains.loaded else ()), Step(_LOOK + _TAKE_AWAY))
        return Change(what, have, ABSENT, todo, disturbs=TAKES if remains.loaded and not self.force else "")

    def removal(self) -> tuple[Resource, ...]:
        return ()
