"""Tests of the release record: written once for a state, rewritten when the desired state changes, never incomplete."""

import json
import re
import subprocess
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.plan.desired import Desired, DesiredRole
from hostwright.plan.host.newrelease import desired_sha256, former_name, renewed, state_sha256, write_script
from hostwright.plan.host.release import FORMER, FORMERS, RELEASE, RunStamp, about, digest_of, formers, read
from hostwright.plan.model import Answer, Facts
from hostwright.resources.files.files import File, Link
from tests.places import INVENTORY
from tests.unit.support.stacks import load_stack, with_values

STACK = load_stack("tensorflow-2.9", [INVENTORY / "stacks"])
RUN = RunStamp("run-1", "ada@desk", "2026-11-21T08:00:00Z", "abc123")
CUDA = DesiredRole("cuda", (), (Link("/usr/local/cuda", "/usr/local/cuda-11.2"),))
MOTD = DesiredRole("motd", (), (File("/etc/motd", "hello\n"),))


def desired(*roles: DesiredRole) -> Desired:
    return Desired("gpu01", STACK, roles)


def test_a_record_names_stack_versions_artifacts_and_operator():
    record = renewed(desired(CUDA), {}, RUN)
    assert record is not None
    assert (record["stack"], record["versions"]["driver"]) == ("tensorflow-2.9", "470.182.03")
    assert record["artifacts"]["driver"]["sha256"] == STACK.artifacts["driver"].sha256
    assert (record["run"], record["operator"], record["commit"]) == ("run-1", "ada@desk", "abc123")
    states = [state_sha256(one) for one in CUDA.resources]
    assert record["roles"] == {
        "cuda": {"desired": desired_sha256(CUDA), "run": "run-1", "at": RUN.at, "states": states}
    }


def test_a_host_that_says_so_already_is_not_touched():
    record = renewed(desired(CUDA, MOTD), {}, RUN)
    assert record is not None
    assert renewed(desired(CUDA, MOTD), record, RunStamp("run-2")) is None
    assert renewed(desired(CUDA), record, RunStamp("run-2")) is None, "a run of one role alone finds the same"


def test_another_wish_renews_that_role_and_keeps_the_others():
    record = renewed(desired(CUDA, MOTD), {}, RUN)
    assert record is not None
    other = DesiredRole("motd", (), (File("/etc/motd", "good morning\n"),))
    after = renewed(desired(CUDA, other), record, RunStamp("run-2"))
    assert after is not None
    assert (after["roles"]["cuda"]["run"], after["roles"]["motd"]["run"]) == ("run-1", "run-2")
    assert after["desired"] != record["desired"]


def test_roles_of_another_stack_are_forgotten():
    record = renewed(desired(CUDA, MOTD), {}, RUN)
    assert record is not None
    after = renewed(desired(MOTD), {**record, "stack": "tensorflow-2.12"}, RunStamp("run-2"))
    assert after is not None
    assert set(after["roles"]) == {"motd"}


@pytest.mark.parametrize(
    "text", ["", "not json", "[]", "null", '{"schema": 99, "roles": {}}', '{"schema": 1, "roles": 3}']
)
def test_garbage_is_read_as_no_record(text: str):
    assert read(Facts({RELEASE: Answer(0, text)})) == {}


@given(
    st.recursive(st.none() | st.text() | st.integers(), lambda inner: st.dictionaries(st.text(), inner), max_leaves=8)
)
def test_a_record_with_garbage_is_replaced(junk: object):
    facts = Facts({RELEASE: Answer(0, json.dumps({"schema": 1, "roles": {"cuda": junk}, "stack": STACK.name}))})
    assert renewed(desired(CUDA), read(facts), RUN) is not None


