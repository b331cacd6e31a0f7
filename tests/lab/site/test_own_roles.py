"""Four custom roles in a site made by ``init`` from the installed wheel, on a real host.

The roles are in ``tests/fixtures/site``, written as ``docs/roles.md`` describes: ``chrony`` (package, file, service),
``nccl`` (a section, rules, an audit value, a failure, its own checks), ``container`` (the standard role, extended),
``openfiles`` (requires a reboot). The tests are in the order of a site author's work.
"""

from __future__ import annotations

import pytest

from lab.config import Machine
from tests.lab.conftest import on
from tests.lab.site import installed
from tests.lab.site.conftest import OURS, PLAIN
from tests.lab.site.installed import NCCL, Site
from tests.lab.trees import Tree
from tests.unit.support.package import PROJECT

ROLES = ["base", "driver", "container", "chrony", "nccl", "openfiles"]
ON = ("--hosts", OURS)
#: depmod's index (left by the lab's headers), dockerd's mode of its directory, ucf's records of chrony's file
LEFT_BY_OTHERS = r"/usr/lib/modules(/.*)?|/var/lib/docker|/var/lib/ucf/.*"
SECOND = "/usr/local/lib/libnccl.so.2"  #: the loader's first directory


def test_the_checkout_cannot_be_imported(site: Site):
    where = site.run("-I", "-c", "import hostwright; print(hostwright.__file__)", program=("python",))
    assert where.startswith(str(site.programs.parent))
    for name in ("lab", "tests"):
        assert site("-I", "-c", f"import {name}", program=("python",)).returncode == 1, f"{name} can be imported"
    assert str(PROJECT) not in site.run("-I", "-c", "import sys; print(sys.path)", program=("python",))


def test_lint_and_types_find_nothing(site: Site):
    """With the settings of ``init``, and with the type annotations of the installed package."""
    site.run("check", ".", program=("ruff",))
    site.run("format", "--check", "--line-length", "120", "roles", program=("ruff",))
    assert "no issues found" in site.run(program=("mypy",))


def test_types_find_a_mistake(site: Site):
    role = site.root / "roles/chrony/__init__.py"
    text = role.read_text()
    role.write_text(text.replace('Debs(("chrony",))', 'Debs("chrony", wanted=True)'))
    try:
        found = site.run(status=1, program=("mypy",))
    finally:
        role.write_text(text)
    assert 'Unexpected keyword argument "wanted" for "Debs"' in found


def test_the_site_lists_its_hosts_and_its_stack(site: Site):
    assert OURS in site.run("hosts")
    shown = site.run("vars", *ON, "--roles", "chrony", "--why")
    assert "chrony_sets_clock: false" in shown
    assert "ntp1.example.org" in shown
    (stack,) = (one for one in site.json("stacks", status=2)["stacks"] if one["name"] == "ours")
    assert stack["versions"]["nccl"] == "2.8.4"
    assert "nccl" in str(stack)


def test_a_rule_of_the_site_refuses_what_does_not_fit(site: Site):
    refused = site("plan", *ON, "--var", "stack=too-new")
    assert refused.returncode == 2
    assert "NCCL 2.18.1 for CUDA 12.1 needs driver 525.60.13 or newer, not 470.182.03" in refused.stderr


@pytest.fixture(scope="module")
def bare(site: Site, ours: Machine) -> Tree:
    """Tree of the host before the tests."""
    return Tree.of(ours)


def test_plan_shows_every_role(site: Site, bare: Tree):
    (plan,) = site.json("plan", *ON, status=3)["plans"]
    assert {role["role"] for role in plan["roles"]} == set(ROLES)
    whats = {change["what"] for role in plan["roles"] for change in role["changes"]}
    assert {"files of nccl 2.8.4", "file /etc/chrony/chrony.conf", "packages chrony"} <= whats


@pytest.fixture(scope="module")
def provisioned(site: Site, bare: Tree) -> Site:
    """The site, with its host provisioned to its stack, including one reboot."""
    (host,) = site.json("provision", *ON)["hosts"]
    assert host["reboots"] == 1
    return site


