"""The loader's cache and the system's alternatives."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from hostwright.plan.model import Answer, Change, Facts, Resource
from hostwright.resources.system import loader
from hostwright.resources.system.loader import Alternative, FormerName, LoaderCache
from tests.unit.support.facts import changes_of
from tests.unit.support.shell import ask, program, run

HOME = "/usr/local/cuda-11.2"
CACHE = LoaderCache(("libcudart.so.11.0", "libcudnn.so.8"), HOME, "/etc/ld.so.conf.d/cuda-11-2.conf")
RIGHT = f"libcudart.so.11.0 {HOME}/lib/libcudart.so.11.0\nlibcudnn.so.8 {HOME}/lib/libcudnn.so.8\n"


def test_a_cache_that_leads_home_plans_nothing() -> None:
    assert changes_of(CACHE, {"ldconfig": RIGHT}) == ()


@pytest.mark.parametrize(
    ("answer", "have"),
    [
        (RIGHT.partition("\n")[0], "libcudnn.so.8 absent"),
        (RIGHT.replace(f"{HOME}/lib/libcudnn", "/usr/lib/libcudnn"), "libcudnn.so.8 /usr/lib/libcudnn.so.8"),
        (RIGHT.replace(f"{HOME}/lib/libcudnn", f"{HOME}.1/lib/libcudnn"), f"libcudnn.so.8 {HOME}.1/lib/libcudnn.so.8"),
    ],
)
def test_a_library_that_is_missing_or_found_elsewhere_first_is_named(answer: str, have: str) -> None:
    (change,) = changes_of(CACHE, {"ldconfig": answer})
    assert change.have == have
    assert change.steps[0].script.startswith("/sbin/ldconfig\n")


@pytest.fixture
def ldconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands in for ``ldconfig``: prints ``cache`` of the folder."""
    fake = program(tmp_path, "ldconfig", f"cat {tmp_path}/cache")
    monkeypatch.setattr(loader, "FOUND", loader.FOUND.replace("/sbin/ldconfig", str(fake)))
    return tmp_path


def listed(*entries: tuple[str, str, str]) -> str:
    lines = [f"\t{name} ({kind}) => {path}" for name, kind, path in entries]
    return "\n".join([f"{len(lines)} libs found in cache `/etc/ld.so.cache'", *lines, ""])


def test_the_first_entry_of_this_architecture_counts_and_directories_are_followed(ldconfig: Path) -> None:
    real = ldconfig / "cuda-11.2/targets"
    real.mkdir(parents=True)
    (ldconfig / "cuda").symlink_to("cuda-11.2")
    (ldconfig / "cache").write_text(
        listed(
            ("libcudart.so.11.0", "libc6", "/lib32/libcudart.so.11.0"),
            ("libcudart.so.11.0", "libc6,x86-64", f"{ldconfig}/cuda/targets/libcudart.so.11.0"),
            ("libcudart.so.11.0", "libc6,x86-64", "/second/libcudart.so.11.0"),
            ("libcudartXso.11.0", "libc6,x86-64", "/wrong/libcudart"),
            ("libcudnn.so.8", "libc6,x86-64, OS ABI: Linux 3.2.0", "/gone/libcudnn.so.8"),
        )
    )
    _, said = ask(CACHE.probes()[0].script)
    assert said.splitlines() == [f"libcudart.so.11.0 {real}/libcudart.so.11.0", "libcudnn.so.8 /gone/libcudnn.so.8"]


def linked(root: Path) -> Path:
    """A ``/usr/local`` that is a link to another place, with two versions of a tool in it; as it is called."""
    for version in ("1.1", "1.2"):
        (root / "data/local" / f"tool-{version}" / "lib").mkdir(parents=True)
    (root / "local").symlink_to(root / "data/local")
    return root / "local"


def test_libraries_below_a_home_that_is_reached_through_a_link_are_below_it(ldconfig: Path) -> None:
    local = linked(ldconfig)
    names = (("libtool.so.1", "tool-1.2"), ("libold.so.1", "tool-1.1"))
    entries = [(name, "libc6,x86-64", f"{local}/{home}/lib/{name}") for name, home in names]
    (ldconfig / "cache").write_text(listed(*entries))
    cache = LoaderCache(("libtool.so.1", "libold.so.1"), f"{local}/tool-1.2", "/etc/ld.so.conf.d/tool.conf")
    (change,) = changes_of(cache, {"ldconfig": ask(cache.probes()[0].script)[1]})
    assert change.have == f"libold.so.1 {ldconfig}/data/local/tool-1.1/lib/libold.so.1"


def test_a_name_below_a_link_leads_to_its_target(tmp_path: Path) -> None:
    local = linked(tmp_path)
    tool = Alternative(f"{local}/tool", "tool", f"{local}/tool-1.2", 12)
    program(tmp_path / "bin", "update-alternatives", '[ "$1" = --set ] || ln -sfn "$4" "$2"')
    (change,) = changes_of(tool, {"readlink -m": Answer(*ask(tool.probes()[0].script))})
    assert change.have == "absent"
    assert run(change.steps[0].script, path=tmp_path / "bin").returncode == 0
    assert changes_of(tool, {"readlink -m": Answer(*ask(tool.probes()[0].script))}) == ()
    (local / "tool").unlink()
    (local / "tool").symlink_to("tool-1.1")
    (change,) = changes_of(tool, {"readlink -m": Answer(*ask(tool.probes()[0].script))})
    assert change.have == f"{tmp_path}/data/local/tool-1.1"


