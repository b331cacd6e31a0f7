"""Parts of the project's documents that tests verify: code blocks, command lines, links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.places import PROJECT

_PAGES = tuple(sorted(str(path.relative_to(PROJECT)) for path in PROJECT.glob("docs/**/*.md")))
NAMES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", *_PAGES)

_FENCE = re.compile(r"^```([\w-]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PROMPT = re.compile(r"^(?P<host>\w+#|\$) (?P<text>.*)$")
_STATUS = re.compile(r"# exits with (\d+)")
_SPAN = re.compile(r"`([^`]+)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block; ``line`` is the line of its fence."""

    document: str
    line: int
    language: str
    text: str

    @property
    def file(self) -> str:
        """The file name in a comment on the block's first line (``# roles/motd.py``), or empty."""
        match = re.match(r"# ([\w./-]+\.\w+)\n", self.text)
        return match[1] if match else ""


@dataclass(frozen=True, slots=True)
class Command:
    """One command line of a ``console`` block: for root on ``host``; with an empty ``host``, for a user on this
    machine.
    """

    document: str
    line: int
    host: str
    text: str
    status: int

    def __str__(self) -> str:
        return f"{self.document}:{self.line}: {self.text}"


def text_of(document: str) -> str:
    """The text of a document."""
    return (PROJECT / document).read_text("utf-8")


def blocks(document: str) -> Iterator[Block]:
    """The fenced blocks of a document, in order."""
    text = text_of(document)
    for match in _FENCE.finditer(text):
        yield Block(document, text.count("\n", 0, match.start()) + 1, match[1], match[2])


def commands(document: str) -> Iterator[Command]:
    """The command lines of a document's ``console`` blocks, in order; other lines in these blocks are output."""
    for block in blocks(document):
        if block.language != "console":
            continue
        for number, line in enumerate(block.text.splitlines(), block.line + 1):
            if match := _PROMPT.match(line):
                said = _STATUS.search(line)
                host = match["host"].rstrip("#$")
                yield Command(document, number, host, match["text"], int(said[1]) if said else 0)


def mentions_of_invoke(document: str) -> Iterator[str]:
    """The text after ``invoke`` in command lines and in inline code."""
    prose = _FENCE.sub("", text_of(document))
    spans = [span for span in _SPAN.findall(prose) if re.match(r"(\S+=\S+ )?invoke ", span)]
    lines = [command.text.partition("#")[0] for command in commands(document)]
    for one in (*spans, *(line for line in lines if line.startswith("invoke "))):
        yield one.partition("invoke ")[2].strip()


def links(document: str) -> Iterator[str]:
    """The targets of a document's links and images."""
    yield from _LINK.findall(_FENCE.sub("", text_of(document)))


def anchors(document: str) -> set[str]:
    """The anchors of a document's headings, as GitHub generates them."""
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", text_of(document)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
