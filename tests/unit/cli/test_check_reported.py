"""``hostwright check`` on problems that users of ansible, ansible-lint and terraform reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from invoke import Context, Exit

from hostwright.cli.tasks.site import check
from tests.unit.cli.test_check import ROLE, MadeSite, site
from tests.unit.common.test_vault import PASSWORD, WHOLE

__all__ = ["site"]


def test_a_file_that_a_stack_names_and_that_is_missing(site: MadeSite) -> None:
    """ansible/ansible#4699"""
    site.write(
        "inventory/stacks/ours.yml",
        "extends: tensorflow-2.9\ntensorflow: {constraints: {'3.8': nosuch.txt, '3.9': nosuch.txt}}\n",
    )
    found = site.check()
    assert found.status == 2
    assert any("nosuch.txt" in sentence for _, _, sentence in found.mistakes)


def test_no_command_that_fetches_a_secret_is_run(site: MadeSite, tmp_path: Path) -> None:
    """hashicorp/terraform#15811"""
    marks = {name: tmp_path / name for name in ("bmc", "console")}
    site.write(
        "inventory/group_vars/all.yml",
        "hostwright_bmc: https://bmc.example.org\nhostwright_bmc_user: a\n"
        f"hostwright_bmc_password_command: touch {marks['bmc']}\nhostwright_host_keys: touch {marks['console']}\n",
    )
    assert site.check().status == 0
    assert [name for name, mark in marks.items() if mark.exists()] == []


def test_hosts_without_colons(site: MadeSite) -> None:
    """ansible/ansible#43720"""
    site.write("inventory/hosts.yml", "web:\n  hosts:\n    10.0.0.10\n    10.0.0.20\n")
    found = site.check()
    assert found.status == 2
    assert {file for file, _, _ in found.mistakes} == {"inventory/hosts.yml"}


def test_a_key_that_stands_twice(site: MadeSite) -> None:
    """ansible/ansible#16903"""
    site.write("inventory/group_vars/all.yml", "stack: tensorflow-2.9\nansible_user: a\nstack: tensorflow-2.10\n")
    found = site.check()
    assert found.status == 2
    assert [(file, line) for file, line, _ in found.mistakes] == [("inventory/group_vars/all.yml", 3)]


def test_a_group_and_a_host_of_one_name(site: MadeSite) -> None:
    """ansible/ansible#32283"""
    site.write("inventory/hosts.yml", "dev: {hosts: {dev: {}}}\n")
    found = site.check()
    assert (found.status, found.mistakes) == (0, [])


def test_an_encrypted_file_without_its_password_hides_nothing_else(site: MadeSite) -> None:
    """ansible/ansible-lint#3308"""
    site.write("inventory/group_vars/all/vault.yml", WHOLE)
    site.write("inventory/group_vars/all/vars.yml", "ansible_become_password: '{{ vault_become }}'\n")
    found = site.check()
    assert found.status == 0
    assert any("vault.yml" in note and "encrypted" in note for note in found.notes)
    site.write("inventory/group_vars/all/vars.yml", "stack: nosuch\n")
    assert site.check().status == 2


def test_the_password_of_the_vault_from_the_environment(
    site: MadeSite, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """ansible/ansible-lint#2889"""
    (tmp_path / "password").write_text(PASSWORD)
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", str(tmp_path / "password"))
    site.write("inventory/group_vars/all/vault.yml", WHOLE)
    found = site.check()
    assert not any("encrypted" in note for note in found.notes)


def test_a_role_that_raises_when_it_is_asked(site: MadeSite) -> None:
    site.with_role(role=ROLE.replace("    yield File", '    {}["nosuch"]\n    yield File'))
    found = site.check()
    assert found.status == 2
    ((file, line, sentence),) = found.mistakes
    assert (file, line) == ("roles/motd/__init__.py", 21)
    assert sentence == "the role motd fails for gpu[01-02]: KeyError: 'nosuch'"


def test_a_template_that_nobody_uses(site: MadeSite) -> None:
    site.write("templates/motd/other.j2", "a\n{% if x %}\n")
    found = site.check()
    assert [(file, line) for file, line, _ in found.mistakes] == [("templates/motd/other.j2", 2)]


def test_a_check_of_the_site_that_python_cannot_parse(site: MadeSite) -> None:
    site.write("tests/layers/test_motd.py", "def test_motd(host)\n    pass\n")
    assert [(file, line) for file, line, _ in site.check().mistakes] == [("tests/layers/test_motd.py", 1)]


def test_a_tab_in_yaml(site: MadeSite) -> None:
    site.write("inventory/hosts.yml", "all:\n\thosts:\n\t\tgpu01: {}\n")
    found = site.check()
    assert found.status == 2
    assert found.mistakes[0][:2] == ("inventory/hosts.yml", 2)


def test_no_site_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("HOSTWRIGHT_SITE", raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Exit) as ended:
        check(Context(), json=True)
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (2, "")
    assert "no site found" in said.err


BROKEN: dict[str, tuple[dict[str, str], tuple[str, int], str]] = {
    "a stack that extends none": (
        {"inventory/stacks/ours.yml": "description: x\nextends: tensorflow-2.99\n"},
        ("inventory/stacks/ours.yml", 2),
        "unknown stack 'tensorflow-2.99'",
    ),
    "a stack that extends itself": (
        {"inventory/stacks/ours.yml": "extends: ours\n"},
        ("inventory/stacks/ours.yml", 1),
        "in a loop",
    ),
    "a role without a role": (
        {"roles/motd/__init__.py": '"""Nothing."""\n'},
        ("roles/motd/__init__.py", 0),
        "has no @role function",
    ),
    "a role that needs none": (
        {"roles/motd/__init__.py": ROLE.replace('"base"', '"bas"'), "templates/motd/motd.j2": "{{ text }}\n"},
        ("roles/motd", 0),
        "did you mean 'base'?",
    ),
    "a role that yields nothing": (
        {
            "roles/motd/__init__.py": ROLE.replace(
                'yield File("/etc/motd", ctx.render("motd/motd.j2", text=v.text))', "yield None"
            )
        },
        ("roles/motd", 0),
        "yields None, which is not a state; yield instances of Resource",
    ),
    "failures that are none": (
        {
            "roles/motd/__init__.py": ROLE,
            "templates/motd/motd.j2": "{{ text }}\n",
            "roles/motd/failures.py": "FAILURES = [1]\n",
        },
        ("roles/motd", 0),
        "FAILURES contains 1, which is not a FailureRule",
    ),
    "a name that a template is not given": (
        {"roles/motd/__init__.py": ROLE, "templates/motd/motd.j2": "hello\n{{ txt }}\n"},
        ("templates/motd/motd.j2", 2),
        "'txt' is undefined",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_site_is_told_with_its_place(site: MadeSite, what: str) -> None:
    files, place, sentence = BROKEN[what]
    for name, text in files.items():
        site.write(name, text)
    if "roles/motd/__init__.py" in files:
        site.write("inventory/hosts.yml", "all: {hosts: {gpu01: {hostwright_roles: [base, motd]}}}\n")
    found = site.check()
    assert found.status == 2
    assert any((file.rstrip("/"), line) == place and sentence in text for file, line, text in found.mistakes), (
        found.mistakes
    )
