"""The program that runs batch workspaces, in a real shell with real locks: reasons for waiting, and messages."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from hostwright.common.quoting import sh_file
from hostwright.standard.roles import workspaces as role
from hostwright.standard.roles.workspaces.declared.entries import WorkspaceEntry
from hostwright.standard.roles.workspaces.declared.workspace import BATCH
from hostwright.standard.roles.workspaces.states.arguments import docker_arguments
from hostwright.standard.roles.workspaces.states.facts import WORKSPACES_PROBE, read_workspaces
from hostwright.standard.roles.workspaces.verbs.queries import logs_script, rows_of
from tests.unit.roles.workspaces.spaces import CARD, ENTRIES, IMAGE, OTHER, answers, facts, recorded, space, states
from tests.unit.roles.workspaces.test_declared import read, refused
from tests.unit.roles.workspaces.test_running import PLACED
from tests.unit.support.hostjobs import until
from tests.unit.support.stubs import stub

ID = "9cd078cb21bc" + "0" * 52
#: stand-in for docker: containers are directories with a file for each field
DOCKER = """\
shown() { cat "$CONTAINERS/$2/$1" 2>/dev/null; }
if [ -e "$CONTAINERS/down" ]; then
  echo "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?" >&2
  exit 1
fi
case "$1 $2" in
"container ls") (cd "$CONTAINERS" && grep -lx created */status | sed 's#/status##') ;;
"container inspect")
  case $4 in *Created*)
    shift 4
    for name; do printf '%s /%s %s\\n' "$(shown created "$name")" "$name" "$(shown gpus "$name")"; done
    exit ;;
  esac
  name=$5; [ "$name" != ID ] || { echo alice-lab; exit 0; }
  [ -d "$CONTAINERS/$name" ] || { echo "Error: No such container: $name" >&2; exit 1; }
  case $4 in
  *Config.User*) echo 2001:2001 ;;
  *Mounts*) shown files "$name" ;;
  '{{index .Config.Labels "hostwright.gpus"}}') shown gpus "$name" ;;
  *when_idle*) shown when_idle "$name" ;;
  '{{.State.Status}}') shown status "$name" ;;
  '{{.State.Running}}') [ "$(shown status "$name")" = running ] && echo true || echo false ;;
  '{{.State.ExitCode}}') echo 0 ;;
  '{{.State.Error}}') shown error "$name" || : ;;
  *definition*state*) printf '%s' "$4" | sed 's/{{index[^}]*}}//; s/{{[^}]*}}/null/g' ;;
  *) echo ;;
  esac ;;
"start "*)
  if mv "$CONTAINERS/falls" "$CONTAINERS/down" 2>/dev/null; then echo "error during connect: EOF" >&2; exit 1; fi
  if [ -e "$CONTAINERS/refuses" ]; then echo x >>"$CONTAINERS/refuses"; cat "$CONTAINERS/words" >&2; exit 1; fi
  if [ -s "$CONTAINERS/$2/error" ]; then echo "Error response from daemon: x" >&2; exit 1; fi
  echo running >"$CONTAINERS/$2/status"; echo "$2" >>"$CONTAINERS/started"
  if rm "$CONTAINERS/breaks" 2>/dev/null; then echo "error during connect: EOF" >&2; exit 1; fi ;;
