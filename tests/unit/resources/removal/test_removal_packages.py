"""Packages taken away: what goes is decided from dpkg's own dependencies, and nothing of others goes with it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostwright.common.quoting import sh_file
from hostwright.plan.host.hostfacts import UNAME
from hostwright.plan.model import Answer, Change, Facts, Resource
from hostwright.resources.conditions import Differs
from hostwright.resources.originals import INSTALLED_BY_US, MANUAL_BEFORE, PACKAGES_BEFORE, RECORD, note_installed
from hostwright.resources.packages import debs_gone
from hostwright.resources.packages.debfile import DebFile
from hostwright.resources.packages.debs_gone import DEPENDS, MANUAL, WERE_BROUGHT, DebsGone, parse_depends
from hostwright.resources.packages.dpkg import ALONG, DPKG, DPKG_LOCK, mend_cut_script
from hostwright.resources.packages.packages import Debs, DebsAbsent, DebsBack, DpkgInOrder
from hostwright.resources.packages.repositories import LocalRepo, RepoDropped
from hostwright.resources.python.interpreters import VenvPackage
from hostwright.resources.system.kernel import KernelPackages, KernelsAsBefore
from hostwright.standard.roles.cuda.section import CudaSection
from tests.unit.support.facts import changes_of
from tests.unit.support.mounts import in_namespace
from tests.unit.support.shell import program, run
from tests.unit.support.stacks import load_stack


@dataclass(frozen=True)
class Deb:
    """A package of a made-up host; ``auto``: it is there for another one's sake."""

    name: str
    needs: str = ""
    wants: str = ""
    provides: str = ""
    state: str = "ii "
    auto: bool = False


@dataclass(frozen=True)
class World:
    """A made-up host now, and as it was before the first change (``None``: nobody wrote it down)."""

    now: tuple[Deb, ...]
    before: tuple[Deb, ...] | None = ()
    brought: tuple[str, ...] = ()
    installed: tuple[str, ...] | None = (
        None  #: what we wrote down that we install; ``None``: an earlier release did not
    )

    def facts(self) -> Facts:
        return Facts(
            {
                DPKG: Answer(0, table(self.now)),
                DEPENDS: Answer(0, re.sub(r" *\([^)]*\)", "", depends(self.now))),
                MANUAL: Answer(0, manual(self.now)),
                WERE_BROUGHT: Answer(0, "\n".join(self.brought)) if self.brought else Answer(1, ""),
                INSTALLED_BY_US: Answer(1, "") if self.installed is None else Answer(0, "\n".join(self.installed)),
                PACKAGES_BEFORE: Answer(1, "") if self.before is None else Answer(0, table(self.before)),
                MANUAL_BEFORE: Answer(1, "") if self.before is None else Answer(0, manual(self.before)),
            }
        )


def table(debs: Iterable[Deb]) -> str:
    return "".join(f"{deb.name}\t1.0\t{deb.state}\n" for deb in debs)


def depends(debs: Iterable[Deb]) -> str:
    return "".join(f"{deb.name}\t, {deb.needs}\t{deb.wants}\t{deb.provides}\n" for deb in debs)


def manual(debs: Iterable[Deb]) -> str:
    return "".join(f"{deb.name}\n" for deb in debs if not deb.auto)


BASH = Deb("bash", "libc6")
LIBC = Deb("libc6", auto=True)
BARE = (BASH, LIBC)
CUDA = Deb("cuda", "libcuda, libc6", state="hi ")
LIBCUDA = Deb("libcuda", "libc6", auto=True)


def plan(resource: Resource, world: World) -> Change | None:
    return resource.plan(world.facts())


def goes(resource: Resource, world: World) -> list[str]:
    """The packages that the plan names as going."""
    change = plan(resource, world)
    if change is None:
        return []
    return [part.split(" ")[0] for part in change.have.split(", ") if part.split(" ")[1] == "1.0"]


