"""The driver's device files: which ones a loaded driver has, what is wrong with them, and the shell that reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostwright.plan.model import Change
from hostwright.standard.roles.driver.states.device_files import DEVICES, MAKE_DEVICES, DeviceFiles, DeviceLinks
from tests.unit.support.driver_contexts import listed
from tests.unit.support.facts import facts_for
from tests.unit.support.forks import forks
from tests.unit.support.shell import ask, program

NUMBERS = "major nvidia 195\nmajor nvidiactl 195\nmajor nvidia-uvm 509\nmajor nvidia-caps 237\n"
LOADED = "loaded nvidia\nloaded nvidia_uvm\ncard 0\nModifyDeviceFiles: 1\nDeviceFileMode: 438\nsetuid\n"
FILES = {
    "nvidiactl": (195, 255),
    "nvidia0": (195, 0),
    "nvidia-uvm": (509, 0),
    "nvidia-uvm-tools": (509, 1),
}


def files(**differs: str) -> str:
    """find's lines of a host whose files are in order; a value takes the place of a line."""
    return "".join(differs.get(name.replace("-", "_"), listed(name, *numbers)) for name, numbers in FILES.items())


def plan(text: str) -> Change | None:
    return DeviceFiles().plan(facts_for([DeviceFiles()], {DEVICES.script: text}))


def test_a_host_with_all_files_or_without_a_driver_plans_nothing() -> None:
    assert plan(NUMBERS + LOADED + files()) is None
    assert plan("") is None
    assert plan("loaded nvidia\ncard 0\n" + files()) is None  # a kernel that names no numbers


