"""Foreign directories: no file in them is run because it is in the working directory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from hostwright.cli.program import program
from hostwright.common.errors import InputError
from hostwright.common.input import ownership
from hostwright.common.input.ownership import NotTrusted, fault_below, fault_of
from hostwright.plan.roles.site import STANDARD, Site
from hostwright.plan.targets import Roster
from tests.places import PROJECT

ROLE = """
from dataclasses import dataclass
from hostwright.plan.roles.role import RoleContext, role

@dataclass(frozen=True)
class Evil:
    pass

@role()
def evil(v: Evil, ctx: RoleContext):
    yield from ()
"""
TASKS = (
    "from invoke import Collection, task\n\n@task\ndef gain(c):\n    '''Gain.'''\n\nnamespace = Collection({}gain)\n"
)
#: kind of file that could be run → its text; MARK is code that records the kind
FORMS = {
    "tasks.py": f"MARK\n{TASKS.format('')}",
    "invoke.py": "MARK\n",
    "yaml.py": "MARK\n",
    "rich.py": "MARK\n",
    "pytest.py": "MARK\n",
    "sitecustomize.py": "MARK\n",
    "roles/evil/__init__.py": f"MARK\n{ROLE}",
    "roles/evil/failures.py": "MARK\nFAILURES = ()\n",
    "roles/evil/tasks.py": f"MARK\n{TASKS.format(chr(34) + 'evil' + chr(34) + ', ')}",
    "roles/_shared.py": "MARK\n",
    "inventory/hosts": "#!/bin/sh\nSHELL\necho '{}'\n",
    "inventory/group_vars/all.yml": "hostwright_become_password_command: SHELL; echo x\nansible_host: 127.0.0.1\n"
    "ansible_port: 1\nansible_ssh_common_args: -o ProxyCommand='SHELL'\n",
    "other/hosts": "#!/bin/sh\nSHELL\necho '{}'\n",
    "ansible.cfg": "[defaults]\ninventory = other/hosts\n",
    "vault.sh": "#!/bin/sh\nSHELL\necho x\n",
    "hostwright.toml": "[options]\nnotify = 'SHELL'\nvault-password-file = 'vault.sh'\n",
    "tests/layers/test_base.py": "MARK\n",
    "tests/layers/conftest.py": "MARK\n",
}
PROGRAMS = ("inventory/hosts", "other/hosts", "vault.sh")
CALLS = (
    ["--help"],
    ["--help", "plan"],
    ["--version"],
    ["--list"],
    ["completion", "bash"],
    ["--complete-words", ""],
    ["--complete-words", "gain", ""],
    ["--complete-line", "hostwright plan --hosts "],
    ["--complete", "--", "hostwright plan"],
    ["init", "new"],
    ["hosts"],
    ["check"],
    ["plan", "gpu01", "--inventory", "gpu01,"],
    ["verify", "gpu01"],
    ["run", "gpu01", "--", "true", "--site", "."],
    ["gain"],
    ["evil.gain"],
    ["gain", "--help"],
    ["help", "gain"],
)


def plant(root: Path, marks: Path) -> Path:
    """Write a site with every kind of file. It is trusted until an owner or a mode changes."""
    marks.mkdir(parents=True)
    for form, text in FORMS.items():
        mark = marks / form.replace("/", ":")
        code = f"open({str(mark)!r}, 'w').close()"
        file = root / form
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace("MARK", code).replace("SHELL", f"touch {mark}"))
        file.chmod(0o755 if form in PROGRAMS else 0o644)
    return root


@pytest.fixture
def away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory outside any site; executed files record their kind in ``marks`` there."""
    monkeypatch.delenv("HOSTWRIGHT_SITE", raising=False)
    monkeypatch.setenv("HOSTWRIGHT_STATE", str(tmp_path / "state"))
    tmp_path.chmod(0o755)
    return tmp_path


