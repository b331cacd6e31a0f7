"""``workspace.up`` for an existing workspace, and mistakes in options, reported before any write."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from hostwright.common.errors import InputError
from hostwright.common.request import Request
from hostwright.standard.roles.workspaces import tasks
from hostwright.standard.roles.workspaces.declared.entries import WorkspaceEntry
from hostwright.standard.roles.workspaces.verbs.changing import FIELDS, change, changed_entry
from hostwright.standard.roles.workspaces.verbs.edit import changed_lines, checked, edited
from tests.unit.roles.workspaces.spaces import AMBIGUOUS

OURS = """\
# Who works where.
all:
  vars:
    workspaces_users: {alice: {uid: 2001}}
  hosts:
    gpu01:
      hostwright_roles: [base, driver, container, workspaces]
      workspaces_containers:
        alice-lab: {user: alice, kind: jupyter, "gpus": [0], share: yes, environment: {TZ: UTC}, mounts: [/d:/d]}
        alice-run:
          user: alice
          kind: batch
          cpus: 8  # she asked for 16
          command: [date]
"""
BEFORE = {"user": "alice", "kind": "jupyter", "gpus": [0], "share": True, "mounts": ["/d:/d"]}
NOT_GIVEN: dict[str, Any] = {
    "user": "", "kind": "", "gpus": "", "share": False, "when_idle": False, "cpus": "", "memory": "", "port": "",
    "mount": [], "env": [], "pull": False, "command": "", "script": "",
}  # fmt: skip


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    (tmp_path / "hosts.yml").write_text("all:\n  hosts:\n    gpu01:\n")
    (tmp_path / "workspaces.yml").write_text(OURS)
    return tmp_path


def up(inventory: Path, name: str, without: tuple[str, ...] = (), **options: Any) -> list[str]:
    """Return the removed and added lines of the file with these options."""
    change(
        Request("gpu01", inventory=(str(inventory),)),
        name,
        lambda before: changed_entry(before, {**NOT_GIVEN, **options}, without),
        provision=False,
    )
    return list(changed_lines(OURS, (inventory / "workspaces.yml").read_text()))


def test_options_that_are_not_given_keep_their_value(inventory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A change of the CPUs keeps the GPU, and a value in YAML 1.1 keeps its notation."""
    assert up(inventory, "alice-lab", cpus="4") == [
        "-" + OURS.splitlines()[8],
        "+" + OURS.splitlines()[8].replace("[/d:/d]}", "[/d:/d], cpus: 4}"),
    ]
    assert "alice-lab changes: cpus none → 4; other fields are kept" in capsys.readouterr().out


@pytest.mark.parametrize("text", [*AMBIGUOUS, "true", "null", "~", "", "a: b", "'", '"', "a #b", "[x]", "$HOME", "ä €"])
def test_a_variable_by_option_is_that_very_text_in_the_file(inventory: Path, text: str) -> None:
    up(inventory, "alice-run", env=[f"V={text}", "TZ=UTC"])
    written = (inventory / "workspaces.yml").read_text()
    assert checked(inventory, "gpu01", written).containers["alice-run"].environment == {"V": text, "TZ": "UTC"}
    assert YAML(typ="safe", pure=True).load(written)["all"]["hosts"]["gpu01"]["workspaces_containers"]["alice-run"][
        "environment"
    ] == {"V": text, "TZ": "UTC"}  # also by YAML 1.2


def test_a_workspace_of_several_lines_keeps_them_and_their_comments(inventory: Path) -> None:
    assert up(inventory, "alice-run", memory="64g") == ["+          memory: 64g"]


