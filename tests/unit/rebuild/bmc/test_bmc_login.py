"""How we log in to a BMC over real HTTP, and that a password which is refused is not tried again."""

from __future__ import annotations

import pytest

from hostwright.common.secret import Secret
from hostwright.rebuild.bmc import BmcDenied, BmcError, Opener, Power, open_bmc
from tests.unit.support import redfish
from tests.unit.support.bmcs import bmc, failure, opened
from tests.unit.support.redfish import RESET, SESSIONS, TOKEN, Answer, Machine, answer, refusal


def test_a_session_is_begun_and_ended() -> None:
    machine = Machine()
    with opened(machine) as controller:
        controller.power()
    assert machine.count("POST", SESSIONS) == 1
    assert machine.asked[-1] == ("DELETE", f"{SESSIONS}/7")
    assert not any("Authorization" in headers for headers in machine.headers)


def test_a_bmc_without_sessions_gets_the_password_each_time() -> None:
    machine = Machine(sessions=False)
    with opened(machine) as controller:
        assert controller.power() is Power.ON
    assert ("POST", SESSIONS) not in machine.asked


def test_a_bmc_with_too_many_sessions_gets_the_password_each_time() -> None:
    machine = Machine()
    machine.overrides["POST", SESSIONS] = lambda *_: refusal(503, "The maximum number of sessions is reached")
    with opened(machine) as controller:
        assert controller.power() is Power.ON


@pytest.mark.parametrize(
    ("answered", "words"),
    [
        (refusal(400, "Check supplied username and password"), "Check supplied username and password"),
        (answer(400, {"error": {"message": "bad login"}}), "bad login"),
        (answer(400, {"error": {"@Message.ExtendedInfo": "rubbish"}}), "status 400"),
        ((400, {}, b"\xff"), "status 400"),
    ],
)
def test_rejected_login_request_is_not_sent_differently(answered: Answer, words: str) -> None:
    """A wrong password is status 400 with some; the same one with each request would be one try more."""
    machine = Machine()
    machine.overrides["POST", SESSIONS] = lambda *_: answered
    error = failure(machine)
    assert isinstance(error, BmcDenied)
    assert f"refuses the user 'admin' ({words}): the password is wrong" in str(error)
    assert not any("Authorization" in headers for headers in machine.headers)


def test_a_bmc_that_refused_the_login_is_not_asked_again() -> None:
    machine = Machine()
    with redfish.redfish(machine) as url:
        opener = Opener(bmc(url, password=Secret("wrong")))
        for _ in range(3):
            with pytest.raises(BmcDenied, match="the password is wrong"):
                opener()
    assert (machine.denied, machine.count("POST", SESSIONS)) == (1, 1)


def test_a_bmc_that_fails_otherwise_is_asked_again() -> None:
    machine = Machine(systems=())
    with redfish.redfish(machine) as url:
        opener = Opener(bmc(url))
        with pytest.raises(BmcError, match="lists no system in Redfish"):
            opener()
        machine.systems = ("1",)
        opener().close()


@pytest.mark.parametrize("place", ["https://bmc//[x", "//[x", "http://[::1"])
def test_a_session_whose_address_is_none_is_left_to_end_by_itself(place: str) -> None:
    machine = Machine()
    machine.overrides["POST", SESSIONS] = lambda *_: answer(201, {}, X_Auth_Token=TOKEN, Location=place)
    with opened(machine) as controller:
        assert controller.power() is Power.ON


def test_certificate_below_an_unknown_home_is_missing() -> None:
    with pytest.raises(BmcError, match=r"hostwright_bmc_ca: ~nobody-of-this-name/ca\.pem cannot be used: No such file"):
        open_bmc(bmc("https://127.0.0.1:1", ca="~nobody-of-this-name/ca.pem"))


def test_a_session_that_ended_meanwhile_is_begun_again() -> None:
    machine = Machine()
    with opened(machine) as controller:
        machine.session_alive = False
        assert controller.power() is Power.ON
    assert machine.count("POST", SESSIONS) == 2


@pytest.mark.parametrize("sessions", [True, False])
def test_a_wrong_password_is_tried_once(sessions: bool) -> None:
    machine = Machine(sessions=sessions)
    error = failure(machine, password=Secret("wrong"))
    assert isinstance(error, BmcDenied)
    assert "refuses the user 'admin': the password is wrong" in str(error)
    assert "hostwright_bmc_password" in str(error)
    assert machine.denied == 1


def test_a_password_that_changes_while_something_is_awaited_is_tried_once() -> None:
    machine = Machine(power="Off", takes=False)

    def changed() -> None:
        machine.session_alive = False
        machine.overrides["POST", SESSIONS] = lambda *_: refusal(401, "no")

    with pytest.raises(BmcDenied), opened(machine, changed) as controller:
        controller.turn_on()
    assert machine.count("POST", SESSIONS) == 2
    assert machine.asked[-1] == ("POST", SESSIONS)


def test_a_user_who_may_not_do_that_is_told_so() -> None:
    machine = Machine()
    machine.overrides["POST", RESET] = lambda *_: refusal(403, "insufficient privilege")
    with (
        pytest.raises(BmcDenied, match=r"lacks the permission for this request.*role Operator"),
        opened(machine) as controller,
    ):
        controller.cycle()
