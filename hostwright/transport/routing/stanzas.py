"""Groups hosts by the ``Host`` lines of ``ssh_config`` that apply to them; OpenSSH reads the settings themselves."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

#: pattern for the first line of a stanza; the keyword may be in quotes
_BEGINS = re.compile(rb"(?im)^[^#a-z\n]*(host|match)(?![a-z])[ \t]*=?[ \t]*([^\n]*)$")
_PATTERNS = re.compile(rb"[\w.:*?! \t-]+")
_EVERYONE = re.compile(rb"(?i)(?:(?:final|canonical)[ \t]+)?all")
_BY_TOKEN = re.compile(rb"(?im)^[^#a-z\n]*include\b[^\n]*%")
#: pattern for a host name that is not a short IP address (``127.1``)
_NAME = re.compile(r"(?:[a-z0-9_-]+\.)*[a-z_][a-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class Stanzas:
    """The ``Host`` lines of all ``ssh_config`` files that OpenSSH reads, numbered."""

    #: host name → numbers of the ``Host`` lines with this name
    named: dict[str, tuple[int, ...]]
    #: two patterns for each ``Host`` line with wildcards: matching names and excluded names
    patterns: tuple[tuple[re.Pattern[str], re.Pattern[str] | None], ...]
    final: bool  #: whether OpenSSH reads the files a second time, for ``Match final``

    @classmethod
    def read(cls, files: Sequence[str]) -> Stanzas | None:
        """Parse the ``files`` that OpenSSH read; ``None`` if settings may depend on more than ``Host`` lines."""
        named: dict[str, tuple[int, ...]] = {}
        patterns: list[tuple[re.Pattern[str], re.Pattern[str] | None]] = []
        final = False
        try:
            text = b"\n".join(Path(file).read_bytes() for file in files)
        except OSError:
            return None
        if not files or b"\0" in text or _BY_TOKEN.search(text):
            return None
        for number, match in enumerate(_BEGINS.finditer(text)):
            value = match[2].strip(b" \t\r\f")
            if match[1].lower() == b"match":
                if not _EVERYONE.fullmatch(value):
                    return None
                final = final or value[:1] in b"fF"
                continue
            if not _PATTERNS.fullmatch(value):
                return None
            words = value.decode("ascii").split()
            if any(mark in word for word in words for mark in "*?!"):
                unwanted = [word[1:] for word in words if word.startswith("!")]
                wanted = [word for word in words if not word.startswith("!")]
                patterns.append((_any(wanted), _any(unwanted) if unwanted else None))
            else:
                for word in set(words):
                    named[word] = (*named.get(word, ()), number)
        return cls(named, tuple(patterns), final)

    def applying(self, name: str) -> tuple[tuple[int, ...], tuple[bool, ...]] | None:
        """Return a key that is equal for hosts with the same ``Host`` lines.

        ``None`` for a name that OpenSSH may print in another form.

        >>> import re
        >>> stanzas = Stanzas({"login1": (0,)}, ((re.compile("gpu.*"), None),), False)
        >>> stanzas.applying("gpu01") == stanzas.applying("gpu02") != stanzas.applying("login1")
        True
        """
        if not _NAME.fullmatch(name) and not _is_address(name):
            return None
        return self.named.get(name, ()), tuple(
            bool(wanted.fullmatch(name)) and not (unwanted and unwanted.fullmatch(name))
            for wanted, unwanted in self.patterns
        )


def _any(words: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(word).replace(r"\*", ".*").replace(r"\?", ".") for word in words) or r"(?!)")


def _is_address(name: str) -> bool:
    try:
        return str(ipaddress.IPv4Address(name)) == name
    except ValueError:
        return False
