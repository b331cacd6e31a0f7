"""The limits of a host's data in one run: enough for an honest host, and an end for an endless one."""

from __future__ import annotations

import pytest

from hostwright.transport import Allowance
from hostwright.transport.exchange import TOO_MUCH

CAP = 1 << 20


class Time:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def taken(allowance: Allowance, size: int, most: int = 10**7) -> int:
    """The number of messages of this size that a host may send."""
    return next(number for number in range(most) if not allowance.take(size))


@pytest.fixture
def time() -> Time:
    return Time()


def test_a_host_is_unheard_until_its_first_message(time: Time) -> None:
    allowance = Allowance(time)
    time.now_s += 3.0
    assert allowance.silent_s() == 3.0
    with allowance.connection():
        assert allowance.take(1)
    time.now_s += 3.0
    assert allowance.silent_s() == 0.0


@pytest.mark.parametrize("size", [0, 1, 13])
def test_small_messages_end_by_their_number(time: Time, size: int) -> None:
    allowance = Allowance(time)
    with allowance.connection(), allowance.command(CAP):
        assert taken(allowance, size) == 2_000 + 20_000 + CAP // 256
    assert allowance.fault == TOO_MUCH


def test_large_messages_end_by_their_bytes(time: Time) -> None:
    allowance = Allowance(time)
    with allowance.connection(), allowance.command(CAP):
        assert taken(allowance, 32_768) * 32_768 <= (2 << 20) + (5 << 20) + CAP + CAP // 8


def test_what_a_command_leaves_is_taken_back(time: Time) -> None:
    allowance = Allowance(time)
    with allowance.connection():
        for _ in range(100):
            with allowance.command(CAP):
                assert allowance.take(1000)
        assert taken(allowance, 1) == 2_000


def test_commands_side_by_side_have_each_their_own(time: Time) -> None:
    allowance, each = Allowance(time), 20_000 + CAP // 256
    with allowance.connection(), allowance.command(CAP):
        with allowance.command(CAP):
            assert all(allowance.take(1) for _ in range(each))
        assert taken(allowance, 1) == 2_000 + each


def test_a_run_has_an_end_over_however_many_connections(time: Time) -> None:
    allowance = Allowance(time)
    messages = 0
    while not allowance.fault:
        with allowance.connection(), allowance.command(16 * CAP):
            for _ in range(50):
                messages += 1000 * allowance.take(16_000, weight=1000)
    assert messages == Allowance.RUN[0]


def test_signs_of_life_never_come_to_an_end(time: Time) -> None:
    """A run's lock sends a heartbeat every 4 s, a watch every 2 s, sshd every 15 s."""
    allowance = Allowance(time)
    with allowance.connection(), allowance.command(CAP):
        for _ in range(20 * 1440):
            time.now_s += 60
            assert allowance.take(60 * 40, weight=60)


def test_a_host_may_make_room_for_all_that_is_sent(time: Time) -> None:
    """sshd adjusts its window every 4 KiB at most, while 2.5 GB are sent."""
    allowance = Allowance(time)
    with allowance.connection(), allowance.command(CAP):
        for _ in range(2_500_000_000 // (32_768 * 64)):
            allowance.sent(32_768 * 64)
            assert allowance.take(9 * 8 * 64, weight=8 * 64)


def test_nothing_is_taken_after_the_end(time: Time) -> None:
    allowance = Allowance(time)
    with allowance.connection():
        taken(allowance, 1)
    with allowance.connection(), allowance.command(CAP):
        assert not allowance.take(1)
