"""A host that reaches no archive of its distribution gets packages from the mirror, and from nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from hostwright.stack.store.hostcache import CACHE
from lab import fleet as lab_fleet
from lab.config import Machine
from lab.records import find_machine
from tests.lab.conftest import SMALL, FrontDoor, on
from tests.lab.offline import OfflineSite, cut_off
from tests.lab.ownlab import own_lab

HOST = "debs01"
ROLE = ("--hosts", HOST, "--roles", "base")
PACKAGES = ("build-essential", "dkms", "curl", "ca-certificates", "gnupg", "pciutils", "kmod", "procps", "python3-venv")
#: The lab's kernel is in no archive: its headers, which stand in, are there before. Then all of apt's sources go, with
#: its lists and the packages that the lab keeps at hand.
CUT_OFF = """
apt-get -qq -y --no-install-recommends install "linux-headers-$(uname -r)" >/dev/null 2>&1
rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/* /var/lib/apt/lists/* /var/cache/apt/archives/*.deb
rm -f /var/cache/apt/*.bin
"""
INSTALLED = "dpkg-query -W -f='${db:Status-Status}\\n' " + " ".join(PACKAGES) + " | sort | uniq -c | tr -s ' '"


@dataclass(frozen=True)
class Site(OfflineSite):
    """Its only host takes packages from the mirror."""

    @property
    def lock(self) -> Path:
        """The lock file of packages."""
        return self.inventory / "stacks/house.lock.packages.json"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A bare host without any source of packages; whatever it sends beyond this machine is refused."""
    folder = tmp_path_factory.mktemp("packages")
    with own_lab("packages") as lab:
        lab_fleet.supply(lab, SMALL)
        lab_fleet.up(lab, [HOST], options=SMALL)
        on(find_machine(lab, HOST), CUT_OFF)
        data = yaml.safe_load(lab.inventory.read_text())
        data["lab"]["vars"].update(
            stack="house",
            hostwright_roles=["base"],
            base_packages=list(PACKAGES),
            base_packages_from="mirror",
        )
        (folder / "inventory/stacks").mkdir(parents=True)
        (folder / "inventory/stacks/house.yml").write_text("extends: tensorflow-2.9\n")
        (folder / "inventory/lab.yml").write_text(yaml.safe_dump(data))
        with cut_off(lab):
            yield Site(FrontDoor(lab), folder / "inventory", folder / "store")


@pytest.fixture(scope="module")
def host(site: Site) -> Machine:
    return find_machine(site.door.lab, HOST)


@pytest.mark.long  # 150 MB are fetched, and build tools are installed: a minute or two
def test_a_host_without_an_archive_is_provisioned_from_the_packages_of_the_mirror_alone(
    site: Site, host: Machine, tmp_path: Path
) -> None:
    before = on(host, "dpkg-query -W | sort")

    # what it runs is not known yet; then, without the packages, it is refused before anything is changed
    assert f"invoke audit --hosts {HOST}" in site("mirror", status=1)
    told = site("provision", *ROLE, status=1)
    assert "the mirror has no" in told and "`invoke mirror" in told
    assert on(host, "dpkg-query -W | sort") == before

    # an audit tells, and mirror brings and pins them
    site.door(
        "audit", "--hosts", HOST, inventory=str(site.inventory)
    )  # a bare host differs: its status does not matter
    mirrored, _ = json.JSONDecoder().raw_decode(site("mirror", "--json"))
    files = [file["file"] for file in mirrored["files"]]
    assert any(name.startswith("dkms_") for name in files)
    assert '"debian-11"' in site.lock.read_text()

    # with them it is provisioned
    planned = site("plan", *ROLE, status=3)
    assert "of the mirror, without the host's sources" in planned
    site("provision", *ROLE)
    assert on(host, INSTALLED).strip() == f"{len(PACKAGES)} installed"
    assert (
        on(host, "gcc --version >/dev/null; python3 -m venv /tmp/venv; /tmp/venv/bin/python -c 'print(6 * 7)'").strip()
        == "42"
    )
    left = (
        "ls -d /var/tmp/hostwright-packages.* 2>/dev/null; ls -A /var/lib/apt/lists | grep -vxE 'partial|lock|auxfiles'"
    )
    assert on(host, f"{{ {left}; }} || true").strip() == ""
    assert on(host, "dpkg --audit; apt-mark showauto | grep -cx gcc").strip() == "1"
    assert int(on(host, f"find {CACHE} -name '*.deb' | wc -l")) > 0
    assert "as desired" in site("plan", *ROLE)

    # one that is gone comes again from its file, and is refused where that is nowhere
    on(host, f"apt-get -qq -y remove pciutils >/dev/null 2>&1; rm -f {CACHE}/*/pciutils_*")
    (file,) = site.store.glob("??/*/pciutils_*.deb")
    kept = file.rename(tmp_path / file.name)
    assert "pciutils" in site("provision", *ROLE, status=1)
    kept.rename(file)
    site("provision", *ROLE)
    assert "as desired" in site("plan", *ROLE)

    # when the role is removed, what came goes, and what was there before stays
    site("remove", *ROLE)
    there = (
        "dpkg-query -W -f='${db:Status-Status} ${Package}\\n' | grep -xE 'installed (dkms|build-essential|pciutils)'"
    )
    assert on(host, f"{{ {there}; }} || true").split("\n")[:-1] == ["installed pciutils"]
