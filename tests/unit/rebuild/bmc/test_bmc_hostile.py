"""BMCs that are off, slow, wrong or hostile, over real HTTP; and that nobody else sees the secrets."""

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
from typing import Any

import pytest

from hostwright.rebuild.bmc import BmcDenied, BmcError, BmcRefused, BmcUnreachable, Power, open_bmc
from tests.unit.support import redfish
from tests.unit.support.bmcs import Time, bmc, failure, opened
from tests.unit.support.redfish import PASSWORD, RESET, SESSIONS, SYSTEM, TOKEN, Answer, Machine, refusal


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
    assert "sent more than 4 MiB" in str(failure(machine))


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
    assert "redirects in a circle" in str(failure(machine))


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_nobody_else_is_shown_the_token_or_the_password(method: str) -> None:
    machine, other = Machine(), Machine()
    with redfish.redfish(other) as elsewhere:
        path = SYSTEM if method == "GET" else SESSIONS
        machine.overrides[method, path] = lambda *_: (307, {"Location": elsewhere + path}, b"")
        assert f"redirects to {elsewhere}" in str(failure(machine))
        del machine.overrides[method, path]
        machine.base = elsewhere
        assert "returned a link that leads to another server" in str(failure(machine))
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
