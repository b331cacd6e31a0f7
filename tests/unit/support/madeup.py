"""A fake host for probes: a file tree and a few programs, read by this machine's shell.

The programs under test use absolute paths; ``rooted`` moves them into the tree.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from hostwright.stack.stack import Stack
from hostwright.standard.roles.container.section import ContainerSection
from hostwright.standard.roles.cuda.section import CudaSection
from hostwright.standard.roles.driver.section import DriverSection
from tests.unit.support.shell import program

CUDNN = ("", "_adv_infer", "_adv_train", "_cnn_infer", "_cnn_train", "_ops_infer", "_ops_train")
DISTS = {"tensorflow": "2.9.0", "numpy": "1.26.4", "protobuf": "3.19.6", "keras": "2.9.0", "tensorboard": "2.9.1"}
VENV = "/opt/tensorflow-2.9"
#: output of systemctl show: a paragraph per unit
UNITS = 'while [ "$1" != -- ]; do shift; done; shift; for unit; do printf "ActiveState={}\\n\\n"; done'

_OURS = re.compile(r"(?<![\w.}])/(?=(usr|etc|sys|var|proc|run|opt)/)")


@dataclass(frozen=True)
class MadeUp:
    """The tree and its programs."""

    root: Path

    def rooted(self, script: str) -> str:
        """The script with every path of the host moved into the tree."""
        return _OURS.sub(f"{self.root}/", script)

    def place(self, path: str) -> Path:
        """The location of a host's path in the tree; its parent directory is created."""
        found = self.root / path.lstrip("/")
        found.parent.mkdir(parents=True, exist_ok=True)
        return found

    def write(self, path: str, text: str | bytes = "") -> None:
        """Write a file to the tree."""
        self.place(path).write_bytes(text if isinstance(text, bytes) else text.encode())

    def link(self, path: str, target: str) -> None:
        """Create a link in the tree; an absolute target is moved into the tree."""
        self.place(path).symlink_to(self.root / target.lstrip("/") if target.startswith("/") else target)

    def program(self, name: str, script: str) -> None:
        """Add a program to the host's PATH, before this machine's programs."""
        program(self.root / "programs", name, self.rooted(script))

    def remove(self, path: str) -> None:
        """Remove a file, link or directory."""
        place = self.root / path.lstrip("/")
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink()

    def run(self, script: str) -> subprocess.CompletedProcess[bytes]:
        """Run a program of the host on the standard input of ``/bin/sh``."""
        path = f"{self.root}/programs:/usr/local/bin:/usr/bin:/bin"
        text = self.rooted(script).encode()
        return subprocess.run(["/bin/sh"], input=text, capture_output=True, check=False, env={"PATH": path})

    def ask(self, script: str) -> str:
        """The output of a probe's program, with the host's paths."""
        return self.run(script).stdout.decode(errors="replace").replace(str(self.root), "")


def bare(root: Path) -> MadeUp:
    """A host without anything installed."""
    host = MadeUp(root)
    for name in ("dpkg-query", "ldconfig", "modinfo", "docker"):
        host.program(name, "exit 127")
    host.program("systemctl", UNITS.format("inactive"))
    host.write("/proc/sys/kernel/osrelease", "5.10.0-28-amd64\n")
    host.write("/proc/meminfo", "MemTotal:       527950848 kB\nMemFree: 1 kB\n")
    cpu = "processor\t: 0\nmodel name\t: AMD EPYC 7543\nmicrocode\t: 0xa0011d1\n\nprocessor\t: 1\n"
    host.write("/proc/cpuinfo", cpu)
    host.write("/etc/os-release", 'NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 11 (bullseye)"\n')
    host.write("/sys/class/dmi/id/product_name", "PowerEdge R7525\n")
    return host


