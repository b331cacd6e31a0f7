"""``workspace.list`` and ``serve.list``: rows and exit status if a host's Docker does not respond."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from hostwright.common.request import Request
from hostwright.fleet import TargetHost
from hostwright.plan.model import Answer, Facts, Probe
from hostwright.standard.roles.serving.verbs import queries as models
from hostwright.standard.roles.workspaces.verbs import listing
from hostwright.standard.roles.workspaces.verbs import queries as spaces

HOSTS = """
all:
  vars:
    hostwright_roles: [base, driver, container, workspaces, serving]
    workspaces_users: {alice: {uid: 2001}}
  hosts:
    gpu01: {workspaces_containers: {alice-lab: {user: alice, kind: jupyter}, mnist: {user: alice, kind: serving,
            image: "tensorflow/serving:2.9.0", versions: {1: "sha256:DIGEST"}, live: 1}}}
    gpu02: {}
"""
SILENT, ABSENT, ANSWERS = "docker silent\nend\n", "docker absent\nend\n", "end\n"
TROUBLE = "Docker does not answer: check systemctl status docker and journalctl -u docker on the host"
Show = Callable[..., int]


@pytest.fixture
def show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Show, dict[str, str]], int]:
    """List the models or workspaces of hosts with these answers as JSON, and return the exit status."""
    (tmp_path / "hosts.yml").write_text(HOSTS.replace("DIGEST", "0" * 64))

    class Connected:
        def __init__(self, _: Any) -> None:
            pass

        def connect(self, target: TargetHost) -> AbstractContextManager[str]:
            return nullcontext(target.name)

        def close(self) -> None:
            pass

    def ask(by_host: dict[str, str]) -> Callable[[str, tuple[Probe, ...]], Facts]:
        return lambda host, probes: Facts({probe: Answer(0, by_host[host]) for probe in probes})

    def listed(verb: Show, by_host: dict[str, str]) -> int:
        monkeypatch.setattr(listing, "Connections", Connected)
        monkeypatch.setattr(listing, "ask", ask(by_host))
        return verb(Request("all", inventory=(str(tmp_path),), json=True))

    return listed


@pytest.mark.parametrize(
    ("verb", "what", "name"),
    [(spaces.show_list, "workspaces", "alice-lab"), (models.show_list, "models", "mnist")],
)
def test_a_docker_that_does_not_answer_is_an_error_beside_the_rows_of_its_host(
    show: Callable[[Show, dict[str, str]], int], capsys: pytest.CaptureFixture[str], verb: Show, what: str, name: str
) -> None:
    assert show(verb, {"gpu01": SILENT, "gpu02": ANSWERS}) == 1
    document = json.loads(capsys.readouterr().out)
    row = next(row for row in document[what] if name in row.values())
    assert row["state"] == "Docker does not answer"
    assert [(error["host"], error["sentence"]) for error in document["errors"]] == [("gpu01", TROUBLE)]


def test_a_host_without_rows_says_it_too(
    show: Callable[[Show, dict[str, str]], int], capsys: pytest.CaptureFixture[str]
) -> None:
    """The host may have workspaces although none is declared."""
    assert show(spaces.show_list, {"gpu01": ANSWERS, "gpu02": SILENT}) == 1
    assert [error["host"] for error in json.loads(capsys.readouterr().out)["errors"]] == ["gpu02"]


def test_a_host_without_docker_has_no_workspaces_and_is_no_error(
    show: Callable[[Show, dict[str, str]], int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert show(spaces.show_list, {"gpu01": ANSWERS, "gpu02": ABSENT}) == 0
    assert json.loads(capsys.readouterr().out)["errors"] == []
