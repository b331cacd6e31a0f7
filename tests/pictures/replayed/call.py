"""The call that is carried out: its verb, whether hosts stop in the middle, and what is planned for them."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from tests.pictures.hosts import KINDS

NOW = datetime.now(UTC).replace(microsecond=0)
VERB, HOLD = "PICTURES_VERB", "PICTURES_HOLD"  #: variables of the environment
FACTS = ("debian", "11")
STEP_S = 0.02  #: between two things that happen on a host, so that a terminal has something to redraw
NOUVEAU = "the module nouveau is loaded"  #: why hosts are rebooted
#: kinds of hosts on which something differs
DIFFERING = {"changed", "pending", "failed", "bare"}


def verb() -> str:
    """The verb of this process."""
    return os.environ.get(VERB, "")


def pause() -> None:
    """Some time goes by on a host."""
    time.sleep(STEP_S)


def hold() -> None:
    """Stop in the middle, where a picture is wanted of that: until the file exists that ``PICTURES_HOLD`` names."""
    file = os.environ.get(HOLD, "")
    while file and not Path(file).exists():
        time.sleep(0.05)


def removed(role: str) -> Any:
    """What taking a layer away changes."""
    from hostwright.plan.model import Change, RolePlan, Step

    record = Change(f"what {role} brought", "installed", "absent", (Step("true"), Step("true")))
    return RolePlan(role, (), (record,))


def plan_of(desired: Any) -> Any:
    """The plan of a host of its kind, by the real planner; of ``remove``, each layer once."""
    from hostwright.plan.model import Plan

    differs = KINDS[desired.host] in DIFFERING or desired.apart or verb() == "remove"
    return Plan(desired.host, desired.stack.name, _roles(_Like(desired)) if differs else ())


class _Like:
    """What is desired, for hosts that are alike: those of one kind of call share one plan."""

    def __init__(self, desired: Any):
        self.desired = desired
        self.key = (desired.stack.name, tuple(role.name for role in desired.roles), desired.apart, verb())

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Like) and self.key == other.key


@cache
def _roles(like: _Like) -> tuple[Any, ...]:
    """The plan of a bare host."""
    from hostwright.plan.host.hostfacts import AVX, OS_RELEASE, PCI, PYTHONS, UNAME
    from hostwright.plan.model import Answer, Facts
    from hostwright.plan.planning import make_plan
    from tests.pictures.replayed.people import ANSWERS
    from tests.unit.support.planned import HOSTS

    desired = like.desired
    if verb() == "remove":
        return tuple(removed(role.name) for role in desired.roles)
    kernel, pythons = HOSTS[FACTS]
    texts = {
        OS_RELEASE: f"ID={FACTS[0]}\nVERSION_ID={FACTS[1]}\n",
        UNAME: f"{kernel} x86_64\n",
        PCI: "0x10de 0x030200 0x1eb8\n",
        AVX: "",
        PYTHONS: "".join(f"/usr/bin/python{python} {python}\n" for python in pythons),
        **ANSWERS(),
    }
    facts = Facts({one: Answer(0, texts[one]) if one in texts else Answer(1, "") for one in desired.probes()})
    return tuple(_with_reboot(role) if role.role == "driver" else role for role in make_plan(desired, facts).roles)


def _with_reboot(role: Any) -> Any:
    """The driver where nouveau is loaded: as ``changing.play`` has it, that takes a reboot."""
    from hostwright.plan.model import Reboot

    return replace(role, changes=(*role.changes, Reboot("kernel module nouveau", "loaded", "not loaded", NOUVEAU)))
