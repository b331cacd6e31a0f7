"""Program ``python -m lab.bmc LAB``: the Redfish endpoint of a lab. `lab.bmc.serve` starts the program."""

from __future__ import annotations

import socket
import ssl
import sys
from typing import Any

from sushy_tools.emulator import main as emulator
from werkzeug.serving import WSGIRequestHandler, make_server

from lab.bmc import credentials
from lab.bmc.access import SERVICE, SESSIONS, Door
from lab.bmc.boot import system_view
from lab.bmc.power import Hosts
from lab.bmc.systems import Drives, Systems
from lab.config import BMC_PORT, Lab
from lab.records import find_lab

_MOST_BYTES = 1 << 16
_IDLE_S = 30.0  # maximum number of seconds that an idle client can occupy a thread


class _Handler(WSGIRequestHandler):
    timeout = _IDLE_S  # this time limit also applies to the TLS handshake

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:  # noqa: ARG002 (werkzeug's signature)
        """Escape the client's input in the log line, and use no colours."""
        self.log("info", "%r %s", self.requestline[:200], int(code) if str(code).isdigit() else code)


def build(hosts: Hosts) -> Any:
    """Return the emulator's application with ``hosts`` as systems, without access control.

    The emulator has no option for custom drivers, so properties of the emulator's class are replaced.
    """
    systems = Systems(hosts)
    drives = Drives(systems)
    application = emulator.app
    application.config.update(SUSHY_EMULATOR_FEATURE_SET="vmedia", MAX_CONTENT_LENGTH=_MOST_BYTES)
    emulator.Application.systems = property(lambda _: systems)
    emulator.Application.vmedia = property(lambda _: drives)
    emulator.Application.indicators = property(lambda _: _NoLight())
    views = application.view_functions
    views["system_resource"] = system_view(emulator.system_resource, systems)
    views["root_resource"] = _root
    return application


class _NoLight:
    @staticmethod
    def get_indicator_state(_identity: str) -> None:
        """Return None: the host has no indicator."""


def _root() -> Any:
    document = emulator.json.loads(emulator.root_resource().get_data())
    links = {"Sessions": {"@odata.id": SESSIONS}}
    return emulator.flask.jsonify({**document, "SessionService": {"@odata.id": SERVICE}, "Links": links})


def serve(lab: Lab) -> None:
    """Serve the lab's BMCs on the lab's bridge until the process ends."""
    door = Door(build(Hosts(lab)), credentials.Credentials.read(lab))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(credentials.certificate(lab))
    server = make_server(str(lab.gateway.ip), BMC_PORT, door, threaded=True, request_handler=_Handler)
    # The TLS handshake happens at the first read in the connection's own thread, so an idle client blocks no other
    # client.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.ssl_context = context
    server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    print(f"bmc: serves {lab.bmc_url}", flush=True)
    server.serve_forever()


def main(name: str) -> int:
    """Serve the BMCs of the lab ``name``; return the exit status."""
    lab = find_lab(name)
    if lab is None or not lab.bmc.is_dir():
        print(f"bmc: there is no lab {name} with BMCs; create it with `python -m lab up --bmc`", file=sys.stderr)
        return 1
    serve(lab)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
