"""What people have in a toolkit's directory is named before packages go, and never deleted: real files, the real shell.

What people do there: samples built in the toolkit's own directory (NVIDIA/cuda-samples), a header patched in its place
(glibc's and the toolkit's math functions disagree: NVIDIA's forum, many threads on ``rsqrt`` in ``math_functions.h``),
a link to another compiler in ``bin`` (``ln -s /usr/bin/gcc-9 /usr/local/cuda/bin/gcc``), and other libraries (TensorRT,
NCCL) unpacked over it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import md5
from pathlib import Path

import pytest

from hostwright.plan.model import Answer, Change, Facts, Resource
from hostwright.resources.files.archives_gone import RECORDS
from hostwright.resources.files.aside import ASIDE
from hostwright.resources.packages.debs_gone import DebsGone
from hostwright.resources.packages.others import INFO, LOOK_BYTES, Others, PackageDirectory
from hostwright.resources.packages.packaged import CommandReports, PackagedTree
from hostwright.resources.packages.packages import Debs
from tests.unit.support.facts import facts_for
from tests.unit.support.shell import ask, run

LONG_AGO, INSTALLED, LATER = 1_600_000_000, 1_700_000_000, None


@dataclass
class Toolkit:
    """A toolkit of two packages, one file of an archive of ours and one link of ours, on a disk of its own."""

    root: Path

    def __post_init__(self) -> None:
        self.tree = self.root / "usr/local/cuda-11.2"
        self.places = {
            INFO: str(self.root / "info"),
            RECORDS: str(self.root / "records"),
            ASIDE: str(self.root / "set-aside"),
        }
        self.package("cuda-nvcc-11-2", "bin/nvcc", "include/crt/math_functions.h")
        self.package("libcublas-11-2:amd64", "lib/libcublas.so.11", "include/cublas.h")
        self.put("lib/libcudnn.so.8.1.0", LONG_AGO)
        (self.root / "records").mkdir()
        (self.root / "records/cudnn").write_text(f"8.1.0.77 x\nf\t1\t1\t{self.tree}/lib/libcudnn.so.8.1.0\t\n")
        (self.tree / "lib64").symlink_to("lib")
        mark = self.root / f"origin/files{self.tree}/lib64.written"
        mark.parent.mkdir(parents=True)
        mark.touch()

    def package(self, name: str, *files: str) -> None:
        for file in files:
            self.put(file, LONG_AGO)
        place = self.root / f"info/{name}.list"
        place.parent.mkdir(exist_ok=True)
        place.write_text("/.\n/usr\n" + "".join(f"{self.tree}/{file}\n" for file in files))
        sums = (
            f"{md5((self.tree / file).read_bytes(), usedforsecurity=False).hexdigest()}  {self.tree}/{file}\n"
            for file in files
        )
        place.with_suffix(".md5sums").write_text("".join(sums).replace("  /", "  "))
        os.utime(place)  # after its files, as dpkg does

    def put(self, file: str, time: int | None = LATER, text: str = "x") -> None:
        path = self.tree / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if time is not None:
            os.utime(path, (time, time))

    def script(self, text: str) -> str:
        for place, here in self.places.items():
            text = text.replace(place, here)
        return text

    def facts(self) -> Facts:
        probe = self.directory.probe
        return Facts({probe: Answer(*ask(self.script(probe.script), origin=self.root / "origin"))})

    @property
    def directory(self) -> PackageDirectory:
        return PackageDirectory(str(self.tree))

    def others(self) -> Others:
        return Others.of(self.facts(), self.directory)

    def kept(self) -> Mapping[str, str]:
        day = next((self.root / "set-aside").iterdir()) / str(self.tree)[1:]
        return {str(path.relative_to(day)): path.read_text() for path in day.rglob("*") if path.is_file()}


@pytest.fixture
def toolkit(tmp_path: Path) -> Toolkit:
    return Toolkit(tmp_path)


def test_a_toolkit_as_it_was_installed_holds_nothing_of_others(toolkit: Toolkit) -> None:
    (toolkit.tree / "lib64.before-hostwright.2026").mkdir()
    toolkit.put("lib64.before-hostwright.2026/old")
    toolkit.put(".hostwright-cudnn/half")
    toolkit.put("include/__pycache__/a.pyc")
    assert toolkit.others() == Others(str(toolkit.tree))


def test_what_people_added_is_named_by_the_highest_directory_that_is_theirs(toolkit: Toolkit) -> None:
    toolkit.put("samples/1_Utilities/deviceQuery/deviceQuery")
    toolkit.put("samples/common/inc/helper.h")
    toolkit.put("lib/libnvinfer.so.7")
    toolkit.put("NOTES of mine.txt")
    (toolkit.tree / "bin/gcc").symlink_to("/usr/bin/gcc-9")
    found = toolkit.others()
    names = ("NOTES of mine.txt", "bin/gcc", "lib/libnvinfer.so.7", "samples")
    assert sorted(found.added) == [f"{toolkit.tree}/{name}" for name in names]
    assert found.changed == ()
    assert found.stays[0].startswith(f"files below {toolkit.tree} that Hostwright did not write are left there: ")


@pytest.mark.parametrize("name", ["bin/nvcc\tof mine", "bin/nvcc\nof mine"])
def test_a_name_that_begins_like_a_packaged_one_is_not_taken_for_it(toolkit: Toolkit, name: str) -> None:
    toolkit.put(name)
    assert toolkit.others() == Others(str(toolkit.tree))


def test_a_header_that_somebody_patched_is_kept_before_its_package_goes(toolkit: Toolkit) -> None:
    toolkit.put("include/crt/math_functions.h", text="patched")
    toolkit.put("include/cublas.h", text="patched as well")
    toolkit.put("bin/nvcc", text="")  # emptied: damage, and nothing to keep
    found = toolkit.others().within(["cuda-nvcc-11-2"])
    assert [package for package, _ in found.changed] == ["cuda-nvcc-11-2"]
    for _ in range(2):  # an interrupted step is repeated
        assert run(toolkit.script(found.keeping), origin=toolkit.root / "origin").returncode == 0
    assert toolkit.kept() == {"include/crt/math_functions.h": "patched"}


def test_a_file_that_somebody_replaced_with_its_times_counts_by_its_bytes(toolkit: Toolkit) -> None:
    """``cp -p``, ``tar -x`` and ``rsync -a`` bring the time of another build."""
    wait_for_the_clock(toolkit.root)
    toolkit.put("include/crt/math_functions.h", LONG_AGO - 1, "patched")
    toolkit.put("include/cublas.h", LONG_AGO - 1)  # the package's own bytes, from a backup
    (toolkit.tree / "lib/libcublas.so.11").chmod(0o700)
    found = toolkit.others()
    assert found.changed == (("cuda-nvcc-11-2", f"{toolkit.tree}/include/crt/math_functions.h"),)
    assert run(toolkit.script(found.keeping), origin=toolkit.root / "origin").returncode == 0
    assert toolkit.kept() == {"include/crt/math_functions.h": "patched"}


def test_of_a_disk_that_was_copied_only_so_much_is_read(toolkit: Toolkit, monkeypatch: pytest.MonkeyPatch) -> None:
    wait_for_the_clock(toolkit.root)
    toolkit.put("include/cublas.h", LONG_AGO - 1, "patched" * 10)
    toolkit.put("include/crt/math_functions.h", LONG_AGO - 1, "patched")
    monkeypatch.setitem(toolkit.places, f"look_bytes={LOOK_BYTES}", "look_bytes=50")
    assert [path for _, path in toolkit.others().changed] == [f"{toolkit.tree}/include/crt/math_functions.h"]


def wait_for_the_clock(folder: Path) -> None:
    """Until a file that is written now has a later time than those before: a kernel's clock ticks every 4 ms."""
    mark = folder / "mark"
    mark.touch()
    before = mark.stat().st_ctime_ns
    while mark.stat().st_ctime_ns == before:
        mark.touch()


