"""Connects to a Dask cluster, or says in one sentence why not, and calls functions on its workers with a time limit.

TLS is configured as for Dask's own programs: in its configuration (``distributed.comm.tls``), or in variables such as
``DASK_DISTRIBUTED__COMM__TLS__CA_FILE``.
"""

from __future__ import annotations

import gc
import ipaddress
import logging
import os
import socket
import ssl
import struct
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

from distributed import Client, KilledWorker, Security

from hostwright.apply.executors.threads import DaemonThreads
from hostwright.common.errors import HostError, InputError
from hostwright.common.text import short

T = TypeVar("T")

OPTION = "--scheduler"
TLS = "tls://"
CONNECT_S = 10.0  #: our choice: a scheduler in the same network answers in milliseconds
ANSWER_S = 30.0  #: our choice: a busy worker answers within seconds
SNIFF_S = 1.0  #: our choice: a scheduler speaks first, and at once
LONGEST = 1 << 20  #: bytes of a scheduler's first message, which takes some hundred
CLOSE_S = 3.0  #: our choice: how long the end of a run waits for a cluster that hangs
AT_ONCE = 32  #: calls at a time
_SETTINGS = (
    "set distributed.comm.tls.ca-file and distributed.comm.tls.client.cert and .key in Dask's configuration, or "
    "DASK_DISTRIBUTED__COMM__TLS__CA_FILE, …__TLS__CLIENT__CERT and …__TLS__CLIENT__KEY"
)
_LENGTH = struct.Struct("<Q")  #: the beginning of a message of Dask (distributed/comm/tcp.py)
_LOUD = ("distributed", "tornado", "asyncio")  #: loggers that would write over the view of the run


@contextmanager
def connected(address: str, name: str) -> Iterator[Client]:
    """A client of the scheduler at this address. Raises ``InputError`` with one sentence.

    Dask's own log about broken connections is not shown meanwhile: the run reports what they mean for it.
    """
    with _quiet():
        client = _client(address, name)
        try:
            yield client
        finally:
            in_time(lambda: client.close(timeout=CLOSE_S), CLOSE_S)


def _client(address: str, name: str) -> Client:
    host, port = _place(address)
    tls = address.startswith(TLS)
    security, context = _security()
    if tls and context is None:
        raise InputError(f"{address} needs certificates: {_SETTINGS}", OPTION)
    _reach(address, host, port, context if tls else None)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ``fitness`` reports other versions
            return Client(address, security=security, timeout=CONNECT_S, set_as_default=False, name=name)
    except Exception as error:  # noqa: BLE001 - Dask raises whatever it stumbles over in what others send
        sentence = _why_not(address, error, tls=tls)
        error.__traceback__ = None
    gc.collect()  # the half-made client closes itself, and would otherwise do so at the interpreter's end, loudly
    raise InputError(sentence, OPTION)


def _place(address: str) -> tuple[str, int]:
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if parts.scheme not in ("tcp", "tls") or not host or not port:
        raise InputError(f"found {short(address)!r}, expected tcp://HOST:PORT or tls://HOST:PORT", OPTION)
    return host, port


def is_loopback(address: str) -> bool:
    """Whether only this machine reaches an address: a scheduler's, or a host's."""
    host = urlsplit(address).hostname if "://" in address else address
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return host == "localhost"


def is_open(address: str) -> bool:
    """Whether anybody who reaches a scheduler may use it: it has no TLS, and other machines reach it."""
    return not address.startswith(TLS) and not is_loopback(address)


def _security() -> tuple[Security, ssl.SSLContext | None]:
    """The TLS settings of Dask's configuration, and the context made of them; ``None`` without settings."""
    try:
        security = Security()
        context: ssl.SSLContext | None = security.get_connection_args("client")["ssl_context"]
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"Dask's settings for TLS cannot be used ({error}): {_SETTINGS}", OPTION) from error
    return security, context


