"""Filesystems as hosts have them: what is too small or read-only is refused by name, before anything changes; a link in
the place of a directory, and a directory in the place of a link, are worked with and come back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from lab import fleet
from lab.config import Lab, Machine
from lab.records import find_machine
from tests.lab.conftest import SMALL, FrontDoor, on
from tests.lab.trees import DISK, KERNEL_INDEX, Tree
from tests.past.test_past import none, words

HOST = "dirs01"
CHOSEN = ("--hosts", HOST, "--roles", "base,cuda,cudnn,environment,tensorflow")
#: What a host is refused for: how it becomes so, what undoes that, and how the sentence begins and ends.
REFUSED = {
    "read-only /usr/local": (
        "mount --bind /usr/local /usr/local; mount -o remount,bind,ro /usr/local",
        "umount /usr/local",
        ("/usr/local is mounted read-only, and ", " goes to /usr/local/cuda-11.2: mount -o remount,rw /usr/local"),
    ),
    "a small /boot": (
        "mkdir -p /boot; mount -t tmpfs -o size=5m tmpfs /boot; head -c 3M /dev/zero >/boot/initrd.img-5.10.0-1-amd64",
        "umount /boot",
        ("too little disk for", "/boot has 2 MB free and 3 MB are needed to write another initramfs"),
    ),
    "a small /var": (
        "mkdir /run/v; mount -t tmpfs -o size=600m tmpfs /run/v; cp -a /var/. /run/v/; mount --bind /run/v /var",
        "umount --lazy /var /run/v",
        ("too little disk for", "; free some or enlarge it", " /var has "),
    ),
}
#: /opt on a bigger disk, with a link; and a directory of somebody's where CUDA's link goes
LINKED = """
mkdir -p /data /run/apt
mount --bind /opt/hostwright-lab/apt /run/apt  # the lab's own mount goes along
umount /opt/hostwright-lab/apt
mv /opt /data/opt
ln -s /data/opt /opt
mount --bind /run/apt /data/opt/hostwright-lab/apt
mkdir -p /usr/local/cuda/samples && echo theirs >/usr/local/cuda/samples/notes.txt
"""


@pytest.fixture(scope="module")
def host(lab: Lab) -> Iterator[Machine]:
    """A bare host."""
    fleet.up(lab, [HOST], options=SMALL)
    machine = find_machine(lab, HOST)
    mirrored = FrontDoor(lab)("mirror", "--stack", "lab")
    assert mirrored.returncode == 0, mirrored.stderr
    on(machine, KERNEL_INDEX + DISK)
    yield machine
    fleet.remove(lab, [HOST])


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_take_the_stack_is_refused_by_name(lab: Lab, host: Machine, name: str) -> None:
    script, undo, says = REFUSED[name]
    on(host, script)
    before = Tree.of(host)
    planned = json.loads(FrontDoor(lab)("plan", *CHOSEN, "--json").stdout)
    done = FrontDoor(lab)("provision", *CHOSEN, "--yes")
    after = Tree.of(host)
    on(host, undo)
    kinds = {change["kind"] for role in planned["plans"][0]["roles"] for change in role["changes"]}
    assert "refusal" in kinds
    text = words(done.stdout + done.stderr)
    assert done.returncode == 1, text
    assert [sentence for sentence in says if sentence not in f" {text}"] == [], text
    none(before.differences(after, but=r"/var/lib/hostwright(/.*)?"))


def test_a_linked_opt_and_a_directory_where_a_link_goes_are_worked_with_and_come_back(lab: Lab, host: Machine) -> None:
    door = FrontDoor(lab)
    on(host, LINKED)
    before = Tree.of(host)
    planned = door("plan", *CHOSEN)
    assert "/usr/local/cuda" in planned.stdout
    assert "moved aside to /usr/local/cuda.before-hostwright." in "".join(planned.stdout.split("\n")).replace("  ", " ")
    done = door("provision", *CHOSEN, "--yes")
    assert done.returncode == 0, done.stdout[-3000:]
    assert on(host, "readlink -f /usr/local/cuda; readlink /opt").split() == ["/usr/local/cuda-11.2", "/data/opt"]
    checked = door("verify", "--hosts", HOST, "--roles", "base,cuda,cudnn,environment")  # the others need a driver
    assert checked.returncode == 0, checked.stdout[-3000:]
    assert door("plan", *CHOSEN).returncode == 0
    gone = door("remove", *CHOSEN, "--yes")
    assert gone.returncode == 0, gone.stdout[-3000:]
    none(before.differences(Tree.of(host), but=r"/var/(cache|lib)/hostwright(/.*)?"))  # other layers of the host stay