def test_an_archive_of_ours_elsewhere_does_not_hide_what_somebody_installed_by_hand(toolkit: Toolkit) -> None:
    shutil.rmtree(toolkit.root / "info")
    shutil.rmtree(toolkit.root / "origin")
    (toolkit.root / "records/cudnn").unlink()
    (toolkit.root / "records/python").write_text("3.9 x\nf\t1\t1\t/opt/python/bin/python\t\n")
    assert toolkit.others().by_hand


def test_a_host_whose_clock_was_behind_when_it_was_provisioned_has_no_changed_files(toolkit: Toolkit) -> None:
    toolkit.package("cuda-cudart-11-2", "lib/libcudart.so.11.0")
    library = toolkit.tree / "lib/libcudart.so.11.0"
    os.utime(library, (4_000_000_000, 4_000_000_000))  # the package's own time, by that clock yet to come
    os.utime(toolkit.root / "info/cuda-cudart-11-2.list")
    assert toolkit.others().changed == ()


def test_a_directory_that_is_not_there_and_names_with_line_breaks_are_no_error(toolkit: Toolkit) -> None:
    toolkit.put("two\nlines/file")
    assert toolkit.others() == Others(str(toolkit.tree))
    nowhere = PackageDirectory(str(toolkit.root / "nowhere"))
    assert ask(toolkit.script(nowhere.probe.script)) == (0, "")


