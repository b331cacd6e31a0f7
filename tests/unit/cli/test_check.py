"""``hostwright check``: the mistakes of a site are found without a host, each with its place, and no others."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from hostwright.cli.tasks.begin import init
from hostwright.cli.tasks.site import check
from hostwright.common.request import Request
from hostwright.plan.roles.role import PARTS
from hostwright.plan.roles.sitecheck import SCHEMA_FILE, json_schema
from tests.places import PROJECT

HOSTS = "all: {children: {rack3: {hosts: {gpu01: {}, gpu02: {}}}}}\n"
ROLE = '''"""A role of this site."""

from collections.abc import Iterator
from dataclasses import dataclass

from hostwright.plan.model import Resource
from hostwright.plan.roles.role import RoleContext, role
from hostwright.resources.files.files import File


@dataclass(frozen=True, slots=True)
class Motd:
    """Its variables."""

    text: str = "welcome"


@role(needs=["base"])
def motd(v: Motd, ctx: RoleContext) -> Iterator[Resource]:
    """What people read when they log in."""
    yield File("/etc/motd", ctx.render("motd/motd.j2", text=v.text))
'''


@dataclass(frozen=True)
class Checked:
    """The result of one check: its status, its document, and the places and messages of its mistakes."""

    status: int
    document: dict[str, Any]

    @property
    def mistakes(self) -> list[tuple[str, int, str]]:
        return [(each["file"], each["line"], each["sentence"]) for each in self.document["mistakes"]]

    @property
    def notes(self) -> list[str]:
        return [each["sentence"] for each in self.document["notes"]]


class MadeSite:
    """A site whose files a test writes."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]):
        self.root = root
        self.capsys = capsys

    def write(self, name: str, text: str) -> None:
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)

    def with_role(self, template: str = "{{ text }}\n", role: str = ROLE) -> None:
        self.write("roles/motd/__init__.py", role)
        self.write("templates/motd/motd.j2", template)
        self.write("inventory/group_vars/all.yml", "hostwright_roles: [base, motd]\n")

    def check(self, *inventory: str, strict: bool = False) -> Checked:
        status = check(Request(inventory=inventory, json=True, strict=strict))
        document = json.loads(self.capsys.readouterr().out)
        jsonschema.validate(document, json.loads(SCHEMA_FILE.read_text("utf-8")))
        return Checked(status, document)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> MadeSite:
    """Return a new site with two hosts, as the working directory."""
    init(Request(), str(tmp_path / "site"))
    capsys.readouterr()
    for name in ("HOSTWRIGHT_SITE", "HOSTWRIGHT_INVENTORY", "ANSIBLE_VAULT_PASSWORD_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path / "site")
    made = MadeSite(tmp_path / "site", capsys)
    made.write("inventory/hosts.yml", HOSTS)
    return made


def test_the_published_schema_is_the_one_of_the_types() -> None:
    assert json.loads(SCHEMA_FILE.read_text("utf-8")) == json_schema()


def test_a_site_without_mistakes_is_as_desired(site: MadeSite) -> None:
    site.with_role()
    found = site.check()
    assert found.status == 0
    assert (found.document["hosts"], found.document["stacks"], found.document["roles"]) == (
        2, ["tensorflow-2.9"], ["motd"],
    )  # fmt: skip
    assert found.mistakes == [] and found.notes == []


def test_a_new_site_has_nothing_wrong_though_it_has_no_hosts_yet(site: MadeSite) -> None:
    site.write("inventory/hosts.yml", "# none yet\n")
    assert site.check().status == 0


def test_this_checkout_is_a_site_without_mistakes(site: MadeSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PROJECT)
    found = site.check()
    assert (found.status, found.mistakes) == (0, [])
    assert len(found.document["stacks"]) > 8


def test_variable_files_are_read(site: MadeSite) -> None:
    site.write("inventory/group_vars/all.yml", "hello {{{{ }}: {{{}}\n")
    found = site.check()
    assert found.status == 2
    assert [(file, line) for file, line, _ in found.mistakes] == [
        ("inventory/group_vars/all.yml", 2)
    ]  # where the closing bracket is missing


def test_all_mistakes_are_found_at_once(site: MadeSite) -> None:
    site.with_role("{{ txt }}\n")
    site.write("roles/motd/failures.py", "FAILURES = (nonsense,)\n")
    site.write("inventory/stacks/ours.yml", "extends: tensorflow-2.9\ndriver: {version: 450.51.06}\n")
    site.write(
        "inventory/host_vars/gpu02.yml", "cuda: {keep_repository: perhaps}\nhostwright_roles: [base, cuda, driver]\n"
    )
    found = site.check()
    assert found.status == 2
    assert [*dict.fromkeys((file, line) for file, line, _ in found.mistakes)] == [
        ("stack ours", 0),
        ("roles/motd/failures.py", 1),
        ("templates/motd/motd.j2", 1),
        ("inventory/host_vars/gpu02.yml", 1),
    ]
    (undefined,) = (sentence for file, _, sentence in found.mistakes if file.endswith(".j2"))
    assert "'txt' is undefined" in undefined


def test_a_stack_that_is_not_there_hides_no_other_mistake_of_its_hosts(site: MadeSite) -> None:
    site.write("inventory/group_vars/all.yml", "stack: tensorflow-9\ncuda: {keep_repository: perhaps}\n")
    found = site.check()
    assert [(file, line) for file, line, _ in found.mistakes] == [
        ("inventory/group_vars/all.yml", 2),
        ("inventory/group_vars/all.yml", 1),
    ]


def test_two_roles_that_cannot_be_imported_are_both_named_and_cause_no_other_mistakes(site: MadeSite) -> None:
    site.with_role(role="def motd(:\n")
    site.write("roles/issue/__init__.py", "import nosuch\n")
    found = site.check()
    assert [(file, line) for file, line, _ in found.mistakes] == [
        ("roles/issue/__init__.py", 1),
        ("roles/motd/__init__.py", 1),
    ]
    assert found.mistakes[1][2].startswith("SyntaxError: ")


PROOFS = """
from pathlib import Path

from hostwright.prove.model import Program, Proof

SOURCE = Path(__file__).with_name("fill.py").read_text("utf-8")


def proofs(variables, host):
    program = Program("fill.py", SOURCE, interpreter=("python3",))
    return (Proof("fill", "motd", program, judge=lambda *_: (), level="quick", time_limit_s=120, needs_gpu=False),)
"""
FILL = "import pathlib, sys\n\npathlib.Path('ran').touch()\nsys.exit(0)\n"


def test_programs_in_a_roles_folder_are_parsed_and_not_run(site: MadeSite) -> None:
    """A proof's program, as in docs/prove.md, and others: only the known parts of a role are imported."""
    site.with_role()
    site.write("roles/motd/proofs.py", PROOFS)
    for name in ("motd/fill.py", "motd/programs/deep.py", "motd/tasks.py", "_shared.py"):
        site.write(f"roles/{name}", FILL)
    found = site.check()
    assert (found.status, found.mistakes) == (0, [])
    assert not (site.root / "ran").exists()
    site.write("roles/motd/programs/deep.py", "def (:\n")
    assert [(file, line) for file, line, _ in site.check().mistakes] == [("roles/motd/programs/deep.py", 1)]


@pytest.mark.parametrize("part", [*PARTS, "__init__"])
@pytest.mark.parametrize("ending", ["raise SystemExit(0)", "import sys; sys.exit()", "raise GeneratorExit", "exit(3)"])
def test_a_part_that_ends_the_program_is_a_mistake_with_its_line(site: MadeSite, part: str, ending: str) -> None:
    site.with_role()
    site.write(f"roles/motd/{part}.py", f"x = 1\n{ending}\n")
    found = site.check()
    assert found.status == 2
    assert (f"roles/motd/{part}.py", 2) in [(file, line) for file, line, _ in found.mistakes]


@pytest.mark.parametrize("ending", ["SystemExit", "GeneratorExit"])
def test_a_role_that_ends_the_program_when_it_is_asked_is_a_mistake(site: MadeSite, ending: str) -> None:
    site.with_role(role=ROLE.replace("    yield File", f"    raise {ending}\n    yield File"))
    found = site.check()
    assert found.status == 2
    assert [file for file, _, _ in found.mistakes] == ["roles/motd/__init__.py"]
    assert ending in found.mistakes[0][2]


def test_a_variable_that_looks_like_a_roles_is_a_note_and_with_strict_a_mistake(site: MadeSite) -> None:
    site.write("inventory/group_vars/all.yml", "cuda_keep_repositry: false\n")
    found = site.check()
    assert found.status == 0
    (note,) = found.notes
    assert note.startswith("inventory/group_vars/all.yml:1:1: 'cuda_keep_repositry' is not read")
    strict = site.check(strict=True)
    assert (strict.status, strict.notes) == (2, [])


def test_an_inventory_program_that_fails_is_not_the_sites_mistake(site: MadeSite) -> None:
    site.write("inventory/cloud", "#!/bin/sh\necho no credentials >&2\nexit 3\n")
    (site.root / "inventory/cloud").chmod(0o755)
    found = site.check()
    assert (found.status, found.mistakes) == (1, [])
    (unread,) = found.document["unread"]
    assert unread["file"] == "inventory/cloud"
    assert "ended with status 3: 'no credentials'" in unread["sentence"]


def test_nobody_is_asked_for_a_password(site: MadeSite, monkeypatch: pytest.MonkeyPatch) -> None:
    def prompt(*_: Any, **__: Any) -> str:
        raise AssertionError("asked for a password")

    monkeypatch.setattr("getpass.getpass", prompt)
    site.write("inventory/group_vars/all.yml", "ansible_host: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  333231\n")
    assert site.check().status == 0


def test_what_is_printed_is_a_line_for_each_mistake_and_the_verdict_last(
    site: MadeSite, capsys: pytest.CaptureFixture[str]
) -> None:
    site.write("inventory/group_vars/all.yml", "stack: tensorflow-9\ncuda_keep_repositry: false\n")
    assert check(Request()) == 2
    note, mistake, verdict = capsys.readouterr().out.splitlines()
    assert note.startswith("note: inventory/group_vars/all.yml:2:1: ")
    assert mistake.startswith("inventory/group_vars/all.yml:1:1: stack: unknown stack 'tensorflow-9'; did you mean ")
    assert verdict == f"{site.root}: 1 mistake (2 hosts, 1 stack, 0 roles of its own)"


def test_a_rule_that_would_never_be_applied_is_a_mistake(site: MadeSite) -> None:
    site.with_role()
    site.write("roles/motd/rules.py", "def known(toolkti: str, kernel: str):\n    return None\n\n\nRULES = (known,)\n")
    ((file, line, sentence),) = site.check().mistakes
    assert (file, line) == ("roles/motd/rules.py", 1)
    assert "has the unknown parameter 'toolkti', so it is never applied" in sentence


def test_a_pattern_that_cannot_be_read_is_named(site: MadeSite) -> None:
    site.with_role()
    rule = "FailureRule('motd-lost', 'motd (lost', 'it is lost', 'find it', 'ours')"
    site.write(
        "roles/motd/failures.py",
        f"from hostwright.audit.failures import FailureRule\n\nFAILURES = ({rule},)\n",
    )
    ((_, _, sentence),) = site.check().mistakes
    assert sentence.startswith("the pattern 'motd (lost' of the failure rule motd-lost is invalid: missing )")


def test_the_roles_of_a_stack_that_no_host_has_are_tried_together(site: MadeSite) -> None:
    site.write("inventory/stacks/ours.yml", "extends: tensorflow-2.9\nroles: [base, container]\n")
    assert [sentence for *_, sentence in site.check().mistakes] == [
        "roles: the role container needs the role driver, which is not in the list; add it"
    ]
