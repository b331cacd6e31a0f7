"""How far a run may go: what the options mean, and the course that follows from them, as plain calls."""

from __future__ import annotations

import resource

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostwright.apply.rollout.limits import MAX_PARALLEL, STOPPED_BY_OPERATOR, Limits, Scheduler, read_limits, window
from hostwright.common.errors import InputError
from hostwright.common.request import Request

NAMES = tuple(f"gpu{number:02}" for number in range(20))


def read(hosts: int = 20, canary: str = "", batch: str = "", max_fail: str = "") -> Limits:
    return read_limits(Request(canary=canary, batch=batch, max_fail=max_fail), hosts)


def test_the_window_is_bounded_by_hosts_by_files_and_by_the_house(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1 << 20, 1 << 20))
    assert window(3) == 3
    assert window(10_000) == MAX_PARALLEL
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 256))
    assert window(10_000) == 48
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert window(10_000) == MAX_PARALLEL
    assert window(0) == 1


def test_nothing_said_means_no_canary_all_at_once_and_no_budget():
    assert read() == Limits(canary=0, batch=20, max_fail=20)
    assert read(10_000).batch == window(10_000)


def test_numbers_and_shares():
    assert read(canary="1", batch="10%", max_fail="5") == Limits(canary=1, batch=2, max_fail=5)
    assert read(canary=" 2 ", batch="3", max_fail="25 %") == Limits(canary=2, batch=3, max_fail=5)
    assert read(max_fail="0").max_fail == 0
    assert read(canary="0").canary == read(canary="0%").canary == 0


def test_shares_of_canary_and_batch_are_rounded_up_and_of_failures_down():
    assert read(7, canary="10%", batch="10%", max_fail="10%") == Limits(canary=1, batch=1, max_fail=0)
    assert read(21, canary="10%", batch="10%", max_fail="10%") == Limits(canary=3, batch=3, max_fail=2)
    assert read(1000, canary="0.1%", max_fail="0.1%") == Limits(canary=1, batch=window(1000), max_fail=1)
    assert read(30, batch="10%").batch == 3  # in floating point, 30 * 0.1 is more than 3


def test_more_than_there_are_hosts_means_all_of_them():
    assert read(3, canary="5", batch="9", max_fail="7") == Limits(canary=3, batch=3, max_fail=3)


@pytest.mark.parametrize("option", ["canary", "batch", "max_fail"])
@pytest.mark.parametrize("text", ["-1", "101%", "100.1%", "many", "1.5", "%", "5%%", "1e3", "٣", "1_0", "10 hosts"])
def test_what_is_no_amount_is_refused_by_the_name_of_its_option(option, text):
    with pytest.raises(InputError) as caught:
        read(**{option: text})
    assert caught.value.where == "--" + option.replace("_", "-")
    assert repr(text) in str(caught.value)
    assert "expected a number of hosts such as 5, or a share from 0% to 100%" in str(caught.value)


@pytest.mark.parametrize("text", ["0", "0%"])
def test_a_batch_of_zero_is_refused(text):
    with pytest.raises(InputError, match=r"^--batch: found '.*', expected at least 1 host at once"):
        read(batch=text)


@settings(deadline=None)
@given(st.integers(1, 400), st.integers(0, 100), st.integers(1, 100), st.integers(0, 100))
def test_limits_are_always_ones_that_a_run_can_keep(hosts, canary, batch, max_fail):
    limits = read(hosts, f"{canary}%", f"{batch}%", f"{max_fail}%")
    assert 0 <= limits.canary <= hosts
    assert 1 <= limits.batch <= window(hosts)
    assert 0 <= limits.max_fail <= hosts


def test_the_window_slides_as_soon_as_one_host_ends():
    scheduler = Scheduler(NAMES, Limits(0, 3, 20), 20)
    assert scheduler.begin(()) == NAMES[:3]
    assert scheduler.begin(()) == ()
    scheduler.end("gpu01", "changed")
    assert scheduler.begin(()) == ("gpu03",)
    assert scheduler.running == ("gpu00", "gpu02", "gpu03")


def test_other_hosts_begin_only_after_all_canaries_succeeded():
    scheduler = Scheduler(NAMES, Limits(2, 5, 20), 20)
    assert scheduler.begin(()) == NAMES[:2]
    scheduler.end("gpu01", "as desired")
    assert scheduler.begin(()) == ()
    scheduler.end("gpu00", "changed")
    assert scheduler.begin(()) == NAMES[2:7]


def test_more_canaries_than_slots_take_turns():
    scheduler = Scheduler(NAMES, Limits(3, 2, 20), 20)
    assert scheduler.begin(()) == NAMES[:2]
    scheduler.end("gpu00", "changed")
    assert scheduler.begin(()) == ("gpu02",)


