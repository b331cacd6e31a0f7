"""The security floors of bulletins that an operator fetched, kept on this machine beside what roles know."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hostwright.common.errors import InputError
from hostwright.common.places import ANOTHER_STATE, make_folder, refused, state_root, write_whole
from hostwright.stack.ages import FILE, advisories_text, combined
from hostwright.stack.bulletins import Read, read_bulletins

if TYPE_CHECKING:
    from hostwright.plan.targets import Roster


def keep_bulletins(roster: Roster, folder: Path) -> Read:
    """Read the bulletins below a directory and keep their floors, in place of those of an earlier directory.

    Raises ``InputError`` for a directory without bulletins, or where nothing can be kept.
    """
    read = read_bulletins(folder, combined(role.advisories for role in roster.roles))
    file = state_root() / FILE
    try:
        make_folder(file.parent)
        write_whole(file, advisories_text(read.advisories))
    except OSError as error:
        raise InputError(f"the advisories cannot be kept: {refused(error, ANOTHER_STATE)}", str(file)) from error
    return read
