"""Plans for workspaces, from answers recorded on a lab host."""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostwright.plan.model import Change, Deferred, Refusal
from hostwright.plan.testing import facts_for
from hostwright.standard.roles.workspaces.declared.entries import WorkspaceEntry, WorkspaceUser
from hostwright.standard.roles.workspaces.declared.workspace import workspaces_of
from hostwright.standard.roles.workspaces.states.arguments import Placed, docker_arguments
from hostwright.standard.roles.workspaces.states.facts import WORKSPACES_PROBE, read_workspaces
from hostwright.standard.roles.workspaces.states.running import CLOSED, WorkspaceRuns
from tests.unit.roles.workspaces.spaces import (
    CARD,
    DECLARED,
    ENTRIES,
    IMAGE,
    OTHER,
    RECORDED,
    answers,
    facts,
    planned,
    recorded,
    space,
    states,
    variables,
)
from tests.unit.support.stubs import stub


def refusal(plans: dict[str, object], name: str) -> tuple[str, str]:
    plan = plans[f"workspace {name}"]
    assert isinstance(plan, Refusal), plan
    return plan.rule, plan.sentence


def script(plans: dict[str, object], what: str) -> str:
    plan = plans[what]
    assert isinstance(plan, Change), plan
    return plan.steps[0].script


def test_a_host_that_has_them_plans_nothing() -> None:
    assert planned() == {}


def test_the_recorded_answer_is_read() -> None:
    look = read_workspaces(facts(states(), answers()))
    lab = look.container("alice-lab")
    assert lab is not None
    assert (lab.running, lab.uuids, lab.asked, lab.at_work) == (True, (CARD,), "0", "")
    assert look.ports >= {int(lab.port)}
    assert look.images[IMAGE] == lab.image
    run = look.container("a-run")
    assert run is not None
    assert (run.state, run.code) == ("exited", 3)


def test_a_new_workspace_is_made_and_nobody_else_touched() -> None:
    plans = planned(variables(carol=WorkspaceEntry("bob", "jupyter", gpus=("1",), image=IMAGE)))
    assert list(plans) == ["workspace carol"]
    text = script(plans, "workspace carol")
    assert f"NVIDIA_VISIBLE_DEVICES={OTHER}" in text
    assert text.index("docker create") < text.index("docker stop --time 20") < text.index("answers()")
    assert text.index("trap ended EXIT") < text.index("mkdir") < text.index("docker stop --time 20")
    assert text.index("until answers") < text.index("definition.json")  # written as the last action


def test_programs_count_cards_as_nvidia_smi_does() -> None:
    """CUDA orders GPUs by speed by default: gpustack issue 1633."""
    both = replace(PLACED, uuids=(CARD, OTHER))
    text = " ".join(docker_arguments(space(WorkspaceEntry("bob", "jupyter", gpus=("0", "1"), image=IMAGE)), both))
    assert "--env CUDA_DEVICE_ORDER=PCI_BUS_ID" in text


def test_variables_reach_the_container_and_make_it_anew() -> None:
    entry = replace(ENTRIES["bob-lab"], environment={"TZ": "Europe/Berlin", "http_proxy": "http://proxy:3128/"})
    words = docker_arguments(space(entry), PLACED)
    before_image = words[: words.index(PLACED.image)]
    assert {"TZ=Europe/Berlin", "http_proxy=http://proxy:3128/"} <= set(before_image)
    (plan,) = planned(variables(bob_lab=entry)).values()
    assert isinstance(plan, Change)
    assert '+    "TZ": "Europe/Berlin",' in plan.diff.splitlines()


@pytest.mark.parametrize("knows", [True, False])
def test_a_tensorboard_reads_all_writers_and_what_is_replaced(tmp_path: Path, knows: bool) -> None:
    """tensorboard#1063: of two files in a directory, one was not updated. A replaced file is detected only without a
    data server, whose end would go unnoticed; TensorBoard before 2.5 has none, and no such option.
    """
    unknown = 'case "$*" in *detect*) echo "unrecognized arguments" >&2; exit 2 ;; esac'
    stub(tmp_path, tensorboard=f'{"" if knows else unknown}\necho "$*"')
    words = docker_arguments(space(WorkspaceEntry("bob", "tensorboard")), PLACED)
    begin = words.index(PLACED.image) + 1
    environment = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}
    done = subprocess.run(("sh", *words[begin:]), env=environment, capture_output=True, text=True, check=True)
    given = done.stdout.split()
    assert given[:2] == ["--logdir", "/workspace/logs"]
    assert "--reload_multifile=true" in given
    assert ("--detect_file_replacement=true" in given) is knows
    assert "TINI_KILL_PROCESS_GROUP=1" in words  # otherwise Docker's signal ends only the shell


def test_a_tensorboard_that_is_killed_is_not_begun_in_another_way(tmp_path: Path) -> None:
    stub(tmp_path, tensorboard=f"echo x >>{tmp_path}/starts; kill -9 $$")
    words = docker_arguments(space(WorkspaceEntry("bob", "tensorboard")), PLACED)
    environment = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}
    shell = ("sh", *words[words.index(PLACED.image) + 1 :])
    assert subprocess.run(shell, env=environment, capture_output=True, check=False).returncode == 137
    assert (tmp_path / "starts").read_text() == "x\n"


