"""Probes for systemd units, combined into one query for all units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hostwright.common.quoting import sh, sh_file
from hostwright.plan.model import Answer, Pass, PassPart, Probe

_SHOWN = ("LoadState", "ActiveState", "UnitFileState")
_BEGAN = ("MainPID", "ExecMainStartTimestamp")


def parse_show(text: str) -> dict[str, str]:
    """Parse the ``Key=value`` lines of ``systemctl show``."""
    return dict(line.partition("=")[::2] for line in text.splitlines() if "=" in line)


class UnitPass(Pass):
    """Combined probe for many units: their states, and whether they were started after their files changed.

    An argument is ``UNIT``, or ``UNIT:PATH`` for one of the unit's files.
    """

    def script(self, asked: Sequence[str]) -> str:
        rows = _rows(asked)
        paths = dict.fromkeys(path for paths in rows.values() for path in paths)
        values = {
            "units": " ".join(rows),
            "properties": ",".join((*_SHOWN, *(_BEGAN if paths else ()))),
            "files": " ".join(paths),
            "rows": "\n".join(" ".join([unit, *paths]) for unit, paths in rows.items() if paths),
        }
        return sh_file(__file__, "sh/units.sh", **values)

    def differing(self, word: str, /) -> str:
        unit, _, path = word.partition(":")
        return f"ask {unit}" if path else ""

    def found(self, asked: Sequence[str], text: str) -> Mapping[str, str]:
        """Return the properties for ``UNIT``; ``old`` for ``UNIT:PATH`` if the unit was started after the file
        changed.
        """
        units, lines = tuple(_rows(asked)), text.splitlines()
        kept = [line for line in lines if line.startswith(("old ", "ask "))]
        shown = "\n".join(line for line in lines if line not in kept).strip().split("\n\n")
        blocks = [parse_show(block) for block in shown]
        if len(blocks) != len(units) or any(not block.keys() >= set(_SHOWN) for block in blocks):
            raise ValueError("systemctl show printed unexpected output")
        old = {line.removeprefix("old ") for line in kept}
        found = {word: "old" for word in asked if ":" in word and word.partition(":")[0] in old}
        for unit, block in zip(units, blocks, strict=True):
            found[unit] = "".join(f"{name}={value}\n" for name, value in block.items() if name in _SHOWN)
        return found


def _rows(asked: Sequence[str]) -> dict[str, list[str]]:
    rows: dict[str, list[str]] = {}
    for unit, _, path in (word.partition(":") for word in asked):
        rows.setdefault(unit, []).extend([path] if path else [])
    return rows


UNITS = UnitPass()


def show_probe(unit: str) -> Probe:
    """Probe that prints LoadState, ActiveState and UnitFileState of ``unit``."""
    script = sh("systemctl show -p %s -- %s", ",".join(_SHOWN), unit)
    return Probe(script, part=PassPart(UNITS, (unit,), lambda found: Answer(0, found[unit])))


def started(unit: str, files: Sequence[str]) -> PassPart:
    """Part of the combined probe ``UNITS``: an empty answer if ``unit`` was started after all of ``files`` changed."""
    asked = tuple(f"{unit}:{path}" for path in files)
    return PassPart(UNITS, asked, lambda found: Answer(0, "") if found.keys() >= set(asked) else None)
