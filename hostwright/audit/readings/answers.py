"""The lines that the program printed on a host, and which values apply to a host with these answers. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from hostwright.audit.readings.program import root_program, user_program
from hostwright.common.canonical import Same
from hostwright.plan.model import Probe
from hostwright.plan.roles.auditvalue import PRODUCT, AuditValue, Snippet

RELEASE_LAYER = "release"  #: the layer of the values in the host's release record; no role has this name

VALUE_CHARACTERS = 200  #: of an answer that are kept; the program itself cuts it there

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9 ._+-]{0,99}")

_RECORD = Snippet(
    "record", r"""sed -nE 's/^  "(stack|at)": "([^"]{0,200})".*/record \1=\2/p' /var/lib/hostwright/release.json"""
)


def all_values(stack: str, roles: Iterable[AuditValue]) -> tuple[AuditValue, ...]:
    """The values of a host's roles, and those of its release record; ``stack`` is the name of its stack."""
    record = (
        AuditValue("stack", _RECORD.line("stack"), stack, layer=RELEASE_LAYER),
        AuditValue("at", _RECORD.line("at"), layer=RELEASE_LAYER),
    )
    return (*roles, *record)


def value_probes(values: Iterable[AuditValue]) -> tuple[Probe, ...]:
    """The probes for these values: one without root, then one with root if any value needs it."""
    asked = tuple(values)
    root = root_program(asked)
    return (Probe(user_program(asked, PRODUCT)), *([Probe(root, root=True)] if root else []))


def asked_for(stack: str, roles: tuple[AuditValue, ...]) -> tuple[tuple[AuditValue, ...], tuple[Probe, ...]]:
    """``all_values`` and their ``value_probes``, made once for all hosts that have the same tuple of values."""
    return _asked_for(stack, Same(roles))


@lru_cache(maxsize=64)
def _asked_for(stack: str, roles: Same[tuple[AuditValue, ...]]) -> tuple[tuple[AuditValue, ...], tuple[Probe, ...]]:
    values = all_values(stack, roles.value)
    return values, value_probes(values)


def read_answers(text: str) -> dict[str, str]:
    """The answers in a program's output; other lines, and a last line that was cut, are skipped."""
    whole = text.rpartition("\n")[0]
    rows = (line.partition("=") for line in whole.split("\n"))
    return {name: value.strip()[:VALUE_CHARACTERS] for name, sign, value in rows if sign and _NAME.fullmatch(name)}


def is_meant(value: AuditValue, answers: Mapping[str, str]) -> bool:
    """Whether a value applies to a host with these answers."""
    return value.given is None or answers.get(value.given[0].line, "") == value.given[1]


def meant(values: Iterable[AuditValue], answers: Mapping[str, str]) -> tuple[AuditValue, ...]:
    """Of all values with the same layer and name, the first that applies to a host with these answers."""
    chosen: dict[tuple[str, str], AuditValue] = {}
    for value in values:
        if is_meant(value, answers):
            chosen.setdefault((value.layer, value.name), value)
    return tuple(chosen.values())


def check_lines(values: Iterable[AuditValue]) -> tuple[str, ...]:
    r"""The checks that a host makes by itself, one a line, separated by tabs: layer, name, answer, condition and its
    value, and the stack's value, escaped as JSON and Prometheus both do between quotes. No field has a tab or newline.
    """
    compared = (value for value in values if value.want is not None and not value.root and value.derive is None)
    return tuple(_check_line(value) for value in compared)


def _check_line(value: AuditValue) -> str:
    given = (value.given[0].line, value.given[1]) if value.given else ("", "")
    return "\t".join((value.layer, value.name, value.where.line, *given, _escaped(value.want or "")))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
