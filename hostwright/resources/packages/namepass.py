"""Whether dpkg's database names packages of some patterns: one ``grep`` for those of all roles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile

from hostwright.common.quoting import sh
from hostwright.plan.model import Answer, Pass, PassPart

_STATUS = "/var/lib/dpkg/status"


class NamePass(Pass):
    """The words are how names begin; most hosts have no package of most."""

    def script(self, asked: Sequence[str]) -> str:
        """See ``plan.model.Pass``. It also reads one of the words: a ``grep`` that has not found that does not work."""
        begins = " ".join(sh("-e %s", f"Package: {word}") for word in asked)
        return "\n".join([f"grep -hF {begins} {_STATUS} - <<'END'", f"Package: {asked[0]}", "END"])

    def found(self, asked: Sequence[str], text: str) -> Mapping[str, str]:
        """For each word the names that begin with any."""
        own = f"Package: {asked[0]}\n"
        if not text.endswith(own):
            raise ValueError("not what grep prints")
        return dict.fromkeys(asked, text.removesuffix(own))


NAMES = NamePass()


def none_like(patterns: Sequence[str], is_one: Callable[[str], bool]) -> PassPart:
    """An empty answer where no package has a name that ``is_one``; each of these matches one of the shell patterns."""

    def read(found: Mapping[str, str]) -> Answer | None:
        lines = next(iter(found.values())).splitlines()
        return None if any(is_one(line.removeprefix("Package: ")) for line in lines) else Answer(0, "")

    begins = ("".join(takewhile(lambda letter: letter not in "*?[", pattern)) for pattern in patterns)
    return PassPart(NAMES, tuple(dict.fromkeys(begins)), read)
