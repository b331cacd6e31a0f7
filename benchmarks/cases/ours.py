"""Commands of ``hostwright`` to measure, with a check that all hosts match their stack."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.measuring.command import Command, Done
from benchmarks.measuring.machine import own_program
from hostwright.common.quoting import sh

PLAN, AUDIT = "hostwright plan", "hostwright audit"
PROBES = "the probe program alone"
#: verb → pattern of the output of Hostwright if all ``count`` hosts are as desired
GREEN = {PLAN: r"\b{count} hosts?: as desired, nothing to do", AUDIT: r"\b{count} as desired"}


def ours(contender: str, size: int, *words: str, env: Mapping[str, str], variant: str = "") -> Command:
    """Return a ``hostwright`` command on ``size`` hosts that fails unless all match their stack.

    ``contender`` is ``hostwright`` and the verb, such as ``hostwright plan``.
    """

    def check(done: Done) -> str:
        return all_green(contender, size, done.status, f"{done.stdout}\n{done.stderr}")

    verb = contender.split()[1]
    return Command(contender, size, (own_program("hostwright"), verb, *words), variant=variant, env=env, check=check)


def all_green(contender: str, size: int, status: int, printed: str) -> str:
    """Return an error text unless ``printed`` reports that all ``size`` hosts match their stack."""
    if status == 0 and re.search(GREEN[contender].format(count=size), printed):
        return ""
    return f"not all of {size} hosts are as desired (status {status}): {printed.strip()[-600:]}"


def probe_script(channels: Sequence[tuple[bytes, bytes]], folder: Path) -> str:
    """Return a script for ``Tools.each`` that only sends ``channels``, the probe program of a plan, to a host."""
    lines = []
    for number, (command, sent) in enumerate(channels):
        (folder / f"sent-{number}").write_bytes(sent)
        place = str(folder / f"sent-{number}")
        lines.append('ssh -F "$1" "$2" ' + sh("%s <%s >/dev/null 2>&1 || exit", command.decode(), place))
    return "\n".join(lines)
