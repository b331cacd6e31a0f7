"""Access control of a lab's Redfish endpoint: HTTP Basic authentication or a session, except for the service root."""

from __future__ import annotations

import hashlib
import json
import secrets
import threading
from collections import OrderedDict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.wrappers import Request, Response

from lab.bmc.credentials import Credentials

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

SERVICE = "/redfish/v1/SessionService"
SESSIONS = f"{SERVICE}/Sessions"
_OPEN = ("", "/redfish", "/redfish/v1")  # URL paths that need no authentication (DSP0266)
_MOST_SESSIONS = 64
_MOST_BYTES = 1 << 16


class Door:
    """WSGI application that passes requests with valid credentials to ``behind``."""

    def __init__(self, behind: WSGIApplication, credentials: Credentials):
        self._behind, self._credentials = behind, credentials
        self._sessions: OrderedDict[str, str] = OrderedDict()  # hash of a session's token → ID of the session
        self._lock = threading.Lock()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Pass a request with valid credentials to ``behind``, refuse the request, or handle it as a session
        request.
        """
        request = Request(environ)
        request.max_content_length = _MOST_BYTES
        path = request.path.rstrip("/")
        if path == SESSIONS and request.method == "POST":
            return self._log_in(request)(environ, start_response)
        if path not in _OPEN and not self._admits(request):
            return _error(401, "wrong or missing user, password or session")(environ, start_response)
        if path.startswith(SERVICE):
            return self._session_service(request.method, path)(environ, start_response)
        return self._behind(environ, start_response)

    def _admits(self, request: Request) -> bool:
        token = request.headers.get("X-Auth-Token")
        if token is not None:
            with self._lock:
                return _hash(token) in self._sessions
        given = request.authorization
        if given is None or given.type != "basic":
            return False
        return self._credentials.admit(given.username or "", given.password or "")

    def _log_in(self, request: Request) -> Response:
        try:
            given = json.loads(request.get_data())
            user, password = given["UserName"], given["Password"]
        except (ValueError, KeyError, TypeError):
            return _error(400, "a session needs UserName and Password")
        except RequestEntityTooLarge:
            return _error(413, f"the request has more than {_MOST_BYTES} bytes")
        if not isinstance(user, str) or not isinstance(password, str) or not self._credentials.admit(user, password):
            return _error(401, "wrong user or password")
        token, number = secrets.token_urlsafe(32), secrets.token_hex(8)
        with self._lock:
            self._sessions[_hash(token)] = number
            while len(self._sessions) > _MOST_SESSIONS:
                self._sessions.popitem(last=False)
        answer = _json({**_session(number), "UserName": user}, 201)
        answer.headers["X-Auth-Token"] = token
        answer.headers["Location"] = f"{SESSIONS}/{number}"
        return answer

    def _session_service(self, method: str, path: str) -> Response:
        number = path.removeprefix(SESSIONS).lstrip("/")
        if method == "DELETE" and number:
            with self._lock:
                gone = [token for token, known in self._sessions.items() if known == number]
                for token in gone:
                    del self._sessions[token]
            return Response(status=204) if gone else _error(404, "there is no such session")
        if method != "GET":
            return _error(405, "a session is created with POST and deleted with DELETE")
        if path == SERVICE:
            return _json({"@odata.id": SERVICE, "Id": "SessionService", "Name": "Session Service",
                          "ServiceEnabled": True, "Sessions": {"@odata.id": SESSIONS}})  # fmt: skip
        return self._show(number)

    def _show(self, number: str) -> Response:
        with self._lock:
            known = list(self._sessions.values())
        if not number:
            members = [{"@odata.id": f"{SESSIONS}/{one}"} for one in known]
            return _json({"@odata.id": SESSIONS, "Name": "Sessions", "Members": members,
                          "Members@odata.count": len(members)})  # fmt: skip
        return _json(_session(number)) if number in known else _error(404, "there is no such session")


def _session(number: str) -> dict[str, object]:
    return {
        "@odata.id": f"{SESSIONS}/{number}",
        "@odata.type": "#Session.v1_0_0.Session",
        "Id": number,
        "Name": "User Session",
    }


def _hash(token: str) -> str:
    """Hash ``token`` for a comparison, so that the comparison's duration reveals nothing about the token."""
    return hashlib.sha256(token.encode()).hexdigest()


def _json(document: object, status: int = 200) -> Response:
    return Response(json.dumps(document), status, content_type="application/json")


def _error(status: int, sentence: str) -> Response:
    answer = _json({"error": {"code": "Base.1.0.GeneralError", "message": sentence}}, status)
    if status == 401:
        answer.headers["WWW-Authenticate"] = 'Basic realm="lab BMCs"'
    return answer
