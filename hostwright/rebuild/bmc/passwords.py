"""The password of a BMC: from the inventory, or printed by the command that the inventory names."""

from __future__ import annotations

from hostwright.common.input.passwordcommand import TIMEOUT_S, first_line
from hostwright.common.secret import Secret
from hostwright.rebuild.bmc.errors import BmcError
from hostwright.rebuild.bmc.settings import PASSWORD_COMMAND, Bmc


def password_of(bmc: Bmc, timeout_s: float = TIMEOUT_S) -> Secret:
    """The password; a command's is the first line that it prints. Raises ``BmcError`` where there is none."""
    if bmc.password is not None:
        return bmc.password
    try:
        return Secret(first_line(bmc.password_command, bmc.host, timeout_s))
    except ValueError as error:
        raise BmcError(bmc.host, f"the command of {PASSWORD_COMMAND} printed no password: {error}") from error
