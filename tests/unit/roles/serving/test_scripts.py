"""Scripts of served models in a real shell: a model server in this process, and a Docker with one container."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from hostwright.plan.host.jobs import ERROR
from hostwright.plan.model import Change, Refusal
from hostwright.standard.roles.serving.models.directory import pack, read_model
from hostwright.standard.roles.serving.states.served import ModelBrought, ModelReadable, ModelServed, config_of
from hostwright.standard.roles.serving.states.unserved import Unserved
from hostwright.standard.roles.workspaces.declared.workspace import STATE
from lab.serving import rest
from lab.serving.config import read_config
from lab.serving.status import Failed
from lab.serving.versions import Versions
from tests.unit.lab.test_lab_serving import HalfPlus
from tests.unit.roles.serving.test_models import HALF_PLUS_TWO
from tests.unit.roles.serving.test_served import ONE, asked, look


class Host:
    """A host's directory of workspaces, a Docker with one container, and a model server in this process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "workspaces"
        self.models = self.state / "half" / "models"
        self.bin = folder / "bin"
        self.bin.mkdir()
        (self.bin / "docker").write_text(
            '#!/bin/sh\ncase "$1 $2" in'
            ' "container inspect") case $4 in *Status*) echo "running 0" ;; *) echo 0 ;; esac ;;'
            f' "ps --filter") echo "half $(cat {folder}/port)" ;; *) echo "its last line" ;; esac\n'
        )
        (self.bin / "docker").chmod(0o755)
        self.slow = 0.0
        self.versions = Versions(self.load, retries=0, poll_s=0.1, early_labels=True, log=lambda line: None)
        self.server = rest.server_of(self.versions, ("127.0.0.1", 0))
        self.port = int(self.server.server_address[1])
        (folder / "port").write_text(str(self.port))

    def load(self, path: str) -> HalfPlus:
        time.sleep(self.slow)
        if "broken" in (Path(path) / "saved_model.pb").read_text("utf-8", "replace"):
            raise Failed("INTERNAL", 'Op type not registered "Foo" in binary')
        return HalfPlus(float(Path(path).name))

    def start(self) -> None:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.versions.start()

        def reloads() -> None:
            while not self.versions.stopped.wait(0.1):
                try:
                    text = (self.models / "models.config").read_text().replace("/models/", f"{self.models}/")
                    (self.folder / "read.config").write_text(text)
                    self.versions.reload(read_config(str(self.folder / "read.config")))
                except (OSError, Failed):
                    continue

        threading.Thread(target=reloads, daemon=True).start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.versions.stop()

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-euc", script.replace(STATE, str(self.state))],
            env={**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}"},
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    def brought(self, number: int, *, broken: bool = False) -> str:
        """Install a version with its script, and return its digest."""
        source = self.folder / f"source-{number}"
        (source / "variables").mkdir(parents=True)
        for name in ("saved_model.pb", "variables/variables.index", "variables/variables.data-00000-of-00001"):
            (source / name).write_bytes((HALF_PLUS_TWO / name).read_bytes())
        (source / "assets.txt").write_text(f"version {number}\n")
        model = read_model(source)
        if broken:  # as by a newer TensorFlow
            text = (source / "saved_model.pb").read_bytes() + b"\x7a\x06broken"
            (source / "saved_model.pb").write_bytes(text)
            model = read_model(source)
        place = self.folder / f"cache-{number}" / "model.tar"
        place.parent.mkdir()
        artifact = pack(model, "half", number, place)
        change = asked(ModelBrought("half", number, model.digest, artifact), look())
        assert isinstance(change, Change)
        script = change.steps[0].script
        (line,) = [line for line in script.splitlines() if line.startswith("archive=")]
        done = self.run(script.replace(line, f"archive={place}"))
        assert done.returncode == 0, done.stderr
        assert not place.exists()
        return model.digest

    def looked(self) -> str:
        probe = ONE.probes()[0]
        done = self.run(probe.script)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def reach(self, state: ModelServed) -> subprocess.CompletedProcess[str]:
        """Plan with the real probe, and run the planned step."""
        change = asked(state, self.looked())
        assert isinstance(change, Change), change
        return self.run(change.steps[0].script)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    made = Host(tmp_path)
    made.models.mkdir(parents=True)
    (made.models / "models.config").write_text("model_config_list {}\n")
    made.start()
    yield made
    made.stop()