def test_when_another_directory_stays_first_the_step_fails_and_says_which(ldconfig: Path) -> None:
    (ldconfig / "cache").write_text(listed(("libcudnn.so.8", "libc6,x86-64", "/opt/other/libcudnn.so.8")))
    (change,) = changes_of(CACHE)
    done = run(change.steps[0].script.replace("/sbin/ldconfig", ":", 1))
    assert done.returncode == 1
    assert b"the loader finds libcudnn.so.8 at /opt/other/libcudnn.so.8" in done.stdout
    assert b"the loader finds libcudart.so.11.0 at no place" in done.stdout
    assert b"/etc/ld.so.conf.d/cuda-11-2.conf" in done.stdout


ALTERNATIVE = Alternative("/usr/local/cuda", "cuda", HOME, 112)


def plan(answer: Answer) -> Change | None:
    changes = changes_of(ALTERNATIVE, {"readlink": answer})
    return changes[0] if changes else None


@pytest.mark.parametrize(
    ("answer", "have"),
    [
        (Answer(0, "/usr/local/cuda-11.4\n"), "/usr/local/cuda-11.4"),
        (Answer(0, "/usr/local/cuda\n"), "not a link"),
        (Answer(1, "/usr/local/cuda\n"), "absent"),
    ],
)
def test_a_name_that_leads_elsewhere_is_planned(answer: Answer, have: str) -> None:
    change = plan(answer)
    assert change is not None
    assert (change.have, change.want) == (have, HOME)


def test_a_name_that_leads_there_by_whatever_links_plans_nothing() -> None:
    assert plan(Answer(0, f"{HOME}\n")) is None


def test_directory_is_moved_aside_and_a_packages_file_is_not(tmp_path: Path) -> None:
    place, target = tmp_path / "it's cuda", tmp_path / "cuda-11.2"
    place.mkdir()
    target.mkdir()
    (change,) = changes_of(Alternative(str(place), "cuda", str(target), 112), {})
    program(tmp_path / "bin", "update-alternatives", '[ "$1" = --set ] || ln -sfn "$4" "$2"')
    program(tmp_path / "bin", "dpkg-query", "exit 0")
    assert run(change.steps[0].script, path=tmp_path / "bin").returncode == 1
    assert place.is_dir() and not place.is_symlink()
    program(tmp_path / "bin", "dpkg-query", "exit 1")
    assert run(change.steps[0].script, path=tmp_path / "bin").returncode == 0
    assert place.readlink() == target
    assert len(list(tmp_path.glob("*.before-hostwright.*"))) == 1


def test_the_machines_own_cache_can_be_read() -> None:
    listing = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    assert "libc.so.6" in listing
    status, said = ask(LoaderCache(("libc.so.6",), "/", "/etc/ld.so.conf").probes()[0].script)
    assert status == 0
    assert said.startswith("libc.so.6 /")


class Alternatives:
    """A host's alternatives: ``update-alternatives`` of a directory, and what Hostwright keeps."""

    def __init__(self, root: Path):
        self.root, self.link, self.target = root, root / "cuda", root / "cuda-11.2"
        self.target.mkdir()
        self.alternative = Alternative(str(self.link), "cuda", str(self.target), 112)
        self.origin = root / "origin"
        self.origin.mkdir()
        (self.origin / "packages").write_text("bash\t5.1\tii \n")
        for folder in ("alternatives", "admin"):
            (root / folder).mkdir()
        self.tool = f"update-alternatives --altdir {root}/alternatives --admindir {root}/admin --log /dev/null"

    def script(self, text: str) -> str:
        text = text.replace("/var/lib/dpkg/alternatives/", f"{self.root}/admin/")
        text = text.replace("/etc/alternatives/", f"{self.root}/alternatives/")
        return text.replace("update-alternatives", self.tool)

    def plan(self, resource: Resource) -> Change | None:
        answers = {probe: Answer(*ask(self.script(probe.script), origin=self.origin)) for probe in resource.probes()}
        return resource.plan(Facts(answers))

    def apply(self, *resources: Resource) -> None:
        for one in resources:
            change = self.plan(one)
            for step in change.steps if change else ():
                done = run(self.script(step.script), origin=self.origin)
                assert done.returncode == 0, done.stdout + done.stderr
            assert self.plan(one) is None

    def choice(self, target: str, priority: int, *, by_hand: bool = False) -> None:
        (self.root / target).mkdir()
        tool = [*self.tool.split(), "--quiet"]
        place = str(self.root / target)
        subprocess.run([*tool, "--install", str(self.link), "cuda", place, str(priority)], check=True)
        if by_hand:
            subprocess.run([*tool, "--set", "cuda", place], check=True)


