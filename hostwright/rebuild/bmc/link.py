"""HTTP client for one BMC: login, and requests to this server only, with limits on duration and answer size.

sushy's own ``requests.Session`` would retry a failed login, repeat orders, send the token to other servers, and read
answers without limits.
"""

from __future__ import annotations

import base64
import errno
import json
import logging
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from queue import Empty, SimpleQueue
from typing import Any

import requests

from hostwright.common.durations import Clock
from hostwright.common.secret import MASK, Secret
from hostwright.rebuild.bmc.errors import BmcDenied, BmcError, BmcUnreachable, bmc_text
from hostwright.rebuild.bmc.settings import ADDRESS, CA, PASSWORD, PASSWORD_COMMAND, USER, Bmc
from hostwright.rebuild.bmc.trust import Pinned, authorities, only_certificate, path_on

ROOT = "/redfish/v1/"
CONNECT_S = 10.0  #: time limit in seconds for a TCP connection to a BMC in the local network
ANSWER_S = 60.0  #: time limit in seconds for one answer of a BMC. Busy iDRAC and iLO take up to 30 s.
LOGOUT_S = 5.0
#: maximum number of bytes of a BMC's answer. A ComputerSystem document has about 50 KiB.
CAP_BYTES = 4 * 1024 * 1024
TRIES = 3  #: maximum number of attempts of a GET request to a busy BMC
PAUSE_S = 2.0
#: HTTP statuses of a busy BMC; iDRAC answers with 500 (SYS518) while it carries out another request
_BUSY = (429, 500, 502, 503, 504)
_BAD, _DENIED, _FORBIDDEN = 400, 401, 403
_CHUNK_BYTES = 64 * 1024
_REDIRECTIONS = 5
#: HTTP statuses of redirections that are followed with the same method
_SAME_METHOD = (301, 307, 308)