def test_what_was_never_there_plans_nothing() -> None:
    assert plan(DebsGone(("cuda",)), World(BARE, BARE)) is None


def test_package_goes_with_its_own_dependencies_named_in_the_plan() -> None:
    change = plan(DebsGone(("cuda",)), World((*BARE, CUDA, LIBCUDA), BARE))
    assert change is not None
    assert (change.have, change.want) == ("cuda 1.0, libcuda 1.0", "as before: absent")
    assert change.steps[0].script.endswith("take purge cuda libcuda")
    assert change.steps[0].lock == DPKG_LOCK


def test_what_somebody_else_installed_since_stays() -> None:
    """It came after the first change, and not by us: docker.io before the role container was ever provisioned."""
    now = (*BARE, CUDA, LIBCUDA)
    assert goes(DebsGone(("cuda",)), World(now, BARE, installed=("make",))) == []
    assert goes(DebsGone(("cuda",)), World(now, BARE, installed=("make", "cuda"))) == ["cuda", "libcuda"]
    change = plan(DebsGone(("cuda",)), World(now, BARE, installed=()))
    assert change is not None
    assert change.have == "cuda held", "but a hold of ours on it goes"


def test_a_venv_package_of_others_stays_with_ours_that_it_needs() -> None:
    ours, theirs = Deb("python3.9-venv"), Deb("python3-venv", "python3.9-venv")
    (gone,) = VenvPackage(("3.9",)).removal()
    assert goes(gone, World((*BARE, ours, theirs), BARE, installed=("python3.9-venv",))) == []
    assert goes(gone, World((*BARE, ours), BARE, installed=("python3.9-venv",))) == ["python3.9-venv"]


def test_a_package_of_two_roles_goes_with_the_last_one_that_needs_it() -> None:
    """PyTorch's role names gcc, which build-essential of another role needs and brought."""
    gcc, build, by_us = Deb("gcc", "libc6"), Deb("build-essential", "gcc"), ("build-essential", "gcc")
    change = plan(DebsGone(("gcc",)), World((*BARE, gcc, build), BARE, installed=by_us))
    assert change is not None
    assert (change.have, change.want) == ("gcc manual", "as before: gcc automatic")
    automatic = replace(gcc, auto=True)
    assert plan(DebsGone(("gcc",)), World((*BARE, automatic, build), BARE, installed=by_us)) is None
    there = World((*BARE, automatic, build), BARE, installed=by_us)
    assert goes(DebsGone(("build-essential",)), there) == ["build-essential", "gcc"]
    assert goes(DebsGone(("gcc",)), World((*BARE, gcc), BARE, installed=by_us)) == ["gcc"]


def test_what_we_install_is_written_down_before_unless_it_is_there(tmp_path: Path) -> None:
    states = 'case "$*" in *there | *sake) echo installed ;; *old) echo config-files ;; esac'
    program(tmp_path / "bin", "dpkg-query", states)
    program(tmp_path / "bin", "dpkg", "echo amd64")
    marks = tmp_path / "marks"
    rows = ("libc6 amd64 1", "sake amd64 1", "there i386 1", "there amd64 0")
    marks.write_text(
        "".join("Package: {}\nArchitecture: {}\nAuto-Installed: {}\n\n".format(*row.split()) for row in rows)
    )
    origin = tmp_path / "origin"
    script = note_installed(("there", "old=1.0", "it's new", "sake"))
    script = script.replace("/var/lib/apt/extended_states", str(marks))
    assert run(script, path=tmp_path / "bin", origin=origin).returncode == 0
    assert not origin.exists(), "an earlier release made the record of this host: it would name a part"
    origin.mkdir()
    (origin / "installed").touch()
    for _ in range(2):
        assert run(script, path=tmp_path / "bin", origin=origin).returncode == 0
    assert (origin / "installed").read_text() == "it's new\nold\nsake\n", "sake: there for another one's, until now"


