"""The workspace tasks: changes of the inventory, refusals, and display of hosts' answers."""

from __future__ import annotations

import re
import shlex
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hostwright.common.errors import InputError, InputErrors
from hostwright.fleet import Fleet
from hostwright.inventory import load
from hostwright.plan.model import Answer, Facts
from hostwright.standard.roles.container.running import LOCAL_DOCKER
from hostwright.standard.roles.workspaces import tasks
from hostwright.standard.roles.workspaces.declared.images import TENSORFLOW
from hostwright.standard.roles.workspaces.declared.workspace import workspaces_of
from hostwright.standard.roles.workspaces.states.facts import WORKSPACES_PROBE, read_workspaces
from hostwright.standard.roles.workspaces.verbs.changing import entry_of
from hostwright.standard.roles.workspaces.verbs.edit import alone, changed_lines, checked, edited, written
from hostwright.standard.roles.workspaces.verbs.listing import table
from hostwright.standard.roles.workspaces.verbs.queries import COLUMNS, ListedWorkspace, exec_script, rows_of, total_of
from tests.unit.cli.shell.test_advice import whole
from tests.unit.roles.workspaces.spaces import CARD, DECLARED, RECORDED, recorded

WAITS = f"queued: batch run bob-train has {CARD}"
OURS = """\
# Who works where. Ask Dana before you give out gpu02.
all:
  vars:
    workspaces_users:
      alice: {uid: 2001}  # until March
  hosts:
    gpu01:
      workspaces_containers:
        # the old one
        alice-lab: {user: alice, kind: jupyter, "gpus": [0]}
"""


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    (tmp_path / "hosts.yml").write_text("all:\n  hosts:\n    gpu01:\n    gpu02:\n")
    (tmp_path / "workspaces.yml").write_text(OURS)
    return tmp_path


def test_a_file_that_cannot_be_read_takes_nobodys_workspace_away(inventory: Path) -> None:
    roles = "hostwright_roles: [base, driver, container, workspaces]"
    (inventory / "hosts.yml").write_text(f"all: {{hosts: {{gpu01: {{{roles}}}}}}}\n")
    assert Fleet.load(inventory).targets("gpu01")
    (inventory / "workspaces.yml").write_text(OURS + "  : [\n")
    with pytest.raises(
        InputErrors, match=r"workspaces\.yml:\d+:\d+: .*hosts with this role are not changed until it can be read"
    ):
        Fleet.load(inventory).targets("gpu01")
    (inventory / "hosts.yml").write_text("all: {hosts: {gpu01: {hostwright_roles: [base]}}}\n")
    assert Fleet.load(inventory).targets("gpu01")  # a host without the role is not affected


def test_many_that_write_the_file_at_once_lose_none(inventory: Path) -> None:
    def write(number: int) -> None:
        with alone(inventory):
            before, after = edited(inventory, "gpu01", f"run-{number}", {"user": "alice", "kind": "jupyter"})
            written(inventory, before, after)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(24)))
    there = checked(inventory, "gpu01", (inventory / "workspaces.yml").read_text()).containers
    assert {f"run-{number}" for number in range(24)} < set(there)


def test_a_workspace_is_one_line_more_and_every_comment_stays(inventory: Path) -> None:
    entry = entry_of({"user": "alice", "kind": "jupyter", "gpus": "1", "cpus": "8", "port": "auto", "mount": ["/d:/d"]})
    before, after = edited(inventory, "gpu01", "alice-two", entry)
    assert before == OURS
    assert list(changed_lines(before, after)) == [
        "+        alice-two: {user: alice, kind: jupyter, gpus: [1], cpus: 8, mounts: [/d:/d]}"
    ]
    assert checked(inventory, "gpu01", after).containers["alice-two"].cpus == 8
    written(inventory, before, after)
    _, back = edited(inventory, "gpu01", "alice-two", None)
    assert back == OURS


