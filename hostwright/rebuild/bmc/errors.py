"""What may go wrong with a BMC, and how what it says gets into a sentence."""

from __future__ import annotations

from collections.abc import Iterable

from hostwright.common.errors import HostError
from hostwright.common.secret import MASK, Secret

SAID_CHARACTERS = 300  #: of a BMC's own words in a sentence: the messages of DMTF's Base registry are shorter


class BmcError(HostError):
    """Something failed on, or on the way to, the BMC of a host."""


class BmcUnreachable(BmcError):
    """The BMC cannot be talked to: name, connection, certificate, no answer in time.

    ``passing`` tells a connection that was lost, which the next moment may mend, from what stays as it is.
    """

    def __init__(self, host: str, message: str, *, passing: bool = False):
        super().__init__(host, message)
        self.passing = passing


class BmcDenied(BmcError):
    """The BMC refuses the login, or its user may not do what was asked. Never tried again: accounts get locked."""


class BmcRefused(BmcError):
    """The BMC answered a request with an error of its own."""


class BmcStuck(BmcError):
    """The BMC took an order, and the state that it should lead to does not come."""


def bmc_text(text: object, secrets: Iterable[Secret] = ()) -> str:
    """Text from a BMC made fit for a sentence: one line, printable, capped, and without what it may have learnt from
    us. Empty for anything but text."""
    if not isinstance(text, str):
        return ""
    for secret in secrets:
        if secret:
            text = text.replace(secret.reveal(), MASK)
    line = " ".join("".join(char if char.isprintable() else " " for char in text[: 4 * SAID_CHARACTERS]).split())
    return line if len(line) <= SAID_CHARACTERS else f"{line[:SAID_CHARACTERS]}…"
