"""Which of apt's sources hold certain texts: one ``grep`` over their files for all who ask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hostwright.common.quoting import sh
from hostwright.plan.model import Answer, PassPart

#: apt's sources of one line each, and those in stanzas
LISTS_READ = "/etc/apt/sources.list /etc/apt/sources.list.d/*.list"
STANZAS_READ = "/etc/apt/sources.list.d/*.sources"


def naming(texts: Sequence[str], files: str) -> str:
    """The command that prints ``FILE:LINE`` for each line of the files that holds one of the texts."""
    return f"grep -HsF {' '.join(sh('-e %s', text) for text in texts)} -d skip -D skip -- {files}"


@dataclass(frozen=True, slots=True)
class SourcePass:
    """The texts, wherever in apt's sources. One that stands in stanzas is asked for alone: they may be disabled."""

    fails_with: int = 2  #: there is no such file

    def script(self, asked: Sequence[str]) -> str:
        """See ``plan.model.Pass``. It also reads one of the texts: a ``grep`` that has not found that does not work."""
        return "\n".join([f"{naming(asked, f'{LISTS_READ} {STANZAS_READ} -')} <<'END'", asked[0], "END"])

    def differing(self, word: str) -> str:  # noqa: ARG002 - of any of the texts
        """What begins a line of a file of stanzas."""
        return ".sources:"

    def found(self, asked: Sequence[str], text: str) -> Mapping[str, str]:
        """For each text the lines of all: they stay in the order of the files."""
        own = f"(standard input):{asked[0]}\n"
        if not text.endswith(own):
            raise ValueError("not what grep prints")
        return dict.fromkeys(asked, text.removesuffix(own))


SOURCES = SourcePass()


def named_in_lists(texts: Sequence[str]) -> PassPart:
    """The lines of lists that hold one of the texts, as ``naming`` prints them."""

    def read(found: Mapping[str, str]) -> Answer:
        lines = found[texts[0]].splitlines(keepends=True)
        return Answer(0, "".join(line for line in lines if any(text in line.partition(":")[2] for text in texts)))

    return PassPart(SOURCES, tuple(texts), read)
