"""Talking to a BMC over real HTTP: orders and what comes of them, and BMCs that are off, slow, wrong or hostile."""

from __future__ import annotations

import errno
import gc
import logging
import os
import socket
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from hostwright.bmc import (
    Bmc,
    BmcDenied,
    BmcError,
    BmcRefused,
    BmcStuck,
    BmcUnreachable,
    Controller,
    Opener,
    Power,
    open_bmc,
)
from hostwright.durations import Clock
from hostwright.secret import Secret
from tests.unit import redfish
from tests.unit.redfish import DRIVE, PASSWORD, RESET, SESSIONS, SYSTEM, TOKEN, Answer, Machine, answer, refusal

IMAGE = "https://images.example/install.iso"


class Time:
    """A clock that sleeps in no time; ``then`` is what happens meanwhile."""

    def __init__(self, then: Callable[[], None] = lambda: None):
        self.now_s = 0.0
        self._then = then

    def clock(self) -> Clock:
        return Clock(lambda: self.now_s, self._sleep)

    def _sleep(self, seconds: float) -> None:
        self.now_s += seconds
        self._then()


@contextmanager
def opened(machine: Machine, then: Callable[[], None] = lambda: None, **settings: Any) -> Iterator[Controller]:
    with (
        redfish.redfish(machine) as url,
        open_bmc(replace(bmc(url), **settings), Time(then).clock()) as controller,
    ):
        yield controller


def bmc(url: str, **settings: Any) -> Bmc:
    return replace(Bmc("gpu07", url, redfish.USER, Secret(PASSWORD)), **settings)


def failure(machine: Machine, **settings: Any) -> BmcError:
    """What opening this machine's BMC and asking for its status raises."""
    with pytest.raises(BmcError) as caught, opened(machine, **settings) as controller:
        controller.status()
    return caught.value


# --- power


def test_a_machine_that_is_off_is_turned_on_and_awaited() -> None:
    machine = Machine(power="Off", takes=False)

    def then() -> None:
        machine.power = "On" if machine.power == "PoweringOn" else "PoweringOn"

    with opened(machine, then) as controller:
        assert controller.power() is Power.OFF
        controller.turn_on()
        assert controller.power() is Power.ON
    assert machine.orders == [{"ResetType": "On"}]


@pytest.mark.parametrize(("power", "order"), [("On", "turn_on"), ("Off", "turn_off")])
def test_no_order_is_given_for_what_is_so_already(power: str, order: str) -> None:
    machine = Machine(power=power)
    with opened(machine) as controller:
        getattr(controller, order)()
    assert machine.orders == []


def test_the_operating_system_is_asked_first_where_that_is_wanted() -> None:
    machine = Machine()
    with opened(machine) as controller:
        controller.turn_off(gracefully=True)
    assert machine.orders == [{"ResetType": "GracefulShutdown"}]


def test_an_operating_system_that_does_not_end_is_cut_off() -> None:
    machine = Machine(takes=False)

    def deaf(_: Machine, __: str) -> Answer | None:
        machine.takes = len(machine.orders) >= 1
        return None

    machine.overrides["POST", RESET] = deaf
    with opened(machine) as controller:
        controller.turn_off(gracefully=True)
        assert controller.power() is Power.OFF
    assert machine.orders == [{"ResetType": "GracefulShutdown"}, {"ResetType": "ForceOff"}]


def test_without_a_graceful_way_the_power_is_cut() -> None:
    machine = Machine(knows=("On", "ForceOff"))
    with opened(machine) as controller:
        controller.turn_off(gracefully=True)
    assert machine.orders == [{"ResetType": "ForceOff"}]


def test_a_cycle_is_one_order_where_the_bmc_knows_it() -> None:
    machine = Machine()
    with opened(machine) as controller:
        controller.cycle()
    assert machine.orders == [{"ResetType": "ForceRestart"}]


def test_a_cycle_is_off_and_on_where_it_does_not() -> None:
    machine = Machine(knows=("On", "ForceOff"))
    with opened(machine) as controller:
        controller.cycle()
    assert machine.orders == [{"ResetType": "ForceOff"}, {"ResetType": "On"}]


def test_a_cycle_of_a_machine_that_is_off_turns_it_on() -> None:
    machine = Machine(power="Off")
    with opened(machine) as controller:
        controller.cycle()
    assert machine.orders == [{"ResetType": "On"}]


def test_a_power_state_that_does_not_come_is_told_with_the_console() -> None:
    with (
        pytest.raises(BmcStuck, match=r"took the order to power on and says off after 90 s.*ssh admin@bmc07") as caught,
        opened(Machine(power="Off", takes=False), timeout_s=90.0, console="ssh admin@bmc07") as controller,
    ):
        controller.turn_on()
    assert caught.value.host == "gpu07"


