"""Connects to a Dask cluster, and calls functions on its workers with a time limit. Errors are single sentences.

TLS is configured as for Dask's own programs (``distributed.comm.tls``, or variables such as
``DASK_DISTRIBUTED__COMM__TLS__CA_FILE``).
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
#: time limit in seconds for connecting to a scheduler (our choice). In the same network, a scheduler answers in
#: milliseconds.
CONNECT_S = 10.0
ANSWER_S = 30.0  #: time limit in seconds for the answer of a worker (our choice). A busy worker answers within seconds.
SNIFF_S = 1.0  #: time limit in seconds for a scheduler's first message, which is sent at once (our choice)
LONGEST = 1 << 20  #: maximum length in bytes of a scheduler's first message, which has a few hundred bytes
CLOSE_S = 3.0  #: time limit in seconds for closing the client of a cluster that hangs (our choice)
AT_ONCE = 32  #: maximum number of parallel calls from this machine to workers
_SETTINGS = (
    "set ca-file, client.cert and client.key below distributed.comm.tls in Dask's configuration, or the environment "
    "variables DASK_DISTRIBUTED__COMM__TLS__CA_FILE, …__TLS__CLIENT__CERT and …__TLS__CLIENT__KEY"
)
_LENGTH = struct.Struct("<Q")  #: format of the length with which each Dask message begins (distributed/comm/tcp.py)
_LOUD = ("distributed", "tornado", "asyncio")  #: names of loggers whose messages would disturb the display of the run


@contextmanager
def connected(address: str, name: str) -> Iterator[Client]:
    """Yield a client, called ``name``, of the scheduler at ``address``.

    Raises ``InputError`` if the client cannot connect. Dask's log messages about lost connections are hidden.
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
        raise InputError(f"{address} needs TLS certificates; {_SETTINGS}", OPTION)
    _reach(address, host, port, context if tls else None)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ``fitness`` reports versions that differ, so Dask need not.
            return Client(address, security=security, timeout=CONNECT_S, set_as_default=False, name=name)
    except Exception as error:  # noqa: BLE001 - Dask raises any error in received data
        sentence = _why_not(address, error, tls=tls)
        error.__traceback__ = None
    gc.collect()  # Otherwise, the incomplete client prints warnings at exit.
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
    """Return whether ``address``, of a scheduler or host, can be reached only from this machine."""
    host = urlsplit(address).hostname if "://" in address else address
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return host == "localhost"


def is_open(address: str) -> bool:
    """Return whether the scheduler at ``address`` has no TLS, and can be reached from other machines."""
    return not address.startswith(TLS) and not is_loopback(address)


def _security() -> tuple[Security, ssl.SSLContext | None]:
    try:
        security = Security()
        context: ssl.SSLContext | None = security.get_connection_args("client")["ssl_context"]
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"Dask's settings for TLS are invalid ({error}); {_SETTINGS}", OPTION) from error
    return security, context


def _reach(address: str, host: str, port: int, context: ssl.SSLContext | None) -> None:
    """Raise ``InputError`` if no server listens at ``host`` and ``port``, or if the server's certificate is untrusted.
    Dask's own errors do not name these causes.
    """
    try:
        with socket.create_connection((host, port), CONNECT_S) as plain:
            if context is not None:
                context.wrap_socket(plain).close()
            elif _is_other(plain):
                raise InputError(f"{address} is not a Dask scheduler; check the port", OPTION)
    except ssl.SSLCertVerificationError as error:
        raise InputError(
            f"the certificate of {address} is not trusted ({error.verify_message}); check "
            "distributed.comm.tls.ca-file in Dask's configuration",
            OPTION,
        ) from error
    except ssl.SSLError as error:
        raise InputError(f"the TLS handshake with {address} failed ({error.reason})", OPTION) from error
    except socket.gaierror as error:
        raise InputError(f"{address}: the name {host} cannot be resolved ({error.strerror})", OPTION) from error
    except TimeoutError as error:
        raise InputError(f"{address} does not answer within {CONNECT_S:.0f} s", OPTION) from error
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        raise InputError(
            f"no scheduler answers at {address} ({why}); start one with `dask scheduler`", OPTION
        ) from error


def _is_other(plain: socket.socket) -> bool:
    """Return whether the first bytes from a server show that it is not a Dask scheduler. Dask would read the first
    bytes of another protocol as a length, and allocate that much memory.
    """
    plain.settimeout(SNIFF_S)
    try:
        head = plain.recv(_LENGTH.size, socket.MSG_WAITALL)
    except TimeoutError:
        return False  # A TLS server sends nothing before the client does.
    return len(head) == _LENGTH.size and _LENGTH.unpack(head)[0] > LONGEST


def _why_not(address: str, error: Exception, *, tls: bool) -> str:
    text = short(str(error)).rpartition("Error: ")[2] or type(error).__name__
    if tls:
        return f"{address} closed the connection ({text}); check whether it accepts this machine's certificate"
    return f"{address} did not answer like a scheduler ({text}); for a scheduler with TLS, use tls://…"


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide the messages of Dask's loggers during the block, unless Hostwright runs at debug level."""
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
    """Return the value of ``call``. ``None`` if ``call`` raises, or takes longer than ``timeout_s``.

    A call that takes longer continues in its thread.
    """
    future = DaemonThreads(1, "dask").submit(call)
    wait([future], timeout_s)
    return future.result() if future.done() and future.exception() is None else None


def ask_each(
    client: Client, workers: Sequence[str], function: Callable[..., Any], *args: Any, timeout_s: float = ANSWER_S
) -> tuple[Mapping[str, Any], Mapping[str, BaseException]]:
    """Call ``function``, which may be a coroutine, in the process of each of ``workers`` in parallel.

    Return the values and the errors, both by worker address. A worker that does not answer within ``timeout_s`` has the
    error ``TimeoutError``, and does not delay calls to others.
    """
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
    """Convert an error of the cluster to an error of ``host``. ``then`` is the operator's next step, as text."""
    if isinstance(error, KilledWorker):
        last = getattr(error.last_worker, "address", error.last_worker)
        lost = f"{error.allowed_failures + 1} workers were lost while they worked on this host, most recently {last}"
        return HostError(host, f"{lost}; check their logs; {then}")
    return HostError(host, f"the Dask cluster failed with {type(error).__name__}: {short(str(error))}")
