"""Plans that were saved: read back whole, and refused in one sentence where they are none, or of an older version."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from hostwright.apply.journal.redaction import Redactor
from hostwright.apply.saved import savedplans
from hostwright.common.errors import InputError
from hostwright.common.secret import Secret
from hostwright.plan.model import Change, Deferred, Plan, Reboot, RolePlan, Step

#: Written by the version in which one class stood for all four kinds.
BEFORE_KINDS = Path(__file__).parents[3] / "fixtures" / "plans-before-kinds.json"

STEP = Step("true", "dpkg", 60.0, 3)
PLANNED = (
    Change("file /etc/x", "absent", "644 root root", (STEP,), "+x\n", disturbs="ends jobs"),
    Reboot("kernel", "5.4", "5.5", "5.4 was removed"),
    Deferred("driver", "absent", "470", "reboot", ("driver",)),
)
PLAN = Plan("gpu01", "tf", (RolePlan("base", (), PLANNED),))


def read(path: Path, *hosts: str) -> dict[str, Plan]:
    return savedplans.load_for(hosts or ("gpu01",), path)


def text_of(*plans: Plan) -> str:
    """What a file with these plans holds."""
    return json.dumps({"schema": 2, "plans": {plan.host: plan.to_json() for plan in plans}})


def save(folder: Path, text: str) -> Path:
    path = folder / "plan.json"
    path.write_text(text)
    return path


def test_a_saved_plan_is_read_back_whole(tmp_path: Path):
    (plan,) = read(save(tmp_path, text_of(PLAN))).values()
    assert plan == PLAN


def test_a_plan_saved_with_who_was_at_work_is_that_plan(tmp_path: Path):
    """Files of this schema held that too, before it stood beside the plan."""
    document = json.loads(text_of(PLAN))
    document["plans"]["gpu01"] |= {"busy": ["python3 (7)"], "notes": ["locked by ann"]}
    assert read(save(tmp_path, json.dumps(document))) == {"gpu01": PLAN}


def test_what_plan_saves_is_what_provision_reads(tmp_path: Path):
    other = replace(PLAN, host="gpu02", roles=())
    savedplans.save(tmp_path / "plan.json", (PLAN, other), Redactor([]))
    assert json.loads((tmp_path / "plan.json").read_text()) == json.loads(text_of(PLAN, other))
    assert read(tmp_path / "plan.json", "gpu01", "gpu02") == {"gpu01": PLAN, "gpu02": other}


def test_a_file_that_cannot_be_written_or_read_is_named(tmp_path: Path):
    with pytest.raises(InputError, match=r"none/plan\.json: cannot be written: No such file"):
        savedplans.save(tmp_path / "none" / "plan.json", (PLAN,), Redactor([]))
    with pytest.raises(InputError, match=r"none/plan\.json: cannot be read: No such file"):
        read(tmp_path / "none" / "plan.json")


def test_a_host_without_a_saved_plan_is_named(tmp_path: Path):
    with pytest.raises(InputError, match="contains no plan for gpu02"):
        read(save(tmp_path, text_of(PLAN)), "gpu01", "gpu02")


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("{", "["),
        ('"schema": 2', '"schema": "2"'),
        ('"kind": "reboot"', '"kind": "perhaps"'),
        ('"kind": "reboot", ', ""),
        (f'"steps": {json.dumps([{"script": "true", "lock": "dpkg", "timeout_s": 60.0, "tries": 3}])}', '"steps": []'),
        ('"host": "gpu01"', '"host": 1'),
        ('"tries": 3', '"tries": "3"'),
        ('"until": "reboot", ', ""),
    ],
)
def test_a_damaged_plan_file_is_refused_with_what_to_do(tmp_path: Path, right: str, wrong: str):
    text = text_of(PLAN)
    assert right in text
    with pytest.raises(InputError, match=r"run `invoke plan --out FILE` again$"):
        read(save(tmp_path, text.replace(right, wrong)))


@pytest.mark.parametrize("text", ["", "[]", "5", "null", "\x00", '{"gpu01": {}}', '{"gpu01": [' * 1000])
def test_a_file_of_something_else_is_refused_as_well(tmp_path: Path, text: str):
    with pytest.raises(InputError, match=r"run `invoke plan --out FILE` again$"):
        read(save(tmp_path, text))


def test_a_plan_of_a_newer_version_is_refused(tmp_path: Path):
    with pytest.raises(
        InputError, match=r"was saved by a newer Hostwright; upgrade .*run `invoke plan --out FILE` again$"
    ):
        read(save(tmp_path, '{"schema": 3, "plans": []}'))


def test_a_plan_of_the_version_before_the_four_kinds_is_refused():
    with pytest.raises(InputError, match=r"was saved by an earlier Hostwright; run `invoke plan --out FILE` again$"):
        read(BEFORE_KINDS)


def test_a_saved_plan_is_the_operators_alone_and_holds_no_secret(tmp_path: Path):
    """A changed file's old contents are in the plan: a proxy with its password, for instance."""
    change = Change("file /etc/x", "other", "same", (STEP,), "-proxy=http://ann:hunter22@proxy/\n-key=s3cretkey\n")
    shown = replace(PLAN, roles=(RolePlan("base", (), (change,)),))
    path = tmp_path / "plan.json"
    path.write_text("")
    path.chmod(0o644)
    redactor = Redactor([Secret("s3cretkey"), Secret("host")])
    savedplans.save(path, [shown], redactor)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "hunter22" not in path.read_text() and "s3cretkey" not in path.read_text()
    (saved,) = read(path).values()
    assert redactor.plan(shown) == redactor.plan(saved) != redactor.plan(PLAN)


def test_standard_output_is_written_to_and_not_replaced(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    savedplans.save(pipe, (PLAN,), Redactor([]))
    assert json.loads(os.read(reader, 65536)) == json.loads(text_of(PLAN))
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
