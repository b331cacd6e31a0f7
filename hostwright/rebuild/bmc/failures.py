"""From the exceptions of requests, urllib3 and ssl to the operator's sentence about a BMC that cannot be talked to."""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Iterator

import requests

from hostwright.rebuild.bmc.errors import BmcUnreachable, bmc_text
from hostwright.rebuild.bmc.settings import ADDRESS, CA, Bmc

_OTHER_NAME = (62, 64)  #: X509_V_ERR_HOSTNAME_MISMATCH and …IP_ADDRESS_MISMATCH (openssl/x509_vfy.h)
_NO_WAY = (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN)


def unreachable(bmc: Bmc, error: BaseException) -> BmcUnreachable:
    """Why a request came to nothing."""
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
    """What is told of one cause; empty where it is not the one that matters."""
    if isinstance(cause, socket.gaierror):
        return f"the name of {place} cannot be resolved: {cause.strerror} (see {ADDRESS})"
    if isinstance(cause, ssl.SSLCertVerificationError):
        return _untrusted(place, cause)
    if isinstance(cause, ssl.SSLError):
        return (
            f"no TLS connection to {place}: {bmc_text(cause.reason or str(cause))}. Does it speak HTTPS on that port?"
        )
    if isinstance(cause, ConnectionRefusedError):
        return f"{place} refuses the connection: is its web server on, and on that port?"
    if isinstance(cause, requests.TooManyRedirects):
        return f"{place} redirects in a circle: does it have a Redfish service?"
    return ""


def silent(bmc: Bmc) -> BmcUnreachable:
    """It may be on the network or not: it does not answer."""
    sentence = f"the BMC at {bmc.url} does not answer in time: is it on the network? A BMC that hangs needs a reset"
    return BmcUnreachable(bmc.host, sentence)


def other_name(error: BaseException) -> bool:
    """Whether a certificate is trusted, and is not made out to the name or address that was called."""
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
    """An exception with all that it was made of: requests and urllib3 wrap what the system said several times."""
    waiting, seen = [error], set[int]()
    while waiting:
        cause = waiting.pop(0)
        if id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        linked = (*cause.args, getattr(cause, "reason", None), cause.__cause__, cause.__context__)
        waiting += [inner for inner in linked if isinstance(inner, BaseException)]
