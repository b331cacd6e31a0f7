"""All identifiers that other programs, records and histories use. They are not prose and must not be reworded.

``python -m tests.unit.support.identifiers`` writes the recorded list. An added identifier is new. A removed or changed
identifier breaks alerts, dashboards, scripts, comparisons with earlier audits, or sites' rules, and needs a changelog
entry.
"""

from __future__ import annotations

import ast
import dataclasses
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import yaml

from hostwright.apply import events
from hostwright.apply.events import Event
from hostwright.apply.journal.records import kind_of
from hostwright.audit.fleetaudit import GPU_LAYER, LayerStatus, Why
from hostwright.audit.hardware.gpucolumns import GPU_COLUMNS
from hostwright.audit.readings.answers import all_values
from hostwright.common.errors import InputError
from hostwright.fleet import Fleet, TargetHost
from hostwright.plan.host.hostfacts import OS_RELEASE, PCI, PYTHONS, UNAME
from hostwright.plan.host.newrelease import renewed
from hostwright.plan.host.release import RunStamp
from hostwright.plan.model import Answer, Facts, Planned, Refusal, Resource
from hostwright.plan.planning import PREFLIGHT, make_plan, removal_of
from hostwright.rebuild.ways.rules import RULES as REBUILD_RULES
from tests.unit.support.known import RULES as FAILURES
from tests.unit.support.standard import targets

PROJECT = Path(__file__).parents[3]
FILE = PROJECT / "tests" / "fixtures" / "identifiers.json"
NOTHING = Answer(1, "")  #: the answer of a bare host
#: answers of other hosts, so that every state finds a difference
ANSWERS = (NOTHING, *(Answer(0, text) for text in ("", "1\n", "device nvidia0\n", "there written ours kept\n")))

#: inconsistent stacks, each rejected by another rule
MISFITS: tuple[dict[str, Any], ...] = (
    {"cuda": {"version": "11.4.0"}, "cudnn": {"version": "8.3.0.98"}},
    {"cuda": {"version": "11.2.9"}},
    {"tensorflow": {"version": "2.4.0"}},
    {"tensorflow": {"pythons": ["3.11"]}},
    {"driver": {"version": "450.51.06"}},
    {"container": {"docker": "docker-ce", "docker_ce": None}},
)
#: hosts that no stack fits: another machine type, system, kernel, Python, a too new GPU, a too old GPU
STRANGE = {OS_RELEASE: "ID=fedora\nVERSION_ID=40\n", UNAME: "6.18.5 aarch64\n", PYTHONS: "/usr/bin/python3 3.13\n"}
GPUS = ("0x10de 0x030200 0x2330\n", "0x10de 0x030200 0x118f\n")


def identifiers() -> dict[str, Any]:
    """All identifiers, by kind."""
    hosts = targets()
    record = renewed(hosts[0].desired, {}, RunStamp("run")) or {}
    return {
        "roles": sorted({role.name for target in hosts for role in target.roles}),
        "layers beside the roles": [PREFLIGHT, GPU_LAYER],
        "versions": sorted({name for target in hosts for name in target.stack.versions()}),
        "release record": [*record, "", *next(iter(record["roles"].values()))],
        "values": sorted({*(name for target in hosts for name in _values(target)), *_card_values()}),
        "statuses of layers": sorted(get_args(LayerStatus)),
        "reasons of deviations": sorted(get_args(Why)),
        "known failures": {rule.name: rule.sign.layer if rule.sign else "" for rule in FAILURES},
        "rules of rebuilds": {rule.name: rule.way for rule in REBUILD_RULES},
        "rules of what fits": sorted({*_of_stacks(), *_of_hosts(hosts[0])}),
        "rules of states": sorted(set(_of_states())),
        "records of runs": sorted(kind_of(one) for one in vars(events).values() if _is_event(one)),
        "states": sorted({one.what for target in hosts if _shown(target) for one in _planned(target)}),
    }


def _values(target: TargetHost) -> Iterator[str]:
    return (f"{one.layer} {one.name}" for one in all_values(target.stack.name, target.audit_values))


def _card_values() -> Iterator[str]:
    compared = (column.compared[0] for column in GPU_COLUMNS if column.compared)
    return (f"{GPU_LAYER} {name}" for name in ("models", "count", *compared))


def _shown(target: TargetHost) -> bool:
    """The names of states in the output for one stack; other stacks have the same names with other versions."""
    return target.name in {"tensorflow-2.9", "switched"}


def _planned(target: TargetHost) -> Iterator[Planned]:
    """The plans of a host's states, and of their removals."""
    for desired in (target.desired, removal_of(target.desired)):
        states = [one for role in desired.roles for one in role.resources]
        for answer in ANSWERS:
            yield from (planned for one in states if (planned := _plan(one, answer)) is not None)


def _plan(state: Resource, answer: Answer) -> Planned | None:
    return state.plan(Facts(dict.fromkeys(state.probes(), answer)))


def _of_stacks() -> Iterator[str]:
    """The rules that reject stacks, as named in their messages."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "stacks").mkdir()
        for number, part in enumerate(MISFITS):
            text = yaml.safe_dump({"extends": "tensorflow-2.9", **part})
            (folder / "stacks" / f"misfit{number}.yml").write_text(text)
        hosts = {f"host{number}": {"stack": f"misfit{number}"} for number in range(len(MISFITS))}
        (folder / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts}}))
        try:
            Fleet.load(folder).targets("all")
        except InputError as error:
            yield from re.findall(r" \[([a-z-]+): ", str(error))


def _of_hosts(target: TargetHost) -> Iterator[str]:
    """The rules that reject hosts."""
    for gpu in GPUS:
        said = {probe: Answer(0, text) for probe, text in {**STRANGE, PCI: gpu}.items()}
        plan = make_plan(target.desired, Facts({**dict.fromkeys(target.desired.probes(), NOTHING), **said}))
        refused = (one for role in plan.roles if role.role == PREFLIGHT for one in role.changes)
        yield from (one.rule for one in refused if isinstance(one, Refusal))


def _of_states() -> Iterator[str]:
    """The rules with which states refuse hosts: the values of ``Refusal.rule`` in the source."""
    place = [each.name for each in dataclasses.fields(Refusal) if not each.kw_only].index("rule")
    paths = sorted(path for folder in ("hostwright/resources", "roles") for path in (PROJECT / folder).rglob("*.py"))
    nodes = [node for path in paths for node in ast.walk(ast.parse(path.read_text("utf-8")))]
    constants = {
        ast.unparse(node.targets[0]): node.value.value
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
    }
    for call in nodes:
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Refusal":
            word = call.args[place]
            yield str(word.value if isinstance(word, ast.Constant) else constants[ast.unparse(word)])


def _is_event(one: object) -> bool:
    return isinstance(one, type) and issubclass(one, Event) and one is not Event


if __name__ == "__main__":
    FILE.write_text(json.dumps(identifiers(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
