"""What is kept of a run: a JSON file with every sample and everything about the machine that could explain it."""

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
    """Where and when some cases were measured."""

    at: str  #: ISO 8601, UTC, when the run began
    commit: str  #: of the checkout; ends with ``+`` where files differed from it
    machine: dict[str, str]  #: kernel, distribution, processor, cores, memory, …
    versions: dict[str, str]  #: of every tool
    load_before: tuple[float, float, float]  #: of 1, 5 and 15 minutes, before anything of the run began
    quiet: bool  #: whether that load was below the bound; figures of a run that is not only show that it works

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Conditions:
        """What was written of them."""
        first, second, third = values["load_before"]
        return cls(**{**values, "load_before": (first, second, third)})


@dataclass(frozen=True, slots=True)
class CaseRecord:
    """One case as it was measured."""

    conditions: Conditions
    rounds: int  #: that were wanted
    took_s: float
    samples: tuple[Sample, ...]
    facts: dict[str, str] = field(default_factory=dict)  #: about the place, one sentence each
    failed: dict[str, str] = field(default_factory=dict)  #: contender → why it could not be measured
    cut: str = ""  #: why it ended before its time; empty: it did not
    calibration_s: float = 0.0  #: of the machine just before (``measuring.calibration``); 0: not measured

    @property
    def figures(self) -> Figures:
        """The samples, to compute with."""
        return Figures(self.samples, self.calibration_s)

    @property
    def whole(self) -> bool:
        """Whether it can stand on the page without a warning."""
        return self.conditions.quiet and not self.failed and not self.cut

    def to_json(self) -> dict[str, Any]:
        """As it is kept."""
        return {
            **asdict(self),
            "samples": [one.to_json() for one in self.samples],
            "took_s": round(self.took_s, 1),
            "calibration_s": round(self.calibration_s, 4),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> CaseRecord:
        """What ``to_json`` wrote."""
        return cls(
            **{
                **values,
                "conditions": Conditions.from_json(values["conditions"]),
                "samples": tuple(Sample.from_json(one) for one in values["samples"]),
            }
        )


def read(path: Path) -> dict[str, CaseRecord]:
    """The cases of a file by name; none where there is no file. Raises ``ValueError`` for another schema."""
    if not path.exists():
        return {}
    document = json.loads(path.read_text("utf-8"))
    if document.get("schema") != SCHEMA:
        raise ValueError(f"{path}: schema {document.get('schema')!r}, and this program reads {SCHEMA}: measure again")
    return {name: CaseRecord.from_json(values) for name, values in document["cases"].items()}


def write(path: Path, cases: Mapping[str, CaseRecord]) -> None:
    """Write the cases, one sample a line, in place of what is there."""
    document = {"schema": SCHEMA, "cases": {name: case.to_json() for name, case in cases.items()}}
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(one_sample_a_line(document), "utf-8")
    temporary.replace(path)


def one_sample_a_line(document: Mapping[str, Any]) -> str:
    """The document as JSON, so that a difference between two runs can be read."""
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