@pytest.mark.parametrize(
    ("has", "asked", "shell"),
    [("bash", "", "bash"), ("bash zsh", "zsh", "zsh"), ("bash", "zsh", "bash"), ("", "", "sh"), ("", "zsh", "sh")],
)
def test_a_terminal_of_jupyter_has_a_shell_that_the_image_has(tmp_path: Path, has: str, asked: str, shell: str) -> None:
    """jupyter/notebook#2457: a container has no SHELL, so that terminals ran sh; a missing shell prevents terminals."""
    programs = dict.fromkeys(["sh", *has.split()], ":") | {"jupyter-lab": ":", "jupyter": 'echo "$SHELL $*"'}
    stub(tmp_path, **programs)
    words = docker_arguments(space(WorkspaceEntry("bob", "jupyter")), PLACED)
    environment = {"PATH": f"{tmp_path}/bin"} | ({"SHELL": f"{tmp_path}/bin/{asked}"} if asked else {})
    done = subprocess.run(words[-3:], executable="/bin/sh", env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"{tmp_path}/bin/{shell} lab --config=/run/hostwright/jupyter_config.py\n"


@pytest.mark.parametrize(("own", "read"), [((), True), ((".profile",), False), ((".bash_profile",), False)])
def test_a_terminal_reads_bashrc_unless_the_person_has_said_what_a_login_reads(
    tmp_path: Path, own: tuple[str, ...], read: bool
) -> None:
    files = next(s.files for s in states() if isinstance(s, WorkspaceRuns) and s.name == "bob-lab")
    text = next(text for name, _, text in files if name == "profile")
    (tmp_path / ".bashrc").write_text("MARK=1\n")
    for name in own:
        (tmp_path / name).write_text("")
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    for options, marked in ((("--norc", "-ic"), read), (("-c",), False)):
        words = ("bash", *options, f'{text}\necho "mark=${{MARK:-}}"')
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
        assert done.stdout == f"mark={1 if marked else ''}\n"


@pytest.mark.parametrize("name", ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy"])
def test_what_a_container_asks_of_itself_goes_to_no_proxy(name: str) -> None:
    """docker-stacks issue 1962: a health check requested localhost from the company's proxy."""
    words = docker_arguments(
        space(WorkspaceEntry("bob", "jupyter", environment={name: "http://192.0.2.1:3128"})), PLACED
    )
    assert {
        f"{name}=http://192.0.2.1:3128",
        "no_proxy=localhost,127.0.0.1,::1",
        "NO_PROXY=localhost,127.0.0.1,::1",
    } <= set(words)


@pytest.mark.parametrize(
    "given", [{}, {"http_proxy": "http://p", "no_proxy": "x"}, {"http_proxy": "http://p", "NO_PROXY": ""}]
)
def test_whoever_says_what_goes_to_no_proxy_is_believed(given: dict[str, str]) -> None:
    words = docker_arguments(space(WorkspaceEntry("bob", "jupyter", environment=given)), PLACED)
    assert [word for word in words if "proxy" in word.lower()] == [f"{name}={value}" for name, value in given.items()]


def test_a_full_disk_of_somebodys_keeps_no_jupyter_from_starting(tmp_path: Path) -> None:
    """zero-to-jupyterhub#518: Jupyter could not write its runtime file, so that the user could not log in to delete
    files.
    """
    words = docker_arguments(space(WorkspaceEntry("bob", "jupyter")), PLACED)
    assert "JUPYTER_RUNTIME_DIR=/tmp/jupyter" in words
    runs = next(state for state in states() if isinstance(state, WorkspaceRuns) and state.name == "bob-lab")
    config = next(text for name, _, text in runs.files if name == "jupyter_config.py")
    secrets = []
    for token in ("a1", "a1", "b2"):
        (tmp_path / "token").write_text(token)
        sections = ("ServerApp", "NotebookApp", "IdentityProvider", "FileContentsManager")
        c = SimpleNamespace(**{name: SimpleNamespace() for name in sections})
        exec(config.replace("/run/hostwright", str(tmp_path)), {"c": c})  # noqa: S102 - Jupyter does just this
        assert c.ServerApp.cookie_secret == c.NotebookApp.cookie_secret
        secrets.append(c.ServerApp.cookie_secret)
        assert c.FileContentsManager.delete_to_trash is False, "a trash on the same disk frees nothing"
        assert c.FileContentsManager.always_delete_dir is True, "notebook#4916: 400, 'Directory … not empty'"
    assert secrets[0] == secrets[1] != secrets[2], "who is logged in stays so, and a former owner does not"
    assert isinstance(secrets[0], bytes)


@pytest.mark.parametrize("kind", ["jupyter", "batch"])
def test_a_login_shell_has_the_path_of_its_image(tmp_path: Path, kind: str) -> None:
    """vscode-remote-release#4781: Debian's /etc/profile, which Jupyter's terminals read, resets PATH."""
    entry = WorkspaceEntry("bob", kind, command=("true",) if kind == "batch" else ())  # type: ignore[arg-type]
    words = docker_arguments(space(entry), PLACED)
    assert any(word.endswith("/profile,target=/etc/profile.d/hostwright.sh,readonly") for word in words)
    v = replace(DECLARED, containers={"a": entry})
    (runs,) = (state for state in states(v) if isinstance(state, WorkspaceRuns))
    profile = next(text for name, _, text in runs.files if name == "profile")
    (tmp_path / "environ").write_bytes(b"A=1\0PATH=/opt/a b/bin:/usr/bin\0NOPATH=x\0")
    read = f'PATH=/usr/bin:/bin; {profile.replace("/proc/1", str(tmp_path))}\necho "$PATH"'
    done = subprocess.run(["sh", "-euc", read], capture_output=True, text=True, check=True)
    assert done.stdout == "/opt/a b/bin:/usr/bin\n"


@pytest.mark.parametrize("kind", ["jupyter", "ssh"])
def test_groups_of_a_person_reach_shared_directories(kind) -> None:
    """jupyterhub issue 1421, docker-stacks issue 2137. sshd reads a user's groups from /etc/group at each login."""
    person = replace(DECLARED.users["alice"], groups=(4000, 4001))
    v = replace(DECLARED, users={**DECLARED.users, "alice": person}, containers={"a": WorkspaceEntry("alice", kind)})
    (runs,) = (state for state in states(v) if isinstance(state, WorkspaceRuns))
    text = " ".join(docker_arguments(runs.workspace, PLACED))
    assert "--group-add 4000 --group-add 4001" in text
    assert '"groups": [4000, 4001]' in " ".join(runs.definition.split()).replace("[ ", "[").replace(" ]", "]")


def test_limits_are_what_differs_in_the_diff() -> None:
    plans = planned(variables(bob_lab=replace(ENTRIES["bob-lab"], memory="1g")))
    (plan,) = plans.values()
    assert isinstance(plan, Change)
    assert plan.diff.splitlines()[-2:] == ['-  "memory": "512m",', '+  "memory": "1g",']
    assert "--memory 1g --memory-swap 1g" in plan.steps[0].script.replace("'", "").replace('"', "")


def test_somebodys_work_is_not_ended_unless_forced() -> None:
    at_work = RECORDED.replace("children 15501 1\n", "children 15911 2\n")
    changed = variables(bob_lab=replace(ENTRIES["bob-lab"], memory="1g"))
    rule, sentence = refusal(planned(changed, answers(at_work)), "bob-lab")
    assert rule == "workspace-in-use"
    assert sentence.startswith("workspace bob-lab of bob (2 processes) would be ended")
    forced = planned(changed, answers(at_work), force=True)
    assert list(forced) == ["workspace bob-lab"]
    gone = planned(variables(bob_lab=None), answers(at_work))["undeclared workspaces"]
    assert isinstance(gone, Refusal)
    assert "workspace bob-lab of bob (2 processes)" in gone.sentence
    ended = planned(variables(bob_lab=None), answers(at_work), force=True)["undeclared workspaces"]
    for change in (forced["workspace bob-lab"], ended):  # with force: affected users are named before the change
        assert isinstance(change, Change)
        assert change.disturbs == "ends workspaces in which somebody works"
    for state in states(changed, force=True):
        mine = isinstance(state, WorkspaceRuns) and state.name == "bob-lab"
        named = ("workspace bob-lab of bob (2 processes)",) if mine else ()
        assert state.users(facts_for([state], answers(at_work))) == named


def test_an_undeclared_workspace_goes_and_its_files_stay() -> None:
    plans = planned(variables(bob_lab=None))
    plan = plans["undeclared workspaces"]
    assert isinstance(plan, Change)
    assert plan.have == "workspace bob-lab of bob"
    assert plan.want == "absent; people's files stay in /srv/workspaces/bob/bob-lab"
    assert list(plans) == ["undeclared workspaces"]
    assert "/srv/workspaces" not in plan.steps[0].script


def test_a_plan_says_of_a_box_that_its_key_goes_or_is_new() -> None:
    """che-code#560: "REMOTE HOST IDENTIFICATION HAS CHANGED", without a warning beforehand."""
    gone = planned(variables(alice_box=None))["undeclared workspaces"]
    assert isinstance(gone, Change)
    assert gone.warnings == (
        "workspace alice-box of alice: software installed in the container itself is removed with it, and its SSH host "
        "key; a new workspace of this name gets another key, and ssh warns",
    )
    row = '"/workspace-alice-box"'
    for files, told in (("no line", False), ("definition alice-box", True)):  # with and without root's files of it
        lines = [line for line in RECORDED.splitlines() if not line.startswith(("listen", files)) and row not in line]
        made = planned(replies=answers("\n".join(lines) + "\n"))["workspace alice-box"]
        assert isinstance(made, Change)
        sentence = "workspace alice-box gets a new SSH host key; `invoke workspace.url --name alice-box` shows"
        assert bool(made.warnings and made.warnings[0].startswith(sentence)) is told
    later = replace(ENTRIES["alice-box"], memory="1g")
    made = planned(variables(alice_box=later))["workspace alice-box"]
    assert isinstance(made, Change)
    assert made.warnings == ()
    others = replace(later, user="bob")
    users = {**DECLARED.users, "bob": replace(DECLARED.users["bob"], keys=DECLARED.users["alice"].keys)}
    made = planned(replace(variables(alice_box=others), users=users))["workspace alice-box"]
    assert isinstance(made, Change)
    assert len(made.warnings) == 1, "another person's box has another key"


def test_who_left_is_taken_off_with_one_change() -> None:
    left = replace(DECLARED, users={**DECLARED.users, "bob": replace(DECLARED.users["bob"], left=True)})
    access, plan = planned(left).values()
    assert access.what == "access of bob"
    assert plan.have == "workspace b-run of bob, workspace bob-board of bob, workspace bob-lab of bob, hostwright-bob"


def test_removal_of_the_role_takes_them_all() -> None:
    gone = {state for one in states() for state in one.removal()}
    (state,) = gone
    plan = state.plan(facts([state], answers()))
    assert isinstance(plan, Change)
    assert plan.have.count("workspace ") == len(ENTRIES)


def test_one_that_stopped_is_started_and_not_made_again() -> None:
    look = recorded(bob_lab={"state": "exited", "code": 137, "killed": True, "pid": 0})
    plans = planned(replies=answers(look.replace("listen 127.0.0.1:21615\n", "")))
    (plan,) = plans.values()
    assert (plan.have, plan.want) == ("exited (status 137, killed for lack of memory)", "running")
    assert "docker create" not in script(plans, "workspace bob-lab")


BOB_PID = next(
    held.pid for held in read_workspaces(facts(states(), answers())).containers if held.workspace == "bob-lab"
)


@pytest.mark.parametrize(
    ("restarts", "started", "due"),
    [
        (3, "2026-11-23T17:13:54.123456789Z", True),  # the program ended, and runs only for a moment
        (3, "2026-11-23T17:13:40.123456789Z", False),  # running for longer than Docker's own grace period
        (0, "2026-11-23T17:13:54.123456789Z", False),  # just started by a user
    ],
)
def test_a_program_that_ends_again_and_again_does_not_count_as_running(restarts: int, started: str, due: bool) -> None:
    look = recorded(bob_lab={"restarts": restarts, "started": started})
    look = look.replace("\ncontainer ", "\nlately 2026-11-23T17:13:50\ncontainer ", 1)
    plans = planned(replies=answers(look))
    assert list(plans) == ["workspace bob-lab"] * due
    for plan in plans.values():
        assert plan.have == "its program ended, and Docker just restarted it (3 times so far)"
        assert "docker create" not in script(plans, "workspace bob-lab")


@pytest.mark.parametrize(
    ("driver", "libraries", "due"),
    [
        ("470.256.02", "470.182.03", True),
        ("470.182.03", "470.182.03", False),
        ("", "470.182.03", False),  # the host's own versions differ: a restart would not help
        ("470.256.02", "", False),  # without a GPU
    ],
)
def test_one_with_another_drivers_libraries_is_started_again(driver: str, libraries: str, due: bool) -> None:
    """nvidia-smi in the container reports "Driver/library version mismatch", while the host's nvidia-smi works."""
    lines = [f"driver {driver}"] * bool(driver) + [f"libraries {BOB_PID} {libraries}"] * bool(libraries)
    plans = planned(replies=answers("\n".join((*lines, recorded()))))
    assert list(plans) == ["workspace bob-lab"] * due
    for plan in plans.values():
        assert (plan.have, plan.want) == (
            "its libraries are of driver 470.182.03",
            "started again with those of 470.256.02",
        )
        assert "docker create" not in script(plans, "workspace bob-lab")


def test_one_with_another_drivers_libraries_goes_on_while_somebody_works_in_it() -> None:
    look = "\n".join(("driver 470.256.02", f"libraries {BOB_PID} 470.182.03", f"children {BOB_PID} 2", recorded()))
    (plan,) = planned(replies=answers(look)).values()
    assert isinstance(plan, Refusal)
    assert plan.alone
    assert "workspace bob-lab of bob (2 processes) would be ended: its libraries are of driver" in plan.sentence


def test_the_port_of_a_program_that_ends_again_and_again_is_its_own() -> None:
    (plan,) = planned(replies=answers(recorded(bob_lab={"state": "restarting", "code": 1, "pid": 0}))).values()
    assert (plan.have, plan.want) == ("restarting (status 1)", "running")


def test_an_ssh_box_waits_for_its_image_which_is_built_first() -> None:
    tag = next(name for name in read_workspaces(facts(states(), answers())).images if name.startswith("hostwright/"))
    gone = "\n".join(line for line in RECORDED.splitlines() if tag not in line) + "\n"
    plans = planned(replies=answers(gone))
    assert list(plans) == [f"image {tag}", "workspace alice-box"]
    assert "FROM lab/jupyter:2" in script(plans, f"image {tag}")
    assert isinstance(plans["workspace alice-box"], Deferred)
    without_base = "\n".join(line for line in gone.splitlines() if "lab/jupyter:2" not in line) + "\n"
    base = planned(replies=answers(without_base))[f"image {tag}"]
    assert isinstance(base, Refusal)
    assert "images.push" in base.sentence


def test_another_day_builds_the_image_again_and_the_old_one_goes_last() -> None:
    later = planned(replace(DECLARED, refreshed="2026-12-01"))
    assert [what.partition(":")[0] for what in later] == ["image hostwright/workspace-ssh", "workspace alice-box"]
    spare = planned(variables(alice_box=None))["undeclared workspaces"]
    assert "hostwright/workspace-ssh:" in spare.have


def test_what_a_cut_left_is_brought_to_its_end() -> None:
    row = next(line for line in RECORDED.splitlines() if '"/workspace-bob-lab"' in line)
    both = RECORDED.replace(row, row + "\n" + row.replace("/workspace-bob-lab", "/workspace-bob-lab.old"))
    (plan,) = planned(replies=answers(both)).values()
    assert (plan.what, plan.have) == ("workspace bob-lab", "a change of it was cut off")
    without = "\n".join(line for line in RECORDED.splitlines() if not line.startswith("definition bob-lab")) + "\n"
    (plan,) = planned(replies=answers(without)).values()
    assert plan.have == "a change of it was cut off"


# --- GPUs


def test_a_container_keeps_its_card_in_whichever_slot_it_is() -> None:
    assert planned(replies=answers(cards=(OTHER, CARD))) == {}


def test_a_number_that_is_anothers_card_now_is_refused() -> None:
    alone = {**dict.fromkeys(("a_run", "b_run")), "alice_lab": replace(ENTRIES["alice-lab"], share=False)}
    more = variables(**alone, carol=WorkspaceEntry("bob", "jupyter", gpus=("1",), image=IMAGE))
    rule, sentence = refusal(planned(more, answers(cards=(OTHER, CARD))), "carol")
    assert rule == "workspace-gpu"
    assert f"{CARD} belongs to alice-lab" in sentence


def test_a_card_that_is_gone_is_refused_by_its_name() -> None:
    rule, sentence = refusal(planned(replies=answers(cards=())), "alice-lab")
    assert rule == "workspace-gpu"
    assert f"nor {CARD}, which the workspace had before" in sentence


def test_a_card_that_was_exchanged_makes_another_container() -> None:
    (alice, *_) = planned(replies=answers(cards=(OTHER,))).values()
    assert (alice.what, alice.have) == ("workspace a-run", f"GPU {CARD}")


def test_one_card_by_two_names_is_found_on_the_host() -> None:
    more = variables(carol=WorkspaceEntry("bob", "jupyter", gpus=(CARD,), image=IMAGE))
    assert refusal(planned(more), "carol")[0] == "workspace-gpu"


def test_without_an_answer_of_the_driver_or_docker_it_waits() -> None:
    silent = {**answers(), "nvidia-smi -q -x": "", "docker ps -aq": "docker absent\nend\n"}
    assert all(isinstance(plan, Deferred) for plan in planned(replies=silent).values())
    cut = answers(RECORDED.removesuffix("end\n"))
    assert {plan.have for plan in planned(replies=cut).values()} == {
        "Docker does not answer: check systemctl status docker and journalctl -u docker on the host"
    }


# --- images, users, ports


def test_an_image_that_is_not_there_says_how_to_bring_it() -> None:
    other = replace(ENTRIES["bob-lab"], image="tensorflow/tensorflow:2.9.0-gpu-jupyter")
    rule, sentence = refusal(planned(variables(bob_lab=other)), "bob-lab")
    assert rule == "workspace-image"
    assert "images.push" in sentence
    pulled = script(planned(variables(bob_lab=replace(other, pull=True))), "workspace bob-lab")
    assert "pull=yes" in pulled


def test_an_image_that_is_asked_for_by_its_digest() -> None:
    """moby#22011: docker load keeps no registry digest, and a pushed image need not be pushed again."""
    one, two = (f"sha256:{digit * 64}" for digit in "12")
    ident = "4bebe48d5f498625c0ab597970cbf0db7f1d0330ca3e88d457b614f53dd775f9"
    for name, tag in (("lab/jupyter:1", "lab/jupyter:1"), ("lab/jupyter", "lab/jupyter:TAG")):
        pinned = variables(bob_lab=replace(ENTRIES["bob-lab"], image=f"{name}@{one}", memory="1g"))
        for digest in ("<none>", two):
            look = RECORDED.replace(" lab/jupyter:1 lab/jupyter@<none>", f" lab/jupyter:1 lab/jupyter@{digest}")
            rule, sentence = refusal(planned(pinned, answers(look)), "bob-lab")
            assert rule == "workspace-image"
            assert "archives have no registry digests" in sentence
            assert f"name it by its tag, {tag}, or let the host pull it" in sentence
            assert "load it with" not in sentence
        look = RECORDED.replace(" lab/jupyter:1 lab/jupyter@<none>", f" lab/jupyter:1 lab/jupyter@{one}")
        assert f"sha256:{ident}" in script(planned(pinned, answers(look)), "workspace bob-lab")

    box = variables(alice_box=replace(ENTRIES["alice-box"], image=f"lab/jupyter:2@{one}"))
    built = next(plan for what, plan in planned(box).items() if what.startswith("image "))
    assert isinstance(built, Refusal)
    assert "name it by its tag, lab/jupyter:2" in built.sentence


def test_a_container_that_is_gone_while_its_definition_is_there_is_told() -> None:
    """moby#22011: with another image store, Docker does not show the old containers, and all are recreated."""
    change = planned(replies=answers(recorded(bob_lab={}).replace(":21615", ":21616")))["workspace bob-lab"]
    assert isinstance(change, Change)
    (warning,) = change.warnings
    assert "existed on this host before, but its container is missing" in warning
    new = planned(variables(carol=ENTRIES["bob-lab"]))["workspace carol"]
    assert isinstance(new, Change)
    assert new.warnings == ()


def test_an_image_stays_when_its_tag_moves_on() -> None:
    moved = RECORDED.replace(" lab/jupyter:1 lab/jupyter@<none>", " <none>:<none> <none>@<none>")
    moved = moved.replace("lab/base:1", "lab/jupyter:1")
    assert planned(replies=answers(moved)) == {}
    state = next(state for state in states() if getattr(state, "name", "") == "bob-lab")
    _, note = state.notes(facts([state], answers(moved)))  # the first note is about its memory
    assert "keeps the image that lab/jupyter:1 named at its creation (4bebe48d5f49)" in note


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ({"shm": "4g", "memory": "1g"}, True),
        ({"memory": "1023m"}, True),  # the default is 1g
        ({"shm": "1g", "memory": "1024m"}, False),
        ({"shm": "4g"}, False),
        ({"shm": "4g", "memory": "1g", "kind": "tensorboard"}, False),
    ],
)
def test_shared_memory_that_is_larger_than_the_memory_is_said_in_every_plan(limits: dict[str, str], told: bool) -> None:
    """The result would be a kill for lack of memory instead of `No space left on device`."""
    entry = replace(ENTRIES["bob-lab"], **{"memory": None, **limits})
    state = next(state for state in states(variables(bob_lab=entry)) if getattr(state, "name", "") == "bob-lab")
    notes = state.notes(facts([state], answers()))
    assert [("workspace bob-lab has" in note, "which counts against its" in note) for note in notes] == [
        (True,) * 2
    ] * told


