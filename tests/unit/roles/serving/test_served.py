"""Plans for served models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hostwright.fleet import Fleet
from hostwright.plan.model import Change, Deferred, Facts, Refusal
from hostwright.plan.testing import facts_for
from hostwright.standard.roles.serving.states.facts import read_models
from hostwright.standard.roles.serving.states.served import ModelServed, config_of, stages_of
from hostwright.standard.roles.serving.states.unserved import Unserved
from hostwright.standard.roles.workspaces.declared.images import SERVING
from lab.serving.config import read_config
from tests.layers.test_serving import said_by_the_model

A, B = "sha256:" + "a" * 64, "sha256:" + "b" * 64
ONE = ModelServed("half", 20001, ((1, A),), 1)
BOTH = ModelServed("half", 20001, ((1, A), (2, B)), 1)


def look(*lines: str) -> str:
    return "".join(f"{line}\n" for line in (*lines, "end"))


def status(**states: str) -> str:
    rows = [
        {"version": number.strip("v"), "state": word, "status": {"error_code": "OK", "error_message": ""}}
        for number, word in states.items()
    ]
    return f"status half {json.dumps({'model_version_status': rows})}"


def asked(state: Any, text: str) -> Any:
    return state.plan(facts(state, text))


def facts(state: Any, text: str) -> Facts:
    return facts_for([state], {"/models": text})


SERVED = (
    f"config half {config_of('half', (1,), 1)}",
    f"version half 1 {'a' * 64}",
    status(v1="AVAILABLE"),
    "live half 1",
)


def test_what_is_as_declared_plans_nothing() -> None:
    assert asked(ONE, look(*SERVED)) is None
    assert asked(Unserved(("half",)), look(*SERVED)) is None


def test_files_are_brought_before_they_are_served() -> None:
    missing = asked(BOTH, look(*SERVED))
    assert isinstance(missing, Refusal)
    assert "version 2 of half is not on this host; install it with `invoke serve.up --model DIR" in missing.sentence
    other = asked(BOTH, look(*SERVED, f"version half 2 {'c' * 64}"))
    assert isinstance(other, Refusal)
    assert "files of a version never change" in other.sentence


def test_each_model_stands_alone() -> None:
    """A failed model, or missing files, block no other model of the host."""
    refused = asked(BOTH, look(*SERVED))
    changed = asked(BOTH, look(*SERVED, f"version half 2 {'b' * 64}"))
    gone = asked(Unserved(()), look(*SERVED))
    assert [planned.alone for planned in (refused, changed, gone)] == [True, True, True]


def test_a_change_that_was_cut_off_is_brought_to_its_end() -> None:
    """Also if its server responds as declared: the old state is not restored later."""
    cut = asked(ONE, look(*SERVED, "cut half"))
    assert isinstance(cut, Change)
    assert cut.have == "version 1, live: 1, by a change that was cut off"


def test_a_server_that_does_not_answer_is_awaited() -> None:
    answer = asked(ONE, look(*SERVED[:2]))
    assert isinstance(answer, Deferred)
    assert answer.until == "workspace half runs"
    for word in ("absent", "silent"):
        answer = asked(ONE, look(*SERVED[:2], f"docker {word}"))
        assert (answer.kind, answer.have) == ("deferred", f"Docker is {word}")
    assert read_models(facts(ONE, "config half x\n")).docker == "silent"  # truncated output


def test_what_differs_is_said() -> None:
    beside = asked(BOTH, look(*SERVED, f"version half 2 {'b' * 64}"))
    assert isinstance(beside, Change)
    assert (beside.what, beside.have, beside.want) == ("model half", "version 1, live: 1", "versions 1, 2, live: 1")
    further = asked(ONE, look(*SERVED, f"version half 2 {'b' * 64}"))
    assert further.have == "version 1, live: 1, and files of 2"
    odd = asked(ONE, look("config half model_config_list {}", *SERVED[1:]))
    assert odd.have == "version 1, live: 1, by another configuration"
    new = asked(ONE, look("config half model_config_list {}", SERVED[1], "status half {}"))
    assert new.have == "no version"


def test_what_a_server_gave_up_is_noted() -> None:
    rows = [{"version": "1", "state": "END", "status": {"error_code": "NOT_FOUND", "error_message": "no such model"}}]
    text = look(*SERVED[:2], f"status half {json.dumps({'model_version_status': rows})}")
    assert ONE.notes(facts(ONE, text)) == ("model half: version 1 did not load: no such model",)


def test_lies_of_a_server_are_no_errors() -> None:
    for lie in (
        "[]",
        "{",
        '{"model_version_status": 5}',
        '{"model_version_status": [5, {"version": [], "status": 3}]}',
    ):
        assert isinstance(asked(ONE, look(*SERVED[:2], f"status half {lie}")), Change)


def test_models_that_nobody_declares_go() -> None:
    gone = asked(Unserved(()), look(*SERVED))
    assert (gone.what, gone.have, gone.want) == ("undeclared models", "half (1)", "absent")
    assert ONE.removal() == (Unserved(),)
    assert Unserved(("half",)).removal() == (Unserved(),)


def test_a_label_moves_only_after_its_version_is_loaded_and_before_the_other_goes() -> None:
    def led(now: tuple[tuple[int, ...], int], wanted: tuple[int, ...], live: int) -> list[tuple[tuple[int, ...], int]]:
        return [(served, leads) for _, served, leads in stages_of("half", now, wanted, live)]

    assert led(((), 0), (1,), 1) == [((1,), 1)]
    assert led(((1,), 1), (1, 2), 1) == [((1, 2), 1)]
    assert led(((1, 2), 1), (1, 2), 2) == [((1, 2), 1), ((1, 2), 2)]
    assert led(((1,), 1), (2,), 2) == [((1, 2), 1), ((1, 2), 2), ((2,), 2)]
    assert led(((1, 2), 2), (1,), 1) == [((1, 2), 2), ((1, 2), 1), ((1,), 1)]


def test_the_configuration_is_one_that_a_server_reads(tmp_path: Path) -> None:
    file = tmp_path / "models.config"
    file.write_text(config_of("half", (1, 2), 2))
    (model,) = read_config(str(file))
    assert (model.name, model.base_path, model.versions, model.labels) == ("half", "/models/half", (1, 2), {"live": 2})


def test_audits_compare_versions_files_and_which_one_is_live(tmp_path: Path) -> None:
    model = {"user": "nobody", "kind": "serving", "image": SERVING, "versions": {1: A, 2: B}, "live": 2}
    host = {"hostwright_roles": ["base", "driver", "container", "workspaces", "serving"], "ansible_host": "127.0.0.1"}
    document = {"all": {"hosts": {"gpu01": {**host, "workspaces_containers": {"half": model}}}}}
    (tmp_path / "hosts.yml").write_text(json.dumps(document))
    (target,) = Fleet.load([tmp_path / "hosts.yml"]).targets("gpu01")
    wanted = {value.name: value.want for value in target.audit_values if value.layer == "serving"}
    assert wanted == {"half versions": "1,2", "half live": "2", "half version 1": A, "half version 2": B}


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("", False),
        ("Op type not registered 'SentencepieceOp' in binary running on 5f3d. Make sure the Op and Kernel", False),
        ("No OpKernel was registered to support Op 'NoSuchOp' used by {{node x}} with these attrs", False),
        ("Tried to convert 'x' to a tensor and failed", True),
    ],
)
def test_an_operation_that_a_server_lacks_is_no_answer_of_the_model(error: str, *, said: bool) -> None:
    """serving#1490: newer servers load such a model, and each prediction fails with that error."""
    assert said_by_the_model({"error": error}) is said
