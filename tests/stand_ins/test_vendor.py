"""The vendor files on real hosts: they behave as the vendor's do, and their failures are the vendor's failures."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostwright.common.errors import LabError
from lab import fleet, vendor
from lab.config import HostOptions, Machine, cache_directory
from lab.machine import exec_in
from lab.programs import run
from lab.records import find_machine
from lab.vendor import cuda, cudnn, toolkit, wheels
from lab.vendor.model import Profile, build_once, describe, read_manifest
from tests.lab.ownlab import own_lab

SMALL = HostOptions(profile="small")
SCRIPTS = Path(vendor.__file__).parent / "src/toolkit"
PINS = [f"{name}={toolkit.PINNED}" for name in (
    "nvidia-container-toolkit", "nvidia-container-toolkit-base", "libnvidia-container-tools", "libnvidia-container1",
)]  # fmt: skip
PROGRAM = r"""
#include <cstdio>
#include <cuda_runtime.h>
__global__ void twice(float *x) { x[threadIdx.x] *= 2; }
int main() {
    int devices = -1;
    cudaError_t error = cudaGetDeviceCount(&devices);
    printf("%d %s\n", CUDART_VERSION, cudaGetErrorName(error));
    if (devices > 0) twice<<<1, 1>>>(nullptr);
}
"""


@pytest.fixture(scope="module")
def files() -> Path:
    """The small profile's directory, built when the cache has none."""
    return vendor.build(Profile.SMALL, cache_directory())


@pytest.fixture(scope="module")
def host(files: Path) -> Iterator[Machine]:
    with own_lab("hwvend") as lab:
        fleet.up(lab, ["v01"], options=SMALL)
        machine = find_machine(lab, "v01")
        for name in (cuda.FILE_NAME, cudnn.FILE_NAME, toolkit.KEY_FILE, "hostwright-gpu-smoke.tar"):
            shutil.copy(files / name, machine.merged / "root" / name)
        shutil.copy(next(files.glob("NVIDIA-Linux-x86_64-470.182.03.run")), machine.merged / "root/driver.run")
        yield machine


def on(machine: Machine, script: str) -> subprocess.CompletedProcess[str]:
    return exec_in(machine, ["env", "DEBIAN_FRONTEND=noninteractive", "HOME=/root", "sh", "-c", f"cd /root\n{script}"])


def done(machine: Machine, script: str) -> str:
    """Run a script that must succeed and return its output."""
    ended = on(machine, f"set -e\n{script}")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


class TestManifest:
    def test_everything_is_there_and_says_what_it_is(self, files: Path) -> None:
        profile, listed = read_manifest(files)
        assert profile is Profile.SMALL
        assert {file.name for file in listed if not file.stand_in} == {house.file_name for house in wheels.HOUSES}
        assert all((files / file.name).exists() and file.note for file in listed)

    def test_a_second_build_does_nothing(self, files: Path) -> None:
        before = {path: path.stat().st_mtime_ns for path in files.iterdir() if path.name != "manifest.json"}
        vendor.build(Profile.SMALL, cache_directory())
        assert {path: path.stat().st_mtime_ns for path in before} == before

    def test_a_failing_builder_leaves_the_former_file(self, tmp_path: Path) -> None:
        def good(work: Path) -> list[vendor.VendorFile]:
            (work / "a").write_text("good")
            return [describe(work / "a", artifact="a", version="1", stand_in=True, note="n")]

        def bad(_work: Path) -> list[vendor.VendorFile]:
            run(["false"])
            return []

        build_once(tmp_path, "a", "1", good)
        with pytest.raises(LabError, match="`false` ended with status 1"):
            build_once(tmp_path, "a", "2", bad)
        assert (tmp_path / "a").read_text() == "good"

    def test_the_wheelhouse_holds_one_wheel_of_every_pin(self, files: Path) -> None:
        with tarfile.open(files / wheels.FILE_NAME) as tar:
            have = sorted(name.replace("_", "-").lower() for name in tar.getnames())
        lines = [line for line in wheels.CONSTRAINTS.read_text().splitlines() if line and not line.startswith("#")]
        wanted = sorted(f"{line.replace('==', '-').replace('_', '-').lower()}-" for line in [*lines, wheels.PIP])
        assert len(have) == len(wanted)
        assert all(wheel.startswith(pin) for wheel, pin in zip(have, wanted, strict=True))