def test_the_record_of_what_was_there_before_begins_with_nothing_installed(tmp_path: Path) -> None:
    for name in ("dpkg-query", "getent"):
        program(tmp_path / "bin", name, "echo row")
    assert run(RECORD, path=tmp_path / "bin", origin=tmp_path / "origin").returncode == 0
    assert (tmp_path / "origin/packages").read_text() == "row\n"
    assert (tmp_path / "origin/installed").read_text() == ""


def test_an_interrupted_record_leaves_the_state_directory_readable(tmp_path: Path) -> None:
    """The login user reads locks there: a directory closed to it counts as locked, and nothing would open it again."""
    program(tmp_path / "bin", "dpkg-query", "echo 'No space left on device' >&2; exit 100")
    assert run(f"umask 077\n{RECORD}", path=tmp_path / "bin", origin=tmp_path / "state/origin").returncode == 100
    assert oct((tmp_path / "state").stat().st_mode & 0o777) == "0o755"
    assert oct((tmp_path / "state/origin").stat().st_mode & 0o777) == "0o700"


def test_whatever_installs_packages_writes_them_down_first() -> None:
    stack = load_stack("tensorflow-2.9")
    one = stack.artifact(stack.section(CudaSection).repository.artifact)
    repository = LocalRepo("cuda-repo", one, "/key", "/list")
    replies = {UNAME.script: "5.4 x86_64"}
    for resource, name, install in (
        (Debs(("make=4",)), "make", "\nbring make=4"),
        (DebFile(one, "fabric", "1"), "fabric", "\nbring /"),
        (repository, "cuda-repo", "--install"),
        (KernelPackages(), "linux-headers-5.4", "\nbring linux-headers-5.4"),
    ):
        (change,) = changes_of(resource, replies)
        script = change.steps[0].script
        assert script.index(f"\nnote {name}") < script.index(install), resource


def test_what_was_there_before_stays_and_is_held_and_marked_as_before() -> None:
    before = (*BARE, Deb("docker", "libcuda"), Deb("libcuda", auto=True))
    now = (*BARE, Deb("docker", "libcuda", state="hi "), Deb("libcuda"))
    change = plan(DebsGone(("docker", "libcuda")), World(now, before))
    assert change is not None
    assert change.have == "docker held, libcuda manual"
    assert change.want == "as before: docker not held, libcuda automatic"
    assert "apt-mark unhold docker" in change.steps[0].script
    assert "apt-mark auto libcuda" in change.steps[0].script
    assert "take" not in change.steps[0].script
    assert plan(DebsGone(("docker", "libcuda")), World(before, before)) is None


def test_a_hold_from_before_stays() -> None:
    held = (*BARE, Deb("docker", state="hi "))
    assert plan(DebsGone(("docker",)), World(held, held)) is None


def test_what_a_package_of_others_needs_stays() -> None:
    others = Deb("theirs", "cuda")
    assert goes(DebsGone(("cuda",)), World((*BARE, replace(CUDA, state="ii "), LIBCUDA, others), BARE)) == []
    assert goes(DebsGone(("cuda",)), World((*BARE, CUDA, LIBCUDA, Deb("theirs", "libcuda")), BARE)) == ["cuda"]


def test_what_a_later_package_of_others_recommends_stays() -> None:
    assert goes(DebsGone(("cuda",)), World((*BARE, CUDA, LIBCUDA, Deb("theirs", wants="libcuda")), BARE)) == ["cuda"]


def test_what_an_older_package_did_without_goes() -> None:
    apt = Deb("apt", wants="certificates")
    world = World((apt, LIBC, Deb("certificates", "openssl"), Deb("openssl", auto=True)), (apt, LIBC))
    assert goes(DebsGone(("certificates",)), world) == ["certificates", "openssl"]


def test_another_choice_of_what_an_older_package_has_already_goes() -> None:
    mail = Deb("reader", "exim | mta")
    world = World((mail, Deb("exim", provides="mta"), Deb("postfix", provides="mta (= 1)")), (mail, Deb("exim")))
    assert goes(DebsGone(("postfix",)), world) == ["postfix"]