def test_a_bmc_that_is_away_while_the_power_changes_is_asked_again() -> None:
    machine = Machine(power="Off", takes=False)
    failing = [True] * 4

    def away(_: Machine, __: str) -> Answer | None:
        if machine.orders and failing:
            failing.pop()
            return refusal(503, "the web server begins")
        machine.power = "On" if machine.orders else "Off"
        return None

    machine.overrides["GET", SYSTEM] = away
    with opened(machine) as controller:
        controller.turn_on()
    assert not failing


def test_an_order_is_refused_in_the_words_of_the_bmc() -> None:
    machine = Machine(power="Off")
    machine.overrides["POST", RESET] = lambda *_: refusal(409, "The chassis\x1b[2J intrusion switch is open")
    with (
        pytest.raises(BmcRefused, match=r"refuses to power on: The chassis \[2J intrusion switch") as caught,
        opened(machine) as controller,
    ):
        controller.turn_on()
    assert str(caught.value).isprintable()
    assert machine.count("POST", RESET) == 1


def test_an_order_whose_answer_is_lost_is_not_given_twice() -> None:
    machine = Machine()

    def lost(_: Machine, __: str) -> Answer:
        raise ConnectionResetError

    machine.overrides["POST", RESET] = lost
    with pytest.raises(BmcUnreachable), opened(machine) as controller:
        controller.cycle()
    assert machine.count("POST", RESET) == 1


# --- what is booted next


def test_the_next_boot_is_from_the_network_once() -> None:
    machine = Machine()
    with opened(machine) as controller:
        controller.boot_once("network")
        assert controller.status().boot_override == "Pxe (Once)"
        controller.boot_from_disk()
        assert controller.status().boot_override == ""
    assert machine.boot["BootSourceOverrideEnabled"] == "Disabled"


def test_where_there_is_no_pxe_the_network_is_uefi_http() -> None:
    machine = Machine(boots=("None", "UefiHttp", "Hdd"))
    with opened(machine) as controller:
        controller.boot_once("network")
    assert machine.boot["BootSourceOverrideTarget"] == "UefiHttp"


def test_a_boot_that_is_not_offered_is_said_to_be_so() -> None:
    with (
        pytest.raises(BmcError, match=r"offers no boot from the network: it offers Hdd, None"),
        opened(Machine(boots=("None", "Hdd"))) as controller,
    ):
        controller.boot_once("network")


def test_a_boot_order_that_is_not_kept_is_noticed() -> None:
    with (
        pytest.raises(BmcStuck, match="took the order to boot from the network once, and does not show it"),
        opened(Machine(takes=False)) as controller,
    ):
        controller.boot_once("network")


def test_an_image_is_inserted_and_taken_out_again() -> None:
    machine = Machine(image="http://old.example/old.iso")
    with opened(machine) as controller:
        controller.boot_once("media", image_url=IMAGE)
        status = controller.status()
        assert (status.media, status.boot_override) == ((IMAGE,), "Cd (Once)")
        controller.boot_from_disk()
    assert machine.image is None
    assert machine.boot["BootSourceOverrideTarget"] == "None"


def test_an_image_is_not_left_in_the_drive_when_it_cannot_be_booted() -> None:
    machine = Machine(boots=("None", "Pxe"))
    with pytest.raises(BmcError, match="offers no boot from the image"), opened(machine) as controller:
        controller.boot_once("media", image_url=IMAGE)
    assert machine.image is None


def test_an_image_that_never_shows_is_noticed() -> None:
    machine = Machine()
    machine.overrides["POST", f"{DRIVE}/Insert"] = lambda *_: redfish.answer(204)
    with pytest.raises(BmcStuck, match="took the image, and says that none is inserted"), opened(machine) as controller:
        controller.boot_once("media", image_url=IMAGE)
    assert machine.boot["BootSourceOverrideEnabled"] == "Disabled"


@pytest.mark.parametrize("url", ["", "install.iso", "ftp://images.example/x.iso"])
def test_an_image_needs_a_url_for_the_web(url: str) -> None:
    with pytest.raises(BmcError, match="its URL is needed"), opened(Machine()) as controller:
        controller.boot_once("media", image_url=url)


def test_a_bmc_without_virtual_media_says_so() -> None:
    with pytest.raises(BmcError, match="has no virtual CD"), opened(Machine(managed=False)) as controller:
        controller.boot_once("media", image_url=IMAGE)


def test_nothing_is_ordered_where_the_disk_is_booted_anyway() -> None:
    machine = Machine()
    with opened(machine) as controller:
        controller.boot_from_disk()
    assert machine.orders == []


# --- status, systems


