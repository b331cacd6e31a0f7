"""Parses the output of a proof's program into measurements. The output is untrusted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hostwright.common.text import short
from hostwright.common.untrusted import json_object
from hostwright.prove.model import NO_GPU, Better, Measurement, Measurements

MOST_LINES = 4000  #: maximum number of lines to read from a program's output, ten times the longest output of a proof
LINE_CHARACTERS = 4096  #: maximum number of characters of an output line; longer lines are ignored
MOST_MEASUREMENTS = 1000
MOST_ERRORS = 20
WORD_CHARACTERS = 160  #: maximum number of characters to keep of a device name or of a text value
UNIT_CHARACTERS = 24

_NAME = re.compile(r"[a-z0-9][a-z0-9_. -]{0,79}")
_BETTER: dict[object, Better] = {"more": "more", "less": "less", "": "", None: ""}


@dataclass(frozen=True, slots=True)
class Printed:
    """The parsed output of a proof's program: measurements, errors, completeness, and the first invalid line."""

    measurements: Measurements
    errors: tuple[str, ...] = ()
    ended: bool = False
    not_run: str = ""  #: reason, printed by the program, why the proof was not run; else empty
    broken: str = ""  #: first invalid output line with the error; empty if all lines are valid


def read(text: str) -> Printed:
    """Parse the output of a proof's program. Lines that are not JSON objects are ignored.

    >>> read('{"measure": "speed", "value": 2.5, "unit": "GB/s", "device": "cpu"}\\n{"end": true}').ended
    True
    """
    measured: dict[tuple[str, str], Measurement] = {}
    errors: list[str] = []
    ended, not_run, broken = False, "", ""
    for row in _rows(text):
        if ended:
            broken = broken or "the program printed more after its end line"
        elif "measure" in row:
            taken = _measurement(row)
            if isinstance(taken, str):
                broken = broken or taken
            elif len(measured) < MOST_MEASUREMENTS or (taken.name, taken.device) in measured:
                measured[taken.name, taken.device] = taken
            else:
                broken = broken or f"the program printed more than {MOST_MEASUREMENTS} measurements"
        elif isinstance(row.get("error"), str) and len(errors) < MOST_ERRORS:
            errors.append(short(row["error"]) or "an error without a text")
        elif isinstance(row.get("not run"), str):
            not_run = not_run or short(row["not run"]) or "the program gave no reason"
        elif row.get("end") is True:
            ended = True
    return Printed(Measurements(tuple(measured.values())), tuple(errors), ended, not_run, broken)


def _rows(text: str) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(text.split("\n")):
        if number >= MOST_LINES:
            return
        stripped = line[: LINE_CHARACTERS + 1].strip()
        if stripped.startswith("{") and len(line) <= LINE_CHARACTERS and (row := json_object(stripped)) is not None:
            yield row


def _measurement(row: dict[str, Any]) -> Measurement | str:
    """Return the measurement in ``row``, or an error text if it is invalid."""
    name, value, unit, device = (row.get(key) for key in ("measure", "value", "unit", "device"))
    better = row.get("better", "")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return f"the program printed an invalid name of a measurement: {short(repr(name))}"
    where = _text(device) if isinstance(device, str) else ""
    if trouble := _trouble(value, unit, where, better):
        return f"{name}: {trouble}"
    measure = _text(unit or "")[:UNIT_CHARACTERS]
    if where == NO_GPU:
        return Measurement(name, None, measure, where, _BETTER[better])
    taken = value if isinstance(value, bool) else _text(value) if isinstance(value, str) else float(value or 0)
    return Measurement(name, taken, measure, where, _BETTER[better])


def _trouble(value: Any, unit: Any, where: str, better: Any) -> str:
    if not where:
        return "the device is missing"
    if unit is not None and not isinstance(unit, str):
        return "the unit is not a string"
    if not (better is None or isinstance(better, str)) or better not in _BETTER:
        return f"'better' is {short(repr(better))}, not more or less"
    if where != NO_GPU and not isinstance(value, bool | str | int | float):
        return f"the value for {where} is missing"
    return ""


def _text(text: str) -> str:
    return short(text[:WORD_CHARACTERS])
