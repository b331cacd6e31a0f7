"""The password of a BMC: from the inventory, or printed by the command that the inventory names."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from contextlib import suppress

from hostwright.common.secret import Secret
from hostwright.rebuild.bmc.errors import BmcError, bmc_text
from hostwright.rebuild.bmc.settings import PASSWORD_COMMAND, Bmc

TIMEOUT_S = 60.0  #: a password manager may ask for a card or a finger first
LONGEST = 1024  #: characters of a password; Redfish's AccountService allows far fewer
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def password_of(bmc: Bmc, timeout_s: float = TIMEOUT_S) -> Secret:
    """The password; a command's is the first line that it prints. Raises ``BmcError`` where there is none."""
    if bmc.password is not None:
        return bmc.password
    status, out, err = _run(bmc, timeout_s)
    line = out.partition("\n")[0].removesuffix("\r")
    if status == 0 and line and len(line) <= LONGEST and not _CONTROL.search(line):
        return Secret(line)
    raise BmcError(bmc.host, f"the command of {PASSWORD_COMMAND} printed no password: {_why(status, line, err)}")


def _why(status: int | None, line: str, err: str) -> str:
    if status is None:
        return "it did not end in time"
    if status != 0:
        hint = bmc_text((err.strip().splitlines() or [""])[-1], [Secret(line)])
        return f"it ended with status {status}" + (f": {hint}" if hint else "")
    return "its first line is too long, or contains a control character" if line else "its first line is empty"


def _run(bmc: Bmc, timeout_s: float) -> tuple[int | None, str, str]:
    """The command's exit status (``None`` at its time limit) and what it printed, standard error apart."""
    process = subprocess.Popen(
        ["/bin/sh", "-c", bmc.password_command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "HOSTWRIGHT_HOST": bmc.host},
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        return None, "", ""
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):  # the latter on macOS, if all have ended
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")
