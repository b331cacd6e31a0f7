"""Packages of a distribution's archive for hosts, with this machine's real apt and generated archives."""

from __future__ import annotations

import gzip
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from hostwright.common.errors import ArtifactError
from hostwright.stack.store.aptarchive import resolve
from hostwright.stack.store.aptroot import AptArchive, Distribution
from hostwright.stack.store.debs import LockedDeb, LockedPackages, PackageMirror, read_locked, write_locked
from tests.unit.support.aptroot import AptRoot, Key, Server, deb, in_days, repository, served

LAB = Distribution("lab", "1", "stable")


class Site:
    """A signed and served archive that this machine's apt reads, and the settings of the search."""

    def __init__(self, folder: Path, key: Key, server: Server):
        self.folder = folder
        self.key = key
        self.server = server
        self.published = 0
        self.apt = AptRoot(folder)
        self.apt.source(f"deb {server.url}/archive stable main\n")

    def publish(self, *packages: Path, suite: str = "stable", where: str = "archive", **release: Any) -> Path:
        """Publish packages, each time with a later date: apt ignores a list that is as old as its own."""
        self.published += 1
        dated = {"Date": in_days(-10 + self.published), **release}
        return repository(self.folder / "served" / where, *packages, suite=suite, signer=self.key, **dated)

    def find(
        self,
        *words: str,
        before: LockedPackages | None = None,
        sets: Sequence[Sequence[str]] = (),
        archive: AptArchive | None = None,
        distribution: Distribution = LAB,
        repositories: Sequence[Path] = (),
    ) -> LockedPackages:
        chosen = archive or AptArchive(keyring=self.key.ring)
        place, known = self.folder / "store/apt/lab-1", before or LockedPackages()
        return resolve(distribution, sets or (words,), chosen, place, known, repositories=repositories)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    key = Key(tmp_path / "key")
    with served(tmp_path / "served") as server:
        made = Site(tmp_path, key, server)
        monkeypatch.setenv("APT_CONFIG", str(made.apt.config))
        yield made
    key.close()


def names(found: LockedPackages) -> list[str]:
    return [locked.package for locked in found.packages]


def only(found: LockedPackages, name: str) -> LockedDeb:
    return next(locked for locked in found.packages if locked.package == name)


def test_a_package_comes_with_all_that_it_needs_for_a_host_that_has_nothing(site: Site, tmp_path: Path) -> None:
    site.apt.status()  # packages of this machine do not count
    site.publish(
        deb(tmp_path, "tool", Depends="lib (>= 1), missing | other", Recommends="extra"),
        *(deb(tmp_path, name) for name in ("lib", "other", "extra", "stranger")),
    )
    found = site.find("tool")
    assert names(found) == ["lib", "other", "tool"]
    assert only(found, "tool").needs == ("lib", "other")
    assert only(found, "lib").url == f"{site.server.url}/archive/pool/lib_1_amd64.deb"
    assert found.wanted == (("tool",),)


def test_what_is_provided_with_a_version_is_brought_by_its_provider(site: Site, tmp_path: Path) -> None:
    depends = "api-min (<= 9729), api-max (>= 9729)"
    provides = "api-9729, api-max (= 10239), api-min (= 9729)"
    site.publish(deb(tmp_path, "tool", Depends=depends), deb(tmp_path, "backend", Provides=provides))
    found = site.find("tool")
    assert names(found) == ["backend", "tool"]
    assert only(found, "tool").needs == ("backend",)


def test_components_that_roles_need_are_read_beside_those_of_the_sources(site: Site, tmp_path: Path) -> None:
    """This machine needs no driver, and its sources have ``main`` only."""
    site.publish(deb(tmp_path, "lib"), others={"non-free": [deb(tmp_path, "driver", Depends="lib")]})
    assert names(site.find("driver")) == []
    archive = AptArchive(keyring=site.key.ring, components=("non-free",))
    assert names(site.find("driver", archive=archive)) == ["driver", "lib"]


def test_a_version_with_an_epoch_and_a_name_with_signs_are_taken_as_the_archive_has_them(
    site: Site, tmp_path: Path
) -> None:
    made = deb(tmp_path, "lib++", "2:1.0~rc1+b2").rename(tmp_path / "lib++_1.0~rc1+b2_amd64.deb")
    site.publish(made)
    (found,) = site.find("lib++").packages
    assert found.version == "2:1.0~rc1+b2"
    file = found.as_file("lab-1")
    assert (file.file, file.name) == ("lib++_1.0~rc1+b2_amd64.deb", "lab-1-lib++-2-1.0-rc1+b2")


def test_a_package_that_the_archive_has_no_more_is_left_out_and_the_others_come(site: Site, tmp_path: Path) -> None:
    site.publish(deb(tmp_path, "tool"))
    found = site.find("tool", "linux-headers-4.9.0-6-amd64", "tool=7")
    assert names(found) == ["tool"]
    assert found.lacking(found.wanted[0]) == ("linux-headers-4.9.0-6-amd64", "tool=7")


