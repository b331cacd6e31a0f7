"""The release record: written once for a state, renewed when what is desired changes, never half a file."""

import json
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.fleet import DEFAULT_INVENTORY
from hostwright.model import Answer, Facts
from hostwright.planning import Desired, DesiredRole
from hostwright.release import RELEASE, Run, desired_sha256, read, renewed, state_sha256, write_script
from hostwright.resources.files import File, Link
from hostwright.stackfile import load_stack

STACK = load_stack("tensorflow-2.9", [DEFAULT_INVENTORY / "stacks"])
RUN = Run("run-1", "ada@desk", "2026-11-21T08:00:00Z", "abc123")
CUDA = DesiredRole("cuda", (), (Link("/usr/local/cuda", "/usr/local/cuda-11.2"),))
MOTD = DesiredRole("motd", (), (File("/etc/motd", "hello\n"),))


def desired(*roles: DesiredRole) -> Desired:
    return Desired("gpu01", STACK, roles)


def test_it_names_stack_versions_files_and_who_did_it():
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
    assert renewed(desired(CUDA, MOTD), record, Run("run-2")) is None
    assert renewed(desired(CUDA), record, Run("run-2")) is None, "a run of one role alone finds the same"


def test_another_wish_renews_that_role_and_keeps_the_others():
    record = renewed(desired(CUDA, MOTD), {}, RUN)
    assert record is not None
    other = DesiredRole("motd", (), (File("/etc/motd", "good morning\n"),))
    after = renewed(desired(CUDA, other), record, Run("run-2"))
    assert after is not None
    assert (after["roles"]["cuda"]["run"], after["roles"]["motd"]["run"]) == ("run-1", "run-2")
    assert after["desired"] != record["desired"]


def test_roles_of_another_stack_are_forgotten():
    record = renewed(desired(CUDA, MOTD), {}, RUN)
    assert record is not None
    after = renewed(desired(MOTD), {**record, "stack": "tensorflow-2.12"}, Run("run-2"))
    assert after is not None
    assert set(after["roles"]) == {"motd"}


@pytest.mark.parametrize(
    "text", ["", "not json", "[]", "null", '{"schema": 99, "roles": {}}', '{"schema": 1, "roles": 3}']
)
def test_what_is_no_record_counts_as_none(text: str):
    assert read(Facts({RELEASE: Answer(0, text)})) == {}


@given(
    st.recursive(st.none() | st.text() | st.integers(), lambda inner: st.dictionaries(st.text(), inner), max_leaves=8)
)
def test_whatever_a_host_carries_it_gets_a_record(junk: object):
    facts = Facts({RELEASE: Answer(0, json.dumps({"schema": 1, "roles": {"cuda": junk}, "stack": STACK.name}))})
    assert renewed(desired(CUDA), read(facts), RUN) is not None


def test_it_is_written_whole_and_may_be_read_by_all(tmp_path):
    path = tmp_path / "deep" / "release.json"
    record = renewed(desired(CUDA), {}, Run('it\'s "quoted" $(x)\n%s'))
    assert record is not None
    done = subprocess.run(["/bin/sh"], input=write_script(record, str(path)).encode(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(path.read_text()) == record
    assert oct(path.stat().st_mode & 0o777) == "0o644"
    assert [one.name for one in path.parent.iterdir()] == ["release.json"]
