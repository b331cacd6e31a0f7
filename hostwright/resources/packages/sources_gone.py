"""States for the removal of a role: disabled apt sources are enabled again, and apt's lists are removed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from hostwright.common.quoting import sh, sh_file
from hostwright.plan.host.hostfacts import OS_RELEASE, os_release
from hostwright.plan.model import Change, Facts, Probe, RemovalState, Step
from hostwright.resources.files.paths import ABSENT, few
from hostwright.resources.originals import FILES, FORGET
from hostwright.resources.packages.dpkg import DPKG_LOCK

DISABLED = "# disabled by hostwright: "  #: prefix of a source line that Hostwright disabled
LISTS = "/var/lib/apt/lists"
#: start of a find command for apt's source files, without named pipes, because reading a named pipe may block
_SOURCE_FILES = (
    "find -L /etc/apt/sources.list /etc/apt/sources.list.d -maxdepth 1 -type f "
    r"\( -name '*.list' -o -name '*.sources' \)"
)


def basic_regex(text: str) -> str:
    """Escape ``text`` for a sed expression that matches ``text`` literally, with ``|`` as the delimiter."""
    return re.sub(r"([][\\.*^$|])", r"\\\1", text)


def deb822(texts: tuple[str, ...]) -> str:
    """Shell function ``stanzas HOW FILE...`` that finds, disables or enables deb822 stanzas with one of ``texts``."""
    return sh_file(__file__, "sh/deb822.sh", texts=texts, mark=DISABLED)


def in_place(how: str, path: str) -> str:
    """Commands that replace the file at ``path`` by the output of ``stanzas HOW PATH``. Owner and mode are kept."""
    make = sh('path=$(readlink -e -- %s); new=$path.hostwright-new; cp -pT -- "$path" "$new"', path)
    return make + sh('; stanzas %s "$path" >"$new"; sync -- "$new"; mv -fT -- "$new" "$path"', how)


@dataclass(frozen=True, slots=True)
class SourcesRead(RemovalState):
    """apt sources with one of ``texts`` that ``SourcesDisabled`` disabled are enabled again."""

    texts: tuple[str, ...]  #: texts that identify the disabled source lines, as in ``SourcesDisabled``

    def probes(self) -> tuple[Probe, ...]:
        patterns = tuple(word for text in self.texts for word in ("-e", text))
        values = {"patterns": patterns, "disabled": DISABLED, "files": FILES}
        script = sh_file(__file__, "sh/sources_probe.sh", **values)
        return (Probe(deb822(self.texts) + script, root=True),)

    def plan(self, facts: Facts) -> Change | None:
        rows = [line.partition(":")[::2] for line in facts[self.probes()[0]].text.splitlines()]
        lists = {path for path, line in rows if path.endswith((".list", ".sources")) and line.startswith(DISABLED)}
        files = {path for path, _ in rows if path.endswith(".sources.disabled")}
        sources = sorted(path for path in lists | files if path.startswith("/etc/apt/sources.list"))
        if not sources:
            return None
        script = FORGET + "\n".join(self._read(path) for path in sources)
        return Change(
            "apt sources " + " ".join(self.texts), few(sources), "as before: enabled", (Step(script, DPKG_LOCK),)
        )

    def _read(self, path: str) -> str:
        if path.endswith(".disabled"):
            before = path.removesuffix(".disabled")
            return sh("[ -e %s ] || mv -T -- %s %s\nforget %s", before, path, before, before)
        if path.endswith(".sources"):
            return deb822(self.texts) + in_place("on", path)
        edits = [f"\\|^{DISABLED}.*{basic_regex(text)}|s|^{DISABLED}||" for text in self.texts]
        return sh("sed -i --follow-symlinks %s %s", "\n".join(edits), path)

    def takes(self) -> frozenset[str]:
        return frozenset(f"sources {text}" for text in self.texts)


def of_release(text: str, release: Mapping[str, str]) -> str:
    """Fill the placeholders of a repository's URI or suite from a host's ``/etc/os-release``.

    >>> of_release("repos/{distribution}{release}", {"ID": "ubuntu", "VERSION_ID": "24.04"})
    'repos/ubuntu2404'
    """
    values = {"distribution": release.get("ID", ""), "codename": release.get("VERSION_CODENAME", "")}
    values["release"] = release.get("VERSION_ID", "").replace(".", "")
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


@dataclass(frozen=True, slots=True)
class ListsGone(RemovalState):
    """apt has no lists of the repository at ``uri``, unless a source other than ``path`` names this repository.

    ``uri`` may contain ``{distribution}``, ``{codename}`` and ``{release}``, like ``AptSource.uri``.
    """

    uri: str  #: URI of the repository, as in ``AptSource``
    path: str  #: path of Hostwright's own source list; this list is not searched for ``uri``

    def probes(self) -> tuple[Probe, ...]:
        ours = sh(" ! -name %s", PurePosixPath(self.path).name)
        sources = Probe(_SOURCE_FILES + ours + r" -exec grep -hsE '^[[:space:]]*(deb|URIs:)' {} +")
        return (OS_RELEASE, Probe(sh("ls -1 %s", LISTS)), sources)

    def plan(self, facts: Facts) -> Change | None:
        release, lists, sources = (facts[probe] for probe in self.probes())
        ids = os_release(facts) if release.ok else {}
        uri = of_release(self.uri, ids)
        if uri.rstrip("/") in {word.rstrip("/") for word in sources.text.split()}:
            return None
        name = re.compile(_list_name(uri))
        files = [file for file in lists.text.splitlines() if name.match(file) and "/" not in file]
        if not files:
            return None
        script = "\n".join(sh("rm -f -- %s", f"{LISTS}/{file}") for file in files)
        return Change(f"apt lists of {uri}", few(files), f"as before: {ABSENT}", (Step(script, DPKG_LOCK),))

    def takes(self) -> frozenset[str]:
        return frozenset({f"lists {self.path}"})


def _list_name(uri: str) -> str:
    rest = re.sub(r"^[a-z+]+:(//)?([^/@]*@)?", "", uri).rstrip("/")
    parts = (
        "".join(f"%{ord(c):02x}" if c in '\\|{}[]<>"^~_=!@#$%^&*' else c for c in part)
        for part in rest.split("$(ARCH)")
    )
    return "[a-z0-9-]+".join(re.escape(part.replace("/", "_")) for part in parts) + "_"
