"""Recorded answers of whole hosts, written by ``make facts`` to ``tests/fixtures/hosts``.

A file has an answer for each probe of all standard stacks: the probe's digest and first line, and the fields of
``hostwright.apply.journal.factfiles``, with the text as lines for readable diffs.

``python -m tests.unit.support.recorded`` assigns the answers of rewritten probes to the new probes, if a host gives the
same answer to both: in order, each to a probe with the same first line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import blake2b

from hostwright.plan.model import Answer, Facts, Probe
from tests.places import PROJECT
from tests.unit.support.standard import targets

HOSTS = PROJECT / "tests/fixtures/hosts"
_SHOWN = 100  #: characters written of a probe's first line


def all_probes() -> tuple[Probe, ...]:
    """The probes of all standard stacks, each once."""
    return tuple(dict.fromkeys(probe for target in targets() for probe in target.desired.probes()))


def write(name: str, facts: Facts) -> None:
    """Write the answers of a host."""
    rows = [
        {
            "probe": digest(probe),
            "script": _first_line(probe),
            "status": answer.status,
            "text": answer.text.splitlines(keepends=True),
            **({"truncated": True} if answer.truncated else {}),
        }
        for probe, answer in facts.items()
    ]
    (HOSTS / f"{name}.json").write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", "utf-8")


def facts_of(name: str, probes: Iterable[Probe], replaced: Mapping[Probe, str] | None = None) -> Facts:
    """The answers of a recorded host to these probes, with some of them replaced.

    Raises ``LookupError`` for a probe without a recorded answer.
    """
    answers, asked = _answers(name), tuple(probes)
    missing = [probe for probe in asked if digest(probe) not in answers]
    if missing:
        raise LookupError(
            f"{HOSTS / name}.json: {len(missing)} of {len(asked)} probes have no recorded answer, the first is "
            f"{_first_line(missing[0])!r}; record the hosts anew with `make facts` (root, ten minutes), or, where "
            "they answer as before, `python -m tests.unit.support.recorded`"
        )
    instead = {probe: Answer(0, text) for probe, text in (replaced or {}).items()}
    return Facts({probe: instead.get(probe) or answers[digest(probe)] for probe in asked})


@cache
def _answers(name: str) -> dict[str, Answer]:
    rows = json.loads((HOSTS / f"{name}.json").read_text("utf-8"))
    return {row["probe"]: Answer(row["status"], "".join(row["text"]), row.get("truncated", False)) for row in rows}


def digest(probe: Probe) -> str:
    """The identifier of a probe in a file."""
    return blake2b(f"{probe.root} {probe.cap_bytes} {probe.script}".encode(), digest_size=8).hexdigest()


def _first_line(probe: Probe) -> str:
    return probe.script.strip().splitlines()[0][:_SHOWN]


def rename() -> None:
    """Assign answers of removed probes to probes without an answer that have the same first line.

    An answer is used for several probes if no other answer has this first line. Raises ``LookupError`` if answers
    differ.
    """
    names = {digest(probe): _first_line(probe) for probe in all_probes()}
    for file in HOSTS.glob("*.json"):
        rows = json.loads(file.read_text("utf-8"))
        former = [row for row in rows if row["probe"] not in names]
        coming = [key for key in names if key not in {row["probe"] for row in rows}]
        for line in dict.fromkeys((*(row["script"] for row in former), *(names[key] for key in coming))):
            old, new = [row for row in former if row["script"] == line], [key for key in coming if names[key] == line]
            if len(old) != len(new) and (len(old) != 1 or not new):
                raise LookupError(f"{file}: {len(old)} answers and {len(new)} new probes begin with {line!r}")
            rows += [{**old[0], "probe": key} for key in new[len(old) :]]
            for row, key in zip(old, new, strict=False):
                row["probe"] = key
        file.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    rename()
