"""Which cards a lab host's container gets: the stand-ins of NVIDIA's hook and tool, run as programs.

The hook's cases are those of NVIDIA's own tables for the container toolkit (internal/config/image/cuda_image_test.go,
cmd/nvidia-container-runtime-hook/container_config_test.go), told anew; the tool's follow select_devices of
libnvidia-container (src/cli/common.c), which has no tests.
"""

from __future__ import annotations

import ctypes
import json
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lab.config import CHECKOUT

PROGRAMS = CHECKOUT / "lab/vendor/src/toolkit"
VOLUMES = "/var/run/nvidia-container-devices"
ALL = "compat32,compute,display,graphics,ngx,utility,video"
USUAL = "compute,utility"
NO_GPUS = "not a GPU container"
OLD, NEW = "CUDA_VERSION=9.0", "NVIDIA_REQUIRE_CUDA=cuda>=9.0"
#: settings of config.toml: only by volume mounts; by both; a resource of Docker Swarm's
STRICT = "accept-nvidia-visible-devices-envvar-when-unprivileged = false\n"
MOUNTS = "accept-nvidia-visible-devices-as-volume-mounts = true\n"
SWARM = 'swarm-resource = "DOCKER_RESOURCE_GPUS"\n'
TWO_SWARM = 'swarm-resource = "DOCKER_RESOURCE_GPUS,DOCKER_RESOURCE_GPUS_ADDITIONAL"\n'


def asks(devices: str, capabilities: str = USUAL) -> str:
    """What the hook hands to the tool: the devices ("" is the driver without one), and the capabilities."""
    return f"{devices}|{capabilities}"


