"""Removal of layers over real SSH: all files of the host are as before, and files of others stay."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import pytest

from lab.config import HostOptions, Machine
from tests.lab.conftest import FrontDoor, Guest, on
from tests.lab.trees import DISK, JOBS, KERNEL_INDEX, Tree

pytestmark = pytest.mark.long
HOST = "remove01"
CUDA = "/usr/local/cuda-11.2"

#: Prepares a host that is not empty: files at Hostwright's paths, links, a package on hold, an apt source that is
#: disabled while CUDA is installed, and the module index of a kernel package.
SITE = """
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update >/dev/null
apt-get -qq install -y --no-install-recommends jq >/dev/null 2>&1
apt-mark hold jq >/dev/null
mkdir -p /etc/docker
echo '{"log-driver": "journald", "runtimes": {"other": {"path": "/usr/bin/other"}}}' >/etc/docker/daemon.json
echo 'export SITE=1' >/etc/profile.d/cuda.sh
chmod 640 /etc/profile.d/cuda.sh
mkdir /opt/cuda-10.2 /opt/tensorflow-2.9
ln -s /opt/cuda-10.2 /usr/local/cuda
echo mine >/opt/tensorflow-2.9/README
echo old >/usr/local/lib/libcudnn.so.8.0.5
ln -s libcudnn.so.8.0.5 /usr/local/lib/libcudnn.so.8
echo 'blacklist nouveau' >/etc/modprobe.d/site.conf
echo 'deb [trusted=yes] https://developer.download.nvidia.com/compute/cuda/repos/debian11/x86_64 /' \
  >/etc/apt/sources.list.d/site-cuda.list
chmod 600 /etc/apt/sources.list.d/site-cuda.list
ldconfig
"""

#: Paths that may differ after only CUDA and cuDNN were removed.
OF_CUDA = re.compile(
    r"/usr/local/cuda(-11|-11\.2)?(/.*)?|/etc/alternatives/cuda.*|/var/cuda-repo-.*|/etc/apt/preferences\.d/cuda-.*|"
    r"/etc/apt/sources\.list\.d/(site-)?cuda.*|/usr/share/keyrings/cuda-repo-.*|/usr/share/(hostwright|doc)/(cuda|libcu).*|"
    r"/usr/local/lib/libcudnn\.so\.8.*|/etc/ld\.so\.cache|/var/lib/hostwright/(jobs|origin|set-aside|unpacked)(/.*)?"
)
OF_CUDA_ROW = re.compile(r"(alternative Name: |hold |manual )?(cuda|libcu)(blas|fft|rand|solver|sparse|)(-| ).*")

#: Deletes the driver's uninstaller, its record and some files.
HALF_REMOVED = """
rm -r /usr/bin/nvidia-uninstall /usr/bin/nvidia-installer /var/lib/nvidia
rm /usr/lib/x86_64-linux-gnu/libcuda.so.470.182.03 /usr/bin/nvidia-smi
"""
#: Changes by other users on a provisioned host.
OTHERS = """
docker volume create theirs
jq '.["log-level"] = "warn"' /etc/docker/daemon.json >/tmp/new && cat /tmp/new >/etc/docker/daemon.json
mkdir /opt/hostwright/venvs/theirs
echo theirs >/usr/local/cuda-11.2/theirs
header=$(ls /usr/local/cuda-11.2/targets/x86_64-linux/include/cudnn*.h | head -n 1)
echo patched >"$header"
packaged=$(grep -h ^/usr/local/cuda-11.2/ /var/lib/dpkg/info/libcublas-11-2*.list | while read -r f; do
  [ ! -f "$f" ] || [ -L "$f" ] || echo "$f"; done | head -n 1)
