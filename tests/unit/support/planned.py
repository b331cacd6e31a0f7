"""Plans of every standard stack for every release, from recorded answers of whole hosts (``recorded``).

Ubuntu hosts cannot be recorded: their facts are derived from those of the nearest Debian.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterator

from hostwright.fleet import TargetHost
from hostwright.plan.host.hostfacts import OS_RELEASE, PCI, PYTHONS, UNAME, pythons, read_host
from hostwright.plan.model import Change, Facts, Plan, Planned, Probe, Refusal
from hostwright.plan.planning import make_plan
from hostwright.resources.packages.components import APT_SOURCES
from hostwright.resources.packages.dpkg import DPKG
from hostwright.stack.rules import check_host
from hostwright.stack.tried import Trial
from hostwright.standard.roles.driver.states.fabric import FABRIC
from tests.places import PROJECT
from tests.unit.support import recorded
from tests.unit.support.standard import targets


def _recorded(release: str) -> tuple[str, tuple[str, ...]]:
    facts = recorded.facts_of(f"debian-{release}-bare", (UNAME, PYTHONS))
    return facts[UNAME].text.split()[0], tuple(pythons(facts))


#: Ubuntu release → the Debian release with recorded facts whose glibc is nearest
MADE_UP_FROM = {"18.04": "11", "20.04": "11", "22.04": "12", "24.04": "13", "26.04": "13"}
CODENAMES = {"18.04": "bionic", "20.04": "focal", "22.04": "jammy", "24.04": "noble", "26.04": "resolute"}
#: release → its kernel, and its Pythons (installed or in its archive)
HOSTS = {
    ("ubuntu", "18.04"): ("4.15.0-213-generic", ("3.7", "3.8")),
    ("ubuntu", "20.04"): ("5.4.0-150-generic", ("3.8", "3.9")),
    ("ubuntu", "22.04"): ("5.15.0-91-generic", ("3.10",)),
    ("ubuntu", "24.04"): ("6.8.0-88-generic", ("3.12",)),
    ("ubuntu", "26.04"): ("7.0.0-14-generic", ("3.14",)),
    **{("debian", release): _recorded(release) for release in ("11", "12", "13")},
}
TEST = "tests/unit/stack/test_tried.py"
T4 = 0x1EB8
#: PCI device ids of hosts' cards
CARDS = {
    "K80": (0x102D,),
    "V100": (0x1DB4,),
    "T4": (T4,),
    "A100": (0x20B0,),
    "H100": (0x2330,),
    "8 × B200": (0x2901,) * 8,
}
PROVISIONED = ("debian", "11")  #: the release with a recording of a provisioned host
REFUSED = "refused"
ABOUT = """\
# Plans of all stacks, written by `python -m tests.unit.support.stackfleet`. Those on Debian are made from what lab
# hosts answered (`make facts`), with the lab's T4 on the bus; other cards are made up. So are the hosts of Ubuntu: from
# the Debian with the nearest glibc, with another os-release, kernel, archive and Python, and other package versions.
"""
UBUNTU_PARTS = "main restricted universe multiverse"
SHAPES = PROJECT / "tests/fixtures/plan-shapes.txt"


def plan_of(target: TargetHost, distribution: str, release: str, cards: tuple[int, ...] = (T4,)) -> Plan:
    """The plan of a host without anything of its stack."""
    return make_plan(target.desired, bare_facts(target, distribution, release, cards))


def bare_facts(target: TargetHost, distribution: str, release: str, cards: tuple[int, ...]) -> Facts:
    """The answers of such a host with these cards. Recorded lab hosts have a T4, so other cards are substituted."""
    replaced = {} if cards == (T4,) else {PCI: "".join(f"0x10de 0x030200 {card:#x}\n" for card in cards)}
    if cards == CARDS["8 × B200"]:
        replaced[FABRIC] = "bridge 0000:05:00.0\nlacks mlx5_ib\nlacks ib_umad\n"
    if distribution == "ubuntu":
        replaced |= _made_up(release)
    name = f"debian-{MADE_UP_FROM.get(release, release)}-bare"
    return recorded.facts_of(name, target.desired.probes(), replaced)


def _made_up(release: str) -> dict[Probe, str]:
    """The answers of an Ubuntu host that differ from those of the Debian host from which it is derived."""
    kernel, versions = HOSTS["ubuntu", release]
    debian, name = MADE_UP_FROM[release], CODENAMES[release]
    packages = recorded.facts_of(f"debian-{debian}-bare", (DPKG,))[DPKG].text
    packages = re.sub(r"^python3\S*-venv:.*\n", "", packages, flags=re.MULTILINE)  # lab hosts have it, Ubuntu's do not
    packages = packages.replace(HOSTS["debian", debian][1][0], versions[0])
    return {
        OS_RELEASE: f'ID=ubuntu\nVERSION_ID="{release}"\nVERSION_CODENAME={name}\n',
        APT_SOURCES: f"/etc/apt/sources.list:deb http://archive.ubuntu.com/ubuntu {name} {UBUNTU_PARTS}\n",
        UNAME: f"{kernel} x86_64\n",
        PYTHONS: "".join(f"/usr/bin/python{version} {version}\n" for version in versions),
        DPKG: re.sub(rf"[+~]deb{debian}u\d+", "ubuntu0.1", packages),
    }


def releases(target: TargetHost) -> list[tuple[str, str]]:
    """The releases that a target's stack supports."""
    return [(name, release) for name, all_of in target.stack.distributions.items() for release in all_of]


