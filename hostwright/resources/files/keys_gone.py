"""Removal of Hostwright's keys from a JSON file; keys that other programs wrote are kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from hostwright.common.quoting import sh
from hostwright.common.untrusted import json_object
from hostwright.plan.model import PROBE_CAP_BYTES, Answer, Change, Facts, Probe, Refusal, RemovalState, Step
from hostwright.resources.files.paths import TOO_LARGE, content_probe, unified, write_script
from hostwright.resources.files.paths_gone import Original
from hostwright.resources.originals import FORGET, RECORDED, kept, mark_changed, written


@dataclass(frozen=True, slots=True)
class KeysGone(RemovalState):
    """A JSON file lacks the keys that Hostwright set, or has their former values; a key that others changed is kept.

    The original file is restored byte for byte if nothing else has changed in it.
    """

    path: str  #: path of the file
    wanted: str  #: JSON object with the keys and values that Hostwright wrote
    check: str = ""  #: command that must accept the new file (``JsonMerged.check``)

    @property
    def _original(self) -> Original:
        return Original(self.path)

    def probes(self) -> tuple[Probe, ...]:
        mark = Probe(sh("test -e %s", written(self.path)), root=True)
        return (mark, RECORDED, content_probe(self.path), content_probe(kept(self.path)), *self._original.probes())

    def plan(self, facts: Facts) -> Change | Refusal | None:
        mark, recorded, now, then = (facts[probe] for probe in self.probes()[:4])
        unreadable = _object(now) is None
        if not mark.ok and (recorded.ok or not now.ok or unreadable):
            return None
        if now.truncated:
            sentence = (
                f"{self.path} is larger than {PROBE_CAP_BYTES} bytes, the limit for a configuration file; inspect it "
                "and remove it"
            )
            return Refusal(f"file {self.path}", "too large to read", "without the stack's keys", TOO_LARGE, sentence)
        have, before = _object(now), _object(then) or {}
        rest = without(have, json.loads(self.wanted), before) if have is not None else before
        if rest == before and mark.ok:
            change = self._original.plan(facts)
        elif rest == have:
            return self._forgotten() if mark.ok else None
        else:
            change = self._rewritten(now.text, rest)
        return self._marked(change, mark.ok) if rest != have else change

    def _marked(self, change: Change | None, written_down: bool) -> Change | None:
        if change is None:
            return None
        due = [sh("[ -e %s ] || exit 0", written(self.path))] if written_down else []
        head = "\n".join([*due, mark_changed(self.path)])
        return replace(change, steps=tuple(replace(step, script=f"{head}\n{step.script}") for step in change.steps))

    def _forgotten(self) -> Change:
        step = Step(FORGET + sh("forget %s", self.path))
        return Change(f"file {self.path}", "another's", "as before: as it is", (step,))

    def _rewritten(self, text: str, rest: Mapping[str, Any]) -> Change:
        if rest:
            new = json.dumps(rest, indent=4, sort_keys=False) + "\n"
            script = write_script(
                self.path, new, mode="644", owner="root:root", check=self.check, backup=False, stricter=True
            )
        else:
            new, script = "", sh("rm -f -- %s", self.path)
        backup = sh("rm -f -- %s", f"{self.path}.hostwright-backup")
        step = Step("\n".join([FORGET, script, backup, sh("forget %s", self.path)]))
        diff = unified(self.path, text, new, "before")
        return Change(f"file {self.path}", "with the stack's keys", "as before: without them", (step,), diff=diff)


def _object(answer: Answer) -> dict[str, Any] | None:
    """Return the JSON object in a file: ``{}`` for an empty file, ``None`` for any other content."""
    if not answer.ok or not answer.strip():
        return {}
    return json_object(answer.text)


def without(have: Mapping[str, Any], wanted: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``have`` with each value that ``merge(before, wanted)`` had set replaced by the value in ``before``.

    A value that differs from ``wanted`` is kept.
    """
    result = dict(have)
    for key, value in wanted.items():
        now, old = have.get(key), before.get(key)
        if isinstance(now, Mapping) and isinstance(value, Mapping):
            rest = without(now, value, old if isinstance(old, Mapping) else {})
            if rest or isinstance(old, Mapping):
                result[key] = rest
            else:
                _set_back(result, key, before)
        elif key in have and now == value:
            _set_back(result, key, before)
    return result


def _set_back(result: dict[str, Any], key: str, before: Mapping[str, Any]) -> None:
    if key in before:
        result[key] = before[key]
    else:
        del result[key]