def test_a_few_slots_of_hosts_that_have_not_said_a_word_are_lent_early():
    scheduler = Scheduler(NAMES, Limits(0, 8, 20), 20)
    scheduler.begin(())
    assert scheduler.begin((), not_responding=NAMES[:1]) == ("gpu08",)
    assert scheduler.begin((), not_responding=NAMES[:1]) == ()
    assert scheduler.begin((), not_responding=NAMES[:5]) == ("gpu09",)  # two of eight
    assert scheduler.begin(("gpu00",), not_responding=NAMES[:1]) == ()  # named by now, and its slot is lent already
    assert scheduler.begin(("gpu00", "gpu01"), not_responding=NAMES[:3]) == ("gpu10",)


def test_of_a_small_batch_and_beyond_the_budget_no_slot_is_lent_early():
    for limits in (Limits(0, 3, 20), Limits(0, 8, 0), Limits(2, 8, 20)):
        scheduler = Scheduler(NAMES, limits, 20)
        assert scheduler.begin(())
        assert scheduler.begin((), not_responding=NAMES) == ()


@pytest.mark.parametrize("result", ["failed", "unreachable"])
def test_a_canary_that_fails_stops_the_run_whatever_the_budget(result):
    scheduler = Scheduler(NAMES, Limits(2, 20, 20), 20)
    scheduler.begin(())
    scheduler.end("gpu01", result)
    assert scheduler.begin(()) == ()
    assert scheduler.because == "a canary failed: gpu01"
    assert not scheduler.over
    scheduler.end("gpu00", "changed")
    assert scheduler.over
    assert scheduler.untouched == NAMES[2:]


def test_failures_over_the_budget_stop_the_run():
    scheduler = Scheduler(NAMES, Limits(0, 4, 2), 20)
    scheduler.begin(())
    scheduler.end("gpu00", "failed")
    scheduler.end("gpu01", "unreachable")
    assert scheduler.because == ""
    assert scheduler.begin(()) == ("gpu04", "gpu05")
    scheduler.end("gpu02", "failed")
    assert scheduler.because == "too many failures: 3 hosts failed, --max-fail allows 2"
    scheduler.end("gpu03", "failed")
    scheduler.end("gpu04", "changed")
    scheduler.end("gpu05", "changed")
    assert scheduler.over
    assert scheduler.because == "too many failures: 4 hosts failed, --max-fail allows 2"
    assert scheduler.untouched == NAMES[6:]


def test_with_no_budget_the_first_failure_stops_the_run():
    scheduler = Scheduler(NAMES, Limits(0, 1, 0), 20)
    scheduler.begin(())
    scheduler.end("gpu00", "failed")
    assert scheduler.because == "too many failures: 1 host failed, --max-fail allows 0"
    assert scheduler.over


def test_a_host_that_was_stopped_costs_nothing_but_nobody_follows_it():
    scheduler = Scheduler(NAMES, Limits(1, 1, 0), 20)
    scheduler.begin(())
    scheduler.end("gpu00", "stopped")
    assert (scheduler.failures, scheduler.because, scheduler.begin(())) == (0, STOPPED_BY_OPERATOR, ())


def test_the_first_reason_to_stop_stands():
    scheduler = Scheduler(NAMES, Limits(0, 2, 0), 20)
    scheduler.begin(())
    scheduler.halt(STOPPED_BY_OPERATOR)
    scheduler.end("gpu00", "failed")
    scheduler.end("gpu01", "failed")
    assert scheduler.because == STOPPED_BY_OPERATOR
    assert scheduler.failures == 2
    scheduler = Scheduler(NAMES, Limits(2, 2, 0), 20)
    scheduler.begin(())
    scheduler.end("gpu01", "failed")
    scheduler.end("gpu00", "stopped")
    assert scheduler.because == "a canary failed: gpu01"


def test_the_slot_of_a_silent_host_is_lent_once():
    scheduler = Scheduler(NAMES, Limits(0, 2, 20), 20)
    scheduler.begin(())
    assert scheduler.begin({"gpu00"}) == ("gpu02",)
    assert scheduler.begin({"gpu00"}) == ()
    assert scheduler.begin(()) == ()  # it lives again: one more in work than the window has slots
    scheduler.end("gpu01", "changed")
    assert scheduler.begin(()) == ()
    assert scheduler.begin({"gpu00"}) == ("gpu03",)
    scheduler.end("gpu00", "unreachable")
    assert scheduler.begin({"gpu00"}) == ()


def test_no_slot_is_lent_that_the_budget_could_not_pay_for():
    scheduler = Scheduler(NAMES, Limits(0, 3, 1), 20)
    scheduler.begin(())
    assert scheduler.begin({"gpu00", "gpu01", "gpu02"}) == ("gpu03",)
    scheduler.end("gpu00", "unreachable")
    assert scheduler.begin({"gpu01", "gpu02"}) == ()
    scheduler.end("gpu03", "changed")
    assert scheduler.begin({"gpu01", "gpu02"}) == ("gpu04",)


