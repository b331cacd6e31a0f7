"""One host per distribution from bare to bare: provisioned, damaged, audited, repaired, verified and removed.

``make distributions`` runs Debian 11, 12 and 13 at the same time, with the stack of TensorFlow 2.9 and with Debian's
own drivers, and writes the table of docs/lab.md. ``make long`` runs Debian 12 without the layers that take minutes.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lab import fleet
from lab.config import Distro, HostOptions, Machine, Real
from lab.records import find_machine
from tests.lab import recording
from tests.lab.audit.bench import SETTLE
from tests.lab.conftest import FrontDoor, on
from tests.lab.ownlab import own_lab
from tests.lab.test_cdi import DOCKER_IN_THE_LAB
from tests.lab.trees import DISK, KERNEL_INDEX, Tree
from tests.places import PROJECT
from tests.real.test_debian13 import ASKS_THE_KERNEL, DAEMON, OLDER

DOCUMENT = PROJECT / "docs" / "lab.md"
BEGIN, END = "<!-- distributions: begin -->", "<!-- distributions: end -->"


@dataclass(frozen=True)
class Trial:
    """A host of a distribution, its stack, and one kind of damage for each layer."""

    title: str
    distro: Distro
    stack: str
    damages: Mapping[str, str]
    prepare: str = ""  #: shell script that prepares the bare host, before its files are listed
    real: Real = ""

    @property
    def options(self) -> HostOptions:
        """Options of the host."""
        return HostOptions(profile="small", distro=self.distro, real=self.real)


#: files that other programs leave: sudo's lecture mark, the key with which dkms 3 signs modules (its package keeps the
#: key, because firmware may trust it), an index that depmod 30 writes again
LEAVES = (
    r"/(root|home/ops)/\.sudo_as_admin_successful|/var/lib/dkms(/mok\.(key|pub))?"
    r"|/usr/lib/modules/[^/]*/modules\.builtin\.alias\.bin"
)
VENV = "/opt/tensorflow-2.9"
#: row of the table → command that prints its value on the host
ABOUT = {
    "kernel headers": "ls /usr/src | sed -n 's/^linux-headers-\\([0-9.]*-[0-9]*\\)-amd64$/\\1/p' | tail -n 1",
    "apt": "apt-get --version | sed -n '1s/apt \\([0-9.]*\\).*/\\1/p'",
    "systemd": "systemctl --version | sed -n '1s/systemd \\([0-9]*\\).*/\\1/p'",
    "glibc": "ldd --version | sed -n '1s/.* //p'",
    "Python of the host": "/usr/bin/python3 -c 'import platform; print(platform.python_version())'",
    "gcc of the host": "gcc -dumpfullversion",
    "driver": "cat /sys/module/nvidia/version",
    "gcc that nvcc gets": ". /etc/profile.d/cuda.sh; set -- ${NVCC_PREPEND_FLAGS-}; ${2-gcc} -dumpfullversion",
    "Python of TensorFlow": f"{VENV}/bin/python -c 'import platform; print(platform.python_version())'",
    "PyTorch": "/opt/pytorch-2.10/bin/python -c 'import torch; print(torch.__version__)'",
}
NEEDS = {  #: row of the table → the layer that it needs
    "driver": "driver",
    "gcc that nvcc gets": "cuda",
    "Python of TensorFlow": "tensorflow",
    "PyTorch": "pytorch",
}
LIBRARIES = "/usr/local/cuda-11.2/targets/x86_64-linux/lib"
#: layer → shell script that damages it
DAMAGES = {
    "base": "dpkg --purge --force-depends build-essential >/dev/null",
    "driver": "rm /usr/bin/nvidia-smi /etc/modprobe.d/hostwright-nouveau.conf",
    "cuda": "rm /usr/local/cuda-11.2/bin/nvcc; apt-mark unhold cuda-toolkit-11-2 >/dev/null",
    "cudnn": f"cd {LIBRARIES}; rm libcudnn_ops_infer.so.8.1.0; cp -L libcudnn.so.8 x; mv -f x libcudnn.so.8",
    "environment": "rm /etc/ld.so.conf.d/cuda-11-2.conf; ldconfig",
    "tensorflow": f"rm -r {VENV}/lib/python3.9/site-packages/wrapt; python=$(readlink -f {VENV}/bin/python); "
    'case $python in /opt/*) rm -r "$python" "${python%/bin/*}/lib/python3.9/json" ;; '
    f"*) rm {VENV}/bin/python ;; esac",  # the stack's interpreter, or the link to the host's
    "container": "echo '{\"runtimes\": ' >/etc/docker/daemon.json",
}
#: Creates the persistence daemon's account, which Debian's packages leave when they are purged.
ACCOUNT = "useradd --system --no-create-home --home-dir /var/run/nvpd --shell /usr/sbin/nologin nvpd\n"
#: the same for stacks with Debian's own driver
OF_TODAY = {
    "base": DAMAGES["base"],
    "driver": "rm /usr/lib/x86_64-linux-gnu/nvidia/current/libcuda.so.5* /etc/modprobe.d/hostwright-nouveau.conf; "
    "apt-mark unhold nvidia-smi >/dev/null",
    "pytorch": "rm /opt/pytorch-2.10/lib/python3.13/site-packages/torch/__init__.py",
    "container": DAMAGES["container"],
}
#: name on the command line → trial
TRIALS = {
    "bullseye": Trial("Debian 11", "bullseye", "lab", DAMAGES),
    "bookworm": Trial("Debian 12", "bookworm", "lab-debian12", DAMAGES),
    "bookworm-own": Trial(
        "Debian 12, its own driver",
        "bookworm",
        "lab-debian12-real-packages",
        {layer: damage for layer, damage in OF_TODAY.items() if layer != "pytorch"},
        ACCOUNT + DAEMON,
        "packages",
    ),
    "trixie-own": Trial(
        "Debian 13, its own driver",
        "trixie",
        "lab-real-packages",
        OF_TODAY,
        ACCOUNT + OLDER + DAEMON + DOCKER_IN_THE_LAB,
        "packages",
    ),
}
#: stand-ins that every stack may have, because no public index has these files
NOWHERE = {"container-toolkit-key", "fabric-manager"}


@dataclass
class Story:
    """The steps of one host's trial and their results."""

    machine: Machine
    trial: Trial
    layers: tuple[str, ...]
    seconds: dict[str, float] = field(default_factory=dict)
    about: dict[str, str] = field(default_factory=dict)
    found: dict[str, set[str]] = field(default_factory=dict)  #: verb → layers that the verb reports as different
    stand_ins: set[str] = field(default_factory=set)  #: stand-in artifacts of its stack, except for `NOWHERE`
    left: list[str] = field(default_factory=list)  #: differences from the bare host after the removal

    @property
    def well(self) -> bool:
        """Whether each verb named exactly the damaged layers, and the removal restored the bare host.

        A current stack must also have no stand-ins.
        """
        named = all(layers == set(self.layers) for layers in self.found.values())
        return named and not self.left and not (self.trial.real and self.stand_ins)

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Record the body's duration in seconds as the duration of a step."""
        began_s = time.monotonic()
        yield
        self.seconds[step] = time.monotonic() - began_s


