"""Selections of a call: hosts from a file, all roles but some, and the vault passwords of ``ansible.cfg``."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

import pytest

from hostwright.cli.tasks.hostlists import filled_in
from hostwright.common.errors import InputError
from tests.unit.cli.test_settings import Call, call, site

__all__ = ["call", "site"]


@pytest.fixture
def lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nodes").write_text("# rack 3\ngpu01\ngpu02, gpu[04,06]  # spare\n\n@rack4\n")
    (tmp_path / "plain.retry").write_text("gpu01\ngpu02\n")
    (tmp_path / "empty").write_text("# nobody\n")
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("^nodes", "gpu01,gpu02,gpu[04,06],@rack4"),
        ("^plain.retry,gpu[07,09],!gpu02", "gpu01,gpu02,gpu[07,09],!gpu02"),
        ("all,!^nodes", "all,!gpu01,!gpu02,!gpu[04,06],!@rack4"),
        ("~^gpu,all", "~^gpu,all"),
        ("gpu01", "gpu01"),
    ],
)
def test_a_file_stands_for_the_hosts_that_it_lists(lists: Path, pattern: str, wanted: str) -> None:
    assert filled_in(pattern) == wanted


def test_standard_input_is_a_list_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("gpu01 gpu02\n"))
    assert filled_in("^-,!gpu02") == "gpu01,gpu02,!gpu02"


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        ("^missing", "--hosts: missing: No such file or directory"),
        ("^empty", "--hosts: empty: contains no host"),
        ("all,&^nodes", "--hosts: '&^nodes': '&' is not allowed before a file"),
    ],
)
def test_a_list_that_cannot_be_used_chooses_no_host(lists: Path, pattern: str, sentence: str) -> None:
    with pytest.raises(InputError) as refused:
        filled_in(pattern)
    assert str(refused.value).startswith(sentence)


def test_every_verb_takes_a_list(site: Path, call: Call) -> None:
    Path("nodes").write_text("gpu02\n")
    for words in (("^nodes",), ("--hosts", "^nodes"), ("--hosts=all,!^nodes",)):
        status, out, _ = call("hosts", *words, "--json")
        wanted = ["gpu01"] if "all" in words[0] else ["gpu02"]
        assert (status, [host["host"] for host in json.loads(out)["hosts"]]) == (0, wanted)


def planned_roles(call: Call, roles: str) -> tuple[set[str], str]:
    """Return the roles whose variables are shown, and standard error."""
    status, out, err = call("vars", "gpu01", "--roles", roles, "--json")
    assert status == 0, err
    return {row["role"] for row in json.loads(out)["variables"]}, err


def test_roles_are_left_out_by_a_sign(site: Path, call: Call) -> None:
    every, _ = planned_roles(call, "base,driver,cuda,cudnn,environment,tensorflow,container")
    without, err = planned_roles(call, "!tensorflow")
    assert (every - without, err) == ({"tensorflow"}, "")
    few, _ = planned_roles(call, "base,driver,cuda,!cuda")
    assert few == {"base", "driver"}


def test_a_role_that_others_need_is_named_where_it_is_left_out(site: Path, call: Call) -> None:
    without, err = planned_roles(call, "!driver")
    assert "driver" not in without and "container" in without
    assert "--roles excludes driver, which is needed by " in err
    assert "; driver is not changed on the hosts" in err


@pytest.mark.parametrize(
    ("roles", "sentence"),
    [
        ("!tensorflov", "--roles: unknown role 'tensorflov'; did you mean 'tensorflow'?"),
        ("base,!base", "--roles: 'base,!base' excludes every role"),
    ],
)
def test_a_slip_behind_the_sign_changes_nothing(site: Path, call: Call, roles: str, sentence: str) -> None:
    status, out, err = call("plan", "gpu01", "--roles", roles)
    assert (status, out, err.strip()) == (2, "", sentence)


def encrypted(site: Path) -> None:
    from tests.unit.common.test_vault import PASSWORD, WHOLE

    (site / "inventory/group_vars").mkdir(exist_ok=True)
    (site / "inventory/group_vars/all.yml").write_text(WHOLE)
    (site / "secrets").mkdir(exist_ok=True)
    (site / "secrets/vault").write_text(PASSWORD + "\n")


@pytest.mark.parametrize(
    "line",
    [
        "vault_password_file = secrets/vault",
        "vault_identity_list = dev@prompt, prod@secrets/vault",
        "vault_identity_list = secrets/vault",
    ],
)
def test_the_vault_password_of_the_sites_ansible_cfg_is_used(site: Path, call: Call, line: str) -> None:
    encrypted(site)
    assert "is encrypted with Ansible Vault" in call("vars", "gpu01")[2]
    (site / "ansible.cfg").write_text(f"[defaults]\n{line}\n")
    status, _, err = call("vars", "gpu01")
    assert (status, err) == (0, "")


def test_an_ansible_cfg_where_everybody_may_write_is_not_read(
    site: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOSTWRIGHT_SITE", str(site))  # otherwise nothing of the site is used
    encrypted(site)
    (site / "ansible.cfg").write_text("[defaults]\nvault_password_file = secrets/vault\n")
    os.chmod(site, 0o777)  # noqa: PTH101, S103 - what is tested
    assert "is encrypted with Ansible Vault" in call("vars", "gpu01")[2]


def test_a_password_file_that_is_not_there_is_named(site: Path, call: Call) -> None:
    encrypted(site)
    (site / "ansible.cfg").write_text("[defaults]\nvault_password_file = secrets/none\n")
    status, _, err = call("vars", "gpu01")
    assert status == 2
    assert f"{site}/secrets/none: cannot be read: No such file or directory" in err
