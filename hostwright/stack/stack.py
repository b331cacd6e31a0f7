"""The stack: all versions and files for a host, read from ``inventory/stacks/NAME.yml``.

``load_stack`` reads a stack and the stacks that it extends, and reports all errors together. ``hostwright.stack.rules``
checks compatibility.
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
    """One file of a stack, with its addresses and its checksum.

    ``sha256`` and ``size`` (bytes) are ``None`` if the vendor does not publish them; the first download pins them.
    ``stand_in`` marks a replacement of the vendor's file; if ``stand_in`` is a text, every report contains the text. A
    ``private`` file is sent to hosts over SSH only, never over HTTP.
    """

    name: Name
    file: FileName
    urls: tuple[Url, ...] = ()
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    size: Annotated[int, Field(gt=0)] | None = None
    stand_in: bool | str = False
    private: bool = False

    def labelled(self, name: str) -> str:
        """Return ``name``, followed by ``stand_in`` if ``stand_in`` is a text."""
        return f"{name} ({self.stand_in})" if isinstance(self.stand_in, str) else name


class RoleFile(Artifact):
    """A file that a role needs on hosts, but that is not part of the stored stack and its digest. Its sha256 is
    known.
    """


class IndexFile(RoleFile):
    """A ``RoleFile`` without an address. The method ``bring`` fetches the file from a package index."""

    @abstractmethod
    def bring(self, folder: Path) -> Path:
        """Fetch the file into the empty directory ``folder``; return its path. Raises ``ArtifactError`` on failure."""


class Requirements(StackPart):
    """Requirements of a stack that a host must meet before Hostwright changes it. Sizes are in bytes.

    ``free_bytes`` is required on each of ``/``, ``/var`` and ``/tmp``.
    """

    machine: str = "x86_64"
    cpu_flags: tuple[str, ...] = ("avx",)
    free_bytes: Annotated[int, Field(ge=0)] = 0
    memory_bytes: Annotated[int, Field(ge=0)] = 0


class AptRepository(StackPart):
    """A signed apt repository. ``key`` is the name of the artifact with the signing key.

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
        """The path of the repository's sources.list file on a host."""
        return f"/etc/apt/sources.list.d/{self.name}.list"

    @property
    def keyring(self) -> str:
        """The path of the repository's key on a host."""
        return f"/usr/share/keyrings/{self.name}-keyring.gpg"


#: value of ``Share.directory`` that stands for the host's working directory for jobs
WORK = "work"
#: value of ``Share.directory`` that stands for the space of an additional initramfs
BOOT = "/boot"


@dataclass(frozen=True, slots=True)
class Share:
    """The disk space that one part of a layer needs below ``directory``, in percent of the stack's ``free_bytes``.

    If the path ``unless`` exists on the host, the part is already installed. ``directory`` is the real location
    (``/usr/local/tool``, not ``/usr``), because any directory may be a mount point.
    """

    part: str
    unless: str
    directory: str
    percent: int


def taken(part: str, unless: str, percents: Mapping[str, int]) -> tuple[Share, ...]:
    """Return a ``Share`` of ``part`` for each directory in ``percents``: directory → percent of ``free_bytes``.

    Percentages are measured or estimated after unpacking.
    """
    return tuple(Share(part, unless, directory, percent) for directory, percent in percents.items())