class TestCudaRepository:
    def test_apt_trusts_it_only_with_its_key(self, host: Machine) -> None:
        done(host, f"dpkg -i {cuda.FILE_NAME}")
        refused = on(host, "LC_ALL=C apt-get update 2>&1")
        assert refused.returncode == 100
        assert "NO_PUBKEY" in refused.stdout
        key = f"/var/{cuda.NAME}/{cuda.KEY_FILE}"
        assert "7fa2af80" in done(host, f"gpg --dearmor < {key} > /etc/apt/trusted.gpg.d/cuda.gpg; ls {key}")
        assert "NO_PUBKEY" not in done(host, "apt-get update 2>&1")

    def test_the_toolkit_leaves_the_driver_alone_and_cuda_11_2_does_not(self, host: Machine) -> None:
        planned = done(host, "apt-get -s install cuda-toolkit-11-2 | grep ^Inst")
        assert "Inst cuda-nvcc-11-2" in planned
        assert not [line for line in planned.splitlines() if line.startswith(("Inst nvidia", "Inst libnvidia"))]
        assert "Inst nvidia-driver-460" in done(host, "apt-get -s install cuda-11-2")

    def test_nvcc_compiles_and_links_the_runtime(self, host: Machine) -> None:
        done(host, "apt-get install -y -q g++ cuda-toolkit-11-2=11.2.2-1")
        (host.merged / "root/a.cu").write_text(PROGRAM)
        nvcc = "/usr/local/cuda/bin/nvcc"
        assert "V11.2.152" in done(host, f"{nvcc} -V")
        assert done(host, f"{nvcc} -o static a.cu && ./static").startswith("11020 cuda")
        options = "-cudart shared -Xlinker -rpath=/usr/local/cuda/lib64"
        shared = done(host, f"{nvcc} {options} -o shared a.cu; ldd shared; ./shared")
        assert "/libcudart.so.11.0" in shared
        assert "11020 cuda" in shared

    def test_damage_shows_in_dpkg(self, host: Machine) -> None:
        assert done(host, "dpkg -V cuda-nvcc-11-2 libcublas-11-2 cuda-toolkit-11-2") == ""
        damaged = on(host, "echo >> /usr/local/cuda-11.2/lib64/libcublas.so.11; dpkg -V libcublas-11-2")
        assert "??5??????" in damaged.stdout

    def test_stand_ins_say_so(self, host: Machine) -> None:
        field = "dpkg-query -W -f '${X-Hostwright-Stand-In}' %s; grep -c 'hostwright stand-in' %s"
        assert done(host, field % ("libcufft-11-2", "/usr/local/cuda/lib64/libcufft.so.10")).startswith("yes1")
        assert "packaging only" in done(host, "apt-cache show cuda-nvcc-11-2")


class TestCudnn:
    def test_the_library_answers_8100_and_can_do_nothing(self, host: Machine) -> None:
        done(host, f"tar -xf {cudnn.FILE_NAME}")
        ask = "import ctypes; l=ctypes.CDLL('/root/cuda/lib64/libcudnn.so.8'); h=ctypes.c_void_p()"
        answers = "print(l.cudnnGetVersion(), l.cudnnCreate(ctypes.byref(h)))"
        assert done(host, f'python3 -c "{ask}; {answers}"') == "8100 1\n"

    def test_the_links_are_links(self, host: Machine) -> None:
        listed = done(host, "cd cuda/lib64; readlink libcudnn.so libcudnn.so.8 libcudnn_cnn_train.so.8")
        assert listed.split() == ["libcudnn.so.8", "libcudnn.so.8.1.0", "libcudnn_cnn_train.so.8.1.0"]


@pytest.fixture(scope="module")
def docker(host: Machine) -> Machine:
    """The host with Docker, and with the toolkit's repository but none of its packages."""
    keyring = "/usr/share/keyrings/nvidia-container-toolkit-keyring.gpg"
    source = f"deb [signed-by={keyring}] file:/opt/hostwright-lab/{toolkit.DIRECTORY} /"
    done(
        host,
        f"""
        apt-get install -y -q docker.io
        gpg --dearmor < {toolkit.KEY_FILE} > {keyring}
        echo '{source}' > /etc/apt/sources.list.d/nvidia-container-toolkit.list
        apt-get -q update""",
    )
    return host