def test_users_of_the_host_and_of_the_inventory() -> None:
    unnumbered = replace(DECLARED, users={**DECLARED.users, "bob": replace(DECLARED.users["bob"], uid=None)})
    more = replace(unnumbered, containers={"bob-lab": replace(ENTRIES["bob-lab"], memory="1g")})
    assert "no account on this host" in refusal(planned(more), "bob-lab")[1]
    account = {"bob": "bob:x:1005:1006::/home/bob:/bin/bash\n"}
    text = script(planned(more, answers(**account)), "workspace bob-lab")
    assert "uid=1005\ngid=1006\n" in text
    assert "--user 1005:1006" in text
    system = {"bob": "bob:x:105:106::/:/bin/false\n"}
    assert "is a system account" in refusal(planned(more, answers(**system)), "bob-lab")[1]
    large = {"bob": "bob:x:1885580785:1885580785::/:/bin/sh\n"}  # moby#5419: IDs of a directory service
    assert "--user 1885580785:1885580785" in script(planned(more, answers(**large)), "workspace bob-lab")
    for ids in ("2147483648:100", "1005:4294967294"):
        beyond = {"bob": f"bob:x:{ids}::/:/bin/sh\n"}
        assert (
            "a container cannot use an ID above 2147483646" in refusal(planned(more, answers(**beyond)), "bob-lab")[1]
        )
    theirs = {**answers(), "getent passwd -- 2002": "eve:x:2002:2002::/home/eve:/bin/bash\n"}
    assert "on this host it belongs to eve" in refusal(planned(replies=theirs), "bob-lab")[1]


