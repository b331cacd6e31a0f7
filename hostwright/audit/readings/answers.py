"""Parse the output of the shell program that prints values of a host, and select the values that apply to the host.

All functions are pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from hostwright.audit.readings.program import root_program, user_program
from hostwright.common.canonical import Same
from hostwright.plan.model import Probe
from hostwright.plan.roles.auditvalue import PRODUCT, AuditValue, Snippet

RELEASE_LAYER = "release"  #: name of the layer of values from the host's release record

#: maximum number of characters to keep of a value from a host. The shell program has the same limit.
VALUE_CHARACTERS = 200

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9 ._+-]{0,99}")

_RECORD = Snippet(
    "record", r"""sed -nE 's/^  "(stack|at)": "([^"]{0,200})".*/record \1=\2/p' /var/lib/hostwright/release.json"""
)


def all_values(stack: str, roles: Iterable[AuditValue]) -> tuple[AuditValue, ...]:
    """Return ``roles`` (the values that the host's roles define), and the two values of the release record."""
    record = (
        AuditValue("stack", _RECORD.line("stack"), stack, layer=RELEASE_LAYER),
        AuditValue("at", _RECORD.line("at"), layer=RELEASE_LAYER),
    )
    return (*roles, *record)


def value_probes(values: Iterable[AuditValue]) -> tuple[Probe, ...]:
    """Return the probes that print ``values``: one without root, and one with root if a value needs root."""
    asked = tuple(values)
    root = root_program(asked)
    return (Probe(user_program(asked, PRODUCT)), *([Probe(root, root=True)] if root else []))


def asked_for(stack: str, roles: tuple[AuditValue, ...]) -> tuple[tuple[AuditValue, ...], tuple[Probe, ...]]:
    """Return the results of ``all_values`` and ``value_probes``, computed once for hosts with the same ``roles``."""
    return _asked_for(stack, Same(roles))


@lru_cache(maxsize=64)
def _asked_for(stack: str, roles: Same[tuple[AuditValue, ...]]) -> tuple[tuple[AuditValue, ...], tuple[Probe, ...]]:
    values = all_values(stack, roles.value)
    return values, value_probes(values)


def read_answers(text: str) -> dict[str, str]:
    """Return name → value in ``text``, the output of the shell program. Other and incomplete lines are skipped."""
    whole = text.rpartition("\n")[0]
    rows = (line.partition("=") for line in whole.split("\n"))
    return {name: value.strip()[:VALUE_CHARACTERS] for name, sign, value in rows if sign and _NAME.fullmatch(name)}


def is_meant(value: AuditValue, answers: Mapping[str, str]) -> bool:
    """Return whether ``value`` applies to a host with these ``answers``, according to the condition of the value."""
    return value.given is None or answers.get(value.given[0].line, "") == value.given[1]


def meant(values: Iterable[AuditValue], answers: Mapping[str, str]) -> tuple[AuditValue, ...]:
    """Return the ``values`` that apply to a host with these ``answers``.

    Of several values with the same layer and name, the first is used.
    """
    chosen: dict[tuple[str, str], AuditValue] = {}
    for value in values:
        if is_meant(value, answers):
            chosen.setdefault((value.layer, value.name), value)
    return tuple(chosen.values())


def check_lines(values: Iterable[AuditValue]) -> tuple[str, ...]:
    r"""Return the checks that a host with the role ``selfaudit`` makes itself, one per line with tabs between the
    fields.

    The fields are layer, name, name of the answer, condition (answer and value), and the value in the stack. The value
    in the stack is escaped as in JSON and Prometheus strings.
    """
    compared = (value for value in values if value.want is not None and not value.root and value.derive is None)
    return tuple(_check_line(value) for value in compared)


def _check_line(value: AuditValue) -> str:
    given = (value.given[0].line, value.given[1]) if value.given else ("", "")
    return "\t".join((value.layer, value.name, value.where.line, *given, _escaped(value.want or "")))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
