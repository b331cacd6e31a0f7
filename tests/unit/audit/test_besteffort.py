"""Tests of ``BestEffort``: when it fails, the work continues, and one warning is printed."""

from __future__ import annotations

from functools import partial

import pytest

from hostwright.audit.besteffort import BestEffort
from hostwright.common.errors import HostwrightError


def test_only_the_first_failure_is_told() -> None:
    told: list[str] = []
    attempt = BestEffort(told.append, "the history of audits", "The audit continues")
    assert attempt(lambda: 7) == 7
    assert told == []
    for error in (OSError("the disk is full"), HostwrightError("it is damaged")):
        assert attempt(partial(_raise, error)) is None
    assert told == ["the history of audits cannot be used: the disk is full. The audit continues"]
    assert attempt(lambda: 8) == 8


def test_a_mistake_of_ours_is_not_hidden() -> None:
    told: list[str] = []
    with pytest.raises(KeyError):
        BestEffort(told.append, "the history", "It continues")(lambda: _raise(KeyError("host")))
    assert told == []


def _raise(error: Exception) -> None:
    raise error
