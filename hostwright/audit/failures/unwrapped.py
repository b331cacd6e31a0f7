"""A tool's output as the tool meant it: without what loggers put before each line, and with wrapped lines joined.

Patterns are searched for in both forms, since a prefix may be part of a message (a driver's tag), and a joined line may
not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

WIDTH = 80  #: columns of a terminal at which tools and people's consoles wrap
LEAST = 40  #: of a line, for an indented one to continue it: tools indent lists below shorter headings

#: colours, as escape codes, as rsyslog writes these, and where only the escape character was lost
_COLOURS = re.compile(r"(?:\x1b|#033)\[[0-9;?]{0,16}[A-Za-z]|\[[0-9]{1,2}(?:;[0-9]{1,3}){0,4}m")
#: the end of a line of a container engine's json-file log
_JSON_LOG = re.compile(r"\\n\",\"stream\":\"std(?:out|err)\",\"time\":\"[^\"\n]{1,40}\"\}")
#: ends of lines within a line: rsyslog's, and those of Go and JSON, which quote each other several times
_ENDS = re.compile(r"#012|\\{1,8}n(?![a-z])|\r\n?")
_QUOTES = re.compile(r"\\{1,8}(?=\")|#011|\\{1,8}t(?![a-z])")
_DATE = (
    r"(?:[A-Z][a-z]{2} {1,2}[0-9]{1,2} [0-9:]{8}"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:]{8}[0-9.,]{0,10}(?:Z|[+-][0-9:]{4,6})?)"
)
#: syslog, journalctl, containers' and builders' logs: date, host, program; dmesg: seconds or date; the level
_PREFIX = re.compile(
    rf"(?:{_DATE}\s{{1,4}}(?:[\w.-]{{1,64}} [\w./@()-]{{1,64}}(?:\[[0-9]{{1,10}}\])?: )?"
    r"|#[0-9]{1,4} [0-9.]{1,9} |[0-9]{1,5}\.[0-9]{1,3} {1,9}|[0-9]{2}:[0-9]{2}:[0-9]{2} |\{\"log\":\"|<[0-9]{1,3}>"
    r"|\[ {0,8}[0-9]{1,8}\.[0-9]{6}\] ?|\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9:]{14,17}\] ?"
    r"|(?!INFO|WARN|NOTE|HINT)[A-Z]{4}: (?=[a-z(])){1,4}"  # a driver's tag on each line of one sentence
)
_TAG = re.compile(r"[A-Z]{4}: $")


def unwrapped(output: str) -> tuple[str, ...]:
    """``output`` with one line for each line that the tool meant; twice where lines as wide as a terminal do not tell
    whether they were cut between words or within one.
    """
    text = _QUOTES.sub("", _ENDS.sub("\n", _COLOURS.sub("", _JSON_LOG.sub("", output))))
    lines = text.split("\n")
    return tuple(dict.fromkeys("\n".join(_joined(lines, glue)) for glue in (" ", "")))


def _joined(lines: list[str], glue: str) -> Iterator[str]:
    whole: list[str] = []
    last = raw = ""  #: the line before this one, without its prefix and as it was shown
    for shown in lines:
        prefix = _PREFIX.match(shown)
        line = shown[prefix.end() :] if prefix else shown
        cut = not prefix and _did_not_fit(raw, shown)
        if last.strip() and line.strip() and (cut or _belongs(last, line, prefix)):
            whole.append((glue if cut and len(raw) in {WIDTH - 1, WIDTH} else " ") + line.strip())
        else:
            if whole:
                yield "".join(whole)
            whole = [line]
        last, raw = line, shown
    yield "".join(whole)


def _did_not_fit(raw: str, line: str) -> bool:
    """Whether the first word of a line had no place at the end of the line before it, on a terminal."""
    word = line.lstrip()[:WIDTH].partition(" ")[0]
    return len(raw) <= WIDTH < len(raw) + 1 + len(word)


def _belongs(last: str, line: str, prefix: re.Match[str] | None) -> bool:
    """Whether a line is indented below the line before it, or is the rest of a driver's sentence."""
    return (line[0].isspace() and len(last) >= LEAST) or (prefix is not None and _TAG.search(prefix[0]) is not None)
