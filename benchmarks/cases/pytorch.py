"""Case: a newly installed host is provisioned with a stack of today, PyTorch with all of its wheels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from benchmarks.cases import provision
from benchmarks.cases.case import Cost, Wanted
from benchmarks.cases.provision import OURS, SCRIPT, Ready, Scenario, from_bare, ours_and_script
from benchmarks.figures.goals import Goal
from benchmarks.measuring.command import Command
from benchmarks.peers.files import PYTORCH
from benchmarks.places.places import Places

NAME = "provision-pytorch"
TITLE = "First provision of 1 host with PyTorch and all of its wheels, files at hand"
ABOUT = """\
A newly installed lab host with Debian 12 gets a stack of today, `pytorch-2.14`. Its wheels are those of
`pip install torch`, with NVIDIA's: 3 GB, unpacked to 6.5 GB. The files are on the controller, and Debian's
packages come from its archive. The contenders are `hostwright provision` and the same steps as a shell script by hand
(`benchmarks/peers/script/pytorch.sh`), whose files go through `tar` and `ssh` before it. Afterwards `hostwright plan`
must find nothing to change but its own records, and the packages of the environment must be those of a host that
Hostwright provisioned. One round. Driver, GPU and container toolkit are stand-ins, so that nothing computes."""
BOUND_S = 300.0
TABLE = provision.TABLE
SIZES = (1,)
COSTS = (Cost(OURS, 1, 60, rounds=1), Cost(SCRIPT, 1, 85, rounds=1))
REST_S = 100.0  #: estimated seconds to provision the host whose state is compared, and to boot and check other hosts
SCENARIO = Scenario(
    PYTORCH,
    "pytorch.sh",
    {"driver": "files not recorded", "pytorch": "a directory"},
    "/opt/pytorch-2.14/bin/pip list --format=freeze --disable-pip-version-check | grep -v ^pip=",
)


@contextmanager
def setup(places: Places, wanted: Wanted) -> Iterator[Ready]:
    """Create newly installed hosts, and the files that both measured tools use."""
    with provision.prepared(SCENARIO, places, NAME, wanted.of(SIZES)) as ready:
        yield ready


def check(ready: Ready) -> str:
    """Return an empty text: each command's own check verifies the hosts' final state."""
    return ""


def facts(ready: Ready) -> dict[str, str]:
    """Return which parts of the stack are small stand-ins for the vendor's software."""
    return {
        "stack": "driver, GPU and container toolkit are the lab's stand-ins; PyTorch and NVIDIA's libraries are the "
        "wheels of the Python package index"
    }


def commands(ready: Ready) -> Sequence[Command]:
    """Return the commands of both measured tools for all numbers of hosts."""
    return [
        from_bare(ready, size, command) for size in ready.sizes for command in ours_and_script(ready, ready.tools(size))
    ]


def goals() -> Sequence[Goal]:
    """Return the goals for Hostwright on one host, relative to the shell script, as for the stack of TensorFlow 2.9."""
    return provision.goals_of_one_host()


PLOTTED = (OURS, SCRIPT)
