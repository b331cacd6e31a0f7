"""Rollback: the record to which a host returns, stacks only from this machine, and no change in case of doubt."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextvars import copy_context
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.apply.host.outcome import Outcome
from hostwright.apply.rollout import rollback as ways
from hostwright.apply.rollout.rollback import WayBack, way_back
from hostwright.apply.rollout.rollout import Results
from hostwright.apply.run import RunResults
from hostwright.cli.shell.advice import shown
from hostwright.cli.tasks import restore
from hostwright.common.command import Command
from hostwright.common.errors import FAILED, HostError, InputError, Refused, Unreachable
from hostwright.common.request import Request
from hostwright.common.text import local_time
from hostwright.fleet import Fleet, TargetHost, Targets
from hostwright.plan.host.newrelease import renewed
from hostwright.plan.host.release import FORMERS, RELEASE, RunStamp
from hostwright.plan.model import Answer, Facts
from hostwright.plan.planning import HostPlan
from hostwright.stack import stackstore
from hostwright.stack.stack import Stack
from hostwright.standard.roles.tensorflow.section import TensorflowSection
from tests.places import INVENTORY
from tests.unit.support.rebuilds import plan
from tests.unit.support.stacks import KINDS, load_stack, with_values

STACKS = (INVENTORY / "stacks",)
FIXTURES = Path(__file__).parents[2] / "fixtures"
OLD, NEW, OTHER = (load_stack(name, STACKS) for name in ("tensorflow-2.9", "tensorflow-2.9.3", "tensorflow-2.10"))


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOSTWRIGHT_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("inventory")
    (path / "hosts.yml").write_text(
        "all:\n  hosts: {gpu01: {ansible_host: 192.0.2.1}, gpu02: {ansible_host: 192.0.2.2}}\n"
        "  vars: {stack: tensorflow-2.9.3}\n"
    )
    return path


@pytest.fixture(scope="module")
def target(inventory: Path) -> TargetHost:
    """Return a host for which the inventory names ``NEW``."""
    return Fleet.load(inventory).targets("gpu01")[0]


def record(target: TargetHost, stack: Stack, at: str) -> dict[str, Any]:
    """Return the record of a verified host."""
    found = renewed(replace(target, stack=stack).desired, {}, RunStamp("run", "ada@desk", at))
    assert found is not None
    return found


def facts(now: Mapping[str, Any] | str, *before: Mapping[str, Any] | str) -> Facts:
    text = now if isinstance(now, str) else json.dumps(now)
    lines = [one if isinstance(one, str) else json.dumps(one) for one in before]
    return Facts({RELEASE: Answer(0 if text else 1, text), FORMERS: Answer(0, "".join(f"{line}\n" for line in lines))})


# --- the stored stacks


@pytest.mark.parametrize("stack", [OLD, NEW, OTHER, load_stack("tensorflow-2.12", STACKS)])
def test_a_stack_comes_back_as_it_was_kept(stack: Stack, state: Path) -> None:
    assert stackstore.keep(stack) == stackstore.keep(stack) == ""
    (path,) = (state / "stacks").iterdir()
    assert path.name == f"{stack.digest()}.json"
    assert oct(path.stat().st_mode & 0o777) == "0o600"
    found = stackstore.find(stack.digest(), KINDS)
    assert found == stack
    assert repr(found) == repr(stack), "in the same order too: the states' hashes are made of it"
    assert json.loads(path.read_text())["schema"] == stackstore.SCHEMA


def test_a_damaged_one_is_not_found_and_is_kept_anew(state: Path) -> None:
    stackstore.keep(OLD)
    (path,) = (state / "stacks").iterdir()
    path.write_text(path.read_text().replace("470.182.03", "470.182.04"))
    assert stackstore.find(OLD.digest(), KINDS) is None
    stackstore.keep(OLD)
    assert stackstore.find(OLD.digest(), KINDS) == OLD


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "null",
        '{"schema": 2}',
        '{"schema": 2, "stack": {"artifacts": 7}}',
        '{"schema": 1}',
        '{"schema": "x"}',
        "\xff",
    ],
)
def test_a_damaged_kept_stack_is_replaced(state: Path, text: str) -> None:
    (state / "stacks").mkdir(parents=True)
    (state / "stacks" / f"{OLD.digest()}.json").write_text(text, "latin-1")
    assert stackstore.keep(OLD) == ""
    assert stackstore.find(OLD.digest(), KINDS) == OLD


def test_a_file_that_moved_is_fetched_from_where_it_is_now(state: Path) -> None:
    """The URL is not part of the digest, so the stack stored last is found."""
    stackstore.keep(OLD)
    driver = OLD.artifact("driver").model_copy(update={"urls": ("https://mirror.example.org/driver.run",)})
    moved = OLD.model_copy(update={"artifacts": {**OLD.artifacts, "driver": driver}})
    assert stackstore.keep(moved) == ""
    assert stackstore.find(OLD.digest(), KINDS) == moved != OLD


def kept(state: Path, digest: str, text: str) -> Path:
    (state / "stacks").mkdir(parents=True)
    path = state / "stacks" / f"{digest}.json"
    path.write_text(text)
    return path


def test_rollback_uses_stacks_kept_by_an_earlier_version(target: TargetHost, state: Path) -> None:
    """The record and the stack were written before records had schema 2."""
    carried = json.loads((FIXTURES / "release-schema-1.json").read_text())
    kept(state, carried["digest"], (FIXTURES / "stack-schema-1.json").read_text())
    way = way_back(target, facts(carried))
    assert (way.back.stack.name, way.back.stack.section(TensorflowSection).version) == ("tensorflow-2.9", "2.9.0")
    assert way.at == carried["at"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            '{"name": "old", "layers": []}',
            "it was stored by an earlier Hostwright in an unsupported form; set `stack`",
        ),
        ('{"schema": 3, "packed": "x"}', "a newer Hostwright stored this stack; upgrade Hostwright on this machine"),
    ],
)
def test_unreadable_kept_stack_is_refused_with_its_path(
    target: TargetHost, state: Path, text: str, sentence: str
) -> None:
    path = kept(state, OLD.digest(), text)
    with pytest.raises(Refused, match=sentence) as caught:
        way_back(target, facts(record(target, OLD, "2026-11-02T08:00:00Z")))
    assert str(path) in caught.value.sentence


def test_kept_stack_of_an_unknown_role_is_not_a_missing_stack(state: Path) -> None:
    stackstore.keep(OLD)
    without = {name: kind for name, kind in KINDS.items() if name != "cudnn"}
    with pytest.raises(InputError, match=r"was stored with sections of unknown roles; set `stack` in the inv"):
        stackstore.find(OLD.digest(), without)


def test_what_a_newer_version_kept_is_left_as_it_is(state: Path) -> None:
    path = kept(state, OLD.digest(), '{"schema": 3}')
    assert stackstore.keep(OLD) == ""
    assert path.read_text() == '{"schema": 3}'


@pytest.mark.parametrize("digest", ["", "../../etc/passwd", "a" * 64, "A" * 64, f"{'a' * 64}\n"])
def test_what_is_no_digest_of_a_kept_stack_finds_nothing(digest: str) -> None:
    assert stackstore.find(digest, KINDS) is None


def test_a_directory_that_cannot_be_written_is_a_sentence_and_no_error(state: Path) -> None:
    state.mkdir()
    (state / "stacks").write_text("a file in its place")
    said = stackstore.keep(OLD)
    assert "tensorflow-2.9 cannot be stored" in said
    assert "provisioned again" in said


def test_the_digest_does_not_move_when_a_later_hostwright_knows_more_fields() -> None:
    assert '"inside"' not in OLD.model_dump_json(exclude_defaults=True)
    explicit = with_values(OLD, cudnn={"inside": "cuda"})
    assert explicit.digest() == OLD.digest()
    changed = with_values(OLD, cudnn={"inside": "other"})
    assert changed.digest() != OLD.digest()


# --- the target of a rollback


def test_after_an_upgrade_it_goes_to_the_last_release_before(target: TargetHost) -> None:
    for stack in (OLD, OTHER, NEW):
        stackstore.keep(stack)
    older, old, new = (
        record(target, stack, f"2026-11-0{day}T08:00:00Z") for day, stack in ((1, OTHER), (2, OLD), (3, NEW))
    )
    way = way_back(target, facts(new, older, old))
    assert (way.back.stack, way.at) == (OLD, "2026-11-02T08:00:00Z")
    assert way.back.variables == target.variables
    assert way.back.desired.stack == OLD
    assert way.now.stack.name == "tensorflow-2.9.3"


def test_an_upgrade_that_did_not_end_goes_to_what_was_last_verified(target: TargetHost) -> None:
    stackstore.keep(OLD)
    way = way_back(target, facts(record(target, OLD, "2026-11-02T08:00:00Z")))
    assert way.back.stack == OLD


def test_a_host_that_is_back_stays_there(target: TargetHost) -> None:
    """A second call does not return it to the release that it came from."""
    stackstore.keep(OLD)
    old, new = record(target, OLD, "2026-11-04T08:00:00Z"), record(target, NEW, "2026-11-03T08:00:00Z")
    assert way_back(target, facts(old, new)).back.stack == OLD


@pytest.mark.parametrize("to", ["tensorflow-2.10", "2026-11-01", "2026-11-01T08", OTHER.digest()[:12]])
def test_a_release_is_named_by_its_stack_its_date_or_its_digest(target: TargetHost, to: str) -> None:
    for stack in (OLD, OTHER):
        stackstore.keep(stack)
    days = ((1, OTHER), (2, OLD), (3, NEW))
    older, old, new = (record(target, stack, f"2026-11-0{day}T08:00:00Z") for day, stack in days)
    assert way_back(target, facts(new, older, old), to).back.stack == OTHER


def test_a_host_that_was_never_verified_is_refused(target: TargetHost) -> None:
    with pytest.raises(Refused, match="gpu01: it has no release record"):
        way_back(target, facts(""))


def test_a_host_with_the_wanted_release_alone_is_refused(target: TargetHost) -> None:
    with pytest.raises(Refused, match=r"no record of another release than tensorflow-2\.9\.3"):
        way_back(target, facts(record(target, NEW, "2026-11-03T08:00:00Z")))


def test_unknown_release_is_named_with_the_known_ones(target: TargetHost) -> None:
    with pytest.raises(Refused, match=r"'tensorflow-2\.8'; its records: tensorflow-2\.9\.3 \(2026-11-03T08:00:00Z, "):
        way_back(target, facts(record(target, NEW, "2026-11-03T08:00:00Z")), "tensorflow-2.8")


def test_a_digest_that_this_machine_did_not_keep_is_refused(target: TargetHost) -> None:
    with pytest.raises(Refused, match="names a stack that this machine does not have"):
        way_back(target, facts(record(target, OLD, "2026-11-02T08:00:00Z")))


def test_a_host_cannot_choose_what_is_installed(target: TargetHost) -> None:
    """Only the digest of a record is used: URLs and checksums come from this machine."""
    stackstore.keep(OLD)
    lie = record(target, OLD, "2026-11-02T08:00:00Z")
    lie["artifacts"] = {"driver": {"file": "evil.run", "urls": ["http://evil.example"], "sha256": "0" * 64}}
    lie["versions"]["driver"] = "999.1"
    assert way_back(target, facts(lie)).back.stack == OLD


def test_a_stack_that_the_rules_of_today_refuse_is_refused(target: TargetHost) -> None:
    bad = with_values(OLD, cuda={"version": "11.4.0"})
    stackstore.keep(bad)
    with pytest.raises(Refused, match=r"built for CUDA 11\.2, not for 11\.4\.0"):
        way_back(target, facts(record(target, bad, "2026-11-02T08:00:00Z")))


@given(
    now=st.text() | st.just("{}"),
    before=st.lists(
        st.text(alphabet=st.characters(exclude_characters="\n\r")) | st.just('{"schema": 1, "roles": {}, "digest": 3}')
    ),
    to=st.text(),
)
def test_garbage_in_release_records_is_refused_printably(
    target: TargetHost, now: str, before: list[str], to: str
) -> None:
    with pytest.raises(Refused) as caught:
        way_back(target, facts(now, *before), to)
    assert caught.value.host == "gpu01"
    assert caught.value.sentence.isprintable()


# --- the verb


@pytest.fixture
def did(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[str, ...]]]:
    """Return what was started: the shown plan or the run, with the stacks of its hosts."""
    done: list[tuple[str, tuple[str, ...]]] = []

    def shown(self: Fleet, targets: Targets, **_: Any) -> Results[HostPlan]:
        done.append(("check", tuple(one.stack.name for one in targets)))
        return Results((HostPlan(plan("cuda")),), ())

    def ran(self: Fleet, targets: Targets, _request: Request, **_: Any) -> RunResults[Outcome]:
        done.append(("rollback", tuple(one.stack.name for one in targets)))
        return RunResults("run", Results((), ()), 0)

    monkeypatch.setattr(Fleet, "plan", shown)
    monkeypatch.setattr(Fleet, "rollback", ran)
    return done


def answers(monkeypatch: pytest.MonkeyPatch, said: Mapping[str, Facts | HostError]) -> None:
    """Replace connections by hosts with these answers."""

    def ways_back(self: Fleet, targets: Targets, to: str) -> Results[WayBack]:
        values: list[WayBack] = []
        errors: list[HostError] = []
        for one in targets:
            answer = said[one.name]
            try:
                if isinstance(answer, HostError):
                    raise answer
                values.append(way_back(one, answer, to))
            except HostError as error:
                errors.append(error)
        return Results(tuple(values), tuple(errors), names=tuple(one.name for one in targets))

    monkeypatch.setattr(Fleet, "ways_back", ways_back)


def rollback(inventory: Path, *, to: str = "", **options: Any) -> int:
    request = Request("all", inventory=(str(inventory),), **options)
    return copy_context().run(partial(restore.rollback, request, to=to))


def test_every_host_goes_back_and_it_is_said_what_the_inventory_wants(
    inventory: Path,
    target: TargetHost,
    monkeypatch: pytest.MonkeyPatch,
    did: list[Any],
    capsys: pytest.CaptureFixture[str],
) -> None:
    stackstore.keep(OLD)
    same = facts(record(target, NEW, "2026-11-03T08:00:00Z"), record(target, OLD, "2026-11-02T08:00:00Z"))
    answers(monkeypatch, {"gpu01": same, "gpu02": same})
    assert rollback(inventory) == 0
    assert did == [("rollback", ("tensorflow-2.9", "tensorflow-2.9"))]
    said = " ".join(capsys.readouterr().err.split())
    when = local_time(datetime(2026, 11, 2, 8, tzinfo=UTC))
    assert f"back to tensorflow-2.9: gpu[01-02] (verified {when}). The" in said
    assert "The inventory still names tensorflow-2.9.3: audits report these hosts as different (intent)" in said


def test_a_missing_file_is_mirrored_with_the_stack_that_hosts_go_back_to(
    inventory: Path, target: TargetHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The inventory, or --var, still names the other stack, whose files exist."""
    advised = []

    def ran(*_: Any, **__: Any) -> RunResults[Outcome]:
        advised.append(shown(Command("mirror")))
        return RunResults("run", Results((), ()), 0)

    stackstore.keep(OLD)
    same = facts(record(target, NEW, "2026-11-03T08:00:00Z"), record(target, OLD, "2026-11-02T08:00:00Z"))
    answers(monkeypatch, {"gpu01": same, "gpu02": same})
    monkeypatch.setattr(Fleet, "rollback", ran)
    rollback(inventory)
    assert advised == ["invoke mirror --stack tensorflow-2.9"]


