"""Executable inventories: programs that print Ansible's JSON when called with ``--list``."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from hostwright.common.errors import InputError
from hostwright.common.input.validation import describe
from hostwright.common.input.yamlfile import Origin
from hostwright.common.text import shown_limit
from hostwright.inventory.draft import Draft, Values, concealed, group_level
from hostwright.inventory.model import ALL, HOST_LEVEL, Value

TIMEOUT_S = 120.0  #: time limit in seconds of an inventory program, which may call a slow cloud API
SIGN_OF_LIFE_S = 10.0  #: interval in seconds between messages that a program is still running
#: maximum size in bytes of an inventory program's output. An inventory of 100,000 hosts with 2 KiB each fits.
MAX_ANSWER = 256 * 1024 * 1024
_POLL_S = 0.05
_LINE_BYTES = 256  #: maximum number of bytes to read of a ``#!`` line. The kernel reads 255 bytes (execve(2)).

Tell = Callable[[str], None]


class CannotBeRun(InputError):
    """The kernel cannot run an inventory file, although the file is executable."""


class ProgramFailed(InputError):
    """An inventory program timed out, or exited with a nonzero status."""


def read_executable(path: Path, draft: Draft, tell: Tell) -> None:
    """Run the inventory program ``path`` and add its output to ``draft``. Raises ``InputError`` if the
    program fails.
    """
    answer = ask([str(path.resolve()), "--list"], str(path), tell)
    origin = Origin(str(path))
    meta = answer.pop("_meta", None)
    for name, body in answer.items():
        _group(name, {"hosts": body} if isinstance(body, list) else body, origin, draft)
    hostvars = meta.get("hostvars", {}) if isinstance(meta, dict) else None
    if hostvars is None:  # Older programs need one call for each host.
        hostvars = {host: ask([str(path.resolve()), "--host", host], str(path), tell) for host in list(draft.hosts)}
    for host in [name for name in hostvars if name in draft.hosts]:
        values = _values(hostvars[host], HOST_LEVEL, origin, draft, f"_meta.hostvars.{host}")
        draft.add_hosts(draft.group(ALL, origin), host, values, origin)


def _has_windows_lines(program: Path) -> bool:
    """Return whether the ``#!`` line of ``program`` ends with a carriage return, so that the interpreter is
    not found.
    """
    try:
        with program.open("rb") as file:
            return file.readline(_LINE_BYTES).endswith(b"\r\n")
    except OSError:
        return False


def ask(command: list[str], where: str, tell: Tell, folder: Path | None = None) -> dict[str, Any]:
    """Run ``command`` in the directory ``folder``, if given, and return the JSON object that the command prints.

    The command has no terminal. The time and the size of the output are limited. ``where`` names the command in
    messages.
    """
    shown = f"`{' '.join([Path(command[0]).name, *command[1:]])}`"
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=folder, start_new_session=True
            )
        except OSError as error:
            why = f"{error.strerror}; an inventory program needs a #! line"
            if _has_windows_lines(Path(command[0])):
                why = f"it has Windows line endings; `sed -i 's/\\r$//' {command[0]}` fixes them"
            raise CannotBeRun(f"cannot be run: {why}", where) from error
        try:
            _wait(process, out, f"{where}: {shown}", tell)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        out.seek(0)
        err.seek(0)
        return _answer(process.returncode, out.read(), err.read(), shown, where)


def _wait(process: subprocess.Popen[bytes], out: IO[bytes], what: str, tell: Tell) -> None:
    began = reported_at = time.monotonic()
    while process.poll() is None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_POLL_S)
        now = time.monotonic()
        if os.fstat(out.fileno()).st_size > MAX_ANSWER:
            raise InputError(f"{what} printed more than {MAX_ANSWER // 1024**2} MiB")
        if now - began > TIMEOUT_S:
            raise ProgramFailed(f"{what} did not answer within {shown_limit(TIMEOUT_S)}")
        if now - reported_at >= SIGN_OF_LIFE_S:
            reported_at = now
            tell(f"{what} has not answered yet ({shown_limit(now - began)} of at most {shown_limit(TIMEOUT_S)})")


def _answer(status: int, out: bytes, err: bytes, shown: str, where: str) -> dict[str, Any]:
    if status != 0:
        last = err.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise ProgramFailed(f"{shown} ended with status {status}: {(last or ['no message'])[0]!r}", where)
    try:
        answer = json.loads(out)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{shown} did not print JSON: {error}", where) from error
    if not isinstance(answer, dict):
        raise InputError(f"{shown} printed {describe(answer)}, expected a JSON object", where)
    return answer


def _group(name: str, body: Any, origin: Origin, draft: Draft) -> None:
    if not isinstance(body, dict):
        draft.fail(origin, f"the group {name}: found {describe(body)}, expected an object or a list of hosts")
        return
    # As in Ansible, a group without these keys is a host with variables.
    if not body.keys() & {"hosts", "vars", "children"}:
        body = {"hosts": [name], "vars": body} if body else body
    group = draft.group(name, origin)
    for host in _names(body.get("hosts"), f"the hosts of {name}", origin, draft):
        draft.add_hosts(group, host, {}, origin)
    for child in _names(body.get("children"), f"the children of {name}", origin, draft):
        draft.group(child, origin)
        group.children[child] = origin
    values = _values(body.get("vars"), group_level(name), origin, draft, f"the vars of {name}")
    if values:
        group.layers.append(values)


def _names(listed: Any, what: str, origin: Origin, draft: Draft) -> list[str]:
    names = list(listed) if isinstance(listed, (list, dict)) else []
    is_list = listed is None or isinstance(listed, (list, dict))
    if not is_list or not all(isinstance(name, str) for name in names):
        draft.fail(origin, f"{what}: found {describe(listed)}, expected a list of names")
        return []
    return names


def _values(mapping: Any, level: str, origin: Origin, draft: Draft, what: str) -> Values:
    if mapping is None:
        return {}
    if not isinstance(mapping, dict):
        draft.fail(origin, f"{what}: found {describe(mapping)}, expected an object")
        return {}
    return {name: Value(concealed(name, value), origin, level) for name, value in mapping.items()}
