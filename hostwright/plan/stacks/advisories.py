"""Stores the lowest versions with security fixes from an operator's bulletins, in addition to roles' advisories."""

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
    """Store the lowest fixed versions in the security bulletins below ``folder``, in place of all versions stored
    before.

    Raises ``InputError`` for a directory without bulletins, or if the versions cannot be stored.
    """
    read = read_bulletins(folder, combined(role.advisories for role in roster.roles))
    file = state_root() / FILE
    try:
        make_folder(file.parent)
        write_whole(file, advisories_text(read.advisories))
    except OSError as error:
        raise InputError(
            f"the security advisories cannot be stored: {refused(error, ANOTHER_STATE)}", str(file)
        ) from error
    return read