def test_a_silent_canary_is_waited_for():
    scheduler = Scheduler(NAMES, Limits(2, 1, 20), 20)
    assert scheduler.begin(()) == ("gpu00",)
    assert scheduler.begin({"gpu00"}) == ()


def test_lending_ends_at_the_ceiling():
    scheduler = Scheduler(NAMES, Limits(0, 3, 20), 4)
    scheduler.begin(())
    assert scheduler.begin(set(NAMES)) == ("gpu03",)
    assert scheduler.begin(set(NAMES)) == ()


def test_a_host_that_is_named_twice_is_worked_on_once():
    scheduler = Scheduler(("gpu00", "gpu01", "gpu00"), Limits(0, 9, 9), 9)
    assert scheduler.begin(()) == ("gpu00", "gpu01")


RESULTS = st.sampled_from(["changed", "changed", "changed", "as desired", "failed", "unreachable", "stopped"])


@settings(deadline=None)
@given(
    st.data(),
    st.integers(0, 25),
    st.builds(Limits, st.integers(0, 6), st.integers(1, 8), st.integers(0, 25)),
    st.integers(1, 12),
)
def test_every_course_keeps_its_limits(data, hosts, limits, ceiling):
    """Any outcomes in any order, silent hosts that come and go, and an operator who may stop it."""
    names = NAMES[:hosts] + tuple(f"more{number}" for number in range(hosts - len(NAMES)))
    scheduler, batch = Scheduler(names, limits, ceiling), min(limits.batch, ceiling)
    begun: list[str] = []
    ended: dict[str, str] = {}
    in_work_at_stop = 0
    for _ in range(4 * hosts + 1):
        if scheduler.over:
            break
        silent = data.draw(st.sets(st.sampled_from(scheduler.running))) if scheduler.running else set()
        fresh = scheduler.begin(silent)
        begun += fresh
        lent = min(len(silent), limits.max_fail - scheduler.failures) if not scheduler.because else 0
        canaries_left = [name for name in names[: limits.canary] if ended.get(name) not in ("changed", "as desired")]
        if fresh:
            assert len(scheduler.running) <= ceiling
            assert len(scheduler.running) - (0 if canaries_left else lent) <= batch
            assert scheduler.failures <= limits.max_fail and not scheduler.because
            assert not canaries_left or set(fresh) <= set(canaries_left)
        elif scheduler.untouched and not scheduler.because and not canaries_left:
            assert len(scheduler.running) - lent >= batch or len(scheduler.running) == ceiling  # no slot is left idle
        assert scheduler.running or scheduler.over
        if not scheduler.because:
            in_work_at_stop = len(scheduler.running)
        if data.draw(st.integers(0, 40)) == 40:
            scheduler.halt(STOPPED_BY_OPERATOR)
        if scheduler.running and data.draw(st.booleans()):
            host = data.draw(st.sampled_from(scheduler.running))
            ended[host] = data.draw(RESULTS)
            scheduler.end(host, ended[host])
    for host in scheduler.running:
        ended[host] = "changed"
        scheduler.end(host, "changed")
    assert begun == list(dict.fromkeys(begun)) and set(begun) == set(ended)
    assert (*begun, *scheduler.untouched) == names
    failures = sum(result in ("failed", "unreachable") for result in ended.values())
    assert failures == scheduler.failures
    if scheduler.because:
        assert failures <= limits.max_fail + in_work_at_stop, "only hosts that were in work may overspend"
    else:
        assert failures <= limits.max_fail


def test_a_locked_canary_is_replaced_by_the_next_host():
    scheduler = Scheduler(NAMES, Limits(2, 5, 0), 20)
    assert scheduler.begin(()) == NAMES[:2]
    scheduler.end("gpu00", "locked")
    assert scheduler.begin(()) == ("gpu02",), "and nobody else"
    scheduler.end("gpu01", "changed")
    scheduler.end("gpu02", "locked")
    assert scheduler.begin(()) == ("gpu03",)
    scheduler.end("gpu03", "changed")
    assert scheduler.begin(()) == NAMES[4:9]
    assert (scheduler.failures, scheduler.because) == (0, "")


def test_the_host_that_replaces_a_locked_canary_stops_the_run_if_it_fails():
    scheduler = Scheduler(NAMES, Limits(1, 5, 20), 20)
    scheduler.begin(())
    scheduler.end("gpu00", "locked")
    scheduler.begin(())
    scheduler.end("gpu01", "failed")
    assert scheduler.because == "a canary failed: gpu01"


def test_locked_hosts_spend_no_budget_and_may_be_all_of_them():
    scheduler = Scheduler(NAMES[:3], Limits(1, 1, 0), 20)
    for name in NAMES[:3]:
        assert scheduler.begin(()) == (name,)
        scheduler.end(name, "locked")
    assert (scheduler.over, scheduler.failures, scheduler.because, scheduler.untouched) == (True, 0, "", ())