def test_what_stands_for_a_needed_name_stays() -> None:
    now = (*BARE, Deb("ours", "postfix"), Deb("postfix", provides="mta", auto=True), Deb("theirs", "mta:any"))
    assert goes(DebsGone(("ours",)), World(now, BARE)) == ["ours"]


def test_what_others_wanted_or_orphaned_themselves_stays() -> None:
    orphan, wanted = Deb("orphan", auto=True), Deb("wanted")
    now = (*BARE, CUDA, LIBCUDA, orphan, wanted)
    assert goes(DebsGone(("cuda",)), World(now, BARE)) == ["cuda", "libcuda"]


def test_a_kernel_is_never_taken_away() -> None:
    now = (*BARE, Deb("ours", "linux-image-6, headers"), Deb("linux-image-6", auto=True), Deb("headers", auto=True))
    assert goes(DebsGone(("ours",)), World(now, BARE)) == ["headers", "ours"]


def test_without_a_record_common_tools_stay_and_ours_go() -> None:
    world = World((*BARE, CUDA, LIBCUDA), None)
    assert plan(DebsGone(("cuda",), common=True), world) is None
    assert goes(DebsGone(("cuda",)), world) == ["cuda", "libcuda"]


def test_what_two_of_ours_need_goes_with_the_second() -> None:
    now = (*BARE, CUDA, Deb("docker", "libcuda"), LIBCUDA)
    change = plan(DebsGone(("cuda",)), World(now, BARE))
    assert change is not None
    assert change.have == "cuda 1.0"
    assert "'cuda libcuda'" in change.steps[0].script
    after = World((*BARE, LIBCUDA), BARE, brought=("cuda libcuda",))
    assert goes(DebsGone(("cuda",)), after) == ["libcuda"]
    assert goes(DebsGone(("docker",)), after) == []


def test_configuration_that_was_left_behind_goes_and_one_from_before_stays() -> None:
    old = Deb("cuda", state="rc ")
    change = plan(DebsGone(("cuda",)), World((*BARE, old), BARE))
    assert change is not None
    assert change.have == "cuda 1.0 (configuration)"
    assert plan(DebsGone(("cuda",)), World((*BARE, old), (*BARE, old))) is None
    assert plan(DebsGone(("cuda",)), World((*BARE, old), BARE, installed=())) is None, "somebody else's"
    change = plan(DebsGone(("cuda",)), World((*BARE, CUDA, LIBCUDA), (*BARE, old)))
    assert change is not None
    assert change.steps[0].script.endswith("take purge libcuda\ntake remove cuda")


@pytest.mark.parametrize("state", ["iU ", "iF ", "iHR"])
def test_what_was_cut_while_it_came_goes_after_dpkg_was_mended(state: str) -> None:
    change = plan(DebsGone(("cuda",)), World((*BARE, replace(CUDA, state=state), LIBCUDA), BARE))
    assert change is not None
    script = change.steps[0].script
    assert script.index("dpkg --configure -a") < script.index("take purge cuda")


def apt(folder: Path, simulation: str, present: str) -> Path:
    """Stand-ins for apt and dpkg that write down what they are told to do."""
    log = folder / "log"
    log.touch()
    program(folder / "bin", "apt-get", f'case "$*" in *" -s "*) printf "{simulation}" ;; *) echo "$*" >> {log} ;; esac')
    program(folder / "bin", "apt-mark", f'echo "$*" >> {log}')
    program(folder / "bin", "ldconfig", "")
    program(folder / "bin", "dpkg-query", f"printf '{present}'; exit 1")
    return log


