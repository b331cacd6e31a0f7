"""People at JupyterHub, as a browser is there: pages, forms, cookies, and a kernel's websocket."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import requests
import websocket
from requests.cookies import get_cookie_header

PATH = "/jupyterhub"
PATIENCE_S = 240  #: a server's start on a busy machine, and its return after a reboot
Value = TypeVar("Value")


def until(condition: Callable[[], Value], what: str, patience_s: float = PATIENCE_S) -> Value:
    """Ask again until a condition holds, which may say by an assertion why it does not; its value."""
    end = time.monotonic() + patience_s
    last: object = None
    while time.monotonic() < end:
        try:
            if value := condition():
                return value
        except (requests.RequestException, websocket.WebSocketException, OSError, AssertionError) as error:
            last = error
        time.sleep(0.5)
    raise AssertionError(f"waited {patience_s:.0f} s for {what}; last: {last}")


@dataclass
class Person:
    """One browser of one person."""

    name: str
    origin: str  #: ``https://10.0.0.2:8443``
    authority: Path  #: the only one that is trusted
    session: requests.Session = field(default_factory=requests.Session)

    def __post_init__(self) -> None:
        self.session.trust_env = False
        self.session.verify = str(self.authority)

    def url(self, path: str) -> str:
        """A page of the hub's."""
        return f"{self.origin}{PATH}{path}"

    def get(self, path: str) -> requests.Response:
        """A page, where it leads to in the end."""
        return self.session.get(self.url(path), timeout=60)

    def xsrf(self, path: str) -> str:
        """The token against forged requests that belongs to a path: the longest path's counts."""
        full = PATH + path
        known = [each for each in self.session.cookies if each.name == "_xsrf" and full.startswith(each.path)]
        return str(max(known, key=lambda each: len(each.path)).value) if known else ""

    def post(self, path: str, data: dict[str, str] | None = None, body: object = None) -> requests.Response:
        """A form, or a request as a page's script makes it."""
        headers = {"X-XSRFToken": self.xsrf(path), "Referer": self.url(path)}
        form = {**(data or {}), "_xsrf": self.xsrf(path)} if body is None else None
        return self.session.post(self.url(path), data=form, json=body, headers=headers, timeout=60)

    def log_in(self, password: str) -> bool:
        """Send the form with a name and a password; whether the hub took them."""
        self.get("/hub/login")
        answer = self.post("/hub/login", {"username": self.name, "password": password})
        return answer.status_code == 200 and "/hub/login" not in answer.url

    def start(self, gpus: int = 0) -> str:
        """Ask for a server. Empty once it answers, else the sentence that the page shows."""
        self.get("/hub/spawn")
        answer = self.post(f"/hub/spawn/{self.name}", {"gpus": str(gpus)})
        refused = re.search(
            r'class="[^"]*(?:spawn-error-msg|alert-danger|text-danger)[^"]*">(.*?)</p', answer.text, re.DOTALL
        )
        if refused:
            return re.sub(r"\s+", " ", refused[1]).strip()
        if answer.status_code >= 400:
            return re.sub(r"<[^>]*>|\s+", " ", answer.text)[-2000:]
        until(self.reaches_own, f"the server of {self.name}")
        return ""

    def reaches(self, owner: str) -> int:
        """The status with which somebody's server answers this person."""
        self.get(f"/user/{owner}/tree")  # the hub says who comes, if it has not yet
        return self.get(f"/user/{owner}/api/contents").status_code

    def reaches_own(self) -> bool:
        return self.reaches(self.name) == 200

    def kernel(self) -> str:
        """A new kernel's name."""
        answer = self.post(f"/user/{self.name}/api/kernels", body={"name": "python3"})
        assert answer.status_code == 201, (answer.status_code, answer.text[:500])
        return str(answer.json()["id"])

    def connect(self, kernel: str) -> websocket.WebSocket:
        """The kernel's channels."""
        address = self.url(f"/user/{self.name}/api/kernels/{kernel}/channels")
        request = requests.Request("GET", address).prepare()
        cookies = get_cookie_header(self.session.cookies, request)
        return websocket.create_connection(
            address.replace("https", "wss", 1),
            timeout=120,
            cookie=cookies,
            origin=self.origin,
            sslopt={"ca_certs": str(self.authority)},
            http_no_proxy=["*"],
        )


def run_cell(channels: websocket.WebSocket, code: str) -> str:
    """What a cell printed, once it has ended."""
    ident = uuid.uuid4().hex
    header = {"msg_id": ident, "msg_type": "execute_request", "username": "", "session": ident, "version": "5.3"}
    content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False, "stop_on_error": True}
    message = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}
    channels.send(json.dumps(message))
    printed, ended, idle = "", False, False
    while not (ended and idle):
        answer: dict[str, Any] = json.loads(channels.recv())
        if answer["parent_header"].get("msg_id") != ident:
            continue
        kind, said = answer["msg_type"], answer["content"]
        if kind == "stream":
            printed += said["text"]
        elif kind == "error":
            raise AssertionError("\n".join(said["traceback"]))
        ended = ended or kind == "execute_reply"
        idle = idle or (kind == "status" and said["execution_state"] == "idle")
    return printed
