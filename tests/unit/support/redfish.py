"""A BMC for tests: a Redfish server over HTTP on this machine that can imitate difficult BMCs."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USER, PASSWORD, TOKEN = "admin", "Tr0ub4dor&3-pass", "t0ken-of-the-session"
SYSTEM = "/redfish/v1/Systems/1"
SESSIONS = "/redfish/v1/SessionService/Sessions"
RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"
DRIVE = "/redfish/v1/Managers/1/VirtualMedia/CD"

Answer = tuple[int, dict[str, str], bytes]
#: a test's replacement of the response for a path; ``None``: the server's own response
Override = Callable[["Machine", str], Answer | None]


@dataclass
class Machine:
    """The machine behind the BMC, and the requests that the BMC received; tests may change it."""

    power: str = "On"
    knows: tuple[str, ...] = ("On", "ForceOff", "GracefulShutdown", "ForceRestart")
    boots: tuple[str, ...] = ("None", "Pxe", "Cd", "Hdd", "UefiHttp")
    boot: dict[str, str] = field(
        default_factory=lambda: {"BootSourceOverrideEnabled": "Disabled", "BootSourceOverrideTarget": "None"}
    )
    image: str | None = None
    takes: bool = True  #: whether commands have an effect
    sessions: bool = True
    session_alive: bool = True
    systems: tuple[str, ...] = ("1",)
    managed: bool = True
    base: str = ""  #: prefix of its links
    overrides: dict[tuple[str, str], Override] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    orders: list[Any] = field(default_factory=list)
    denied: int = 0  #: number of failed logins
    headers: list[dict[str, str]] = field(default_factory=list)

    def count(self, method: str, path: str) -> int:
        """The number of such requests."""
        return self.asked.count((method, path))


def answer(status: int, document: Any = None, **headers: str) -> Answer:
    """A response with a JSON body."""
    body = b"" if document is None else json.dumps(document).encode()
    return status, {name.replace("_", "-"): value for name, value in headers.items()}, body


def refusal(status: int, message: str) -> Answer:
    """A Redfish error response."""
    extended = [{"MessageId": "Base.1.8.GeneralError", "Message": message}]
    return answer(status, {"error": {"code": "Base.1.8.GeneralError", "@Message.ExtendedInfo": extended}})


def _link(machine: Machine, path: str) -> dict[str, str]:
    return {"@odata.id": machine.base + path}


def _root(machine: Machine) -> Answer:
    document: dict[str, Any] = {"Id": "Root", "Name": "Root", "Systems": _link(machine, "/redfish/v1/Systems")}
    if machine.sessions:
        document["Links"] = {"Sessions": _link(machine, SESSIONS)}
    return answer(200, document)


def _systems(machine: Machine) -> Answer:
    members = [_link(machine, f"/redfish/v1/Systems/{name}") for name in machine.systems]
    return answer(200, {"Name": "Systems", "Members": members, "Members@odata.count": len(members)})


def _system(machine: Machine, path: str) -> Answer:
    name = path.rpartition("/")[2]
    document = {
        "Id": name,
        "Name": f"node{name}",
        "PowerState": machine.power,
        "Manufacturer": "Dell Inc.",
        "Model": "PowerEdge R750xa",
        "SerialNumber": "CN7\x1b[31m042",
        "BiosVersion": "1.9.2",
        "Status": {"Health": "OK", "HealthRollup": "Warning"},
        "Boot": {**machine.boot, "BootSourceOverrideTarget@Redfish.AllowableValues": list(machine.boots)},
        "Links": {"ManagedBy": [_link(machine, "/redfish/v1/Managers/1")] if machine.managed else []},
        "Actions": {"#ComputerSystem.Reset": {"target": RESET, "ResetType@Redfish.AllowableValues": machine.knows}},
    }
    return answer(200, document)


def _drive(machine: Machine) -> Answer:
    actions = {f"#VirtualMedia.{name}Media": {"target": f"{DRIVE}/{name}"} for name in ("Insert", "Eject")}
    document = {"Id": "CD", "Name": "Virtual CD", "MediaTypes": ["CD", "DVD"], "Actions": actions}
    return answer(200, {**document, "Image": machine.image, "Inserted": machine.image is not None})


def _collection(machine: Machine, *paths: str) -> Answer:
    return answer(200, {"Name": "C", "Members": [_link(machine, path) for path in paths]})


def _get(machine: Machine, path: str) -> Answer:
    if path in ("/redfish/v1/", "/redfish/v1"):
        return _root(machine)
    if path == "/redfish/v1/Systems":
        return _systems(machine)
    if path.startswith("/redfish/v1/Systems/") and path.rpartition("/")[2] in machine.systems:
        return _system(machine, path)
    if path == "/redfish/v1/Managers/1":
        return answer(200, {"Id": "1", "Name": "M", "VirtualMedia": _link(machine, path + "/VirtualMedia")})
    if path == "/redfish/v1/Managers/1/VirtualMedia":
        return _collection(machine, DRIVE)
    return _drive(machine) if path == DRIVE else refusal(404, "no such resource")


_AFTER = {"On": "On", "ForceOff": "Off", "GracefulShutdown": "Off", "ForceRestart": "On"}


def _change(machine: Machine, path: str, body: Any) -> Answer:
    machine.orders.append(body)
    if path == RESET and machine.takes:
        machine.power = _AFTER[body["ResetType"]]
    elif path == SYSTEM and machine.takes:
        machine.boot |= {name: value for name, value in body["Boot"].items() if value is not None}
    elif path.startswith(DRIVE) and machine.takes:
        machine.image = body["Image"] if path.endswith("Insert") else None
    return answer(204)


def _respond(machine: Machine, method: str, path: str, headers: dict[str, str], body: Any) -> Answer:
    override = machine.overrides.get((method, path))
    found = override(machine, path) if override else None
    if found is not None:
        return found
    if (method, path) == ("POST", SESSIONS):
        right = body == {"UserName": USER, "Password": PASSWORD}
        machine.session_alive = machine.session_alive or right
        location = "https://some-name.invalid" + SESSIONS + "/7"
        machine.denied += not right
        return answer(201, {"Id": "7"}, X_Auth_Token=TOKEN, Location=location) if right else refusal(401, "no")
    basic = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    known = headers.get("X-Auth-Token") == TOKEN and machine.session_alive
    if not (known or headers.get("Authorization") == basic or path.rstrip("/") == "/redfish/v1"):
        machine.denied += "Authorization" in headers
        return refusal(401, "who are you?")
    if method == "DELETE":
        return answer(204)
    return _get(machine, path) if method == "GET" else _change(machine, path, body)


@contextmanager
def redfish(machine: Machine, context: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serve a machine's BMC; yield its URL."""

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            machine.asked.append((self.command, self.path))
            machine.headers.append(dict(self.headers))
            status, headers, content = _respond(machine, self.command, self.path, dict(self.headers), body)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815 - http.server's names

        def log_message(self, format: str, *args: object) -> None:
            """Nobody reads it."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """A client that goes away is what some tests are about."""

    server = Server(("127.0.0.1", 0), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"{'https' if context else 'http'}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
