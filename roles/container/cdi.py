"""States for GPUs in containers: the mode of the toolkit's runtime, and the CDI specification that engines read."""

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
#: maximum number of missing libraries in a message about a CDI specification
MOST = 3
UNLISTED = "unlisted"  #: output of ``_STATE`` if nvidia-smi lists no GPU
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
(_UNIT,) = Service(REFRESH).probes()
#: pattern of links that root may remove, because paths in a host's output are not trusted
_LINK = Pattern(r"/etc/systemd/system/[a-z.-]{1,60}\.wants/nvidia-cdi-refresh\.[a-z]{1,20}")
_SPECIFICATION = Pattern(r"/[A-Za-z0-9/._-]{1,200}\.(?:yaml|json)")
_LEFT = Probe(sh_file(__file__, "sh/refresh_left.sh"), shared=True)


@dataclass(frozen=True, slots=True)
class RuntimeMode(Resource):
    """``mode`` is the mode of ``nvidia-container-runtime`` in config.toml (``auto`` without an entry).

    Other settings are kept. Running containers keep their GPUs, because config.toml is read when a container starts.
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
        return ()


@dataclass(frozen=True, slots=True)
class CdiSpecification(Resource):
    """The CDI specification of nvidia-cdi-refresh matches the driver: its libraries exist, and device numbers are
    current.

    With a wrong device number of nvidia-uvm, which may change whenever the module is loaded, ``cuInit`` returns 999 in
    containers (NVIDIA/nvidia-container-toolkit#1934).

    Without a listed GPU, nvidia-cdi-refresh fails because of the driver or a GPU, so this state only has a note.
    Otherwise a failed nvidia-cdi-refresh is restarted.
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
        return (f"no GPU: nvidia-smi lists none, so that {REFRESH} fails and containers get no GPU",)

    def removal(self) -> tuple[Resource, ...]:
        return (NoRefresh(),)


@dataclass(frozen=True, slots=True)
class Refreshable(Condition):
    """Condition that nvidia-smi lists a GPU. Only then can nvidia-cdi-refresh succeed.

    Without a GPU, systemd restarts the service up to its start limit, and its path unit also fails.
    """

    def probes(self) -> tuple[Probe, ...]:
        return (_STATE,)

    def holds(self, facts: Facts) -> bool:
        return facts[_STATE].strip() != UNLISTED


@dataclass(frozen=True, slots=True)
class NoRefresh(Resource):
    """nvidia-cdi-refresh is disabled, and its CDI specification is removed.

    An operator's own specification is kept. The links that enable the units are removed last, as evidence that
    nvidia-cdi-refresh wrote the specification.
    """

    def probes(self) -> tuple[Probe, ...]:
        return (_LEFT,)

    def plan(self, facts: Facts) -> Change | None:
        rows = [line.partition(" ")[::2] for line in facts[_LEFT].text.splitlines()]
        links = tuple(path for kind, path in rows if kind == "link" and _LINK.fullmatch(path))
        written = tuple(path for kind, path in rows if kind == "specification" and _SPECIFICATION.fullmatch(path))
        if not links and not written:
            return None
        # the units may be missing
        stop = sh("systemctl stop -- %s %s 2>/dev/null || true", REFRESH_PATH, REFRESH)
        step = Step("\n".join([stop, "rm -f -- " + words(written), "rm -f -- " + words(links)]))
        return Change("files of nvidia-cdi-refresh", few([*written, *links]), f"as before: {ABSENT}", (step,))

    def removal(self) -> tuple[Resource, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class GpusFlagWorks(Resource):
    """``docker run --gpus`` works with the host's Docker in the toolkit's mode ``mode``; otherwise the host is
    refused.
    """

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
