"""Plans of every standard stack for every release, from made-up facts of bare hosts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from hostwright.fleet import TargetHost
from hostwright.plan.host.hostfacts import AVX, OS_RELEASE, PCI, PYTHONS, UNAME, read_host
from hostwright.plan.model import Answer, Change, Facts, Plan, Planned
from hostwright.plan.planning import make_plan
from hostwright.resources.packages.components import APT_SOURCES
from hostwright.stack.rules import check_host
from hostwright.stack.tried import Trial
from tests.places import PROJECT
from tests.unit.support.standard import targets

#: release → its kernel, and the Pythons that it has or that its archive brings
HOSTS = {
    ("ubuntu", "18.04"): ("4.15.0-213-generic", ("3.7", "3.8")),
    ("ubuntu", "20.04"): ("5.4.0-150-generic", ("3.8", "3.9")),
    ("ubuntu", "22.04"): ("5.15.0-91-generic", ("3.10",)),
    ("ubuntu", "24.04"): ("6.8.0-88-generic", ("3.12",)),
    ("ubuntu", "26.04"): ("7.0.0-14-generic", ("3.14",)),
    ("debian", "11"): ("5.10.0-26-amd64", ("3.9",)),
    ("debian", "12"): ("6.1.0-40-amd64", ("3.11",)),
    ("debian", "13"): ("6.12.57+deb13-amd64", ("3.13",)),
}
TEST = "tests/unit/stack/test_tried.py"
T4 = 0x1EB8
#: cards of hosts, by their PCI device ids
CARDS = {
    "K80": (0x102D,),
    "V100": (0x1DB4,),
    "T4": (T4,),
    "A100": (0x20B0,),
    "H100": (0x2330,),
    "8 × B200": (0x2901,) * 8,
}
SHAPES = PROJECT / "tests/fixtures/plan-shapes.txt"


def plan_of(target: TargetHost, distribution: str, release: str, cards: tuple[int, ...] = (T4,)) -> Plan:
    """The plan of a host that has nothing of its stack yet."""
    return make_plan(target.desired, bare_facts(target, distribution, release, cards))


def bare_facts(target: TargetHost, distribution: str, release: str, cards: tuple[int, ...]) -> Facts:
    """The answers of such a host."""
    kernel, pythons = HOSTS[distribution, release]
    texts = {
        OS_RELEASE: f"ID={distribution}\nVERSION_ID={release}\nVERSION_CODENAME=release\n",
        APT_SOURCES: f"/etc/apt/sources.list:deb http://archive.example.org/{distribution} release main\n",
        UNAME: f"{kernel} x86_64\n",
        PCI: "".join(f"0x10de 0x030200 {card:#x}\n" for card in cards),
        AVX: "",
        PYTHONS: "".join(f"/usr/bin/python{python} {python}\n" for python in pythons),
    }
    probes = target.desired.probes()
    return Facts({one: Answer(0, texts[one]) if one in texts else Answer(1, "") for one in probes})


def releases(target: TargetHost) -> list[tuple[str, str]]:
    """The releases that a target's stack is for."""
    return [(name, release) for name, all_of in target.stack.distributions.items() for release in all_of]


def shapes() -> Iterator[str]:
    """A line for each stack and release: what is planned, by layer, for which cards, and which rules refuse others.

    Releases that a stack is not for are on one line.
    """
    for target in targets():
        if target.name != target.stack.name:
            continue
        for distribution, release in releases(target):
            yield f"{target.name} | {distribution} {release} | {_by_cards(target, distribution, release)}"
        others = [one for one in HOSTS if one not in releases(target)]
        found = {_shape(target, *one, (T4,)).partition(",")[0] for one in others}
        yield f"{target.name} | elsewhere | {' or '.join(sorted(found))}"


def _by_cards(target: TargetHost, distribution: str, release: str) -> str:
    alike: dict[str, list[str]] = {}
    for name, cards in CARDS.items():
        alike.setdefault(_shape(target, distribution, release, cards), []).append(name)
    return "; ".join(f"{', '.join(names)}: {shape}" for shape, names in alike.items())


def _shape(target: TargetHost, distribution: str, release: str, cards: tuple[int, ...]) -> str:
    """The rules that refuse a host, else how many changes of which kind each layer has.

    Rules are asked as the plan asks them, without what they suggest, which takes most of a refused plan's time.
    """
    facts = bare_facts(target, distribution, release, cards)
    refusing = check_host(target.stack, read_host(facts), target.desired.rules, suggest=False)
    if refusing:
        return f"refused by {', '.join(dict.fromkeys(one.rule for one in refusing))}"
    return ", ".join(f"{role.role} {_kinds(role.changes)}" for role in make_plan(target.desired, facts).roles)


def _kinds(changes: tuple[Planned, ...]) -> str:
    others = Counter(type(one).__name__.lower() for one in changes if not isinstance(one, Change))
    number = sum(isinstance(one, Change) for one in changes)
    return " + ".join([str(number), *(f"{count} {kind}" for kind, count in others.items())])


def planned_trials() -> list[Trial]:
    """The records of these plans."""
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
    ]
