"""``invoke hosts`` on foreign inventories: a listing, with the reasons why hosts cannot be provisioned."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from invoke import Context, Exit

from hostwright.cli.tasks import change, keep, look, reach, restore
from hostwright.cli.tasks import site as site_verbs
from hostwright.cli.tasks.site import hosts
from hostwright.cli.tasks.site import variables as show_variables
from hostwright.common.errors import InputError, InputErrors
from hostwright.common.places import place_of
from hostwright.common.request import Request
from hostwright.fleet import Fleet, TargetHost
from hostwright.verify import checking

OTHERS = """
all:
  vars:
    container_manager: containerd
    environment: production
    base_dir: /srv
    container: {image: nginx}
  hosts:
    web1: {stack: web}
    win1: {ansible_connection: winrm}
    here: {ansible_connection: local}
    gpu01: {stack: {name: swarm}}
    gpu02: {stack: web, hostwright_stack: tensorflow-2.9}
"""


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    path = tmp_path / "inventory"
    path.mkdir()
    (path / "hosts.yml").write_text(OTHERS)
    return path


def test_every_host_is_listed_and_what_cannot_be_used_is_said(
    inventory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert hosts(Request("all", inventory=(str(inventory),))) == 0
    out, err = capsys.readouterr()
    err = " ".join(err.split())
    assert out.splitlines()[-1].startswith("5 hosts: ")
    assert "stack: unknown stack 'web'" in err
    assert "has another purpose here, set hostwright_stack" in err
    assert "found 'winrm'" in err
    for name in ("container_manager", "environment", "base_dir", "container"):
        assert err.count(f"hosts.yml:{OTHERS[: OTHERS.index(f'    {name}:')].count(chr(10)) + 1}:5: ") == 1, name
    assert "add 'base_dir' to hostwright_own_variables" in err


def test_this_machine_is_listed_as_such(inventory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert hosts(Request("here,gpu02", inventory=(str(inventory),))) == 0
    assert "\nhere   this machine  " in capsys.readouterr().out
    assert hosts(Request("here,gpu02", inventory=(str(inventory),), json=True)) == 0
    rows = json.loads(capsys.readouterr().out)["hosts"]
    assert {row["host"]: row["connection"] for row in rows} == {"here": "local", "gpu02": "ssh"}


def test_two_names_of_this_machine_are_listed_and_not_worked_on_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Such inventories exist where local programs manage network devices or clouds."""
    (tmp_path / "hosts.ini").write_text("[dev]\ndev1\n[staging]\nstaging1\n[all:vars]\nansible_connection=local\n")
    assert hosts(Request("all", inventory=(str(tmp_path),))) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("2 hosts: ")
    fleet = Fleet.load(tmp_path)
    assert [target.name for target in fleet.targets("staging")] == ["staging1"]
    with pytest.raises(InputError, match="dev1, staging1 have ansible_connection: local, so each of them is this mach"):
        fleet.targets("all")