def test_a_name_that_several_packages_provide_is_no_package(site: Site, tmp_path: Path) -> None:
    site.publish(deb(tmp_path, "one", Provides="agent"), deb(tmp_path, "two", Provides="agent"))
    assert names(site.find("agent")) == []


def test_what_is_pinned_stays_as_long_as_the_archive_has_it(site: Site, tmp_path: Path) -> None:
    old, new = deb(tmp_path, "tool"), deb(tmp_path, "tool", "2", Depends="lib")
    site.publish(old)
    first = site.find("tool")
    site.publish(old, new, lib := deb(tmp_path, "lib"))
    assert site.find("tool", before=first) == first
    renewed = site.find("tool")
    assert [(locked.package, locked.version) for locked in renewed.packages] == [("lib", "1"), ("tool", "2")]
    site.publish(new, lib)
    assert site.find("tool", before=first).packages == renewed.packages


def test_what_is_gone_from_the_archive_stays_pinned_with_what_it_needs(site: Site, tmp_path: Path) -> None:
    headers, parts = deb(tmp_path, "headers-1", Depends="parts-1"), deb(tmp_path, "parts-1")
    site.publish(headers, parts, tool := deb(tmp_path, "tool"))
    first = site.find("headers-1", "tool")
    site.publish(tool, deb(tmp_path, "headers-2"))
    found = site.find(before=first, sets=[("headers-1", "tool"), ("headers-2", "tool")])
    assert names(found) == ["headers-1", "headers-2", "parts-1", "tool"]


def test_another_file_of_a_pinned_version_is_refused(site: Site, tmp_path: Path) -> None:
    site.publish(deb(tmp_path, "tool"))
    first = site.find("tool")
    site.publish(deb(tmp_path / "again", "tool", Section="misc"))
    with pytest.raises(ArtifactError, match=r"the archive of lab-1 has replaced the file of tool 1.*--renew"):
        site.find("tool", before=first)


def test_packages_that_exclude_each_other_are_named(site: Site, tmp_path: Path) -> None:
    site.publish(deb(tmp_path, "one", Conflicts="two"), deb(tmp_path, "two"))
    with pytest.raises(ArtifactError, match=r"cannot install these packages together on lab-1: one two: .*Conflicts"):
        site.find("one", "two")
    assert names(site.find(sets=[("one",), ("two",)])) == ["one", "two"]  # for two hosts


# --- origin of an archive


def test_an_archive_that_somebody_else_has_signed_gives_nothing(site: Site, tmp_path: Path) -> None:
    other = Key(tmp_path / "other")
    repository(tmp_path / "served/archive", deb(tmp_path, "tool"), signer=other)
    other.close()
    with pytest.raises(ArtifactError, match=r"package lists of lab-1 could not be fetched .*NO_PUBKEY"):
        site.find("tool")


def test_an_archive_without_a_signature_gives_nothing(site: Site, tmp_path: Path) -> None:
    repository(tmp_path / "served/archive", deb(tmp_path, "tool"))
    with pytest.raises(ArtifactError, match=r"could not be fetched .*not signed"):
        site.find("tool")


def test_an_archive_that_cannot_be_reached_is_named(site: Site, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"could not be fetched .*/archive stable.*--sources FILE"):
        site.find("tool")


def test_a_machine_without_the_keys_of_the_distribution_is_told_which(site: Site, tmp_path: Path) -> None:
    site.publish(deb(tmp_path, "tool"))
    with pytest.raises(
        ArtifactError, match=r"/usr/share/keyrings/lab-archive-keyring.gpg for .* does not exist; install lab-archive-k"
    ):
        site.find("tool", archive=AptArchive())


def test_sources_of_another_distribution_are_no_archive_of_it(site: Site, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"apt on this machine has no archive of lab-2 \(other\).*--sources FILE"):
        site.find("tool", distribution=Distribution("lab", "2", "other"))


def test_a_file_with_sources_goes_before_those_of_this_machine(site: Site, tmp_path: Path) -> None:
    site.publish(deb(tmp_path, "tool"), where="ours")
    sources = tmp_path / "lab.sources"
    sources.write_text(f"Types: deb\nURIs: {site.server.url}/ours\nSuites: stable\nComponents: main\nTrusted: yes\n")
    found = site.find("tool", archive=AptArchive(sources, site.key.ring))
    assert only(found, "tool").url == f"{site.server.url}/ours/pool/tool_1_amd64.deb"
    assert [path for path in site.server.asked if "/archive/" in path] == []


