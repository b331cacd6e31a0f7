"""A host that reaches no package index installs TensorFlow only from the mirror's wheels."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from hostwright.fleet import Fleet
from hostwright.resources.python.users_files import HOMES
from hostwright.stack.store.hostcache import CACHE
from lab import fleet as lab_fleet
from lab.config import Machine
from lab.records import find_machine
from tests.lab.conftest import SMALL, FrontDoor, on
from tests.lab.offline import OfflineSite, cut_off
from tests.lab.ownlab import own_lab

HOST = "wheels01"
LINK = "/opt/tensorflow-2.9"
ROLE = ("--hosts", HOST, "--roles", "tensorflow")
WHEELS = 46  #: number of pins for Python 3.9, and pip itself
NO_INDEX = f"! {LINK}/bin/python -m pip --disable-pip-version-check download --retries 0 --no-deps --dest /tmp/x six"


@dataclass(frozen=True)
class Site(OfflineSite):
    """A site whose only host installs wheels from the mirror; ``wheels`` are wheels that users have."""

    wheels: Path


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A bare host whose traffic beyond this machine is rejected."""
    folder = tmp_path_factory.mktemp("wheelhouse")
    with own_lab("wheels") as lab:
        lab_fleet.supply(lab, SMALL)
        lab_fleet.up(lab, [HOST], options=SMALL)
        archive = Fleet.load(lab.inventory.parent).stack("lab").artifacts["wheelhouse-3.9"].urls[0]
        with tarfile.open(archive.removeprefix("file://")) as tar:
            tar.extractall(folder / "wheels", filter="data")
        data = yaml.safe_load(lab.inventory.read_text())
        data["lab"]["vars"].update(
            stack="tensorflow-2.9", hostwright_roles=["base", "tensorflow"], tensorflow_wheels_from="mirror"
        )
        (folder / "inventory").mkdir()
        (folder / "inventory/lab.yml").write_text(yaml.safe_dump(data))
        with cut_off(lab):
            yield Site(FrontDoor(lab), folder / "inventory", folder / "store", folder / "wheels")


@pytest.fixture(scope="module")
def host(site: Site) -> Machine:
    return find_machine(site.door.lab, HOST)


@pytest.mark.long  # installs TensorFlow: a minute or two
def test_a_host_without_an_index_is_provisioned_from_the_wheels_of_the_mirror_alone(site: Site, host: Machine) -> None:
    # without the wheels it is refused before any change
    told = site("provision", *ROLE, status=1)
    assert "is not on this machine; run `invoke mirror" in told
    assert on(host, f"ls -A {HOMES} {CACHE} 2>/dev/null || true").strip() == ""

    # with the wheels it is provisioned
    told = site("mirror", "--pythons", "3.9", "--from", str(site.wheels), "--json")
    mirrored, _ = json.JSONDecoder().raw_decode(told)
    assert len([file for file in mirrored["files"] if file["file"].endswith(".whl")]) == WHEELS
    planned = site("plan", *ROLE, status=3)
    assert f"from {WHEELS} wheels of the mirror, without an index" in planned
    assert "up to 596 MB to send" in planned
    site("provision", *ROLE)
    assert "2.9.0" in on(host, f"{LINK}/bin/python -c 'import tensorflow; print(tensorflow.__version__)' 2>/dev/null")
    assert on(host, f"find {CACHE} -name '*.whl' | wc -l").strip() == str(WHEELS)
    assert on(host, f"find {HOMES} -maxdepth 1 -name '*.wheels'").strip() == ""
    on(host, NO_INDEX)

    # a second plan is empty; a lost package is refused if its wheel is missing
    assert "as desired" in site("plan", *ROLE)
    on(host, f"{LINK}/bin/python -m pip --disable-pip-version-check uninstall --quiet --yes six; rm -r {CACHE}/*/six-*")
    (wheel,) = site.store.glob("*/*/six-*.whl")
    kept = wheel.rename(site.wheels / f"{wheel.name}.kept")
    assert "six-1.17.0" in site("provision", *ROLE, status=1)
    kept.rename(wheel)
    site("provision", *ROLE)
    assert "as desired" in site("plan", *ROLE)
