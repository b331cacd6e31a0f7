"""Helpers for tests of roles and resources without a host.

In ``facts_for(resources, {"dpkg-query": "bash 5.1 ii", "readlink": Answer(1, "")})``, the longest key that occurs in a
probe's script selects the probe's answer. A probe without such a key gets ``default``. ``plan_text`` formats changes
like ``invoke plan``, for examples in docstrings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from hostwright.plan.model import Answer, Change, Deferred, Facts, Planned, Probe, Reboot, Refusal, Resource

NOTHING = Answer(1, "")

Reply: TypeAlias = str | Answer
Replies: TypeAlias = Mapping[str, Reply] | Callable[[Probe], Reply | None]


def answer(reply: Reply) -> Answer:
    """Convert a reply of a test to an answer: a plain text is the output of a successful script."""
    return Answer(0, reply) if isinstance(reply, str) else reply


def reply_to(probe: Probe, replies: Replies, default: Answer = NOTHING) -> Answer:
    """Return the answer in ``replies`` with the longest key that occurs in the probe's script, else ``default``."""
    if callable(replies):
        reply = replies(probe)
        return default if reply is None else answer(reply)
    keys = [key for key in replies if key in probe.script]
    return answer(replies[max(keys, key=len)]) if keys else default


def facts_for(
    resources: Resource | Iterable[Resource], replies: Replies | None = None, *, default: Answer = NOTHING
) -> Facts:
    """Return facts with an answer from ``replies`` for every probe of these resources."""
    many = [resources] if isinstance(resources, Resource) else list(resources)
    return Facts({probe: reply_to(probe, replies or {}, default) for resource in many for probe in resource.probes()})


def changes_of(
    resources: Resource | Iterable[Resource], replies: Replies | None = None, *, default: Answer = NOTHING
) -> tuple[Planned, ...]:
    """Return the planned changes of these resources, given ``replies`` to their probes."""
    many = [resources] if isinstance(resources, Resource) else list(resources)
    facts = facts_for(many, replies, default=default)
    return tuple(change for resource in many if (change := resource.plan(facts)) is not None)


def plan_text(
    resources: Resource | Iterable[Resource], replies: Replies | None = None, *, default: Answer = NOTHING
) -> str:
    """Return the planned changes of these resources as text, like ``invoke plan`` without diffs."""
    planned = changes_of(resources, replies, default=default)
    return "\n".join(map(_line, planned)) or "nothing to do"


def _line(planned: Planned) -> str:
    line = f"{planned.what}: {planned.have} → {planned.want}"
    match planned:
        case Deferred(until=until):
            return f"? {line}  (known after {until})"
        case Refusal(sentence=sentence):
            return f"! {line}\n  refused: {sentence}"
        case Reboot(reason=reason):
            return f"~ {line}\n  then a reboot: {reason}"
        case Change(disturbs=disturbs, warnings=warnings):
            lines = [*warnings, *([f"disturbs work: {disturbs}"] if disturbs else [])]
            return f"~ {line}" + "".join(f"\n  {text}" for text in lines)
