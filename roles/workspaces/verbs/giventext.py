"""Rewording of errors in a text that a task would write: the errors name task options instead of line numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher

from hostwright.roles import InputError, InputErrors

#: inventory field → different name of the task option; empty: no option
OPTIONS = {"mounts": "mount", "environment": "env", "versions": "", "live": ""}
_IN_WORKSPACE = re.compile(r"workspaces\.containers\.([^.:]+)(?:\.([a-z_]+)[^:]*)?: (.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class GivenText:
    """New text for an inventory file, and current text of the file."""

    place: str  #: path of the temporary file with the new text of the inventory
    text: str
    file: str
    before: str  #: current text of the inventory file

    def reworded(self, error: InputError) -> InputError:
        """Return ``error`` with the line number in the current file, or with the task option that produced a new
        line.
        """
        if isinstance(error, InputErrors):
            return InputErrors([self._told(str(each)) for each in error.errors])
        return self._told(str(error))

    def _told(self, sentence: str) -> InputError:
        place = re.match(rf"{re.escape(self.place)}:(\d+)((?::\d+)?): (.*)", sentence, re.DOTALL)
        if place is None:
            return InputError(sentence.replace(self.place, self.file))
        line, what = self._lines().get(int(place[1])), place[3].replace(self.place, self.file)
        if line is not None:
            return InputError(what, f"{self.file}:{line}{place[2]}")
        if (of := _IN_WORKSPACE.match(what)) is None:
            return InputError(what, self.file)
        name, field, wrong = of.groups()
        # The user did not pass the name that the error contains.
        if not field and re.search(rf"\b{re.escape(name)}['\"]?:", self.before):
            return InputError(f"{name}: {wrong}", self.file)
        option = OPTIONS.get(field, field).replace("_", "-") if field else ""
        return InputError(wrong, f"--{option}" if option else f"--name {name}")

    def _lines(self) -> dict[int, int]:
        same = SequenceMatcher(None, self.text.splitlines(), self.before.splitlines(), autojunk=False)
        return {
            block.a + offset + 1: block.b + offset + 1
            for block in same.get_matching_blocks()
            for offset in range(block.size)
        }
