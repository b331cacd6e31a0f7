"""What nobody foresaw: one sentence for the operator, and a report file for those who mend it."""

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

REPORTS = "reports"  #: the folder of reports in the state directory
HIDDEN = "***"
#: options whose values are never written down: what people set with them may be a secret
_VALUES_HIDDEN = ("--var", "--command", "--token")


def sentence_of(error: Exception, words: Sequence[str] | None = None) -> str:
    """What the operator reads of an error that no code expected; ``words`` are those of the call.

    What this machine refuses (a full disk, a read-only directory) is said as it is. Anything else is a mistake in
    Hostwright, or in a task or role of the site: a report is written, and the sentence says where.
    """
    if isinstance(error, streams.Closed):
        return str(error)
    if isinstance(error, OSError) and places.to_blame(error):
        instead = places.ANOTHER_STATE if _in_state(error.filename) else ""
        return f"{error.filename or 'what is printed'}: {places.refused(error, instead)}"
    if isinstance(error, FileNotFoundError) and error.filename is None and not _is_somewhere():
        return userpaths.GONE
    if sentence := lacking(error):
        return sentence
    what = f"Hostwright met something that it does not expect: {type(error).__name__} at {place_of(error)}"
    try:
        place = _write(error, sys.argv if words is None else words)
    except Exception as failed:  # noqa: BLE001 - whatever it is, the sentence must come
        return f"{what}; no report of it could be written: {type(failed).__name__}: {failed}"
    return f"{what}; {place} says more, without secrets: pass it on with a bug report"


def _is_somewhere() -> bool:
    try:
        userpaths.working_directory()
    except InputError:
        return False
    return True


def _in_state(file: object) -> bool:
    with suppress(InputError):  # there is no home directory, and so no state in it
        return isinstance(file, str) and Path(file).is_relative_to(state_root())
    return False


def place_of(error: BaseException, file: Path | None = None) -> str:
    """File and line where an error was raised: the innermost of ``file``, where one is named."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    passed = traceback.extract_tb(error.__traceback__)
    frames = [frame for frame in passed if file is None or frame.filename == str(file)]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else str(file or "an unknown place")


def _write(error: Exception, words: Sequence[str]) -> Path:
    """Write the report; its path. Raises ``OSError`` and ``InputError``."""
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
    """The words of a call without the values that may be secret."""
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
    """A text without any secret that this process holds, and without the values of ``--var``."""
    from hostwright.apply.journal.redaction import Redactor
    from hostwright.common.input.passwordcommand import at_hand
    from hostwright.common.secret import Secret

    held = {each for each in gc.get_objects() if isinstance(each, Secret) and at_hand(each)}
    given = {Secret(pair.partition("=")[2]) for pair in current().request.var}
    return Redactor(held | given).text(text)
