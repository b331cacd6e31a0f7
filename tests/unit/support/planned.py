"""Plans of every standard stack for every release that it is for, from made-up facts of a bare host that fits."""

from __future__ import annotations

from hostwright.fleet import TargetHost
from hostwright.plan.host.hostfacts import AVX, OS_RELEASE, PCI, PYTHONS, UNAME
from hostwright.plan.model import Answer, Facts, Plan
from hostwright.plan.planning import make_plan
from hostwright.resources.packages.components import APT_SOURCES
from hostwright.stack.tried import Trial
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


def plan_of(target: TargetHost, distribution: str, release: str) -> Plan:
    """The plan of a host that has nothing of its stack yet."""
    kernel, pythons = HOSTS[distribution, release]
    texts = {
        OS_RELEASE: f"ID={distribution}\nVERSION_ID={release}\nVERSION_CODENAME=release\n",
        APT_SOURCES: f"/etc/apt/sources.list:deb http://archive.example.org/{distribution} release main\n",
        UNAME: f"{kernel} x86_64\n",
        PCI: "0x10de 0x030200 0x1eb8\n",
        AVX: "",
        PYTHONS: "".join(f"/usr/bin/python{python} {python}\n" for python in pythons),
    }
    probes = target.desired.probes()
    return make_plan(
        target.desired, Facts({one: Answer(0, texts[one]) if one in texts else Answer(1, "") for one in probes})
    )


def releases(target: TargetHost) -> list[tuple[str, str]]:
    """The releases that a target's stack is for."""
    return [(name, release) for name, all_of in target.stack.distributions.items() for release in all_of]


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
