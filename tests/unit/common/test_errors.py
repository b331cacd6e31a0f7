"""Errors keep all their attributes when they are pickled."""

from __future__ import annotations

import pickle

import pytest

from hostwright.common import errors
from hostwright.common.errors import (
    Acceptance,
    Examination,
    ExecutorLost,
    FailedStep,
    HostError,
    HostwrightError,
    InputError,
    InputErrors,
    NotAccepted,
    NotAnswered,
    ScriptFailed,
    SeveralFailed,
    StepFailed,
    UnitJournal,
    Unreachable,
)
from hostwright.common.untrusted import Unforeseen

STEP = FailedStep("base", "file /etc/motd", "false", 1, ("no room",), None, ("chrony",))
SAMPLES = (
    InputError("found 'ten'", "hosts.yml:4"),
    InputErrors([InputError("one", "a.yml"), InputError("two")]),
    Unreachable("gpu01", "refused", passing=True),
    NotAnswered("df /", 30),
    StepFailed("gpu01", "base: ended with status 1", STEP),
    ScriptFailed("gpu01", "cannot be written", 1, ("no room",)),
    SeveralFailed("gpu01", [StepFailed("gpu01", "a", STEP), HostError("gpu01", "b")]),
    NotAccepted("gpu01", "the proofs failed", (Acceptance("network.dense", "failed", "slow"),), exit_status=3),
    ExecutorLost("gpu01", "the scheduler was lost", "run again"),
    Unforeseen("gpu01", "the work on it ended"),
)
#: error classes that take the same arguments as their base class
PLAIN = tuple(
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, HostwrightError) and kind not in {type(one) for one in SAMPLES}
)


def sample(kind: type[HostwrightError]) -> HostwrightError:
    return kind("gpu01", "no room") if issubclass(kind, HostError) else kind("no room")


@pytest.mark.parametrize("error", [*SAMPLES, *map(sample, PLAIN)], ids=lambda error: type(error).__name__)
def test_an_error_is_the_same_in_another_process(error: HostwrightError):
    error.__dict__["examination"] = Examination((), "looked at", (UnitJournal("a", "b", ("c",), "d"),))
    told = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    assert (type(told), str(told), told.args, told.exit_status) == (
        type(error), str(error), error.args, error.exit_status,
    )  # fmt: skip
    assert {name: str(value) for name, value in vars(told).items()} == {
        name: str(value) for name, value in vars(error).items()
    }
    assert told.__dict__["examination"] == error.__dict__["examination"]


def test_what_was_told_anew_stays_so():
    error = HostError("gpu01", "failed")
    error.retell("failed: no room")
    told = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    assert (str(told), told.sentence) == ("gpu01: failed: no room", "failed: no room")
