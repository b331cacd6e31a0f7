"""The stack: all versions and files for a host, read from ``inventory/stacks/NAME.yml``.

A stack is a frozen value. ``load_stack`` reads and validates it together with the stacks that it extends, and reports
all errors of the files at once. ``hostwright.stack.rules`` checks its compatibility.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import Field, SerializeAsAny, SerializerFunctionWrapHandler, field_validator, model_serializer

from hostwright.common.errors import InputError
from hostwright.common.input.nearest import suggestion
from hostwright.common.input.yamlfile import Where
from hostwright.stack.stackdata import digest_of, plain
from hostwright.stack.stackvalues import ArtifactName, FileName, Fingerprint, Name, StackPart, Url, marked


class Artifact(StackPart):
    """One file of the stack: its addresses and its checksum.

    ``sha256`` and ``size`` (bytes) are ``None`` if the vendor does not publish them; the first download then pins them.
    ``stand_in`` marks a file that is not the vendor's; its text, if any, appears in every report. A ``private`` file is
    sent to hosts over SSH only, never over HTTP.
    """

    name: Name
    file: FileName
    urls: tuple[Url, ...] = ()
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    size: Annotated[int, Field(gt=0)] | None = None
    stand_in: bool | str = False
    private: bool = False

    def labelled(self, name: str) -> str:
        """``name``, followed by the text of ``stand_in``, if any."""
        return f"{name} ({self.stand_in})" if isinstance(self.stand_in, str) else name


class RoleFile(Artifact):
    """A file of a role's states, with a known sha256, that no stack file lists. It is fetched from its addresses or as
    its kind defines (``IndexFile``).

    It is not part of the stored stack or its digest.
    """


class IndexFile(RoleFile):
    """A role's file without an address: another program fetches it from a package index."""

    @abstractmethod
    def bring(self, folder: Path) -> Path:
        """Fetch the file into an empty directory on this machine; return its path. Raises ``ArtifactError``."""


class Requirements(StackPart):
    """Requirements that a host must meet before any change. Sizes are in bytes.

    ``free_bytes`` is required on each of ``/``, ``/var`` and ``/tmp``.
    """

    machine: str = "x86_64"
    cpu_flags: tuple[str, ...] = ("avx",)
    free_bytes: Annotated[int, Field(ge=0)] = 0
    memory_bytes: Annotated[int, Field(ge=0)] = 0


class AptRepository(StackPart):
    """A signed apt repository; ``key`` is an artifact.

    ``uri`` and ``suite`` may contain ``{distribution}``, ``{codename}`` and ``{release}``: the host's ID,
    VERSION_CODENAME, and VERSION_ID without the dot.
    """

    name: Name
    uri: Annotated[str, Field(pattern=r"^(https?://|file:)[^\s]+$")]
    suite: Annotated[str, Field(pattern=r"^[^\s]+$")] = "/"
    components: tuple[str, ...] = ()
    key: Annotated[str, ArtifactName]
    fingerprint: Fingerprint | None = None

    @property
    def list_file(self) -> str:
        """The path of the repository's sources.list file."""
        return f"/etc/apt/sources.list.d/{self.name}.list"

    @property
    def keyring(self) -> str:
        """The path of the repository's key, used in ``signed-by``."""
        return f"/usr/share/keyrings/{self.name}-keyring.gpg"


#: For ``Share.directory``: the host's working directory for jobs.
WORK = "work"
#: Needs space for one more initramfs instead of a percentage: the new file is written next to the old one.
BOOT = "/boot"


@dataclass(frozen=True, slots=True)
class Share:
    """The disk space of one part below ``directory``, in percent of the stack's ``free_bytes``; 0 if ``unless`` exists.

    ``directory`` is the real location (``/usr/local/tool``, not ``/usr``), because any directory may be a mount point
    or a link. A directory that does not exist yet counts at its future location.
    """

    part: str
    unless: str
    directory: str
    percent: int


def taken(part: str, unless: str, percents: Mapping[str, int]) -> tuple[Share, ...]:
    """Return the shares of one part: directory → percent of the stack's ``free_bytes``, measured or estimated after
    unpacking.

    Archives are in ``hostcache.CACHE``.
    """
    return tuple(Share(part, unless, directory, percent) for directory, percent in percents.items())


class Section(StackPart):
    """A role's part of a stack, under the role's name in the stack file.

    Its artifacts and text files are found by their marks (``stackvalues``). ``vendor`` supplies its artifacts and the
    packages of its repositories.
    """

    vendor: ClassVar[str] = ""

    @property
    def opens(self) -> tuple[str, ...]:
        """Layers whose software this layer loads at run time, in addition to the layers that its role requires."""
        return ()

    @property
    def spare(self) -> tuple[str, ...]:
        """Fields that no host needs with the section's current values; their artifacts are not fetched."""
        return ()

    def versions(self) -> Mapping[str, str]:
        """This layer's versions, by their names in records and audits."""
        return {}

    def shares(self, _stack: Stack, /) -> tuple[Share, ...]:
        """The disk space of this layer."""
        return ()

    def leaving(self) -> tuple[str, ...]:
        """Shell patterns for names of packages that this layer removes from a host."""
        return ()

    def repositories(self) -> tuple[AptRepository, ...]:
        """The signed apt repositories of this layer."""
        return tuple(_repositories(self))

    def never_unattended(self) -> tuple[str, ...]:
        """Packages that unattended-upgrades must not change, as in its configuration: regular expressions for the
        beginning of a name.
        """
        return ()

    def artifact_uses(self) -> tuple[tuple[Where, str], ...]:
        """The artifact names in the section: the path of each name, and the name."""
        return tuple(marked(type(self), self, ArtifactName))