#: (environment, what it gets): unprivileged, with the settings as they come
PLAIN = [
    ("", NO_GPUS),
    (OLD, asks("all", ALL)),
    (f"{OLD} NVIDIA_VISIBLE_DEVICES=all", asks("all", ALL)),
    (f"{OLD} NVIDIA_VISIBLE_DEVICES=", NO_GPUS),
    (f"{OLD} NVIDIA_VISIBLE_DEVICES=void", NO_GPUS),
    (f"{OLD} NVIDIA_VISIBLE_DEVICES=none", asks("", ALL)),
    (f"{OLD} NVIDIA_VISIBLE_DEVICES=gpu0,gpu1", asks("gpu0,gpu1", ALL)),
    (f"{OLD} NVIDIA_VISIBLE_DEVICES=gpu0,gpu1 NVIDIA_DRIVER_CAPABILITIES=", asks("gpu0,gpu1")),
    (f"{OLD} NVIDIA_VISIBLE_DEVICES=gpu0,gpu1 NVIDIA_DRIVER_CAPABILITIES=all", asks("gpu0,gpu1", ALL)),
    (
        f"{OLD} NVIDIA_VISIBLE_DEVICES=gpu0,gpu1 NVIDIA_DRIVER_CAPABILITIES=video,display",
        asks("gpu0,gpu1", "display,video"),
    ),
    (NEW, NO_GPUS),
    (f"{OLD} {NEW}", NO_GPUS),
    (f"{NEW} NVIDIA_VISIBLE_DEVICES=all", asks("all")),
    (f"{NEW} NVIDIA_VISIBLE_DEVICES=", NO_GPUS),
    (f"{NEW} NVIDIA_VISIBLE_DEVICES=void", NO_GPUS),
    (f"{NEW} NVIDIA_VISIBLE_DEVICES=none", asks("")),
    (f"{NEW} NVIDIA_VISIBLE_DEVICES=gpu0,gpu1", asks("gpu0,gpu1")),
    (f"{NEW} NVIDIA_VISIBLE_DEVICES=gpu0,gpu1 NVIDIA_DRIVER_CAPABILITIES=", asks("gpu0,gpu1")),
    (f"{NEW} NVIDIA_VISIBLE_DEVICES=gpu0,gpu1 NVIDIA_DRIVER_CAPABILITIES=all", asks("gpu0,gpu1", ALL)),
    (
        f"{NEW} NVIDIA_VISIBLE_DEVICES=gpu0,gpu1 NVIDIA_DRIVER_CAPABILITIES=video,display",
        asks("gpu0,gpu1", "display,video"),
    ),
    ("NVIDIA_VISIBLE_DEVICES=all", asks("all")),
    (f"{NEW} NVIDIA_VISIBLE_DEVICES=all NVIDIA_MIG_CONFIG_DEVICES=mig0,mig1", "refused"),
    (f"{NEW} NVIDIA_VISIBLE_DEVICES=all NVIDIA_MIG_MONITOR_DEVICES=mig0,mig1", "refused"),
    ("NVIDIA_VISIBLE_DEVICES=GPU-12345", asks("GPU-12345")),
    ("CUDA_VERSION=legacy NVIDIA_VISIBLE_DEVICES=GPU-12345", asks("GPU-12345", ALL)),
    ("DOCKER_RESOURCE_GPUS=GPU-67890", NO_GPUS),
    ("NVIDIA_VISIBLE_DEVICES= DOCKER_RESOURCE_GPUS=GPU-67890", NO_GPUS),
    ("NVIDIA_VISIBLE_DEVICES=void DOCKER_RESOURCE_GPUS=GPU-67890", NO_GPUS),
    ("NVIDIA_VISIBLE_DEVICES=none DOCKER_RESOURCE_GPUS=GPU-67890", asks("")),
    ("NVIDIA_VISIBLE_DEVICES=GPU-12345 DOCKER_RESOURCE_GPUS=GPU-67890", asks("GPU-12345")),
    (f"{OLD} NVIDIA_VISIBLE_DEVICES=GPU-12345 DOCKER_RESOURCE_GPUS=GPU-67890", asks("GPU-12345", ALL)),
    (f"{OLD} DOCKER_RESOURCE_GPUS=GPU-67890", asks("all", ALL)),
    # Docker appends what --gpus asks for to the image's own.
    ("NVIDIA_VISIBLE_DEVICES=all NVIDIA_VISIBLE_DEVICES=1", asks("1")),
]
#: (settings, environment, privileged, what it gets)
SET = [
    (SWARM, "", True, NO_GPUS),
    (SWARM, "DOCKER_RESOURCE_GPUS=", True, NO_GPUS),
    (SWARM, "DOCKER_RESOURCE_GPUS=void", True, NO_GPUS),
    (SWARM, "DOCKER_RESOURCE_GPUS=none", True, asks("")),
    (SWARM, "DOCKER_RESOURCE_GPUS=GPU-12345", True, asks("GPU-12345")),
    (SWARM, f"{OLD} DOCKER_RESOURCE_GPUS=GPU-12345", True, asks("GPU-12345", ALL)),
    (SWARM, "NVIDIA_VISIBLE_DEVICES=all DOCKER_RESOURCE_GPUS=GPU1,GPU2", True, asks("GPU1,GPU2")),
    (SWARM, "NVIDIA_VISIBLE_DEVICES=GPU-12345 DOCKER_RESOURCE_GPUS=GPU-67890", True, asks("GPU-67890")),
    (TWO_SWARM, "NVIDIA_VISIBLE_DEVICES=a DOCKER_RESOURCE_GPUS=b DOCKER_RESOURCE_GPUS_ADDITIONAL=c", True, asks("b,c")),
    (TWO_SWARM, "NVIDIA_VISIBLE_DEVICES=a DOCKER_RESOURCE_GPUS_ADDITIONAL=c", True, asks("c")),
    ("", f"{NEW} NVIDIA_VISIBLE_DEVICES=all NVIDIA_MIG_CONFIG_DEVICES=mig0,mig1", True, asks("all")),
    ("", f"{NEW} NVIDIA_VISIBLE_DEVICES=all NVIDIA_MIG_MONITOR_DEVICES=mig0,mig1", True, asks("all")),
    (
        'supported-driver-capabilities = "video,display"\n',
        "NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=all",
        True,
        asks("all", "display,video"),
    ),
    (
        'supported-driver-capabilities = "video,display,compute,utility"\n',
        "NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=video,display",
        True,
        asks("all", "display,video"),
    ),
    (
        'supported-driver-capabilities = "video,display,utility,compute"\n',
        "NVIDIA_VISIBLE_DEVICES=all",
        True,
        asks("all"),
    ),
    (
        'supported-driver-capabilities = "not-compute,not-utility"\n',
        "NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility",
        False,
        "refused",
    ),
    (
        'supported-driver-capabilities = "compute"\n',
        "NVIDIA_VISIBLE_DEVICES=all",
        False,
        asks("all", "compute"),
    ),
    (STRICT, "NVIDIA_VISIBLE_DEVICES=GPU0,GPU1", False, NO_GPUS),
    (STRICT, "NVIDIA_VISIBLE_DEVICES=GPU0,GPU1", True, asks("GPU0,GPU1")),
    (MOUNTS, "NVIDIA_VISIBLE_DEVICES=GPU0,GPU1", False, asks("GPU0,GPU1")),
    (STRICT + SWARM, "DOCKER_RESOURCE_GPUS=GPU-12345", True, asks("GPU-12345")),
    (STRICT + SWARM, "DOCKER_RESOURCE_GPUS=GPU-12345", False, NO_GPUS),
    (SWARM, "DOCKER_RESOURCE_GPUS=GPU-12345", False, asks("GPU-12345")),
    (STRICT + SWARM, "NVIDIA_VISIBLE_DEVICES=GPU-12345", True, asks("GPU-12345")),
]
#: (settings, mounts as source:destination, what it gets) beside NVIDIA_VISIBLE_DEVICES=GPU2,GPU3, unprivileged
MOUNTED = [
    (MOUNTS + STRICT, (f"/dev/null:{VOLUMES}/GPU0", f"/dev/null:{VOLUMES}/GPU1"), asks("GPU0,GPU1")),
    (MOUNTS + STRICT, (), NO_GPUS),
    ("", (f"/dev/null:{VOLUMES}/GPU0", f"/dev/null:{VOLUMES}/GPU1"), asks("GPU2,GPU3")),
    (STRICT, (f"/dev/null:{VOLUMES}/GPU0",), NO_GPUS),
    (MOUNTS + STRICT, (f"/not/dev/null:{VOLUMES}/GPU0",), NO_GPUS),
    (MOUNTS + STRICT, ("/dev/null:/other/prefix/GPU0",), NO_GPUS),
    (MOUNTS + STRICT, (f"/dev/null:{VOLUMES}",), NO_GPUS),
    (
        MOUNTS + STRICT,
        (f"/dev/null:{VOLUMES}/GPU0-MIG0/0/1", f"/dev/null:{VOLUMES}/GPU1-MIG0/0/1"),
        asks("GPU0-MIG0/0/1,GPU1-MIG0/0/1"),
    ),
    (MOUNTS + STRICT, (f"/dev/null:{VOLUMES}/GPU0", f"/dev/null:{VOLUMES}/imex/0"), asks("GPU0")),
]