def test_a_port_that_another_program_has_is_refused_before_anything_is_made() -> None:
    taken = RECORDED.replace("listen 0.0.0.0:22\n", "listen 0.0.0.0:22\nlisten 127.0.0.1:8888\n")
    carol = WorkspaceEntry("bob", "jupyter", image=IMAGE, port=8888)
    assert refusal(planned(variables(carol=carol), answers(taken)), "carol")[0] == "workspace-port"


def test_a_batch_run_is_queued_and_never_started_again() -> None:
    assert "hostwright-batch@" in script(
        planned(variables(c_run=WorkspaceEntry("bob", "batch", image=IMAGE, command=("true",)))), "workspace c-run"
    )
    waiting = recorded(b_run={"state": "created"})
    (plan,) = planned(replies=answers(waiting)).values()
    assert (plan.have, plan.want) == ("not in the queue", "queued")
    queued = waiting.replace("network hostwright-bob\n", "network hostwright-bob\nbatch b-run\n")
    assert planned(replies=answers(queued)) == {}


@pytest.mark.parametrize(
    "error",
    [
        "OCI runtime create failed: unable to retrieve OCI runtime error (open /run/containerd/io.containerd.runtime"
        '.v1.linux/moby/9f/log.json: no such file or directory): exec: "nvidia-container-runtime": executable file not '
        "found in $PATH: : unknown",
        "id already in use",
    ],
)
def test_a_container_whose_start_failed_in_the_runtime_is_made_anew(error: str) -> None:
    """Docker keeps its ID as in use, and reports this at each further start."""
    for changed in (
        {"bob_lab": {"state": "exited", "pid": 0, "error": error}},
        {"b_run": {"state": "created", "error": error}},
    ):
        (plan,) = planned(replies=answers(recorded(**changed).replace("listen 127.0.0.1:21615\n", ""))).values()
        assert isinstance(plan, Change)
        assert "docker create --name" in plan.steps[0].script
    taken = recorded(bob_lab={"state": "exited", "pid": 0, "error": "address already in use"})
    (plan,) = planned(replies=answers(taken.replace("listen 127.0.0.1:21615\n", ""))).values()
    assert isinstance(plan, Change)
    assert "docker create --name" not in plan.steps[0].script
    waits = recorded(b_run={"state": "created", "error": error})
    queued = waits.replace("network hostwright-bob\n", "network hostwright-bob\nbatch b-run\n")
    assert planned(replies=answers(queued)) == {}