def test_a_machine_without_apt_says_what_to_do(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(
        ArtifactError, match=r"this machine has no apt to resolve.*Debian or Ubuntu machine.*--from DIR"
    ):
        site.find("tool")


def test_an_archive_whose_lists_have_expired_gives_nothing(site: Site, tmp_path: Path) -> None:
    site.publish(deb(tmp_path, "tool"), Valid_Until=in_days(-2))
    with pytest.raises(ArtifactError, match=r"lists of lab-1 could not be fetched .*expired"):
        site.find("tool")


def test_a_version_that_some_machines_get_first_is_everybodys(site: Site, tmp_path: Path) -> None:
    phased = {"Phased_Update_Percentage": "0"}
    site.publish(deb(tmp_path, "tool"), deb(tmp_path, "tool", "2", **phased))
    assert only(site.find("tool"), "tool").version == "2"


def test_security_updates_win_at_first_and_what_is_pinned_stays(site: Site, tmp_path: Path) -> None:
    site.apt.source(f"deb {site.server.url}/security stable-security main\n", "security.list")
    site.publish(deb(tmp_path, "tool"))
    site.publish(suite="stable-security", where="security")
    first = site.find("tool")
    site.publish(deb(tmp_path, "tool", "1.1"), suite="stable-security", where="security")
    assert site.find("tool", before=first) == first
    newest = only(site.find("tool"), "tool")
    assert (newest.version, newest.url) == ("1.1", f"{site.server.url}/security/pool/tool_1.1_amd64.deb")


def test_keys_that_are_named_and_not_there_are_said(site: Site, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"nowhere\.gpg for the packages of lab-1 does not exist"):
        site.find("tool", archive=AptArchive(keyring=tmp_path / "nowhere.gpg"))


def test_a_strangers_source_for_the_same_release_is_not_asked(site: Site, tmp_path: Path) -> None:
    site.publish(deb(tmp_path, "tool"))
    key = Key(tmp_path / "theirs")
    repository(tmp_path / "served/theirs", deb(tmp_path, "tool", "9"), signer=key, Origin="Stranger")
    site.apt.source(f"deb [signed-by={key.ring}] {site.server.url}/theirs stable main\n", "theirs.list")
    key.close()
    subprocess.run(["apt-get", "update"], check=False, capture_output=True)  # this machine's lists have the origin
    assert only(site.find("tool"), "tool").version == "1"


def test_of_alternatives_one_is_brought_and_what_comes_before_counts(site: Site, tmp_path: Path) -> None:
    site.publish(
        *(deb(tmp_path, name) for name in ("one", "two", "first")),
        deb(tmp_path, "tool", Depends="one | two", Pre_Depends="first"),
    )
    found = site.find("tool")
    assert names(found) == ["first", "one", "tool"]
    assert only(found, "tool").needs == ("first", "one")


# --- repositories on hosts' own disks


def on_disk(folder: Path, *packages: Path, listed: str = "Packages") -> Path:
    """A package file with a repository, as in the store: the list of these packages, without the packages."""
    made = repository(folder / "their-archive", *packages)
    text = (made / "dists/stable/main/binary-amd64/Packages").read_bytes()
    tree = folder / "tree-their-repo"
    (tree / "var/their-repo").mkdir(parents=True)
    (tree / "DEBIAN").mkdir()
    (tree / "DEBIAN/control").write_text(
        "Package: their-repo\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b.example>\nDescription: d\n"
    )
    (tree / "var/their-repo" / listed).write_bytes(gzip.compress(text) if listed.endswith(".gz") else text)
    path = folder / "store/00" / ("0" * 64) / "their-repo_1_all.deb"
    path.parent.mkdir(parents=True)
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", tree, path], check=True, capture_output=True)
    return path


@pytest.mark.parametrize("listed", ["Packages", "Packages.gz"])
def test_what_packages_of_a_hosts_own_repository_need_comes_from_the_archive(
    site: Site, tmp_path: Path, listed: str
) -> None:
    toolkit, viewer = deb(tmp_path, "toolkit", Depends="viewer, lib"), deb(tmp_path, "viewer", Depends="java (>= 1)")
    site.publish(deb(tmp_path, "lib"), deb(tmp_path, "jre", Provides="java (= 11)"), deb(tmp_path, "gcc"))
    disk = on_disk(tmp_path, toolkit, viewer, listed=listed)
    found = site.find("gcc", "toolkit=1", repositories=[disk])
    assert names(found) == ["gcc", "jre", "lib"]
    assert found.others == {"toolkit": ("jre", "lib"), "viewer": ("jre",)}
    assert found.lacking(["toolkit=1", "gcc"]) == ()
    path = tmp_path / "house.lock.packages.json"
    write_locked(path, {"lab-1": found})
    assert read_locked(path) == {"lab-1": found}
    mirror = PackageMirror(read_locked(path))
    assert mirror.needed_by_others("lab-1", ["toolkit", "gcc"]) == ("jre", "lib")


def test_a_package_file_that_holds_no_repository_is_named(site: Site, tmp_path: Path) -> None:
    site.publish(deb(tmp_path, "tool"))
    with pytest.raises(ArtifactError, match=r"other_1_amd64\.deb contains no package list"):
        site.find("tool", repositories=[deb(tmp_path, "other")])
