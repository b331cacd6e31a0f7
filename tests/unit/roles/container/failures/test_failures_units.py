"""Units of Docker that failed, are masked or reached their start limit are found; starting units are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hostwright.plan.model import Probe
from hostwright.standard.roles.container.engine import LINKS_UNIT
from hostwright.standard.roles.container.failures import docker, units
from hostwright.standard.roles.container.failures.state import COMMAND, SETTINGS
from tests.unit.support.auditcontexts import evidence, show, shown
from tests.unit.support.shell import program, run

STATES = units.UNITS.states
JOURNALS = units.UNITS.journals
EXITED = {"active": "failed", "sub": "failed", "result": "exit-code"}
JSON = SETTINGS[1]


def journal(unit: str, *lines: str) -> str:
    return "".join(f"{unit}: {line}\n" for line in lines)


def test_a_masked_docker_is_seen() -> None:
    text = shown(docker=show("docker.service", "inactive", "dead", load="masked"))
    assert evidence("docker-masked", {STATES: text}) == ["docker.service is masked"]


def test_a_docker_whose_socket_is_masked_cannot_be_started() -> None:
    masked = show(units.SOCKET, "inactive", "dead", load="masked")
    text = shown(docker=show("docker.service", "inactive", "dead")).replace(show(units.SOCKET), masked)
    assert evidence("docker-masked", {STATES: text}) == ["docker.socket is masked"]
    assert evidence("docker-masked", {STATES: shown().replace(show(units.SOCKET), masked)}) == [], "it needs none"
    assert evidence("docker-stopped", {STATES: text}) == []


def test_a_docker_whose_socket_has_no_group_is_not_said_to_be_stopped() -> None:
    """moby/moby#29179"""
    socket = show(units.SOCKET, "failed", "failed", result="exit-code")
    text = shown(docker=show("docker.service", "inactive", "dead")).replace(show(units.SOCKET), socket)
    gone: dict[Probe, Any] = {STATES: text, docker.HOOK_THERE: "/usr/bin/nvidia-container-runtime-hook\ngroup docker\n"}
    assert evidence("docker-stopped", gone) == []
    assert evidence("docker-group-gone", gone) == [
        "the group docker of docker.socket does not exist; docker.socket is failed (failed, exit-code)"
    ]


def test_a_failed_unit_says_what_its_program_said_last() -> None:
    said = journal(
        "docker.service",
        "Starting Docker Application Container Engine...",
        "failed to start daemon: no space left on device",
        "docker.service: Main process exited, code=exited, status=1/FAILURE",
        "Failed to start Docker Application Container Engine.",
    )
    given_ = {STATES: shown(docker=show("docker.service", **EXITED)), JOURNALS: said}
    assert evidence("container-unit-failed", given_) == [
        "docker.service is failed (failed, exit-code)",
        "failed to start daemon: no space left on device",
        "see `hostwright doctor --explain no-space`",
    ]
    assert evidence("start-limit", given_) == []


def test_a_failed_unit_is_seen_without_its_journal() -> None:
    text = shown(containerd=show("containerd.service", **EXITED))
    assert evidence("container-unit-failed", {STATES: text, JOURNALS: None}) == [
        "containerd.service is failed (failed, exit-code)"
    ]


@pytest.mark.parametrize(
    "sub, result, restarts, seen",
    [
        ("auto-restart", "exit-code", "0", ["docker.service is activating (auto-restart, exit-code)"]),
        ("auto-restart-queued", "signal", "x", ["docker.service is activating (auto-restart-queued, signal)"]),
        ("start", "success", "7", ["docker.service is activating (start, restarts: 7)"]),
        ("start", "success", "0", []),
        ("start-pre", "", "9" * 30, []),
        ("auto-restart", "success", "0", []),
    ],
)
def test_restarting_unit_has_failed_and_starting_one_has_not(
    sub: str, result: str, restarts: str, seen: list[str]
) -> None:
    text = shown(docker=show("docker.service", "activating", sub, result=result) + f"NRestarts={restarts}\n")
    assert evidence("container-unit-failed", {STATES: text}) == seen


def test_a_unit_that_runs_again_has_not_failed() -> None:
    text = shown(docker=show("docker.service") + "NRestarts=3\n")
    assert evidence("container-unit-failed", {STATES: text}) == []


