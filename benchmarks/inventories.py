"""Compare Hostwright with Ansible on public inventories: ``ansible-inventory --list``, and ten host patterns each.

    python benchmarks/inventories.py ask --trees DIR --answers DIR --ansible VENV/bin/python
    python benchmarks/inventories.py compare --trees DIR --answers DIR [--half b]

``inventories.txt`` lists each inventory with its half of the sample (``a`` or ``b``), repository, commit and path.
``--trees`` has a checkout of each repository at that commit as ``OWNER+NAME``, without executable files.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hostwright.cli.tasks.site import hosts as hosts_verb
from hostwright.common.errors import HostwrightError
from hostwright.common.input.yamlfile import Vaulted
from hostwright.common.request import Request
from hostwright.common.secret import Secret
from hostwright.inventory import Host, Inventory, load, select

LIST = Path(__file__).with_suffix(".txt")
UNEXPLAINED = "not explained"

#: part of Hostwright's error for an inventory that Ansible accepts → reason for the error
REFUSALS = {
    "is given twice": "a name is given twice in a file: a mistake here, the last one wins in Ansible",
    "cannot be a host's name": "a name that no host can have (`<address>`, a path)",
    "cannot be a group's name": "a group's name with other characters than letters, digits, '_', '.' and '-'",
    "is the configuration of an Ansible inventory plugin": "only Ansible can read it, and it is not installed",
}
#: part of Hostwright's error for a pattern, where Ansible only warns → reason for the error
STRICTER = {
    "matches no host and no group": "a term that matches nothing is an error; Ansible warns and ignores it",
    "matches no host": "a selection without hosts is an error; Ansible's is empty",
    "has only": "a place beyond the end of a group is an error; Ansible's selection is empty",
}
PARTLY = (
    "Ansible cannot read a file, warns, and keeps what stands before the mistake; here the file is left out or refused"
)


@dataclass(frozen=True)
class Row:
    """Line of ``inventories.txt``, which names a public inventory."""

    half: str
    repository: str
    commit: str
    path: str

    @property
    def key(self) -> str:
        """Name of the inventory in file names."""
        return re.sub(r"[/ ]", "+", f"{self.repository}/{self.path}")

    def at(self, trees: Path) -> Path:
        """Return the path of the inventory below the directory ``trees`` of all checkouts."""
        return trees / self.repository.replace("/", "+") / self.path


@dataclass(frozen=True)
class Difference:
    """Difference between Hostwright and Ansible for one inventory, with its reason."""

    what: str
    why: str
    detail: str


def rows() -> list[Row]:
    """Return all lines of ``inventories.txt``."""
    lines = [line for line in LIST.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    return [Row(*line.split(" ", 3)) for line in lines]


def ask(row: Row, trees: Path, answers: Path, python: str) -> None:
    """Run Ansible (with the interpreter ``python``) on an inventory, and store the output in ``answers``."""
    file = answers / f"{row.key}.json"
    if file.exists():
        return
    config = answers / "empty.cfg"
    config.write_text("[defaults]\n")
    environment = {**os.environ, "ANSIBLE_CONFIG": str(config), "ANSIBLE_NOCOLOR": "1", "PYTHONHASHSEED": "1"}
    program = str(Path(__file__).with_name("ansible_answers.py"))
    done = subprocess.run(
        [python, program, str(row.at(trees).absolute())],
        capture_output=True, cwd=answers, env=environment, timeout=300, check=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    file.write_bytes(done.stdout)


def differences(path: Path, answer: Mapping[str, Any]) -> Iterator[Difference]:
    """Yield the differences between Hostwright's inventory at ``path`` and ``answer``, Ansible's output."""
    partly = PARTLY if "Unable to parse" in answer["said"] else ""
    try:
        inventory = load(path)
    except HostwrightError as error:
        yield Difference("refused", _why(str(error), REFUSALS) or partly or UNEXPLAINED, str(error)[:300])
        return
    theirs, ours = set(answer["hosts"]), set(inventory.hosts)
    if theirs != ours:
        detail = f"only Ansible {sorted(theirs - ours)[:5]}, only we {sorted(ours - theirs)[:5]}"
        notes = " ".join(note for note in inventory.notes if "left out" in note)
        yield Difference("hosts", _why(notes, REFUSALS) or partly or UNEXPLAINED, detail)
    for name, members in answer["groups"].items():
        group = inventory.groups.get(name)
        if set(members) != set(group.hosts if group else ()) and theirs == ours:
            yield Difference("groups", UNEXPLAINED, f"{name}: {sorted(members)[:5]} {group and group.hosts[:5]}")
    for name, values in answer["hostvars"].items():
        if name in inventory.hosts:
            yield from _variables(inventory.hosts[name], values)
    for pattern, chosen in answer["patterns"].items():
        yield from _pattern(inventory, pattern, chosen, theirs - ours)


def _pattern(inventory: Inventory, pattern: str, theirs: Mapping[str, Any], missing: set[str]) -> Iterator[Difference]:
    wanted = set(theirs["hosts"])
    try:
        ours = {host.name for host in select(inventory, pattern, usable=False)}
    except HostwrightError as error:
        nothing_named = "matches no host and no group" in str(error)
        why = _why(str(error), STRICTER) if nothing_named or not wanted else ""
        if wanted or theirs["status"] == 0:
            yield Difference("pattern", why or UNEXPLAINED, f"{pattern}: {error}")
        return
    if ours != wanted:
        why = "hosts that are missing for the reason above" if ours == wanted - missing else UNEXPLAINED
        more = "more" if ours - wanted else "fewer"
        yield Difference("pattern", why, f"{pattern}: {more}: {sorted(ours)[:6]} not {theirs['hosts'][:6]}")


def _variables(host: Host, theirs: Mapping[str, Any]) -> Iterator[Difference]:
    ours = {name: plain(value.value) for name, value in host.vars.items()}
    for name in sorted(ours.keys() | theirs.keys()):
        mine, other = ours.get(name, "(absent)"), theirs.get(name, "(absent)")
        if mine != other:
            yield Difference(
                "variable", _why_variable(host, mine, other), f"{host.name}: {name}: {mine!r:.80} not {other!r:.80}"
            )


def plain(value: Any) -> Any:
    """Convert a value of Hostwright's inventory to its form in Ansible's JSON."""
    if isinstance(value, Secret):
        return plain(value.reveal())
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list) else value


def _why_variable(host: Host, ours: Any, theirs: Any) -> str:
    if "__ansible_vault" in str(theirs) or isinstance(ours, Vaulted):
        return "encrypted with Ansible Vault"
    if isinstance(theirs, float) and isinstance(ours, str) and _number(ours) == theirs:
        return "a number with a decimal point in INI stays text, so that a version keeps its digits"
    if str(ours) == str(theirs):
        return "a secret's number, a date or a key of a mapping is text here"
    if any("given twice" in str(mistake) for mistake in host.mistakes) or host.mistakes:
        return "a file of variables has a mistake: its hosts are refused, and listed without it"
    return UNEXPLAINED


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _why(sentence: str, reasons: Mapping[str, str]) -> str:
    return next((why for sign, why in reasons.items() if sign in sentence), "")


def ends(path: Path) -> int:
    """Run ``invoke hosts`` with the inventory ``path``; return its exit status."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            return hosts_verb(Request("all", inventory=(str(path),)))
        except HostwrightError as error:
            return error.exit_status


