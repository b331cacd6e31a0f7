"""Recorder of bare lab hosts' answers to every probe of the standard stacks: ``make facts``.

Records Debian 11, 12 and 13, and Debian 11 again with the stack ``lab`` provisioned. Values that depend on this machine
or on the time of the recording are replaced: kernel, memory, disks, processes, times, names.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import replace

from hostwright.fleet import Fleet
from hostwright.plan.host.hostfacts import MEMORY
from hostwright.plan.model import Facts
from hostwright.plan.observing import ask
from lab import fleet
from lab.config import Distro, HostOptions, Lab
from tests.lab.conftest import FrontDoor
from tests.lab.ownlab import own_lab
from tests.unit.support import recorded

#: the newest kernel in the host's archive; the host has no kernel of its own
KERNEL = "apt-cache depends linux-image-amd64 | sed -n 's/.* linux-image-\\([0-9]\\)/\\1/p' | head -n 1 | grep ."
MEMORY_KB = 64 * 2**20
#: pattern → replacement, for every answer
REPLACED = (
    # a filesystem: number, mount point, options, free KiB, inodes, free inodes (``room.sh``)
    (r"\t\d+:\d+\t(/\S*)\trw,\S*\t\d+\t\d+\t\d+$", r"\t8:1\t\1\trw,relatime\t400000000\t26000000\t25000000"),
    (
        r"^ +\d+ +0 (c.*) [A-Z][a-z]{2} [ \d]\d [\d:]{5} ",
        r" 30 0 \1 Jan  1 00:00 ",
    ),  # a device in the output of ``find -ls``
    (r"^\d+(?= nvidia-persistenced\.service )", "4711"),
    (r"(?<=http://)[a-z.]+(?=/debian)", "archive.example"),
    (r'("at": )"[^"]*"', r'\1"2026-01-01T00:00:00.000+00:00"'),  # this line and the next three: the release record
    (r'("run": )"[^"]*"', r'\1"20260101t000000-0000"'),
    (r'("operator": )"[^"]*"', r'\1"ops@controller"'),
    (r'("commit": )"[^"]*"', r'\1""'),
)
RELEASES: dict[Distro, str] = {"bullseye": "debian-11", "bookworm": "debian-12", "trixie": "debian-13"}


def main(names: Sequence[str]) -> None:
    """Record the hosts of the given distributions, by default all, one after another."""
    recorded.HOSTS.mkdir(exist_ok=True)
    with own_lab("facts") as lab:
        door = FrontDoor(lab)
        for distro, name in RELEASES.items():
            if names and distro not in names:
                continue
            options = HostOptions(profile="small", distro=distro)
            fleet.supply(lab, options)
            fleet.up(lab, [name], options=options)
            _record(lab, name, f"{name}-bare")
            if distro == "bullseye":
                for words in (("mirror", "--stack", "lab"), ("provision", "--hosts", name, "--yes")):
                    done = door(*words)
                    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
                _record(lab, name, f"{name}-provisioned")
            fleet.remove(lab, [name])


def _record(lab: Lab, host: str, name: str) -> None:
    (target,) = Fleet.load(lab.inventory.parent).targets(host)
    probes = recorded.all_probes()
    with target.connect() as shell:
        facts = ask(shell, probes)
        kernel = shell.run(KERNEL, timeout_s=60, failure="its archive names no kernel").stdout.decode().strip()
    assert not facts.late, list(facts.late)
    answers = {probe: replace(facts[probe], text=_cleaned(facts[probe].text, kernel)) for probe in probes}
    answers[MEMORY] = replace(answers[MEMORY], text=f"{MEMORY_KB}\n")
    recorded.write(name, Facts(answers))


def _cleaned(text: str, kernel: str) -> str:
    text = text.replace(os.uname().release, kernel)
    for pattern, instead in REPLACED:
        text = re.sub(pattern, instead, text, flags=re.MULTILINE)
    return text


if __name__ == "__main__":
    main(sys.argv[1:])