def test_a_link_in_the_place_of_a_packages_directory_stays(tmp_path: Path) -> None:
    """With dpkg itself: it removes the link at /usr/local with the last package that has files there."""
    local, data, package, database = (tmp_path / name for name in ("local", "data", "package", "database"))
    inside = package / str(local)[1:] / "tool"
    (inside / "lib").mkdir(parents=True)
    (inside / "lib" / "tool.so").touch()
    (inside / "lib64").symlink_to("lib")
    (package / "DEBIAN").mkdir()
    control = "Package: tool\nVersion: 1\nArchitecture: all\nMaintainer: x <x@example.org>\nDescription: x\n"
    (package / "DEBIAN" / "control").write_text(control)
    data.mkdir()
    local.symlink_to(data)
    for name in ("info", "updates", "triggers"):
        (database / name).mkdir(parents=True)
    (database / "status").touch()
    dpkg = f"dpkg --admindir={database} --log={tmp_path}/log --force-not-root --force-bad-path"
    bin_ = tmp_path / "bin"
    program(bin_, "apt-get", f'case "$*" in *" -s "*) ;; *) {dpkg} --purge tool ;; esac')
    program(bin_, "dpkg-query", f'exec /usr/bin/dpkg-query --admindir={database} "$@"')
    program(bin_, "apt-mark", "")
    program(bin_, "ldconfig", "")
    take = ALONG + sh_file(
        debs_gone.__file__,
        "sh/take.sh",
        apt_options="-q",
        no_lists="-q",
        patiently='"$@"',
        brought=tmp_path / "b",
        installed=tmp_path / "i",
    )
    script = (
        f"dpkg-deb -b {package} {tmp_path}/tool.deb\n{dpkg} -i {tmp_path}/tool.deb\n[ -e {data}/tool/lib/tool.so ]\n"
    )
    done = in_namespace(f"{script}{take}\ntake purge tool", PATH=f"{bin_}:/usr/sbin:/usr/bin:/sbin:/bin")
    assert done.returncode == 0, done.stderr
    assert local.readlink() == data
    assert list(data.iterdir()) == [], "and no link of the package's own comes back"


def test_dependencies_go_after_an_interrupted_purge() -> None:
    """apt takes what needs another first: nothing that is left says why the rest came, but what was written down."""
    change = plan(DebsGone(("cuda",)), World((*BARE, CUDA, LIBCUDA), BARE))
    assert change is not None
    script = change.steps[0].script
    assert script.index("'cuda libcuda'") < script.index("take purge")
    assert goes(DebsGone(("cuda",)), World((*BARE, LIBCUDA), BARE, brought=("cuda libcuda",))) == ["libcuda"]


def test_header_dependencies_go_after_an_interrupted_purge() -> None:
    change = plan(KernelsAsBefore(), World(KERNEL, ()))
    assert change is not None
    assert "'kernel kbuild'" in change.steps[-1].script
    assert goes(KernelsAsBefore(), World((KERNEL[2],), (), brought=("kernel kbuild",))) == ["kbuild"]


@pytest.mark.parametrize("updates", [True, False])
def test_a_dpkg_that_was_interrupted_is_mended_before_anything_is_taken(tmp_path: Path, updates: bool) -> None:
    """All rows may be in order then, and only dpkg's journal tells; each step sees to it, whatever role is named."""
    log = apt(tmp_path, "Purg cuda [1]\\n", "installed cuda\\n")
    program(tmp_path / "bin", "dpkg", f'echo "dpkg $*" >> {log}')
    (tmp_path / "updates").mkdir()
    if updates:
        (tmp_path / "updates/0001").touch()
    script = script_of(World((*BARE, CUDA), BARE)).replace("/var/lib/dpkg/updates", str(tmp_path / "updates"))
    assert run(script, path=tmp_path / "bin").returncode == 0
    done = log.read_text().splitlines()
    assert done[-1].endswith("purge cuda")
    assert ("dpkg --configure -a" in done) == updates


def script_of(world: World) -> str:
    change = plan(DebsGone(("cuda",)), world)
    assert change is not None
    return change.steps[0].script


