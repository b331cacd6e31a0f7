"""Login to a BMC, and selection of the Redfish system that represents the host."""

from __future__ import annotations

from typing import Any

import sushy

from hostwright.common.durations import Clock
from hostwright.common.input.passwordcommand import TIMEOUT_S, first_line
from hostwright.common.secret import Secret
from hostwright.rebuild.bmc.controller import NAMED, Controller
from hostwright.rebuild.bmc.errors import BmcDenied, BmcError, bmc_text
from hostwright.rebuild.bmc.explaining import explained
from hostwright.rebuild.bmc.link import BmcLink, quiet
from hostwright.rebuild.bmc.settings import PASSWORD_COMMAND, SYSTEM, Bmc


def password_of(bmc: Bmc, timeout_s: float = TIMEOUT_S) -> Secret:
    """Return the BMC's password from the inventory, or the first output line of the inventory's command.

    Raises ``BmcError`` if the command prints no password within ``timeout_s`` seconds.
    """
    if bmc.password is not None:
        return bmc.password
    try:
        return Secret(first_line(bmc.password_command, bmc.host, timeout_s))
    except ValueError as error:
        raise BmcError(bmc.host, f"the command of {PASSWORD_COMMAND} printed no password: {error}") from error


def open_bmc(bmc: Bmc, clock: Clock | None = None) -> Controller:
    """Log in to a BMC and find the host's Redfish system. Leaving the result's context logs out.

    Raises ``BmcError`` if the login fails, or if the BMC does not have exactly one system that can be the host.
    """
    quiet()
    clock = clock or Clock()
    link = BmcLink(bmc, password_of(bmc), clock)
    try:
        with explained(bmc, link, "show its systems"):
            link.log_in()
            connector = _Connector(bmc.url)
            connector._session = link
            root = sushy.Sushy(bmc.url, auth=_LoggedIn(), connector=connector, server_side_retries=0)
            system = _system(bmc, root)
    except BaseException:
        link.close()
        raise
    return Controller(bmc, link, system, clock)


class Opener:
    """Opens sessions with one BMC. After a refused login, each call raises the same error without a new login, because
    BMCs lock accounts.
    """

    def __init__(self, bmc: Bmc):
        self._bmc = bmc
        self._denied: BmcDenied | None = None

    def __call__(self) -> Controller:
        """Return a new session with the BMC."""
        if self._denied is not None:
            raise self._denied
        try:
            return open_bmc(self._bmc)
        except BmcDenied as error:
            self._denied = error
            raise


class _Connector(sushy.connector.Connector):  # type: ignore[misc]  # sushy has no types
    """sushy's HTTP connector with a check of each link: sushy alone would resolve some links to another server."""

    def _op(self, method: str, path: str = "", *args: Any, **options: Any) -> Any:
        return super()._op(method, self._session.url_of(path), *args, **options)


class _LoggedIn:
    """sushy authentication without effect, because ``BmcLink`` handles the login."""

    def set_context(self, root: object, connector: object) -> None:
        """Do nothing; sushy calls this once."""

    def authenticate(self) -> None:
        """Do nothing; sushy calls this once."""

    def close(self) -> None:
        """Do nothing; sushy calls this at the end."""


def _system(bmc: Bmc, root: Any) -> Any:
    paths = root.get_system_collection().members_identities
    ids = {path.rstrip("/").rpartition("/")[2]: path for path in paths}
    if not bmc.system and len(paths) == 1:
        return root.get_system(paths[0])
    if bmc.system in ids:
        return root.get_system(ids[bmc.system])
    for path in paths if bmc.system else ():
        system = root.get_system(path)
        if bmc.system in (system.identity, system.name, system.uuid):
            return system
    names = ", ".join(bmc_text(name) for name in list(ids)[:NAMED]) + (" and more" if len(ids) > NAMED else "")
    problem = f"no system {bmc.system!r}" if bmc.system else "several systems"
    if not ids:
        raise BmcError(bmc.host, f"the BMC at {bmc.url} lists no system in Redfish")
    raise BmcError(bmc.host, f"the BMC at {bmc.url} has {problem}: name one of {names} in {SYSTEM}")
