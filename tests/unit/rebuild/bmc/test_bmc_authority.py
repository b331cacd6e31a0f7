"""What a BMC may lead us to: paths on itself. The forms are those by which URL parsers were led astray before.

``B`` stands for the BMC's own name and port, ``E`` for another server's, which must never be asked anything.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable

import pytest

from hostwright.rebuild.bmc import BmcError, Power, open_bmc
from hostwright.rebuild.bmc.trust import path_on
from tests.unit.support import redfish
from tests.unit.support.bmcs import Time, bmc, failure, opened
from tests.unit.support.redfish import DRIVE, PASSWORD, RESET, SESSIONS, SYSTEM, TOKEN, Answer, Machine

#: Never a path on the BMC. Sources: Tsai's talk of 2017 on URL parsers, Claroty's and Snyk's paper of 2022, the CVEs of
#: curl, urllib3, requests and Python's urllib.parse, WHATWG's URL standard, lists of open redirects.
ASTRAY = (
    "http://E/redfish/v1",
    "//E/redfish/v1",
    "///E/x",
    "////E/x",
    "http:E/x",
    "http:/E/x",
    "http:///E/x",
    "http:\\\\E/x",
    "\\\\E/x",
    "/\\E/x",
    "\\/E/x",
    "\\E",
    "http://E\\@B/",
    "http://B\\@E/",
    "http://B\\.E/",
    "http://E#@B/",
    "http://E?@B/",
    "http://E/@B/",
    "http://E;@B/",
    "http://B@E/",
    "http://user:pw@B/",
    "http://user@E@B/",
    "http://B:pw@E/",
    "http://B&@E# @B/",
    "http://foo@E:80@B/",
    "http://foo@127.0.0.1 @E/",
    "http://E\t@B/",
    "http://E\n@B/",
    "http://E\r\n@B/",
    "http://E\0@B/",
    "http://E%00@B/",
    "http://E%2f@B/",
    "http://E%5c@B/",
    "http://E%23@B/",
    "http://B%2fE/",
    "http://B%40E/",
    "http://B.E/",
    "http://B:80:E/",
    "http://[B]@E/",
    "http://[::1]@E/",
    "http://[E/",
    "http://E]/",
    "http://0x7f000001/",
    "http://2130706433/",
    "http://127.1/",
    "http://017700000001/",
    "http://localhost/",
    "http://127.0.0.1/",
    "http://127.0.0.1:9/",
    "http://B:9/",
    "http://B0/",
    "http://B:/",
    "https://B/redfish/v1",
    "HTTPS://B/",
    "ftp://B/",
    "file:///etc/passwd",
    "javascript:1",
    "data:,x",
    "ws://B/",
    "jar:http://B/",
    "http://①②⑦.⓪.⓪.①/",
    "http://127。0。0。1/",
    "http://127.0.0.1／E/",
    "http://evil.c℀.E/",
    "http://xn--evil-/",
    "http://ёvil/",
    "/redfish/v1／E",
    "/redfish/v1/\u200b",
    "/\t/E/x",
    "/\n/E/x",
    "/\r/E",
    "\t//E/x",
    " //E/x",
    "\n/redfish/v1",
    " /redfish/v1",
    "/redfish/v1 ",
    "/redfish/v1\r\nX-A: b",
    "/redfish/v1%0d%0aX-A:%20b",
    "/redfish/v1%00",
    "/redfish/v1/../../x",
    "/redfish/v1/..",
    "/..//E/x",
    "/.//E/x",
    "/redfish/./v1",
    "/%2e%2e/x",
    "/redfish/%2E./x",
    "/..%2fx",
    "/%2f%2fE/x",
    "/redfish%2f..%2f..%2fx",
    "/..%5cx",
    "/%5cE/x",
    "/redfish\\..\\x",
    "/..;/manager",
    "/redfish/v1/%",
    "/redfish/v1/%zz",
    "/redfish/v1/%2",
    "redfish/v1/Systems",
    "Systems/1",
    "./Systems",
    "../Systems",
    "?a=b",
    "#/Systems",
    "",
    "*",
    ".",
    "/redfish/v1?a=\\\\E",
    "/redfish/v1?a=\n",
    "/redfish/v1/<x>",
    '/redfish/v1/"x"',
    "/redfish/v1/{x}",
    "/redfish/v1/x|y",
    "/redfish/v1/x^y",
    "/redfish/v1/`x`",
    "/" + "a" * 5000,
)
#: What BMCs do say, and the path that is taken from it
PATHS = (
    ("/redfish/v1/Systems/1", "/redfish/v1/Systems/1"),
    ("/redfish/v1/", "/redfish/v1/"),
    ("/redfish/v1/Systems/System.Embedded.1", "/redfish/v1/Systems/System.Embedded.1"),
    ("/redfish/v1/Systems/437XR1138R2", "/redfish/v1/Systems/437XR1138R2"),
    ("/redfish/v1/Systems/Self", "/redfish/v1/Systems/Self"),
    ("/redfish/v1/Managers/iDRAC.Embedded.1/VirtualMedia/CD", "/redfish/v1/Managers/iDRAC.Embedded.1/VirtualMedia/CD"),
    ("/redfish/v1/Chassis/1/Power#/PowerSupplies/0", "/redfish/v1/Chassis/1/Power"),
    ("/redfish/v1/Systems?$skip=50&$top=50", "/redfish/v1/Systems?$skip=50&$top=50"),
    ("/redfish/v1/Systems/Disk.Bay.0:Enclosure.Internal.0-1", "/redfish/v1/Systems/Disk.Bay.0:Enclosure.Internal.0-1"),
    ("/redfish/v1/Systems/a%20b", "/redfish/v1/Systems/a%20b"),
    ("/redfish/v1/x(1)/y,z;k=v/@z/~a/!b/'c'/*d/+e/=f/&g/$h", "/redfish/v1/x(1)/y,z;k=v/@z/~a/!b/'c'/*d/+e/=f/&g/$h"),
    ("/redfish//v1", "/redfish//v1"),
    ("/redfish/v1/...", "/redfish/v1/..."),
    ("/redfish/v1/.hidden", "/redfish/v1/.hidden"),
    ("http://B/redfish/v1/Systems", "/redfish/v1/Systems"),
    ("HTTP://B/redfish/v1/Systems", "/redfish/v1/Systems"),
    ("http://B", "/"),
    ("http://B/?a=//E", "/?a=//E"),
    ("/redfish/v1/x?next=http://E/", "/redfish/v1/x?next=http://E/"),
)
_OTHERS_LOCATION = ("https://some-name.invalid/redfish/v1/S/7", "http://E/redfish/v1/S/7", "https://B/redfish/v1/S/7")


def named(text: str, own: str, other: str) -> str:
    """The text with the two servers' names in it: both stand alone, as ``B`` in ``B@`` does."""
    return re.sub(r"(?<![A-Za-z0-9_])[BE](?![A-Za-z])", lambda match: own if match[0] == "B" else other, text)


