"""CDI specifications that were made for another driver."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostwright.standard.roles.container.failures import CDI, MOST
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
    told = [line.split()[1:] for line in answer.text.splitlines()]
    assert [place for place, _ in told] == ["/etc/cdi/nvidia.yaml"] * MOST
    assert ["/etc/cdi/nvidia.yaml", "/lib/libcuda.so.535.161.07"] in told


def test_what_is_there_and_what_is_anothers_is_not_told(tmp_path: Path) -> None:
    write(tmp_path / "lib/libcuda.so.470.182.03")
    write(tmp_path / "etc/cdi/nvidia.yaml", spec(tmp_path, "libcuda.so.470.182.03"))
    write(tmp_path / "etc/cdi/fpga.yaml", spec(tmp_path, "gone", head="kind: example.com/fpga\n"))
    assert asked(CDI, tmp_path, "/etc/cdi/", "/var/run/cdi/").text == ""


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