def _reach(address: str, host: str, port: int, context: ssl.SSLContext | None) -> None:
    """Raise ``InputError`` if no server answers there, or one with another certificate: Dask's errors do not say."""
    try:
        with socket.create_connection((host, port), CONNECT_S) as plain:
            if context is not None:
                context.wrap_socket(plain).close()
            elif _is_other(plain):
                raise InputError(f"{address} is not a Dask scheduler: somebody else answers there", OPTION)
    except ssl.SSLCertVerificationError as error:
        raise InputError(
            f"the certificate of {address} is not one of this machine's authority ({error.verify_message}): check "
            "distributed.comm.tls.ca-file in Dask's configuration",
            OPTION,
        ) from error
    except ssl.SSLError as error:
        raise InputError(f"{address} does not speak TLS as this machine does ({error.reason})", OPTION) from error
    except socket.gaierror as error:
        raise InputError(f"{address}: the name {host} is not known ({error.strerror})", OPTION) from error
    except TimeoutError as error:
        raise InputError(f"{address} does not answer within {CONNECT_S:.0f} s", OPTION) from error
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        raise InputError(f"no scheduler is at {address} ({why}): start one with `dask scheduler`", OPTION) from error


def _is_other(plain: socket.socket) -> bool:
    """Whether the server is not a scheduler, which begins with a length. Dask itself would allocate as many bytes as
    the first word of another protocol happens to mean."""
    plain.settimeout(SNIFF_S)
    try:
        head = plain.recv(_LENGTH.size, socket.MSG_WAITALL)
    except TimeoutError:
        return False  # one with TLS waits for us
    return len(head) == _LENGTH.size and _LENGTH.unpack(head)[0] > LONGEST


def _why_not(address: str, error: Exception, *, tls: bool) -> str:
    """The error for a server with which Dask cannot talk."""
    text = short(str(error)).rpartition("Error: ")[2] or type(error).__name__
    if tls:
        return f"{address} closed the connection ({text}): does it accept this machine's certificate?"
    return f"{address} did not answer as a scheduler does ({text}): if it is one with TLS, its address is tls://…"


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence Dask's loggers, unless Hostwright runs at debug level."""
    if logging.getLogger("hostwright").isEnabledFor(logging.DEBUG):
        yield
        return
    known = logging.root.manager.loggerDict
    loggers = [logging.getLogger(name) for name in {*known, *_LOUD} if name.partition(".")[0] in _LOUD]
    before = [(logger, logger.level) for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in before:
            logger.setLevel(level)


def in_time(call: Callable[[], T], timeout_s: float) -> T | None:
    """The value of a call; ``None`` if it raises, or does not return in time. It is left running then."""
    future = DaemonThreads(1, "dask").submit(call)
    wait([future], timeout_s)
    return future.result() if future.done() and future.exception() is None else None


def ask_each(
    client: Client, workers: Sequence[str], function: Callable[..., Any], *args: Any, timeout_s: float = ANSWER_S
) -> tuple[Mapping[str, Any], Mapping[str, BaseException]]:
    """Call a function or coroutine in each worker's process, side by side: the values, and the errors of workers that
    raised or did not answer in time (``TimeoutError``). A worker that hangs holds up no other."""
    threads = DaemonThreads(AT_ONCE, "dask")

    def ask(worker: str) -> Any:
        return client.run(function, *args, workers=[worker])[worker]

    futures: dict[str, Future[Any]] = {worker: threads.submit(ask, worker) for worker in workers}
    wait(futures.values(), timeout_s)
    threads.shutdown(wait=False, cancel_futures=True)
    answers: dict[str, Any] = {}
    errors: dict[str, BaseException] = {}
    for worker, future in futures.items():
        if not future.done() or future.cancelled():
            errors[worker] = TimeoutError(f"no answer within {timeout_s:.0f} s")
        elif (error := future.exception()) is not None:
            errors[worker] = error
        else:
            answers[worker] = future.result()
    return answers, errors


def meaning_of(host: str, error: BaseException, then: str) -> HostError:
    """The error of a host for an error of the cluster; ``then`` says what to do."""
    if isinstance(error, KilledWorker):
        last = getattr(error.last_worker, "address", error.last_worker)
        lost = f"{error.allowed_failures + 1} workers were lost while they had it, the last of them {last}"
        return HostError(host, f"{lost}: their logs say why; {then}")
    return HostError(host, f"the cluster could not work on it: {type(error).__name__}: {short(str(error))}")
