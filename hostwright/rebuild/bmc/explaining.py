"""Conversion of sushy's errors to messages with the BMC's own text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sushy import exceptions as sushy_errors

from hostwright.rebuild.bmc.errors import BmcError, BmcRefused, bmc_text
from hostwright.rebuild.bmc.link import BmcLink
from hostwright.rebuild.bmc.settings import Bmc


@contextmanager
def explained(bmc: Bmc, link: BmcLink, what: str) -> Iterator[None]:
    """Convert sushy's errors in the context to ``BmcError``. ``what`` describes the request in messages."""
    place = f"the BMC at {bmc.url}"
    try:
        yield
    except BmcError:
        raise
    except sushy_errors.HTTPError as error:
        words = _messages(error, link) or f"status {error.status_code}"
        raise BmcRefused(bmc.host, f"{place} refuses to {what}: {words}") from None
    except sushy_errors.SushyError as error:
        raise BmcRefused(bmc.host, f"{place} cannot {what}: {bmc_text(str(error), link.secrets)}") from None
    except Exception as error:  # noqa: BLE001 - sushy does not validate answers
        kind = type(error).__name__
        raise BmcError(bmc.host, f"{place} did not {what}: its answer is not Redfish ({kind})") from None


def _messages(error: Any, link: BmcLink) -> str:
    extended = error.extended_info if isinstance(error.extended_info, list) else [error.extended_info]
    texts = [entry.get("Message") for entry in extended if isinstance(entry, dict)]
    words = [bmc_text(text, link.secrets) for text in dict.fromkeys(text for text in texts if isinstance(text, str))]
    return " · ".join(words[:2]) or bmc_text(error.detail, link.secrets)
