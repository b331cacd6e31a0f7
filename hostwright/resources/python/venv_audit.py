"""One cheap look at venvs: versions from the names of their ``dist-info``, damage from the sizes that pip recorded.

Nothing is imported and nothing is hashed: for an environment of 1.5 GB that is 5,300 names and sizes, about 50 ms.
Headers (``include/``, used by nobody at run time) and compiled caches are left out; they are two thirds of all files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hostwright.common.quoting import sh, words
from hostwright.plan.model import Probe

_FIND_FORMAT = r"%p\t%s\n"

#: First the files that there are (path, size), then pip's RECORDs (path, hash, size): the first file of each package
#: that is missing or of another size. Files outside site-packages are looked at in bin/ only.
_COMPARE = r"""
NR == FNR { size[$1] = $2; next }
FNR == 1 { told = 0 }
told || $2 !~ /^sha256=/ || $1 ~ /(^|\/)(include|__pycache__)\// { next }
$1 ~ /^\.\.\// && $1 !~ /^\.\.\/\.\.\/\.\.\/bin\// { next }
{
  path = ($1 ~ /^\.\.\//) ? $1 : "./" $1
  if (!(path in size) || size[path] != $3 + 0) {
    split(FILENAME, part, "/")
    printf "damage\t%s\t%s\n", part[1], $1
    told = 1
  }
}
"""

_LOOK = r"""
  [ -e "$home/$marker" ] || continue
  set -- "$home"/lib/python3*/site-packages
  printf 'home\t%s\n' "$home"
  [ -x "$home/bin/python" ] || printf 'gone\tinterpreter\n'
  [ -d "$1/pip" ] || printf 'gone\tpip\n'
  cd "$1" || { printf 'gone\tsite-packages\n'; continue; }
  sum=$(sha256sum <"$home/$constraints") && printf 'constraints\t%s\n' "${sum%% *}"
  set --
  for dist in *.dist-info; do
    if [ -s "$dist/RECORD" ]; then
      set -- "$@" "$dist/RECORD"
      printf 'dist\t%s\trecorded\n' "$dist"
    else
      printf 'dist\t%s\tbare\n' "$dist"
    fi
  done
  find . ../../../bin \( -name include -o -name __pycache__ \) -prune -o -type f -printf "$format" |
    awk -F '[\t,]' "$compare" - "$@"
"""


@dataclass(frozen=True, slots=True)
class Dist:
    """One installed package as its ``dist-info`` directory says; ``damage`` is a file that is not as recorded."""

    directory: str
    recorded: bool
    damage: str = ""

    @property
    def name(self) -> str:
        """The package's name."""
        return self.directory.removesuffix(".dist-info").rpartition("-")[0]

    @property
    def version(self) -> str:
        """The package's version."""
        return self.directory.removesuffix(".dist-info").rpartition("-")[2]

    @property
    def flaw(self) -> str:
        """What is wrong with it besides its version, as words to follow its name."""
        if not self.recorded:
            return " without pip's record of it"
        return f" ({self.damage.removeprefix('../../../')} missing or changed)" if self.damage else ""


@dataclass(frozen=True, slots=True)
class FoundVenv:
    """One complete venv as found."""

    constraints: str = ""  #: sha256 of its constraints file
    dists: tuple[Dist, ...] = ()
    gone: tuple[str, ...] = ()  #: which of ``interpreter``, ``pip``, ``site-packages`` are not there

    @property
    def lost(self) -> tuple[str, ...]:
        """What is gone, and pip where it is damaged: nothing else could mend the rest."""
        damaged = [dist.name for dist in self.dists if dist.name == "pip" and dist.flaw]
        return tuple(dict.fromkeys([*self.gone, *damaged]))


@dataclass(frozen=True, slots=True)
class Venvs:
    """Where the link leads (empty when there is none), and the complete venvs by directory."""

    link: str = ""
    homes: Mapping[str, FoundVenv] = field(default_factory=dict)


def audit_probe(link: str, homes: tuple[str, ...], marker: str, constraints: str) -> Probe:
    """The question about a link and those of these venvs that were completed."""
    return Probe(
        sh("printf 'link\\t%%s\\n' \"$(readlink -- %s)\"\n", link)
        + sh("marker=%s; constraints=%s; format=%s\ncompare=%s\n", marker, constraints, _FIND_FORMAT, _COMPARE)
        + f"for home in {words(homes)}; do{_LOOK}done",
    )


def parse_audit(text: str) -> Venvs:
    """The answer to ``audit_probe``."""
    link = ""
    homes: dict[str, FoundVenv] = {}
    home = ""
    for line in text.splitlines():
        kind, _, rest = line.partition("\t")
        value, _, more = rest.partition("\t")
        if kind == "link":
            link = value
        elif kind == "home":
            home = value
            homes[home] = FoundVenv()
        elif home in homes:
            homes[home] = _with(homes[home], kind, value, more)
    return Venvs(link, homes)


def _with(venv: FoundVenv, kind: str, value: str, more: str) -> FoundVenv:
    if kind == "gone":
        return replace(venv, gone=(*venv.gone, value))
    if kind == "constraints":
        return replace(venv, constraints=value)
    if kind == "dist":
        return replace(venv, dists=(*venv.dists, Dist(value, more == "recorded")))
    if kind == "damage":
        dists = tuple(replace(one, damage=more) if one.directory == value else one for one in venv.dists)
        return replace(venv, dists=dists)
    return venv
