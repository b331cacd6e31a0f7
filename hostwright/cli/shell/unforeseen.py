"""Reports internal errors: a message for the operator, and a file with details for developers."""

from __future__ import annotations

import gc
import os
import platform
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from hostwright import __version__
from hostwright.cli.shell import streams
from hostwright.cli.shell.advice import current
from hostwright.cli.shell.libraries import lacking
from hostwright.common import places, userpaths
from hostwright.common.errors import InputError
from hostwright.common.places import PRIVATE_FILE, make_folder, state_root, write_whole

REPORTS = "reports"  #: folder in the state directory with reports of internal errors
HIDDEN = "***"
#: options whose values are omitted from reports, because a value may be secret
_VALUES_HIDDEN = ("--var", "--command", "--token")


def sentence_of(error: Exception, words: Sequence[str] | None = None) -> str:
    """Return the message for an unexpected ``error``. ``words`` is the command line, by default ``sys.argv``.

    An error of this machine, such as a full disk, is described in the message. Any other error is a bug: its details
    are written to a file, and the message names this file.
    """
    if isinstance(error, streams.Closed):
        return str(error)
    if isinstance(error, OSError) and places.to_blame(error):
        instead = places.ANOTHER_STATE if _in_state(error.filename) else ""
        return f"{error.filename or 'standard output'}: {places.refused(error, instead)}"
    if isinstance(error, FileNotFoundError) and error.filename is None and not _is_somewhere():
        return userpaths.GONE
    if sentence := lacking(error):
        return sentence
    what = f"internal error: {type(error).__name__} at {place_of(error)}"
    try:
        place = _write(error, sys.argv if words is None else words)
    except Exception as failed:  # noqa: BLE001 - the message must appear in any case
        return f"{what}; no report could be written: {type(failed).__name__}: {failed}"
    return f"{what}; attach {place}, which contains no secrets, to a bug report"


def _is_somewhere() -> bool:
    try:
        userpaths.working_directory()
    except InputError:
        return False
    return True


def _in_state(file: object) -> bool:
    with suppress(InputError):  # without a home directory, the state directory is unknown
        return isinstance(file, str) and Path(file).is_relative_to(state_root())
    return False


def place_of(error: BaseException, file: Path | None = None) -> str:
    """Return the file and line that raised ``error``. With ``file``, return the innermost line in this file instead."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    passed = traceback.extract_tb(error.__traceback__)
    frames = [frame for frame in passed if file is None or frame.filename == str(file)]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else str(file or "an unknown place")


def _write(error: Exception, words: Sequence[str]) -> Path:
    now = datetime.now(UTC)
    folder = state_root() / REPORTS
    make_folder(folder)
    path = folder / f"{now:%Y%m%dT%H%M%S}-{os.getpid()}.txt"
    text = "\n".join(
        (
            f"Hostwright {__version__}, Python {platform.python_version()}, {platform.platform()}",
            f"{now:%Y-%m-%d %H:%M:%S} UTC: {' '.join(shown_words(words))}",
            "",
            _without_secrets("".join(traceback.format_exception(error))),
        )
    )
    write_whole(path, text.encode("utf-8", "backslashreplace"), PRIVATE_FILE)
    return path


def shown_words(words: Sequence[str]) -> list[str]:
    """Return the words of a command line, with possibly secret values replaced by ``***``."""
    shown: list[str] = []
    hidden = False
    for word in words:
        option, sign, _ = word.partition("=")
        if hidden:
            shown.append(HIDDEN)
        elif option in _VALUES_HIDDEN and sign:
            shown.append(f"{option}={HIDDEN}")
        else:
            shown.append(word)
        hidden = not hidden and option in _VALUES_HIDDEN and not sign
    return shown


def _without_secrets(text: str) -> str:
    from hostwright.apply.journal.redaction import Redactor
    from hostwright.common.input.passwordcommand import at_hand
    from hostwright.common.secret import Secret

    held = {each for each in gc.get_objects() if isinstance(each, Secret) and at_hand(each)}
    given = {Secret(pair.partition("=")[2]) for pair in current().request.var}
    return Redactor(held | given).text(text)