def test_a_record_is_written_atomically_and_is_world_readable(tmp_path):
    path = tmp_path / "deep" / "release.json"
    record = renewed(desired(CUDA), {}, RunStamp('it\'s "quoted" $(x)\n%s'))
    assert record is not None
    done = subprocess.run(["/bin/sh"], input=write_script(record, str(path)).encode(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(path.read_text()) == record
    assert oct(path.stat().st_mode & 0o777) == "0o644"
    assert [one.name for one in path.parent.iterdir()] == ["release.json"]


def run_script(script: str) -> None:
    done = subprocess.run(["/bin/sh"], input=script.encode(), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def other_stack(driver: str) -> Desired:
    stack = with_values(STACK, driver={"version": driver})
    return Desired("gpu01", stack, (CUDA,))


def test_record_without_a_digest_is_rewritten_once():
    record = renewed(desired(CUDA), {}, RUN)
    assert record is not None
    assert record["digest"] == STACK.digest() == digest_of(record)
    old = {name: value for name, value in record.items() if name != "digest"}
    assert about(old, STACK)
    assert former_name(old, STACK) == ""
    after = renewed(desired(CUDA), old, RunStamp("run-2", at="2026-11-22T08:00:00Z"))
    assert after is not None
    assert (after["digest"], after["roles"]["cuda"]["run"]) == (STACK.digest(), "run-1")
    assert renewed(desired(CUDA), after, RunStamp("run-3")) is None


def test_last_record_of_each_former_stack_is_kept(tmp_path):
    path, folder = tmp_path / "release.json", tmp_path / "releases"
    record: Mapping[str, Any] = {}
    for day, driver in enumerate(["1.1", "1.2", "1.3", "1.2", "1.4", "1.5", "1.6", "1.7"], start=1):
        wanted = other_stack(driver)
        after = renewed(wanted, record, RunStamp("run", at=f"2026-11-0{day}T08:00:00Z"))
        assert after is not None
        name = former_name(record, wanted.stack)
        run_script(write_script(after, str(path), former=name, folder=str(folder)))
        record = after
    kept = [json.loads(one.read_text()) for one in sorted(folder.iterdir())]
    assert [one["versions"]["driver"] for one in kept] == ["1.3", "1.2", "1.4", "1.5", "1.6"]
    assert [one.name[:10] for one in sorted(folder.iterdir())] == [f"2026-11-0{day}" for day in (3, 4, 5, 6, 7)]
    assert all(oct(one.stat().st_mode & 0o777) == "0o644" for one in folder.iterdir())
    assert json.loads(path.read_text())["versions"]["driver"] == "1.7"

    asked = subprocess.run(
        ["/bin/sh"], input=FORMERS.script.replace(FORMER, str(folder)).encode(), capture_output=True, check=True
    )
    found = formers(Facts({FORMERS: Answer(0, asked.stdout.decode())}))
    assert [one["versions"]["driver"] for one in found] == ["1.6", "1.5", "1.4", "1.2", "1.3"]


def test_a_run_of_some_roles_leaves_the_time_at_which_all_were_found_as_desired(tmp_path):
    """apt is queried for changes since that time, and the role that queries it may not be in the run."""
    path = tmp_path / "release.json"
    record = {"roles": {"base": {}, "cuda": {}}}
    run_script(write_script(record, str(path), seen=["cuda"]))
    assert path.stat().st_mtime == 0
    run_script(write_script(record, str(path), seen=["base", "cuda"]))
    seen = path.stat().st_mtime_ns
    assert seen > 0
    run_script(write_script(record, str(path), seen=["cuda"]))
    assert path.stat().st_mtime_ns == seen


def test_a_write_that_is_done_again_keeps_one_former_record(tmp_path):
    path, folder = tmp_path / "release.json", tmp_path / "releases"
    before = renewed(other_stack("1.1"), {}, RUN)
    after = renewed(other_stack("1.2"), before or {}, RUN)
    assert before is not None
    assert after is not None
    run_script(write_script(before, str(path)))
    name = former_name(before, other_stack("1.2").stack)
    run_script(write_script(after, str(path), former=name, folder=str(folder)))
    assert json.loads((folder / name).read_text()) == before


def test_where_nothing_was_kept_there_is_nothing_to_go_back_to(tmp_path):
    script = FORMERS.script.replace(FORMER, str(tmp_path / "none"))
    done = subprocess.run(["/bin/sh"], input=script.encode(), capture_output=True, check=True)
    assert formers(Facts({FORMERS: Answer(done.returncode, done.stdout.decode())})) == ()


@given(
    st.dictionaries(st.sampled_from(["at", "digest", "stack", "versions"]), st.text() | st.integers() | st.none()),
)
def test_record_file_names_contain_no_host_output(said: dict[str, Any]):
    name = former_name({"schema": 1, "roles": {}, **said}, STACK)
    assert name == "" or re.fullmatch(r"(0000|[0-9]{4}-[0-9A-Za-z:+.-]{1,40})-([0-9a-f]{12}|unknown)\.json", name)
