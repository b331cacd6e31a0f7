"""Restore the lines that a tool printed: remove prefixes that loggers added, and join wrapped lines."""

from __future__ import annotations

from hostwright.common.untrusted import Pattern

WIDTH = 80  #: width in columns at which terminals and tools wrap lines
#: minimum number of characters of a line for the next, indented line to continue it. Shorter lines are headings.
LEAST = 40

#: pattern of terminal colour codes. Logs may omit the escape character, and rsyslog writes ``#033`` instead.
_COLOURS = Pattern(r"(?:\x1b|#033)\[[0-9;?]{0,16}[A-Za-z]|\[[0-9]{1,2}(?:;[0-9]{1,3}){0,4}m")
#: pattern of the end of each line in the json-file log of a container engine
_JSON_LOG = Pattern(r"\\n\",\"stream\":\"std(?:out|err)\",\"time\":\"[^\"\n]{1,40}\"\}")
#: pattern of line ends that rsyslog, Go or JSON escaped
_ENDS = Pattern(r"#012|\r\n?|\\{1,8}n([a-z]?)")
_TABS = Pattern(r"#011|\\{1,8}t([a-z]?)")
_QUOTES = Pattern(r"\\{1,8}\"")
_DATE = (
    r"(?:[A-Z][a-z]{2} {1,2}[0-9]{1,2} [0-9:]{8}"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:]{8}[0-9.,]{0,10}(?:Z|[+-][0-9:]{4,6})?)"
)
#: pattern of the prefix of a log line, such as a date or log level
_PREFIX = Pattern(
    rf"(?:{_DATE}\s{{1,4}}(?:[\w.-]{{1,64}} [\w./@()-]{{1,64}}(?:\[[0-9]{{1,10}}\])?: )?"
    r"|#[0-9]{1,4} [0-9.]{1,9} |[0-9]{1,5}\.[0-9]{1,3} {1,9}|[0-9]{2}:[0-9]{2}:[0-9]{2} |\{\"log\":\"|<[0-9]{1,3}>"
    r"|\[ {0,8}[0-9]{1,8}\.[0-9]{6}\] ?|\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9:]{14,17}\] ?){1,4}"
)
_TAG = Pattern(r"([A-Z]{4}): [a-z(]")  #: pattern of the tag that a driver repeats on each line of a message
TAG_CHARACTERS = 7
_LEVELS = {"INFO", "WARN", "NOTE", "HINT"}  #: log levels that look like a driver's tag


def unwrapped(output: str) -> tuple[str, ...]:
    """Return ``output`` with one line for each line that the tool printed, in one or two forms.

    The forms differ if lines were cut at the width of a terminal: between words, or within a word.
    """
    text = _COLOURS.sub("", _JSON_LOG.sub("", output))
    text = _QUOTES.sub('"', _but_names(_TABS, "", _but_names(_ENDS, "\n", text)))
    return tuple(dict.fromkeys(_joined(text.split("\n"))))


def _but_names(escapes: Pattern, replacement: str, text: str) -> str:
    parts, end = [], 0
    for match in escapes.finditer(text):
        if not match[1]:
            parts += [text[end : match.start()], replacement]
            end = match.end()
    return "".join([*parts, text[end:]])


def _joined(lines: list[str]) -> tuple[str, str]:
    spaced: list[str] = []
    glued: list[str] = []
    last = raw = ""
    for shown in lines:
        prefix, tag = _prefix(shown)
        line = shown[prefix:]
        cut = not prefix and _did_not_fit(raw, shown)
        if last.strip() and line.strip() and (cut or tag or _indented(last, line)):
            spaced += [" ", line.strip()]
            glued += ["" if cut and len(raw) in {WIDTH - 1, WIDTH} else " ", line.strip()]
        else:
            spaced += ["\n", line]
            glued += ["\n", line]
        last, raw = line, shown
    return "".join(spaced[1:]), "".join(glued[1:])


def _prefix(line: str) -> tuple[int, bool]:
    match = _PREFIX.match(line) if line else None
    length = match.end() if match else 0
    tag = _TAG.match(line[length : length + TAG_CHARACTERS])
    return (length + TAG_CHARACTERS - 1, True) if tag and tag[1] not in _LEVELS else (length, False)


def _did_not_fit(raw: str, line: str) -> bool:
    word = line.lstrip()[:WIDTH].partition(" ")[0]
    return len(raw) <= WIDTH < len(raw) + 1 + len(word)


def _indented(last: str, line: str) -> bool:
    return line[0].isspace() and len(last) >= LEAST