@pytest.mark.parametrize("text", ASTRAY)
def test_nothing_but_a_path_is_taken(text: str) -> None:
    assert path_on("http://10.0.0.7:8000", named(text, "10.0.0.7:8000", "evil.example:80")) == ""


@pytest.mark.parametrize(("text", "path"), PATHS)
def test_what_bmcs_say_is_understood(text: str, path: str) -> None:
    own, other = "10.0.0.7:8000", "evil.example:80"
    assert path_on(f"http://{own}", named(text, own, other)) == named(path, own, other)


@pytest.mark.parametrize("text", [None, 7, True, [], {}, ["/redfish/v1"], b"/redfish/v1"])
def test_what_is_not_text_is_no_path(text: object) -> None:
    assert path_on("http://10.0.0.7", text) == ""


@pytest.mark.parametrize(
    ("url", "text", "path"),
    [
        ("https://bmc07", "https://bmc07:443/a", "/a"),
        ("https://bmc07:443", "https://BMC07/a", "/a"),
        ("http://bmc07", "http://bmc07:80/a", "/a"),
        ("https://bmc07", "http://bmc07:443/a", ""),
        ("https://bmc07", "https://bmc07:80/a", ""),
        ("https://bmc07", "https://bmc07.example.org/a", ""),
        ("https://bmc07", "https://bmc07./a", ""),
        ("https://[fd00::7]:8443", "https://[fd00::7]:8443/a", "/a"),
        ("https://[fd00::7]", "https://[fd00::7%25eth0]/a", ""),
        ("https://[fd00::7]", "https://[fd00::8]/a", ""),
        ("https://[fd00::7]", "https://fd00::7/a", ""),
    ],
)
def test_its_own_name_is_its_address_in_the_inventory(url: str, text: str, path: str) -> None:
    assert path_on(url, text) == path