def test_what_a_program_said_at_an_earlier_start_is_no_evidence() -> None:
    said = journal(
        LINKS_UNIT,
        "Starting Links in /dev/char to the NVIDIA devices...",
        "Creating link /dev/char/195:0 => ../nvidia0",
        "Finished Links in /dev/char to the NVIDIA devices.",
        "Starting Links in /dev/char to the NVIDIA devices...",
        f"{LINKS_UNIT}: Failed to locate executable /usr/bin/nvidia-ctk: No such file or directory",
        f"{LINKS_UNIT}: Failed at step EXEC spawning /usr/bin/nvidia-ctk: No such file or directory",
        f"{LINKS_UNIT}: Main process exited, code=exited, status=203/EXEC",
        f"{LINKS_UNIT}: Failed with result 'exit-code'.",
    )
    given_ = {STATES: shown(dev_char=show(LINKS_UNIT, **EXITED)), JOURNALS: said}
    assert evidence("dev-char-unit-failed", given_) == [
        f"{LINKS_UNIT} is failed (failed, exit-code)",
        f"{LINKS_UNIT}: Failed at step EXEC spawning /usr/bin/nvidia-ctk: No such file or directory",
        f"{LINKS_UNIT}: Main process exited, code=exited, status=203/EXEC",
    ]


def test_the_start_limit_is_seen_once() -> None:
    said = journal(
        "docker.service",
        "Starting Docker Application Container Engine...",
        "unknown flag: --no-such-option",
        "See 'dockerd --help'.",
        "docker.service: Start request repeated too quickly.",
        "Failed to start Docker Application Container Engine.",
    )
    failed = {STATES: shown(docker=show("docker.service", **EXITED)), JOURNALS: said}
    assert evidence("start-limit", failed) == [
        "docker.service: Start request repeated too quickly.",
        "unknown flag: --no-such-option",
        "See 'dockerd --help'.",
    ]
    assert evidence("container-unit-failed", failed) == []


@pytest.mark.parametrize(
    "text, rule", [('{"runtimes": ', "daemon-json"), ('{"hosts": ["fd://"], "runtimes": {}}', "daemon-json-twice")]
)
def test_a_docker_that_refuses_its_settings_is_one_finding(text: str, rule: str) -> None:
    said = journal("docker.service", "docker.service: Start request repeated too quickly.")
    failed: dict[Probe, Any] = {
        JSON: text,
        STATES: shown(docker=show("docker.service", **EXITED)),
        JOURNALS: said,
    }
    assert evidence(rule, failed)[-1] == "docker.service is failed (failed, exit-code)"
    for other in ("start-limit", "container-unit-failed"):
        assert evidence(other, failed) == []
        assert evidence(other, {**failed, COMMAND: None, JSON: None}) == evidence(other, {**failed, JSON: "{}"})


def test_the_start_limit_of_yesterday_is_history() -> None:
    said = journal("docker.service", "docker.service: Start request repeated too quickly.")
    assert evidence("start-limit", {JOURNALS: said}) == []


def test_the_unit_of_the_links_is_a_warning_of_its_own() -> None:
    text = shown(dev_char=show(LINKS_UNIT, **EXITED))
    assert evidence("dev-char-unit-failed", {STATES: text})
    assert evidence("container-unit-failed", {STATES: text}) == []


def test_only_failed_units_are_asked_for_their_journals(tmp_path: Path) -> None:
    program(tmp_path, "systemctl", 'echo "containerd.service loaded failed failed containerd"')
    program(tmp_path, "journalctl", 'echo "of $3: & / lost"')
    assert run(JOURNALS.script, path=tmp_path).stdout == b"containerd.service: of containerd.service: & / lost\n"


def test_a_container_that_docker_is_to_keep_running_and_could_not_start_is_told() -> None:
    lines = (
        "/train always 128 error gathering device information: lstat /dev/nvidia-uvm: no such file or directory\n"
        "/web unless-stopped 127 driver failed programming external connectivity\n/done always 0 \n"
    )
    told = evidence("container-not-started", {docker.NOT_STARTED: lines})
    assert told[0].startswith("train (always), ended with 128: error gathering device information")
    assert any(line.startswith("web (unless-stopped), ended with 127: ") for line in told)
    assert not any("done" in line for line in told)
    assert evidence("container-not-started", {docker.NOT_STARTED: ""}) == []


def test_only_containers_with_an_error_that_are_to_run_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "bin"
    program(path, "systemctl", "exit 0")
    rows = "/train always 128 no such device\\n/once no 127 no such file\\n\\n/web unless-stopped 1 port taken"
    asked = "{{.State.ExitCode}} {{.State.Error}}"
    program(path, "docker", f'case "$*" in *" ps "*) echo 12ab;; *"{asked}"*) printf "{rows}\\n";; esac')
    answer = run(docker.NOT_STARTED.script, path=path).stdout.decode()
    assert answer.splitlines() == ["/train always 128 no such device", "/web unless-stopped 1 port taken"]