class Hook:
    """The hook as Docker runs it, with a tool that tells what it was given instead of doing it."""

    def __init__(self, place: Path) -> None:
        self.place = place
        tool = place / "tool"
        tool.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
        tool.chmod(0o755)

    def __call__(self, env: str, settings: str = "", mounts: tuple[str, ...] = (), *, privileged: bool = False) -> str:
        (self.place / "config.toml").write_text(f'{settings}[nvidia-container-cli]\npath = "{self.place / "tool"}"\n')
        bounding = ["CAP_SYS_ADMIN", "CAP_CHOWN"] if privileged else ["CAP_CHOWN"]
        pairs = (mount.rsplit(":", 1) for mount in mounts)
        config = {
            "process": {"env": env.split(), "capabilities": {"bounding": bounding}},
            "root": {"path": "rootfs"},
            "mounts": [{"source": source, "destination": target} for source, target in pairs],
        }
        (self.place / "config.json").write_text(json.dumps(config))
        ended = subprocess.run(
            [
                sys.executable,
                PROGRAMS / "nvidia-container-runtime-hook",
                "-config",
                self.place / "config.toml",
                "prestart",
            ],
            input=json.dumps({"pid": 7, "bundle": str(self.place)}),
            capture_output=True,
            text=True,
            check=False,
        )
        if ended.returncode:
            assert "unsupported capabilities" in ended.stderr or "non privileged" in ended.stderr, ended.stderr
            return "refused"
        return self._told(ended.stdout.splitlines()) if ended.stdout else NO_GPUS

    def _told(self, words: list[str]) -> str:
        assert words[-2:] == ["--pid=7", str(self.place / "rootfs")]
        named = [word.removeprefix("--device=") for word in words if word.startswith("--device=")]
        flags = [word[2:] for word in words[words.index("configure") + 1 : -2] if "=" not in word]
        return asks("".join(named), ",".join(flags))