# --- arguments of Docker


PLACED = Placed(2002, 2002, (), "sha256:" + "0" * 64, IMAGE, "0" * 16)


@pytest.mark.parametrize("kind", ["jupyter", "tensorboard", "batch"])
def test_a_container_has_no_rights_beyond_its_users(kind) -> None:
    command = ("true",) if kind == "batch" else ()
    text = " ".join(docker_arguments(space(WorkspaceEntry("bob", kind, image=IMAGE, command=command)), PLACED))
    assert "--cap-drop ALL" in text
    assert "--security-opt no-new-privileges" in text
    assert "--user 2002:2002" in text
    assert "NVIDIA_VISIBLE_DEVICES=void" in text
    assert "--network hostwright-bob" in text
    assert "privileged" not in text.replace("no-new-privileges", "")
    assert text.count("--publish 127.0.0.1:") == (kind != "batch")
    assert ("--restart no" in text) == (kind == "batch")
    assert "token" not in text.replace("/token", "")


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1), min_size=1))
@settings(max_examples=60, deadline=None)
def test_the_words_of_a_command_reach_docker_as_they_are(words: list[str]) -> None:
    plans = planned(variables(x=WorkspaceEntry("bob", "batch", image=IMAGE, command=tuple(words))))
    text = script(plans, "workspace x")
    assigned = text[text.index("\nname=x") : text.index("container=workspace-")]
    line = next(part for part in shlex.split(assigned) if part.startswith("arguments="))
    arguments = shlex.split(line.removeprefix("arguments="))
    at = arguments.index("--entrypoint")
    assert [arguments[at + 1], *arguments[at + 3 :]] == words


