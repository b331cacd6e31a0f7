"""Containers on a lab host: enforced limits, and access to exactly the requested cards.

The host has Docker, the container toolkit, a driver's user space and a "loaded" module, and nothing else of a stack:
these are tests of the lab itself.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from lab import cgroups, fleet, images, vendor
from lab.config import HostOptions, Machine, cache_directory
from lab.hardware import T4, V100, Hardware
from lab.machine import exec_in, why_no_limits
from lab.records import find_machine
from lab.vendor import driver, smoke, toolkit
from lab.vendor.model import Profile
from tests.lab.conftest import on
from tests.lab.ownlab import own_lab

#: "loaded": the module is in the kernel at boot, so it need not be compiled
CARDS = Hardware(cards=(T4, V100, T4), loaded=driver.VERSION)
KEYRING = "/usr/share/keyrings/toolkit.gpg"
NAMES = (
    "nvidia-container-toolkit",
    "nvidia-container-toolkit-base",
    "libnvidia-container-tools",
    "libnvidia-container1",
)
PINS = " ".join(f"{name}={toolkit.PINNED}" for name in NAMES)
ONLY_LOCAL = (
    "-o Dir::Etc::SourceList=sources.list.d/toolkit.list -o Dir::Etc::SourceParts=- -o APT::Get::List-Cleanup=0"
)
UNSAFE = "-o DPkg::Options::=--force-unsafe-io"  # without fsync, because the host is temporary
INSTALL = f"""
export DEBIAN_FRONTEND=noninteractive
cd /root
gpg --dearmor <{toolkit.KEY_FILE} >{KEYRING}
echo 'deb [signed-by={KEYRING}] file:/opt/hostwright-lab/{toolkit.DIRECTORY} /' >/etc/apt/sources.list.d/toolkit.list
apt-get -q {ONLY_LOCAL} update
apt-get -q install -y --no-install-recommends {UNSAFE} docker.io {PINS}
sh driver.run --silent --no-kernel-module
nvidia-ctk runtime configure --runtime=docker
nvidia-ctk config --in-place --set nvidia-container-runtime.mode=legacy
systemctl restart docker
docker import {smoke.FILE_NAME} box
"""
#: Prints a container's cards, one per line: the list of nvidia-smi, then the numbered device files.
SEEN = "nvidia-smi -L; cd /dev; for file in nvidia[0-9]*; do [ ! -e $file ] || echo /dev/$file; done"


@pytest.fixture(scope="module")
def host() -> Iterator[Machine]:
    files = vendor.build(Profile.SMALL, cache_directory())
    with own_lab("boxes") as lab:
        fleet.up(lab, ["box01"], options=HostOptions(profile="small", hardware=CARDS))
        machine = find_machine(lab, "box01")
        for name in (toolkit.KEY_FILE, smoke.FILE_NAME):
            shutil.copy(files / name, machine.merged / "root" / name)
        shutil.copy(next(files.glob(f"*-{driver.VERSION}.run")), machine.merged / "root/driver.run")
        on(machine, f"docker image inspect box >/dev/null 2>&1 || {{ {INSTALL} }}")
        yield machine


@pytest.fixture
def limited(host: Machine) -> Machine:
    """The host, if Docker can limit its containers; otherwise skips with the reason."""
    why = why_no_limits(host)
    if why:
        pytest.skip(f"limits of containers are {why}")
    return host


def docker(host: Machine, *words: str) -> subprocess.CompletedProcess[str]:
    return exec_in(host, ["docker", "run", "--rm", "--network=none", *words])


def in_box(host: Machine, script: str, *options: str) -> list[str]:
    """Run a shell script in a container, which must succeed; return its lines."""
    ended = docker(host, *options, "box", "sh", "-c", script)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout.splitlines()


class TestLimits:
    def test_a_container_reads_its_limits_back(self, limited: Machine) -> None:
        options = ("--memory=64m", "--pids-limit=50", "--cpus=0.5", "--cpuset-cpus=0")
        script = """
        cd /sys/fs/cgroup
        cat memory/memory.limit_in_bytes memory.max pids/pids.max pids.max
        cat cpu/cpu.cfs_quota_us cpu.max cpuset/cpuset.cpus cpuset.cpus || true"""
        limits = in_box(limited, f"{{ {script}; }} 2>/dev/null", *options)
        assert limits[:2] == ["67108864", "50"]
        assert limits[2].split()[0] == "50000"
        assert limits[3] == "0"

    def test_the_machine_sees_the_same_limits_in_the_host_group(self, limited: Machine) -> None:
        name = on(limited, "docker run -d --rm --network=none --memory=48m --pids-limit=40 box sleep 600").strip()
        try:
            below = [hierarchy / limited.cgroup for hierarchy in cgroups.hierarchies()]
            found = {
                file.name: file.read_text().strip()
                for place in below
                for group in place.rglob(f"*{name}*")
                for file in group.iterdir()
                if file.name in ("memory.limit_in_bytes", "memory.max", "pids.max")
            }
            assert found.get("memory.limit_in_bytes", found.get("memory.max")) == str(48 << 20)
            assert found["pids.max"] == "40"
        finally:
            on(limited, f"docker kill {name}")

    def test_a_process_that_eats_memory_is_killed_alone(self, limited: Machine) -> None:
        other = on(limited, "docker run -d --rm --network=none --memory=64m box sleep 600").strip()
        try:
            eater = "text=x; while :; do text=$text$text; done"
            assert docker(limited, "--memory=64m", "box", "sh", "-c", eater).returncode == 137
            assert on(limited, f"docker inspect -f '{{{{.State.Running}}}}' {other}").strip() == "true"
            assert exec_in(limited, ["systemctl", "is-active", "docker", "containerd", "ssh"]).returncode == 0
        finally:
            on(limited, f"docker kill {other}")

    def test_no_process_is_begun_above_the_limit(self, limited: Machine) -> None:
        fork = "count=0; while [ $count -lt 40 ]; do sleep 600 & count=$((count + 1)); done"
        refused = docker(limited, "--pids-limit=20", "box", "sh", "-c", fork)
        assert refused.returncode != 0
        assert re.search(r"can't fork|Cannot fork", refused.stderr), refused.stderr
        assert docker(limited, "--pids-limit=60", "box", "sh", "-c", fork).returncode == 0

    def test_the_share_of_the_processor_is_kept(self, limited: Machine) -> None:
        # Counts throttled periods instead of seconds, because this machine may be busy.
        busy = """
        stat=/sys/fs/cgroup/cpu/cpu.stat
        [ -e $stat ] || stat=/sys/fs/cgroup/cpu.stat
        throttled() { grep ^nr_throttled $stat | { read name count; echo $count; }; }
        while [ $(throttled) -lt 3 ]; do :; done
        throttled"""
        assert int(in_box(limited, busy, "--cpus=0.1")[0]) >= 3


@pytest.fixture(scope="module")
def cards(host: Machine) -> list[str]:
    """The UUIDs of the host's cards, by index."""
    uuids = re.findall(r"UUID: (GPU-[0-9a-f-]+)", on(host, "nvidia-smi -L"))
    assert len(uuids) == len(CARDS.cards)
    return uuids


