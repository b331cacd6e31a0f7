"""Errors of a BMC, and conversion of texts from a BMC for messages."""

from __future__ import annotations

from collections.abc import Iterable

from hostwright.common.errors import HostError
from hostwright.common.secret import MASK, Secret

#: maximum number of characters that a message quotes from a BMC's text
SAID_CHARACTERS = 300


class BmcError(HostError):
    """An operation on a host's BMC failed, or the BMC could not be reached."""


class BmcUnreachable(BmcError):
    """The BMC cannot be reached: an error of name, connection, certificate or time limit.

    ``passing`` is true for a lost connection, because a retry may then succeed.
    """

    def __init__(self, host: str, message: str, *, passing: bool = False):
        super().__init__(host, message)
        self.passing = passing


class BmcDenied(BmcError):
    """The BMC refused the login, or its user lacks a permission. Do not retry, because BMCs lock accounts."""


class BmcRefused(BmcError):
    """The BMC answered a request with an error."""


class BmcStuck(BmcError):
    """The BMC accepted an order but did not reach the ordered state in time."""


def bmc_text(text: object, secrets: Iterable[Secret] = ()) -> str:
    """Return a BMC's ``text`` as one printable line of limited length, with ``secrets`` masked.

    Empty if ``text`` is not a string.
    """
    if not isinstance(text, str):
        return ""
    for secret in secrets:
        if secret:
            text = text.replace(secret.reveal(), MASK)
    line = " ".join("".join(char if char.isprintable() else " " for char in text[: 4 * SAID_CHARACTERS]).split())
    return line if len(line) <= SAID_CHARACTERS else f"{line[:SAID_CHARACTERS]}…"
