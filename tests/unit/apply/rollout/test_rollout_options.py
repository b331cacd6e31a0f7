"""The options of a run: as they are recorded, and as ``--resume`` takes them up again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hostwright.apply.events import HostEnded
from hostwright.apply.journal.header import RunHeader
from hostwright.apply.journal.writing import Journal
from hostwright.apply.rollout.resuming import resume
from hostwright.common.errors import InputError
from hostwright.common.request import Request
from hostwright.common.secret import Secret
from hostwright.plan.targets import Roster


@pytest.fixture
def roster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Roster:
    monkeypatch.setenv("HOSTWRIGHT_STATE", str(tmp_path / "state"))
    (tmp_path / "hosts.yml").write_text(json.dumps({"all": {"hosts": {"gpu01": {}, "gpu02": {}, "gpu03": {}}}}))
    return Roster.load(tmp_path)


def ran(roster: Roster, options: dict[str, Any], *secrets: Secret, left: tuple[str, ...] = ("gpu02",)) -> None:
    """A provision run with these options that left these hosts, and brought gpu01."""
    header = RunHeader.now("provision", ("gpu01", *left), roster.path, options, site=roster.path)
    root = roster.path / "state"
    with Journal.begin(root, header, secrets=secrets, on_trouble=print) as journal:
        journal(HostEnded("gpu01", "changed"))
        for host in left:
            journal(HostEnded(host, "failed", "it broke"))


FULL = Request(
    "all", var=("cuda_keep_repository=false", "stack=tensorflow-2.9"), roles="base,cuda", accept_new=True, force=True,
    drain=True, no_reboot=True, canary="1", batch="10%", max_fail="2",
)  # fmt: skip


def test_options_that_were_not_given_are_not_recorded(roster: Roster) -> None:
    targets = roster.targets("gpu01,gpu02")
    assert roster.request_of(targets).recorded() == {"hosts": "gpu01,gpu02"}
    assert roster.request_of(targets).recorded(to="", boot="disk") == {"hosts": "gpu01,gpu02", "boot": "disk"}


def test_every_option_of_a_run_is_recorded(roster: Roster) -> None:
    whole = Roster.load(roster.path, Request(var=FULL.var, accept_new=True, force=True))
    change = Request(drain=True, no_reboot=True, canary="1", batch="10%", max_fail="2")
    found = whole.request_of(whole.targets("all", ["base", "cuda"]), change)
    assert found == FULL
    assert json.loads(json.dumps(found.recorded()))["var"] == list(FULL.var)


def test_resume_takes_options_that_are_not_given_from_the_last_run(roster: Roster) -> None:
    ran(roster, {**FULL.recorded(), "json": True, "inventory": "elsewhere"}, left=("gpu03", "gpu02"))
    run, options = resume(Request(batch="5", roles="base"), roster)
    assert run
    assert options == Request(**{**vars_of(FULL), "hosts": "gpu03,gpu02", "batch": "5", "roles": "base"})


def test_a_resumed_run_proves_its_hosts_as_the_last_one_did(roster: Roster) -> None:
    ran(roster, Request("all").recorded(prove="quick"))
    assert resume(Request(), roster)[1].prove == "quick"
    assert resume(Request(prove="full"), roster)[1].prove == "full"


def vars_of(options: Request) -> dict[str, Any]:
    return {name: getattr(options, name) for name in Request.__slots__}


def test_resume_refuses_hosts(roster: Roster) -> None:
    with pytest.raises(InputError, match="cannot be combined with --hosts"):
        resume(Request("gpu01"), roster)
    with pytest.raises(InputError, match="nothing to resume"):
        resume(Request(), roster)


def test_hosts_that_have_left_the_inventory_are_named(roster: Roster) -> None:
    ran(roster, {}, left=("gpu02", "gpu09"))
    with pytest.raises(InputError, match=r"gpu09 of the run .* are no longer in the inventory"):
        resume(Request(), roster)


def test_an_option_that_held_a_secret_is_asked_for_again(roster: Roster) -> None:
    ran(roster, {"var": ["token=hunter2hunter2"]}, Secret("hunter2hunter2"))
    with pytest.raises(InputError, match="was given secrets with --var, which are not recorded; pass the option again"):
        resume(Request(), roster)
    assert resume(Request(var=("token=hunter2hunter2",)), roster)[1].hosts == "gpu02"


@pytest.mark.parametrize("options", [{"drain": "perhaps"}, {"var": 7}, {"batch": ["x"]}])
def test_a_damaged_record_is_refused_in_a_sentence(roster: Roster, options: dict[str, Any]) -> None:
    ran(roster, options)
    with pytest.raises(InputError, match=r"--resume: the record of the run .* is damaged; provision without --resume"):
        resume(Request(), roster)