def provisioned(root: Path, stack: Stack) -> MadeUp:
    """A host that is as the stack desires."""
    host = bare(root)
    _driver(host, stack)
    _toolkit(host, stack)
    _packages(host, stack)
    site = f"{VENV}/lib/python3.9/site-packages"
    for name, version in DISTS.items():
        host.write(f"{site}/{name}-{version}.dist-info/RECORD")
    for path in ("apt.conf.d/52hostwright", "preferences.d/hostwright-no-other-driver"):
        host.write(f"/etc/apt/{path}")
    host.write("/etc/profile.d/cuda.sh")
    host.write(
        "/etc/docker/daemon.json", '{\n  "runtimes": {\n    "nvidia": {"path": "nvidia-container-runtime"}\n  }\n}\n'
    )
    record = (
        f'{{\n  "schema": 1,\n  "stack": "{stack.name}",\n  "roles": {{"at": ""}},\n  "at": "2026-11-21T10:00:00"\n}}\n'
    )
    host.write("/var/lib/hostwright/release.json", record)
    return host


def _driver(host: MadeUp, stack: Stack) -> None:
    version, libraries = stack.section(DriverSection).version, "/usr/lib/x86_64-linux-gnu"
    host.write("/sys/module/nvidia/version", f"{version}\n")
    host.program("modinfo", f"echo {version}")
    host.place(f"/var/lib/dkms/nvidia/{version}/5.10.0-28-amd64/x86_64/module/x").mkdir(parents=True)
    host.program("systemctl", UNITS.format("active"))
    host.write("/usr/bin/nvidia-smi")
    host.place("/usr/bin/nvidia-smi").chmod(0o755)
    for name in ("libcuda", "libnvidia-ml"):
        host.write(f"{libraries}/{name}.so.{version}")
        host.link(f"{libraries}/{name}.so.1", f"{name}.so.{version}")
    inside = f"{stack.section(CudaSection).prefix}/targets/x86_64-linux/lib"
    cache = {
        "libnvidia-ml.so.1": libraries, "libcudart.so.11.0": inside, "libcuda.so.1": libraries, "libcudnn.so.8": inside,
    }  # fmt: skip
    lines = "".join(f"\t{name} (libc6,x86-64) => {home}/{name}\n" for name, home in cache.items())
    host.program(
        "ldconfig", f"cat <<'END'\n90 libs found\n{lines}\tlibcuda.so.1 (libc6) => /usr/lib32/libcuda.so.1\nEND"
    )


def _toolkit(host: MadeUp, stack: Stack) -> None:
    prefix = stack.section(CudaSection).prefix
    inside = f"{prefix}/targets/x86_64-linux"
    program(
        host.place(f"{prefix}/bin/nvcc").parent,
        "nvcc",
        f"echo 'release 11.2, {stack.section(CudaSection).nvcc}'; echo Build x.y",
    )
    host.link("/etc/alternatives/cuda", prefix)
    host.link("/usr/local/cuda", "/etc/alternatives/cuda")
    host.link(f"/usr/local/cuda-{stack.section(CudaSection).series.partition('.')[0]}", prefix)
    host.write(f"{inside}/lib/libcudart.so.11.0")
    for part in CUDNN:
        host.write(f"{inside}/lib/libcudnn{part}.so.8.1.0")
        host.link(f"{inside}/lib/libcudnn{part}.so.8", f"libcudnn{part}.so.8.1.0")
    numbers = zip(("MAJOR", "MINOR", "PATCHLEVEL"), (8, 1, 0), strict=True)
    lines = "".join(f"#define CUDNN_{name} {number}\n" for name, number in numbers)
    host.write(f"{inside}/include/cudnn_version.h", f"{lines}#define CUDNN_VERSION (CUDNN_MAJOR * 1000)\n")


def _packages(host: MadeUp, stack: Stack) -> None:
    versions = {
        stack.section(CudaSection).package: stack.section(CudaSection).package_version,
        **stack.section(CudaSection).components,
    }
    versions |= dict.fromkeys(
        stack.section(ContainerSection).toolkit.packages, stack.section(ContainerSection).toolkit.version
    )
    rows = [(name, version, "hold") for name, version in versions.items()]
    rows += [("docker.io", "20.10.5+dfsg1-1", "install"), ("dkms", "2.8.4-3", "install")]
    lines = "".join(
        f"installed package {name}={version}\ninstalled mark {name}={mark}\n" for name, version, mark in rows
    )
    gone = "config-files package docker-ce=5:24.0\nconfig-files mark docker-ce=deinstall\n"
    host.program("dpkg-query", f"[ $1 = -W ] || exit 1\ncat <<'END'\n{lines}{gone}END")