"logs "*) : ;;
"wait "*) while [ "$(shown status "$2")" = running ]; do command sleep 0.05; done ;;
esac
""".replace("!= ID ]", f"!= {ID} ]")


#: stand-in for systemd: a container's directory may mark its unit as inactive
SYSTEMCTL = """\
name=${7#hostwright-batch@}; name=${name%.service}
cat "$CONTAINERS/workspace-$name/unit" 2>/dev/null || echo ActiveState=active
"""


class Host:
    """A host with this program, a docker that records its commands, and a made-up list of GPU processes."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.locks, self.apps = folder, folder / "locks", folder / "apps"
        self.apps.write_text("")
        (folder / "containers").mkdir()
        self.program = folder / "workspace-batch"
        text = sh_file(role.__file__, "states/sh/batch.sh").replace("/run/hostwright-batch", str(self.locks))
        self.program.write_text(f"#!/bin/sh\n{text.replace('/proc/', f'{folder}/proc/')}")
        self.program.chmod(0o755)
        setpriv = 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"'
        smi = f"[ ! -e {folder}/broken ] || exit 9; cat {self.apps}; [ ! -e {folder}/worn ] || exit 14"
        self.environment = {
            **stub(
                folder,
                docker=DOCKER,
                setpriv=setpriv,
                systemctl=SYSTEMCTL,
                **{"nvidia-smi": smi, "sleep": "command -p sleep 0.1"},
            ),
            "CONTAINERS": f"{folder}/containers",
        }

    def made(self, name: str, *gpus: str, when_idle: bool = False) -> Path:
        """Create the waiting container of a batch workspace, and return the directory with its user's files."""
        container, files = self.folder / "containers" / f"workspace-{name}", self.folder / "files" / name
        container.mkdir(parents=True)
        files.mkdir(parents=True)
        # all within one second, as in one provision
        made = f"2026-11-23T20:38:06.{len(list(container.parent.iterdir())):09d}".rstrip("0") + "Z"
        fields = {
            "files": str(files), "gpus": ",".join(gpus), "status": "created", "when_idle": str(when_idle).lower(),
            "created": made,
        }  # fmt: skip
        for field, value in fields.items():
            (container / field).write_text(f"{value}\n")
        return files

    def ended(self, name: str) -> None:
        (self.folder / "containers" / f"workspace-{name}" / "status").write_text("exited\n")

    @property
    def started(self) -> list[str]:
        path = self.folder / "containers" / "started"
        return path.read_text().replace("workspace-", "").split() if path.exists() else []

    @contextmanager
    def queued(self, name: str) -> Iterator[subprocess.Popen[bytes]]:
        run = subprocess.Popen([self.program, name], env=self.environment, start_new_session=True)
        try:
            yield run
        finally:
            if run.poll() is None:
                os.killpg(run.pid, 9)
            run.wait()

    def why(self, name: str) -> str:
        done = subprocess.run(
            [self.program, name, "why"], env=self.environment, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_runs_of_one_card_go_one_after_the_other_and_say_whom_they_wait_for(host: Host) -> None:
    """bamos/setGPU issue 3: two programs that start at once select the same GPU."""
    host.made("a", CARD, OTHER)
    files = host.made("b", OTHER)
    with host.queued("a") as first:
        until(lambda: host.started == ["a"], "what was started")
        assert host.why("a") == ""
        with host.queued("b") as second:
            until(lambda: host.why("b") == f"batch run a has {OTHER}", "why it waits")
            state = json.loads((files / "batch.json").read_text())
            assert (state["state"], state["waits_for"]) == ("queued", OTHER)
            assert host.started == ["a"]
            host.ended("a")
            until(lambda: host.started == ["a", "b"], "what was started")
            host.ended("b")
            assert (first.wait(60), second.wait(60)) == (0, 0)
    state = json.loads((files / "batch.json").read_text())
    assert (state["state"], state["waits_for"]) == ("ended", "")
    assert host.why("b") == ""


def test_nobody_passes_a_run_that_waits_for_two_cards(host: Host) -> None:
    """buildbuddy pull request 10109: the job for all GPUs was always skipped, because all were never free at once."""
    host.made("a", CARD)
    host.made("b", CARD, OTHER)
    host.made("c", OTHER)
    host.made("d", CARD)
    host.made("e", OTHER, CARD)
    with host.queued("a") as run:
        until(lambda: host.started == ["a"], "what was started")
        # as after a reboot: the last declared ones come first
        with host.queued("e"), host.queued("d"), host.queued("c"), host.queued("b"):
            first = f"batch run b, which wants {CARD} too, was declared before it"
            until(lambda: host.why("d") == first, "why it waits")
            until(lambda: host.why("c") == first.replace(CARD, OTHER), "why it waits")
            until(lambda: host.why("b") == f"batch run a has {CARD}", "why it waits")
            assert host.started == ["a"]
            host.ended("a")
            assert run.wait(60) == 0
            until(lambda: host.started == ["a", "b"], "what was started")
            until(lambda: host.why("c") == f"batch run b has {OTHER}", "why it waits")
            host.ended("b")
            until(lambda: sorted(host.started[2:]) == ["c", "d"], "what was started")
            assert host.why("e").startswith("batch run ")
            host.ended("c")
            host.ended("d")
            until(lambda: host.started[4:] == ["e"], "what was started")
            host.ended("e")


def test_the_order_holds_over_many_runs(host: Host) -> None:
    """At each end of a run on one GPU, another run on that GPU is declared, behind the run on both."""
    host.made("s0", CARD)
    host.made("big", CARD, OTHER)
    with ExitStack() as runs:
        runs.enter_context(host.queued("s0"))
        until(lambda: host.started == ["s0"], "what was started")
        runs.enter_context(host.queued("big"))
        for number in range(1, 6):
            host.made(f"s{number}", OTHER)
            runs.enter_context(host.queued(f"s{number}"))
            until(lambda name=f"s{number}": "big" in host.why(name), "why it waits")  # type: ignore[misc]
        host.ended("s0")
        until(lambda: host.started == ["s0", "big"], "what was started")
        host.ended("big")
        for number in range(1, 6):
            until(lambda: host.started[2:] == [f"s{one}" for one in range(1, number + 1)], "what was started")  # noqa: B023
            host.ended(f"s{number}")


@pytest.mark.parametrize("unit", ["ActiveState=failed", "ActiveState=inactive"])
def test_who_is_not_in_the_queue_holds_nobody_up(host: Host, unit: str) -> None:
    """A container that Docker refused, and a stopped one: both exist and never ran."""
    host.made("b", CARD)
    (host.folder / "containers/workspace-b/unit").write_text(f"{unit}\n")
    host.made("c", CARD)
    with host.queued("c"):
        until(lambda: host.started == ["c"], "what was started")
        host.ended("c")


def test_one_that_the_boot_is_yet_to_begin_goes_first(host: Host) -> None:
    host.made("b", CARD)
    unit = host.folder / "containers/workspace-b/unit"
    unit.write_text("ActiveState=inactive\nJob=412\n")
    host.made("c", CARD)
    with host.queued("c"):
        until(lambda: host.why("c") == f"batch run b, which wants {CARD} too, was declared before it", "why it waits")
        with host.queued("b"):
            until(lambda: host.started == ["b"], "what was started")
            host.ended("b")
            until(lambda: host.started == ["b", "c"], "what was started")
            host.ended("c")


def test_whoever_waits_behind_a_run_that_is_taken_out_begins_at_once(host: Host) -> None:
    host.made("a", CARD)
    host.made("b", CARD, OTHER)
    host.made("c", OTHER)
    with host.queued("a"):
        until(lambda: host.started == ["a"], "what was started")
        with host.queued("c"):
            with host.queued("b"):
                until(lambda: "run b" in host.why("c") and "run a" in host.why("b"), "why they wait")
            (host.folder / "containers/workspace-b/unit").write_text("ActiveState=inactive\n")
            until(lambda: host.started == ["a", "c"], "what was started")
            host.ended("c")
        host.ended("a")


def test_one_that_was_killed_leaves_its_card(host: Host) -> None:
    """kaldi-asr/kaldi pull request 2901: GPUs stayed locked, and other runs waited forever."""
    host.made("a", CARD)
    host.made("b", CARD)
    with host.queued("a"):
        until(lambda: host.started == ["a"], "what was started")
    with host.queued("b"):
        until(lambda: host.started == ["a", "b"], "what was started")
        host.ended("b")


def test_a_docker_that_is_down_when_the_run_begins_is_waited_for(host: Host) -> None:
    files, down = host.made("a", CARD), host.folder / "containers" / "down"
    down.write_text("")
    with host.queued("a") as run:
        until(lambda: host.why("a") == "Docker does not answer", "why it waits")
        assert not (files / "batch.json").exists()
        down.unlink()
        until(lambda: host.started == ["a"], "what was started")
        host.ended("a")
        assert run.wait(60) == 0
    assert host.started == ["a"]
    assert (json.loads((files / "batch.json").read_text())["state"], host.why("a")) == ("ended", "")


def test_a_docker_that_goes_away_at_the_start_is_waited_for(host: Host) -> None:
    files = host.made("a", CARD)
    (host.folder / "containers" / "falls").write_text("")
    with host.queued("a") as run:
        until(lambda: host.why("a") == "Docker does not answer", "why it waits")
        assert json.loads((files / "batch.json").read_text())["state"] == "queued"
        assert host.started == []
        (host.folder / "containers" / "down").unlink()
        until(lambda: host.started == ["a"], "what was started")
        host.ended("a")
        assert run.wait(60) == 0
    assert host.started == ["a"]


def test_a_docker_that_goes_away_after_the_start_starts_it_no_second_time(host: Host) -> None:
    files = host.made("a", CARD)
    (host.folder / "containers" / "breaks").write_text("")
    with host.queued("a") as run:
        until(lambda: host.started == ["a"], "what was started")
        host.ended("a")
        assert run.wait(60) == 0
    assert host.started == ["a"]
    assert json.loads((files / "batch.json").read_text())["state"] == "ended"


def test_one_that_docker_refuses_is_said_to_have_not_started(host: Host) -> None:
    files = host.made("a", CARD)
    (host.folder / "containers/workspace-a/error").write_text("no such runtime\n")
    with host.queued("a") as run:
        assert run.wait(60) == 1
    record = json.loads((files / "batch.json").read_text())
    assert (record["state"], record["status"], host.started) == ("not started", None, [])


def test_a_container_that_is_gone_is_no_docker_that_is_down(host: Host) -> None:
    with host.queued("a") as run:
        assert run.wait(60) == 1


def test_where_it_says_so_it_waits_for_other_programs_too(host: Host) -> None:
    files = host.made("a", CARD, when_idle=True)
    host.apps.write_text(f"{OTHER}, 4710, python3\n{CARD}, 4711, /usr/bin/python3\n")
    (host.folder / "proc/4711").mkdir(parents=True)
    (host.folder / "proc/4711/cgroup").write_text(f"4:memory:/docker/{ID}\n0::/docker/{ID}\n")
    with host.queued("a") as run:
        reason = f"python3 (4711) of workspace alice-lab uses {CARD}"
        until(lambda: host.why("a") == reason, "why it waits")
        assert json.loads((files / "batch.json").read_text())["waits_for"] == reason
        host.apps.write_text(f'{CARD}, 4712, "; rm -rf $(x) \\e[31m\n')
        until(lambda: host.why("a") == f"rm-rfxe31m (4712) uses {CARD}", "why it waits")
        (host.folder / "broken").write_text("")
        until(lambda: host.why("a") == "nvidia-smi does not answer", "why it waits")
        assert host.started == []
        (host.folder / "broken").unlink()
        (host.folder / "worn").write_text("")
        host.apps.write_text(f"{OTHER}, 4710, python3\nWARNING: infoROM is corrupted at gpu 0000:3B:00.0\n")
        until(lambda: host.started == ["a"], "what was started")
        host.ended("a")
        assert run.wait(60) == 0


def test_another_that_shares_does_not_wait_unless_it_says_so(host: Host) -> None:
    host.made("a", CARD)
    host.apps.write_text(f"{CARD}, 4711, python3\n")
    with host.queued("a"):
        until(lambda: host.started == ["a"], "what was started")
        host.ended("a")


def test_an_old_mig_device_has_a_lock_although_its_name_has_slashes(host: Host) -> None:
    host.made("a", f"MIG-{CARD}/1/0")
    with host.queued("a"):
        until(lambda: host.started == ["a"], "what was started")
        host.ended("a")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ('Error response from daemon: "x" {{.Id}} \\\\ é\nError: failed to start containers: workspace-a\n',
         "Error response from daemon: x .Id   Error: failed to start containers: workspace-a"),
        ("", "it says nothing"),
    ],
)  # fmt: skip
def test_a_start_that_fails_without_an_error_is_not_tried_for_ever(host: Host, words: str, reason: str) -> None:
    """Docker responds, reports the container as created, and records no reason."""
    files = host.made("a", CARD)
    (host.folder / "containers/refuses").write_text("")
    (host.folder / "containers/words").write_text(words)
    with host.queued("a") as run:
        assert run.wait(60) == 1
    assert (host.folder / "containers/refuses").read_text().count("x") == 30
    told = json.loads((files / "batch.json").read_text())
    assert (told["state"], told["error"]) == ("not started", f"Docker does not start it: {reason}")
    assert host.started == []
    failed = "echo 'hostwright-batch@a.service loaded failed failed Batch run of the workspace a'"
    (host.folder / "bin/systemctl").write_text(f"#!/bin/sh\n{failed}\n")
    (host.folder / "bin/systemctl").chmod(0o755)
    script = WORKSPACES_PROBE.script.replace(BATCH, str(host.program))
    done = subprocess.run(["/bin/sh", "-c", script], env=host.environment, capture_output=True, text=True, check=True)
    line = next(line for line in done.stdout.splitlines() if line.startswith("waits a "))
    waiting = recorded(b_run={"state": "created"}).replace(
        "network hostwright-bob\n", line.replace(" a ", " b-run ") + "\n"
    )
    (row,) = [
        row for row in rows_of("gpu01", (), read_workspaces(facts(states(), answers(waiting)))) if row.name == "b-run"
    ]
    assert row.state.startswith("not started: Docker does not start it: ")
    (host.folder / "containers/refuses").unlink()  # its next run starts from the beginning
    with host.queued("a") as run:
        until(lambda: host.started == ["a"], "what was started")
        host.ended("a")
        assert run.wait(60) == 0
    assert not (host.locks / "a.refused").exists()


