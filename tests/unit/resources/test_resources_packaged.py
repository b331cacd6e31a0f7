"""Files of packages as they lie on the host: gone, empty, turned, of another version."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostwright.plan.model import Answer, Change
from hostwright.resources.packages.dpkg import HOLD
from hostwright.resources.packages.packaged import CommandReports, PackagedTree
from tests.unit.support.facts import changes_of
from tests.unit.support.shell import ask

HOME = "/usr/local/cuda-11.2"
LIB = f"{HOME}/targets/x86_64-linux/lib"
TREE = PackagedTree(HOME, (LIB,), "/etc/apt/sources.list.d/cuda.list")
DPKG = "cuda-cudart-11-2\t11.2.152-1\thi \nlibcublas-11-2\t11.4.1.1043-1\tii \ncuda-nvcc-11-2\t11.2.152-1\tii \n"
INFO = "/var/lib/dpkg/info"
PACKAGED = (
    f"packaged\tcuda-cudart-11-2\t{LIB}/libcudart.so.11.0\n"
    f"packaged\tcuda-cudart-11-2\t{LIB}/libcudart.so.11.2.152\n"
    f"packaged\tlibcublas-11-2\t{LIB}/libcublas.so.11\n"
)
FOUND = (
    f"found\tl\t21\t{LIB}/libcudart.so.11.0\tlibcudart.so.11.2.152\n"
    f"found\tf\t600\t{LIB}/libcudart.so.11.2.152\t\n"
    f"found\tl\t9\t{LIB}/libcublas.so.11\tlibcublas.so.11.4.1.1043\n"
)


def plan(listing: str, table: str = DPKG) -> Change | None:
    changes = changes_of(TREE, {"dpkg-query": table, "others /usr": listing})
    return changes[0] if changes else None


def test_a_complete_tree_plans_nothing() -> None:
    assert plan(PACKAGED + FOUND) is None
    assert plan("") is None


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("libcudart.so.11.2.152\nfound\tf", "/opt/x\nfound\tf", "leads to /opt/x"),
        ("libcudart.so.11.2.152\nfound\tf", "libcublas.so.11\nfound\tf", "leads to libcublas.so.11"),
        ("found\tf\t600", "found\tf\t0", "libcudart.so.11.2.152 empty"),
    ],
)
def test_a_turned_link_and_an_emptied_library_are_found(old: str, new: str, fault: str) -> None:
    change = plan(PACKAGED + FOUND.replace(old, new))
    assert change is not None
    assert fault in change.have
    assert "\nbring cuda-cudart-11-2=11.2.152-1\n" in change.steps[0].script
    assert "libcublas" not in change.steps[0].script


def test_link_to_an_unpackaged_library_of_the_same_name_is_found() -> None:
    foreign = FOUND.replace("libcudart.so.11.2.152\nfound\tf\t600", "libcudart.so.11.2.72\nfound\tf\t600", 1)
    change = plan(f"{PACKAGED}{foreign}found\tf\t500\t{LIB}/libcudart.so.11.2.72\t\n")
    assert change is not None
    assert "leads to libcudart.so.11.2.72" in change.have
    # ldconfig turned the link, and would do so again
    assert f"keep_aside {LIB}/libcudart.so.11.2.72; rm -f -- {LIB}/libcudart.so.11.2.72\n" in change.steps[0].script
    assert change.warnings[-1].endswith(f"/DATE: {LIB}/libcudart.so.11.2.72")


def test_a_link_into_nothing_is_not_blamed_for_what_another_package_lacks() -> None:
    assert plan(PACKAGED + FOUND.replace("libcublas.so.11.4.1.1043", "libcublas.so.11.4")) is None


def test_missing_files_are_counted_and_only_their_package_comes_again() -> None:
    gone = "".join(f"gone\tcuda-nvcc-11-2\t{HOME}/bin/{name}\n" for name in ("a", "b", "nvcc", "ptxas"))
    change = plan(gone + PACKAGED + FOUND)
    assert change is not None
    assert change.have == f"{HOME}/bin/a gone; {HOME}/bin/b gone; {HOME}/bin/nvcc gone and 1 more"
    assert "--reinstall" in change.steps[0].script
    assert "\nbring cuda-nvcc-11-2=11.2.152-1\n" in change.steps[0].script


def test_a_held_package_is_held_again_after_it_came_again() -> None:
    change = plan(f"gone\tcuda-cudart-11-2\t{LIB}/libcudart.so.11.0\n")
    assert change is not None
    assert change.steps[0].script.endswith(f"{HOLD}cuda-cudart-11-2")


def test_what_is_not_installed_is_another_states_concern() -> None:
    assert plan(f"gone\tcuda-nvcc-11-2\t{HOME}/bin/nvcc\n", "bash\t5\tii \n") is None


def test_the_question_finds_what_is_gone_empty_and_turned(tmp_path: Path) -> None:
    info, root = tmp_path / "info", tmp_path / "cuda 11.2"
    lib, extras = root / "lib", root / "extras"
    info.mkdir()
    lib.mkdir(parents=True)
    extras.mkdir()
    (extras / "libb.so").write_text("bb")
    (lib / "liba.so.1").symlink_to("liba.so.1.0")
    (lib / "liba.so.1.0").write_text("a")
    names = ("bin/nvcc", "lib/liba.so.1", "lib/liba.so.1.0", "lib", "extras/libb.so", "extras/deeper/libc.so")
    (info / "cuda-a.list").write_text("/.\n/usr\n" + "".join(f"{root}/{name}\n" for name in names))
    (info / "cuda-a.md5sums").write_text(f"0  {root}/other\n")
    (root / "mine").touch()
    script = PackagedTree(str(root), (str(lib), str(extras)), "/l").tree.probe.script.replace(INFO, str(info))
    _, said = ask(script)
    assert sorted(said.splitlines()) == [
        f"added\t{root}/mine",
        f"found\tf\t1\t{lib}/liba.so.1.0\t",
        f"found\tf\t2\t{extras}/libb.so\t",
        f"found\tl\t11\t{lib}/liba.so.1\tliba.so.1.0",
        f"gone\tcuda-a\t{root}/bin/nvcc",
        f"gone\tcuda-a\t{extras}/deeper/libc.so",
        f"packaged\tcuda-a\t{extras}/libb.so",
        f"packaged\tcuda-a\t{lib}/liba.so.1",
        f"packaged\tcuda-a\t{lib}/liba.so.1.0",
    ]


def test_a_directory_that_lies_elsewhere_is_complete_too_and_nothing_in_it_is_somebodys(tmp_path: Path) -> None:
    """People move a toolkit to a larger disk and leave a link."""
    info, root, disk = tmp_path / "info", tmp_path / "tool", tmp_path / "disk"
    info.mkdir()
    (disk / "lib").mkdir(parents=True)
    (disk / "lib/liba.so").touch()
    (disk / "mine").touch()
    root.symlink_to(disk)
    (info / "tool.list").write_text(f"{root}/lib/liba.so\n{root}/bin/tool\n{root}/bin\n")
    script = PackagedTree(str(root), (f"{root}/lib",), "/l").tree.probe.script.replace(INFO, str(info))
    _, said = ask(script)
    assert sorted(said.splitlines()) == [
        f"found\tf\t0\t{root}/lib/liba.so\t",
        f"gone\ttool\t{root}/bin/tool",
        f"packaged\ttool\t{root}/lib/liba.so",
    ]


NVCC = CommandReports(
    f"{HOME}/bin/nvcc", "-V", "V11.2.152", ("cuda-nvcc-11-2=11.2.152-1", "libcublas-11-2=11.4.1.1043-1"), "/l"
)


def said(answer: Answer, table: str = DPKG) -> Change | None:
    changes = changes_of(NVCC, {"dpkg-query": table, "timeout 10": answer})
    return changes[0] if changes else None


def test_the_right_version_plans_nothing() -> None:
    assert said(Answer(0, "Cuda compilation tools, release 11.2, V11.2.152\n")) is None


@pytest.mark.parametrize("line", ["release 11.2, V11.2.67", "release 11.2, V11.2.142", "release 11.2, V11.2.1520"])
def test_other_releases_that_also_say_11_2_are_told_apart(line: str) -> None:
    change = said(Answer(0, f"nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, {line}\n"))
    assert change is not None
    assert line in change.have
    assert "\nbring cuda-nvcc-11-2=11.2.152-1 libcublas-11-2=11.4.1.1043-1\n" in change.steps[0].script


def test_a_program_that_does_not_run_is_found() -> None:
    change = said(Answer(126, ""))
    assert change is not None
    assert change.have == "no version (status 126)"


def test_a_program_is_asked_only_when_its_packages_are_right() -> None:
    assert said(Answer(127, "")) is None
    assert said(Answer(0, "V11.2.67"), DPKG.replace("cuda-nvcc-11-2\t11.2.152-1", "cuda-nvcc-11-2\t11.2.67-1")) is None
