"""Typed options reach the request, or the argument of the verb's function."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from invoke import Context, Exit

from hostwright.cli.tasks import look, namespace
from hostwright.cli.tasks.options import CHANGING, PROVISION, verb
from hostwright.common.request import OPTIONS, Request

TYPED: dict[str, Any] = {
    "hosts": "gpu01", "inventory": ["site"], "json": True, "ask_become_pass": True, "accept_new": True,
    "var": ["a=1", "b=2"], "roles": "cuda", "drain": True, "canary": "1", "batch": "2", "max_fail": "3", "force": True,
    "check": True, "plan": "f", "no_reboot": True, "resume": True, "prove": "full",
}  # fmt: skip


def test_every_option_is_a_field_of_the_request() -> None:
    given: list[tuple[Request, dict[str, Any]]] = []

    @verb(*PROVISION, "check", to="where", times="how often")
    def sample(request: Request, to: str = "", times: int = 1) -> int:
        """Take what is typed."""
        given.append((request, {"to": to, "times": times}))
        return 0

    sample(Context(), **TYPED, to="x", times=3)
    typed = {name: tuple(each) if isinstance(each, list) else each for name, each in TYPED.items()}
    assert given == [(Request(**typed), {"to": "x", "times": 3})]
    assert set(CHANGING) < OPTIONS.keys() <= {each.name for each in fields(Request)}


def test_a_verb_that_another_one_calls_gets_its_request() -> None:
    @verb(to="where")
    def sample(request: Request, to: str = "") -> int:
        """End with a status that says what came."""
        return 3 if (request.hosts, to) == ("gpu01", "x") else 1

    assert sample(Request("gpu01"), to="x") == 3


def test_an_exit_status_is_the_functions_and_bad_input_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    @verb("json")
    def differs(request: Request) -> int:
        """Differ."""
        return 3 if request.json else 0

    with pytest.raises(Exit) as differing:
        differs(Context(), json=True)
    with pytest.raises(Exit) as wrong:
        look.audit_fleet(Context(), at_once="many")
    assert (differing.value.code, wrong.value.code) == (3, 2)
    assert "--at-once: found 'many', expected a number of hosts" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["run", "ssh"])
def test_the_words_behind_two_dashes_are_not_joined(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Invoke joins them with blanks, which would split ``'a b'``."""
    from hostwright.cli.tasks import reach

    assert name in namespace.task_names
    monkeypatch.setattr("sys.argv", ["invoke", name, "--", "echo", "a  b", "--", "c"])
    assert reach._typed_command() == ("echo", "a  b", "--", "c")