@pytest.mark.parametrize(
    ("text", "have"),
    [
        (NUMBERS + LOADED + files(nvidia_uvm_tools=""), "no /dev/nvidia-uvm-tools"),
        (NUMBERS + LOADED + files(nvidia_uvm=""), "no /dev/nvidia-uvm"),
        (NUMBERS + LOADED + files(nvidiactl=""), "no /dev/nvidiactl"),
        (NUMBERS + LOADED + "card 1\n" + files(), "no /dev/nvidia1"),
        (NUMBERS + LOADED + files(nvidia_uvm=listed("nvidia-uvm", 510, 0)),
         "/dev/nvidia-uvm has the number 510:0, not 509:0"),
        (NUMBERS + LOADED + files(nvidia0=listed("nvidia0", 195, 0, "crw-rw----")),
         "/dev/nvidia0 has the mode rw-rw----, not rw-rw-rw-"),
        (NUMBERS + LOADED + files(nvidia0="  7  4 drwxr-xr-x   2 root root   4096 Nov 29 05:00 /dev/nvidia0\n"),
         "/dev/nvidia0 is not a device file"),
        (NUMBERS + LOADED + "cap 3 /proc/driver/nvidia/capabilities/gpu0/mig/gi1/access\n" + files(),
         "no /dev/nvidia-caps/nvidia-cap3"),
        (NUMBERS + LOADED.replace("setuid\n", "loaded nvidia_modeset\n") + files(), "no /dev/nvidia-modeset"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(text: str, have: str) -> None:
    change = plan(text)
    assert change is not None
    assert (change.what, change.have) == ("device files of the driver", have)


def test_files_that_the_first_program_has_made_may_be_missing_but_not_one_of_two() -> None:
    text = NUMBERS + LOADED + "loaded nvidia_modeset\n" + files(nvidia_uvm="", nvidia_uvm_tools="")
    assert plan(text) is None
    change = plan(text.replace("setuid\n", ""))
    assert change is not None
    assert change.have == "no /dev/nvidia-uvm; no /dev/nvidia-uvm-tools; no /dev/nvidia-modeset"


def test_an_administrator_who_makes_them_is_left_alone() -> None:
    assert plan((NUMBERS + LOADED).replace("ModifyDeviceFiles: 1", "ModifyDeviceFiles: 0")) is None


def test_the_mode_is_the_modules() -> None:
    private = (NUMBERS + LOADED).replace("438", str(0o660))
    modes = {name.replace("-", "_"): listed(name, *numbers, "crw-rw----") for name, numbers in FILES.items()}
    assert plan(private + files(**modes)) is None


def test_what_is_no_device_file_goes_before_it_is_made(tmp_path: Path) -> None:
    """Docker makes a directory of a file that is missing and is given to a container."""
    (tmp_path / "dev/nvidia0").mkdir(parents=True)
    (tmp_path / "dev/nvidia-uvm").write_text("")
    (tmp_path / "proc/driver/nvidia/gpus/0000:3b:00.0").mkdir(parents=True)
    (tmp_path / "proc/driver/nvidia/gpus/0000:3b:00.0/information").write_text(
        "Model: \t Tesla T4\nDevice Minor: \t 0\n"
    )
    (tmp_path / "sys/module/nvidia_uvm").mkdir(parents=True)
    program(tmp_path, "nvidia-modprobe", f'echo "$@" >>{tmp_path}/asked')
    program(tmp_path, "nvidia-ctk", "")
    change = plan(
        NUMBERS
        + LOADED
        + files(
            nvidia0="  7  4 drwxr-xr-x   2 root root   4096 Nov 29 05:00 /dev/nvidia0\n",
            nvidia_uvm="  8  0 -rw-r--r--   1 root root      0 Nov 29 05:00 /dev/nvidia-uvm\n",
        )
    )
    assert change is not None
    script = change.steps[0].script
    for place in ("dev/", "proc/", "sys/"):
        script = script.replace(f"/{place}", f"{tmp_path}/{place}").replace(f">{tmp_path}/dev/null", ">/dev/null")
    assert ask(f"PATH={tmp_path}:$PATH\n{script}") == (0, "")
    assert list((tmp_path / "dev").iterdir()) == []
    assert (tmp_path / "asked").read_text() == "-c 255 -c 0\n-u -c 0\n"


def test_the_files_are_made_only_where_nvidia_modprobe_is() -> None:
    assert ask(f"PATH=/nowhere\n{MAKE_DEVICES}") == (0, "")


def test_the_probe_reads_what_the_kernel_and_the_driver_say(tmp_path: Path) -> None:
    put = {
        "proc/devices": "Character devices:\n  1 mem\n195 nvidia\n509 nvidia-uvm\n\nBlock devices:\n  8 sd\n",
        "proc/driver/nvidia/params": "ResmanDebugLevel: 1\nModifyDeviceFiles: 1\nDeviceFileMode: 438\n",
        "proc/driver/nvidia/gpus/0000:3b:00.0/information": "Model: \t T4\nDevice Minor: \t 0\nGPU Excluded:\t No\n",
        "proc/driver/nvidia/gpus/0000:5e:00.0/information": "Model: \t T4\nDevice Minor: \t 1\nGPU Excluded:\t Yes\n",
        "proc/driver/nvidia/capabilities/gpu0/mig/gi1/access": "DeviceFileMinor: 12\nDeviceFileMode: 256\n",
    }
    for name, text in put.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "sys/module/nvidia").mkdir(parents=True)
    (tmp_path / "dev/char").mkdir(parents=True)
    (tmp_path / "dev/char/195:0").symlink_to("../nvidia0")
    (tmp_path / "dev/nvidia-uvm").write_text("")
    script = DEVICES.script
    for place in ("dev", "proc", "sys"):
        script = script.replace(f"/{place}/", f"{tmp_path}/{place}/").replace(f"2>{tmp_path}/dev/null", "2>/dev/null")
    status, text = ask(script)
    lines = text.replace(f"{tmp_path}/", "/").splitlines()
    assert status == 0
    assert lines[:7] == [
        "major nvidia 195", "major nvidia-uvm 509", "loaded nvidia", "card 0", "ModifyDeviceFiles: 1",
        "DeviceFileMode: 438", "cap 12 /proc/driver/nvidia/capabilities/gpu0/mig/gi1/access",
    ]  # fmt: skip
    change = plan(text.replace(f"{tmp_path}/", "/"))
    assert change is not None
    assert "no /dev/nvidiactl" in change.have
    assert forks(script) == 1
    assert any(line.startswith("link ") for line in lines)


def test_a_file_in_place_of_a_device_is_read_as_find_prints_it() -> None:
    """/dev/null stands for any device file: find's own line is understood."""
    line = ask("find /dev/null -ls")[1].replace("/dev/null", "/dev/nvidiactl")
    assert plan(f"major nvidia 1\nloaded nvidia\n{line}") is not None  # 1:3, not 1:255
    assert plan(f"loaded nvidia\n{line}") is None


def test_links_read_the_same_answer() -> None:
    assert DeviceLinks().probes() == DeviceFiles().probes() == (DEVICES,)
