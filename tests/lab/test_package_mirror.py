"""A host that reaches no archive of its distribution installs packages only from the mirror."""

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
#: Installs the stand-in headers of the lab's kernel, which no archive has, then removes apt's sources and lists and the
#: lab's downloaded packages.
CUT_OFF = """
apt-get -qq -y --no-install-recommends install "linux-headers-$(uname -r)" >/dev/null 2>&1
rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/* /var/lib/apt/lists/* /var/cache/apt/archives/*.deb
rm -f /var/cache/apt/*.bin
"""
INSTALLED = "dpkg-query -W -f='${db:Status-Status}\\n' " + " ".join(PACKAGES) + " | sort | uniq -c | tr -s ' '"


@dataclass(frozen=True)
class Site(OfflineSite):
    """A site whose only host installs packages from the mirror."""

    @property
    def lock(self) -> Path:
        """The lock file of packages."""
        return self.inventory / "stacks/house.lock.packages.json"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A bare host without package sources; its traffic beyond this machine is rejected."""
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


@pytest.mark.long  # downloads 150 MB and installs build tools: a minute or two
def test_a_host_without_an_archive_is_provisioned_from_the_packages_of_the_mirror_alone(
    site: Site, host: Machine, tmp_path: Path
) -> None:
    before = on(host, "dpkg-query -W | sort")

    # its packages are not known yet; afterwards, without the packages, it is refused before any change
    assert f"invoke audit --hosts {HOST}" in site("mirror", status=1)
    told = site("provision", *ROLE, status=1)
    assert "the mirror has no" in told and "`invoke mirror" in told
    assert on(host, "dpkg-query -W | sort") == before

    # an audit reads them, and mirror downloads and pins them
    # a bare host differs, so the status does not matter
    site.door("audit", "--hosts", HOST, inventory=str(site.inventory))
    mirrored, _ = json.JSONDecoder().raw_decode(site("mirror", "--json"))
    files = [file["file"] for file in mirrored["files"]]
    assert any(name.startswith("dkms_") for name in files)
    assert '"debian-11"' in site.lock.read_text()

    # with the packages it is provisioned
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

    # a removed package is installed again from its file, and refused if the file is missing
    on(host, f"apt-get -qq -y remove pciutils >/dev/null 2>&1; rm -f {CACHE}/*/pciutils_*")
    (file,) = site.store.glob("??/*/pciutils_*.deb")
    kept = file.rename(tmp_path / file.name)
    assert "pciutils" in site("provision", *ROLE, status=1)
    kept.rename(file)
    site("provision", *ROLE)
    assert "as desired" in site("plan", *ROLE)

    # removal of the role removes the installed packages; earlier packages stay
    site("remove", *ROLE)
    there = (
        "dpkg-query -W -f='${db:Status-Status} ${Package}\\n' | grep -xE 'installed (dkms|build-essential|pciutils)'"
    )
    assert on(host, f"{{ {there}; }} || true").split("\n")[:-1] == ["installed pciutils"]
