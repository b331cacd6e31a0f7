"""Tests of distribution packages from the mirror: which hosts use them, what is pinned, and how plans show them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from hostwright.common.errors import ArtifactError, InputError
from hostwright.fleet import Fleet
from hostwright.plan.host.hostfacts import OS_RELEASE, PYTHONS, UNAME
from hostwright.plan.model import Answer, Change, Facts, Refusal
from hostwright.plan.stacks import packages as stack_packages
from hostwright.plan.stacks.distribution import distribution_of, packages_of, with_mirror
from hostwright.plan.stacks.files import hosts_having, mirror
from hostwright.plan.stacks.packages import FoundPackages, PackageSearch, find_packages, system, wanted_packages
from hostwright.plan.state_identity import identity_of
from hostwright.resources.conditions import Answers, When
from hostwright.resources.packages.packages import Debs
from hostwright.resources.python.interpreters import VenvPackage
from hostwright.resources.system.kernel import KernelPackages
from hostwright.stack.store.aptroot import AptArchive, Distribution
from hostwright.stack.store.debs import (
    LockedDeb,
    LockedPackages,
    PackageMirror,
    packages_lock,
    read_locked,
    write_locked,
)
from hostwright.stack.store.sources import SUMS, Exported
from hostwright.standard.roles.container.engine import DockerEngine
from tests.unit.stack.test_artifacts import Quiet
from tests.unit.support.facts import changes_of

BOOKWORM = 'ID=debian\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\n'
KERNEL = "6.1.0-28-amd64"
HEADERS = f"linux-headers-{KERNEL}"
MIRRORED = {"base_packages_from": "mirror"}


def row(name: str, *needs: str, version: str = "1") -> LockedDeb:
    file = f"{name}_{version}_amd64.deb"
    return LockedDeb(
        name, version, f"https://archive.example/pool/{file}", f"{len(name):x}".rjust(64, "0"), 1000, needs
    )


def locked(*rows: LockedDeb, wanted: Sequence[Sequence[str]] = ()) -> LockedPackages:
    return LockedPackages(tuple(map(tuple, wanted)), rows)


LOCKED = locked(row("gcc", "libc"), row("libc"), row("make", "libc"), row(HEADERS, "kbuild"), row("kbuild", "libc"))
MIRROR = PackageMirror({"debian-12": LOCKED})
HOST = {"os-release": BOOKWORM, "uname -rm": f"{KERNEL} x86_64\n"}


def planned(state: Any, answers: Mapping[str, str] | None = None) -> Any:
    (change,) = changes_of(state, {**HOST, **(answers or {})})
    return change


# --- plans


def test_a_plan_names_the_files_and_says_where_they_come_from() -> None:
    change = planned(Debs(("gcc", "make"), mirror=MIRROR))
    assert change.want == "gcc, make, from 3 packages of the mirror, without the host's sources"
    assert change.artifacts == ("debian-12-gcc-1", "debian-12-libc-1", "debian-12-make-1")
    assert all("/gcc_1_amd64.deb" in step.script for step in change.steps)


def test_what_the_host_has_at_the_same_version_is_not_sent() -> None:
    change = planned(Debs(("gcc",), mirror=MIRROR), {"dpkg-query": "libc\t1\tii \n"})
    assert change.artifacts == ("debian-12-gcc-1",)
    older = planned(Debs(("gcc",), mirror=MIRROR), {"dpkg-query": "libc\t0.9\tii \n"})
    assert older.artifacts == ("debian-12-gcc-1", "debian-12-libc-1")  # apt may have to change its version


def test_packages_that_the_mirror_does_not_have_are_refused_with_the_fix() -> None:
    refusal = planned(Debs(("gcc", "gawk"), mirror=MIRROR))
    assert isinstance(refusal, Refusal) and refusal.rule == "package-mirror"
    assert "the mirror has no gawk for debian-12, and this host installs" in refusal.sentence
    other = planned(Debs(("gcc",), mirror=MIRROR), {"os-release": "ID=debian\nVERSION_ID=11\n"})
    assert isinstance(other, Refusal) and "the mirror has no gcc for debian-11" in other.sentence
    arm = planned(Debs(("gcc",), mirror=MIRROR), {"uname -rm": f"{KERNEL} aarch64\n"})
    assert isinstance(arm, Refusal)


def test_a_version_is_served_by_exactly_that_one() -> None:
    assert isinstance(planned(Debs(("gcc=1",), mirror=MIRROR)), Change)
    assert isinstance(planned(Debs(("gcc=2",), mirror=MIRROR)), Refusal)


def test_a_host_that_is_as_desired_is_not_asked_for_any_file() -> None:
    have = {**HOST, "dpkg-query": "gawk\t1\tii \n"}
    assert changes_of(Debs(("gawk",), mirror=MIRROR), have) == ()


def test_the_headers_of_the_running_kernel_come_from_the_mirror() -> None:
    change = planned(KernelPackages(mirror=MIRROR))
    assert change.artifacts == ("debian-12-kbuild-1", "debian-12-libc-1", f"debian-12-{HEADERS}-1")
    assert "from 3 packages of the mirror" in change.want
    refusal = planned(KernelPackages(mirror=MIRROR), {"uname -rm": "6.1.0-9-amd64 x86_64\n"})
    assert isinstance(refusal, Refusal) and "the mirror has no linux-headers-6.1.0-9-amd64" in refusal.sentence


def test_headers_whose_files_are_gone_are_unpacked_again_from_the_mirror() -> None:
    change = planned(
        KernelPackages(mirror=MIRROR), {"dpkg-query": f"{HEADERS}\t1\tii \nlibc\t1\tii \nkbuild\t1\tii \n"}
    )
    assert f"debian-12-{HEADERS}-1" in change.artifacts
    assert f"{HEADERS}=1" in change.steps[0].script and "--reinstall" in change.steps[0].script


def test_a_change_without_a_mirror_is_as_before() -> None:
    change = planned(Debs(("gcc",)))
    assert change.artifacts == () and change.want == "gcc"
    assert "mirrored=''" in change.steps[0].script


def test_where_packages_come_from_is_no_part_of_a_state() -> None:
    for state in (Debs(("gcc",)), VenvPackage(("3.11",)), KernelPackages(), DockerEngine(("docker.io",))):
        assert identity_of(state.from_mirror(MIRROR)) == identity_of(state)


def test_packages_of_their_own_source_take_what_they_need_of_the_distribution() -> None:
    mirror = PackageMirror({"debian-12": replace(LOCKED, others={"toolkit": ("gcc",)})})
    change = planned(Debs(("toolkit=1",), source="/etc/apt/sources.list.d/tool.list", mirror=mirror))
    assert change.artifacts == ("debian-12-gcc-1", "debian-12-libc-1")
    assert change.want == "toolkit=1, with 2 packages of the mirror, without the host's other sources"
    unknown = planned(Debs(("other=1",), source="/etc/apt/sources.list.d/tool.list", mirror=mirror))
    assert isinstance(unknown, Change) and unknown.artifacts == ()  # same as without a mirror


def test_what_a_repository_on_the_hosts_disk_needs_is_looked_for_with_its_file(tmp_path: Path, archive: Asked) -> None:
    roster = fleet(tmp_path, {"gpu01": {}}, hostwright_roles=["base", "cuda"])
    stack = roster.stack("house")
    wanted = wanted_packages(roster, stack, hosts_having(roster, stack), {"gpu01": seen()}.get, ())
    ((words, want),) = next(iter(wanted.values())).items()
    assert "cuda-toolkit-11-2=11.2.2-1" in words and "gcc" in words
    assert [artifact.name for artifact in want.disks] == ["cuda-repository"]


def test_the_components_that_a_driver_from_packages_needs_are_looked_for(tmp_path: Path, archive: Asked) -> None:
    roster = fleet(tmp_path, {"gpu01": {"stack": "debian-13-r550"}}, hostwright_roles=["base", "driver"])
    stack = roster.stack("debian-13-r550")
    trixie = Facts({OS_RELEASE: Answer(0, 'ID=debian\nVERSION_ID="13"\nVERSION_CODENAME=trixie\n')})
    wanted = wanted_packages(roster, stack, hosts_having(roster, stack), {"gpu01": trixie}.get, ())
    ((words, want),) = next(iter(wanted.values())).items()
    assert "libcuda1=550.163.01-2" in words
    assert want.components == ("contrib", "non-free", "non-free-firmware")


# --- states inside of others


def test_states_inside_of_others_take_them_from_the_mirror_too() -> None:
    from hostwright.plan.model import Probe

    inner, plain = Debs(("gcc",)), Debs(("tool",), source="/etc/apt/sources.list.d/tool.list")
    condition = Answers(Probe("true"))
    when, other = with_mirror((When(condition, When(condition, inner)), plain), MIRROR)
    assert isinstance(when, When) and isinstance(when.resource, When)
    assert when.resource.resource == Debs(("gcc",), mirror=MIRROR)
    assert other == Debs(
        ("tool",), source=plain.source, mirror=MIRROR
    )  # its own source has the package, but not its dependencies
    assert packages_of((when, other), None) == ("gcc",)


def test_a_release_is_named_by_words_that_may_stand_in_paths() -> None:
    def of(text: str) -> str:
        return distribution_of(Facts({OS_RELEASE: Answer(0, text)}))

    assert of(BOOKWORM) == "debian-12"
    assert of("ID=ubuntu\nVERSION_ID=22.04\n") == "ubuntu-22.04"
    for text in (
        "ID=../x\nVERSION_ID=12\n",
        "ID=debian\nVERSION_ID=12/..\n",
        "ID=debian\n",
        "",
        f"ID={'a' * 99}\nVERSION_ID=1\n",
    ):
        assert of(text) == ""


# --- what mirror brings


def fleet(folder: Path, hosts: dict[str, dict[str, object]], **variables: object) -> Fleet:
    (folder / "stacks").mkdir(parents=True, exist_ok=True)
    own = {"extends": "tensorflow-2.9", "roles": ["base"]}
    (folder / "stacks/house.yml").write_text(yaml.safe_dump(own))
    given = {"hostwright_roles": ["base"], "stack": "house", "base_packages": ["gcc"], **MIRRORED, **variables}
    (folder / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts, "vars": given}}))
    return Fleet.load(folder)


class Asked:
    """A stand-in for apt: an archive with these packages, which records all requests."""

    def __init__(self, *rows: LockedDeb):
        self.rows = rows
        self.asked: list[tuple[str, tuple[tuple[str, ...], ...], LockedPackages]] = []

    def __call__(
        self,
        distribution: Distribution,
        wanted: Any,
        _archive: AptArchive,
        _folder: Path,
        before: LockedPackages,
        *,
        repositories: Sequence[Path],
    ) -> LockedPackages:
        self.repositories = tuple(repositories)
        self.asked.append((f"{distribution} {distribution.codename}", tuple(map(tuple, wanted)), before))
        return locked(*self.rows, wanted=wanted)


@pytest.fixture
def archive(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Asked:
    monkeypatch.setenv("HOSTWRIGHT_ARTIFACTS", str(tmp_path / "store"))
    asked = Asked(*LOCKED.packages)
    monkeypatch.setattr(stack_packages, "resolve", asked)
    return asked


def find(roster: Fleet, seen: Mapping[str, Facts], source: Exported | None = None, **search: Any) -> FoundPackages:
    stack = roster.stack("house")
    hosts = hosts_having(roster, stack)
    chosen = PackageSearch(**search)
    return find_packages(roster, stack, wanted_packages(roster, stack, hosts, seen.get, chosen.systems), chosen, source)


def seen(kernel: str = KERNEL, release: str = BOOKWORM) -> Facts:
    return Facts({OS_RELEASE: Answer(0, release), UNAME: Answer(0, f"{kernel} x86_64\n")})


def test_hosts_get_the_packages_of_their_distribution_and_kernel(tmp_path: Path, archive: Asked) -> None:
    roster = fleet(tmp_path, {"gpu01": {}, "gpu02": {}, "gpu03": {"base_packages_from": "sources"}})
    found = find(roster, {"gpu01": seen(), "gpu02": seen()})
    assert archive.asked == [("debian-12 bookworm", (("gcc", HEADERS),), LockedPackages())]
    assert [file.package for file in found.files] == ["gcc", "kbuild", "libc", HEADERS]
    assert found.lacking == ()
    assert found.files[0].sha256 and found.files[0].urls == ("https://archive.example/pool/gcc_1_amd64.deb",)


def test_what_was_found_is_pinned_and_the_archive_is_not_asked_again(tmp_path: Path, archive: Asked) -> None:
    roster = fleet(tmp_path, {"gpu01": {}})
    first = find(roster, {"gpu01": seen()})
    lock = tmp_path / "stacks/house.lock.packages.json"
    assert read_locked(lock)["debian-12"].packages == LOCKED.packages
    assert first.pinned >= {file.name for file in first.files}
    assert find(fleet(tmp_path, {"gpu01": {}}), {"gpu01": seen()}) == replace(first, pinned=frozenset())
    assert len(archive.asked) == 1
    find(fleet(tmp_path, {"gpu01": {}}), {"gpu01": seen()}, renew=True)
    assert [before for *_, before in archive.asked] == [LockedPackages(), LockedPackages()]


def test_a_further_wish_is_looked_for_together_with_the_pinned_ones(tmp_path: Path, archive: Asked) -> None:
    find(fleet(tmp_path, {"gpu01": {}}), {"gpu01": seen()})
    find(fleet(tmp_path, {"gpu01": {}}, base_packages=["make", "gawk"]), {"gpu01": seen()})
    _, wanted, before = archive.asked[1]
    assert wanted == (("gcc", HEADERS), ("make", "gawk", HEADERS))
    assert before.packages == LOCKED.packages


def test_a_package_that_the_archive_does_not_have_is_named_with_its_hosts(tmp_path: Path, archive: Asked) -> None:
    roster = fleet(tmp_path, {"gpu01": {}, "gpu02": {}})
    found = find(roster, {"gpu01": seen("6.1.0-9-amd64"), "gpu02": seen()})
    (sentence,) = found.lacking
    assert sentence.startswith(
        "the archive of debian-12 no longer has linux-headers-6.1.0-9-amd64 for the running kernel of gpu01"
    )
    assert HEADERS in {file.package for file in found.files}


def test_a_host_that_no_audit_saw_is_named_before_anything_comes(tmp_path: Path, archive: Asked) -> None:
    roster = fleet(tmp_path, {"gpu01": {}, "gpu02": {}})
    with pytest.raises(
        ArtifactError, match=r"gpu02: packages come from the mirror, .*invoke audit --hosts gpu02.*--systems debian-12:"
    ):
        find(roster, {"gpu01": seen()})
    assert archive.asked == []


def test_systems_are_taken_for_those_of_every_host(tmp_path: Path, archive: Asked) -> None:
    roster = fleet(tmp_path, {"gpu01": {}, "gpu02": {}})
    find(roster, {}, systems=(system(f"debian-12:{KERNEL}"), system("debian-11")))
    assert [(name, wanted) for name, wanted, _ in archive.asked] == [
        ("debian-12 bookworm", (("gcc", HEADERS),)),
        ("debian-11 bullseye", (("gcc",),)),
    ]


@pytest.mark.parametrize("text", ["debian", "sles-15", "debian-12:6.1 x", "debian-12:$(id)"])
def test_a_system_that_is_none_is_a_mistake(text: str) -> None:
    with pytest.raises(InputError, match="--systems: found"):
        system(text)


def test_headers_that_are_there_are_not_looked_for(tmp_path: Path, archive: Asked) -> None:
    from hostwright.resources.system.kernel import HEADERS as THERE

    facts = Facts({OS_RELEASE: Answer(0, BOOKWORM), UNAME: Answer(0, f"{KERNEL} x86_64\n"), THERE: Answer(0, "")})
    find(fleet(tmp_path, {"gpu01": {}}), {"gpu01": facts})
    assert archive.asked[0][1] == (("gcc",),)


def test_the_package_for_venvs_is_that_of_the_hosts_python() -> None:
    state = VenvPackage(("3.11", "3.9"))
    assert state.packages_for(Facts({PYTHONS: Answer(0, "/usr/bin/python3.11 3.11\n")})) == ("python3.11-venv",)
    assert state.packages_for(Facts({PYTHONS: Answer(0, "")})) == state.packages_for(None) == ("python3-venv",)


# --- a machine without a network


def exported(folder: Path, rows: LockedPackages) -> Exported:
    folder.mkdir()
    (folder / SUMS).touch()
    write_locked(folder / "pins/house.lock.packages.json", {"debian-12": rows})
    return Exported(folder)


def test_an_export_brings_its_lock_file_and_apt_is_not_asked(tmp_path: Path, archive: Asked) -> None:
    roster = fleet(tmp_path, {"gpu01": {}})
    found = find(roster, {"gpu01": seen()}, exported(tmp_path / "usb", LOCKED))
    assert archive.asked == []
    assert [file.package for file in found.files] == ["gcc", "kbuild", "libc", HEADERS]
    assert read_locked(packages_lock(roster.store, "house"))["debian-12"] == LOCKED


def test_an_export_without_a_package_is_named(tmp_path: Path, archive: Asked) -> None:
    found = find(fleet(tmp_path, {"gpu01": {}}), {"gpu01": seen()}, exported(tmp_path / "usb", locked(row("gcc"))))
    (sentence,) = found.lacking
    assert sentence.startswith(
        f"the export has no {HEADERS} for debian-12, which gpu01 needs; run `invoke mirror --exp"
    )
    assert archive.asked == []


def test_all_files_come_before_a_package_that_is_nowhere_ends_it(
    tmp_path: Path, archive: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    brought: list[str] = []
    monkeypatch.setattr(
        "hostwright.plan.stacks.files.mirroring.mirror",
        lambda files, *_, **__: brought.extend(file.name for file in files) or [],
    )
    roster = fleet(tmp_path, {"gpu01": {}})
    facts = {"gpu01": seen("6.1.0-9-amd64")}
    with pytest.raises(ArtifactError, match=r"no longer has linux-headers-6\.1\.0-9-amd64"):
        mirror(roster, "", None, tmp_path / "usb", seen=facts.get, progress=Quiet())
    assert brought == ["debian-12-gcc-1", "debian-12-libc-1"]
    assert (tmp_path / "usb/pins/house.lock.packages.json").is_file()


def test_an_import_needs_no_apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTWRIGHT_ARTIFACTS", str(tmp_path / "store"))
    monkeypatch.setattr(shutil, "which", lambda _: None)
    found = find(fleet(tmp_path, {"gpu01": {}}), {"gpu01": seen()}, exported(tmp_path / "usb", LOCKED))
    assert len(found.files) == 4 and found.lacking == ()


def test_a_file_of_the_stack_that_cannot_come_does_not_keep_packages_away(
    tmp_path: Path, archive: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    brought: list[str] = []

    def bring(files: Sequence[Any], *_: Any, **__: Any) -> list[Any]:
        brought.extend(file.name for file in files)
        if any(file.name == "driver" for file in files):
            raise ArtifactError("driver: nobody may hand it out")
        return []

    monkeypatch.setattr("hostwright.plan.stacks.files.mirroring.mirror", bring)
    roster = fleet(tmp_path, {"gpu01": {}}, hostwright_roles=["base", "driver"])
    with pytest.raises(ArtifactError, match=r"^driver: nobody may hand it out$"):
        mirror(roster, "", None, None, seen={"gpu01": seen()}.get, progress=Quiet())
    assert brought[0] == "driver" and "debian-12-gcc-1" in brought


def test_a_repository_that_is_not_here_is_named(tmp_path: Path, archive: Asked) -> None:
    roster = fleet(tmp_path, {"gpu01": {}}, hostwright_roles=["base", "cuda"])
    with pytest.raises(ArtifactError, match=r"^cuda-repository: .* run `invoke mirror`"):
        find(roster, {"gpu01": seen()})


# --- a target


def test_a_host_takes_the_files_and_its_stack_is_the_same(tmp_path: Path, archive: Asked) -> None:
    write_locked(tmp_path / "a/stacks/house.lock.packages.json", {"debian-12": LOCKED})
    mirrored = fleet(tmp_path / "a", {"gpu01": {}}).targets("gpu01")[0]
    other = fleet(tmp_path / "b", {"gpu01": {}}, base_packages_from="sources").targets("gpu01")[0]
    assert "debian-12-gcc-1" in mirrored.desired.stack.artifacts
    assert mirrored.desired.stack.digest() == other.desired.stack.digest()
    assert mirrored.desired.stack.model_dump() == other.desired.stack.model_dump()
    files = {file.name for file in mirrored.files_for(seen())}
    assert {"debian-12-gcc-1", "debian-12-libc-1", f"debian-12-{HEADERS}-1"} <= files
    assert other.packages is None and mirrored.files_for(None) == mirrored.artifacts


def test_a_damaged_lock_file_is_a_mistake_with_its_place(tmp_path: Path, archive: Asked) -> None:
    roster = fleet(tmp_path, {"gpu01": {}})
    lock = tmp_path / "stacks/house.lock.packages.json"
    lock.write_text('{"debian-12": {"packages": [{"package": "a"}]}}')
    with pytest.raises(InputError, match=r"house\.lock\.packages\.json"):
        roster.targets("gpu01")
