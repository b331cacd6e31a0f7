"""A host of a distribution from bare to bare: provisioned, damaged in every layer, audited, mended, verified, removed.

``make distributions`` does it on Debian 11 and Debian 12 side by side, and writes the table of docs/lab.md;
``make test`` does it on Debian 12 with the layers that take no minutes.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lab import fleet
from lab.config import Distro, HostOptions, Machine
from lab.records import find_machine
from tests.lab import recording
from tests.lab.audit.bench import SETTLE
from tests.lab.conftest import FrontDoor, on
from tests.lab.ownlab import own_lab
from tests.lab.trees import DISK, KERNEL_INDEX, Tree
from tests.places import PROJECT

DOCUMENT = PROJECT / "docs" / "lab.md"
BEGIN, END = "<!-- distributions: begin -->", "<!-- distributions: end -->"
#: the distributions that a stack of the lab fits, with that stack
STACKS: dict[Distro, str] = {"bullseye": "lab", "bookworm": "lab-debian12"}
#: what others' programs leave: sudo's mark of who has used it, the key with which dkms 3 signs modules (its package
#: leaves it: firmware may know it), an index that depmod 30 writes once more
LEAVES = (
    r"/(root|home/ops)/\.sudo_as_admin_successful|/var/lib/dkms(/mok\.(key|pub))?"
    r"|/usr/lib/modules/[^/]*/modules\.builtin\.alias\.bin"
)
TITLES = {"bullseye": "Debian 11", "bookworm": "Debian 12"}
VENV = "/opt/tensorflow-2.9"
ABOUT = {
    "kernel headers": "ls /usr/src | sed -n 's/^linux-headers-\\([0-9.]*-[0-9]*\\)-amd64$/\\1/p' | tail -n 1",
    "apt": "apt-get --version | sed -n '1s/apt \\([0-9.]*\\).*/\\1/p'",
    "systemd": "systemctl --version | sed -n '1s/systemd \\([0-9]*\\).*/\\1/p'",
    "glibc": "ldd --version | sed -n '1s/.* //p'",
    "Python of the host": "/usr/bin/python3 -c 'import platform; print(platform.python_version())'",
    "gcc of the host": "gcc -dumpfullversion",
    "gcc that nvcc gets": ". /etc/profile.d/cuda.sh; set -- ${NVCC_PREPEND_FLAGS-}; ${2-gcc} -dumpfullversion",
    "driver": "cat /sys/module/nvidia/version",
    "Python of TensorFlow": f"{VENV}/bin/python -c 'import platform; print(platform.python_version())'",
}
LIBRARIES = "/usr/local/cuda-11.2/targets/x86_64-linux/lib"
#: a damage in each layer
DAMAGES = {
    "base": "dpkg --purge --force-depends build-essential >/dev/null",
    "driver": "rm /usr/bin/nvidia-smi /etc/modprobe.d/hostwright-nouveau.conf",
    "cuda": "rm /usr/local/cuda-11.2/bin/nvcc; apt-mark unhold cuda-toolkit-11-2 >/dev/null",
    "cudnn": f"cd {LIBRARIES}; rm libcudnn_ops_infer.so.8.1.0; cp -L libcudnn.so.8 x; mv -f x libcudnn.so.8",
    "environment": "rm /etc/ld.so.conf.d/cuda-11-2.conf; ldconfig",
    "tensorflow": f"rm -r {VENV}/lib/python3.9/site-packages/wrapt; python=$(readlink -f {VENV}/bin/python); "
    'case $python in /opt/*) rm -r "$python" "${python%/bin/*}/lib/python3.9/json" ;; '
    f"*) rm {VENV}/bin/python ;; esac",  # the interpreter that the stack brought, or the link to the host's
    "container": "echo '{\"runtimes\": ' >/etc/docker/daemon.json",
}


@dataclass
class Story:
    """What was done to one host, and what was seen of it."""

    machine: Machine
    distro: Distro
    layers: tuple[str, ...] = tuple(DAMAGES)
    seconds: dict[str, float] = field(default_factory=dict)
    about: dict[str, str] = field(default_factory=dict)
    found: dict[str, set[str]] = field(default_factory=dict)  #: by the verb that says so: the layers that differ
    left: list[str] = field(default_factory=list)  #: what the removal left otherwise than it was

    @property
    def well(self) -> bool:
        """Whether every damaged layer was named, by each verb, no other, and the removal left the host as it was."""
        return all(layers == set(self.layers) for layers in self.found.values()) and not self.left

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Count the body's seconds as those of a step."""
        began_s = time.monotonic()
        yield
        self.seconds[step] = time.monotonic() - began_s


