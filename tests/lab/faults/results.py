"""Results of the trials as JSON lines, and the table of docs/reliability.md."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from tests.places import PROJECT

DOCUMENT = PROJECT / "docs" / "reliability.md"
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"
CONTROL = "no fault"  #: the kind of the reference runs


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One ``invoke`` of a trial. A negative status is the signal that ended it."""

    words: tuple[str, ...]
    status: int | None
    seconds: float
    output: str = ""


@dataclass(slots=True)
class Record:
    """One trial: the fault, its moment, and all results. Every record is stored, whatever the result."""

    number: int
    kind: str
    layer: str
    seed: str
    share: float | None = None  #: moment of the fault, as a share of the reference run
    moment_s: float | None = None  #: moment of the fault, in seconds after the first line about the host
    during: str = ""  #: the step that ran on the host at that moment
    missed: int = 0  #: attempts whose run ended before the moment; they do not count as trials
    runs: list[RunRecord] = field(default_factory=list)
    further: int | None = None  #: number of further runs until success; None: no success
    repeated: list[str] = field(default_factory=list)  #: steps that succeeded more than once
    half: list[str] = field(default_factory=list)  #: half-written files at a final path
    twice: list[str] = field(default_factory=list)  #: packages installed twice
    lost: list[str] = field(default_factory=list)  #: steps without a record in any job, whose state is missing
    #: steps without a record whose state exists, for example because a boot starts services
    untraced: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)  #: other errors
    verified: bool = False
    notes: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether the trial met all promises."""
        return self.verified and not (self.half or self.twice or self.lost or self.broken)

    @property
    def complaints(self) -> list[str]:
        """The broken promises, as sentences."""
        return [
            *(f"half-written: {one}" for one in self.half),
            *(f"installed twice: {one}" for one in self.twice),
            *(f"lost: {one}" for one in self.lost),
            *self.broken,
            *([] if self.verified else ["not verified at the end"]),
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON values; the output of a good trial's runs is shortened."""
        document = asdict(self)
        for run in document["runs"]:
            run["output"] = run["output"][-300:] if self.ok else run["output"]
        return {**document, "ok": self.ok}


def read(path: Path) -> list[dict[str, Any]]:
    """Return the records of the last suite in a file."""
    records = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    begins = [place for place, record in enumerate(records) if record.get("suite")]
    return records[begins[-1] :] if begins else records


def table(records: Sequence[dict[str, Any]]) -> str:
    """Return the records of one suite as a Markdown table with explanatory sentences."""
    suite = next((one for one in records if one.get("suite")), {})
    trials = [one for one in records if "kind" in one]
    faults = [one for one in trials if one["kind"] != CONTROL]
    header = (
        "| what was done | layers | trials | further runs (least/median/most) | steps repeated | half-written files "
        "| lost | installed twice | hands on the host | verified at the end |"
    )
    lines = [header, "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|"]
    kinds = sorted(dict.fromkeys(one["kind"] for one in trials), key=lambda kind: (kind == CONTROL, kind))
    rows = [_row(kind, [one for one in trials if one["kind"] == kind]) for kind in kinds]
    total = _row("**all faults**", faults, layers="")
    return "\n".join([*lines, *rows, total, "", *_sentences(suite, faults)])


def _row(kind: str, trials: Sequence[dict[str, Any]], layers: str | None = None) -> str:
    named = layers if layers is not None else ", ".join(dict.fromkeys(one["layer"] for one in trials))
    further = [one["further"] for one in trials if one["further"] is not None]
    spread = f"{min(further)} / {median(further):g} / {max(further)}" if further else "–"
    counts = [sum(len(one[what]) for one in trials) for what in ("repeated", "half", "lost", "twice")]
    hands = sum(one["further"] is None for one in trials)
    verified = sum(one["verified"] for one in trials)
    cells = [kind, named, str(len(trials)), spread, *map(str, counts), str(hands), f"{verified} of {len(trials)}"]
    return f"| {' | '.join(cells)} |"


def _sentences(suite: dict[str, Any], faults: Sequence[dict[str, Any]]) -> list[str]:
    measured = {
        "reattach_s": ("After the controller was killed while a job ran, the next run had re-attached", "s"),
        "named_s": ("A hung host among twenty was named", "s"),
        "failed_s": ("and failed at its own timeout", "s"),
        "delay_percent": ("The other nineteen were done later than without it by", "%"),
    }
    sentences = []
    for name, (text, unit) in measured.items():
        values = [one["notes"][name] for one in faults if name in one["notes"]]
        if values:
            spread = f"{min(values):.1f} / {median(values):.1f} / {max(values):.1f} {unit}"
            sentences.append(f"- {text}: {spread} (least / median / most of {len(values)}).")
    missed = sum(one["missed"] for one in faults)
    began, seconds = suite.get("began", ""), suite.get("seconds", 0)
    sentences.append(
        f"- Seed {suite.get('seed')}, {suite.get('lanes')} hosts at a time, {seconds / 60:.0f} minutes, begun {began}"
        f"{', commit ' + suite['commit'] if suite.get('commit') else ''}. Moments that came after the run had ended "
        f"were drawn again, {missed} times in all; these are not counted."
    )
    return sentences


def write_document(records: Iterable[dict[str, Any]], document: Path = DOCUMENT) -> None:
    """Write the table into the document, between its markers."""
    text = document.read_text()
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    document.write_text(f"{head}{BEGIN}\n{table(list(records))}\n{END}{tail}")
