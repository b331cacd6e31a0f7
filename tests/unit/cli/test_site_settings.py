"""``[site]`` in the site's file applies to every call: which hosts may get a stack, and where records are stored."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hostwright.cli.program import program
from hostwright.common.places import STATE_VARIABLE, place_of
from tests.unit.cli.test_settings import Call, call, site, write

__all__ = ["call", "site"]

HOSTS = "all: {children: {gpu: {hosts: {gpu01: {}, gpu02: {}}}, other: {hosts: {mgmt01: {}, mgmt02: {}}}}}\n"
ONLY = '[site]\nhosts = "@gpu"\n'
REFUSED = "hostwright.toml:2: the setting hosts = '@gpu' does not include {}; change the setting, or name other hosts\n"
CHANGING = ("plan", "provision", "remove", "rollback", "rebuild", "verify", "doctor")


@pytest.fixture(autouse=True)
def only(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (site / "inventory/hosts.yml").write_text(HOSTS)
    write(site, ONLY)
    monkeypatch.setenv(STATE_VARIABLE, str(site.parent / "state"))


@pytest.mark.parametrize("verb", CHANGING)
@pytest.mark.parametrize(
    ("hosts", "who"), [("mgmt01", "mgmt01"), ("gpu01,mgmt[01-02]", "mgmt[01-02]"), ("@other", "mgmt[01-02]")]
)
def test_a_host_that_gets_no_stack_is_refused_by_name_and_where_nothing_else_is_left(
    site: Path, call: Call, verb: str, hosts: str, who: str
) -> None:
    status, out, err = call(verb, hosts, *(["--yes"] if verb in {"remove", "rebuild"} else []))
    assert (status, out) == (2, "")
    assert err.endswith(REFUSED.format(who))


@pytest.mark.parametrize("hosts", ["all", "*01,gpu02", "@other,@gpu"])
def test_it_is_left_out_of_what_chooses_many(site: Path, call: Call, hosts: str) -> None:
    status, out, err = call("vars", hosts, "--json")
    assert "mgmt01" in out, "what only shows the inventory shows all of it"
    status, out, err = call("plan", hosts, "--json")
    assert {error["host"] for error in json.loads(out)["errors"]} == {"gpu01", "gpu02"}
    assert status == 1
    assert "skipped mgmt" in err and "the setting hosts = '@gpu'" in err


def test_hosts_shows_what_is_outside(call: Call) -> None:
    _, out, _ = call("hosts", "--json")
    assert {host["host"]: host["outside"] for host in json.loads(out)["hosts"]} == {
        "gpu01": False, "gpu02": False, "mgmt01": True, "mgmt02": True,
    }  # fmt: skip
    _, out, _ = call("hosts")
    assert [line.split()[0] for line in out.splitlines() if "none: outside" in line] == ["mgmt01", "mgmt02"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('[site]\nhosts = "@gpus"\n', "2: hosts: unknown group 'gpus'; did you mean 'gpu'?"),
        ("[site]\nhosts = 3\n", "2: hosts: found 3, expected text"),
        ('[site]\n\nhost = "all"\n', "3: host: is not a setting of a site; did you mean 'hosts'?"),
        ('site = "x"\n', "1: site is not a table; write its keys on the lines below [site]"),
        ('[options]\nhosts = "all"\n', "2: hosts: cannot be set in this file; pass --hosts in each "
         "call. To limit the hosts of the site, set hosts below [site]"),
    ],
)  # fmt: skip
def test_a_mistake_changes_no_host(site: Path, call: Call, text: str, sentence: str) -> None:
    write(site, text)
    status, out, err = call("plan", "gpu01")
    assert (status, out) == (2, "")
    assert f"hostwright.toml:{sentence}" in err


def test_check_says_a_mistake_of_it(site: Path, call: Call) -> None:
    write(site, '[site]\nstat = "x"\n')
    status, out, _ = call("check")
    assert (status, "hostwright.toml:2: stat: is not a setting of a site; did you mean 'state'?" in out) == (2, True)


def test_records_are_kept_where_the_file_says_unless_the_environment_says_it(
    site: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(site, '[site]\nstate = "records"\n')
    assert f"no run is recorded in {site.parent}/state yet" in call("runs")[1]
    monkeypatch.setenv(STATE_VARIABLE, "")
    assert f"no run is recorded in {site}/records yet" in call("runs")[1]


def test_runs_of_the_shared_directory_are_completed(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(site, '[site]\nstate = "records"\n')
    monkeypatch.setenv(STATE_VARIABLE, "")
    (site / "records/runs/20270101t000000-abcd").mkdir(parents=True)
    assert program.candidates(["runs.show", "2"]) == ["20270101t000000-abcd"]


def test_every_clone_of_a_site_is_one_place_in_a_shared_directory(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = tmp_path / "clone"
    (clone / "inventory").mkdir(parents=True)
    (clone / "hostwright.toml").write_text("")
    shared = tmp_path / "shared"
    shared.mkdir()
    monkeypatch.setenv(STATE_VARIABLE, str(shared))
    assert place_of(site / "inventory") != place_of(clone / "inventory"), "of one operator, paths are places"
    os.chmod(shared, 0o2770)  # noqa: PTH101, S103 - shared with its group
    assert place_of(site / "inventory") == place_of(clone / "inventory")
    assert place_of(site / "inventory") != place_of(site / "other")