def shapes() -> Iterator[str]:
    """The table: a line for each stack and release with the changes by layer and the cards, and with the rules that
    reject other cards; then the plans, in order. Releases that a stack does not support are on one line.
    """
    yield from ABOUT.splitlines()
    ordered: dict[str, list[str]] = {}
    for target in (target for target in targets() if target.name == target.stack.name):
        for distribution, release in releases(target):
            where = f"{target.name} | {distribution} {release}{' (made up)' if distribution == 'ubuntu' else ''}"
            alike = _alike(target, distribution, release)
            yield f"{where} | " + "; ".join(f"{', '.join(names)}: {shape}" for shape, names in alike.items())
            shown = [names for shape, names in alike.items() if not shape.startswith(REFUSED)]
            facts = {f", {names[0]}": bare_facts(target, distribution, release, CARDS[names[0]]) for names in shown}
            if (distribution, release) == PROVISIONED:
                after = recorded.facts_of("debian-11-provisioned", target.desired.probes())
                facts[", provisioned with the stack lab"] = after
                yield f"{where}, provisioned with the stack lab | {_numbers(make_plan(target.desired, after))}"
            for what, known in facts.items():
                for role in make_plan(target.desired, known).roles:
                    lines = "\n".join(f"  {_line(planned)}" for planned in role.changes)
                    ordered.setdefault(f"{role.role}:\n{lines}", []).append(where + what)
        others = [one for one in HOSTS if one not in releases(target)]
        found = {_shape(target, *one, (T4,)).partition(",")[0] for one in others}
        yield f"{target.name} | elsewhere | {' or '.join(sorted(found))}"
    for lines, names in sorted(ordered.items()):
        yield from ("", *(f"# {name}" for name in names), *lines.splitlines())


def _line(planned: Planned) -> str:
    what = textwrap.shorten(planned.what, 110, placeholder=" …")
    if not isinstance(planned, Change):
        return f"{planned.kind}: {what}"
    return what + (f" ({len(planned.steps)} steps)" if len(planned.steps) > 1 else "")


def _alike(target: TargetHost, distribution: str, release: str) -> dict[str, list[str]]:
    """Shape of a plan → the cards with this shape."""
    alike: dict[str, list[str]] = {}
    for name, cards in CARDS.items():
        alike.setdefault(_shape(target, distribution, release, cards), []).append(name)
    return alike


def _shape(target: TargetHost, distribution: str, release: str, cards: tuple[int, ...]) -> str:
    """The rules that reject a host, else the number of changes of each kind in each layer.

    Rules are evaluated without suggestions, which take most of the time for a rejected host.
    """
    facts = bare_facts(target, distribution, release, cards)
    refusing = check_host(target.stack, read_host(facts), target.desired.rules, suggest=False)
    if refusing:
        return f"{REFUSED} by {', '.join(dict.fromkeys(one.rule for one in refusing))}"
    return _numbers(make_plan(target.desired, facts))


def _numbers(plan: Plan) -> str:
    return ", ".join(f"{role.role} {_kinds(role.changes)}" for role in plan.roles) or "nothing"


def _kinds(changes: tuple[Planned, ...]) -> str:
    others = Counter(type(one).__name__.lower() for one in changes if not isinstance(one, Change))
    number = sum(isinstance(one, Change) for one in changes)
    return " + ".join([str(number), *(f"{count} {kind}" for kind, count in others.items())])


def planned_trials() -> list[Trial]:
    """The records of the plans without a refusal."""
    return [
        Trial(
            stack=target.stack.name,
            versions=target.stack.versions(),
            distribution=distribution,
            release=release,
            host="facts",
            roles=target.stack.roles,
            verbs=("plan",),
            tests=(TEST,),
        )
        for target in targets()
        if target.name == target.stack.name
        for distribution, release in releases(target)
        if not any(isinstance(one, Refusal) for one in plan_of(target, distribution, release).changes)
    ]