def test_a_second_run_finds_nothing_to_do(provisioned: Site):
    (plan,) = provisioned.json("plan", *ON)["plans"]
    assert plan["roles"] == []


def test_the_host_is_what_the_roles_say(provisioned: Site, ours: Machine):
    assert on(ours, "systemctl is-active chrony docker").split() == ["active", "active"]
    assert f"{NCCL}.txz" in on(ours, "cat /var/lib/hostwright/release.json")
    assert "registry.example.org" in on(ours, "cat /etc/docker/daemon.json")


def test_verify_runs_the_checks_of_the_site_beside_the_standard_ones(provisioned: Site):
    (host,) = provisioned.json("verify", *ON)["hosts"]
    assert host["passed"]
    checks = {(check["role"], check["check"]) for check in host["checks"]}
    assert checks > {
        ("chrony", "test_chronyd_asks_the_servers_of_the_site"),
        ("nccl", "test_a_program_gets_the_version_of_the_stack"),
        ("container", "test_docker_asks_the_mirror_first"),
        ("container", "test_a_container_has_the_gpus_of_the_host"),
        ("openfiles", "test_a_service_may_open_that_many_files"),
    }


def test_a_check_of_the_site_fails_where_its_layer_is_gone(provisioned: Site, ours: Machine):
    on(ours, "systemctl stop chrony")
    try:
        (host,) = provisioned.json("verify", *ON, "--roles", "chrony", status=1)["hosts"]
    finally:
        on(ours, "systemctl start chrony")
    assert not host["passed"]


def test_audit_and_doctor_find_nothing(provisioned: Site):
    (host,) = provisioned.json("audit", *ON)["hosts"]
    assert host["status"] == "desired"
    assert {layer["name"] for layer in host["layers"]} == {*ROLES, "gpu"}
    read = {(one["layer"], one["name"]): (one["have"], one["want"]) for one in host["readings"]}
    assert read["nccl", "library"] == ("2.8.4", "2.8.4")
    assert read["chrony", "service"] == ("active", "active")
    assert read["container", "registry mirror"] == ("https://registry.example.org/", "https://registry.example.org/")
    version, pinned = read["chrony", "package"]
    assert version.startswith("4.0-")
    assert pinned is None
    assert f"{NCCL}.txz" in host["stand_ins"]
    assert not [name for name in host["stand_ins"] if name.startswith("cudnn")]  # no role of this host installs it
    provisioned.run("doctor", *ON)


def test_the_doctor_tells_a_failure_of_the_site(provisioned: Site, ours: Machine):
    on(ours, f"cp /opt/nccl/lib/libnccl.so.2.8.4 {SECOND}; ldconfig")
    try:
        found = provisioned.run("doctor", *ON, status=3)
    finally:
        on(ours, f"rm {SECOND}; ldconfig")
    assert "nccl-twice" in found
    assert SECOND in found
    assert "apt-get remove libnccl2" in found
    provisioned.run("doctor", *ON)


@pytest.mark.long
def test_the_host_is_what_it_was_once_the_roles_are_removed(provisioned: Site, bare: Tree, ours: Machine):
    provisioned.run("remove", *ON, "--roles", "nccl,chrony,openfiles")
    assert on(ours, "ls /opt /etc/ld.so.conf.d").split() == [
        *("/etc/ld.so.conf.d:", "libc.conf", "x86_64-linux-gnu.conf"),
        *("/opt:", "hostwright-lab"),
    ]
    assert on(ours, "dpkg-query -W -f '${Status}' chrony 2>/dev/null || echo gone").strip() == "gone"
    assert "docker" in on(ours, "systemctl is-active docker && echo docker")  # other parts stay
    provisioned.run("remove", *ON)
    assert bare.differences(Tree.of(ours), but=LEFT_BY_OTHERS) == []


def test_nothing_outside_of_the_site_was_touched(site: Site, before: dict[str, str], checkout: str):
    after = installed.fingerprint(site.programs.parent)
    assert {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)} == set()
    assert installed.state_of_checkout() == checkout
    assert {path.name for path in site.root.parent.iterdir()} == {"home", site.root.name}
    assert PLAIN in site.run("hosts")