def test_shared_memory_that_is_larger_than_the_memory_is_said(
    inventory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    up(inventory, "alice-lab", shm="4g", memory="1g")
    said = " ".join(capsys.readouterr().err.split())
    assert "workspace alice-lab has 4g of shared memory (shm), which counts against its 1g of memory" in said
    up(inventory, "alice-lab", memory="4g")
    assert "shared memory" not in capsys.readouterr().err


def test_what_is_said_already_changes_nothing(inventory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert up(inventory, "alice-run", cpus="8", user="alice", kind="batch") == []
    out = capsys.readouterr().out
    assert "says so already" in out
    assert "changes:" not in out


def test_options_are_taken_back_by_their_names(inventory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, line = up(inventory, "alice-lab", ("gpus", "share", "mount", "env"))
    assert line == "+        alice-lab: {user: alice, kind: jupyter}"
    told = "gpus 0 → none, share yes → none, environment TZ=UTC → none, mounts /d:/d → none"
    assert told in capsys.readouterr().out


@pytest.mark.parametrize(
    ("before", "options", "entry"),
    [
        ({**BEFORE, "port": 25000}, {"port": "auto"}, BEFORE),
        (BEFORE, {"port": "25000"}, {**BEFORE, "port": 25000}),
        (BEFORE, {"mount": ["/e:/e"]}, {**BEFORE, "mounts": ["/e:/e"]}),
        ({**BEFORE, "environment": {"TZ": "UTC"}}, {"env": ["A=b"]}, {**BEFORE, "environment": {"A": "b"}}),
    ],
)
def test_an_option_that_is_given_replaces_what_it_said(
    before: dict[str, Any], options: dict[str, Any], entry: dict[str, Any]
) -> None:
    assert changed_entry(before, {**NOT_GIVEN, **options}) == entry


def test_what_it_does_not_have_is_taken_back_without_a_word() -> None:
    """The same command can be repeated after a failure."""
    assert changed_entry(BEFORE, NOT_GIVEN, ["when-idle"]) == BEFORE


def test_a_batch_run_changes_from_a_command_to_a_script(tmp_path: Path) -> None:
    (tmp_path / "job.sh").write_text("date\n")
    before = {"user": "alice", "kind": "batch", "command": ["date"]}
    entry = changed_entry(before, {**NOT_GIVEN, "script": str(tmp_path / "job.sh")})
    assert entry == {"user": "alice", "kind": "batch", "script": "date\n"}


def test_a_new_one_is_a_jupyter_and_somebodys() -> None:
    assert changed_entry(None, {**NOT_GIVEN, "user": "bob", "cpus": "2"}) == {
        "user": "bob", "kind": "jupyter", "cpus": 2
    }  # fmt: skip
    with pytest.raises(InputError, match=r"^--user: the user is missing"):
        changed_entry(None, {**NOT_GIVEN, "cpus": "2"})


@pytest.mark.parametrize(
    ("options", "without", "sentence"),
    [
        ({}, "gpu", "--without: 'gpu' is not a removable option; did you mean 'gpus'?"),
        ({}, "user", "--without: 'user' is not a removable option"),
        ({"gpus": "1"}, "gpus", "--without: gpus is both set and removed"),
    ],
)
def test_what_cannot_be_taken_back_is_refused(options: dict[str, Any], without: str, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        changed_entry(BEFORE, {**NOT_GIVEN, **options}, [without])
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize(
    ("entry", "mistakes"),
    [
        ({"gpus": [0]}, ["--name b: GPU 0 is given twice: alice-lab has it too"]),
        ({"cpus": "x"}, ["--cpus: found 'x', expected a number"]),
        ({"when_idle": "x"}, ["--when-idle: found 'x'"]),
        (
            {"kind": "jupiter", "mounts": ["/a"], "environment": {"1": "b"}},
            ["--kind: found 'jupiter'", "--mount: found '/a', expected HOST_DIRECTORY", "--env: found '1'"],
        ),
    ],
)
def test_a_mistake_names_the_option_and_nothing_is_written(
    inventory: Path, entry: dict[str, Any], mistakes: list[str]
) -> None:
    """The task has not written the line, so that no file has it."""
    _, after = edited(inventory, "gpu01", "b", {"user": "alice", "kind": "jupyter", **entry})
    with pytest.raises(InputError) as caught:
        checked(inventory, "gpu01", after)
    for line, mistake in zip(str(caught.value).splitlines(), mistakes, strict=True):
        assert line.startswith(mistake)
    assert (inventory / "workspaces.yml").read_text() == OURS


def test_a_mistake_that_was_there_before_is_said_with_its_line_in_the_file(inventory: Path) -> None:
    (inventory / "workspaces.yml").write_text(OURS.replace("cpus: 8 ", "cpus: x "))
    _, after = edited(inventory, "gpu01", "alice-lab", None)
    with pytest.raises(InputError) as caught:
        checked(inventory, "gpu01", after)
    assert str(caught.value).startswith(f"{inventory}/workspaces.yml:13:11: workspaces.containers.alice-run.cpus: ")


def test_a_mistake_at_a_neighbour_names_no_option_that_nobody_gave(inventory: Path) -> None:
    desk = {"user": "alice", "kind": "jupyter", "gpus": [0]}
    document = {
        "all": {
            "vars": {"workspaces_users": {"alice": {}}},
            "hosts": {"gpu01": {"workspaces_containers": {"desk": desk}}},
        }
    }
    (inventory / "workspaces.yml").write_text(json.dumps(document))  # one line, which a change replaces
    _, after = edited(inventory, "gpu01", "carded", desk)
    with pytest.raises(InputError) as caught:
        checked(inventory, "gpu01", after)
    place = f"{inventory}/workspaces.yml"
    assert str(caught.value).startswith(f"{place}: desk: GPU 0 is given twice: carded has it too")


def test_a_long_script_is_written_as_it_is_and_not_shown_whole(
    inventory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A carriage return alone is not a line end: progress bars print it."""
    text = "#!/bin/sh\nprintf 'a\rb'\n" + "QUJD" * 50_000 + "\n" + "\n".join("x" * 200 for _ in range(1000)) + "\n"
    (tmp_path / "long.sh").write_bytes(text.encode())
    up(inventory, "alice-run", script=str(tmp_path / "long.sh"))
    said = capsys.readouterr().out
    assert len(said) < 20_000
    assert "more" in said
    written = (inventory / "workspaces.yml").read_text()
    assert checked(inventory, "gpu01", written).containers["alice-run"].script == text


@pytest.mark.parametrize("given", ["1,2", "2,1", "1, 2"])
def test_two_gpus_are_two(inventory: Path, given: str) -> None:
    """nvidia-docker#1026: the comma was read as the next option, which did not show with one GPU."""
    up(inventory, "alice-run", gpus=given)
    written = (inventory / "workspaces.yml").read_text()
    wanted = tuple(given.replace(" ", "").split(","))
    assert checked(inventory, "gpu01", written).containers["alice-run"].gpus == wanted


@pytest.mark.parametrize("given", ["0,0", "0,00", "0-1", "all", "0 1", ",", " "])
def test_gpus_that_are_no_list_are_refused(inventory: Path, given: str) -> None:
    with pytest.raises(InputError, match="--gpus"):
        up(inventory, "alice-run", gpus=given)
    assert (inventory / "workspaces.yml").read_text() == OURS


def test_every_field_of_a_workspace_is_an_option() -> None:
    """Except a model server's fields, which ``serve.up`` sets."""
    named = {FIELDS.get(name, name) for name in tasks._ENTRY}
    assert named == {each.name for each in fields(WorkspaceEntry)} - {"versions", "live"}
