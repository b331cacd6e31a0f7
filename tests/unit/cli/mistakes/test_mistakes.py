"""The mistakes of a typical user: the real command, in its own site, as a user types it.

It exits with 2 (or with the given status), without a traceback, and one sentence describes the mistake, its place, and
the fix. If the fix can be tried, it is applied as printed, and must work. Ctrl-C, and calls that need a terminal, are
in ``test_at_a_terminal.py``.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.unit.cli.mistakes.desk import HOSTS, Desk, Said

CURED = 0


@dataclass(frozen=True)
class Mistake:
    """A call with files of the site, the required words of its message, and the command in the message."""

    line: str
    says: tuple[str, ...]
    cure: str = ""  #: a call after the fix
    cured: int = CURED  #: its exit status: 1 if it then fails to connect to a missing host
    files: Mapping[str, str] = field(default_factory=dict)
    mended: Mapping[str, str] = field(default_factory=dict)  #: the files after the fix in the message
    program: str = "hostwright"
    env: Mapping[str, str] = field(default_factory=dict)
    status: int = 2


YAML = "inventory/hosts.yml"
AUTO = "all:\n  hosts:\n    gpu01: {{{}}}\n"
TYPED = {
    "a host": Mistake("hosts gpu1", ("--hosts", "no host gpu1", "did you mean 'gpu01'?"), "hosts gpu01"),
    "a host among others": Mistake("hosts gpu01,gpu3", ("no host gpu3", "did you mean 'gpu0"), "hosts gpu01,gpu02"),
    "a verb": Mistake("provison gpu01", ("unknown verb 'provison'", "did you mean 'provision'?"), "--help provision"),
    "an option": Mistake(
        "hosts --host gpu01", ("hosts has no option --host", "did you mean --hosts?"), "hosts --hosts gpu01"
    ),
    "an option of a rollout": Mistake(
        "provision gpu01 --max-fails 3", ("no option --max-fails", "did you mean --max-fail?"), "--help provision"
    ),
    "a group": Mistake("hosts @rack", ("--hosts", "unknown group 'rack'", "did you mean 'rack3'?"), "hosts @rack3"),
    "a role": Mistake("vars gpu01 --roles drivr", ("--roles", "did you mean 'driver'?"), "vars gpu01 --roles driver"),
    "a role in the inventory": Mistake(
        "vars gpu01",
        (f"{YAML}:3:", "unknown role 'drivr'", "did you mean 'driver'?"),
        "vars gpu01",
        files={YAML: AUTO.format("hostwright_roles: [base, drivr]")},
        mended={YAML: AUTO.format("hostwright_roles: [base, driver]")},
    ),
    "a stack": Mistake(
        "mirror --stack tensorflow-2.8", ("unknown stack 'tensorflow-2.8'", "did you mean 'tensorflow-2.")
    ),
    "a stack in the inventory": Mistake(
        "vars gpu01",
        (f"{YAML}:3:", "unknown stack 'tensorflow-2.99'", "did you mean 'tensorflow-2.9'?"),
        "vars gpu01",
        files={YAML: AUTO.format("stack: tensorflow-2.99")},
        mended={YAML: AUTO.format("stack: tensorflow-2.9")},
    ),
    "a stack like no other": Mistake(
        "vars gpu01",
        (f"{YAML}:3:", "unknown stack 'house'", "valid: debian-13-r550, hgx-b200, jax-0.12, "),
        files={YAML: AUTO.format("stack: house")},
    ),
    "a variable": Mistake(
        "vars gpu01 --var cuda_keep_repositry=true",
        ("command line", "did you mean 'keep_repository'?"),
        "vars gpu01 --var cuda_keep_repository=true",
    ),
    "a variable in the inventory": Mistake(
        "vars gpu01 --strict",
        (f"{YAML}:3:", "'stak' is not read", "did you mean 'stack'?"),
        "vars gpu01 --strict",
        files={YAML: AUTO.format("stak: tensorflow-2.9")},
        mended={YAML: AUTO.format("stack: tensorflow-2.9")},
    ),
    "a variable without a value": Mistake("vars gpu01 --var cuda", ("--var", "KEY=VALUE", "'cuda'")),
    "--hosts forgotten": Mistake(
        "plan", ("--hosts gpu01,gpu02", "--hosts @group", "--hosts all"), "plan --hosts all", 1
    ),
    "--hosts without a value": Mistake("plan --hosts", ("--hosts needs a value", "gpu01")),
    "hosts with a comma and a space": Mistake(
        "hosts --hosts gpu01, gpu02", ("--hosts", "gpu02", "--hosts gpu01,gpu02"), "hosts --hosts gpu01,gpu02"
    ),
    "hosts behind invoke": Mistake("hosts gpu01 gpu02", ("invoke hosts --hosts gpu01,gpu02",), program="invoke"),
    "a dash of a text processor": Mistake(
        "hosts —hosts gpu01", ("—hosts", "dash", "did you mean --hosts"), "hosts --hosts gpu01"
    ),
    "a short dash of one": Mistake("hosts –-hosts=gpu01", ("–-hosts", "did you mean --hosts="), "hosts --hosts=gpu01"),
    "its quotes": Mistake(
        "hosts --hosts “gpu01,gpu02”", ("quotes", "did you mean 'gpu01,gpu02'?"), "hosts --hosts 'gpu01,gpu02'"
    ),
    "an inventory": Mistake(
        "hosts --inventory fleet.yml", ("fleet.yml", "no such inventory", "--inventory"), "hosts --inventory inventory"
    ),
    "a tab in YAML": Mistake(
        "hosts",
        (f"{YAML}:3:1:", "indent with spaces, not with a tab"),
        "hosts",
        files={YAML: "all:\n  hosts:\n\tgpu01: {}\n"},
        mended={YAML: "all:\n  hosts:\n    gpu01: {}\n"},
    ),
    "an empty inventory": Mistake(
        "plan gpu01",
        ("no hosts yet", YAML, "all: {hosts: {gpu01: "),
        "hosts",
        files={YAML: "# nothing yet\n"},
        mended={YAML: "all: {hosts: {gpu01: {ansible_host: 192.0.2.11}}}\n"},
    ),
    "Windows line ends of a program": Mistake(
        "hosts --inventory cloud", ("cloud", "Windows", "sed -i"), files={"cloud!": "#!/bin/sh\r\necho '{}'\r\n"}
    ),
    "a plan that cannot be written": Mistake(
        "plan gpu01 --out nowhere/plan",
        ("nowhere/plan", "cannot be written", "No such file or directory"),
        "plan gpu01 --out plan",
        1,
    ),
    "a password where there is no terminal": Mistake(
        "plan gpu01 --ask-become-pass", ("--ask-become-pass", "no terminal", "ansible_become_password"), "plan gpu01", 1
    ),
    "a yes where there is no terminal": Mistake(
        "remove gpu01",
        ("`remove` removes layers", "no terminal exists to ask on", "--yes"),
        "remove gpu01 --yes",
        1,
    ),
    "a cycle where there is no terminal": Mistake("power cycle gpu01", ("`power cycle` ends all", "--yes")),
    "a Python that is none": Mistake("mirror --pythons 3.9.2", ("--pythons", "'3.9.2'", "3.9,3.10")),
    "a Python that no host takes wheels for": Mistake("mirror --pythons 3.9", ("Python 3.9", "wheels_from: mirror")),
    "a system that is none": Mistake(
        "mirror --systems debian12", ("--systems", "'debian12'", "debian-12:6.1.0-28-amd64")
    ),
    "sources that are no file": Mistake("mirror --sources nowhere", ("--sources", "nowhere", "not a file")),
    "a mirror that is no directory": Mistake("mirror --from nowhere", ("nowhere", "directory")),
    "an option in hostwright.toml": Mistake(
        "hosts",
        ("hostwright.toml:2", "max-fial", "did you mean 'max-fail'?"),
        "hosts",
        files={"hostwright.toml": "[options]\nmax-fial = 1\n"},
        mended={"hostwright.toml": "[options]\nmax-fail = 1\n"},
    ),
    "a variable of the environment": Mistake(
        "hosts", ("HOSTWRIGHT_JSON", "'maybe'", "expected 1 or 0"), env={"HOSTWRIGHT_JSON": "maybe"}
    ),
    "a site that is none": Mistake(
        "hosts --site nowhere", ("nowhere", "is not a site", "inventory/"), "hosts --site ."
    ),
}


def told(said: Said, says: tuple[str, ...], status: int = 2) -> None:
    """Check that the message is one sentence with all of these words, and check the exit status."""
    assert said.status == status, said
    assert [part for part in says if part not in said.err] == [], said.err
    assert said.sentences == 1, said.err


@pytest.mark.parametrize("what", TYPED)
def test_one_sentence_mends_it(desk: Desk, what: str) -> None:
    mistake = TYPED[what]
    for name, text in mistake.files.items():
        desk.write(name.rstrip("!"), text, executable=name.endswith("!"))
    said = desk.types(mistake.line, program=mistake.program, env=mistake.env)
    told(said, mistake.says, mistake.status)
    assert said.out == ""
    for name, text in mistake.mended.items():
        desk.write(name, text)
    if mistake.cure:
        assert desk.types(mistake.cure).status == mistake.cured


def test_windows_line_ends_of_an_inventory_are_no_mistake(desk: Desk) -> None:
    desk.write(YAML, HOSTS.replace("\n", "\r\n"))
    assert desk.types("hosts").out.endswith("\n2 hosts: gpu[01-02]\n")


def test_the_cure_of_windows_line_ends_is_a_command_that_works(desk: Desk) -> None:
    desk.write("cloud", '#!/bin/sh\r\necho \'{"all": {"hosts": ["gpu07"]}}\'\r\n', executable=True)
    sentence = desk.types("hosts --inventory cloud").err
    subprocess.run(["/bin/sh", "-c", sentence.split("`")[1]], cwd=desk.site, check=True)
    assert "gpu07" in desk.types("hosts --inventory cloud").out


def test_outside_of_a_site(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "else").mkdir()
    told(desk.types("hosts", where=tmp_path / "else"), ("no site found", "hostwright init DIR", "--site DIR"))
    assert desk.types(f"hosts --site {desk.site}", where=tmp_path / "else").status == CURED


# ---------------------------------------------------------------- rights and room


def unreadable_inventory(desk: Desk) -> str:
    (desk.site / YAML).chmod(0)
    return "hosts"


def unwritable_mirror(desk: Desk) -> str:
    (desk.folder / "mirror").mkdir(mode=0o500)
    return "mirror"


def unwritable_report(desk: Desk) -> str:
    (desk.site / "reports").mkdir(mode=0o500)
    return "audit gpu01 --html reports/audit.html"


RIGHTS: dict[Callable[[Desk], str], tuple[int, tuple[str, ...]]] = {
    unreadable_inventory: (2, (f"{YAML}", "Permission denied")),
    unwritable_mirror: (1, ("/mirror", "Permission denied", "HOSTWRIGHT_ARTIFACTS")),
    unwritable_report: (2, ("--html", "/reports", "cannot be written to")),
}


@pytest.mark.parametrize("make", RIGHTS, ids=lambda make: make.__name__)
def test_no_rights(desk: Desk, make: Callable[[Desk], str]) -> None:
    status, says = RIGHTS[make]
    said = desk.types(make(desk), bound=True, env={"HOSTWRIGHT_ARTIFACTS": str(desk.folder / "mirror")})
    told(said, says, status)


def test_a_state_directory_that_is_read_only_ends_no_run(desk: Desk) -> None:
    """One sentence reports that nothing can be recorded, before the results of the hosts."""
    desk.state.mkdir(mode=0o500)
    said = desk.types("verify gpu01", bound=True)
    first, second = said.err.splitlines()
    assert first.startswith(f"the record of this run cannot be written: {desk.state}/runs: Permission denied")
    assert "refuses the connection" in second
    assert said.status == 1


@pytest.mark.parametrize("words", ["--help", "hosts", "hosts --json", "stacks"])
def test_a_full_disk_under_the_output(desk: Desk, words: str) -> None:
    with Path("/dev/full").open("w") as full:
        said = desk.types_into(full, words)
    told(said, ("standard output", "No space left on device", "free some space"), 1)


def test_no_network(desk: Desk) -> None:
    """The address has a port of an earlier program, on which nothing listens."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        entry = f"ansible_host: 127.0.0.1, ansible_port: {closed.getsockname()[1]}"
        desk.write(YAML, AUTO.format(entry))
        told(desk.types("plan gpu01"), ("gpu01", "127.0.0.1", "refuses the connection", "is sshd running there?"), 1)


def test_a_foreign_invoke(desk: Desk, tmp_path: Path) -> None:
    """Its environment does not contain Hostwright."""
    (tmp_path / "without/hostwright").mkdir(parents=True)
    (tmp_path / "without/hostwright/__init__.py").write_text("raise ImportError('No module named hostwright')\n")
    said = desk.types("plan", program="invoke", env={"PYTHONPATH": str(tmp_path / "without")})
    told(said, (f"this `invoke` belongs to {sys.executable}", ". .venv/bin/activate", "call `hostwright`"))