class TestContainerToolkit:
    SMOKE = "docker run --rm --gpus all gpu-smoke nvidia-smi -L"

    def test_one_pin_is_not_enough(self, docker: Machine) -> None:
        alone = on(docker, f"LC_ALL=C apt-get -s install {PINS[0]} 2>&1")
        assert alone.returncode == 100
        assert f"but {toolkit.NEWER}-1 is to be installed" in alone.stdout
        assert toolkit.NEWER not in done(docker, f"apt-get -s install {' '.join(PINS)} | grep ^Inst")

    def test_without_a_driver_no_container_gets_gpus(self, docker: Machine) -> None:
        done(
            docker,
            f"""
            apt-get install -y -q {" ".join(PINS)}
            nvidia-ctk runtime configure --runtime=docker
            systemctl restart docker
            docker import hostwright-gpu-smoke.tar gpu-smoke""",
        )
        failed = on(docker, f"{self.SMOKE} 2>&1")
        assert failed.returncode != 0
        assert "load library failed: libnvidia-ml.so.1" in failed.stdout
        assert on(docker, "nvidia-ctk system create-dev-char-symlinks --create-all").returncode == 1

    def test_with_the_driver_they_do_by_flag_and_by_runtime(self, docker: Machine) -> None:
        done(
            docker,
            """
            apt-get install -y -q build-essential dkms linux-headers-$(uname -r)
            sh driver.run --silent --dkms --no-cc-version-check
            nvidia-ctk system create-dev-char-symlinks --create-all""",
        )
        assert done(docker, "readlink /dev/char/195:0") == "../nvidia0\n"
        assert done(docker, self.SMOKE).startswith("GPU 0: ")
        by_runtime = self.SMOKE.replace("--gpus all", "--runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=all")
        assert done(docker, by_runtime) == done(docker, "nvidia-smi -L")

    def test_a_container_that_asks_for_none_gets_none(self, docker: Machine) -> None:
        assert on(docker, "docker run --rm --runtime=nvidia gpu-smoke nvidia-smi").returncode == 127

    def test_with_the_module_unloaded_it_fails_again(self, docker: Machine) -> None:
        done(docker, "modprobe -r nvidia_drm; modprobe -r nvidia_modeset; modprobe -r nvidia")
        failed = on(docker, f"{self.SMOKE} 2>&1")
        assert failed.returncode != 0
        assert "nvml error: driver not loaded" in failed.stdout


class TestConfigure:
    """`nvidia-ctk` and the runtime as programs on files; they need no host."""

    @pytest.fixture(autouse=True)
    def _module(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let the programs import the module `cdi`, which the package installs beside them."""
        folder = tmp_path / "modules"
        folder.mkdir()
        (folder / "cdi.py").symlink_to(SCRIPTS / "cdi")
        monkeypatch.setenv("PYTHONPATH", str(folder))

    def configure(self, path: Path) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, SCRIPTS / "nvidia-ctk", "runtime", "configure", "--runtime=docker", f"--config={path}"]
        return subprocess.run(words, capture_output=True, text=True, check=False)

    def test_daemon_json_keeps_what_others_put_there(self, tmp_path: Path) -> None:
        path = tmp_path / "daemon.json"
        path.write_text('{"mtu": 1400, "runtimes": {"other": {"path": "other"}}}')
        assert self.configure(path).returncode == 0
        nvidia = {"args": [], "path": "nvidia-container-runtime"}
        assert json.loads(path.read_text()) == {"mtu": 1400, "runtimes": {"other": {"path": "other"}, "nvidia": nvidia}}

    def test_a_broken_daemon_json_is_left_as_it_is(self, tmp_path: Path) -> None:
        path = tmp_path / "daemon.json"
        path.write_text('{"mtu": }')
        refused = self.configure(path)
        assert refused.returncode == 1
        assert "unable to load config for runtime docker" in refused.stderr
        assert path.read_text() == '{"mtu": }'

    @pytest.mark.parametrize("devices", ["all", "none", ""])
    def test_the_runtime_adds_the_hook_once_whatever_is_asked_for(self, tmp_path: Path, devices: str) -> None:
        """The hook decides (internal/modifier/stable.go of NVIDIA's container toolkit): "none" is a driver, too."""
        config = tmp_path / "config.json"
        config.write_text(json.dumps({"process": {"env": [f"NVIDIA_VISIBLE_DEVICES={devices}"]}}))
        runc = tmp_path / "runc"
        runc.write_text('#!/bin/sh\necho runc "$@"\n')
        runc.chmod(0o755)
        legacy = tmp_path / "config.toml"
        legacy.write_text('mode = "legacy"\n')
        source = (SCRIPTS / "nvidia-container-runtime").read_text()
        runtime = tmp_path / "runtime"
        runtime.write_text(source.replace("/etc/nvidia-container-runtime/config.toml", str(legacy)))
        words = [sys.executable, str(runtime), "create", "--bundle", str(tmp_path), "id"]
        environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
        for _ in range(2):  # a second time adds nothing
            ended = subprocess.run(words, capture_output=True, text=True, check=True, env=environment)
        assert ended.stdout == f"runc create --bundle {tmp_path} id\n"
        assert len(json.loads(config.read_text())["hooks"]["prestart"]) == 1