@pytest.mark.parametrize("text", _OTHERS_LOCATION)
def test_a_session_is_ended_on_the_bmc_whatever_name_it_gives_itself(text: str) -> None:
    machine, other = Machine(), Machine()
    session = (201, {"X-Auth-Token": TOKEN, "Location": ""}, b'{"Id": "7"}')
    with redfish.redfish(other) as elsewhere, redfish.redfish(machine) as url:
        session[1]["Location"] = named(text, url.removeprefix("http://"), elsewhere.removeprefix("http://"))
        machine.overrides["POST", SESSIONS] = lambda *_: session
        open_bmc(bmc(url), Time().clock()).close()
    assert machine.asked[-1] == ("DELETE", "/redfish/v1/S/7")
    assert other.asked == []


def _systems(link: str) -> Answer:
    return redfish.answer(200, {"Name": "Systems", "Members": [{"@odata.id": link}]})


def _root(link: str) -> Answer:
    root = {"Id": "Root", "Name": "Root", "Systems": {"@odata.id": "/redfish/v1/Systems"}}
    return redfish.answer(200, {**root, "Links": {"Sessions": {"@odata.id": link}}})


def _reset(link: str) -> Answer:
    status, headers, content = redfish._system(Machine(), SYSTEM)
    system = json.loads(content)
    system["Actions"]["#ComputerSystem.Reset"]["target"] = link
    return status, headers, json.dumps(system).encode()


def _drive(link: str) -> Answer:
    status, headers, content = redfish._drive(Machine(image="http://x/y.iso"))
    drive = json.loads(content)
    drive["Actions"]["#VirtualMedia.EjectMedia"]["target"] = link
    return status, headers, json.dumps(drive).encode()


def _moved(link: str) -> Answer:
    return 307, {"Location": link}, b""


#: Where a BMC gives links: the collection of sessions (to which the password goes), a member, an action, a redirection
_PLACES: dict[str, tuple[str, str, Callable[[str], Answer]]] = {
    "sessions": ("GET", "/redfish/v1/", _root),
    "member": ("GET", "/redfish/v1/Systems", _systems),
    "action": ("GET", SYSTEM, _reset),
    "media": ("GET", DRIVE, _drive),
    "redirected": ("GET", SYSTEM, _moved),
    "redirected login": ("POST", SESSIONS, _moved),
    "redirected order": ("POST", RESET, _moved),
}
_ASKED = {
    "/redfish/v1/",
    "/redfish/v1/Systems",
    SYSTEM,
    SESSIONS,
    SESSIONS + "/7",
    RESET,
    DRIVE,
    "/redfish/v1/Managers/1",
    "/redfish/v1/Managers/1/VirtualMedia",
}
#: What HTTP itself would not carry in a header
_HEADER = re.compile(r"[\x21-\x7e][\x20-\x7e]*")


