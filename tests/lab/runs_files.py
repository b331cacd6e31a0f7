"""A run that only delivers a file to hosts, in a separate process that a test can kill.

``python -m tests.lab.runs_files INVENTORY FILE SHA256`` prints each event of the file, then ``ended STATUS``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from hostwright.apply import events
from hostwright.apply.rollout.goals import OnlyStates
from hostwright.apply.run import Listener
from hostwright.fleet import Fleet
from hostwright.resources.files.archives import Delivered
from hostwright.stack.stack import Artifact

PLACE = "/opt/hostwright-blob"  #: path of the file on the hosts


def main(inventory: str, path: str, sha256: str) -> int:
    """Deliver the file to all hosts of an inventory; return the exit status of the run."""
    artifact = Artifact(name="blob", file="blob.bin", sha256=sha256, size=Path(path).stat().st_size)
    fleet = Fleet.load(Path(inventory))
    targets = fleet.targets("all", ["base"])

    def tell(event: events.Event) -> None:
        if isinstance(event, events.Delivering | events.Note | events.HostEnded):
            print(event, flush=True)

    goal = OnlyStates("base", (Delivered(PLACE, artifact),), {"blob": artifact})
    ended = fleet.reach("provision", targets, goal, view=Listener(tell))
    print(f"ended {ended.status} run {ended.run}", flush=True)
    return ended.status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
