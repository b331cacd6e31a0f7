"""The critical path of a run on a host: the work that delayed the end of the run, found from the end backwards.

A step begins when the previous step has ended. The first step of a layer begins when its files are complete, and the
layers that it needs have ended. A step that waits for a lock begins when the owner of the lock has ended. Records
contain these times, not the reasons: of several possible predecessors, the one that ended last is used. All functions
are pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hostwright.audit.reports.run.spans import RunSpan, Stretch

#: minimum seconds of a wait for a lock. A shorter wait is only the time to start a process.
WAITED_S = 0.5
NEAR_S = 1.5  #: tolerance in seconds for differences between the clocks of host and controller
MOST_LINKS = 1000  #: maximum number of parts of a critical path. Records are untrusted and may be damaged.


@dataclass(frozen=True, slots=True)
class ChainLink:
    """One part of the critical path: the work on a layer, a file transfer or a reboot.

    ``steps`` are the layer's steps that belong to the part.
    """

    span: RunSpan
    began_s: float
    lasted_s: float
    steps: tuple[str, ...] = ()

    @property
    def end_s(self) -> float:
        """The end of this part in seconds after the start of the run."""
        return self.began_s + self.lasted_s


def chain_of(spans: Sequence[RunSpan], needs: Mapping[str, Iterable[str]]) -> tuple[ChainLink, ...]:
    """Return the critical path of one host, from its first part to its last; empty if nothing took time.

    ``spans`` are all spans of the host. ``needs`` has the layers for which each layer had to wait.
    """
    known = [span for span in spans if span.kind not in {"phase", "silent"}]
    if not known:
        return ()
    path: list[ChainLink] = []
    at: tuple[RunSpan, int] | None = _last(max(known, key=lambda span: span.end_s))
    seen: set[tuple[int, int]] = set()
    while at is not None and len(path) < MOST_LINKS and (id(at[0]), at[1]) not in seen:
        seen.add((id(at[0]), at[1]))
        path.append(_link(*at))
        at = _before(*at, known, needs)
    return _joined(reversed(path))


def _last(span: RunSpan) -> tuple[RunSpan, int]:
    return span, max(0, len(span.steps) - 1)


def _link(span: RunSpan, number: int) -> ChainLink:
    if not span.steps:
        return ChainLink(span, span.began_s, span.lasted_s)
    step = span.steps[number]
    waited_s = step.waited_s if step.waited_s >= WAITED_S else 0.0
    last_s = span.end_s - step.end_s if span.steps[number + 1 :] == () and span.kind == "open" else 0.0
    return ChainLink(span, step.began_s + waited_s, step.lasted_s - waited_s + max(0.0, last_s), (step.what,))


def _before(
    span: RunSpan, number: int, spans: Sequence[RunSpan], needs: Mapping[str, Iterable[str]]
) -> tuple[RunSpan, int] | None:
    if span.steps and span.steps[number].waited_s >= WAITED_S:
        step = span.steps[number]
        return _holder(span, step, spans) or _earlier(span, number, spans, needs)
    return _earlier(span, number, spans, needs)


def _earlier(
    span: RunSpan, number: int, spans: Sequence[RunSpan], needs: Mapping[str, Iterable[str]]
) -> tuple[RunSpan, int] | None:
    if number > 0:
        return span, number - 1
    needed = frozenset(needs.get(span.role, ()))
    ended = [other for other in spans if other is not span and other.end_s <= span.began_s + NEAR_S / 2]
    again = span.kind != "sent" and any(other.role == span.role and other.kind != "sent" for other in ended)
    # A transfer only waits for another transfer.
    if span.kind == "sent":
        ended = [other for other in ended if other.end_s >= span.began_s - NEAR_S]
    whose = [other for other in ended if again or _matters(other, span, needed)]
    return _last(max(whose, key=lambda other: other.end_s)) if whose else None


def _matters(other: RunSpan, span: RunSpan, needed: frozenset[str]) -> bool:
    if other.kind == "reboot" or span.kind == "reboot":
        return True
    if other.kind == "sent":
        return other.role == span.role or span.kind == "sent"
    return other.role in needed


def _holder(span: RunSpan, waits: Stretch, spans: Sequence[RunSpan]) -> tuple[RunSpan, int] | None:
    free_s = waits.began_s + waits.waited_s
    near = [
        (abs(step.end_s - free_s), other, number)
        for other in spans
        if other.role != span.role
        for number, step in enumerate(other.steps)
        if abs(step.end_s - free_s) <= NEAR_S and step.began_s + step.waited_s < free_s
    ]
    return min(near, key=lambda one: one[0])[1:] if near else None


def _joined(links: Iterable[ChainLink]) -> tuple[ChainLink, ...]:
    joined: list[ChainLink] = []
    for link in links:
        if joined and joined[-1].span is link.span and link.steps:
            last = joined[-1]
            lasted_s = max(last.end_s, link.end_s) - last.began_s
            joined[-1] = replace(last, lasted_s=lasted_s, steps=(*last.steps, *link.steps))
        else:
            joined.append(link)
    return tuple(joined)