class BmcLink:
    """HTTP client for one BMC. No request continues after ``deadline_s``, a time of ``clock``."""

    def __init__(self, bmc: Bmc, password: Secret, clock: Clock):
        self.deadline_s = clock.now_s() + bmc.timeout_s
        self.headers: dict[str, str] = {}  #: HTTP headers; sushy requires this attribute
        self.auth = None
        self._bmc, self._password, self._clock = bmc, password, clock
        self._token: Secret | None = None
        self._session_path = ""
        self._basic = False
        self._verify = authorities(bmc)
        self._http = requests.Session()
        self._http.trust_env = False  # The environment's proxies and CA bundles, and ~/.netrc, must not apply to a BMC.
        # According to sushy, some BMCs fail on persistent connections.
        self._http.headers["Connection"] = "close"

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """Password and session token of the BMC, to be masked in texts from the BMC."""
        return (self._password, *((self._token,) if self._token else ()))

    def log_in(self) -> None:
        """Start a Redfish session or, if the BMC starts none, use HTTP Basic authentication.

        Raises ``BmcDenied`` if the BMC refuses the login.
        """
        self._token, self._basic = None, False
        sessions = self._sessions_path()
        if sessions:
            body = {"UserName": self._bmc.user, "Password": self._password.reveal()}
            answer = self._bounded("POST", sessions, body, {})
            if answer.status_code in (_DENIED, _FORBIDDEN):
                raise self._denied()
            # Some BMCs answer a wrong password with 400, and another attempt might lock the account.
            if answer.status_code == _BAD:
                raise self._denied(self._said_in(answer))
            token = answer.headers.get("X-Auth-Token", "")
            if answer.ok and token.isascii() and token.isprintable() and token:
                self._token = Secret(token)
                self._session_path = path_on(self._bmc.url, answer.headers.get("Location"), any_name=True)
                return
        self._basic = True

    def url_of(self, link: object) -> str:
        """Return the URL of ``link``, a link from the BMC. Raises ``BmcError`` if it leads to another server."""
        path = path_on(self._bmc.url, link)
        if not path:
            where = bmc_text(link) or "an empty link"
            raise BmcError(
                self._bmc.host,
                f"the BMC at {self._bmc.url} returned a link that leads to another server or is invalid: {where}",
            )
        return self._bmc.url + path

    def request(
        self, method: str, url: str, *, json: Any = None, headers: Mapping[str, str] | None = None, **_: object
    ) -> requests.Response:
        """Send a request for sushy, without sushy's timeouts and CA settings.

        Raises ``BmcError`` if the BMC does not answer, or denies access. Returns all other answers.
        """
        answer = self._patiently(method, url, json, headers or {})
        if answer.status_code == _DENIED and self._token:
            self.log_in()
            answer = self._patiently(method, url, json, headers or {})
        if answer.status_code == _DENIED:
            raise self._denied()
        if answer.status_code == _FORBIDDEN:
            raise BmcDenied(
                self._bmc.host,
                f"the user {self._bmc.user!r} of the BMC at {self._bmc.url} lacks the permission for this request "
                f"({self._words(answer)}); give the user the role Operator or Administrator, and change its "
                "password if the BMC requires that",
            )
        return answer

    def close(self) -> None:
        """End the Redfish session, because a BMC allows only few sessions. Never raises an error."""
        self.deadline_s = self._clock.now_s() + LOGOUT_S
        try:
            if self._token and self._session_path:
                self._bounded("DELETE", self._session_path, None, {})
        except BmcError:
            pass  # The BMC also ends a session that is unused.
        finally:
            self._token, self._session_path = None, ""
            self._http.close()

    def _sessions_path(self) -> str:
        answer = self._patiently("GET", ROOT, None, {})
        if answer.status_code in (_DENIED, _FORBIDDEN):
            return ""
        try:
            path = json.loads(answer.content)["Links"]["Sessions"]["@odata.id"]
        except (ValueError, RecursionError, LookupError, TypeError):
            return ""
        return path if isinstance(path, str) else ""

    def _patiently(self, method: str, link: str, body: Any, headers: Mapping[str, str]) -> requests.Response:
        """Repeat a GET request until ``deadline_s`` if the BMC is busy or the connection was lost."""
        for left in reversed(range(TRIES)):
            again = left > 0 and method == "GET" and self._left_s() > PAUSE_S
            try:
                answer = self._bounded(method, link, body, headers)
            except BmcUnreachable as error:
                if not (again and error.passing):
                    raise
            else:
                if not (again and answer.status_code in _BUSY):
                    return answer
            self._clock.sleep(PAUSE_S)
        raise silent(self._bmc)

    def _bounded(self, method: str, link: str, body: Any, headers: Mapping[str, str]) -> requests.Response:
        """Send a request in a thread that is abandoned after a time limit.

        Timeouts of sockets limit neither name resolution nor a server that sends single bytes slowly.
        """
        url = self.url_of(link)
        limit_s = min(self._left_s(), CONNECT_S + ANSWER_S)
        if limit_s <= 0:
            raise silent(self._bmc)
        inbox: SimpleQueue[requests.Response | BaseException] = SimpleQueue()

        def work() -> None:
            try:
                inbox.put(self._send(method, url, body, {**headers, **self._login()}, limit_s))
            except BaseException as error:  # noqa: BLE001 - raised again in the waiting thread
                inbox.put(error)

        threading.Thread(target=work, name=f"bmc-{self._bmc.host}", daemon=True).start()
        try:
            outcome = inbox.get(timeout=limit_s)
        except Empty:
            raise silent(self._bmc) from None
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def _send(self, method: str, url: str, body: Any, headers: Mapping[str, str], limit_s: float) -> requests.Response:
        try:
            return self._once(method, url, body, headers, limit_s)
        except requests.RequestException as error:
            failed = error
        fingerprint = only_certificate(self._bmc.ca) if other_name(failed) else ""
        if fingerprint:  # With a wrong name in the certificate, no request was sent, so repeating the request is safe.
            self._http.mount("https://", Pinned(fingerprint))
            try:
                return self._once(method, url, body, headers, limit_s)
            except requests.exceptions.SSLError:
                pass  # The first error, in ``failed``, explains more than this one.
            except requests.RequestException as error:
                failed = error
        failed.request = None  # The request contains the login, which must not leak with the error.
        raise unreachable(self._bmc, failed)

    def _once(self, method: str, url: str, body: Any, headers: Mapping[str, str], limit_s: float) -> requests.Response:
        for _ in range(_REDIRECTIONS + 1):
            answer = self._asked(method, url, body, headers, limit_s)
            if not answer.is_redirect:
                return answer
            target = answer.headers.get("Location")
            path = path_on(self._bmc.url, target) if method == "GET" or answer.status_code in _SAME_METHOD else ""
            if not path:
                raise BmcError(
                    self._bmc.host,
                    f"the BMC at {self._bmc.url} redirects to {bmc_text(target)}; if that is the BMC's address, set "
                    "hostwright_bmc to it",
                )
            url = self._bmc.url + path
        raise requests.TooManyRedirects

    def _asked(self, method: str, url: str, body: Any, headers: Mapping[str, str], limit_s: float) -> requests.Response:
        answer = self._http.request(
            method,
            url,
            json=body,
            headers=dict(headers),
            verify=self._verify,
            timeout=(min(CONNECT_S, limit_s), min(ANSWER_S, limit_s)),
            stream=True,
            allow_redirects=False,  # Only ``_once`` may follow a redirection, because it refuses other servers.
        )
        with answer:
            content = bytearray()
            for chunk in answer.iter_content(_CHUNK_BYTES):
                content += chunk
                if len(content) > CAP_BYTES:
                    raise BmcError(
                        self._bmc.host,
                        f"the BMC at {self._bmc.url} sent more than {CAP_BYTES >> 20} MiB where a few lines were "
                        "expected; its answer was discarded",
                    )
        # sushy reads this private attribute, and logs the content of error answers.
        answer._content = bytes(content) if answer.ok else self._scrubbed(bytes(content))
        return answer

    def _scrubbed(self, content: bytes) -> bytes:
        for secret in self.secrets:
            for text in (secret.reveal(), json.dumps(secret.reveal())[1:-1]):
                content = content.replace(text.encode(), MASK.encode())
        return content

    def _login(self) -> dict[str, str]:
        if self._token:
            return {"X-Auth-Token": self._token.reveal()}
        if not self._basic:
            return {}
        pair = f"{self._bmc.user}:{self._password.reveal()}".encode()
        return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}

    def _left_s(self) -> float:
        return self.deadline_s - self._clock.now_s()

    def _denied(self, words: str = "") -> BmcDenied:
        where = PASSWORD_COMMAND if self._bmc.password_command else PASSWORD
        return BmcDenied(
            self._bmc.host,
            f"the BMC at {self._bmc.url} refuses the user {self._bmc.user!r}{f' ({words})' if words else ''}: the "
            "password is wrong, or the account is locked or not allowed over Redfish. No second login was tried, so "
            f"that the BMC does not lock the account; check {USER} and {where}",
        )

    def _said_in(self, answer: requests.Response) -> str:
        try:
            error = json.loads(answer.content)["error"]
            message = (error.get("@Message.ExtendedInfo") or [{}])[0].get("Message") or error.get("message")
        except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
            message = ""
        return bmc_text(message, self.secrets) or f"status {answer.status_code}"

    def _words(self, answer: requests.Response) -> str:
        return bmc_text(answer.reason, self.secrets) or str(answer.status_code)


