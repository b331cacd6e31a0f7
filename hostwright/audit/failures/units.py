"""systemd's units of the stack: which are there, what they are doing, and what failed ones last said."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hostwright.audit.failures import docker_state
from hostwright.audit.failures.rule import FailureRule, Sign
from hostwright.audit.look import Unread
from hostwright.common.quoting import words
from hostwright.plan.hostfacts import PCI
from hostwright.plan.model import Probe
from hostwright.resources.containers import LINKS_UNIT
from hostwright.resources.gpu_use import nvswitches
from hostwright.resources.system.services import parse_show

if TYPE_CHECKING:
    from hostwright.audit.look import Look

DOCKER = ("docker.service", "containerd.service")
SOCKET = "docker.socket"  #: docker.service requires it
PERSISTENCED = "nvidia-persistenced.service"
FABRIC_MANAGER = "nvidia-fabricmanager.service"
ALL = (*DOCKER, PERSISTENCED, FABRIC_MANAGER, LINKS_UNIT, SOCKET)
LAST_LINES = 2  #: of its own words that are shown: a program's last line may only name its help
JOURNAL_LINES = 25  #: of a failed unit: systemd's own words on five starts, and between them what the program said

UNITS = Probe(f"systemctl show -p Id,LoadState,ActiveState,SubState,Result,Job,NRestarts -- {words(ALL)}")

MOST_DIGITS = 10  #: of a number that is believed

#: ``UNIT: line`` of the journal of those that failed or are being restarted; on a good host no journal is opened.
JOURNALS = Probe(
    f"systemctl list-units --state=failed,activating --plain --no-legend --no-pager -- {words(ALL)} |\n"
    "while read -r u rest; do\n"
    f'  timeout -k 1 5 journalctl -q -u "$u" -n {JOURNAL_LINES} -o cat --no-pager </dev/null | sed "s/^/$u: /"\n'
    "done; exit 0",
    root=True,
)

_STATES = ("LoadState", "ActiveState", "SubState", "Result")

#: What systemd itself says of a unit; everything else in its journal are the program's own words.
_SYSTEMD = re.compile(r"\S+\.service: |(Start|Stopp|Reload|Finish)(ed|ing) |Failed to start |Dependency failed ")
_ENDED = re.compile(r"\S+\.service: (Failed at step |Main process exited, )")


@dataclass(frozen=True, slots=True)
class Unit:
    """One unit as ``systemctl show`` describes it."""

    name: str
    load: str  #: loaded, not-found, masked …
    active: str  #: active, activating, inactive, failed …
    sub: str  #: running, dead, auto-restart …
    result: str  #: how it ended: success, exit-code, timeout …
    queued: bool = False  #: it is to be started or stopped, and waits for other units, as at boot
    restarts: int = 0  #: how often systemd has restarted it since somebody last started it

    @property
    def failed(self) -> bool:
        """Whether it failed, or systemd restarts it because it did. One that is starting for the first time has not."""
        ended = self.sub.startswith("auto-restart") and self.result not in {"", "success"}
        return self.active == "failed" or ended or (self.active == "activating" and self.restarts > 0)

    def __str__(self) -> str:
        why = f", {self.result}" if self.result not in {"", "success"} else ""
        again = f", restarts: {self.restarts}" if self.failed and self.restarts else ""
        return f"{self.name} is {self.active} ({self.sub}{why}{again})"


def unit(look: Look, name: str) -> Unit:
    """One of ``ALL``. Raises ``Unread`` where systemd does not say anything of it."""
    for block in look.text(UNITS).split("\n\n"):
        shown = parse_show(block)
        if shown.get("Id") == name:
            load, active, sub, result = (shown.get(key, "") for key in _STATES)
            queued, restarts = shown.get("Job", "") not in {"", "0"}, _count(shown.get("NRestarts", ""))
            return Unit(name, load, active, sub, result, queued, restarts)
    raise Unread(f"systemd says nothing of {name}")


def journal(look: Look, name: str) -> tuple[str, ...]:
    """The last lines of a failed unit's journal; nothing where it was not asked for (no sudo)."""
    if JOURNALS not in look.facts:
        return ()
    rows = (line.partition(": ") for line in look.facts[JOURNALS].text.splitlines())
    return tuple(said for who, _, said in rows if who == name and said.strip())