def _repositories(part: object) -> Iterator[AptRepository]:
    if isinstance(part, AptRepository):
        yield part
    elif isinstance(part, (StackPart, Mapping)):
        for value in dict(part).values():
            yield from _repositories(value)


S = TypeVar("S", bound=Section)


class StackHead(StackPart):
    """The part of a stack that is independent of roles.

    ``distributions`` maps os-release's ID to VERSION_IDs. ``roles`` are the default roles of a host, in order.
    """

    name: str
    description: str = ""
    distributions: Mapping[str, tuple[str, ...]]
    requirements: Requirements = Requirements()
    roles: tuple[str, ...] = ()
    artifacts: Mapping[str, Artifact]

    @field_validator("artifacts", mode="before")
    @classmethod
    def _name_artifacts(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return {
            name: {**artifact, "name": name} if isinstance(artifact, Mapping) else artifact
            for name, artifact in value.items()
        }


class Stack(StackHead):
    """All versions and files of a stack: the head, and the sections of its roles.

    >>> class ToolSection(Section):
    ...     archive: Annotated[str, ArtifactName]
    >>> stack = Stack(
    ...     name="house",
    ...     distributions={"debian": ("12",)},
    ...     roles=("base", "tool"),
    ...     artifacts={"tool": {"file": "tool-1.2.tgz"}, "other": {"file": "other.deb"}},
    ...     sections={"tool": ToolSection(archive="tool")},
    ... )
    >>> stack.section(ToolSection).archive
    'tool'
    >>> [artifact.file for artifact in stack.used_by(["base", "tool"])], stack.used_by(["base"])
    (['tool-1.2.tgz'], ())
    """

    sections: Mapping[str, SerializeAsAny[Section]] = {}

    def section(self, kind: type[S]) -> S:
        """Return the section of this kind. Raises ``InputError`` if the stack has none."""
        section = self.find(kind)
        if section is None:
            raise InputError(f"the stack {self.name} has no {kind.__name__}, which a role of this host needs")
        return section

    def find(self, kind: type[S]) -> S | None:
        """Return the section of this kind; ``None`` if the stack has none."""
        return next((section for section in self.sections.values() if isinstance(section, kind)), None)

    def artifact(self, name: str) -> Artifact:
        """Return the artifact with this name. Raises ``InputError`` with the nearest valid name if it is unknown."""
        if name not in self.artifacts:
            raise InputError(f"the stack {self.name} has no artifact {name!r}; {suggestion(name, self.artifacts)}")
        return self.artifacts[name]

    def with_files(self, files: Iterable[RoleFile]) -> Stack:
        """Return the stack with these role files added to its artifacts; its own artifacts take precedence."""
        more = {file.name: file for file in files}
        return self.model_copy(update={"artifacts": {**more, **self.artifacts}}) if more else self

    def used_by(self, roles: Iterable[str]) -> tuple[Artifact, ...]:
        """The artifacts that a host with these roles may need. Artifacts of spare fields (``Section.spare``) are left
        out.
        """
        here = set(roles)
        sections = [section for name, section in self.sections.items() if name in here]
        names = [name for section in sections for way, name in section.artifact_uses() if way[0] not in section.spare]
        return tuple(self.artifact(name) for name in dict.fromkeys(names))

    def stand_ins(self, roles: Iterable[str]) -> tuple[str, ...]:
        """The stand-in files that a host with these roles may need, with their texts."""
        return tuple(one.labelled(one.file) for one in self.used_by(roles) if one.stand_in)

    def artifact_uses(self) -> tuple[tuple[Where, str], ...]:
        """The artifact names in the stack: the path of each name, and the name."""
        return tuple(
            ((role, *way), name) for role, section in self.sections.items() for way, name in section.artifact_uses()
        )

    def versions(self) -> dict[str, str]:
        """The version of each part of the stack."""
        return {name: version for section in self.sections.values() for name, version in section.versions().items()}

    def digest(self) -> str:
        """A sha256 of the stack except its addresses; see ``stackdata``."""
        return digest_of(plain(self))

    @model_serializer(mode="wrap")
    def _as_in_files(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Put sections at the top level, as in stack files; omit sections with default values only."""
        data: dict[str, Any] = handler(self)
        own = {name for name, artifact in self.artifacts.items() if not isinstance(artifact, RoleFile)}
        data["artifacts"] = {name: values for name, values in data.get("artifacts", {}).items() if name in own}
        sections = {name: section for name, section in data.pop("sections", {}).items() if section}
        return {**data, **sections}


def safe_stack_name(name: str) -> bool:
    """Whether a stack's name is safe as a file name inside its directory."""
    return re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name) is not None
