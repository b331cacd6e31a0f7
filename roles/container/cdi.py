"""How GPUs come into containers: the mode of the toolkit's runtime, and the CDI specification that engines read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hostwright.resources import (
    ABSENT,
    DPKG,
    Change,
    Condition,
    Facts,
    Probe,
    Refusal,
    Resource,
    Service,
    Step,
    dpkg_table,
    few,
)
from hostwright.roles import Pattern, sh, sh_file, words
from hostwright.standard.roles.container.engines import ENGINE_ROWS, gpus_flag_sentence, loses_gpus_flag
from hostwright.standard.roles.container.section import Mode

TOOLKIT_CONFIG = "/etc/nvidia-container-runtime/config.toml"
REFRESH, REFRESH_PATH = "nvidia-cdi-refresh.service", "nvidia-cdi-refresh.path"
MOST = 3  #: missing libraries that are named of each specification; all have the driver's former version
UNLISTED = "unlisted"  #: what the state's probe prints where nvidia-smi lists no card
CDI_SH = sh_file(__file__, "sh/cdi.sh", most=MOST)

_MODE = Probe(sh_file(__file__, "sh/mode.sh", file=TOOLKIT_CONFIG), shared=True)
_WORDS = {
    "absent": "none",
    "number": "%s has the major number %s in it, and %s in the kernel",
    "missing": "names %s, which is not there",
    "lacks": "does not name %s",
    "disabled": f"{REFRESH} does not start at boot",
}
_STATE = Probe(f"{CDI_SH}cdi_refreshed", root=True, shared=True)
(_UNIT,) = Service(REFRESH).probes()  # systemd's answer for it
#: what a host says of its files, before root removes them
_LINK = Pattern(r"/etc/systemd/system/[a-z.-]{1,60}\.wants/nvidia-cdi-refresh\.[a-z]{1,20}")
_SPECIFICATION = Pattern(r"/[A-Za-z0-9/._-]{1,200}\.(?:yaml|json)")
_LEFT = Probe(sh_file(__file__, "sh/refresh_left.sh"), shared=True)


@dataclass(frozen=True, slots=True)
class RuntimeMode(Resource):
    """The mode of ``nvidia-container-runtime`` in the toolkit's config.toml; whatever else is there stays.

    Without an entry the mode is ``auto``. Containers that run keep their GPUs: the file is read when one starts.
    """

    mode: Mode

    def probes(self) -> tuple[Probe, ...]:
        return (_MODE,)

    def plan(self, facts: Facts) -> Change | None:
        have = facts[_MODE].strip() or "auto"
        if have == self.mode:
            return None
        step = Step(sh_file(__file__, "sh/set_mode.sh", file=TOOLKIT_CONFIG, mode=self.mode))
        return Change("mode of the nvidia runtime", have, self.mode, (step,))

    def removal(self) -> tuple[Resource, ...]:
        return ()  # the file is the package's, and goes with it


@dataclass(frozen=True, slots=True)
class CdiSpecification(Resource):
    """The specification that nvidia-cdi-refresh writes is of this driver: its libraries are there, and its device
    files have the numbers under which the kernel has their drivers.

    From 1.19.0 on the toolkit writes the numbers that device files have at that moment, and nvidia-uvm gets another
    one whenever its module is loaded: with a wrong one ``cuInit`` ends with 999 in containers
    (NVIDIA/nvidia-container-toolkit#1934). A host without cards needs none, and where nvidia-smi lists none the unit
    fails: its first command is ``nvidia-smi -L`` (the toolkit's deployments/systemd, 1.20.0). That is the driver's or
    the card's matter, which a note names; the rest of the layer is not kept waiting for it. A unit that failed while
    the driver was away is run again, too: nothing else would until the next boot.
    """

    def probes(self) -> tuple[Probe, ...]:
        return (_STATE, _UNIT)

    def plan(self, facts: Facts) -> Change | None:
        wrong = tuple(_sentences(facts[_STATE].text))
        if not facts[_STATE].strip() and "ActiveState=failed" in facts[_UNIT].text.splitlines():
            wrong = (f"{REFRESH} failed",)
        if not wrong:
            return None
        step = Step(sh_file(__file__, "sh/refresh.sh", unit=REFRESH))
        return Change("CDI specification", "; ".join(wrong), "of this driver, made at each boot", (step,))

    def notes(self, facts: Facts) -> tuple[str, ...]:
        if facts[_STATE].strip() != UNLISTED:
            return ()
        return (f"no GPU: nvidia-smi lists none, so that {REFRESH} fails and containers get none",)

    def removal(self) -> tuple[Resource, ...]:
        return (NoRefresh(),)


@dataclass(frozen=True, slots=True)
class Refreshable(Condition):
    """The condition that no missing answer of a card keeps nvidia-cdi-refresh from its work. Where one does, systemd
    starts the service again until it has had enough, and the path unit that triggers it fails, too."""

    def probes(self) -> tuple[Probe, ...]:
        return (_STATE,)

    def holds(self, facts: Facts) -> bool:
        """Whether nothing is known to be wrong, or nvidia-smi lists a card."""
        return facts[_STATE].strip() != UNLISTED


@dataclass(frozen=True, slots=True)
class NoRefresh(Resource):
    """What nvidia-cdi-refresh wrote is gone, and it starts no more, before its package goes or an older one comes that
    has no such units. A specification that an operator wrote stays.

    The links go last: they tell whose the specification is.
    """

    def probes(self) -> tuple[Probe, ...]:
        return (_LEFT,)

    def plan(self, facts: Facts) -> Change | None:
        rows = [line.partition(" ")[::2] for line in facts[_LEFT].text.splitlines()]
        links = tuple(path for kind, path in rows if kind == "link" and _LINK.fullmatch(path))
        written = tuple(path for kind, path in rows if kind == "specification" and _SPECIFICATION.fullmatch(path))
        if not links and not written:
            return None
        stop = sh("systemctl stop -- %s %s 2>/dev/null || true", REFRESH_PATH, REFRESH)  # they may be gone already
        step = Step("\n".join([stop, "rm -f -- " + words(written), "rm -f -- " + words(links)]))
        return Change("what nvidia-cdi-refresh left", few([*written, *links]), f"as before: {ABSENT}", (step,))

    def removal(self) -> tuple[Resource, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class GpusFlagWorks(Resource):
    """In this mode of the toolkit ``docker run --gpus`` works with the Docker that the host has."""

    mode: Mode

    def probes(self) -> tuple[Probe, ...]:
        return (DPKG,)

    def plan(self, facts: Facts) -> Refusal | None:
        table = dpkg_table(facts)
        rows = (table.get(name) for name in ENGINE_ROWS[0].packages)
        docker = next((row.version for row in rows if row and row.present), "")
        if not loses_gpus_flag(self.mode, docker):
            return None
        return Refusal(
            "GPUs of containers", f"Docker {docker}", f"mode {self.mode}", "cdi-engine",
            gpus_flag_sentence(self.mode, docker),
        )  # fmt: skip

    def removal(self) -> tuple[Resource, ...]:
        return ()


def _sentences(text: str) -> Iterator[str]:
    for line in text.splitlines():
        kind, *values = line.split(" ")
        if kind in _WORDS and len(values) == _WORDS[kind].count("%s"):
            yield _WORDS[kind] % tuple(values)
