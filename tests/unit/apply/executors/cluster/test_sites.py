"""A site's own parts as one archive, and unpacked on a worker."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import stat
import tarfile
import time
from pathlib import Path

import pytest

from hostwright.apply.executors.cluster import sites
from hostwright.apply.executors.cluster.sites import SiteArchive, holding, pack, unpacked
from hostwright.common.errors import InputError
from hostwright.fleet import Fleet
from hostwright.plan.roles.site import Site
from tests.places import PROJECT
from tests.unit.support.clusters import fleet_of, write_site


def names(archive: SiteArchive) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(archive.body))) as packed:
        return packed.getnames()


def test_roles_templates_and_stacks_are_packed_and_the_inventory_is_not(tmp_path: Path):
    fleet = fleet_of(tmp_path / "site", ansible_become_password="hunter22")
    (tmp_path / "site/templates/motd.j2").write_text("hello")
    (tmp_path / "site/roles/hello/__pycache__").mkdir(exist_ok=True)
    (tmp_path / "site/roles/hello/__pycache__/x.cpython-311.pyc").write_bytes(b"x")
    (tmp_path / "site/.env").write_text("TOKEN=hunter22")
    archive = pack(fleet)
    assert names(archive) == ["inventory/stacks/hello.yml", "roles/hello/__init__.py", "templates/motd.j2"]
    assert b"hunter22" not in gzip.decompress(archive.body)


def test_equal_files_are_an_equal_archive_wherever_and_whenever_they_were_written(tmp_path: Path):
    first, second = pack(fleet_of(tmp_path / "one")), None
    fleet = fleet_of(tmp_path / "elsewhere/two")
    for path in (tmp_path / "elsewhere").rglob("*"):
        os.utime(path, (1, 1))
        path.chmod(0o700)
    second = pack(fleet)
    assert first == second
    (tmp_path / "elsewhere/two/roles/hello/__init__.py").write_text("# other\n")
    assert pack(fleet).digest != first.digest


def test_the_packages_own_parts_are_on_each_worker_already(tmp_path: Path):
    fleet = Fleet.load(Path(PROJECT / "tests/fixtures/inventories/mixed"), site=Site(PROJECT))
    assert [name for name in names(pack(fleet)) if not name.startswith("beside")] == []


def test_stacks_beside_another_inventory_come_along_and_are_found_first(tmp_path: Path):
    site = write_site(tmp_path / "site")
    other = write_site(tmp_path / "other", stack={"distributions": {"ubuntu": ["22.04"]}})
    fleet = Fleet.load(other.inventory, site=site)
    archive = pack(fleet)
    assert (archive.beside, "beside/0/stacks/hello.yml" in names(archive)) == (1, True)
    place = unpacked(archive, tmp_path / "state")
    there, sources = sites.sources(archive, place)
    roster = Fleet(sources, fleet.inventory, fleet.roles, fleet.request, site=there)
    assert roster.stack("hello").distributions == fleet.stack("hello").distributions
    assert roster.stack("hello").digest() == fleet.stack("hello").digest()


def test_a_link_that_leads_back_is_followed_once(tmp_path: Path):
    fleet = fleet_of(tmp_path / "site")
    (tmp_path / "site/roles/hello/again").symlink_to(tmp_path / "site/roles")
    assert len(names(pack(fleet))) == 2


def test_a_private_key_is_never_sent(tmp_path: Path):
    fleet = fleet_of(tmp_path / "site")
    (tmp_path / "site/roles/hello/id").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n")
    with pytest.raises(InputError, match=r"roles/hello/id: contains a private key, which is not sent to workers"):
        pack(fleet)


def test_a_site_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sites, "MOST_BYTES", 20_000)
    fleet = fleet_of(tmp_path / "site")
    (tmp_path / "site/roles/hello/model.bin").write_bytes(bytes(30_000))
    with pytest.raises(InputError, match="larger than 20 kB"):
        pack(fleet)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fleet = fleet_of(tmp_path / "site")

    def refuse(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(InputError, match=r"hello.yml: cannot be read: Permission denied"):
        pack(fleet)


def test_a_site_is_unpacked_once_for_its_user_alone(tmp_path: Path):
    archive = pack(fleet_of(tmp_path / "site"))
    place = unpacked(archive, tmp_path / "state")
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
    assert (place / "roles/hello/__init__.py").read_text() == (tmp_path / "site/roles/hello/__init__.py").read_text()
    assert stat.S_IMODE((place / "roles/hello/__init__.py").stat().st_mode) == 0o600
    (place / "mark").touch()
    assert unpacked(archive, tmp_path / "state") == place
    assert (place / "mark").exists()
    assert sorted(path.name for path in place.parent.iterdir()) == [archive.digest]


def test_an_archive_that_is_another_than_its_digest_says_is_refused(tmp_path: Path):
    archive = pack(fleet_of(tmp_path / "site"))
    with pytest.raises(ValueError, match="modified during its transfer"):
        unpacked(SiteArchive("0" * 64, archive.body), tmp_path / "state")
    assert list((tmp_path / "state/sites").iterdir()) == []


def test_an_archive_cannot_write_outside_its_directory(tmp_path: Path):
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        entry = tarfile.TarInfo("../../outside")
        entry.size = 1
        archive.addfile(entry, io.BytesIO(b"x"))
    digest = hashlib.sha256(plain.getvalue()).hexdigest()
    with pytest.raises(tarfile.FilterError):
        unpacked(SiteArchive(digest, gzip.compress(plain.getvalue())), tmp_path / "state")
    assert not (tmp_path / "outside").exists()
    assert list((tmp_path / "state/sites").iterdir()) == []


def test_sites_that_nobody_has_used_for_long_go(tmp_path: Path):
    fleet = fleet_of(tmp_path / "site")
    old = unpacked(pack(fleet), tmp_path / "state")
    long_ago_s = time.time() - sites.KEPT_S - 60
    os.utime(old, (long_ago_s, long_ago_s))
    (tmp_path / "site/roles/hello/__init__.py").write_text("# other\n")
    new = unpacked(pack(fleet), tmp_path / "state")
    assert list(new.parent.iterdir()) == [new]


def test_a_password_among_the_files_is_found(tmp_path: Path):
    fleet = fleet_of(tmp_path / "site")
    (tmp_path / "site/templates/x.j2").write_text("password=hunter22\n")
    archive = pack(fleet)
    assert holding(archive, ["other", "hunter22"]) == "templates/x.j2"
    assert holding(archive, ["other"]) == ""
    assert holding(archive, []) == ""
