"""The stack: every version and file that a host should have, read from ``inventory/stacks/NAME.yml``.

A stack is a frozen value. ``load_stack`` reads it with the stacks that it extends, validates it, and reports every
mistake in the files at once. Compatibility is decided in ``hostwright.stack.rules``.
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
    """One file of the stack: where it comes from and what it must be.

    ``sha256`` and ``size`` (bytes) are absent where nobody has published them: then the first download pins them.
    ``stand_in`` marks a file that is not the vendor's, by a text where there is more to say; every report mentions it.
    A ``private`` one goes to hosts over SSH alone, never by HTTP.
    """

    name: Name
    file: FileName
    urls: tuple[Url, ...] = ()
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    size: Annotated[int, Field(gt=0)] | None = None
    stand_in: bool | str = False
    private: bool = False

    def labelled(self, name: str) -> str:
        """One of its names, followed by the text of ``stand_in`` if there is one."""
        return f"{name} ({self.stand_in})" if isinstance(self.stand_in, str) else name


class RoleFile(Artifact):
    """A file that the states of a role take, known by its sha256, and that no stack file names: it is fetched from its
    addresses, or as its kind says (``IndexFile``).

    It is no part of what is stored of a stack, nor of its digest.
    """


class IndexFile(RoleFile):
    """One that has no address: another program fetches it from an index of packages."""

    @abstractmethod
    def bring(self, folder: Path) -> Path:
        """Bring it into an empty directory of this machine, and return its path there. Raises ``ArtifactError``."""


class Requirements(StackPart):
    """What a host must have before it is touched. Sizes are bytes.

    ``free_bytes`` is required on each of ``/``, ``/var`` and ``/tmp``.
    """

    machine: str = "x86_64"
    cpu_flags: tuple[str, ...] = ("avx",)
    free_bytes: Annotated[int, Field(ge=0)] = 0
    memory_bytes: Annotated[int, Field(ge=0)] = 0


class AptRepository(StackPart):
    """A signed apt repository; ``key`` is an artifact.

    ``uri`` and ``suite`` may hold ``{distribution}``, ``{codename}`` and ``{release}``: the host's ID,
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
        """The file from which apt reads it."""
        return f"/etc/apt/sources.list.d/{self.name}.list"

    @property
    def keyring(self) -> str:
        """The file of its key, named by ``signed-by``."""
        return f"/usr/share/keyrings/{self.name}-keyring.gpg"


#: For ``Share.directory``: where jobs work on the host, whichever of its directories that is.
WORK = "work"
#: The need there is no percentage but one more initramfs: it is written beside the one that it replaces.
BOOT = "/boot"


@dataclass(frozen=True, slots=True)
class Share:
    """The space that one part needs below ``directory``, in percent of a bare host's need, unless ``unless`` exists.

    ``directory`` is the one in which it really lies (``/usr/local/tool``, not ``/usr``): any may be a filesystem of its
    own or a link to another. What need not exist yet counts where it will be made.
    """

    part: str
    unless: str
    directory: str
    percent: int


def taken(part: str, unless: str, percents: Mapping[str, int]) -> tuple[Share, ...]:
    """The shares of one part: directory → percent of the stack's ``free_bytes``, measured or estimated once unpacked.

    Archives are kept in ``hostcache.CACHE``.
    """
    return tuple(Share(part, unless, directory, percent) for directory, percent in percents.items())


class Section(StackPart):
    """A role's own part of a stack, under the role's name in the stack file.

    The artifacts and texts that it names are found by their marks (``stackvalues``). ``vendor`` supplies its artifacts
    and the packages of its repositories.
    """

    vendor: ClassVar[str] = ""

    @property
    def opens(self) -> tuple[str, ...]:
        """The layers whose software this layer's opens when it runs, beside those that its role needs."""
        return ()

    @property
    def spare(self) -> tuple[str, ...]:
        """The fields that no host needs with the section's present values; their artifacts are not fetched."""
        return ()

    def versions(self) -> Mapping[str, str]:
        """This layer's versions, by their names in records and audits."""
        return {}

    def shares(self, _stack: Stack, /) -> tuple[Share, ...]:
        """The disk space that this layer takes."""
        return ()

    def leaving(self) -> tuple[str, ...]:
        """The packages that this layer takes away from a host, as shell patterns of their names."""
        return ()

    def repositories(self) -> tuple[AptRepository, ...]:
        """The signed apt repositories that this layer names."""
        return tuple(_repositories(self))

    def never_unattended(self) -> tuple[str, ...]:
        """The packages that unattended-upgrades must leave alone for this layer, as it reads them: regular expressions
        for the beginning of a name."""
        return ()

    def artifact_uses(self) -> tuple[tuple[Where, str], ...]:
        """The artifacts that the section names: the path to each name, and the name."""
        return tuple(marked(type(self), self, ArtifactName))