def test_apt_is_told_exactly_what_goes(tmp_path: Path) -> None:
    log = apt(tmp_path, "Purg cuda [1]\\nPurg libcuda:amd64 [1]\\n", "installed cuda\\nconfig-files libcuda\\n")
    assert run(script_of(World((*BARE, CUDA, LIBCUDA), BARE)), path=tmp_path / "bin").returncode == 0
    unhold, purge = log.read_text().splitlines()
    assert unhold == "unhold cuda libcuda"
    assert purge.endswith("purge cuda libcuda")


@pytest.mark.parametrize("more", ["Remv theirs [1]", "Purg theirs [1]", "Inst another (1)"])
def test_apt_that_would_do_more_is_stopped_before_it_does_anything(tmp_path: Path, more: str) -> None:
    log = apt(tmp_path, f"Purg cuda [1]\\n{more}\\n", "installed cuda\\ninstalled libcuda\\n")
    done = run(script_of(World((*BARE, CUDA, LIBCUDA), BARE)), path=tmp_path / "bin")
    assert done.returncode == 1
    said = f"hostwright: error: apt would also remove, which the plan did not show: {more.split()[1]}"
    assert said.encode() in done.stdout
    assert log.read_text() == ""


def test_what_went_in_the_meantime_is_no_failure(tmp_path: Path) -> None:
    log = apt(tmp_path, "", "not-installed cuda\\n")
    assert run(script_of(World((*BARE, CUDA, LIBCUDA), BARE)), path=tmp_path / "bin").returncode == 0
    assert log.read_text() == ""


def test_what_others_still_need_is_written_down_first(tmp_path: Path) -> None:
    apt(tmp_path, "Purg cuda [1]\\n", "installed cuda\\n")
    world = World((*BARE, CUDA, LIBCUDA, Deb("theirs", "libcuda")), BARE)
    assert run(script_of(world), path=tmp_path / "bin", origin=tmp_path / "origin").returncode == 0
    assert (tmp_path / "origin/brought").read_text() == "cuda libcuda\n"


def test_what_went_is_no_longer_written_down(tmp_path: Path) -> None:
    """Whoever installs it later is not us."""
    apt(tmp_path, "Purg cuda [1]\\nPurg libcuda [1]\\n", "installed cuda\\ninstalled libcuda\\n")
    (tmp_path / "origin").mkdir()
    (tmp_path / "origin/brought").write_text("cuda other\ndocker libcuda\ncuda libcuda\n")
    (tmp_path / "origin/installed").write_text("cuda\nmake\n")
    world = World((*BARE, CUDA, LIBCUDA), BARE)
    assert run(script_of(world), path=tmp_path / "bin", origin=tmp_path / "origin").returncode == 0
    assert (tmp_path / "origin/brought").read_text() == "cuda other\n"
    assert (tmp_path / "origin/installed").read_text() == "make\n"


NAMES = st.sampled_from([f"p{number}" for number in range(8)])
DEBS = st.builds(
    Deb,
    name=NAMES,
    needs=st.lists(NAMES, max_size=3).map(", ".join),
    wants=st.lists(NAMES, max_size=2).map(" | ".join),
    provides=st.sampled_from(["", "p1", "p2 (= 1)"]),
    state=st.sampled_from(["ii ", "ii ", "ii ", "hi ", "rc ", "iU "]),
    auto=st.booleans(),
)
HOSTS = st.lists(DEBS, max_size=8, unique_by=lambda deb: deb.name).map(tuple)


@settings(max_examples=300, deadline=None)
@given(now=HOSTS, before=st.none() | HOSTS, names=st.lists(NAMES, max_size=3).map(tuple))
def test_nothing_from_before_and_nothing_that_is_still_needed_ever_goes(
    now: tuple[Deb, ...], before: tuple[Deb, ...] | None, names: tuple[str, ...]
) -> None:
    world = World(now, before)
    gone = set(goes(DebsGone(names), world))
    there = {deb.name for deb in before or () if deb.state != "rc "}
    assert not gone & there
    after = tuple(deb for deb in now if deb.name not in gone)
    for deb in after:
        if deb.state != "rc ":
            for need in filter(None, deb.needs.split(", ")):
                assert _served(need, after) or not _served(need, now)


