"""CDI specifications of a previous driver."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostwright.resources.packages.packages import DPKG
from hostwright.standard.roles.container.cdi import MOST
from hostwright.standard.roles.container.failures.cdi import CDI
from tests.unit.support.auditcontexts import evidence
from tests.unit.support.known import KNOWN
from tests.unit.support.library_contexts import asked, write

MOUNT = "  - containerPath: /x/%s\n    hostPath: %s/lib/%s\n    options: [ro]\n"
HEAD = "---\ncdiVersion: 0.5.0\nkind: nvidia.com/gpu\ncontainerEdits:\n  mounts:\n"


def spec(root: Path, *names: str, head: str = HEAD) -> str:
    return head + "".join(MOUNT % (name, root, name) for name in names)


def test_files_that_are_not_there_are_told_with_their_specification(tmp_path: Path) -> None:
    write(tmp_path / "lib/libcuda.so.470.182.03")
    gone = [f"lib{name}.so.535.161.07" for name in ("cuda", "EGL_nvidia", "nvidia-ml", "nvidia-ptx", "nvoptix")]
    write(tmp_path / "etc/cdi/nvidia.yaml", spec(tmp_path, "libcuda.so.470.182.03", *gone))
    json = '{"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "containerEdits": {"mounts": [{"hostPath": "%s"}]}}'
    write(tmp_path / "var/run/cdi/nvidia.json", json.replace("%s", f"{tmp_path}/gone") + "\n")
    answer = asked(CDI, tmp_path, "/etc/cdi/", "/var/run/cdi/")
    told = [line.split()[1:] for line in answer.text.splitlines() if line.startswith("missing ")]
    assert [place for place, _ in told] == ["/etc/cdi/nvidia.yaml"] * MOST
    assert ["/etc/cdi/nvidia.yaml", "/lib/libcuda.so.535.161.07"] in told


def test_what_is_there_and_what_is_anothers_is_not_told(tmp_path: Path) -> None:
    write(tmp_path / "lib/libcuda.so.470.182.03")
    write(tmp_path / "etc/cdi/nvidia.yaml", spec(tmp_path, "libcuda.so.470.182.03"))
    write(tmp_path / "etc/cdi/fpga.yaml", spec(tmp_path, "gone", head="kind: example.com/fpga\n"))
    assert asked(CDI, tmp_path, "/etc/cdi/", "/var/run/cdi/").text == "version /etc/cdi/nvidia.yaml 0.5.0\n"


@pytest.mark.parametrize(
    "text",
    [
        "Error: crun: cannot stat `/usr/lib64/libEGL_nvidia.so.550.54.15`: No such file or directory: OCI runtime",
        'error mounting "/usr/lib/x86_64-linux-gnu/libcuda.so.535.161.07" to rootfs at "/usr/lib/libcuda.so": mount '
        "src=/x, dst=/y, dstFd=/proc/thread-self/fd/8, flags=0x5000: no such file or directory",
    ],
)
def test_the_runtimes_words_are_known(text: str) -> None:
    assert KNOWN.classify(text).rule.name == "cdi-stale"


def test_a_mount_of_somebodys_own_is_not_blamed_on_it() -> None:
    text = 'error mounting "/srv/data" to rootfs at "/data": mount src=/srv/data: no such file or directory'
    assert KNOWN.classify(text) is None


def test_a_stale_number_in_any_specification_is_told(tmp_path: Path) -> None:
    """The case of /etc/cdi on a host that boots without systemd: NVIDIA/nvidia-container-toolkit#1934."""
    write(tmp_path / "proc/devices", "Character devices:\n195 nvidia-frontend\n509 nvidia-uvm\n")
    nodes = "  deviceNodes:\n  - path: /dev/nvidia-uvm\n    major: 510\n  - path: /dev/nvidiactl\n    major: 195\n"
    head = HEAD.replace("  mounts:\n", nodes).replace("0.5.0", "0.7.0")
    write(tmp_path / "etc/cdi/nvidia.yaml", head)
    found = asked(CDI, tmp_path, "/etc/cdi/", "/var/run/cdi/", "/proc/devices").text
    assert sorted(found.splitlines()) == [
        "number /etc/cdi/nvidia.yaml /dev/nvidia-uvm 510 509",
        "version /etc/cdi/nvidia.yaml 0.7.0",
    ]
    assert evidence("cdi-numbers", {CDI: found}) == [
        "/etc/cdi/nvidia.yaml has 510 as the major number of /dev/nvidia-uvm, but the kernel has 509"
    ]
    assert evidence("cdi-stale", {CDI: found}) == []


@pytest.mark.parametrize(
    ("package", "seen"),
    [
        ("podman\t4.9.3+ds1-1ubuntu0.2\tii \n", ["podman is 4.9.3+ds1-1ubuntu0.2"]),  # #1940
        ("podman\t5.4.2+ds1-2+b2\tii \n", []),
        ("podman\t3.4.4+ds1-1ubuntu1\tii \n", []),  # has no CDI support
        ("docker-ce\t5:25.0.5-1~debian.12~bookworm\tii \n", ["docker-ce is 5:25.0.5-1~debian.12~bookworm"]),
        ("docker-ce\t5:26.1.0-1~debian.12~bookworm\tii \n", []),
    ],
)
def test_an_engine_that_cannot_read_it_is_told(package: str, seen: list[str]) -> None:
    differs = {CDI: "version /var/run/cdi/nvidia.yaml 0.7.0\n", DPKG: package}
    expected = [f"/var/run/cdi/nvidia.yaml has version 0.7.0, but {one}" for one in seen]
    assert evidence("cdi-unresolvable", differs) == expected
    assert evidence("cdi-unresolvable", {**differs, CDI: "version /var/run/cdi/nvidia.yaml 0.6.0\n"}) == []
