"""The program that runs a batch workspace, with a docker that answers from a directory: its records of each run."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from hostwright.standard import roles
from tests.unit.support.stubs import stub

PROGRAM = Path(roles.__path__[0]) / "workspaces" / "states" / "sh" / "batch.sh"
#: the container's fields are files in a directory; each call of `logs` prints the next of its files
DOCKER = r"""
cd {folder}
case "$1 $2" in
"container inspect")
  case $4 in
  *Config.User*) echo 2001:2001 ;;
  *Mounts*) echo {folder}/home ;;
  *State.Running*) if rm lie 2>/dev/null; then echo false | tee running; else cat running; fi ;;
  *State.ExitCode}}}}) cat code ;;
  "{{{{.State.Error}}}}") echo ;;
  *State.Status}}}}) cat status ;;
  *Labels*gpus*) echo ;;
  *Labels*) cat definition ;;
  *) echo "$4" | sed 's/{{{{json[^}}]*}}}}/""/g; s/{{{{[^}}]*}}}}/false/g' ;;
  esac
  ;;
"start workspace-run") echo running >status; echo true >running ;;
"logs -f")
  call=$(ls calls | wc -l)
  echo "$*" >calls/$call
  cat logs.$call
  [ ! -e lies ] || touch lie
  if [ -e logs.$((call + 1)) ]; then exit 1; fi # Docker was restarted, and the container goes on
  echo exited >status
  echo false >running
  ;;
"logs --since") cat late ;;
"wait workspace-run") until [ "$(cat running)" = false ]; do sleep 0.05; done ;;
*) exit 9 ;;
esac
"""
SETPRIV = 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"'


@dataclass
class Container:
    """A batch run's container, its program, and the user's files."""

    folder: Path
    environment: dict[str, str]

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def write(self, **fields: str) -> None:
        for name, text in fields.items():
            (self.folder / name.replace("_", ".")).write_text(text)

    def run(self, *turn: str) -> dict[str, object]:
        """Run the program to its end, and return batch.json."""
        text = PROGRAM.read_text().replace("/run/hostwright-batch", str(self.folder / "locks"))
        (self.folder / "program").write_text(text)
        words = ["/bin/sh", str(self.folder / "program"), "run", *turn]
        subprocess.run(words, env=self.environment, check=True, timeout=60)
        document: dict[str, object] = json.loads((self.home / "batch.json").read_text())
        return document

    @property
    def log(self) -> str:
        return (self.home / "batch.log").read_text()


@pytest.fixture
def container(tmp_path: Path) -> Container:
    made = Container(tmp_path, stub(tmp_path, docker=DOCKER.format(folder=tmp_path), setpriv=SETPRIV))
    made.home.mkdir()
    (tmp_path / "calls").mkdir()
    made.write(late="", status="created\n", running="false\n", code="3\n", definition="abc\n")
    return made


def told(state: str) -> str:
    return f'{{"workspace":"run","definition":"abc","state":"{state}","status":null}}\n'


def test_what_it_prints_while_docker_is_restarted_is_in_its_log(container: Container) -> None:
    container.write(logs_0="one\n", logs_1="two\n")
    ended = container.run("run")
    assert container.log == "one\ntwo\n"
    assert (ended["state"], ended["status"]) == ("ended", 3)
    assert float((container.folder / "calls" / "1").read_text().split()[3]) > 0  # only new output


def test_a_docker_that_has_just_started_and_calls_it_ended_cuts_no_log(container: Container) -> None:
    container.write(logs_0="one\n", logs_1="never asked for\n", late="two\n", lies="")
    assert container.run("run")["state"] == "ended"
    assert container.log == "one\ntwo\n"


def test_the_log_of_a_run_that_ended_stays_at_the_next_boot(container: Container) -> None:
    container.write(status="exited\n", logs_0="what Docker still has\n")
    (container.home / "batch.json").write_text(told("ended"))
    (container.home / "batch.log").write_text("all that it printed\n")
    assert container.run()["state"] == "ended"
    assert container.log == "all that it printed\n"


def test_a_run_that_a_reboot_cut_keeps_its_log_and_says_how_it_ended(container: Container) -> None:
    container.write(status="exited\n", code="137\n", logs_0="the last\n")
    (container.home / "batch.json").write_text(told("running"))
    (container.home / "batch.log").write_text("all before\n")
    ended = container.run()
    assert (ended["state"], ended["status"]) == ("ended", 137)
    assert container.log == "all before\nthe last\n"


def test_another_definition_begins_another_log(container: Container) -> None:
    container.write(status="exited\n", logs_0="new\n", definition="def\n")
    (container.home / "batch.json").write_text(told("ended"))
    (container.home / "batch.log").write_text("of the former run\n")
    assert container.run()["definition"] == "def"
    assert container.log == "new\n"