def tell(door: FrontDoor, machine: Machine, trial: Trial, layers: tuple[str, ...] = ()) -> Story:
    """Take a bare host through all steps with the given layers, by default all.

    Raises ``AssertionError`` if a verb ends with an unexpected status.
    """
    story = Story(machine, trial, layers or tuple(trial.damages))
    chosen = ("--var", f"hostwright_roles={','.join(layers)}") if layers else ()

    def verb(step: str, name: str, status: int = 0) -> Any:
        with story.timed(step):
            return door.json(name, "--hosts", machine.name, *chosen, status=status)

    asks = ASKS_THE_KERNEL if trial.real else ()  # checks that fail with a real driver and no card

    def well(step: str) -> None:
        assert not _failed(verb(step, "verify", status=1 if trial.real else 0), but=asks)

    on(machine, KERNEL_INDEX + DISK + trial.prepare)
    before = Tree.of(machine)
    verb("provision", "provision")
    well("verify")
    verb("plan with nothing to do", "plan")
    has = (name for name in ABOUT if NEEDS.get(name, "base") in story.layers)
    story.about = {name: on(machine, ABOUT[name]).strip() for name in has}
    for layer in story.layers:
        on(machine, trial.damages[layer])
    story.found["verify"] = _failed(verb("verify, damaged", "verify", status=1), but=asks)
    story.found["plan"] = _planned(verb("plan, damaged", "plan", status=3))
    story.found["audit"] = _layers(verb("audit, damaged", "audit", status=1 if trial.real else 3))
    verb("mend (provision)", "provision")
    well("verify, mended")
    if not trial.real:  # an audit reports the real toolkit's unit and nvidia-smi as failed without a card
        if "container" in story.layers:
            on(machine, SETTLE)
        verb("audit, mended", "audit")
    verb("plan, mended", "plan")
    verb("remove", "remove")
    story.left = before.differences(Tree.of(machine), but=LEAVES)
    (stack,) = (one for one in door.json("stacks", status=0)["stacks"] if one["name"] == trial.stack)
    story.stand_ins = {*stack["stand_ins"]} - NOWHERE
    return story


