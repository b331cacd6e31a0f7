"""Removal of an NVIDIA driver from a ``.run``, complete or partial. A distribution's driver is left alone.

Evidence of a driver from a ``.run`` are libraries with a driver version in the name, the installer's programs and
records, and DKMS entries that belong to no package. Files with less specific names count only together with this
evidence, or if Hostwright's record lists them unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hostwright.resources import (
    ABSENT,
    NO_IDENTITY,
    RELEASE,
    Change,
    Facts,
    Probe,
    Refusal,
    Resource,
    Step,
    few,
    release,
)
from hostwright.roles import Pattern, sh_file
from hostwright.standard.roles.driver.states import steps
from hostwright.standard.roles.driver.states.gpu_use import DISPLAY, display

_LIBRARY = Pattern(r".*/libcuda\.so\.([0-9]{1,9}(?:\.[0-9]{1,9})+)")

TAKES = "takes the driver away"

_FUNCTIONS = sh_file(
    __file__,
    "driver_files.sh",
    installing=steps.INSTALLING,
    record=steps.RECORD,
    programs=tuple(f"/usr/bin/{name}" for name in steps.PROGRAMS),
)

#: probe that prints ``key=value`` lines about the loaded module, DKMS and the driver's files, for ``Remains``
STATE = Probe(
    _FUNCTIONS
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


def provisioned(facts: Facts) -> bool:
    """Return whether the host's release record lists the role ``driver``. Requires ``RELEASE``."""
    return RELEASE in facts and "driver" in release.read(facts).get("roles", {})


@dataclass(frozen=True, slots=True)
class Remains:
    """Remains of a driver from a ``.run``."""

    loaded: str  #: version of the loaded module; ``unknown`` if the module reports none; empty without a loaded module
    dkms: tuple[str, ...]  #: driver versions that DKMS would build for the next kernel
    files: tuple[str, ...]
    marks: tuple[str, ...]  #: paths of Hostwright's records about the driver

    @classmethod
    def read(cls, text: str) -> Remains:
        by_key: dict[str, list[str]] = {"loaded": [], "dkms": [], "file": [], "mark": []}
        for line in text.splitlines():
            key, equals, value = line.partition("=")
            if equals and key in by_key and (value or key == "loaded"):
                by_key[key].append(value)
        loaded = (by_key["loaded"][0].strip() or "unknown") if by_key["loaded"] else ""
        return cls(loaded, tuple(by_key["dkms"]), tuple(by_key["file"]), tuple(by_key["mark"]))

    def others(self, *, provisioned: bool) -> bool:
        """Return whether somebody else installed the driver.

        True if the role was never applied, or if Hostwright recorded a driver from before. ``provisioned``: whether the
        role was applied.
        """
        ours = provisioned or {steps.INSTALLING, steps.RECORD}.intersection(self.marks)
        return bool(self.version) and (f"{steps.RECORD}.theirs" in self.marks or not ours)

    @property
    def version(self) -> str:
        """Version in the file name of the driver's library, after a space for use in sentences; else empty."""
        found = (_LIBRARY.fullmatch(path) for path in self.files)
        return next((f" {match[1]}" for match in found if match), "")

    def __str__(self) -> str:
        parts = [
            *([f"module {self.loaded} in the kernel"] if self.loaded else []),
            *([f"DKMS entry {', '.join(self.dkms)}"] if self.dkms else []),
            *([few(list(self.files))] if self.files else []),
            *([few(list(self.marks))] if self.marks else []),
        ]
        return "; ".join(parts) or ABSENT


@dataclass(frozen=True, slots=True)
class DriverGone(Resource):
    """No trace of a driver from a ``.run`` exists: no module, DKMS entry, file or record.

    With ``force``, processes and displays that use the GPU are ended. Without ``force``, the step fails if the module
    is in use, and a host with a display is refused. The installer's logs are kept.
    """

    force: bool = field(default=False, metadata=NO_IDENTITY)
    #: ``driver_force`` of the inventory: the removal may disturb users of the GPU
    allowed: bool = field(default=False, metadata=NO_IDENTITY)

    def probes(self) -> tuple[Probe, ...]:
        return (STATE, DISPLAY, RELEASE)

    def plan(self, facts: Facts) -> Change | Refusal | None:
        remains = Remains.read(facts[STATE].text)
        if str(remains) == ABSENT:
            return None
        what, have = "NVIDIA driver", str(remains)
        shown = "" if self.force or not remains.loaded else display(facts)
        if shown:
            sentence = (
                f"the driver must be removed, but the GPU drives a display ({shown}); stop the display first, or "
                "set driver_force: true to stop it"
            )
            return Refusal(what, have, ABSENT, "display", sentence)
        unload = Step(steps.unload(force=self.force, build=False), timeout_s=300)
        take = _FUNCTIONS + sh_file(__file__, "take_away.sh") + steps.returned(start=False)
        todo = (*((unload,) if remains.loaded else ()), Step(take))
        disturbs = TAKES if remains.loaded and not self.allowed else ""
        return Change(what, have, ABSENT, todo, disturbs=disturbs)

    def losses(self, facts: Facts) -> tuple[str, ...]:
        remains = Remains.read(facts[STATE].text)
        lost = remains.others(provisioned=provisioned(facts))
        return (f"the driver{remains.version} that somebody else installed",) if lost else ()

    def removal(self) -> tuple[Resource, ...]:
        return ()
