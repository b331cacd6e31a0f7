"""The REST interface: what each request of a path answers."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol
from urllib.parse import unquote

from lab.serving.status import Failed, invalid
from lab.serving.tensors import Request, Tensor, error_text, parse, read_inputs, signature_of, write_outputs
from lab.serving.versions import Versions

STAND_IN = "stand-in for TensorFlow Serving (Hostwright's lab)"
_PREDICTION = re.compile(
    r"/v1/models/([^/:]+)(?:(?:/versions/(\d+))|(?:/labels/([^/:]+)))?:(classify|regress|predict)", re.I | re.A
)
_STATUS = re.compile(
    r"/v1/models(?:/([^/:]+))?(?:(?:/versions/(\d+))|(?:/labels/([^/:]+)))?(?:/(metadata))?", re.I | re.A
)
_DEFAULT = "serving_default"


class Servable(Protocol):
    """A loaded version: its signatures, and what computes."""

    def inputs(self, signature: str) -> Mapping[str, str] | None:
        """The types of the signature's inputs by name; ``None`` where there is no such signature."""

    def predict(self, signature: str, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The outputs. Raises ``Failed``."""

    def metadata(self) -> dict[str, Any]:
        """The signatures as JSON has them."""


def answer(versions: Versions, method: str, path: str, body: bytes) -> tuple[int, bytes]:
    """The HTTP status and the body of the answer to a request."""
    try:
        return 200, _answer(versions, method, path, body)
    except Failed as error:
        return error.http, error_text(error.message)


def _answer(versions: Versions, method: str, path: str, body: bytes) -> bytes:
    pattern = {"POST": _PREDICTION, "GET": _STATUS}.get(method)
    match = pattern.fullmatch(path) if pattern else None
    if match is None:
        raise invalid("Malformed request: ", method, " ", path)
    name, digits, label, what = match.groups()
    if digits and int(digits) >= 2**63:
        raise invalid("Failed to convert version: ", digits, " to numeric.")
    number = int(digits) if digits else None
    name, label = unquote(name or ""), unquote(label) if label else None
    if method == "POST":
        if what not in {"classify", "regress", "predict"}:  # the path is read in any case, the method is not
            raise invalid("Malformed request: ", method, " ", path)
        if what != "predict":
            raise Failed("UNIMPLEMENTED", f"{STAND_IN}: it answers no {what}")
        return _predict(versions, name, number, label, body)
    if not name:
        raise invalid("Missing model name in request.")
    if what:
        with versions.handle(name, number, label) as (chosen, servable):
            spec = {"name": name, "signature_name": "", "version": str(chosen)}
            return _text({"model_spec": spec, "metadata": {"signature_def": servable.metadata()}})
    return _text({"model_version_status": versions.status(name, number)})


def _predict(versions: Versions, name: str, number: int | None, label: str | None, body: bytes) -> bytes:
    document = parse(body)
    signature = signature_of(document) or _DEFAULT
    with versions.handle(name, number, label) as (_, servable):
        dtypes = servable.inputs(signature)
        if dtypes is None:
            raise invalid('Serving signature name: "', signature, '" not found in signature def')
        request: Request = read_inputs(document, dtypes)
        return write_outputs(servable.predict(signature, request.inputs), request.form)


def _text(document: Any) -> bytes:
    return json.dumps(document, indent=1).encode() + b"\n"


def _unpacked(body: bytes) -> bytes:
    """A body that came in gzip; nothing of one that is damaged."""
    try:
        return gzip.decompress(body)
    except (OSError, EOFError, zlib.error):
        return b""


def server_of(versions: Versions, address: tuple[str, int]) -> ThreadingHTTPServer:
    """The HTTP server on an address; it answers once ``serve_forever`` runs."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        server_version = "tensorflow-serving-stand-in"
        disable_nagle_algorithm = True

        def _reply(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if "gzip" in self.headers.get("Content-Encoding", ""):
                body = _unpacked(body)
            path = self.path.partition("?")[0]
            if not path.lower().startswith("/v1/"):
                status, text, kind = 404, b"<HTML><HEAD>\n<TITLE>404 Not Found</TITLE>\n</HEAD></HTML>\n", "text/html"
            elif self.command == "OPTIONS":
                status, text, kind = 200 if "http" in self.headers.get("Origin", "") else 400, b"", "text/plain"
            else:
                (status, text), kind = answer(versions, self.command, path, body), "application/json"
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: Any) -> None:
            """The real one prints no line for a request."""

    for method in ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        setattr(Handler, f"do_{method}", Handler._reply)
    ThreadingHTTPServer.request_queue_size = 128
    return ThreadingHTTPServer(address, Handler)