@pytest.fixture
def alternatives(tmp_path: Path) -> Alternatives:
    if shutil.which("update-alternatives") is None:
        pytest.skip("this machine has no update-alternatives of dpkg's")
    return Alternatives(tmp_path)


def test_only_alternative_goes_with_its_name(alternatives: Alternatives) -> None:
    alternatives.apply(alternatives.alternative)
    assert alternatives.link.resolve() == alternatives.target
    alternatives.apply(*alternatives.alternative.removal())
    assert not alternatives.link.is_symlink()
    assert list((alternatives.root / "admin").iterdir()) == []


@pytest.mark.parametrize("by_hand", [True, False])
def test_the_choice_of_before_is_made_again(alternatives: Alternatives, by_hand: bool) -> None:
    alternatives.choice("cuda-12", 125)
    alternatives.choice("cuda-10", 102, by_hand=by_hand)
    before = alternatives.link.resolve()
    settings = (alternatives.root / "admin/cuda").read_text()
    alternatives.apply(alternatives.alternative)
    assert alternatives.link.resolve() == alternatives.target
    alternatives.apply(*alternatives.alternative.removal())
    assert alternatives.link.resolve() == before
    assert (alternatives.root / "admin/cuda").read_text() == settings


def test_a_choice_that_was_right_before_stays(alternatives: Alternatives) -> None:
    """Of a toolkit that somebody installed with the vendor's packages, and that stays when the role is removed."""
    tool = [*alternatives.tool.split(), "--quiet"]
    target = str(alternatives.target)
    subprocess.run([*tool, "--install", str(alternatives.link), "cuda", target, "112"], check=True)
    assert alternatives.plan(alternatives.alternative) is None
    (gone,) = alternatives.alternative.removal()
    assert alternatives.plan(gone) is None
    (alternatives.origin / "packages").unlink()  # an earlier version did not write down what was there before
    alternatives.apply(gone)
    assert not alternatives.link.is_symlink()


def test_former_link_returns_even_if_a_package_takes_its_name(alternatives: Alternatives) -> None:
    alternatives.link.symlink_to("/opt/cuda-10.2")
    alternatives.apply(FormerName(alternatives.alternative))
    alternatives.choice("cuda-of-a-package", 1)  # as NVIDIA's packages do when they are configured
    alternatives.apply(alternatives.alternative)
    tool = alternatives.tool.split()
    subprocess.run([*tool, "--remove", "cuda", str(alternatives.root / "cuda-of-a-package")], check=True)
    alternatives.apply(*alternatives.alternative.removal())
    assert alternatives.link.readlink() == Path("/opt/cuda-10.2")


@pytest.mark.parametrize("by_hand", [None, True, False])
def test_former_link_returns_when_two_stacks_alternatives_go(alternatives: Alternatives, by_hand: bool | None) -> None:
    """``by_hand``: how the name's choice of before was made; ``None``: it was a plain link."""
    if by_hand is None:
        alternatives.link.symlink_to("/opt/cuda-10.2")
    else:
        alternatives.choice("cuda-10", 102, by_hand=by_hand)
    before = alternatives.link.resolve()
    newer = alternatives.root / "cuda-11.8"
    newer.mkdir()
    both = (Alternative(str(alternatives.link), "cuda", str(newer), 118), alternatives.alternative)
    alternatives.apply(FormerName(both[1]), both[1], FormerName(both[0]), both[0])
    assert alternatives.link.resolve() == newer
    changes = [alternatives.plan(state) for one in both for state in one.removal()]
    for change in changes:
        assert change is not None
        done = run(alternatives.script(change.steps[0].script), origin=alternatives.origin)
        assert done.returncode == 0, done.stdout + done.stderr
    assert alternatives.link.resolve() == before
    assert not [path for path in alternatives.origin.rglob("*") if path.suffix in {".written", ".kept"}]


def test_a_directory_that_was_moved_aside_comes_back(alternatives: Alternatives) -> None:
    alternatives.link.mkdir()
    (alternatives.link / "mine").touch()
    program(alternatives.root / "bin", "dpkg-query", "exit 1")
    change = alternatives.plan(alternatives.alternative)
    assert change is not None
    done = run(alternatives.script(change.steps[0].script), path=alternatives.root / "bin", origin=alternatives.origin)
    assert done.returncode == 0
    alternatives.apply(*alternatives.alternative.removal())
    assert (alternatives.link / "mine").exists()


def test_a_name_that_leads_elsewhere_now_stays_and_nothing_is_planned(alternatives: Alternatives) -> None:
    alternatives.link.symlink_to("/opt/another")
    assert [alternatives.plan(one) for one in alternatives.alternative.removal()] == [None]


def test_the_former_name_is_kept_once_and_only_where_there_is_one(alternatives: Alternatives) -> None:
    former = FormerName(alternatives.alternative)
    assert alternatives.plan(former) is None
    alternatives.link.symlink_to(alternatives.target)
    assert alternatives.plan(former) is None, "it leads there already"
    assert former.removal() == LoaderCache((), "/", "/etc/x").removal() == ()
