"""States of files, directories and links.

A file is written to a temporary name, checked, flushed and renamed, so that no reader finds an incomplete file. The
temporary name ``.NAME.hostwright-new`` is fixed, so that the next write replaces the remains of an interrupted write.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any

from hostwright.common.quoting import sh, sh_file, words
from hostwright.common.untrusted import json_object
from hostwright.plan.model import PROBE_CAP_BYTES, Answer, Change, Facts, Pass, PassPart, Probe, Refusal, Resource, Step
from hostwright.plan.state_identity import NO_IDENTITY
from hostwright.resources.files.keys_gone import KeysGone
from hostwright.resources.files.paths import (
    ABSENT,
    INSTEAD,
    MOVED_ASIDE,
    TOO_LARGE,
    content_probe,
    instead_probe,
    moved_aside,
    stat_probe,
    there_probe,
    unified,
    write_script,
)
from hostwright.resources.files.paths_gone import DirectoryGone, Original, as_file, as_link
from hostwright.resources.originals import keep_original, made_directory


@dataclass(frozen=True, slots=True)
class File(Resource):
    r"""A regular file with exactly this text, mode and owner is at a path.

    Missing parent directories are created. The file from before Hostwright's first change is kept on the host and
    restored when the role is removed. A plan shows the diff of the texts.

    >>> motd = File("/etc/motd", "Kept by Hostwright.\n")
    >>> print(plan_text(motd))
    ~ file /etc/motd: absent → 644 root:root
    >>> print(plan_text(motd, {"stat": "regular file|600|root:root", "cat": "Kept by Hostwright.\n"}))
    ~ file /etc/motd: regular file 600 root:root → 644 root:root
    """

    path: str  #: path of the file
    content: str  #: complete text of the file after the change
    mode: str = "644"  #: permissions of the file in octal digits
    owner: str = "root:root"  #: owner and group of the file as ``USER:GROUP``
    #: command that must succeed before the replacement; ``%s`` stands for the new file's name
    check: str = ""
    backup: bool = False  #: whether to copy the replaced file to ``PATH.hostwright-backup``
    #: commands to run after each change (``systemctl daemon-reload``)
    then: tuple[str, ...] = ()
    #: lock to hold during the change: ``dpkg`` if dpkg's triggers also run a command in ``then``
    lock: str = field(default="", metadata=NO_IDENTITY)

    def probes(self) -> tuple[Probe, ...]:
        return (stat_probe(self.path), content_probe(self.path, self.content), fixed_probe(self.path))

    def plan(self, facts: Facts) -> Change | Refusal | None:
        stat, content = (facts[probe] for probe in self.probes()[:2])
        want_stat = f"regular file|{self.mode}|{self.owner}"
        have_stat = stat.strip().replace("regular empty file", "regular file")
        same_text = stat.ok and content.text == self.content and not content.truncated
        if same_text and have_stat == want_stat:
            return None
        have = "other text" if not same_text else have_stat.replace("|", " ")
        change = Change(
            what=f"file {self.path}",
            have=have if stat.ok else ABSENT,
            want=want_stat.replace("|", " ").replace("regular file ", ""),
            diff="" if same_text else unified(self.path, content.text if stat.ok else "", self.content),
            steps=(Step("\n".join([keep_original(self.path), self._write(), *self.then]), self.lock),),
        )
        return unless_fixed(change, self.path, facts)

    def _write(self) -> str:
        return write_script(
            self.path, self.content, mode=self.mode, owner=self.owner, check=self.check, backup=self.backup
        )

    def removal(self) -> tuple[Resource, ...]:
        return (Original(self.path, self.then, as_file(self.content)),)


@dataclass(frozen=True, slots=True)
class Directory(Resource):
    """A directory with this mode and owner is at a path. Its content is not checked.

    When the role is removed, the directory is removed if Hostwright made it and it is empty.

    >>> print(plan_text(Directory("/srv/data", mode="750"), {"stat": "directory|755|root:root"}))
    ~ directory /srv/data: directory 755 root:root → directory 750 root:root
    """

    path: str  #: path of the directory
    mode: str = "755"  #: permissions of the directory in octal digits
    owner: str = "root:root"  #: owner and group of the directory as ``USER:GROUP``

    def probes(self) -> tuple[Probe, ...]:
        return (stat_probe(self.path),)

    def plan(self, facts: Facts) -> Change | None:
        stat = facts[self.probes()[0]]
        want = f"directory|{self.mode}|{self.owner}"
        have = stat.strip() if stat.ok else ABSENT
        if have == want:
            return None
        user, _, group = self.owner.partition(":")
        make = sh("install -d -m %s -o %s -g %s -- %s", self.mode, user, group or user, self.path)
        step = Step(f"{made_directory(self.path)}\n{make}")
        return Change(f"directory {self.path}", have.replace("|", " "), want.replace("|", " "), (step,))

    def removal(self) -> tuple[Resource, ...]:
        return (DirectoryGone(self.path),)


@dataclass(frozen=True, slots=True)
class Link(Resource):
    """A symbolic link to this target is at a path. The target need not exist.

    A file or directory at the path is moved to ``PATH.before-hostwright.TIME``. When the role is removed, this file or
    directory is moved back, and a former link with another target is restored.

    >>> tool = Link("/usr/local/tool", "/opt/tool-1.2")
    >>> print(plan_text(tool, {"readlink": "/opt/tool-1.1"}))
    ~ link /usr/local/tool: /opt/tool-1.1 → /opt/tool-1.2
    >>> print(plan_text(tool, {"readlink": "/directory"}))
    ~ link /usr/local/tool: a directory → /opt/tool-1.2
      the directory is moved to /usr/local/tool.before-hostwright.TIME, and is moved back on removal
    """

    path: str  #: path of the link
    target: str  #: target of the link, exactly as written into the link

    def probes(self) -> tuple[Probe, ...]:
        return (instead_probe(self.path), fixed_probe(self.path))

    def plan(self, facts: Facts) -> Change | Refusal | None:
        answer = facts[self.probes()[0]]
        have = (answer.text.removesuffix("\n") or "not a link") if answer.ok else ABSENT
        if have == self.target:
            return None
        kind = INSTEAD.get(have, "")
        script = [
            sh(MOVED_ASIDE, *[self.path] * 4),
            keep_original(self.path),
            sh("mkdir -p -- %s", PurePosixPath(self.path).parent),
            sh("ln -sfn -- %s %s", self.target, self.path),
        ]
        have, warnings = (f"a {kind}", (moved_aside(f"the {kind}", self.path),)) if kind else (have, ())
        change = Change(f"link {self.path}", have, self.target, (Step("\n".join(script)),), warnings=warnings)
        return unless_fixed(change, self.path, facts)

    def removal(self) -> tuple[Resource, ...]:
        return (Original(self.path, ours=as_link(self.target)),)


@dataclass(frozen=True, slots=True)
class Absent(Resource):
    """Neither a file nor a link is at a path. If a directory is there, the change fails.

    The file is deleted permanently; it is not restored when the role is removed.

    >>> print(plan_text(Absent("/etc/apt/trusted.gpg", "every key in it vouches for all sources"), {"test -e": ""}))
    ~ file /etc/apt/trusted.gpg: present → absent (every key in it vouches for all sources)
    """

    path: str  #: path at which no file or link may be
    because: str = field(default="", metadata=NO_IDENTITY)  #: reason in the plan for the removal

    def probes(self) -> tuple[Probe, ...]:
        return (there_probe(self.path), fixed_probe(self.path))

    def plan(self, facts: Facts) -> Change | Refusal | None:
        if not facts[self.probes()[0]].ok:
            return None
        want = f"{ABSENT} ({self.because})" if self.because else ABSENT
        change = Change(f"file {self.path}", "present", want, (Step(sh("rm -f -- %s", self.path)),))
        return unless_fixed(change, self.path, facts)

    def removal(self) -> tuple[Resource, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class JsonMerged(Resource):
    """A JSON file has at least these keys with these values; its other keys are kept.

    Objects are merged key by key; any other value is replaced. A file that is not JSON is replaced, and a host with a
    file larger than 64 KiB is refused. When the role is removed, the keys are removed or get their former values back,
    and changes by others are kept.

    >>> daemon = JsonMerged("/etc/tool/daemon.json", '{"log": {"level": "warn"}}')
    >>> print(plan_text(daemon, {"stat": "regular file|644|root:root", "cat": '{"debug": true}'}))
    ~ file /etc/tool/daemon.json: keys missing or different → merged with the stack's keys
    """

    path: str  #: path of the file
    wanted: str  #: JSON object with the keys and values that the file must contain
    #: command that must succeed before the replacement; ``%s`` stands for the new file's name
    check: str = ""

    def probes(self) -> tuple[Probe, ...]:
        return (stat_probe(self.path), content_probe(self.path), fixed_probe(self.path))

    def plan(self, facts: Facts) -> Change | Refusal | None:
        stat, content = (facts[probe] for probe in self.probes()[:2])
        wanted = json.loads(self.wanted)
        have = json_object(content.text) if stat.ok and content.strip() else {}
        if stat.ok and content.truncated:
            sentence = (
                f"{self.path} is larger than {PROBE_CAP_BYTES} bytes, the limit for a configuration file; inspect it "
                "and remove it"
            )
            return Refusal(f"file {self.path}", "too large to read", "a JSON object", TOO_LARGE, sentence)
        merged = wanted if have is None else merge(have, wanted)
        if stat.ok and merged == have:
            return None
        text = json.dumps(merged, indent=4, sort_keys=False) + "\n"
        script = write_script(
            self.path, text, mode="644", owner="root:root", check=self.check, backup=True, stricter=True
        )
        change = Change(
            what=f"file {self.path}",
            have=ABSENT if not stat.ok else "not valid JSON" if have is None else "keys missing or different",
            want="merged with the stack's keys",
            steps=(Step(f"{keep_original(self.path)}\n{script}"),),
            diff=unified(self.path, content.text if stat.ok else "", text),
        )
        return unless_fixed(change, self.path, facts)

    def removal(self) -> tuple[Resource, ...]:
        return (KeysGone(self.path, self.wanted, self.check),)


def merge(have: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``have`` with every key of ``wanted`` set; objects are merged key by key, any other value is replaced."""
    result = dict(have)
    for key, value in wanted.items():
        old = result.get(key)
        result[key] = merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return result


