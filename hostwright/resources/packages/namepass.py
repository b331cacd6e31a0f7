"""Combined probe for package names: one ``grep`` in dpkg's database for the patterns of all roles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile

from hostwright.common.quoting import sh
from hostwright.plan.model import Answer, Pass, PassPart

_STATUS = "/var/lib/dpkg/status"


class NamePass(Pass):
    """Combined probe that searches dpkg's database for many prefixes of package names with one ``grep``."""

    def script(self, asked: Sequence[str]) -> str:
        """Search dpkg's database and standard input: a match of the first prefix in standard input proves that ``grep``
        worked.
        """
        begins = " ".join(sh("-e %s", f"Package: {word}") for word in asked)
        return "\n".join([f"grep -hF {begins} {_STATUS} - <<'END'", f"Package: {asked[0]}", "END"])

    def found(self, asked: Sequence[str], text: str) -> Mapping[str, str]:
        own = f"Package: {asked[0]}\n"
        if not text.endswith(own):
            raise ValueError("grep printed unexpected output")
        return dict.fromkeys(asked, text.removesuffix(own))


NAMES = NamePass()


def none_like(patterns: Sequence[str], is_one: Callable[[str], bool]) -> PassPart:
    """Part of the combined probe: an empty answer if ``is_one`` is false for all of a host's packages, else no answer.

    ``is_one`` may be true only for names that match at least one of the shell patterns ``patterns``.
    """

    def read(found: Mapping[str, str]) -> Answer | None:
        lines = next(iter(found.values())).splitlines()
        return None if any(is_one(line.removeprefix("Package: ")) for line in lines) else Answer(0, "")

    begins = ("".join(takewhile(lambda letter: letter not in "*?[", pattern)) for pattern in patterns)
    return PassPart(NAMES, tuple(dict.fromkeys(begins)), read)
