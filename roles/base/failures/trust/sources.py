"""Parser of apt's sources in both file formats (sources.list(5))."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from hostwright.roles import Pattern

_LIST_LINE = Pattern(r"\s*deb(?:-src)?\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)")
_CREDENTIALS = Pattern(r"//[^/\s]+@")
_FIELD = Pattern(r"([A-Za-z-]+)\s*:\s*(.*)")


@dataclass(frozen=True, slots=True)
class Source:
    """Repository in apt's sources, with its file and line. ``signed_by``: keyrings or other values of Signed-By."""

    file: str
    line: int
    uri: str
    suite: str
    signed_by: tuple[str, ...]
    text: str

    @property
    def local(self) -> bool:
        return self.uri.startswith(("file:", "copy:"))

    @property
    def path(self) -> str:
        return _path(self.uri).rstrip("/")

    @property
    def place(self) -> tuple[str, str]:
        """Address and suite, equal for entries that apt treats as one repository."""
        address = f"file:{self.path}" if self.local else self.uri.rstrip("/").lower()
        return address, self.suite.strip("/")

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {_CREDENTIALS.sub('//', self.text.strip())}"


def parsed(file: str, numbered: Iterable[tuple[int, str]]) -> Iterator[Source]:
    """Yield the enabled repositories in ``file``. ``numbered``: pairs of line number and line."""
    return _stanzas(file, numbered) if file.endswith(".sources") else _lines(file, numbered)


def _lines(file: str, numbered: Iterable[tuple[int, str]]) -> Iterator[Source]:
    for number, text in numbered:
        if match := _LIST_LINE.match(text):
            options = dict(word.lower().partition("=")[::2] for word in (match[1] or "").split())
            exact = dict(zip(options, (word.partition("=")[2] for word in (match[1] or "").split()), strict=False))
            yield Source(file, number, match[2], match[3], _names(exact.get("signed-by", "")), text)


def _stanzas(file: str, numbered: Iterable[tuple[int, str]]) -> Iterator[Source]:
    stanza: dict[str, str] = {}
    first, field = 0, ""
    for number, text in [*numbered, (0, "")]:
        if not text.strip():
            yield from _stanza(file, first, stanza)
            stanza, field = {}, ""
        elif text.startswith("#"):
            continue
        elif text[0] in " \t":
            stanza[field] = f"{stanza.get(field, '')} {text.strip()}"
        elif match := _FIELD.match(text):
            field = match[1].lower()
            stanza[field] = match[2].strip()
            first = number if field == "uris" else first


def _stanza(file: str, line: int, fields: Mapping[str, str]) -> Iterator[Source]:
    if fields.get("enabled", "yes").lower() in {"no", "false", "off", "0", "without", "disable"}:
        return
    for uri in fields.get("uris", "").split():
        for suite in fields.get("suites", "/").split():
            text = f"URIs: {uri}" + (" Trusted=yes" if fields.get("trusted", "").lower() == "yes" else "")
            yield Source(file, line, uri, suite, _names(fields.get("signed-by", "")), text)


def _names(signed_by: str) -> tuple[str, ...]:
    if "BEGIN PGP" in signed_by:
        return ("BEGIN PGP",)
    return tuple(sorted(signed_by.replace(",", " ").split()))


def _path(uri: str) -> str:
    try:
        return urlsplit(uri).path
    except ValueError:
        return ""
