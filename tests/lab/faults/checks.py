"""Checks of a host after a fault, and at the end of a trial.

After a fault: no half-written file at a final path. At the end: nothing installed twice, no completed step repeated, no
step of the layer missing in the records. All checks read the host's mounted root, so the host may be off.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from hostwright.resources.python.users_files import MARKER
from tests.lab.faults.hostjobs import HostJob, folder
from tests.lab.faults.layers import Reference

#: Files that roles write by rename; shell patterns below a host's root.
WRITTEN = (
    "etc/apt/apt.conf.d/*", "etc/apt/preferences.d/*", "etc/apt/sources.list.d/*", "etc/profile.d/*",
    "etc/modprobe.d/*", "etc/modules-load.d/*", "etc/ld.so.conf.d/*", "etc/systemd/system/*.service",
    "etc/docker/daemon.json", "usr/share/keyrings/*", "usr/local/lib/hostwright/*",
    "usr/local/cuda-11.2/targets/x86_64-linux/lib/libcudnn*",
    "usr/local/cuda-11.2/targets/x86_64-linux/include/cudnn*",
)  # fmt: skip
#: Names that no program reads: temporary files, and copies of earlier files.
_NOT_FINAL = re.compile(r"(^\..*|\.(new|part|dpkg-new|dpkg-tmp|hostwright-new)|~|\.before-hostwright.*)$")
_ARTIFACTS = "var/cache/hostwright/artifacts"
_DAEMON_JSON = "etc/docker/daemon.json"
_RECORDS = ("var/lib/hostwright/release.json", "var/lib/hostwright/lock.json", _DAEMON_JSON)
_VENV = "opt/tensorflow-2.9"

#: Content of /etc/docker/daemon.json before the container role: a site's settings, which must survive.
DAEMON_BEFORE = {"log-driver": "json-file", "log-opts": {"max-size": "10m"}}


def written_files(root: Path) -> dict[str, str]:
    """Return path → SHA-256 of the content (or link target) of every file that a role may have written by rename."""
    found = {}
    for pattern in WRITTEN:
        for path in root.glob(pattern):
            if _NOT_FINAL.search(path.name) or not (path.is_symlink() or path.is_file()):
                continue
            with suppress(FileNotFoundError):
                content = str(path.readlink()).encode() if path.is_symlink() else path.read_bytes()
                found[str(path.relative_to(root))] = hashlib.sha256(content).hexdigest()
    return found


class Sums:
    """Checksums of artifacts on hosts; an unchanged file is read only once."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, int, int], str] = {}

    def of(self, path: Path) -> str:
        """Return the SHA-256 of a file."""
        stat = path.stat()
        key = (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns)
        if key not in self._known:
            with path.open("rb") as file:
                self._known[key] = hashlib.file_digest(file, "sha256").hexdigest()
        return self._known[key]


def half_written(root: Path, reference: Reference, sums: Sums, *, artifacts: bool = True) -> list[str]:
    """Return files at final paths whose content is neither that before the layer nor that after it."""
    return [
        *_neither_nor(root, reference),
        *_torn_json(root),
        *_torn_lists(root),
        *(_wrong_artifacts(root, sums) if artifacts else ()),
        *_incomplete_venv(root),
    ]


def _neither_nor(root: Path, reference: Reference) -> Iterator[str]:
    for path, sha256 in written_files(root).items():
        known = {reference.before.get(path), reference.after.get(path)} - {None}
        if known and sha256 not in known:
            yield f"/{path} is neither as before nor as after"


def _torn_json(root: Path) -> Iterator[str]:
    for path in [*(root / name for name in _RECORDS), *folder(root).glob("*/job.json")]:
        if not path.exists() or path.parent.name.endswith(".new"):
            continue
        try:
            found = json.loads(path.read_bytes())
        except ValueError:
            yield f"/{path.relative_to(root)} is not JSON: {path.read_bytes()[:80]!r}"
        else:
            if path == root / _DAEMON_JSON and not all(found.get(key) == value for key, value in DAEMON_BEFORE.items()):
                yield f"/{_DAEMON_JSON} lost what it had: {found}"
    for path in folder(root).glob("*/status"):
        if not path.parent.name.endswith(".new") and not re.fullmatch(r"\d+\n", path.read_text(errors="replace")):
            yield f"/{path.relative_to(root)} is {path.read_bytes()[:20]!r}"


def _torn_lists(root: Path) -> Iterator[str]:
    """Yield errors in the file lists of the driver and archives: every line must be complete."""
    lists = [(path, "\t", 5, 1) for path in (root / "var/lib/hostwright/unpacked").glob("*")]
    lists = [one for one in lists if not _NOT_FINAL.search(one[0].name)]
    for path, sign, parts, head in [*lists, (root / "var/lib/hostwright/driver.files", "|", 3, 0)]:
        if not path.exists():
            continue
        text = path.read_text(errors="replace")
        lines = text.splitlines()[head:]
        if not (text.endswith("\n") and lines and all(line.count(sign) == parts - 1 for line in lines)):
            yield f"/{path.relative_to(root)} is torn: …{text[-80:]!r}"


def _wrong_artifacts(root: Path, sums: Sums) -> Iterator[str]:
    for path in (root / _ARTIFACTS).glob("*/*"):
        if path.is_file() and not _NOT_FINAL.search(path.name):
            found = sums.of(path)
            if found != path.parent.name:
                yield f"/{path.relative_to(root)} has the sha256 {found[:12]}…"


def _incomplete_venv(root: Path) -> Iterator[str]:
    link = root / _VENV
    if link.is_symlink():
        home = root / str(link.readlink()).lstrip("/")
        if not (home / MARKER).exists():
            yield f"/{_VENV} leads to /{home.relative_to(root)}, which is not complete"
    elif link.exists():
        yield f"/{_VENV} is not a link"


_DPKG = re.compile(r"^\S+ \S+ (install|upgrade|remove|purge|status installed) ([^ :]+)")


def installed_twice(root: Path, passed_over: Collection[str] = ()) -> list[str]:
    """Return packages that dpkg installed more than once without a removal in between."""
    begun: set[str] = set()
    done: Counter[str] = Counter()
    log = root / "var/log/dpkg.log"
    for line in log.read_text(errors="replace").splitlines() if log.exists() else ():
        match = _DPKG.match(line)
        if match is None:
            continue
        action, package = match[1], match[2]
        if action in ("install", "upgrade"):
            begun.add(package)
        elif action in ("remove", "purge"):
            done.pop(package, None)
        elif package in begun:
            begun.discard(package)
            done[package] += 1
    return [
        f"{package} ({number} times)"
        for package, number in sorted(done.items())
        if number > 1 and package not in passed_over
    ]


def repeated_steps(jobs: Sequence[HostJob]) -> list[str]:
    """Return steps (role and script) that ended with status 0 more than once."""
    names: dict[tuple[str, str], str] = {}
    done: Counter[tuple[str, str]] = Counter()
    for step in (step for job in jobs for step in job.steps if step.status == 0):
        key = (step.role, step.sha256)
        names[key] = step.name
        done[key] += 1
    return [f"{names[key]} ({number} times)" for key, number in done.items() if number > 1]


def untraced_steps(jobs: Sequence[HostJob], reference: Reference) -> list[tuple[str, str]]:
    """Return steps (role, what) that the reference run has, but no job on the host.

    A reboot replaces some steps: it starts services and loads modules.
    """
    begun = {(step.role, step.what) for job in jobs for step in job.steps}
    return list(dict.fromkeys((role, what) for role, what, *_ in reference.steps if (role, what) not in begun))