@given(st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1), min_size=1, max_size=4))
@example(["yes", "on", "1:30", "0x10", "~", "2026-11-23", "a, b", "#", "{x}", "1e3", "null", "=", "é\u2028", "-"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_words_of_a_command_are_read_as_they_were_written(inventory: Path, words: list[str]) -> None:
    _, after = edited(inventory, "gpu01", "run", {"user": "alice", "kind": "batch", "command": words})
    assert list(checked(inventory, "gpu01", after).containers["run"].command) == words


@pytest.mark.parametrize(("deep", "dash"), [(2, 0), (2, 2), (4, 0), (4, 2), (4, 4)])
def test_lines_that_nobody_changed_stay_as_deep_as_they_are(inventory: Path, deep: int, dash: int) -> None:
    step, item = " " * deep, " " * dash
    text = f"all:\n{step}hosts:\n{step * 2}gpu01:\n{step * 3}workspaces_containers:\n{step * 4}alice-lab:\n"
    text += f"{step * 5}user: alice\n{step * 5}kind: jupyter\n{step * 5}gpus:\n"
    text += f"{step * 5}{item}- 0\n{step * 5}{item}- 1\n"
    text += f"{step}vars:\n{step * 2}workspaces_users:\n{step * 3}alice: {{uid: 2001}}\n"
    (inventory / "workspaces.yml").write_text(text)
    before, after = edited(inventory, "gpu01", "alice-two", {"user": "alice", "kind": "jupyter"})
    assert list(changed_lines(before, after)) == [f"+{step * 4}alice-two: {{user: alice, kind: jupyter}}"]


def test_a_host_that_the_file_does_not_name_yet(inventory: Path) -> None:
    _, after = edited(inventory, "gpu02", "a", {"user": "alice", "kind": "jupyter"})
    assert list(checked(inventory, "gpu02", after).containers) == ["a"]
    (inventory / "workspaces.yml").unlink()
    before, fresh = edited(inventory, "gpu02", "a", {"user": "alice", "kind": "jupyter"})
    assert (before, fresh.splitlines()[0]) == ("", "all:")


def test_variables_are_given_as_docker_takes_them(inventory: Path) -> None:
    """``--env NAME`` alone would take this machine's value in `docker run`, which the file would not show."""
    entry = entry_of({"user": "alice", "kind": "jupyter", "env": ["TZ=Europe/Berlin", "A=b=c"]})
    before, after = edited(inventory, "gpu01", "alice-two", entry)
    assert "environment: {TZ: Europe/Berlin, A: b=c}" in "".join(changed_lines(before, after))
    assert checked(inventory, "gpu01", after).containers["alice-two"].environment == {"TZ": "Europe/Berlin", "A": "b=c"}
    with pytest.raises(InputError, match="NAME=VALUE"):
        entry_of({"user": "alice", "kind": "jupyter", "env": ["TZ"]})


def test_a_script_of_several_lines_comes_back_as_it_was(inventory: Path) -> None:
    script = inventory / "job.sh"
    script.write_text("#!/bin/sh\nset -eu\necho \"a: 'b'\" # c\n")
    entry = entry_of({"user": "alice", "kind": "batch", "script": str(script)})
    script.unlink()
    _, after = edited(inventory, "gpu01", "job", entry)
    assert checked(inventory, "gpu01", after).containers["job"].script == "#!/bin/sh\nset -eu\necho \"a: 'b'\" # c\n"


@pytest.mark.parametrize(
    ("host", "name", "sentence"),
    [
        ("gpu01", "alice-lba", "did you mean 'alice-lab'?"),
        ("gpu02", "alice-lab", "has no workspace 'alice-lab' in this file"),
    ],
)
def test_what_is_not_there_is_not_taken_out(inventory: Path, host: str, name: str, sentence: str) -> None:
    with pytest.raises(InputError, match=r"workspaces\.yml") as caught:
        edited(inventory, host, name, None)
    assert sentence in str(caught.value)


def test_a_file_that_somebody_else_changed_meanwhile_is_left_alone(inventory: Path) -> None:
    before, after = edited(inventory, "gpu01", "alice-lab", None)
    (inventory / "workspaces.yml").write_text(f"{OURS}# mine\n")
    with pytest.raises(InputError, match="the file changed during this command"):
        written(inventory, before, after)
    assert (inventory / "workspaces.yml").read_text() == f"{OURS}# mine\n"


def test_workspaces_of_another_file_are_not_overruled_in_silence(inventory: Path) -> None:
    (inventory / "host_vars").mkdir()
    (inventory / "host_vars" / "gpu01.yml").write_text("workspaces_containers: {x: {user: alice, kind: jupyter}}\n")
    _, after = edited(inventory, "gpu01", "alice-two", {"user": "alice", "kind": "jupyter"})
    with pytest.raises(InputError, match=r"host_vars/gpu01\.yml:1.* also sets the workspaces of gpu01"):
        checked(inventory, "gpu01", after)


@pytest.mark.parametrize("text", ["- a\n", "all: [x]\n", "all: {hosts: {gpu01: nothing}}\n", "a: b: c\n"])
def test_a_file_of_another_form_cannot_be_edited(inventory: Path, text: str) -> None:
    (inventory / "workspaces.yml").write_text(text)
    with pytest.raises(InputError, match="cannot be edited"):
        edited(inventory, "gpu01", "a", {"user": "alice", "kind": "jupyter"})


def test_ansible_reads_the_file_as_we_do(inventory: Path) -> None:
    assert load(inventory).hosts["gpu01"].vars["workspaces_containers"].value.keys() == {"alice-lab"}


def test_the_list_says_what_is_declared_and_what_is_there() -> None:
    look = read_workspaces(Facts({WORKSPACES_PROBE: Answer(0, recorded(bob_lab={}, a_run={"state": "created"}))}))
    declared = [
        space
        for space in workspaces_of(DECLARED.containers, DECLARED.users, DECLARED.directory, DECLARED.ports)
        if space.name != "bob-board"
    ]
    states = {row.name: row.state for row in rows_of("gpu01", tuple(declared), look)}
    assert states == {
        "a-run": "not started",
        "alice-box": "running",
        "alice-lab": "running",
        "b-run": "ended with status 0",
        "bob-board": "running, no longer declared",
        "bob-lab": "not made yet",
    }
    rows = list(rows_of("gpu01", tuple(declared), read_workspaces(Facts({WORKSPACES_PROBE: Answer(0, RECORDED)}))))
    lines = list(table(rows, COLUMNS))
    assert lines[1].split() == [
        "gpu01",
        "a-run",
        "alice",
        "batch",
        "0",
        "-",
        "ended",
        "with",
        "status",
        "3",
        "lab/jupyter:1",
    ]


#: four workspaces on each of ten hosts; the last host's batch run waits, and its box uses another image
FORTY = [
    ListedWorkspace(f"gpu{number:02}", name, name.partition("-")[0], kind, gpus, port, state, image)
    for number in range(1, 11)
    for name, kind, gpus, port, state, image in (
        ("alice-box", "ssh", "", 25023, "running", "lab/desk:1" if number == 10 else TENSORFLOW),
        ("alice-lab", "jupyter", "0", 22504, "running", TENSORFLOW),
        ("bob-board", "tensorboard", "", 29120, "running", TENSORFLOW),
        ("carol-train", "batch", "2", 0, WAITS if number == 10 else "ended with status 0", TENSORFLOW),
    )
]


@pytest.mark.parametrize("width", [80, 120, 200])
def test_a_list_fits_the_terminal_and_says_all_of_every_workspace(width: int) -> None:
    lines = list(table(FORTY, COLUMNS, width))
    assert max(map(len, lines[:41])) <= width
    assert [line.split()[:2] for line in lines[1:41]] == [[row.host, row.name] for row in FORTY]
    notes = dict(line.split(" ", 1) for line in lines[42:])
    assert list(notes) == [f"[{number + 1}]" for number in range(len(notes))]
    for line, row in zip(lines[1:41], FORTY, strict=True):
        *texts, image = re.split(" {2,}", line)
        assert [*(notes.get(text, text) for text in texts), notes.get(image, image)] == [
            cell(row) or "-" for cell in COLUMNS.values()
        ]


def test_a_state_stays_in_its_row_where_that_is_enough() -> None:
    rows = [*FORTY[:3], replace(FORTY[3], state="Docker does not answer")]
    lines = list(table(rows, COLUMNS, 85))
    assert lines[4:] == [
        "gpu01  carol-train  carol  batch        2     -      Docker does not answer  [1]", "", f"[1] {TENSORFLOW}"
    ]  # fmt: skip


def test_a_list_that_is_piped_has_everything_in_its_rows() -> None:
    lines = list(table(FORTY, COLUMNS))
    assert len(lines) == 41
    assert WAITS in lines[-1]


def test_what_a_host_says_of_a_workspace_begins_no_line() -> None:
    row = replace(FORTY[0], state="running\ngpu02  other  \x1b[2J")
    assert list(table([row], COLUMNS))[1:] == [
        f"gpu01  alice-box  alice  ssh   -     25023  running gpu02  other  \ufffd[2J  {TENSORFLOW}"
    ]


def test_the_end_of_a_list_counts_its_states() -> None:
    assert total_of(FORTY) == "40 workspaces on 10 hosts: 30 running, 9 ended with status 0, 1 queued"


def test_a_command_reaches_the_workspace_as_one_word() -> None:
    (space,) = (
        space
        for space in workspaces_of(DECLARED.containers, DECLARED.users, DECLARED.directory, DECLARED.ports)
        if space.name == "bob-lab"
    )
    command = "echo 'a  b' \"$HOME\"; exit 3"
    assert shlex.split(exec_script(space, command)) == [
        *LOCAL_DOCKER.split(), "exec", "workspace-bob-lab", "/bin/sh", "-c", command,
    ]  # fmt: skip


def test_the_verbs_are_one_collection() -> None:
    assert sorted(tasks.namespace.task_names) == ["down", "exec", "export", "list", "logs", "up", "url"]


def test_advice_about_a_workspace_gets_the_host_and_the_inventory_of_the_call() -> None:
    told = whole("out with `invoke workspace.down --name x`", {"hosts": "gpu7", "inventory": ("rack 3",)})
    assert told == "out with `invoke workspace.down --name x --host gpu7 --inventory 'rack 3'`"
