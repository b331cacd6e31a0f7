"""Recorder of successful verbs in lab tests, for ``inventory/stacks/tried.json``.

With ``HOSTWRIGHT_RECORD_TRIED=1`` each verb that ended well becomes a record with the distribution, the stack and the
roles of its hosts. A lab stack counts as the standard stack of the same versions; its stand-in files are listed.
Nothing is written if a test failed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hostwright.common.errors import HostwrightError
from hostwright.common.request import Request
from hostwright.fleet import Fleet, TargetHost
from hostwright.stack.stack import Stack
from hostwright.stack.stackfile import stack_names
from hostwright.stack.tried import TRIED_FILE, Trial, read_trials, trials_text
from lab.config import CHECKOUT, Lab
from lab.locking import locked
from lab.records import give_to_user, read_records, write_atomically

VARIABLE = "HOSTWRIGHT_RECORD_TRIED"
STACKS = CHECKOUT / "inventory" / "stacks"
FILE = STACKS / TRIED_FILE
RELEASES = {"bullseye": ("debian", "11"), "bookworm": ("debian", "12"), "trixie": ("debian", "13")}
#: the recorded verbs, each with the exit statuses of success
VERBS = dict.fromkeys(("provision", "verify", "remove", "rollback", "rebuild", "audit", "doctor"), (0,)) | {
    "plan": (0, 3)
}
LOOKING = (
    "--check",
    "--offline",
    "--report",
    "--resume",
)  #: options that change what a verb does, so the call is not recorded

_recorded: list[Trial] = []


def note(lab: Lab, words: Sequence[str], inventory: str, status: int) -> None:
    """Record a call of ``invoke`` on hosts of a lab if it succeeded and recording is on."""
    if os.environ.get(VARIABLE) and status in VERBS.get(words[0], ()) and not set(words) & set(LOOKING):
        with suppress(HostwrightError):  # a selection that cannot be evaluated again is not recorded
            _recorded.extend(trials_of(lab, words, inventory))


def trials_of(lab: Lab, words: Sequence[str], inventory: str) -> list[Trial]:
    """Return the records of a successful call of ``invoke``, one per host."""
    given = [(words[at], words[at + 1]) for at in range(1, len(words) - 1)]
    settings = dict(value.split("=", 1) for option, value in given if option == "--var")
    options = dict(given)
    fleet = Fleet.load(Path(inventory), Request(var=tuple(f"{name}={value}" for name, value in settings.items())))
    hosts, roles = options.get("--hosts", "all"), options.get("--roles", "")
    distros = {name: str(record.options["distro"]) for name, record in read_records(lab).items()}
    targets = fleet.targets(hosts, [role for role in roles.split(",") if role])
    found = [_trial(target, words[0], distros[target.name]) for target in targets if target.name in distros]
    return [trial for trial in found if trial]


def _trial(target: TargetHost, verb: str, distro: str) -> Trial | None:
    distribution, release = RELEASES[distro]
    name = stands_for(target.stack, distribution, release)
    if name is None:
        return None
    return Trial(
        stack=name,
        versions=target.stack.versions(),
        distribution=distribution,
        release=release,
        roles=tuple(role.name for role in target.roles),
        verbs=(verb,),
        stand_ins=tuple(sorted(one.labelled(one.name) for one in target.artifacts if one.stand_in)),
        tests=(os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")[0],),
        date=datetime.now(UTC).date(),
    )


def stands_for(stack: Stack, distribution: str, release: str) -> str | None:
    """Return the standard stack with the same versions for this release, else ``None``."""
    fleet = Fleet.load(CHECKOUT / "inventory")
    names = [name for name in stack_names([STACKS]) if not name.startswith("lab")]
    names.sort(key=lambda name: name != fleet.default_stack)
    for name in names:
        one = fleet.stack(name)
        if one.versions() == stack.versions() and release in one.distributions.get(distribution, ()):
            return name
    return None


def write(file: Path, trials: Sequence[Trial]) -> None:
    """Merge records into a file; older records stay for verbs that this run did not try."""
    with locked("tried"):
        write_atomically(file, trials_text([*read_trials(file), *trials]))
    give_to_user(file)


def pytest_sessionfinish(exitstatus: int) -> None:
    """Write the records if all tests passed."""
    if _recorded and exitstatus == pytest.ExitCode.OK:
        write(FILE, _recorded)
        _recorded.clear()