HOME = "/usr/local/tool"
TOOL = PackageDirectory(HOME, (f"{HOME}/lib",))
CHANGED = f"added\t{HOME}/mine\nchanged\ttool\t{HOME}/tool.h\nchanged\tother\t{HOME}/other.h\n"
KEPT = f"files of tool that were replaced by others: the replacements are kept in {ASIDE}/DATE: {HOME}/tool.h"
STAYS = f"files below {HOME} that Hostwright did not write are left there: {HOME}/mine"


@pytest.mark.parametrize(
    ("state", "answers", "said"),
    [
        (DebsGone(("tool",), tree=TOOL), {"dpkg-query": "tool\t1.2\tii \n"}, (KEPT, STAYS)),
        (Debs(("tool=1.3",), tree=TOOL), {"dpkg-query": "tool\t1.2\tii \n"}, (KEPT,)),
        (
            PackagedTree(HOME, (f"{HOME}/lib",), ""),
            {"dpkg-query": "tool\t1.2\tii \n", "whose=": f"{CHANGED}gone\ttool\t{HOME}/bin/tool\n"},
            (KEPT,),
        ),
        (
            CommandReports(f"{HOME}/bin/tool", "-V", "1.2", ("tool=1.2",), "", TOOL),
            {"dpkg-query": "tool\t1.2\tii \n", "timeout 10": "1.1\n"},
            (KEPT,),
        ),
    ],
)
def test_each_change_that_takes_packaged_files_says_and_keeps_what_was_changed(
    state: Resource, answers: dict[str, str], said: tuple[str, ...]
) -> None:
    change = state.plan(facts_for(state, {"phase": CHANGED, "whose=": CHANGED, **answers}))
    assert isinstance(change, Change)
    assert change.warnings == said
    assert f"keep_changed {HOME} tool\n" in change.steps[0].script


def test_a_toolkit_that_somebody_installed_by_hand_is_moved_aside_whole_and_comes_back(tmp_path: Path) -> None:
    """NVIDIA's runfile puts the same files there as the packages, which would overwrite and later delete them."""
    by_hand = Toolkit(tmp_path)
    for folder in ("info", "records", "origin"):
        shutil.rmtree(tmp_path / folder)
        (tmp_path / folder).mkdir()
    before = sorted(by_hand.tree.rglob("*"))
    found = by_hand.others()
    assert found.by_hand
    state = Debs(("tool",), tree=by_hand.directory)
    dpkg = dict.fromkeys(state.probes()[:2], Answer(0, ""))
    change = state.plan(Facts({**by_hand.facts(), **dpkg}))
    assert change is not None
    (warning,) = change.warnings
    assert warning.startswith("the installation by hand is moved to ")
    assert found.keeping in change.steps[0].script
    assert run(by_hand.script(found.keeping), origin=tmp_path / "origin").returncode == 0
    assert not by_hand.tree.exists()
    by_hand.put("bin/nvcc.dpkg-new")  # dpkg is cut in the middle of it
    assert by_hand.others() == Others(str(by_hand.tree))
    by_hand.put("bin/ptxas")
    assert not by_hand.others().by_hand
    assert run(by_hand.script(found.keeping), origin=tmp_path / "origin").returncode == 0
    shutil.rmtree(by_hand.tree)  # what the removal does that comes later
    gone = DebsGone(("tool",), tree=by_hand.directory)
    facts = Facts({probe: Answer(1, "") for probe in gone.probes()} | dict(by_hand.facts()))
    back = gone.plan(facts)
    assert back is not None
    assert run(back.steps[0].script).returncode == 0
    assert sorted(by_hand.tree.rglob("*")) == before
    assert gone.plan(Facts({**facts, **by_hand.facts()})) is None


def test_what_is_left_of_a_toolkit_that_was_removed_is_no_installation_by_hand(tmp_path: Path) -> None:
    left = Toolkit(tmp_path)
    shutil.rmtree(left.root / "info")
    shutil.rmtree(left.tree)
    left.put("theirs")
    assert not left.others().by_hand
