"""``python -m lab.bmc LAB``: the lab's Redfish endpoint. Started by `lab.bmc.serve`, not by hand."""

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
_IDLE_S = 30.0  # a client that connects and sends nothing occupies a thread for this long


class _Handler(WSGIRequestHandler):
    timeout = _IDLE_S  # the handshake is a part of it: see `serve`

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:  # noqa: ARG002 (werkzeug's signature)
        """Write one line without werkzeug's colours, and without anything that a client could inject."""
        self.log("info", "%r %s", self.requestline[:200], int(code) if str(code).isdigit() else code)


def build(hosts: Hosts) -> Any:
    """Return the emulator's application with the lab's hosts as its systems, without access control.

    The emulator has one application per process, and no option for custom drivers: ours replace the properties that
    would create its own.
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
    """Hosts without an indicator."""

    @staticmethod
    def get_indicator_state(_identity: str) -> None:
        """Report that there is none."""


def _root() -> Any:
    """Return the service root, which names the sessions."""
    document = emulator.json.loads(emulator.root_resource().get_data())
    links = {"Sessions": {"@odata.id": SESSIONS}}
    return emulator.flask.jsonify({**document, "SessionService": {"@odata.id": SERVICE}, "Links": links})


def serve(lab: Lab) -> None:
    """Serve the lab's BMCs on its bridge until the process is ended."""
    door = Door(build(Hosts(lab)), credentials.Credentials.read(lab))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(credentials.certificate(lab))
    server = make_server(str(lab.gateway.ip), BMC_PORT, door, threaded=True, request_handler=_Handler)
    # The TLS handshake happens at the first read, in the connection's own thread: a client that connects and stays
    # silent does not block others.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.ssl_context = context
    server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    print(f"bmc: serves {lab.bmc_url}", flush=True)
    server.serve_forever()


def main(name: str) -> int:
    """Serve the BMCs of the lab ``name``; return the exit status."""
    lab = find_lab(name)
    if lab is None or not lab.bmc.is_dir():
        print(f"bmc: there is no lab {name} with BMCs; `python -m lab up --bmc` makes one", file=sys.stderr)
        return 1
    serve(lab)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