# --- the scripts with a docker that records its commands


def test_the_look_answers_without_docker_and_with_a_silent_one(tmp_path: Path) -> None:
    for number, (text, answer) in enumerate({"exit 1": "silent", "exit 124": "silent"}.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        environment = stub(folder, docker=text)
        done = subprocess.run(
            ["/bin/sh", "-c", WORKSPACES_PROBE.script], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout.splitlines()[-2:] == [f"docker {answer}", "end"]


LONG = "#!/bin/sh\nbase64 -d <<'END'\n" + "QUJD'\"$é\\r\n" * 100_000 + "END\n"  #: 1.2 MB of all shell metacharacters


def test_a_long_script_leaves_a_definition_that_is_read(tmp_path: Path) -> None:
    """argo-workflows#7586: a script above 64 KiB was truncated, so that every plan rewrote it."""
    run = replace(ENTRIES["b-run"], script=LONG)
    state = next(each for each in states(variables(b_run=run)) if getattr(each, "name", "") == "b-run")
    assert isinstance(state, WorkspaceRuns)
    (tmp_path / "b-run").mkdir()
    (tmp_path / "b-run" / "definition.json").write_text(state.definition)
    environment = stub(tmp_path, docker="exit 1")
    text = WORKSPACES_PROBE.script.replace("/var/lib/hostwright/workspaces", str(tmp_path))
    done = subprocess.run(["/bin/sh", "-c", text], env=environment, capture_output=True, text=True, check=True)
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("definition b-run "))
    assert len(line) < 4096
    had = json.loads(state.definition)
    del had["script"]
    assert json.loads(line.split(" ", 2)[2]) == had

    moved = replace(variables(), containers={"b-run": replace(run, shm="2g")})
    look = recorded(b_run={"definition": "of before"}).replace("definition b-run", "definition other")
    change = planned(moved, answers(f"{line}\n{look}"))["workspace b-run"]
    assert isinstance(change, Change)
    assert '"shm": "2g"' in change.diff
    assert len(change.diff) < 1000


@pytest.mark.parametrize("shell", ["/bin/dash", "/bin/bash"])
def test_a_long_script_is_on_the_host_with_its_bytes(tmp_path: Path, shell: str) -> None:
    """No program receives it as an argument: the step's text contains it, and only the shell writes it."""
    (tmp_path / "srv").mkdir()
    (tmp_path / "state").mkdir()
    entry = WorkspaceEntry("bob", "batch", image=IMAGE, script=LONG)
    v = replace(variables(), directory=f"{tmp_path}/srv", containers={"long": entry})
    made = script(planned(v), "workspace long").replace("/var/lib/hostwright/workspaces", f"{tmp_path}/state")
    step = tmp_path / "step"
    step.write_text(made.partition("\nmake_network\n")[0].replace(CLOSED, "true"))
    environment = stub(tmp_path, docker='[ "$1" = image ]', chown="exit 0")
    subprocess.run([shell, "-eu", str(step)], env=environment, check=True)
    assert (tmp_path / "state" / "long" / "script").read_bytes() == LONG.encode()
    (workspace,) = workspaces_of(v.containers, v.users, v.directory, v.ports)
    assert len(" ".join(docker_arguments(workspace, PLACED))) < 4096


def made_for(tmp_path: Path, owners: tuple[int, ...]) -> list[tuple[str, bool]]:
    """Return, for each creation of Carol's workspace, its token (Bob's) and whether its old SSH host key is kept.

    ``owners`` are the uids that own its token's file at these times.
    """
    (tmp_path / "srv").mkdir()
    (tmp_path / "state").mkdir()
    v = replace(variables(), directory=f"{tmp_path}/srv")
    carol = replace(v, containers={"carol": WorkspaceEntry("bob", "jupyter", image=IMAGE)})
    plan = planned(carol)["workspace carol"]
    assert isinstance(plan, Change)
    text = plan.steps[0].script.replace("/var/lib/hostwright/workspaces", f"{tmp_path}/state")
    text = text.partition("\nmake_network\n")[0].replace(CLOSED, "true")  # up to Docker's first command
    environment = stub(tmp_path, docker='[ "$1" = image ]', chown="exit 0", stat=f"cat {tmp_path}/owner")
    state, made = tmp_path / "state" / "carol", []
    for owner in owners:
        (tmp_path / "owner").write_text(f"{owner}\n")
        subprocess.run(["/bin/sh", "-euc", text], env=environment, check=True)
        made.append(((state / "token").read_text(), (state / "host_key").exists()))
        (state / "host_key").write_text("a key")
    return made


def test_a_token_is_only_the_users_and_stays(tmp_path: Path) -> None:
    uid = variables().users["bob"].uid
    assert uid
    (first, _), (second, kept) = made_for(tmp_path, (uid, uid))
    assert first == second
    assert kept
    assert len(first) == 48
    assert stat.S_IMODE((tmp_path / "state" / "carol" / "token").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "srv" / "bob" / "carol").stat().st_mode) == 0o700