@settings(max_examples=300, deadline=None)
@given(now=HOSTS, before=st.none() | HOSTS, names=st.lists(NAMES, max_size=3).map(tuple))
def test_when_all_of_that_went_there_is_nothing_left_to_do(
    now: tuple[Deb, ...], before: tuple[Deb, ...] | None, names: tuple[str, ...]
) -> None:
    gone = goes(DebsGone(names), World(now, before))
    after = tuple(replace(deb, state="ii ") for deb in now if deb.name not in gone)
    assert goes(DebsGone(names), World(after, before)) == [] or any(deb.state == "rc " for deb in now)


def _served(need: str, debs: tuple[Deb, ...]) -> bool:
    present = [deb for deb in debs if deb.state != "rc "]
    return any(deb.name == need or deb.provides.split(" ")[0] == need for deb in present)


@settings(max_examples=200, deadline=None)
@given(text=st.text(alphabet="ab\t\n,|: ()"))
def test_any_answer_is_read(text: str) -> None:
    answer = Answer(0, text)
    probes = DebsGone(("a",)).probes()
    DebsGone(("a",)).plan(Facts(dict.fromkeys(probes, answer)))
    KernelsAsBefore().plan(Facts(dict.fromkeys(probes, answer)))


def test_the_question_is_read_without_versions_and_architectures() -> None:
    rows = parse_depends("a\t, libc6 , b | c:any\td\tx , y\na\t, z\t\t\nno row\n")
    assert rows["a"].needs == (("libc6",), ("b", "c"), ("z",))
    assert (rows["a"].wants, rows["a"].provides) == ((("d",),), ("x", "y"))


KERNEL = (Deb("linux-image-5", state="hi "), Deb("linux-headers-5", "kbuild"), Deb("kbuild", auto=True))


def test_kernels_are_held_no_longer_and_headers_that_came_go() -> None:
    before = (Deb("linux-image-5"),)
    change = plan(KernelsAsBefore(), World((*KERNEL, Deb("linux-image-6", state="hi ")), before))
    assert change is not None
    assert change.have == "kbuild 1.0, linux-headers-5 1.0, linux-image-5 held, linux-image-6 held"
    assert change.steps[0].script.startswith(mend_cut_script())
    assert "apt-mark unhold linux-image-5 linux-image-6" in change.steps[0].script
    assert change.steps[1].script.endswith("take purge kbuild linux-headers-5")


def test_headers_and_holds_of_before_stay() -> None:
    assert plan(KernelsAsBefore(), World(KERNEL, KERNEL)) is None
    assert plan(KernelsAsBefore(), World(KERNEL, None)) is None


def test_headers_that_the_hosts_own_kernel_brought_later_stay() -> None:
    old = (Deb("linux-headers-generic", "linux-headers-5"), Deb("linux-headers-5", auto=True))
    new = (Deb("linux-headers-generic", "linux-headers-6"), Deb("linux-headers-6", auto=True))
    assert plan(KernelsAsBefore(), World(new, old)) is None


def test_every_resource_of_packages_says_how_it_goes() -> None:
    assert Debs(("gcc=4", "make")).removal() == (DebsGone(("gcc", "make"), common=True),)
    assert Debs(("cuda=11",), hold=True).removal() == (DebsGone(("cuda",)),)
    assert DebsAbsent(("x",), "", ("xy",)).removal() == (DebsBack(("x",), ("xy",)),)
    assert DpkgInOrder().removal() == (DpkgInOrder(),)
    assert KernelPackages().removal() == (KernelsAsBefore(),)
    assert VenvPackage(("3.8",)).removal() == (DebsGone(("python3-venv", "python3.8-venv"), common=True),)
    assert RepoDropped("cuda-repo", Differs(())).removal() == (DebsGone(("cuda-repo",)),)