class Section(StackPart):
    """The part of a stack for one role, under the role's name in the stack file.

    ``vendor`` is the supplier of the artifacts and of the packages in the section's repositories.
    """

    vendor: ClassVar[str] = ""

    @property
    def opens(self) -> tuple[str, ...]:
        """Names of layers with software that this layer loads at run time, although this layer's role does not need
        these layers.
        """
        return ()

    @property
    def spare(self) -> tuple[str, ...]:
        """Names of fields that no host needs, given the section's other values. Their artifacts are not fetched."""
        return ()

    def versions(self) -> Mapping[str, str]:
        """Return the versions of this layer's software, by product name."""
        return {}

    def shares(self, _stack: Stack, /) -> tuple[Share, ...]:
        """Return the disk space that this layer needs, by directory."""
        return ()

    def leaving(self) -> tuple[str, ...]:
        """Return shell patterns for the packages that this layer removes from a host."""
        return ()

    def repositories(self) -> tuple[AptRepository, ...]:
        """Return the signed apt repositories from which this layer installs packages."""
        return tuple(_repositories(self))

    def never_unattended(self) -> tuple[str, ...]:
        """Return the packages that unattended-upgrades must not change: regular expressions for the start of a name."""
        return ()

    def artifact_uses(self) -> tuple[tuple[Where, str], ...]:
        """Return path and value of each field in the section that names an artifact."""
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

    ``distributions`` maps an ID in os-release to the supported VERSION_IDs. ``roles`` are the default roles, in order.
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
    """A stack, with all versions and files: the head (``StackHead``), and a section for each role.

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
        """Return the section of the type ``kind``. Raises ``InputError`` if the stack has none."""
        section = self.find(kind)
        if section is None:
            raise InputError(f"the stack {self.name} has no {kind.__name__}, which a role of this host needs")
        return section

    def find(self, kind: type[S]) -> S | None:
        """Return the section of the type ``kind``; ``None`` if the stack has none."""
        return next((section for section in self.sections.values() if isinstance(section, kind)), None)

    def artifact(self, name: str) -> Artifact:
        """Return the artifact ``name``. Raises ``InputError`` with the nearest valid name if the stack has none."""
        if name not in self.artifacts:
            raise InputError(f"the stack {self.name} has no artifact {name!r}; {suggestion(name, self.artifacts)}")
        return self.artifacts[name]

    def with_files(self, files: Iterable[RoleFile]) -> Stack:
        """Return a copy of the stack with ``files`` as further artifacts; existing artifacts take precedence."""
        more = {file.name: file for file in files}
        return self.model_copy(update={"artifacts": {**more, **self.artifacts}}) if more else self

    def used_by(self, roles: Iterable[str]) -> tuple[Artifact, ...]:
        """Return the artifacts that a host with ``roles`` may need, without the artifacts of fields in
        ``Section.spare``.
        """
        here = set(roles)
        sections = [section for name, section in self.sections.items() if name in here]
        names = [name for section in sections for way, name in section.artifact_uses() if way[0] not in section.spare]
        return tuple(self.artifact(name) for name in dict.fromkeys(names))

    def stand_ins(self, roles: Iterable[str]) -> tuple[str, ...]:
        """Return the names of files for ``roles`` that replace files of the vendor, each with its text in
        ``stand_in``.
        """
        return tuple(one.labelled(one.file) for one in self.used_by(roles) if one.stand_in)

    def artifact_uses(self) -> tuple[tuple[Where, str], ...]:
        """Return path and value of each field in the stack that names an artifact."""
        return tuple(
            ((role, *way), name) for role, section in self.sections.items() for way, name in section.artifact_uses()
        )

    def versions(self) -> dict[str, str]:
        """Return the versions of all software in the stack, by product name."""
        return {name: version for section in self.sections.values() for name, version in section.versions().items()}

    def digest(self) -> str:
        """Return the digest of the stack's plain data (``stackdata``). The digest does not depend on addresses of
        files.
        """
        return digest_of(plain(self))

    @model_serializer(mode="wrap")
    def _as_in_files(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        data: dict[str, Any] = handler(self)
        own = {name for name, artifact in self.artifacts.items() if not isinstance(artifact, RoleFile)}
        data["artifacts"] = {name: values for name, values in data.get("artifacts", {}).items() if name in own}
        sections = {name: section for name, section in data.pop("sections", {}).items() if section}
        return {**data, **sections}


def safe_stack_name(name: str) -> bool:
    """Return whether a path with ``name`` as file name stays in the directory of stacks."""
    return re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name) is not None