def tell(door: FrontDoor, machine: Machine, distro: Distro, layers: tuple[str, ...] = tuple(DAMAGES)) -> Story:
    """Take a bare host through all of it, with these layers, by default all.

    Raises ``AssertionError`` where a verb does not end as it should.
    """
    story = Story(machine, distro, layers)
    chosen = () if set(layers) == set(DAMAGES) else ("--var", f"hostwright_roles={','.join(layers)}")

    def verb(step: str, name: str, status: int = 0) -> Any:
        with story.timed(step):
            return door.json(name, "--hosts", machine.name, *chosen, status=status)

    on(machine, KERNEL_INDEX + DISK)
    before = Tree.of(machine)
    verb("provision", "provision")
    verb("verify", "verify")
    verb("plan with nothing to do", "plan")
    story.about = {
        name: on(machine, script).strip() for name, script in ABOUT.items() if VENV not in script or not chosen
    }
    for layer in layers:
        on(machine, DAMAGES[layer])
    story.found["verify"] = _failed(verb("verify, damaged", "verify", status=1))
    story.found["plan"] = _planned(verb("plan, damaged", "plan", status=3))
    story.found["audit"] = _layers(verb("audit, damaged", "audit", status=3))
    verb("mend (provision)", "provision")
    verb("verify, mended", "verify")
    if "container" in layers:
        on(machine, SETTLE)
    verb("audit, mended", "audit")
    verb("remove", "remove")
    story.left = before.differences(Tree.of(machine), but=LEAVES)
    return story


def _failed(document: dict[str, Any]) -> set[str]:
    (host,) = document["hosts"]
    return {check["role"] for check in host["checks"] if not check["passed"]}


def _planned(document: dict[str, Any]) -> set[str]:
    (plan,) = document["plans"]
    return {role["role"] for role in plan["roles"]}


def _layers(document: dict[str, Any]) -> set[str]:
    (host,) = document["hosts"]
    return {layer["name"] for layer in host["layers"] if layer["status"] not in {"desired", "absent", "unread"}}


def table(stories: Sequence[Story]) -> str:
    """The stories side by side, in Markdown."""
    first = stories[0]
    rows = [[name, *(story.about[name] for story in stories)] for name in first.about]
    rows += [[step, *(f"{story.seconds[step]:.0f} s" for story in stories)] for step in first.seconds]
    for verb in first.found:
        seen = (f"{len(story.found[verb] & set(story.layers))} of {len(story.layers)}" for story in stories)
        rows.append([f"damaged layers that `{verb}` names", *seen])
    rows.append(["paths and packages that `remove` leaves otherwise", *(str(len(story.left)) for story in stories)])
    head = [["what", *(TITLES[story.distro] for story in stories)], ["---"] * (len(stories) + 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in [*head, *rows])


def main(names: Sequence[str]) -> int:
    """Tell the stories of these distributions, print their table, and put it into the document if none is left out."""
    chosen = [distro for distro in STACKS if not names or distro in names]
    os.environ["PYTEST_CURRENT_TEST"] = str(Path(__file__).relative_to(PROJECT))  # under which verbs are recorded
    stories = _stories(chosen)
    load = f"{os.getloadavg()[2] / (os.cpu_count() or 1):.1f}"
    text = (
        f"{table(stories)}\n\nWritten by `make distributions` on {datetime.now(UTC):%Y-%m-%d}, with the small profile;"
    )
    text += f" both hosts were worked\non at the same time, on a machine with a load of {load} a core."
    print(text, *(f"{story.distro}: {story.found} {story.left}" for story in stories if not story.well), sep="\n")
    if len(stories) == len(STACKS):
        head, _, rest = DOCUMENT.read_text().partition(BEGIN)
        DOCUMENT.write_text(f"{head}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}")
    status = 0 if all(story.well for story in stories) else 1
    recording.pytest_sessionfinish(status)
    return status


def _stories(chosen: Sequence[Distro]) -> list[Story]:
    """The stories of a host of each, at the same time, in a lab of their own."""
    with own_lab("distros") as lab, ThreadPoolExecutor() as pool:
        for distro in chosen:
            options = HostOptions(profile="small", distro=distro)
            fleet.supply(lab, options)
            fleet.up(lab, [distro], options=options)
        door = FrontDoor(lab)
        for distro in chosen:
            assert door("mirror", "--stack", STACKS[distro]).returncode == 0
        return list(pool.map(lambda distro: tell(door, find_machine(lab, distro), distro), chosen))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