def quiet() -> None:
    """Disable the log messages of sushy and urllib3, which contain a BMC's unmodified answers."""
    for name in ("sushy", "urllib3.connection", "urllib3.connectionpool", "urllib3.util.retry"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


_OTHER_NAME = (62, 64)  #: OpenSSL's error numbers for a certificate with another host name or IP address
_NO_WAY = (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN)


def unreachable(bmc: Bmc, error: BaseException) -> BmcUnreachable:
    """Convert ``error``, the failure of a request, to a ``BmcUnreachable`` that explains the cause."""
    causes = tuple(_causes(error))
    place = f"the BMC at {bmc.url}"
    sentence = next((sentence for cause in causes if (sentence := _sentence(place, cause))), "")
    if sentence:
        return BmcUnreachable(bmc.host, sentence)
    if isinstance(error, requests.Timeout):
        return silent(bmc)
    system = next((cause for cause in causes if isinstance(cause, OSError) and cause.strerror), None)
    why = bmc_text(system.strerror) if system else "the connection was lost"
    passing = system is None or system.errno not in _NO_WAY
    return BmcUnreachable(bmc.host, f"no answer from {place}: {why}", passing=passing)


def _sentence(place: str, cause: BaseException) -> str:
    if isinstance(cause, socket.gaierror):
        return f"the name of {place} cannot be resolved: {cause.strerror} (see {ADDRESS})"
    if isinstance(cause, ssl.SSLCertVerificationError):
        return _untrusted(place, cause)
    if isinstance(cause, ssl.SSLError):
        return (
            f"no TLS connection to {place}: {bmc_text(cause.reason or str(cause))}. Does it serve HTTPS on that port?"
        )
    if isinstance(cause, ConnectionRefusedError):
        return f"{place} refuses the connection: is its web server on, and on that port?"
    if isinstance(cause, requests.TooManyRedirects):
        return f"{place} redirects in a circle: does it have a Redfish service?"
    return ""


def silent(bmc: Bmc) -> BmcUnreachable:
    """Return the error for a BMC that did not answer within the time limit."""
    sentence = f"the BMC at {bmc.url} does not answer in time: is it on the network? A BMC that hangs needs a reset"
    return BmcUnreachable(bmc.host, sentence)


def other_name(error: BaseException) -> bool:
    """Whether ``error`` is about a trusted certificate for another name or address."""
    return any(
        isinstance(cause, ssl.SSLCertVerificationError) and cause.verify_code in _OTHER_NAME for cause in _causes(error)
    )


def _untrusted(place: str, error: ssl.SSLCertVerificationError) -> str:
    why = bmc_text(error.verify_message) or "it cannot be verified"
    if error.verify_code in _OTHER_NAME:
        return (
            f"the certificate of {place} is issued for another name ({why}): use that name in {ADDRESS}, or give "
            f"this certificate as a PEM file in {CA}"
        )
    return (
        f"the certificate of {place} is not trusted ({why}): give it, or that of the authority that signed it, as a "
        f"PEM file in {CA}"
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    waiting, seen = [error], set[int]()
    while waiting:
        cause = waiting.pop(0)
        if id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        linked = (*cause.args, getattr(cause, "reason", None), cause.__cause__, cause.__context__)
        waiting += [inner for inner in linked if isinstance(inner, BaseException)]