def test_the_status_is_what_the_bmc_says_made_printable() -> None:
    with opened(Machine(image="https://me:geheim@images.example/x.iso")) as controller:
        status = controller.status()
    assert (status.power, status.manufacturer, status.model) == (Power.ON, "Dell Inc.", "PowerEdge R750xa")
    assert (status.serial, status.bios, status.health) == ("CN7 [31m042", "1.9.2", "Warning")
    assert status.media == ("https://images.example/x.iso",)


def test_of_several_systems_the_inventory_names_one() -> None:
    machine = Machine(systems=("1", "2"))
    assert "has several: it has 1, 2; say which in hostwright_bmc_system" in str(failure(machine))
    assert "has no system '3': it has 1, 2" in str(failure(machine, system="3"))
    for name in ("2", "node2"):
        with opened(machine, system=name) as controller:
            assert controller.power() is Power.ON
    assert "has no system at all" in str(failure(Machine(systems=())))


# --- login


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
def test_a_login_that_is_called_a_bad_request_is_not_sent_in_another_way(answered: Answer, words: str) -> None:
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
        with pytest.raises(BmcError, match="no system at all"):
            opener()
        machine.systems = ("1",)
        opener().close()


@pytest.mark.parametrize("place", ["https://bmc//[x", "//[x", "http://[::1"])
def test_a_session_whose_address_is_none_is_left_to_end_by_itself(place: str) -> None:
    machine = Machine()
    machine.overrides["POST", SESSIONS] = lambda *_: answer(201, {}, X_Auth_Token=TOKEN, Location=place)
    with opened(machine) as controller:
        assert controller.power() is Power.ON


def test_a_certificate_in_the_home_of_nobody_is_a_file_that_is_not_there() -> None:
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
    with pytest.raises(BmcDenied, match=r"may not do that.*role Operator"), opened(machine) as controller:
        controller.cycle()


# --- BMCs that are hard to live with


def test_a_port_without_a_server() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"https://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(BmcUnreachable, match="refuses the connection"):
            open_bmc(bmc(url), Time().clock())


def test_a_name_that_nobody_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(BmcUnreachable, match=r"name of the BMC at https://bmc07 cannot be resolved: Name or service"):
        open_bmc(bmc("https://bmc07"), Time().clock())


@pytest.mark.parametrize(("number", "tries"), [(errno.EHOSTUNREACH, 1), (errno.ECONNRESET, 3)])
def test_only_a_lost_connection_is_tried_again(monkeypatch: pytest.MonkeyPatch, number: int, tries: int) -> None:
    tried = []

    def lost(*_: object, **__: object) -> None:
        tried.append(1)
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("urllib3.util.connection.create_connection", lost)
    with pytest.raises(BmcUnreachable, match=f"no answer from the BMC at https://bmc07: {os.strerror(number)}"):
        open_bmc(bmc("https://bmc07"), Time().clock())
    assert len(tried) == tries


def test_a_server_that_does_not_speak_tls() -> None:
    with redfish.redfish(Machine()) as url, pytest.raises(BmcUnreachable, match="no TLS connection"):
        open_bmc(bmc(url.replace("http:", "https:")), Time().clock())


def test_a_bmc_that_is_busy_for_a_moment_is_asked_again() -> None:
    machine, busy = Machine(), [503, 500]

    def answers(_: Machine, __: str) -> Answer | None:
        return refusal(busy.pop(), "SYS518") if busy else None

    machine.overrides["GET", SYSTEM] = answers
    with opened(machine) as controller:
        assert controller.power() is Power.ON
    assert not busy


def test_a_bmc_that_stays_busy_is_given_up() -> None:
    machine = Machine()
    machine.overrides["GET", SYSTEM] = lambda *_: refusal(503, "Try later")
    assert "refuses to show its systems: Try later" in str(failure(machine))
    assert machine.count("GET", SYSTEM) == 3


@pytest.mark.parametrize("path", ["/redfish/v1/", "/redfish/v1/Systems", SYSTEM])
def test_a_bmc_that_hangs_is_left_behind(path: str) -> None:
    end = threading.Event()
    machine = Machine()

    def hang(_: Machine, __: str) -> None:
        end.wait(60)

    machine.overrides["GET", path] = hang
    try:
        with redfish.redfish(machine) as url, pytest.raises(BmcUnreachable, match="does not answer in time"):
            open_bmc(bmc(url, timeout_s=0.4))
    finally:
        end.set()