echo patched >"$packaged"
"""


@dataclass(frozen=True)
class Story:
    """One host and its trees at each point."""

    machine: Machine
    before: Tree
    provisioned: Tree
    removed: Tree
    again: Tree
    without_cuda: Tree


@pytest.fixture(scope="module")
def story(invoke: FrontDoor, guest: Guest) -> Story:
    """A host of a site: provisioned, its layers removed, provisioned again, CUDA and cuDNN removed."""
    machine = guest(HOST, HostOptions(profile="small"))
    on(machine, SITE + DISK + KERNEL_INDEX)
    before = Tree.of(machine)
    change(invoke, "provision")
    provisioned = Tree.of(machine)
    change(invoke, "remove")
    removed = Tree.of(machine)
    change(invoke, "provision")
    again = Tree.of(machine)
    change(invoke, "remove", "--roles", "cuda,cudnn")
    return Story(machine, before, provisioned, removed, again, Tree.of(machine))


def change(invoke: FrontDoor, verb: str, *words: str) -> None:
    done = invoke(verb, "--hosts", HOST, *words)
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"


def test_after_removal_a_host_is_what_it_was_file_by_file(story: Story):
    assert len(story.before.differences(story.provisioned)) > 10_000, "the comparison sees nothing"
    assert story.before.differences(story.removed) == []


def test_provision_remove_provision_ends_as_the_first_provision_did(story: Story):
    assert story.provisioned.differences(story.again, but=JOBS) == []


def test_roles_that_were_not_named_stay_as_they_were(story: Story):
    lines = story.again.differences(story.without_cuda)
    paths = [line.partition(": ")[0] for line in lines if line.startswith("/")]
    rows = [line.partition(": ")[2] for line in lines if not line.startswith("/")]
    assert [path for path in paths if not OF_CUDA.fullmatch(path)] == []
    assert [row for row in rows if not OF_CUDA_ROW.fullmatch(row)] == []
    assert not [
        path for path in story.without_cuda.paths if path.startswith(("/usr/local/cuda-11.2", "/var/cuda-repo"))
    ]
    assert story.without_cuda.paths["/usr/local/cuda"] == story.before.paths["/usr/local/cuda"]


def test_a_second_removal_finds_nothing_to_do(story: Story, invoke: FrontDoor):
    plans = invoke.json("remove", "--hosts", HOST, "--roles", "cuda,cudnn", "--check", status=0)["plans"]
    assert [plan["roles"] for plan in plans] == [[]]


def test_removal_keeps_others_files_and_finishes_a_half_removed_driver(story: Story, invoke: FrontDoor):
    machine = story.machine
    change(invoke, "provision", "--roles", "cuda,cudnn")
    on(machine, OTHERS + HALF_REMOVED)
    (plan,) = invoke.json("remove", "--hosts", HOST, "--check", status=3)["plans"]
    said = [warning for role in plan["roles"] for change in role["changes"] for warning in change.get("warnings", ())]
    assert f"files below {CUDA} that Hostwright did not write are left there: {CUDA}/theirs" in said
    changed = [warning for warning in said if "/opt/hostwright/set-aside" in warning]
    assert len([warning for warning in changed if " of libcublas-11-2 " in warning or " of cudnn " in warning]) == 2
    change(invoke, "remove")
    kept = on(machine, "find /opt/hostwright/set-aside -type f").split()
    assert len(kept) == 2
    assert {on(machine, f"cat {path}").strip() for path in kept} == {"patched"}
    on(machine, "rm -r /opt/hostwright/set-aside")
    settings = json.loads(on(machine, "cat /etc/docker/daemon.json"))
    assert settings == {
        "log-driver": "journald",
        "log-level": "warn",
        "runtimes": {"other": {"path": "/usr/bin/other"}},
    }
    assert on(machine, "ls /var/lib/docker/volumes/theirs").strip() == "_data"
    assert on(machine, "ls /opt/hostwright/venvs").split() == ["theirs"]
    assert on(machine, "cd /usr/local/cuda-11.2 && find . -type f").split() == ["./theirs"]
    lines = story.before.differences(Tree.of(machine), but=r"/etc/docker/(daemon|key)\.json|/var/lib/docker/.*")
    assert {line.partition(": ")[0] for line in lines} == {
        "/opt/hostwright",
        "/opt/hostwright/venvs",
        "/opt/hostwright/venvs/theirs",
        "/usr/local/cuda-11.2",
        "/usr/local/cuda-11.2/theirs",
    }
