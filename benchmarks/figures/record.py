"""Stored record of the benchmark: a JSON file with every sample and the properties of the machine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.figures.sample import Sample
from benchmarks.figures.statistics import Figures

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Conditions:
    """Machine, versions, time and load of a measurement."""

    at: str  #: start of the run in UTC (ISO 8601)
    commit: str  #: hash of the commit in the checkout, with ``+`` if files were modified
    machine: dict[str, str]  #: facts about the machine, such as kernel and processor
    versions: dict[str, str]
    load_before: tuple[float, float, float]  #: load averages over 1, 5 and 15 minutes before the run
    quiet: bool  #: whether ``load_before`` is low enough for comparable figures

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Conditions:
        """Parse the JSON form of these conditions, as stored in a record."""
        first, second, third = values["load_before"]
        return cls(**{**values, "load_before": (first, second, third)})


@dataclass(frozen=True, slots=True)
class CaseRecord:
    """Samples, errors and conditions of one measured case."""

    conditions: Conditions
    rounds: int  #: requested number of times to measure each tool
    took_s: float
    samples: tuple[Sample, ...]
    facts: dict[str, str] = field(default_factory=dict)  #: facts for ``docs/performance.md``: name → sentence
    #: name of a contender → reason why the contender was not measured
    failed: dict[str, str] = field(default_factory=dict)
    cut: str = ""  #: reason why the case ended early; empty: all was measured
    #: processor seconds that the calibration took before the case; 0: not measured
    calibration_s: float = 0.0

    @property
    def figures(self) -> Figures:
        """Samples as ``Figures``."""
        return Figures(self.samples, self.calibration_s)

    @property
    def whole(self) -> bool:
        """Whether everything was measured on a quiet machine. Otherwise ``docs/performance.md`` has a warning."""
        return self.conditions.quiet and not self.failed and not self.cut

    def to_json(self) -> dict[str, Any]:
        """Return the record as values that ``json`` can write."""
        return {
            **asdict(self),
            "samples": [one.to_json() for one in self.samples],
            "took_s": round(self.took_s, 1),
            "calibration_s": round(self.calibration_s, 4),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> CaseRecord:
        """Parse the output of ``CaseRecord.to_json``."""
        return cls(
            **{
                **values,
                "conditions": Conditions.from_json(values["conditions"]),
                "samples": tuple(Sample.from_json(one) for one in values["samples"]),
            }
        )


def read(path: Path) -> dict[str, CaseRecord]:
    """Read the records in ``path`` by case name; empty without a file. Raises ``ValueError`` for another schema."""
    if not path.exists():
        return {}
    document = json.loads(path.read_text("utf-8"))
    if document.get("schema") != SCHEMA:
        raise ValueError(f"{path}: schema {document.get('schema')!r}, and this program reads {SCHEMA}: measure again")
    return {name: CaseRecord.from_json(values) for name, values in document["cases"].items()}


def write(path: Path, cases: Mapping[str, CaseRecord]) -> None:
    """Replace the file ``path`` by the records ``cases``, with one sample per line."""
    document = {"schema": SCHEMA, "cases": {name: case.to_json() for name, case in cases.items()}}
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(one_sample_a_line(document), "utf-8")
    temporary.replace(path)


def one_sample_a_line(document: Mapping[str, Any]) -> str:
    """Return ``document`` as JSON with one sample per line, so that diffs are readable."""
    samples: list[str] = []

    def held(value: Any) -> Any:
        if isinstance(value, dict) and "contender" in value and "wall_s" in value:
            samples.append(json.dumps(value, ensure_ascii=False))
            return f"\0{len(samples) - 1}\0"
        if isinstance(value, Mapping):
            return {key: held(inner) for key, inner in value.items()}
        return [held(inner) for inner in value] if isinstance(value, list | tuple) else value

    text = json.dumps(held(document), indent=1, ensure_ascii=False)
    parts = text.split('"\\u0000')
    rest = (part.partition('\\u0000"') for part in parts[1:])
    return parts[0] + "".join(samples[int(index)] + tail for index, _, tail in rest) + "\n"