def _repositories(part: object) -> Iterator[AptRepository]:
    if isinstance(part, AptRepository):
        yield part
    elif isinstance(part, (StackPart, Mapping)):
        for value in dict(part).values():
            yield from _repositories(value)


S = TypeVar("S", bound=Section)


class StackHead(StackPart):
    """The part of a stack that does not depend on roles; ``distributions`` maps os-release's ID to its VERSION_IDs.

    ``roles`` are the roles of a host that names none, in order.
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
    """All versions and files of a stack: the head that every stack has, and the sections of its roles.

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
        """The section of that kind; a stack without it is an ``InputError``."""
        section = self.find(kind)
        if section is None:
            raise InputError(f"the stack {self.name} has no {kind.__name__}, which a role of this host needs")
        return section

    def find(self, kind: type[S]) -> S | None:
        """The section of that kind, ``None`` if the stack has none."""
        return next((section for section in self.sections.values() if isinstance(section, kind)), None)

    def artifact(self, name: str) -> Artifact:
        """The artifact of that name; an unknown name is an ``InputError`` with the nearest valid one."""
        if name not in self.artifacts:
            raise InputError(f"the stack {self.name} has no artifact {name!r}; {suggestion(name, self.artifacts)}")
        return self.artifacts[name]

    def with_files(self, files: Iterable[RoleFile]) -> Stack:
        """The same stack, which also knows these files of roles by their names; its own artifacts win."""
        more = {file.name: file for file in files}
        return self.model_copy(update={"artifacts": {**more, **self.artifacts}}) if more else self

    def used_by(self, roles: Iterable[str]) -> tuple[Artifact, ...]:
        """The artifacts that a host with these roles may need, without those of spare versions."""
        here = set(roles)
        sections = [section for name, section in self.sections.items() if name in here]
        names = [name for section in sections for way, name in section.artifact_uses() if way[0] not in section.spare]
        return tuple(self.artifact(name) for name in dict.fromkeys(names))

    def stand_ins(self, roles: Iterable[str]) -> tuple[str, ...]:
        """The files that a host with these roles may need and that are not the vendor's own, with their texts."""
        return tuple(one.labelled(one.file) for one in self.used_by(roles) if one.stand_in)

    def artifact_uses(self) -> tuple[tuple[Where, str], ...]:
        """The artifacts that the stack names: the path to each name, and the name."""
        return tuple(
            ((role, *way), name) for role, section in self.sections.items() for way, name in section.artifact_uses()
        )

    def versions(self) -> dict[str, str]:
        """The version of each part of the stack."""
        return {name: version for section in self.sections.values() for name, version in section.versions().items()}

    def digest(self) -> str:
        """A sha256 over the whole stack except addresses; see ``stackdata``."""
        return digest_of(plain(self))

    @model_serializer(mode="wrap")
    def _as_in_files(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Put sections at the top level, as in stack files; leave out a section without values of its own."""
        data: dict[str, Any] = handler(self)
        own = {name for name, artifact in self.artifacts.items() if not isinstance(artifact, RoleFile)}
        data["artifacts"] = {name: values for name, values in data.get("artifacts", {}).items() if name in own}
        sections = {name: section for name, section in data.pop("sections", {}).items() if section}
        return {**data, **sections}


def safe_stack_name(name: str) -> bool:
    """Whether a stack's name is safe as a file name, which cannot lead out of its directory."""
    return re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name) is not None