@pytest.fixture
def hook(tmp_path: Path) -> Hook:
    return Hook(tmp_path)


class TestHook:
    @pytest.mark.parametrize(("env", "gets"), PLAIN)
    def test_the_environment_says_which_devices(self, hook: Hook, env: str, gets: str) -> None:
        assert hook(env) == gets

    @pytest.mark.parametrize(("settings", "env", "privileged", "gets"), SET)
    def test_under_the_settings(self, hook: Hook, settings: str, env: str, privileged: bool, gets: str) -> None:
        assert hook(env, settings, privileged=privileged) == gets

    @pytest.mark.parametrize(("settings", "mounts", "gets"), MOUNTED)
    def test_mounts_say_it_where_they_may(self, hook: Hook, settings: str, mounts: tuple[str, ...], gets: str) -> None:
        assert hook("NVIDIA_VISIBLE_DEVICES=GPU2,GPU3", settings, mounts) == gets


#: three cards, as `Nvml.cards` names them: index, minor, bus, name, UUID
UUIDS = (
    "GPU-5d49bdf4-b8d0-21ce-9260-a89c66748d92",
    "GPU-bb7b99c7-32ed-1a0e-197d-538ead68df4c",
    "GPU-bb7b0000-32ed-1a0e-197d-538ead68df4c",
)
BUSES = ("00000000:1a:00.0", "00000000:1b:00.0", "00000000:60:00.0")
SELECTED = [
    ("", ""),
    (",", ""),
    ("all", "0 1 2"),
    ("ALL", "0 1 2"),
    ("0", "0"),
    ("2", "2"),
    ("1,0", "1 0"),
    ("1,,2", "1 2"),
    ("1,1", "1"),
    ("00", "0"),
    ("all,9", "0 1 2"),
    ("1,all", "0 1 2"),
    (UUIDS[1], "1"),
    (UUIDS[1].lower(), "1"),
    (f"{UUIDS[1]},1", "1"),
    (f"{UUIDS[2]},0", "2 0"),
    ("00000000:1B:00.0", "1"),
    ("0000:60:00.0", "2"),
    ("0:1a:0.0", "0"),
]
#: list → the word that the error names
UNKNOWN = [
    ("3", "3"),
    ("-1", "-1"),
    ("9,all", "9"),
    ("0,5", "5"),
    ("false", "false"),
    ("0x1", "0x1"),
    ("GPU-", "GPU-"),
    (UUIDS[1][:12], UUIDS[1][:12]),
    (f"{UUIDS[0]}0", f"{UUIDS[0]}0"),
    ("none", "none"),
    ("MIG-1", "MIG-1"),
    ("0:0", "0:0"),
    ("0000:99:00.0", "0000:99:00.0"),
    ("1 2", "1 2"),
    ("nvidia0", "nvidia0"),
]


@pytest.fixture(scope="module")
def tool() -> SimpleNamespace:
    """The tool, as a module: what it does needs a host's driver and root, what it decides does not."""
    return SimpleNamespace(**runpy.run_path(str(PROGRAMS / "nvidia-container-cli")))


@pytest.fixture
def cards(tool: SimpleNamespace) -> Any:
    numbers = zip(UUIDS, BUSES, strict=True)
    return [tool.Card(place, place, bus, "Tesla T4", uuid) for place, (uuid, bus) in enumerate(numbers)]


class TestTool:
    @pytest.mark.parametrize(("wanted", "indexes"), SELECTED)
    def test_a_list_selects_cards(self, tool: SimpleNamespace, cards: Any, wanted: str, indexes: str) -> None:
        assert " ".join(str(card.index) for card in tool.select(wanted, cards)) == indexes

    @pytest.mark.parametrize(("wanted", "word"), UNKNOWN)
    def test_an_unknown_device_is_named(self, tool: SimpleNamespace, cards: Any, wanted: str, word: str) -> None:
        with pytest.raises(SystemExit, match=f"^nvidia-container-cli: device error: {word}: unknown device$"):
            tool.select(wanted, cards)

    def test_pci_information_is_as_large_as_in_nvml(self, tool: SimpleNamespace) -> None:
        assert ctypes.sizeof(tool.Pci) == 68
