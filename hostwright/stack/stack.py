"""The stack: every version and every file that a host is brought to, read from ``inventory/stacks/NAME.yml``.

A stack is a frozen value. ``load_stack`` reads it with the stacks that it extends, checks it, and names every mistake
of the files at once. What fits what is not decided here but in ``hostwright.stack.rules``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import Field, SerializeAsAny, SerializerFunctionWrapHandler, field_validator, model_serializer

from hostwright.common.errors import InputError
from hostwright.common.input.nearest import suggestion
from hostwright.common.input.yamlfile import Where
from hostwright.stack.stackdata import digest_of, plain
from hostwright.stack.stackvalues import ArtifactName, FileName, Fingerprint, Name, StackPart, Url, marked


class Artifact(StackPart):
    """One file of the stack: where it comes from and what it must be.

    ``sha256`` and ``size`` (bytes) are absent where nobody has published them: then what is seen first is pinned.
    ``stand_in`` marks a file that is not the vendor's; every report carries it on.
    """

    name: Name
    file: FileName
    urls: tuple[Url, ...] = ()
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    size: Annotated[int, Field(gt=0)] | None = None
    stand_in: bool = False


class Requirements(StackPart):
    """What a host must have before it is touched. Sizes are bytes.

    ``free_bytes`` is wanted on each of ``/``, ``/var`` and ``/tmp``.
    """

    machine: str = "x86_64"
    cpu_flags: tuple[str, ...] = ("avx",)
    free_bytes: Annotated[int, Field(ge=0)] = 0
    memory_bytes: Annotated[int, Field(ge=0)] = 0


class AptRepository(StackPart):
    """A signed apt repository; ``key`` is an artifact.

    ``uri`` and ``suite`` may hold ``{distribution}`` and ``{codename}``, the host's ID and VERSION_CODENAME.
    """

    name: Name
    uri: Annotated[str, Field(pattern=r"^(https?://|file:)[^\s]+$")]
    suite: Annotated[str, Field(pattern=r"^[^\s]+$")] = "/"
    components: tuple[str, ...] = ()
    key: Annotated[str, ArtifactName]
    fingerprint: Fingerprint | None = None

    @property
    def list_file(self) -> str:
        """Where apt reads it."""
        return f"/etc/apt/sources.list.d/{self.name}.list"

    @property
    def keyring(self) -> str:
        """Where its key lies, named by ``signed-by``."""
        return f"/usr/share/keyrings/{self.name}-keyring.gpg"


@dataclass(frozen=True, slots=True)
class Share:
    """What one part takes below ``directory``, in percent of what a bare host needs, unless ``unless`` exists."""

    part: str
    unless: str
    directory: str
    percent: int


def taken(part: str, unless: str, percents: Mapping[str, int]) -> tuple[Share, ...]:
    """The shares of one part: directory → percent of the stack's ``free_bytes``, measured or estimated once unpacked.

    Archives are kept in /var.
    """
    return tuple(Share(part, unless, directory, percent) for directory, percent in percents.items())


class Section(StackPart):
    """A role's own part of a stack, which stands in a stack's file under the role's name.

    Artifacts that it names and texts that it reads are found by their marks (``stackvalues``).
    """

    @property
    def spare(self) -> tuple[str, ...]:
        """The fields that no host needs as the section reads now; their artifacts are not fetched."""
        return ()

    def versions(self) -> Mapping[str, str]:
        """What this layer's versions are called in records and audits, and what they are."""
        return {}

    def shares(self, _stack: Stack, /) -> tuple[Share, ...]:
        """The disk space that this layer takes."""
        return ()

    def artifact_uses(self) -> tuple[tuple[Where, str], ...]:
        """Where the section names artifacts: the way to the name, and the name."""
        return tuple(marked(type(self), self, ArtifactName))


S = TypeVar("S", bound=Section)


class StackHead(StackPart):
    """What every stack says, whatever its roles are; ``distributions`` maps os-release's ID to its VERSION_IDs.

    ``roles`` are those of a host that names none, in order.
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
        return {name: {**one, "name": name} if isinstance(one, Mapping) else one for name, one in value.items()}


class Stack(StackHead):
    """All versions and files of one stack: what every stack says, and the sections of its roles.

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
        """The section of that kind; a stack without one is an ``InputError``."""
        found = self.find(kind)
        if found is None:
            raise InputError(f"the stack {self.name} has no {kind.__name__}, which a role of this host needs")
        return found

    def find(self, kind: type[S]) -> S | None:
        """The section of that kind, ``None`` where the stack has none."""
        return next((section for section in self.sections.values() if isinstance(section, kind)), None)

    def artifact(self, name: str) -> Artifact:
        """The artifact of that name; an unknown one is an ``InputError`` with the nearest."""
        if name not in self.artifacts:
            raise InputError(f"the stack {self.name} has no artifact {name!r}; {suggestion(name, self.artifacts)}")
        return self.artifacts[name]

    def used_by(self, roles: Iterable[str]) -> tuple[Artifact, ...]:
        """The artifacts that a host with these roles may need; those of spare versions are not among them."""
        here = set(roles)
        sections = [section for name, section in self.sections.items() if name in here]
        names = [name for section in sections for way, name in section.artifact_uses() if way[0] not in section.spare]
        return tuple(self.artifact(name) for name in dict.fromkeys(names))

    def artifact_uses(self) -> tuple[tuple[Where, str], ...]:
        """Where the stack names artifacts: the way to the name, and the name."""
        return tuple(((role, *way), name) for role, one in self.sections.items() for way, name in one.artifact_uses())

    def versions(self) -> dict[str, str]:
        """The version of each part of the stack."""
        return {name: version for section in self.sections.values() for name, version in section.versions().items()}

    def digest(self) -> str:
        """A sha256 over all that the stack says but addresses; see ``stackdata``."""
        return digest_of(plain(self))

    @model_serializer(mode="wrap")
    def _as_in_files(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Sections stand at the top, as in a stack's files; one that says nothing of its own is left out."""
        data: dict[str, Any] = handler(self)
        sections = {name: one for name, one in data.pop("sections", {}).items() if one}
        return {**data, **sections}


def safe_stack_name(name: str) -> bool:
    """Whether a stack's name can be a file's name, so that it cannot lead out of its directory."""
    return re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name) is not None