class TestCards:
    @pytest.mark.parametrize(
        ("asked", "indexes"),
        [
            ("all", (0, 1, 2)),
            ("2", (0, 1)),
            ("device=1", (1,)),
            ('"device=0,2"', (0, 2)),
            ("device=UUID1", (1,)),
            ('"device=UUID2,UUID0"', (0, 2)),
            ('"device=1","capabilities=utility"', (1,)),
        ],
    )
    def test_by_flag(self, host: Machine, cards: list[str], asked: str, indexes: tuple[int, ...]) -> None:
        assert in_box(host, SEEN, f"--gpus={_named(asked, cards)}") == _view(host, cards, indexes)

    @pytest.mark.parametrize(
        ("asked", "indexes"),
        [("all", (0, 1, 2)), ("2,0", (0, 2)), ("UUID1", (1,)), ("0000:3d:00.0", (1,)), ("1,1", (1,))],
    )
    def test_by_runtime(self, host: Machine, cards: list[str], asked: str, indexes: tuple[int, ...]) -> None:
        options = ("--runtime=nvidia", f"--env=NVIDIA_VISIBLE_DEVICES={_named(asked, cards)}")
        assert in_box(host, SEEN, *options) == _view(host, cards, indexes)

    def test_none_is_the_driver_without_a_card(self, host: Machine) -> None:
        assert in_box(host, SEEN, "--runtime=nvidia", "--env=NVIDIA_VISIBLE_DEVICES=none") == ["No devices were found"]

    @pytest.mark.parametrize("asked", ["void", ""])
    def test_void_and_nothing_bring_nothing(self, host: Machine, asked: str) -> None:
        options = ("--runtime=nvidia", f"--env=NVIDIA_VISIBLE_DEVICES={asked}")
        assert in_box(host, "command -v nvidia-smi || echo none; ls /dev | grep nvidia || true", *options) == ["none"]

    @pytest.mark.parametrize("asked", ["device=5", "device=UUID1-cut", '"device=0,7"', "4"])
    def test_an_unknown_card_is_refused_by_its_name(self, host: Machine, cards: list[str], asked: str) -> None:
        word = {"device=5": "5", "device=UUID1-cut": cards[1][:12], '"device=0,7"': "7", "4": "3"}[asked]
        refused = docker(host, f"--gpus={_named(asked, cards)}", "box", "true")
        assert refused.returncode == 125
        assert f"nvidia-container-cli: device error: {word}: unknown device" in refused.stderr


@pytest.fixture
def jit(host: Machine) -> Iterator[Machine]:
    """The host with the toolkit in mode auto, in which `--runtime nvidia` uses JIT-CDI."""
    setting = "nvidia-ctk config --in-place --set nvidia-container-runtime.mode="
    on(host, f"{setting}auto")
    yield host
    on(host, f"{setting}legacy")