def last_words(look: Look, name: str) -> tuple[str, ...]:
    """What a failed unit's program said last since it was started; where it was silent, how systemd says it ended."""
    said = journal(look, name)
    starts = [number for number, line in enumerate(said) if line.startswith("Starting ")]
    said = said[starts[-1] :] if starts else said
    own = tuple(line for line in said if not _SYSTEMD.match(line))
    return (own or tuple(line for line in said if _ENDED.match(line)))[-LAST_LINES:]


def limited(look: Look, name: str) -> str:
    """The line that says that systemd no longer starts a failed unit, or nothing."""
    if unit(look, name).active != "failed":
        return ""
    if unit(look, name).result == "start-limit-hit":
        return f"{name}: start-limit-hit"
    return next((line for line in reversed(journal(look, name)) if "tart request repeated too quickly" in line), "")


def too_often(look: Look) -> Iterator[str]:
    """docker.service or containerd.service is failed, and its journal says that systemd no longer starts it."""
    for name in DOCKER:
        if (said := limited(look, name)) and not _explained(look, name):
            yield said
            yield from last_words(look, name)


def masked(look: Look) -> Iterator[str]:
    """docker.service or containerd.service is masked, or docker.socket is and Docker, which needs it, does not run."""
    runs = unit(look, DOCKER[0]).active == "active"
    for name in DOCKER if runs else (*DOCKER, SOCKET):
        if unit(look, name).load == "masked":
            yield f"{name} is masked"


def container_units_failed(look: Look) -> Iterator[str]:
    """docker.service or containerd.service failed, or is restarted again and again, and daemon.json is not why."""
    yield from _failed(look, DOCKER)


def links_unit_failed(look: Look) -> Iterator[str]:
    """The unit that makes the links in /dev/char at boot is failed."""
    yield from _failed(look, (LINKS_UNIT,))


def driver_units_failed(look: Look) -> Iterator[str]:
    """nvidia-persistenced is failed, or Fabric Manager on a host with NVSwitches."""
    look.answer(PCI)
    try:
        switches = nvswitches(look.facts)
    except ValueError:
        raise Unread("the PCI bus cannot be read") from None
    yield from _failed(look, (PERSISTENCED, FABRIC_MANAGER) if switches else (PERSISTENCED,))


def _failed(look: Look, names: tuple[str, ...]) -> Iterator[str]:
    """Those that failed, each with what its program said last; ``too_often`` has Docker's limit."""
    for one in (unit(look, name) for name in names):
        if not one.failed or (one.name in DOCKER and limited(look, one.name)) or _explained(look, one.name):
            continue
        yield str(one)
        yield from last_words(look, one.name)


def _explained(look: Look, name: str) -> bool:
    """Whether a failure of its own says why Docker does not start: dockerd refuses its daemon.json."""
    try:
        return name == docker_state.UNIT and bool(docker_state.said_twice(look))
    except docker_state.NotJson:
        return True
    except Unread:
        return False


def _count(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < MOST_DIGITS else 0


_SOURCE = "systemd.service(5)"

UNIT_RULES = (
    FailureRule(
        "container-unit-failed",
        "",
        "Docker or containerd was started and ended with an error",
        "Read its journal (journalctl -u UNIT -n 50), mend the cause, then systemctl restart UNIT",
        _SOURCE,
        sign=Sign("container", container_units_failed, (UNITS, JOURNALS)),
    ),
    FailureRule(
        "docker-masked",
        "",
        "somebody masked a unit of Docker's, so that nothing can start it, a provisioning run neither",
        "Ask who did it and why, then systemctl unmask UNIT and provision again",
        "systemctl(1)",
        sign=Sign("container", masked, (UNITS,)),
    ),
    FailureRule(
        "dev-char-unit-failed",
        "",
        "the links in /dev/char, which keep the GPUs in containers, were not made at the last boot",
        "Read its journal (journalctl -u hostwright-nvidia-dev-char), mostly the driver was not loaded yet;"
        " then systemctl restart hostwright-nvidia-dev-char",
        "NVIDIA/nvidia-container-toolkit#48",
        sign=Sign("container", links_unit_failed, (UNITS, JOURNALS), grave=False),
    ),
    FailureRule(
        "driver-unit-failed",
        "",
        "one of the driver's daemons was started and ended with an error",
        "Read its journal (journalctl -u UNIT -n 50), mend the cause, then systemctl restart UNIT",
        _SOURCE,
        sign=Sign("driver", driver_units_failed, (UNITS, JOURNALS, PCI)),
    ),
)
