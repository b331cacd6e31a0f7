"""Additional components of the distribution's own archive, such as ``non-free``, in a separate source list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hostwright.plan.host.hostfacts import OS_RELEASE, os_release
from hostwright.plan.model import Change, Facts, Probe, Refusal, Resource
from hostwright.resources.files.files import Absent, File
from hostwright.resources.files.paths import ABSENT
from hostwright.resources.files.paths_gone import Original

#: probe that prints the lines of apt's sources, each after ``FILE:``; an empty line ends a stanza
APT_SOURCES = Probe(
    "for f in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do\n"
    '  [ ! -f "$f" ] || { sed "s|^|$f:|" "$f"; echo "$f:"; }\ndone',
    cap_bytes=256 * 1024,
)


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """One URI and suite in apt's sources."""

    path: str  #: path of the source list
    uri: str
    suite: str
    components: tuple[str, ...]
    signed_by: str = ""  #: path of the keyring for the source, or the text of a key


def source_entries(text: str) -> Iterator[SourceEntry]:
    """Entries for binary packages in the output ``text`` of ``APT_SOURCES``, in one-line or deb822 format.

    >>> next(source_entries("/etc/apt/sources.list:deb http://debian.example.net/debian trixie main\\n")).suite
    'trixie'
    """
    stanza: dict[str, str] = {}
    field = ""
    for row in text.splitlines():
        path, _, line = row.partition(":")
        if path.endswith(".list"):
            yield from _of_line(path, line.partition("#")[0].split())
        elif not line.strip():
            yield from _of_stanza(path, stanza)
            stanza, field = {}, ""
        elif line[0].isspace() and field:
            stanza[field] += f" {line.strip()}"
        elif not line.startswith("#"):
            field, _, value = line.partition(":")
            field = field.strip().lower()
            stanza[field] = value.strip()


def _of_line(path: str, words: list[str]) -> Iterator[SourceEntry]:
    if words[:1] != ["deb"]:
        return
    rest, options = words[1:], ""
    if rest and rest[0].startswith("["):
        end = next((number for number, word in enumerate(rest) if word.endswith("]")), len(rest))
        options, rest = " ".join(rest[: end + 1]).strip("[]"), rest[end + 1 :]
    key = next((word.partition("=")[2] for word in options.split() if word.lower().startswith("signed-by=")), "")
    if len(rest) > 2:
        yield SourceEntry(path, rest[0], rest[1], tuple(rest[2:]), key)


def _of_stanza(path: str, stanza: Mapping[str, str]) -> Iterator[SourceEntry]:
    if "deb" not in stanza.get("types", "").split() or stanza.get("enabled", "yes").lower() in ("no", "false", "0"):
        return
    components = tuple(stanza.get("components", "").split())
    for uri in stanza.get("uris", "").split():
        for suite in stanza.get("suites", "").split():
            yield SourceEntry(path, uri, suite, components, stanza.get("signed-by", ""))


@dataclass(frozen=True, slots=True)
class AptComponents(Resource):
    r"""apt reads these components of the distribution's own archive.

    A separate source list adds the components that the host's sources lack, for the release, its updates and its
    security fixes. A host without a source of the distribution is refused. When the role is removed, the list is
    removed.

    >>> more = AptComponents("/etc/apt/sources.list.d/more.list", ("non-free",))
    >>> debian = {"os-release": "ID=debian\nVERSION_CODENAME=trixie\n"}
    >>> source = "/etc/apt/sources.list:deb http://debian.example.net/debian trixie main\n"
    >>> print(plan_text(more, {**debian, "for f in": source}))
    ~ file /etc/apt/sources.list.d/more.list: absent → 644 root:root
    >>> print(plan_text(more, {**debian, "for f in": source.replace("main", "main non-free")}))
    nothing to do
    """

    path: str  #: path of the separate list, below ``/etc/apt/sources.list.d``
    components: tuple[str, ...]  #: components of the repository to read, such as ``non-free``

    def probes(self) -> tuple[Probe, ...]:
        absent = Absent(self.path, "the host's own sources name these components")
        return (OS_RELEASE, APT_SOURCES, *File(self.path, "").probes(), *absent.probes())

    def plan(self, facts: Facts) -> Change | Refusal | None:
        release = os_release(facts)
        entries = [entry for entry in source_entries(facts[APT_SOURCES].text) if entry.path != self.path]
        archives = [entry for entry in entries if _is_own(entry, release)]
        if not archives:
            sentence = (
                f"apt's sources have no archive of {release.get('ID', 'the distribution')} for "
                f"{release.get('VERSION_CODENAME', 'this release')}; add it with {' '.join(self.components)}"
            )
            return Refusal("apt components", ABSENT, " ".join(self.components), "apt-components", sentence)
        lines = list(self._lines(entries, archives))
        if any(line is None for line in lines):
            sentence = (
                "the distribution's apt source contains its key as text; "
                f"add {' '.join(self.components)} to that source"
            )
            return Refusal("apt components", "a key in a source", " ".join(self.components), "apt-components", sentence)
        if lines:
            return File(self.path, "".join(map(str, lines))).plan(facts)
        return Absent(self.path, "the host's own sources name these components").plan(facts)

    def _lines(self, entries: list[SourceEntry], archives: list[SourceEntry]) -> Iterator[str | None]:
        for uri, suite, key in dict.fromkeys((entry.uri, entry.suite, entry.signed_by) for entry in archives):
            had = {name for entry in entries if (entry.uri, entry.suite) == (uri, suite) for name in entry.components}
            if lacking := [name for name in self.components if name not in had]:
                option = f"[signed-by={key}] " if key else ""
                yield f"deb {option}{uri} {suite} {' '.join(lacking)}\n" if not key or _is_file(key) else None

    def archive_components(self) -> tuple[str, ...]:
        return self.components

    def removal(self) -> tuple[Resource, ...]:
        return (Original(self.path),)


def _is_file(key: str) -> bool:
    return key.startswith("/") and " " not in key


def _is_own(entry: SourceEntry, release: Mapping[str, str]) -> bool:
    codename, name = release.get("VERSION_CODENAME", ""), release.get("ID", "")
    suites = {codename, f"{codename}-updates", f"{codename}-security", f"{codename}/updates"}
    last = entry.uri.rstrip("/").rpartition("/")[2]
    return bool(codename and name) and "main" in entry.components and entry.suite in suites and last.startswith(name)