def test_the_listing_as_json_is_a_document_alone(inventory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert hosts(Request("all", inventory=(str(inventory),), json=True)) == 0
    rows = json.loads(capsys.readouterr().out)["hosts"]
    stacks = {row["host"]: row["stack"] for row in rows}
    assert list(stacks) == ["web1", "win1", "here", "gpu01", "gpu02"]
    assert (stacks["web1"], stacks["gpu02"]) == ("web", "tensorflow-2.9")
    assert stacks["gpu01"] == Fleet.load(inventory).default_stack


def typed(verb: Any, **words: Any) -> int:
    """Run a verb as typed, and return its exit status."""
    try:
        verb.body(Context(), **words)
    except Exit as ended:
        return ended.code
    return 0


def test_strict_refuses_what_a_listing_notes(inventory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed(site_verbs.hosts, hosts="all", inventory=[str(inventory)], strict=True) == 2
    assert "winrm" in capsys.readouterr().err
    assert typed(site_verbs.hosts, hosts="gpu02", inventory=[str(inventory)], strict=True) == 2
    assert "'container_manager' is not read" in capsys.readouterr().err
    assert typed(site_verbs.hosts, hosts="gpu02", inventory=[str(inventory)]) == 0, "it is for that call alone"


@pytest.mark.parametrize(
    ("verb", "more"),
    [
        (look.plan, {}), (look.verify, {}), (look.audit_fleet, {}), (look.audit_history, {}), (look.audit_diff, {}),
        (look.doctor, {}), (site_verbs.variables, {}), (site_verbs.stacks, {"hosts": None}), (change.provision, {}),
        (change.remove, {}), (restore.rebuild, {}), (restore.rebuild, {"report": True, "hosts": None}),
        (restore.rollback, {}), (restore.trust, {}), (restore.power, {"order": "status"}), (keep.lock, {"reason": "x"}),
        (keep.unlock, {}), (keep.mirror, {"hosts": None}), (reach.run, {}),
        (reach.ssh, {"hosts": None, "host": "gpu02"}),
    ],
)  # fmt: skip
def test_every_verb_that_reads_the_inventory_is_strict_before_it_does_anything(
    inventory: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    verb: Any,
    more: dict[str, Any],
) -> None:
    monkeypatch.setenv("HOSTWRIGHT_STATE", str(inventory.parent / "state"))
    monkeypatch.setattr(TargetHost, "connect", lambda *_: pytest.fail("a host was asked"))
    monkeypatch.setattr("sys.argv", ["invoke", "run", "--", "true"])
    (inventory / "hosts.yml").write_text("all: {hosts: {gpu02: {container_manager: containerd}}}")
    words = {name: value for name, value in {"hosts": "gpu02", **more}.items() if value is not None}
    assert typed(verb, **words, inventory=[str(inventory)], strict=True) == 2
    assert "'container_manager' is not read" in capsys.readouterr().err
    assert not (inventory.parent / "state").exists()


def two(folder: Path) -> tuple[str, str]:
    """Write two inventories: of a site, and of one rack with other variables for one host of both."""
    for name, hosts_of, variables in (("site", ("gpu01", "gpu02"), "one"), ("rack", ("gpu02", "gpu03"), "two")):
        (folder / name / "group_vars").mkdir(parents=True)
        (folder / name / "hosts.yml").write_text(json.dumps({"gpus": {"hosts": {host: {} for host in hosts_of}}}))
        (folder / name / "group_vars" / "gpus.yml").write_text(f"mine: {variables}\n")
    return str(folder / "site"), str(folder / "rack")


def test_several_inventories_are_one_and_later_ones_win(tmp_path: Path) -> None:
    site, rack = map(Path, two(tmp_path))
    for places, mine in (([site, rack], "two"), ([rack, site], "one"), ([Path(f"{site},{rack}")], "two")):
        fleet = Fleet.load(places)
        assert sorted(fleet.inventory.hosts) == ["gpu01", "gpu02", "gpu03"]
        assert {host.get("mine") for host in fleet.inventory.hosts.values()} == {mine}
    assert sorted(Fleet.load([site, Path("gpu09,gpu08,")]).inventory.hosts) == ["gpu01", "gpu02", "gpu08", "gpu09"]


def test_several_inventories_are_known_again_in_records_from_wherever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two(tmp_path)
    monkeypatch.chdir(tmp_path)
    places = [Path("site"), Path("rack")]
    known = {place_of(Fleet.load(places).path), place_of(Fleet.load(Path("site,rack")).path)}
    monkeypatch.chdir("site")
    known.add(place_of(Fleet.load([tmp_path / "site", tmp_path / "rack"]).path))
    assert len(known) == 1
    assert place_of(Fleet.load([tmp_path / "rack", tmp_path / "site"]).path) not in known
    assert place_of(Fleet.load(tmp_path / "site").path) == place_of(tmp_path / "site")


def test_the_option_is_repeated_or_stands_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    site, rack = two(tmp_path)
    assert typed(site_verbs.hosts, inventory=[site, rack]) == 0
    assert capsys.readouterr().out.endswith("\n3 hosts: gpu[01-03]\n")
    monkeypatch.setenv("HOSTWRIGHT_INVENTORY", f"{site},{rack}")
    assert typed(site_verbs.hosts) == 0
    assert capsys.readouterr().out.endswith("\n3 hosts: gpu[01-03]\n")
    assert typed(site_verbs.hosts, inventory=[rack]) == 0, "what is typed counts alone"
    assert capsys.readouterr().out.endswith("\n2 hosts: gpu[02-03]\n")


def test_advice_has_every_inventory_of_the_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOSTWRIGHT_STATE", str(tmp_path / "state"))
    site, _ = two(tmp_path)
    strange = "gpu7,gpu 8,"
    assert typed(look.audit_diff, inventory=[site, strange]) == 0
    advice = " ".join(capsys.readouterr().out.split())
    assert advice.endswith(f"run `invoke audit --inventory {site} --inventory '{strange}'`")
    assert typed(look.audit_diff) in (0, 2)
    assert "--inventory" not in "".join(capsys.readouterr())


def test_checks_are_given_the_places_that_were_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a site's own inventory they get none, since another may have been read in its place."""
    site, rack = map(Path, two(tmp_path))
    fleet = Fleet.load([site, rack])
    assert checking._inventory(fleet) == ["--hw-inventory", str(site), "--hw-inventory", str(rack)]
    (tmp_path / "inventory").mkdir()
    (tmp_path / "tasks.py").touch()
    (tmp_path / "ansible.cfg").write_text("[defaults]\ninventory = rack\n")
    monkeypatch.chdir(tmp_path)
    own = Fleet.load()
    assert sorted(own.inventory.hosts) == ["gpu02", "gpu03"]
    assert checking._inventory(own) == []


def test_other_peoples_variables_keep_no_host_from_being_provisioned(inventory: Path) -> None:
    fleet = Fleet.load(inventory)
    targets = fleet.targets("gpu01,gpu02")
    assert [target.stack.name for target in targets] == [fleet.default_stack, "tensorflow-2.9"]
    assert any(
        "'container_manager' is not read: it is not a variable of the role container" in n for n in targets.notes
    )
    with pytest.raises(InputErrors, match="unknown stack 'web'"):
        fleet.targets("web1")


MIXED = """
all:
  vars:
    rack: 3
    site_proxy: http://bob:s3cretword@proxy:3128
    nested: {db_password: hunter2hunter2, port: 5432}
    container: {image: nginx}
    cuda: {keep_repository: false}
  hosts:
    gpu01:
      ansible_host: 192.0.2.1
      ansible_port: 2222
      ansible_user: ops
      ansible_ssh_private_key_file: /keys/ops
      ansible_password: hunter2hunter2
      ansible_ssh_common_args: -J bastion
      hostwright_known_hosts: /keys/known
    gpu02: {stack: nosuch}
    gpu03: {ansible_user: hunter2hunter2, ansible_become_password: hunter2hunter2}
"""


@pytest.fixture
def mixed(tmp_path: Path) -> Request:
    (tmp_path / "hosts.yml").write_text(MIXED)
    return Request("all", inventory=(str(tmp_path),))


def test_the_listing_says_how_each_host_is_reached(mixed: Request, capsys: pytest.CaptureFixture[str]) -> None:
    assert hosts(replace(mixed, json=True)) == 0
    first, unusable, masked = json.loads(capsys.readouterr().out)["hosts"]
    assert {key: first[key] for key in ("address", "port", "user", "key", "jump", "known_hosts")} == {
        "address": "192.0.2.1", "port": 2222, "user": "ops", "key": "/keys/ops", "jump": "bastion",
        "known_hosts": "/keys/known",
    }  # fmt: skip
    assert "base" in first["roles"] and first["groups"] == ["all", "ungrouped"]
    assert (unusable["roles"], unusable["stack"], unusable["port"], unusable["user"]) == (None, "nosuch", None, None)
    assert masked["user"] == "***"


def test_variables_that_no_role_reads_are_shown_and_secrets_are_masked(
    mixed: Request, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = Request("gpu01", inventory=mixed.inventory)
    assert show_variables(replace(chosen, json=True)) == 0
    rows = {row["role"]: row["variables"] for row in json.loads(capsys.readouterr().out)["variables"]}
    assert rows["cuda"]["keep_repository"] is False
    own = rows[""]
    assert own["rack"] == 3 and own["container"] == {"image": "nginx"} and "cuda" not in own
    assert own["site_proxy"] == "http://***@proxy:3128"
    assert own["nested"] == {"db_password": "***", "port": 5432}
    assert (own["ansible_user"], own["ansible_password"]) == ("ops", "***")
    assert show_variables(chosen, why=True) == 0
    out = capsys.readouterr().out
    assert "# no role reads these:\nrack: 3\n#     → 3  group all  " in out
    assert "\n# ansible_password: '***'\n" in out
    assert yaml.safe_load(out)["rack"] == 3, "it can be pasted back"
    assert "hunter2hunter2" not in out and "s3cretword" not in out


def test_variables_that_no_role_reads_are_left_out_where_roles_are_named(
    mixed: Request, capsys: pytest.CaptureFixture[str]
) -> None:
    assert show_variables(Request("gpu01", inventory=mixed.inventory, roles="cuda", json=True)) == 0
    assert [row["role"] for row in json.loads(capsys.readouterr().out)["variables"]] == ["cuda"]


def test_addresses_are_listed_without_the_password_of_a_vault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Requested in ansible 84381."""
    text = "all: {hosts: {gpu01: {ansible_host: 192.0.2.1, db_key: !vault '$ANSIBLE_VAULT;1.1;AES256'}}}\n"
    (tmp_path / "hosts.yml").write_text(text)
    selection = Request("all", inventory=(str(tmp_path),))
    assert hosts(replace(selection, json=True)) == 0
    assert json.loads(capsys.readouterr().out)["hosts"][0]["address"] == "192.0.2.1"
    assert show_variables(replace(selection, json=True)) == 0
    own = json.loads(capsys.readouterr().out)["variables"][-1]["variables"]
    assert own["db_key"] == "(encrypted with Ansible Vault)"