@pytest.mark.parametrize("place", _PLACES)
def test_nobody_else_is_asked_wherever_the_link_stands(place: str) -> None:
    """Every form at every place of a real server, and at the end of each: who was asked, and with what."""
    method, path, answer = _PLACES[place]
    machine, other, own_paths = Machine(), Machine(), 0
    with redfish.redfish(other) as elsewhere, redfish.redfish(machine) as url:
        for text in ASTRAY:
            link = named(text, url.removeprefix("http://"), elsewhere.removeprefix("http://"))
            if "redirected" in place and not _HEADER.fullmatch(link):
                continue
            machine.power = "On"
            machine.overrides = {(method, path): lambda *_, link=link: answer(link)}  # type: ignore[misc]
            try:
                with open_bmc(bmc(url), Time().clock()) as controller:
                    controller.status()
                    controller.turn_off()
                    controller.boot_from_disk()
                own_paths += 1  # an empty link to sessions is none: such a BMC is used without them
            except BmcError as error:
                assert str(error).isprintable()
    assert other.asked == []
    assert own_paths <= (place == "sessions")
    assert {asked for _, asked in machine.asked} <= _ASKED


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirected_question_goes_to_the_same_address(status: int) -> None:
    machine = Machine()
    machine.overrides["GET", "/redfish/v1/Systems"] = lambda *_: (status, {"Location": "/redfish/v1/Systems/"}, b"")
    machine.overrides["GET", "/redfish/v1/Systems/"] = lambda *_: redfish._systems(machine)
    with opened(machine) as controller:
        assert controller.power() is Power.ON


@pytest.mark.parametrize("status", [301, 307, 308])
def test_a_login_that_wants_a_slash_gets_it(status: int) -> None:
    """BMCs of Supermicro's older boards send the login from one spelling of their own path to the other."""
    machine = Machine()
    machine.overrides["POST", SESSIONS] = lambda *_: (status, {"Location": SESSIONS + "/"}, b"")
    machine.overrides["POST", SESSIONS + "/"] = lambda *_: redfish.answer(
        201, {}, X_Auth_Token=TOKEN, Location=SESSIONS
    )
    with opened(machine) as controller:
        assert controller.power() is Power.ON
    assert machine.count("POST", SESSIONS + "/") == 1


@pytest.mark.parametrize("status", [302, 303])
def test_an_order_does_not_become_a_question(status: int) -> None:
    machine = Machine()
    machine.overrides["POST", SESSIONS] = lambda *_: (status, {"Location": "/redfish/v1/Systems"}, b"")
    assert "redirects to /redfish/v1/Systems" in str(failure(machine))


_OPEN = """
import sys
from hostwright.common.secret import Secret
from hostwright.rebuild.bmc import Bmc, open_bmc
user, password, url = sys.argv[1:]
with open_bmc(Bmc("gpu07", url, user, Secret(password))) as controller:
    print(controller.power())
"""
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


@pytest.mark.parametrize("scheme", ["http", "socks5"])
def test_no_proxy_of_the_environment_is_shown_anything(scheme: str, tmp_path: object) -> None:
    """In a process of its own, because libraries read the environment when they are loaded."""
    machine, proxy = Machine(), Machine()
    with redfish.redfish(proxy) as elsewhere, redfish.redfish(machine) as url:
        hostile = {
            **os.environ,
            **{name: elsewhere.replace("http:", f"{scheme}:") for name in _PROXIES},
            "no_proxy": "",
            "NO_PROXY": "",
            "NETRC": str(tmp_path),
            "REQUESTS_CA_BUNDLE": "/nonexistent",
            "CURL_CA_BUNDLE": "/nonexistent",
        }
        ran = subprocess.run(
            [sys.executable, "-c", _OPEN, redfish.USER, PASSWORD, url],
            env=hostile,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert ran.stdout.strip() == "on", ran.stderr
    assert proxy.asked == []
