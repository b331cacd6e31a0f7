"""Errors of a BMC, and conversion of its texts for messages."""

from __future__ import annotations

from collections.abc import Iterable

from hostwright.common.errors import HostError
from hostwright.common.secret import MASK, Secret

SAID_CHARACTERS = 300  #: limit for a BMC's own text in a message: the messages of DMTF's Base registry are shorter


class BmcError(HostError):
    """An operation on a host's BMC failed, or the BMC could not be reached."""


class BmcUnreachable(BmcError):
    """The BMC does not respond: name, connection, certificate or timeout.

    ``passing``: the connection was lost, and a retry may succeed.
    """

    def __init__(self, host: str, message: str, *, passing: bool = False):
        super().__init__(host, message)
        self.passing = passing


class BmcDenied(BmcError):
    """The BMC refuses the login or the permission. Never retried, because BMCs lock accounts."""


class BmcRefused(BmcError):
    """The BMC answered a request with an error."""


class BmcStuck(BmcError):
    """The BMC accepted an order but does not reach its state."""


def bmc_text(text: object, secrets: Iterable[Secret] = ()) -> str:
    """A BMC's text as one printable line of limited length, with our secrets masked.

    Empty for a value that is not text.
    """
    if not isinstance(text, str):
        return ""
    for secret in secrets:
        if secret:
            text = text.replace(secret.reveal(), MASK)
    line = " ".join("".join(char if char.isprintable() else " " for char in text[: 4 * SAID_CHARACTERS]).split())
    return line if len(line) <= SAID_CHARACTERS else f"{line[:SAID_CHARACTERS]}…"
