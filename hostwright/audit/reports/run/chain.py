"""What the end of a run on a host waited for: its critical path, found from the end backwards. Pure.

A step began when the one before it had ended; the first one of a layer, when its files and the layers that it needs
were there; one that waited for a lock, when whoever held the lock had ended; a layer that is worked on once more, when
all others had ended and the host had been looked at. What is recorded says when that was, not why: of several things
that ended before, the last one is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hostwright.audit.reports.run.spans import RunSpan, Stretch

WAITED_S = 0.5  #: a shorter wait for a lock is that of processes which start
NEAR_S = 1.5  #: how far the clocks of host and controller, and what is not recorded between, put things apart
MOST_LINKS = 1000  #: of a chain: a record says what it likes


@dataclass(frozen=True, slots=True)
class ChainLink:
    """One piece of the path: of a layer, of a file that was sent, of a reboot; ``steps`` are what was done in it."""

    span: RunSpan
    began_s: float
    lasted_s: float
    steps: tuple[str, ...] = ()

    @property
    def end_s(self) -> float:
        """When it ended."""
        return self.began_s + self.lasted_s


def chain_of(spans: Sequence[RunSpan], needs: Mapping[str, Iterable[str]]) -> tuple[ChainLink, ...]:
    """The critical path of a host, from its first piece to its last; empty where nothing took time.

    ``spans`` is all that took time on it, ``needs`` the layers that each layer waited for.
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
    """A span, and the number of its last step: 0 where it has none."""
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
    """What had to end before a step could go on."""
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
    if span.kind == "sent":  # sent at once, or after another: what ended long before was no reason to begin then
        ended = [other for other in ended if other.end_s >= span.began_s - NEAR_S]
    whose = [other for other in ended if again or _matters(other, span, needed)]
    return _last(max(whose, key=lambda other: other.end_s)) if whose else None


def _matters(other: RunSpan, span: RunSpan, needed: frozenset[str]) -> bool:
    """Whether a span had to wait for another that ended before it."""
    if other.kind == "reboot" or span.kind == "reboot":
        return True
    if other.kind == "sent":
        return other.role == span.role or span.kind == "sent"
    return other.role in needed


def _holder(span: RunSpan, waits: Stretch, spans: Sequence[RunSpan]) -> tuple[RunSpan, int] | None:
    """The step of another layer that ended when a step's wait for a lock did."""
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
    """Steps of one span that follow each other, as one piece."""
    joined: list[ChainLink] = []
    for link in links:
        if joined and joined[-1].span is link.span and link.steps:
            last = joined[-1]
            lasted_s = max(last.end_s, link.end_s) - last.began_s
            joined[-1] = replace(last, lasted_s=lasted_s, steps=(*last.steps, *link.steps))
        else:
            joined.append(link)
    return tuple(joined)
