"""apt problems on a real host: broken third-party repositories, an unreachable proxy, an interrupted dpkg.

doctor reports each problem before a run, and the run reports the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from lab import fleet
from lab.config import Lab, Machine
from lab.records import find_machine
from tests.lab.conftest import SMALL, FrontDoor, on
from tests.lab.ownlab import own_lab
from tests.lab.strangers import DEAD_PROXY, EXPIRED, PROXY

#: a URL without a Release file; together with the other repository, half of an update fails
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


#: Installs empty packages of Debian's driver and a package that depends on it, then forcibly removes two and pciutils.
HALF_REMOVED = """
for row in nvidia-tesla-470-alternative: nvidia-tesla-470-smi: nvidia-tesla-470-driver:nvidia-tesla-470-smi \
  site-tools:nvidia-tesla-470-driver; do
  work=$(mktemp -d); mkdir "$work/DEBIAN"
  printf '%s\\n' "Package: ${row%%:*}" 'Version: 1' 'Architecture: all' 'Maintainer: L <a@b.example>' \
    ${row##*:} 'Description: d' >"$work/DEBIAN/control"
  [ -z "${row##*:}" ] || sed -i "s/^${row##*:}$/Depends: ${row##*:}/" "$work/DEBIAN/control"
  dpkg-deb -b "$work" "$work.deb" >/dev/null; dpkg --install "$work.deb" >/dev/null
done
dpkg --remove --force-all nvidia-tesla-470-alternative nvidia-tesla-470-smi pciutils >/dev/null 2>&1
"""

#: Starts a training and replaces one of its libraries, as an upgrade does; needrestart restarts such services.
TRAINING = """
apt-get -qq update; DEBIAN_FRONTEND=noninteractive apt-get -qq install needrestart python3-minimal >/dev/null
printf '%s\\n' "\\$nrconf{restart} = 'a';" '1;' >/etc/needrestart/conf.d/a.conf
systemd-run -q --unit=train python3 -c 'import time; time.sleep(3600)'
library=$(ldconfig -p | sed -n 's/.*libexpat.so.1 .*=> //p' | head -n 1); library=$(readlink -f "$library")
until grep -q "$library" /proc/$(systemctl show --value -p MainPID train)/maps; do sleep 0.05; done
cp -a "$library" "$library.new"; mv "$library.new" "$library"
NEEDRESTART_SUSPEND=1 apt-get -qq purge pciutils >/dev/null
"""
PID = "systemctl show --value -p MainPID train"
FENCE = "/etc/apt/apt.conf.d/52hostwright"

HOST = "apt01"


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """A bare host in a separate lab."""
    with own_lab("apt") as opened:
        fleet.supply(opened, SMALL)
        fleet.up(opened, [HOST], options=SMALL)
        yield opened


@pytest.fixture
def machine(lab: Lab) -> Machine:
    """The bare host."""
    return find_machine(lab, HOST)


@pytest.fixture
def invoke(lab: Lab) -> FrontDoor:
    """``invoke`` on this lab's inventory; the role base needs no file of the stack."""
    return FrontDoor(lab)


def examined(invoke: FrontDoor) -> dict[str, list[str]]:
    """Return the known problems that doctor reports in the role base: rule → evidence."""
    done = invoke("doctor", "--hosts", HOST, "--roles", "base", "--json")
    (host,) = json.loads(done.stdout)["hosts"]
    return {found["rule"]: found["evidence"] for found in host["findings"]}


@pytest.mark.long
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

    a_half_removed_driver_goes_first(machine, invoke, base)
    nothing_that_runs_is_restarted(machine, invoke, base)
    an_immutable_file_stands_in_the_plan(machine, invoke, base)


def a_half_removed_driver_goes_first(machine: Machine, invoke: FrontDoor, base: tuple[str, ...]) -> None:
    """The base role removes it, because apt installs nothing on such a host and no later role could run."""
    on(machine, HALF_REMOVED)
    plan = " ".join(invoke("plan", *base).stdout.split())
    assert (
        "dpkg: unmet dependencies (nvidia-tesla-470-driver (Depends: nvidia-tesla-470-smi)) → in order ("
        "nvidia-tesla-470-driver removed, because the host's roles replace it; site-tools removed)"
    ) in plan
    done = invoke("provision", *base)
    assert done.returncode == 0, done.stdout
    on(machine, "lspci --version; ! dpkg-query -W nvidia-tesla-470-driver; ! dpkg-query -W site-tools")


def nothing_that_runs_is_restarted(machine: Machine, invoke: FrontDoor, base: tuple[str, ...]) -> None:
    on(machine, TRAINING)
    before = on(machine, PID)
    done = invoke("provision", *base)
    assert done.returncode == 0, done.stdout
    assert on(machine, f"lspci --version >/dev/null; {PID}") == before
    # needrestart would have restarted it; the next run of apt does
    on(machine, "apt-get -qq purge pciutils >/dev/null")
    assert on(machine, PID) != before
    on(machine, "systemctl stop train; apt-get -qq purge needrestart >/dev/null")
    assert invoke("provision", *base).returncode == 0


def an_immutable_file_stands_in_the_plan(machine: Machine, invoke: FrontDoor, base: tuple[str, ...]) -> None:
    on(machine, f"echo '// ours' >>{FENCE}; chattr +i {FENCE}")
    why = f"{FENCE} cannot be replaced: it is immutable (lsattr shows i); to allow the change, run chattr -i {FENCE}"
    assert why in " ".join(invoke("plan", *base).stdout.split())
    refused = invoke("provision", *base)
    assert refused.returncode == 1
    assert why in " ".join(refused.stdout.split())
    assert on(machine, "find /etc -name '*hostwright-new*'") == ""
    on(machine, f"chattr -i {FENCE}")
    assert invoke("provision", *base).returncode == 0