#: shell function ``fixed PATH...`` that prints each PATH that cannot be replaced, with the reason
_FIXED = sh_file(__file__, "sh/fixed.sh")

RULE = "file-cannot-be-replaced"
_WHY = {
    "immutable": "is immutable (lsattr shows i); to allow the change, run chattr -i",
    "append": "is append-only (lsattr shows a); to allow the change, run chattr -a",
    "mounted": "is a mount point; run umount",
    "read-only": "is on a file system that is mounted read-only; see findmnt -T",
}


class FixedPass(Pass):
    """Combined probe for many paths: one call of the shell function ``fixed`` finds the paths that cannot be
    replaced.
    """

    def script(self, asked: Sequence[str]) -> str:
        return f"{_FIXED}fixed {words(tuple(asked))}"

    def found(self, asked: Sequence[str], text: str) -> Mapping[str, str]:  # noqa: ARG002 - signature of ``Pass``
        return {line.rpartition("\t")[2]: line for line in text.splitlines()}


_PASS = FixedPass()


@lru_cache(maxsize=1024)
def fixed_probe(path: str) -> Probe:
    """Probe that prints why the file at ``path`` cannot be replaced, or nothing if it can be."""
    part = PassPart(_PASS, (path,), lambda found: Answer(0, found.get(path, "")))
    return Probe(_PASS.script([path]), root=True, part=part)


def unless_fixed(change: Change, path: str, facts: Facts) -> Change | Refusal:
    """Return ``change``, or a refusal if ``fixed_probe(path)`` reports that the file at ``path`` cannot be replaced."""
    kind, _, where = facts[fixed_probe(path)].strip().partition("\t")
    where = where.partition("\t")[0]
    if kind not in _WHY:
        return change
    subject = "it" if where == path else where
    sentence = f"{path} cannot be replaced: {subject} {_WHY[kind]} {where}, then provision again"
    return Refusal(change.what, change.have, change.want, RULE, sentence)