def test_what_a_former_owner_knows_opens_nothing(tmp_path: Path) -> None:
    uid = variables().users["bob"].uid
    assert uid
    (first, _), (second, kept) = made_for(tmp_path, (uid, uid + 1))
    assert first != second
    assert len(second) == 48
    assert not kept


def test_a_workspace_is_made_after_those_whose_files_it_mounts() -> None:
    """TensorBoard on a Jupyter's logs: the Jupyter's directory must exist first, whatever their names are."""
    files = "/srv/workspaces/{}/{}:/data:ro"
    v = variables(
        a_board=WorkspaceEntry("bob", "tensorboard", image=IMAGE, mounts=(files.format("bob", "bob-lab"),)),
        bob_lab=WorkspaceEntry("bob", "jupyter", image=IMAGE, mounts=(files.format("carol", "c-run"), "/srv/set:/set")),
        c_run=WorkspaceEntry("carol", "batch", image=IMAGE, command=("true",)),
        d_one=WorkspaceEntry("bob", "jupyter", image=IMAGE, mounts=(files.format("bob", "e-two/logs"),)),
        e_two=WorkspaceEntry("bob", "jupyter", image=IMAGE, mounts=(files.format("bob", "d-one/logs"),)),
    )
    v = replace(v, users={**v.users, "carol": WorkspaceUser(2003)})
    names = [state.name for state in states(v) if isinstance(state, WorkspaceRuns)]
    assert sorted(names) == sorted(v.containers)
    assert names.index("c-run") < names.index("bob-lab") < names.index("a-board")