def asking(host: Host, ended: Callable[[], bool]) -> Counter[str]:
    """Return the live version's responses to consecutive requests until the end."""
    answers: Counter[str] = Counter()
    while not ended():
        connection = HTTPConnection("127.0.0.1", host.port, timeout=20)
        try:
            connection.request("POST", "/v1/models/half/labels/live:predict", '{"instances": [2.0]}')
            reply = connection.getresponse()
            answers[f"{reply.status} {json.loads(reply.read())}"] += 1
        except OSError as error:
            answers[repr(error)] += 1
        finally:
            connection.close()
    return answers


def why(done: subprocess.CompletedProcess[str]) -> str:
    """Return the one line in which a step reports its failure."""
    (line,) = [line for line in done.stdout.splitlines() if line.startswith(ERROR)]
    return line.removeprefix(ERROR)


FIRST, SECOND = "200 {'predictions': [2.0]}", "200 {'predictions': [3.0]}"


def test_versions_are_served_switched_and_let_go_without_a_lost_request(host: Host) -> None:
    one = ModelServed("half", host.port, ((1, host.brought(1)),), 1)
    done = host.reach(one)
    assert done.returncode == 0, done.stderr
    assert asked(one, host.looked()) is None
    host.slow = 1.0
    end = threading.Event()
    counted: list[Counter[str]] = []
    threads = [threading.Thread(target=lambda: counted.append(asking(host, end.is_set))) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        two = host.brought(2)
        both = ModelServed("half", host.port, (*one.versions, (2, two)), 1)
        for state in (
            both,
            ModelServed("half", host.port, both.versions, 2),
            ModelServed("half", host.port, ((2, two),), 2),
        ):
            done = host.reach(state)
            assert done.returncode == 0, done.stderr
            assert asked(state, host.looked()) is None
        since = asking(host, iter([False] * 50 + [True]).__next__)
        back = ModelServed("half", host.port, ((1, one.versions[0][1]),), 1)
    finally:
        end.set()
        for thread in threads:
            thread.join()
    answers = sum(counted, Counter())
    assert set(answers) == {FIRST, SECOND}, answers
    assert since == {SECOND: 50}
    assert not (host.models / "half" / "1").exists()
    assert isinstance(asked(back, host.looked()), Refusal)  # its files are removed


def test_a_version_that_does_not_load_leaves_the_other_as_it_was(host: Host) -> None:
    one = ModelServed("half", host.port, ((1, host.brought(1)),), 1)
    assert host.reach(one).returncode == 0
    before = (host.models / "models.config").read_text()
    both = ModelServed("half", host.port, (*one.versions, (2, host.brought(2, broken=True))), 2)
    done = host.reach(both)
    assert done.returncode == 1
    assert why(done) == (
        'model half: version 2 does not load: Op type not registered "Foo" in binary (INTERNAL); version 1 goes on '
        "serving"
    )
    assert not (host.models / "models.config.former").exists()
    assert (host.models / "models.config").read_text() == before  # a restarted server needs no version 2
    assert asking(host, iter([False] * 20 + [True]).__next__) == {FIRST: 20}
    again = asked(both, host.looked())
    assert isinstance(again, Change)
    taken_out = host.reach(one)
    assert (taken_out.returncode, asked(one, host.looked())) == (0, None)


def test_a_first_version_that_does_not_load(host: Host) -> None:
    done = host.reach(ModelServed("half", host.port, ((1, host.brought(1, broken=True)),), 1))
    assert done.returncode == 1
    assert why(done).endswith("; nothing is served by it")
    assert (host.models / "models.config").read_text() == "model_config_list {}\n"


def test_what_a_crash_left_of_a_change_is_put_back_before_the_next(host: Host) -> None:
    one = ModelServed("half", host.port, ((1, host.brought(1)),), 1)
    assert host.reach(one).returncode == 0
    before = (host.models / "models.config").read_text()
    (host.models / "models.config").write_text(config_of("half", (1, 2), 2))
    (host.models / "models.config.former").write_text(before)
    assert host.looked().splitlines()[1] == "cut half"
    assert host.reach(one).returncode == 0
    assert (host.models / "models.config").read_text() == before
    assert asked(one, host.looked()) is None


@pytest.mark.parametrize("closed", ["half/1/saved_model.pb", "half/1/variables", "half/1", "models.config", ""])
def test_files_that_were_closed_to_the_server_are_named_and_opened(host: Host, closed: str) -> None:
    """After a ``chmod``: the loaded version continues, but would not load again."""
    one = ModelServed("half", host.port, ((1, host.brought(1)),), 1)
    assert host.reach(one).returncode == 0
    readable = ModelReadable("half")
    assert asked(readable, host.looked()) is None
    path = (host.models / closed) if closed else host.models
    mode = path.stat().st_mode & 0o777
    path.chmod(mode & 0o700)
    change = asked(readable, host.looked())
    assert isinstance(change, Change)
    assert change.have == f"{path} has mode {mode & 0o700:o}, with which its server cannot read it"
    done = host.run(change.steps[0].script)
    assert (done.returncode, done.stderr) == (0, "")
    assert path.stat().st_mode & 0o777 == mode
    assert asked(readable, host.looked()) is None


def test_an_archive_that_was_changed_brings_nothing(host: Host, tmp_path: Path) -> None:
    model = read_model(HALF_PLUS_TWO)
    place = tmp_path / "cache" / "model.tar"
    place.parent.mkdir()
    artifact = pack(model, "half", 1, place)
    place.write_bytes(place.read_bytes().replace(b"serving_default", b"serving_DEFAULT"))
    change = asked(ModelBrought("half", 1, model.digest, artifact), look())
    (line,) = [line for line in change.steps[0].script.splitlines() if line.startswith("archive=")]
    done = host.run(change.steps[0].script.replace(line, f"archive={place}"))
    assert done.returncode == 1
    assert why(done) == "model half version 1: a file is not what its checksum says"
    assert [path.name for path in (host.models / "half").iterdir()] == []
    assert [path.name for path in host.models.iterdir() if path.name.startswith(".")] == []


def test_models_are_taken_off(host: Host) -> None:
    one = ModelServed("half", host.port, ((1, host.brought(1)),), 1)
    assert host.reach(one).returncode == 0
    gone = asked(Unserved(()), host.looked())
    assert host.run(gone.steps[0].script).returncode == 0
    assert asked(Unserved(()), host.looked()) is None
    assert not (host.models / "half").exists()
    _, answer = rest.answer(host.versions, "POST", "/v1/models/half:predict", b'{"instances": [1]}')
    assert "Servable not found" in answer.decode()


def test_models_that_answer_are_taken_off_once_the_last_request_has_ended(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = ModelServed("half", host.port, ((1, host.brought(1)),), 1)
    assert host.reach(one).returncode == 0
    change = asked(Unserved(()), host.looked())
    told, awaited = host.versions.status, threading.Event()

    def status(model: str, number: int | None) -> list[dict[str, Any]]:
        rows = told(model, number)
        if [row["state"] for row in rows] == ["UNLOADING"]:
            awaited.set()
        return rows

    monkeypatch.setattr(host.versions, "status", status)
    with ThreadPoolExecutor(1) as beside:
        with host.versions.handle("half", 1, None):
            running = beside.submit(host.run, change.steps[0].script)
            assert awaited.wait(60), "the script does not ask whether the model is let go"
            assert (host.models / "half" / "1" / "saved_model.pb").exists()
            assert not running.done()
        assert running.result().returncode == 0
    assert not (host.models / "half").exists()


def test_models_without_a_server_are_taken_off(host: Host) -> None:
    host.brought(1)
    change = asked(Unserved(()), host.looked())
    host.server.shutdown()
    host.server.server_close()
    done = host.run(change.steps[0].script)
    assert (done.returncode, done.stderr) == (0, "")
    assert not (host.models / "half").exists()
