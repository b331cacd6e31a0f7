"""apt as it is out there, on a real host: strangers' broken repositories, a dead proxy, a dpkg that was interrupted.

What doctor sees before a run is what the run then names.
"""

from __future__ import annotations

import json

import pytest

from lab.config import Machine
from tests.lab.conftest import SMALL, FrontDoor, Guest, on
from tests.lab.strangers import DEAD_PROXY, EXPIRED, PROXY

#: an address without a Release file; with the other's, half of an update fails
NO_RELEASE = """
mkdir -p /srv/none; echo 'deb file:/srv/none ./' >/etc/apt/sources.list.d/none.list
"""
WITHOUT_A_TOOL = "apt-get -qq -y remove pciutils >/dev/null 2>&1"
UNPACKED = """
apt-get -q update >/dev/null 2>&1
for name in theirs-tool theirs-odd; do
  mkdir -p /tmp/$name/DEBIAN
  printf '%s\\n' "Package: $name" 'Version: 1' 'Architecture: all' 'Maintainer: L <a@b.example>' \
    >/tmp/$name/DEBIAN/control
done
printf '%s\\n' 'Depends: jq' 'Recommends: nano' 'Description: d' >>/tmp/theirs-tool/DEBIAN/control
printf '%s\\n' 'Depends: nowhere-at-all' 'Description: d' >>/tmp/theirs-odd/DEBIAN/control
for name in theirs-tool theirs-odd; do dpkg-deb -b /tmp/$name >/dev/null; dpkg --unpack /tmp/$name.deb >/dev/null; done
"""


HOST = "apt01"


@pytest.fixture
def machine(guest: Guest) -> Machine:
    """A bare host."""
    return guest(HOST, SMALL)


def examined(invoke: FrontDoor) -> dict[str, list[str]]:
    """The known problems that doctor sees in the role base, each with its evidence."""
    done = invoke("doctor", "--hosts", HOST, "--roles", "base", "--json")
    (host,) = json.loads(done.stdout)["hosts"]
    return {found["rule"]: found["evidence"] for found in host["findings"]}


def test_only_repositories_that_are_needed_decide(machine: Machine, invoke: FrontDoor) -> None:
    base = ("--hosts", HOST, "--roles", "base")
    on(machine, EXPIRED + NO_RELEASE)
    found = examined(invoke)
    assert found.keys() == {"foreign-keyring", "repository-without-release"}
    (none,) = found["repository-without-release"]
    assert none.startswith(
        "/etc/apt/sources.list.d/none.list:1: file:/srv/none/ ./: File not found - /srv/none/./Release"
    )
    (line,) = found["foreign-keyring"]
    assert line.startswith("/etc/apt/sources.list.d/theirs.list:1: ")
    assert line.endswith("/usr/share/keyrings/theirs.gpg holds only keys that expired, the last on 2020-01-02")
    done = invoke("provision", *base)
    text = " ".join(done.stdout.split())
    assert done.returncode == 0, text
    note = "nothing here needs what apt could not fetch: file:/srv/"
    assert f"{note}theirs ./ (/etc/apt/sources.list.d/theirs.list:1)" in text
    assert f"{note}none ./ (/etc/apt/sources.list.d/none.list:1)" in text
    on(machine, "rm /etc/apt/sources.list.d/theirs.list /etc/apt/sources.list.d/none.list")
    assert examined(invoke) == {}

    on(machine, WITHOUT_A_TOOL + DEAD_PROXY)
    (line,) = examined(invoke)["proxy-refuses"]
    assert line.startswith("the proxy http://127.0.0.1:9 does not answer: ")
    assert "hunter2" not in line
    done = invoke("provision", *base)
    text = " ".join(done.stdout.split())
    assert done.returncode == 1, text
    assert "apt has no list with pciutils, and could not fetch http://" in text
    assert "the proxy 127.0.0.1 does not answer: " in text
    assert "hunter2" not in done.stdout + done.stderr

    on(machine, f"rm -f {PROXY}{UNPACKED}")
    plan = " ".join(invoke("plan", *base).stdout.split())
    assert "dpkg: interrupted (theirs-odd, theirs-tool) → in order (" in plan
    assert "theirs-odd removed" in plan and " jq" in plan and "nano" not in plan
    done = invoke("provision", *base)
    assert done.returncode == 0, done.stdout
    states = on(machine, "dpkg-query -W -f='${Package} ${db:Status-Abbrev}\\n'").splitlines()
    assert {"theirs-tool ii ", "jq ii "} <= {f"{line.rstrip()} " for line in states}
    assert not [line for line in states if line.startswith(("nano ii", "theirs-odd"))]