def test_check_shows_the_plan_and_runs_nothing(
    inventory: Path, target: TargetHost, monkeypatch: pytest.MonkeyPatch, did: list[Any]
) -> None:
    stackstore.keep(OLD)
    same = facts(record(target, NEW, "2026-11-03T08:00:00Z"), record(target, OLD, "2026-11-02T08:00:00Z"))
    answers(monkeypatch, {"gpu01": same, "gpu02": same})
    assert rollback(inventory, check=True) == 3
    assert did == [("check", ("tensorflow-2.9", "tensorflow-2.9"))]


@pytest.fixture(params=[facts(""), Unreachable("gpu02", "no answer in 10 s")])
def stuck(request: pytest.FixtureRequest, target: TargetHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """Return two hosts of which the second cannot be rolled back."""
    stackstore.keep(OLD)
    answers(monkeypatch, {"gpu01": facts(record(target, OLD, "2026-11-02T08:00:00Z")), "gpu02": request.param})


@pytest.mark.usefixtures("stuck")
def test_one_host_that_cannot_go_back_keeps_all_from_being_touched(
    inventory: Path, did: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert rollback(inventory, json=True) == FAILED
    assert did == []
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert [error["host"] for error in document["errors"]] == ["gpu02"]
    assert document["untouched"] == ["gpu01", "gpu02"]
    assert "nothing was changed: either all of these hosts go back, or none" in " ".join(err.split())


@pytest.mark.usefixtures("stuck")
def test_hosts_that_could_go_back_alone_are_what_is_next(
    inventory: Path, did: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert (rollback(inventory, to="tensorflow-2.9"), did) == (FAILED, [])
    assert capsys.readouterr().out.splitlines() == ["next: invoke rollback --hosts gpu01 --to tensorflow-2.9"]


def test_records_are_asked_for_without_root() -> None:
    assert not any(probe.root for probe in ways.RECORDS)


# --- a stack of another kind


def test_a_stack_with_other_layers_is_gone_back_to_with_its_layers(tmp_path: Path) -> None:
    """From PyTorch's wheels to the toolkit and back: the record names its layers, the inventory the current ones."""
    wheels = load_stack("pytorch-2.14", STACKS)
    (tmp_path / "hosts.yml").write_text("all: {hosts: {gpu01: {stack: pytorch-2.14}, gpu02: {}}}")
    now, before = Fleet.load(tmp_path).targets("all")
    for stack in (wheels, OLD):
        assert stackstore.keep(stack) == ""
    verified = [record(one, one.stack, f"2026-11-0{day}T08:00:00Z") for day, one in ((3, now), (2, before))]
    back = way_back(now, facts(*verified)).back
    assert {role.name for role in back.roles} == {role.name for role in before.roles} == set(OLD.roles)
    assert [role.name for role in back.desired.roles] == [role.name for role in back.of_host]
    assert back.variables.keys() >= set(OLD.roles)
    forward = way_back(before, facts(*reversed(verified))).back
    assert {role.name for role in forward.roles} == set(wheels.roles)
    (narrowed,) = Fleet.load(tmp_path).targets("gpu01", ("driver",))
    assert [role.name for role in way_back(narrowed, facts(*verified)).back.roles] == ["driver"]
