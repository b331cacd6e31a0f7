"""Tests of the critical path of a run, with made-up hosts whose answer is known."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.apply.journal.runs import HostRun, RoleRun
from hostwright.audit.reports.run.chain import chain_of
from hostwright.audit.reports.run.spans import needs_of, spans_of
from hostwright.plan.model import StepResult

NEEDS = {"driver": ["base"], "cuda": ["base"], "cudnn": ["base", "cuda"], "tensorflow": ["base"]}


def role(name: str, began_s: float, *steps: tuple[str, float, float], status: int | None = 0) -> RoleRun:
    """A job whose steps take these seconds, and wait for a lock for these seconds."""
    results = tuple(
        StepResult(number, what, 0, lasted_s, waited_s=waited_s)
        for number, (what, lasted_s, waited_s) in enumerate(steps)
    )
    return RoleRun(name, began_s, len(steps), "job", "", status, sum(step.duration_s for step in results), results)


def sent(name: str, artifact: str, end_s: float, lasted_s: float) -> dict[str, Any]:
    return {
        "kind": "delivering",
        "role": name,
        "artifact": artifact,
        "t": end_s,
        "seconds": lasted_s,
        "total_bytes": 5e6,
    }


def path(*roles: RoleRun, said: tuple[dict[str, Any], ...] = ()) -> list[tuple[str, float, float, tuple[str, ...]]]:
    plan = {"roles": [{"role": name, "needs": needs} for name, needs in NEEDS.items()]}
    host = HostRun("gpu01", "changed", plans=(plan,), roles=roles, said=said)
    links = chain_of(spans_of(host, 200.0), needs_of(host))
    return [(link.span.what, round(link.began_s, 1), round(link.lasted_s, 1), link.steps) for link in links]


def test_the_last_layer_waited_for_the_layer_that_it_needs_and_no_other():
    base, driver = role("base", 0, ("packages", 20, 0)), role("driver", 20.2, ("module", 30, 0))
    cuda, cudnn = role("cuda", 20.3, ("pin", 1, 0), ("toolkit", 25, 0)), role("cudnn", 46.5, ("files", 8, 0))
    assert path(base, driver, cuda, cudnn) == [
        ("base", 0, 20, ("packages",)),
        ("cuda", 20.3, 26, ("pin", "toolkit")),
        ("cudnn", 46.5, 8, ("files",)),
    ]


def test_a_layer_that_waited_for_its_file_leads_to_that_file():
    base = role("base", 0, ("packages", 5, 0))
    tensorflow = role("tensorflow", 30, ("venv", 60, 0))
    files = (sent("tensorflow", "wheels.tar", 29.8, 24.0), sent("cuda", "repo.deb", 29.9, 2.0))
    assert [(what, began) for what, began, *_ in path(base, tensorflow, said=files)] == [
        ("base", 0), ("wheels.tar", 5.8), ("tensorflow", 30),
    ]  # fmt: skip
    early = (sent("tensorflow", "wheels.tar", 4.0, 3.0),)
    late = role("tensorflow", 5.3, ("venv", 60, 0))
    assert [what for what, *_ in path(base, late, said=early)] == ["base", "tensorflow"]


def test_a_file_that_was_sent_after_another_waited_for_that_one_and_not_for_what_ended_long_before():
    files = (sent("cuda", "repo.deb", 20, 12), sent("tensorflow", "wheels.tar", 40, 19.8))
    roles = (role("base", 0, ("packages", 5, 0)), role("tensorflow", 40.2, ("venv", 60, 0)))
    assert [what for what, *_ in path(*roles, said=files)] == ["repo.deb", "wheels.tar", "tensorflow"]


@pytest.mark.parametrize(
    ("sent_bytes", "told"),
    [
        ({"peer gpu03": 4_000_000, "controller": 1_000_000}, ", from gpu03 and from this machine"),
        ({"ssh": 5_000_000}, ", over SSH"), ({"vendor": 5_000_000}, ", from its vendor"),
        ({}, ""), (None, ""), (["peer gpu03"], ""),
        ({"controller": "many", "ssh": 1}, ", over SSH and from this machine"),
    ],
)  # fmt: skip
def test_where_a_file_came_from_is_told(sent_bytes, told):
    record = {**sent("cuda", "repo.deb", 20, 12), "sent": sent_bytes}
    (span,) = spans_of(HostRun("gpu01", "changed", said=(record,)), 200.0)
    assert (span.kind, span.began_s, span.lasted_s) == ("sent", 8, 12)
    assert span.detail == f"a file of cuda, 5 MB{told}"


def test_a_step_that_waited_for_a_lock_leads_to_who_held_it():
    base = role("base", 0, ("packages", 10, 0))
    driver = role("driver", 10.2, ("module", 40, 0), ("holds", 20, 0))
    cuda = role("cuda", 10.3, ("pin", 1, 0), ("toolkit", 90, 59))
    assert path(base, driver, cuda) == [
        ("base", 0, 10, ("packages",)),
        ("driver", 10.2, 60, ("module", "holds")),
        ("cuda", 70.3, 31, ("toolkit",)),
    ]


def test_a_short_wait_and_one_for_somebody_unknown_are_no_reason():
    base = role("base", 0, ("packages", 10, 0))
    assert [what for what, *_ in path(base, role("cuda", 10.2, ("pin", 1, 0), ("toolkit", 30, 0.2)))] == [
        "base",
        "cuda",
    ]
    (first, second) = path(base, role("cuda", 10.2, ("pin", 1, 0), ("toolkit", 30, 20)))
    assert (first[0], second) == ("base", ("cuda", 10.2, 31, ("pin", "toolkit")))


def test_all_that_came_before_a_reboot_waited_for_it():
    base, driver = role("base", 0, ("packages", 10, 0)), role("driver", 10.2, ("nouveau", 5, 0))
    tensorflow = role("tensorflow", 10.2, ("venv", 50, 0))
    reboot = {"kind": "rebooted", "reason": "nouveau", "seconds": 30.0, "t": 91.0}
    again = role("driver", 92, ("module", 20, 0))
    assert [what for what, *_ in path(base, driver, tensorflow, again, said=(reboot,))] == [
        "base", "tensorflow", "reboot", "driver",
    ]  # fmt: skip


def test_a_layer_that_is_worked_on_once_more_waited_for_all_others():
    base, tensorflow = role("base", 0, ("packages", 10, 0)), role("tensorflow", 10.2, ("venv", 50, 0))
    again = role("base", 61, ("links", 1, 0))
    assert [what for what, *_ in path(base, tensorflow, again)] == ["base", "tensorflow", "base"]


def test_of_a_host_on_which_nothing_took_time_there_is_no_path():
    assert path() == []
    assert path(said=({"kind": "silent", "seconds": 8.0, "t": 9.0, "what": "its answers"},)) == []


_number = st.floats(-5, 300, allow_nan=False)
_steps = st.lists(st.tuples(st.text(max_size=3), _number, _number), max_size=4)
_roles = st.lists(
    st.builds(
        lambda name, began, steps, status: role(name, began, *steps, status=status),
        st.sampled_from([*NEEDS, "base"]), _number, _steps, st.sampled_from([None, 0, 1]),
    ),
    max_size=6,
)  # fmt: skip
_said = st.lists(
    st.builds(
        lambda kind, name, t, seconds: {"kind": kind, "role": name, "artifact": "a", "t": t, "seconds": seconds},
        st.sampled_from(["delivering", "rebooted", "silent", "note"]), st.sampled_from([*NEEDS, "base"]),
        _number | st.text(max_size=2), _number | st.none(),
    ),
    max_size=5,
)  # fmt: skip


@given(_roles, _said)
def test_whatever_is_recorded_the_path_ends_and_goes_forward(roles, said):
    links = path(*roles, said=tuple(said))
    assert all(lasted >= 0 for _, _, lasted, _ in links)
    assert len(links) <= sum(max(1, len(one.steps)) for one in roles) + len(said)
