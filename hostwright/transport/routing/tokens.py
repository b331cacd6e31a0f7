"""The tokens of ``ssh_config`` (``%h``, ``${NAME}``, ``~``) in what ``ssh -G`` leaves as it was written."""

from __future__ import annotations

import getpass
import hashlib
import os
import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hostwright.common.errors import InputError
from hostwright.common.userpaths import expanded

_TOKEN = re.compile(r"%(.?)|\$\{([^}]*)\}", re.DOTALL)
#: what is the user's, who in a container may have neither a name nor a directory
_USER: Mapping[str, Callable[[], object]] = {"d": Path.home, "u": getpass.getuser}


@dataclass(frozen=True, slots=True)
class Tokens:
    """What the tokens stand for, for one server."""

    host: str
    port: int
    user: str
    asked: str
    jump: str = ""
    alias: str = ""

    def value(self, token: str) -> str | None:
        """What one letter stands for; ``None`` for a letter that no file name takes."""
        if token in ("L", "l", "C"):  # the only ones for which this machine's name is needed
            here = socket.gethostname()
            all_of_them = f"{here}{self.host}{self.port}{self.user}{self.jump}"
            digest = hashlib.sha1(all_of_them.encode(), usedforsecurity=False).hexdigest()
            return {"l": here, "L": here.partition(".")[0], "C": digest}[token]
        if user := _USER.get(token):
            try:
                return str(user())
            except (RuntimeError, KeyError, OSError):
                return None
        return {
            "%": "%",
            "h": self.host,
            "i": str(os.getuid()),
            "j": self.jump,
            "k": self.alias or self.asked,
            "n": self.asked,
            "p": str(self.port),
            "r": self.user,
        }.get(token)

    def filled(self, text: str, more: Mapping[str, str] | None = None) -> str:
        """The text with its tokens filled in; ``more`` are those of its setting alone. Raises ``InputError``."""

        def one(match: re.Match[str]) -> str:
            if match[2] is not None:
                known = os.environ.get(match[2])
            else:
                known = (more or {}).get(match[1]) or self.value(match[1])
            if known is None:
                raise InputError(f"ssh_config says {text!r}, and {match[0]!r} in it cannot be filled in")
            return known

        return _TOKEN.sub(one, text)

    def path(self, text: str) -> Path:
        """A file's name."""
        return expanded(self.filled(text))

    def paths(self, setting: str, text: str) -> tuple[Path, ...]:
        """The files of a setting, separated by space. Raises ``InputError`` for one that is not absolute: ``ssh -G``
        prints a name with a space in it like two."""
        found = tuple(self.path(name) for name in text.split() if name.lower() != "none")
        for path in found:
            if not path.is_absolute():
                raise InputError(
                    f"ssh_config names {str(path)!r} as {setting}, which is no absolute path: file names that are "
                    "relative or contain a space are not understood"
                )
        return found