def _failed(document: dict[str, Any], but: Collection[str] = ()) -> set[str]:
    """Return the roles of the failed checks, except for the checks in ``but``."""
    (host,) = document["hosts"]
    return {check["role"] for check in host["checks"] if not check["passed"] and check["check"] not in but}


def _planned(document: dict[str, Any]) -> set[str]:
    (plan,) = document["plans"]
    return {role["role"] for role in plan["roles"]}


def _layers(document: dict[str, Any]) -> set[str]:
    (host,) = document["hosts"]
    return {deviation["layer"] for deviation in host["deviations"]}


def table(stories: Sequence[Story]) -> str:
    """Return the stories side by side as a Markdown table."""
    rows = [[name, *(story.about.get(name, "") for story in stories)] for name in ABOUT]
    steps = dict.fromkeys(step for story in stories for step in story.seconds)
    rows += [
        [step, *(f"{story.seconds[step]:.0f} s" if step in story.seconds else "" for story in stories)]
        for step in steps
    ]
    for verb in stories[0].found:
        seen = (f"{len(story.found[verb] & set(story.layers))} of {len(story.layers)}" for story in stories)
        rows.append([f"damaged layers that `{verb}` names", *seen])
    rows.append(["paths and packages that `remove` leaves otherwise", *(str(len(story.left)) for story in stories)])
    beside = (str(len(story.stand_ins)) for story in stories)
    rows.append(["stand-ins beside the container toolkit and Fabric Manager", *beside])
    head = [["what", *(story.trial.title for story in stories)], ["---"] * (len(stories) + 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in [*head, *rows])


def main(names: Sequence[str]) -> int:
    """Run the given trials and print their table; with all trials, write it into the document."""
    chosen = [name for name in TRIALS if not names or name in names]
    os.environ["PYTEST_CURRENT_TEST"] = str(Path(__file__).relative_to(PROJECT))  # names the source of recorded verbs
    began_s = time.monotonic()
    stories = _stories(chosen)
    load = f"{os.getloadavg()[2] / (os.cpu_count() or 1):.1f}"
    text = (
        f"{table(stories)}\n\nWritten by `make distributions` on {datetime.now(UTC):%Y-%m-%d}, with the small profile, "
        f"in {(time.monotonic() - began_s) / 60:.0f} minutes; all\nhosts were worked on at the same time, on a machine "
        f"with a load of {load} a core."
    )
    print(text, *(f"{story.machine.name}: {story.found} {story.left}" for story in stories if not story.well), sep="\n")
    if len(stories) == len(TRIALS):
        head, _, rest = DOCUMENT.read_text().partition(BEGIN)
        DOCUMENT.write_text(f"{head}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}")
    status = 0 if all(story.well for story in stories) else 1
    recording.pytest_sessionfinish(status)
    return status


def _stories(chosen: Sequence[str]) -> list[Story]:
    """Run the trials at the same time in a separate lab; return their stories."""
    with own_lab("distros") as lab, ThreadPoolExecutor() as pool:
        for name in chosen:
            fleet.supply(lab, TRIALS[name].options)
            fleet.up(lab, [name], options=TRIALS[name].options)
        door = FrontDoor(lab)
        for name in chosen:
            assert door("mirror", "--stack", TRIALS[name].stack).returncode == 0
        return list(pool.map(lambda name: tell(door, find_machine(lab, name), TRIALS[name]), chosen))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