def call(place: Path, words: list[str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hostwright", *words]
    env = {**os.environ, "PYTHONPATH": str(PROJECT), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, check=False, timeout=120)


def ran(away: Path) -> list[str]:
    return sorted(path.name for path in (away / "marks").iterdir())


def in_a_writable_site(away: Path) -> Path:
    root = plant(away / "site", away / "marks")
    root.chmod(0o777)
    return root


def below_a_directory_like_tmp(away: Path) -> Path:
    root = plant(away / "tmp", away / "marks")
    root.chmod(0o1777)
    (root / "mine/deep").mkdir(parents=True, mode=0o755)
    return root / "mine/deep"


@pytest.mark.parametrize("place", [in_a_writable_site, below_a_directory_like_tmp])
@pytest.mark.parametrize("words", CALLS, ids=" ".join)
def test_nothing_is_run_of_a_site_where_others_may_write(
    away: Path, words: list[str], place: Callable[[Path], Path]
) -> None:
    here = place(away)
    done = call(here, words)
    assert ran(away) == []
    root = here if here.name == "site" else here.parents[1]
    if words[0] in {"hosts", "check", "plan", "verify", "gain", "evil.gain"} and "--help" not in words:
        assert done.returncode == 2
        assert f"{root}: others may write to it (mode {root.stat().st_mode & 0o7777:o})" in done.stderr
        assert f"pass --site {root}" in done.stderr
        assert f"export HOSTWRIGHT_SITE={root}" in done.stderr
    elif words[:1] == ["completion"]:
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("words", [one for one in CALLS if one[0] not in {"hosts", "check", "verify"}], ids=" ".join)
def test_questions_run_nothing_of_a_trusted_site(away: Path, words: list[str]) -> None:
    if words[0] in {"--list", "gain", "evil.gain", "plan", "run"} and "--help" not in words:
        words = ["--help", *words]
    done = call(plant(away / "site", away / "marks"), words)
    assert ran(away) == []
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("named", ["--site", "HOSTWRIGHT_SITE", "its owner"])
def test_a_site_that_was_named_or_is_ones_own_is_run(away: Path, monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    root = in_a_writable_site(away)
    words, here = ["hosts"], away
    if named == "--site":
        words = ["hosts", "--site", "site"]
    elif named == "HOSTWRIGHT_SITE":
        monkeypatch.setenv("HOSTWRIGHT_SITE", str(root))
    else:
        root.chmod(0o755)
        here = root
    call(here, words)
    assert {"tasks.py", "invoke.py", "roles:evil:__init__.py", "inventory:hosts", "roles:evil:tasks.py"} <= {*ran(away)}
    assert not {"yaml.py", "rich.py", "pytest.py", "sitecustomize.py", "roles:_shared.py"} & {*ran(away)}


PARTS = [form for form in FORMS if form.partition("/")[0] not in {"other"}]


@pytest.mark.parametrize("part", [*PARTS, "roles", "roles/evil", "inventory", "inventory/group_vars", "tests/layers"])
def test_one_part_that_others_may_write_to_is_enough(away: Path, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    root = plant(away / "site", away / "marks")
    monkeypatch.chdir(root)
    assert Site.find() == Site(root)
    (root / part).chmod(0o666 if (root / part).is_file() else 0o777)
    with pytest.raises(NotTrusted) as error:
        _again()
    assert str(root / part) in str(error.value)


def _again() -> Site:
    """Search for the site as a new process would."""
    from hostwright.plan.roles import site

    site._check_trust.cache_clear()
    return Site.find()


@pytest.mark.parametrize("part", ["", *FORMS, "roles/evil", "inventory/group_vars", ".."])
def test_what_belongs_to_somebody_else_is_not_run(away: Path, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    root = plant(away / "site", away / "marks")
    monkeypatch.chdir(root)
    theirs = (root / part).resolve()
    _owned_by_another(monkeypatch, theirs)
    if part.startswith("other/"):  # a file that ansible.cfg names, so its owner trusts it
        assert _again() == Site(root)
        return
    with pytest.raises(NotTrusted, match=rf"{theirs}: belongs to \w+ \(uid \d+\)|{theirs}: belongs to uid \d+"):
        _again()


def _owned_by_another(monkeypatch: pytest.MonkeyPatch, *theirs: Path) -> None:
    real = ownership._fault

    def fault(place: str, found: os.stat_result, *, passed: bool = False) -> str:
        if Path(place) in theirs:
            values = list(found)
            values[4] = os.geteuid() + 4711  # st_uid
            found = os.stat_result(values)
        return real(place, found, passed=passed)

    monkeypatch.setattr(ownership, "_fault", fault)


def test_a_link_into_a_foreign_directory_is_followed(away: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every directory on the way of a link is checked, not only the last one."""
    root = plant(away / "site", away / "marks")
    theirs, mine = away / "theirs", away / "mine"
    shutil.move(root / "roles", mine)
    theirs.mkdir()
    (theirs / "roles").symlink_to(mine)
    (root / "roles").symlink_to("../theirs/roles")
    monkeypatch.chdir(root)
    assert _again() == Site(root)
    theirs.chmod(0o777)
    with pytest.raises(NotTrusted, match=f"{theirs}: others may write to it"):
        _again()


def test_a_link_to_a_foreign_site_is_that_site(away: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = in_a_writable_site(away)
    (away / "nice").symlink_to(root)
    monkeypatch.chdir(away / "nice")
    with pytest.raises(NotTrusted):
        _again()


def test_one_s_own_directory_below_one_like_tmp_is_trusted(away: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (away / "tmp").mkdir()
    (away / "tmp").chmod(0o1777)
    root = plant(away / "tmp/site", away / "marks")
    monkeypatch.chdir(root)
    assert _again() == Site(root)
    (away / "tmp").chmod(0o777)  # anybody may replace it
    with pytest.raises(NotTrusted, match=r"tmp: others may write to it \(mode 777\)"):
        _again()


@pytest.mark.parametrize(
    ("group", "home", "trusted"),
    [
        (("alice", []), 70, True),
        (("alice", ["alice"]), 70, True),
        (("alice", ["mallory"]), 70, False),
        (("ops", []), 70, False),
        (("alice", []), 100, False),
    ],
)
def test_a_group_of_one_person_is_nobody_else(
    monkeypatch: pytest.MonkeyPatch, group: tuple[str, list[str]], home: int, trusted: bool
) -> None:
    def user(name: str) -> SimpleNamespace:
        if name != "alice":
            raise KeyError
        return SimpleNamespace(pw_name=name, pw_uid=os.geteuid(), pw_gid=home)

    ownership._is_private.cache_clear()
    monkeypatch.setattr(ownership.grp, "getgrgid", lambda gid: SimpleNamespace(gr_name=group[0], gr_mem=group[1]))
    monkeypatch.setattr(ownership.pwd, "getpwnam", user)
    assert ownership._is_private(70) is trusted
    ownership._is_private.cache_clear()


def test_an_access_list_makes_a_private_group_one_of_others(away: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With an access list, the group bits are the mask for its further users."""
    (away / "file").touch()
    (away / "file").chmod(0o664)
    monkeypatch.setattr(ownership, "_is_private", lambda _: True)
    monkeypatch.setattr(os, "getxattr", lambda *_: b"acl")
    assert "others may write to it (mode 664)" in fault_of(away / "file")
    monkeypatch.delattr(os, "getxattr")  # as on macOS
    assert fault_of(away / "file") == ""


def test_under_sudo_the_caller_counts_as_oneself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_UID", "4711")
    for effective, ours in ((0, {0, 4711}), (1000, {0, 1000})):
        ownership._ours.cache_clear()
        monkeypatch.setattr(os, "geteuid", lambda effective=effective: effective)
        assert ownership._ours() == ours
    ownership._ours.cache_clear()


def test_this_checkout_is_trusted_by_whoever_runs_it(away: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PROJECT / "docs")
    _owned_by_another(monkeypatch, PROJECT)
    assert _again() == Site(PROJECT)


def test_a_program_that_the_settings_name_in_the_site_is_judged_too(
    away: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = plant(away / "site", away / "marks")
    (root / "secrets").mkdir()
    shutil.move(root / "vault.sh", root / "secrets/vault.sh")
    (root / "hostwright.toml").write_text("[options]\nvault-password-file = 'secrets/vault.sh'\n")
    (root / "secrets").chmod(0o777)
    monkeypatch.chdir(root)
    with pytest.raises(SystemExit) as end:
        program.run(["hostwright", "hosts"])
    assert end.value.code == 2
    assert "hostwright.toml:2: vault-password-file: " in capsys.readouterr().err
    assert not (away / "marks/vault.sh").exists()


def test_nobody_is_told_to_name_a_site_where_others_may_write(away: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = plant(away / "site", away / "marks")
    monkeypatch.chdir(away)
    with pytest.raises(InputError, match="did you mean --site site"):
        Site.find()
    root.chmod(0o777)
    with pytest.raises(InputError, match="no site found") as error:
        Site.find()
    assert "--site site" not in str(error.value)


def test_control_characters_of_a_name_are_not_shown(away: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = away / "a\x1b[2Jb\nc"
    plant(root, away / "marks").chmod(0o777)
    monkeypatch.chdir(root)
    with pytest.raises(NotTrusted) as error:
        _again()
    assert str(error.value).isprintable()


# --- a named inventory ---


@pytest.mark.parametrize(
    "beside", ["group_vars/all.yml", "host_vars/gpu01.yml", "stacks/tensorflow-2.9.yml", "roles/x.py"]
)
@pytest.mark.parametrize("named", ["hosts.yml", "gpu01,"])
def test_what_lies_beside_a_named_inventory_was_not_named(
    away: Path, monkeypatch: pytest.MonkeyPatch, beside: str, named: str
) -> None:
    folder = away / "tmp"
    (folder / beside).parent.mkdir(parents=True)
    (folder / beside).write_text("{}\n" if beside.endswith("yml") else "")
    (folder / "hosts.yml").write_text("all: {hosts: {gpu01: {}}}\n")
    monkeypatch.chdir(folder)
    assert Roster.load(Path(named)).inventory.hosts.keys() == {"gpu01"}
    folder.chmod(0o1777)
    with pytest.raises(
        InputError, match=f"change {Path(beside).parent}/ beside the inventory: {folder}: others may write to it"
    ):
        Roster.load(Path(named))


def test_an_inventory_alone_in_a_directory_like_tmp_is_read(away: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that another user adds beside it later are not read."""
    folder = away / "tmp"
    folder.mkdir()
    folder.chmod(0o1777)
    (folder / "hosts.yml").write_text("all: {hosts: {gpu01: {}}}\n")
    monkeypatch.chdir(folder)
    roster = Roster.load(Path("hosts.yml"))
    assert roster.site == Site(STANDARD)
    assert roster.site.role_packages == ("hostwright.standard.roles",)
    assert roster.stack_dirs == (STANDARD / "inventory/stacks", STANDARD / "stacks")


def test_a_directory_that_was_named_is_named_with_all_that_it_holds(
    away: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = plant(away / "site", away / "marks")
    (root / "inventory").chmod(0o777)
    monkeypatch.chdir(away)
    with pytest.raises(NotTrusted):  # the surrounding site was not
        Roster.load(root / "inventory")
    (root / "tasks.py").unlink()
    shutil.rmtree(root / "roles")
    Roster.load(root / "inventory")
    assert "inventory:hosts" in ran(away)


# --- parsed verbs ---

SITE = '''
import other_module
from invoke import Collection, task
from hostwright.cli.tasks import VERBS

raise SystemExit("help and completion run nothing")


@task(help={"rack": "which rack"}, iterable=["tag"])
def racks(c, rack="r1", tag=None, dry=False):
    """Show the racks of this site. And more."""


@task(name="power-all", default=made_up())
def power(c, how):
    """Power."""


inner = Collection("store", power)
namespace = Collection(*VERBS, racks, inner, Collection("deep", racks))
'''


def test_a_sites_own_verbs_are_known_as_they_are_written(
    away: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = away / "site"
    (root / "inventory").mkdir(parents=True)
    (root / "tasks.py").write_text(SITE)
    monkeypatch.chdir(root)
    assert program.candidates(["rac"]) == ["racks"]
    assert program.candidates(["store."]) == ["store.power-all"]
    assert program.candidates(["deep."]) == ["deep.racks"]
    assert {"--dry", "--rack", "--tag"} <= {*program.candidates(["racks", "--"])}
    for words in (["--help"], ["racks", "--help"]):
        with pytest.raises(SystemExit) as end:
            program.run(["hostwright", *words])
        assert not end.value.code
    out = capsys.readouterr().out
    assert "Show the racks of this site" in out
    assert "which rack" in out


def test_a_word_that_only_looks_like_a_question_runs_the_verb(
    away: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = away / "site"
    (root / "inventory").mkdir(parents=True)
    (root / "tasks.py").write_text("from invoke import task\n\n@task\ndef say(c, what):\n    print(what, 'is said')\n")
    monkeypatch.chdir(root)
    program.run(["hostwright", "say", "--what", "-V"])
    assert capsys.readouterr().out == "-V is said\n"


def test_a_module_beside_tasks_is_imported_and_shadows_nothing(
    away: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = away / "site"
    (root / "inventory").mkdir(parents=True)
    (root / "our_racks_of_this_test.py").write_text("RACKS = 'rack3'\n")
    (root / "wave.py").write_text("raise AssertionError\n")
    (root / "tasks.py").write_text(
        "import wave\nfrom invoke import task\n\n@task\ndef racks(c):\n"
        "    from our_racks_of_this_test import RACKS\n    print(RACKS)\n"
    )
    monkeypatch.chdir(root)
    before = list(sys.path)
    program.run(["hostwright", "racks"])
    assert capsys.readouterr().out == "rack3\n"
    assert sys.path == before


@pytest.mark.parametrize("ending", ["raise SystemExit(0)", "import sys; sys.exit()", "raise GeneratorExit"])
def test_tasks_that_end_the_program_are_a_mistake_with_its_line(
    away: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ending: str
) -> None:
    root = away / "site"
    (root / "inventory").mkdir(parents=True)
    (root / "tasks.py").write_text(f"x = 1\n{ending}\n")
    monkeypatch.chdir(root)
    with pytest.raises(SystemExit) as end:
        program.run(["hostwright", "check"])
    assert end.value.code == 2
    assert "tasks.py:2: " in capsys.readouterr().err


def test_the_real_tmp() -> None:
    assert fault_of(Path("/")) == ""
    assert fault_below(Path("/nonexistent")) == "/nonexistent: cannot be checked: No such file or directory"