@contextmanager
def raw(content: Iterator[bytes]) -> Iterator[str]:
    """A server that sends this to the first who asks, whatever that is; its URL."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                for piece in content:
                    connection.sendall(piece)

        thread = threading.Thread(target=_quietly, args=(serve,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def _quietly(work: Callable[[], None]) -> None:
    try:
        work()
    except OSError:
        return  # whom it serves has gone


def test_a_byte_now_and_then_is_no_answer() -> None:
    end = threading.Event()

    def drip() -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nX-A: "
        while not end.wait(0.05):
            yield b"a"

    try:
        with raw(drip()) as url, pytest.raises(BmcUnreachable, match="does not answer in time"):
            open_bmc(bmc(url, timeout_s=0.5))
    finally:
        end.set()


def test_more_than_is_good_is_not_read() -> None:
    machine = Machine()
    sent = redfish.answer(200, {"Id": "1", "x": "a" * (5 << 20)})
    machine.overrides["GET", SYSTEM] = lambda *_: sent
    assert "sends more than 4 MiB" in str(failure(machine))


@pytest.mark.parametrize(
    "content", [b"", b"<html>login</html>", b"[1, 2]", b'{"Id": 1, "Boot": "x"}', b"null", b"[" * 100_000, b"\xff\xfe{"]
)
@pytest.mark.parametrize("path", ["/redfish/v1/", "/redfish/v1/Systems", SYSTEM])
def test_an_answer_that_is_not_redfish(path: str, content: bytes) -> None:
    machine = Machine()
    machine.overrides["GET", path] = lambda *_: (200, {}, content)
    error = failure(machine)
    assert str(error).startswith("gpu07: the BMC at http://127.0.0.1:")
    assert str(error).isprintable()


@pytest.mark.parametrize("content", [b"", b"oops", b"[]", b'{"error": []}', b'{"error": {"@Message.ExtendedInfo": 1}}'])
def test_an_error_that_is_not_redfish(content: bytes) -> None:
    machine = Machine()
    machine.overrides["POST", RESET] = lambda *_: (400, {}, content)
    with pytest.raises(BmcError, match="the BMC at"), opened(machine) as controller:
        controller.turn_off()


def test_a_redirection_on_the_server_itself_is_followed() -> None:
    machine = Machine()
    machine.overrides["GET", "/redfish/v1/Systems"] = lambda *_: (308, {"Location": "/redfish/v1/Systems/"}, b"")
    machine.overrides["GET", "/redfish/v1/Systems/"] = lambda *_: redfish._systems(machine)
    with opened(machine) as controller:
        assert controller.power() is Power.ON


def test_redirections_in_a_circle_come_to_an_end() -> None:
    machine = Machine()
    machine.overrides["GET", SYSTEM] = lambda *_: (302, {"Location": SYSTEM}, b"")
    assert "sends us in a circle" in str(failure(machine))


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_nobody_else_is_shown_the_token_or_the_password(method: str) -> None:
    machine, other = Machine(), Machine()
    with redfish.redfish(other) as elsewhere:
        path = SYSTEM if method == "GET" else SESSIONS
        machine.overrides[method, path] = lambda *_: (307, {"Location": elsewhere + path}, b"")
        assert f"sends us on to {elsewhere}" in str(failure(machine))
        del machine.overrides[method, path]
        machine.base = elsewhere
        assert "leads to another server" in str(failure(machine))
    assert other.asked == []


def test_proxies_and_netrc_of_the_operator_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with opened(Machine()) as controller:
        assert controller.power() is Power.ON


# --- secrets


def test_neither_password_nor_token_is_ever_repeated(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    machine = Machine()
    echo = f"user {PASSWORD} with {TOKEN} may not do that"
    machine.overrides["POST", RESET] = lambda *_: refusal(400, echo)
    told: list[str] = []
    with redfish.redfish(machine) as url:
        settings = bmc(url)
        with open_bmc(settings, Time().clock()) as controller:
            for name in ("sushy", "urllib3"):
                caplog.set_level(logging.DEBUG, logger=name)  # as somebody may who looks for a mistake
            told += [repr(settings), repr(controller), repr(vars(controller)), repr(vars(controller._link))]
            with pytest.raises(BmcRefused, match=r"user \*\*\* with \*\*\* may not do that") as refused:
                controller.turn_off()
        machine.overrides["POST", SESSIONS] = lambda *_: refusal(401, echo)
        with pytest.raises(BmcDenied) as denied:
            open_bmc(settings, Time().clock())
    with pytest.raises(BmcUnreachable) as gone:
        open_bmc(settings, Time().clock())
    for caught in (refused, denied, gone):
        told += [repr(caught.value), "".join(traceback.format_exception(caught.value))]
    gc.collect()  # sushy closes what it holds at its end, and may have a word on that
    for text in (*told, caplog.text):
        assert PASSWORD not in text
        assert TOKEN not in text


def test_what_a_bmc_sends_does_not_get_into_the_log(caplog: pytest.LogCaptureFixture, capfd: Any) -> None:
    machine = Machine()
    machine.overrides["GET", SYSTEM] = lambda *_: (200, {}, b"\x1b[2J not JSON")
    failure(machine)
    assert caplog.text == ""
    assert capfd.readouterr() == ("", "")