def compare(chosen: list[Row], trees: Path, answers: Path) -> None:
    """Print the number of ``chosen`` inventories that Hostwright reads like Ansible, and the differences by reason."""
    numbers: Counter[str] = Counter()
    counted: Counter[tuple[str, str]] = Counter()
    silent = [row for row in chosen if not (answers / f"{row.key}.json").exists()]
    print(f"without an answer of Ansible's within its time: {', '.join(f'{r.repository} {r.path}' for r in silent)}")
    chosen = [row for row in chosen if row not in silent]
    for row in chosen:
        answer = json.loads((answers / f"{row.key}.json").read_text("utf-8"))
        found = list(differences(row.at(trees), answer))
        status = ends(row.at(trees))
        numbers["read"] += not any(one.why not in STRICTER.values() for one in found)
        numbers["hosts"] += not any(one.what in ("refused", "hosts", "groups") for one in found)
        numbers["variables"] += bool(answer["hostvars"])
        numbers["ends"] += status == 0
        numbers["patterns"] += len(answer["patterns"])
        numbers["same"] += len(answer["patterns"]) - sum(one.what == "pattern" for one in found)
        counted.update({(one.what, one.why) for one in found})
        for one in [one for one in found if one.why == UNEXPLAINED][:6]:
            print(f"{row.repository} {row.path}: {one.what}: {one.detail}")
        if status:
            print(f"{row.repository} {row.path}: invoke hosts ends with {status}")
    print(f"{len(chosen)} inventories of {len({row.repository for row in chosen})} repositories")
    print(f"{numbers['read']:5} read as Ansible reads them (hosts, groups, variables; patterns alike or refused)")
    print(
        f"{numbers['hosts']:5} with the same hosts and groups; Ansible showed the variables of {numbers['variables']}"
    )
    print(f"{numbers['ends']:5} where `invoke hosts` ends with 0")
    print(f"{numbers['same']:5} of {numbers['patterns']} patterns choose the same hosts, the others by reason below")
    for (what, why), number in counted.most_common():
        print(f"{number:5} inventories: {what}: {why}")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["ask", "compare"])
    parser.add_argument("--trees", type=Path, required=True)
    parser.add_argument("--answers", type=Path, required=True)
    parser.add_argument("--ansible", default=sys.executable, help="the Python that has ansible-core")
    parser.add_argument("--half", choices=["a", "b"], help="only one half of the list")
    given = parser.parse_args()
    chosen = [row for row in rows() if given.half in (None, row.half)]
    if given.command == "ask":
        for row in chosen:
            ask(row, given.trees, given.answers, given.ansible)
    else:
        compare(chosen, given.trees, given.answers)


if __name__ == "__main__":
    main()
