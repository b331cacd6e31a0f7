"""The driver's device files, and the links to them in ``/dev/char``."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import dataclass

from hostwright.resources import Change, Facts, Probe, Resource, Step, few
from hostwright.roles import Pattern, sh_file

#: probe that prints the driver's device files and links, and module settings for device files (format: devices.sh)
DEVICES = Probe(sh_file(__file__, "devices.sh"), shared=True)

MAKE_DEVICES = sh_file(__file__, "make_devices.sh")

#: pattern of a line of ``find -ls``: mode, owner, group, device numbers and path of a device file
_LISTED = Pattern(
    r" *[0-9]+ +[0-9]+ (?P<mode>[-bcdlps][-rwxsStT]{9})[.+]? +[0-9]+ +\S+ +\S+"
    r" +(?:(?P<major>[0-9]{1,7}), *(?P<minor>[0-9]{1,7})|[0-9]+)"
    r" .{5,20} (?P<path>/dev/nvidia[a-z0-9/-]{0,60})(?: -> .*)?"
)
_NUMBER = Pattern(r"[0-9]{1,7}")
_EVERYBODY = 0o666  #: default mode of the driver's device files (NVreg_DeviceFileMode)
#: minor device numbers of the control file and of nvidia-modeset's file (nvidia-modprobe-utils.h)
_CONTROL, _MODESET = 255, 254
_ACCESS = "/dev/nvidia-caps/nvidia-cap"


@dataclass(frozen=True, slots=True)
class _File:
    """Device file that the driver should have. ``major``: major device number; empty if unknown."""

    path: str
    major: str
    minor: int
    mode: int | None = None  #: required mode of the device file; ``None``: any mode

    def flaw(self, listed: dict[str, tuple[str, str, str]]) -> str:
        if self.path not in listed:
            return f"no {self.path}"
        mode, major, minor = listed[self.path]
        if mode[0] != "c":
            return f"{self.path} is not a device file"
        if self.major and (major, minor) != (self.major, str(self.minor)):
            return f"{self.path} has the number {major}:{minor}, not {self.major}:{self.minor}"
        if self.mode is not None and mode != (wanted := stat.filemode(stat.S_IFCHR | self.mode)):
            return f"{self.path} has the mode {mode[1:]}, not {wanted[1:]}"
        return ""


@dataclass(frozen=True, slots=True)
class DeviceFiles(Resource):
    """The device files of the loaded driver exist, each with its number and mode.

    A setuid nvidia-modprobe creates the files of nvidia-modeset and nvidia-uvm on first use, so they may be missing.
    With ``NVreg_ModifyDeviceFiles=0``, this resource changes nothing.
    """

    def probes(self) -> tuple[Probe, ...]:
        return (DEVICES,)

    def plan(self, facts: Facts) -> Change | None:
        flaws = device_flaws(facts)
        if not flaws:
            return None
        wrong = tuple(flaw.partition(" ")[0] for flaw in flaws if flaw.startswith("/"))
        script = sh_file(__file__, "replace_devices.sh", wrong=wrong) + MAKE_DEVICES + _LINKED
        return Change("device files of the driver", few([*flaws]), "as the driver has them", (Step(script),))

    def removal(self) -> tuple[Resource, ...]:
        return ()  # unloading the driver's module removes the device files


#: shell code for links in /dev/char to new device files, on hosts with nvidia-ctk
_LINKED = """\
if command -v nvidia-ctk >/dev/null; then nvidia-ctk system create-dev-char-symlinks --create-all >/dev/null; fi
"""


def device_flaws(facts: Facts) -> tuple[str, ...]:
    """Return the faults of the driver's device files as texts ``no PATH``, ``PATH is …`` or ``PATH has …``."""
    text = facts[DEVICES].text
    rows = [line.partition(" ")[::2] for line in text.splitlines()]
    if ("ModifyDeviceFiles:", "0") in rows:
        return ()
    found = (match for line in text.splitlines() if (match := _LISTED.fullmatch(line)))
    listed = {match["path"]: (match["mode"], match["major"] or "", match["minor"] or "") for match in found}
    return tuple(flaw for file in _wanted(rows, listed) if (flaw := file.flaw(listed)))


def _wanted(rows: list[tuple[str, str]], listed: dict[str, tuple[str, str, str]]) -> Iterator[_File]:
    def all_of(key: str) -> list[str]:
        return [value for name, value in rows if name == key]

    majors = {name: number for name, _, number in (value.partition(" ") for value in all_of("major"))}
    front = next((majors[name] for name in ("nvidia", "nvidia-frontend") if name in majors), "")
    modes = [int(value) for value in all_of("DeviceFileMode:") if _NUMBER.fullmatch(value)]
    mode = modes[0] if modes else _EVERYBODY
    loaded, asked_for = all_of("loaded"), ("setuid", "") in rows
    if "nvidia" in loaded:
        yield _File("/dev/nvidiactl", front, _CONTROL, mode)
        for card in filter(_NUMBER.fullmatch, all_of("card")):
            yield _File(f"/dev/nvidia{card}", front, int(card), mode)
    uvm = ("/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")
    if "nvidia_uvm" in loaded and not (asked_for and not listed.keys() & set(uvm)):
        for minor, path in enumerate(uvm):
            yield _File(path, majors.get("nvidia-uvm", ""), minor, mode)
    if "nvidia_modeset" in loaded and not (asked_for and "/dev/nvidia-modeset" not in listed):
        yield _File("/dev/nvidia-modeset", front, _MODESET, mode)
    for number in (value.partition(" ")[0] for value in all_of("cap")):
        if _NUMBER.fullmatch(number):
            yield _File(f"{_ACCESS}{number}", majors.get("nvidia-caps", ""), int(number))


@dataclass(frozen=True, slots=True)
class DeviceLinks(Resource):
    """A link in ``/dev/char`` exists to each of the driver's device files.

    When systemd reloads its units, it resolves a container's device rules through these links. Without the links,
    ``systemctl daemon-reload`` removes the GPUs from running containers (nvidia-container-toolkit#48).
    """

    def probes(self) -> tuple[Probe, ...]:
        return (DEVICES,)

    def plan(self, facts: Facts) -> Change | None:
        rows = [line.partition(" ")[::2] for line in facts[DEVICES].text.splitlines()]
        linked = {path.removeprefix("/dev/").removeprefix("../") for kind, path in rows if kind == "link"}
        missing = [path for kind, path in rows if kind == "device" and path not in linked]
        if not missing:
            return None
        step = Step("nvidia-ctk system create-dev-char-symlinks --create-all")
        return Change("links in /dev/char", f"none to {', '.join(missing)}", "one to each NVIDIA device", (step,))

    def removal(self) -> tuple[Resource, ...]:
        return ()  # running containers may need the links in /dev/char, which a reboot removes
