"""A fleet of twelve kinds of hosts, from a K80 to a B200, and the page that lists the stacks that fit each.

After a change of a stack, rule, role or advisory, ``python -m tests.unit.support.stackfleet`` writes the page, the
records of the plans of all stacks (``tried.json``), and their shapes (``plan-shapes.txt``).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from functools import cache

from hostwright.plan.roles.role import discover
from hostwright.plan.stacks.fits import StackFit, fits
from hostwright.stack.ages import combined
from hostwright.stack.rules import HostFacts
from hostwright.stack.stack import Stack
from hostwright.stack.stackfile import load_stack, stack_names
from hostwright.stack.tried import TRIED_FILE, read_trials, trials_text
from tests.places import PROJECT
from tests.unit.support.planned import SHAPES, planned_trials, shapes
from tests.unit.support.stacks import KINDS, STACKS

PAGE = PROJECT / "docs/reference/stack-fits.md"
ROLES = discover()
ADVISORIES = combined(role.advisories for role in ROLES)
TODAY: date = ADVISORIES.date  #: fixed, so that only new data changes the page

#: distribution and version → kernel and Python
SYSTEMS = {
    "ubuntu 20.04": ("5.4.0-216-generic", "3.8"),
    "ubuntu 22.04": ("5.15.0-160-generic", "3.10"),
    "ubuntu 24.04": ("6.8.0-88-generic", "3.12"),
    "ubuntu 26.04": ("7.0.0-14-generic", "3.14"),
    "debian 11": ("5.10.0-36-amd64", "3.9"),
    "debian 12": ("6.1.0-42-amd64", "3.11"),
    "debian 13": ("6.12.117+deb13-amd64", "3.13"),
}
#: kind of host → PCI device id of its cards, and its system
FLEET = {
    "8 × K80": (0x102D, "ubuntu 20.04"),
    "4 × P100": (0x15F8, "ubuntu 22.04"),
    "8 × V100": (0x1DB1, "ubuntu 22.04"),
    "4 × T4": (0x1EB8, "debian 11"),
    "8 × A100": (0x20B2, "ubuntu 20.04"),
    "8 × A100, newer": (0x20B2, "debian 12"),
    "4 × L40S": (0x26B9, "ubuntu 22.04"),
    "8 × H100": (0x2330, "ubuntu 24.04"),
    "8 × H200": (0x2335, "debian 13"),
    "2 × RTX 5090": (0x2B85, "ubuntu 24.04"),
    "8 × RTX PRO 6000": (0x2BB5, "ubuntu 26.04"),
    "8 × B200": (0x2901, "ubuntu 24.04"),
}


def facts_of(kind: str) -> HostFacts:
    """The facts of a host of this kind."""
    card, system = FLEET[kind]
    distribution, _, version = system.partition(" ")
    kernel, python = SYSTEMS[system]
    return HostFacts(
        distribution=distribution,
        version=version,
        kernel=kernel,
        machine="x86_64",
        gpus=((0x10DE, card),) * int(kind.partition(" ")[0]),
        avx=True,
        pythons=(python,),
        interpreters=(f"{python} (/usr/bin/python3)",),
        memory_bytes=512_000_000_000,
    )


@cache
def stacks() -> tuple[Stack, ...]:
    """All standard stacks, without those written by a lab on this machine."""
    names = (name for name in stack_names([STACKS]) if not name.startswith("lab"))
    return tuple(load_stack(name, [STACKS], KINDS) for name in names)


def fits_of(kind: str) -> tuple[StackFit, ...]:
    """The stacks for a kind of host, best first."""
    return fits(facts_of(kind), stacks(), ROLES, ADVISORIES, TODAY)


def page() -> str:
    """The content of the page."""
    rows = [
        f"| {kind} | {FLEET[kind][1]}, {SYSTEMS[FLEET[kind][1]][0]} | {_fitting(found)} | {_refused(found)} |"
        for kind, found in ((kind, fits_of(kind)) for kind in FLEET)
    ]
    lines = [
        "# Which stack fits which host",
        "",
        "*For operators.*",
        "",
        f"What `hostwright stacks --hosts HOSTS` says of a made-up fleet of twelve kinds of host, as of {TODAY}:",
        "the stacks that fit, the best first, and which rule refuses the others. Stacks with software that gets no",
        "fixes any more or is older than a security bulletin's come after those without; how many such pieces each",
        "has stands behind it.",
        "The page is written by `python -m tests.unit.support.stackfleet`.",
        "",
        "| hosts | system | stacks that fit | what refuses the others |",
        "|---|---|---|---|",
        *rows,
        "",
    ]
    return "\n".join(lines)


def _fitting(found: tuple[StackFit, ...]) -> str:
    names = [f"{one.stack}{f' ({len(one.old)} old)' if one.old else ''}" for one in found if one.fits]
    return "<br>".join(names) or "none"


def _refused(found: tuple[StackFit, ...]) -> str:
    return "<br>".join(_reasons(found)) or "nothing"


def _reasons(found: tuple[StackFit, ...]) -> Iterator[str]:
    by_rules: dict[str, list[str]] = {}
    for one in found:
        if not one.fits:
            by_rules.setdefault(", ".join(dict.fromkeys(misfit.rule for misfit in one.misfits)), []).append(one.stack)
    for rules, names in by_rules.items():
        yield f"{rules}: {', '.join(names)}"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    others = [one for one in read_trials(STACKS / TRIED_FILE) if one.host != "facts"]
    (STACKS / TRIED_FILE).write_text(trials_text([*others, *planned_trials()]), "utf-8")
    SHAPES.write_text("".join(f"{line}\n" for line in shapes()), "utf-8")