def test_a_run_whose_persons_disk_is_full_says_so(host: Host) -> None:
    """zero-to-jupyterhub#518. Without batch.json the failure would be invisible; the host's record replaces it."""
    host.made("a").rmdir()
    with host.queued("a") as run:
        assert run.wait(60) == 1
    assert host.started == []
    refused = (host.locks / "a.refused").read_text()
    assert refused.lower() == "its batch.json cannot be written: directory nonexistent\n"


def test_the_list_and_the_logs_say_why(host: Host) -> None:
    waiting = recorded(b_run={"state": "created"})
    look = read_workspaces(
        facts(states(), answers(waiting.replace("network hostwright-bob\n", "batch b-run\nwaits b-run X y z \n")))
    )
    (row,) = [row for row in rows_of("gpu01", (), look) if row.name == "b-run"]
    assert row.state == "queued: X y z, no longer declared"
    refused = recorded(b_run={"state": "created", "error": "no such runtime"})
    (row,) = [
        row for row in rows_of("gpu01", (), read_workspaces(facts(states(), answers(refused)))) if row.name == "b-run"
    ]
    assert row.state == "not started: no such runtime, no longer declared"
    script = logs_script(space(ENTRIES["b-run"]), 10)
    assert f"{BATCH} x why" in script


def test_the_look_asks_each_that_is_queued(host: Host) -> None:
    host.made("a", CARD)
    host.made("b", CARD)
    units = (
        "echo 'hostwright-batch@b.service loaded active running x'; echo 'hostwright-batch@old.service loaded failed x'"
    )
    (host.folder / "bin/systemctl").write_text(f"#!/bin/sh\n{units}\n")
    (host.folder / "bin/systemctl").chmod(0o755)
    with host.queued("a"):
        until(lambda: host.started == ["a"], "what was started")
        with host.queued("b"):
            until(lambda: host.why("b") != "", "why it waits")
            script = WORKSPACES_PROBE.script.replace(BATCH, str(host.program))
            done = subprocess.run(
                ["/bin/sh", "-c", script], env=host.environment, capture_output=True, text=True, check=True
            )
    assert [line for line in done.stdout.splitlines() if line.startswith(("batch", "waits"))] == [
        "batch b",
        f"waits b batch run a has {CARD} ",
    ]


def test_waiting_until_a_card_is_idle_is_of_batch_runs_with_whole_cards(tmp_path: Path) -> None:
    batch = "user: alice, kind: batch, command: [x], when_idle: true"
    v = read(
        tmp_path, f"a: {{{batch}, gpus: [0], share: true}}\nb: {{user: bob, kind: jupyter, gpus: [0], share: true}}"
    )
    assert v.containers["a"].when_idle
    assert "when_idle needs gpus" in refused(tmp_path, f"a: {{{batch}}}")
    part = "MIG-a65afc88-50b5-5ccf-b0a8-f93b3247ae9e"
    assert "whole GPUs" in refused(tmp_path, f"a: {{{batch}, gpus: [{part}]}}")
    assert "for the kind batch" in refused(tmp_path, "a: {user: alice, kind: jupyter, gpus: [0], when_idle: true}")


def test_docker_is_told_only_where_it_is_declared() -> None:
    entry = WorkspaceEntry("bob", "batch", gpus=("0",), image=IMAGE, command=("true",))
    label = "hostwright.when_idle=true"
    assert label not in docker_arguments(space(entry), PLACED)
    assert label in docker_arguments(space(replace(entry, when_idle=True)), PLACED)