#: Prints the device files in a container's runc configuration, and the number of NVIDIA's hooks in it.
CONFIGURED = """python3 -c "import glob, json, sys
(path,) = glob.glob('/run/containerd/io.containerd.runtime.v2.task/moby/' + sys.argv[1] + '*/config.json')
found = json.load(open(path))
hooks = [hook for hook in found.get('hooks', {}).get('prestart', []) if 'nvidia' in hook['path']]
print(' '.join(device['path'] for device in found['linux'].get('devices', [])), len(hooks))" """


class TestJitCdi:
    """JIT-CDI in the stand-in: a container's devices are in its own configuration, as with NVIDIA's."""

    @pytest.mark.parametrize(("asked", "indexes"), [("all", (0, 1, 2)), ("2,0", (0, 2)), ("UUID1", (1,))])
    def test_by_runtime(self, jit: Machine, cards: list[str], asked: str, indexes: tuple[int, ...]) -> None:
        options = ("--runtime=nvidia", f"--env=NVIDIA_VISIBLE_DEVICES={_named(asked, cards)}")
        assert in_box(jit, SEEN, *options) == _view(jit, cards, indexes)

    def test_the_flag_still_works_by_the_hook(self, jit: Machine, cards: list[str]) -> None:
        assert in_box(jit, SEEN, "--gpus=all") == _view(jit, cards, (0, 1, 2))

    def test_an_unknown_card_is_refused(self, jit: Machine) -> None:
        refused = docker(jit, "--runtime=nvidia", "--env=NVIDIA_VISIBLE_DEVICES=9", "box", "true")
        assert refused.returncode == 127

    def test_a_reload_of_systemd_leaves_the_cards(self, jit: Machine, cards: list[str]) -> None:
        """The cause why it cannot take them: devices are in the container's configuration, and no hook adds them later.
        That the kernel would forbid others is not shown: made-up cards have the numbers of /dev/null."""
        run = "docker run -d --rm --network=none"
        name = on(jit, f"{run} --runtime=nvidia --env=NVIDIA_VISIBLE_DEVICES=1 box sleep 600").strip()
        hooked = on(jit, f"{run} --gpus=device=1 box sleep 600").strip()
        try:
            devices, hooks = on(jit, CONFIGURED + name).rsplit(" ", 1)
            assert {"/dev/nvidia1", "/dev/nvidiactl"} <= set(devices.split())
            assert hooks.strip() == "0"
            assert on(jit, CONFIGURED + hooked).strip() == "1", "the hook's devices are in no configuration"
            on(jit, "systemctl daemon-reload")
            assert on(jit, f"docker exec {name} sh -c '{SEEN}'").splitlines() == _view(jit, cards, (1,))
        finally:
            on(jit, f"docker kill {name} {hooked}")


class TestCdi:
    def test_the_unit_writes_what_the_host_has(self, host: Machine, cards: list[str]) -> None:
        on(host, "systemctl restart nvidia-cdi-refresh")
        names = on(host, "grep -oP '(?<=- name: ).*' /var/run/cdi/nvidia.yaml").split()
        wanted = [name for index, uuid in enumerate(cards) for name in (f'"{index}"', uuid)]
        assert names == [*wanted, "all", "none"]

    def test_it_is_written_anew_when_the_toolkit_changes(self, host: Machine) -> None:
        on(host, "rm /var/run/cdi/nvidia.yaml; touch /usr/bin/nvidia-ctk")
        on(host, "timeout 60 sh -c 'until [ -s /var/run/cdi/nvidia.yaml ]; do sleep 0.1; done'")


def _named(asked: str, cards: list[str]) -> str:
    """Replace ``UUID1`` by a UUID, and ``UUID1-cut`` by the beginning of one."""
    asked = asked.replace("UUID1-cut", cards[1][:12])
    for index, uuid in enumerate(cards):
        asked = asked.replace(f"UUID{index}", uuid)
    return asked


def _view(host: Machine, cards: list[str], indexes: tuple[int, ...]) -> list[str]:
    """Return the expected view of a container with these cards: numbered from 0, with their original device files."""
    own = on(host, "nvidia-smi -L").splitlines()
    listed = [own[index].replace(f"GPU {index}:", f"GPU {place}:") for place, index in enumerate(indexes)]
    return [*listed, *(f"/dev/nvidia{index}" for index in indexes)]


class TestImages:
    def test_an_image_is_built_once_loaded_and_says_what_it_is(self, host: Machine) -> None:
        archive = images.ensure(images.PYTHON)
        built = archive.stat().st_mtime_ns
        images.load(host, images.PYTHON)
        assert images.ensure(images.PYTHON).stat().st_mtime_ns == built
        version = docker(host, images.PYTHON.tag, "python3", "-c", "import ssl, sys; print(sys.version)")
        assert version.stdout.startswith("3.9."), version.stderr
        label = on(host, f"docker inspect -f '{{{{index .Config.Labels \"{images.LABEL}\"}}}}' {images.PYTHON.tag}")
        assert label.strip() == images.PYTHON.says
