"""The stack: every version and every file that a host is brought to, read from ``inventory/stacks/NAME.yml``.

A stack is a frozen value. ``load_stack`` reads it with the stacks that it extends, checks it, and names every mistake
of the files at once. What fits what is not decided here but in ``hostwright.stack.rules``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from hostwright.common.errors import InputError
from hostwright.common.nearest import suggestion
from hostwright.stack.stackdata import digest_of, plain
from hostwright.stack.stackvalues import (
    AbsolutePath,
    DebianVersion,
    ExactVersion,
    FileName,
    Fingerprint,
    Kernels,
    Layer,
    Name,
    Part,
    PythonVersion,
    Url,
)


class Artifact(Part):
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


class Requirements(Part):
    """What a host must have before it is touched. Sizes are bytes.

    ``free_bytes`` is wanted on each of ``/``, ``/var`` and ``/tmp``.
    """

    machine: str = "x86_64"
    cpu_flags: tuple[str, ...] = ("avx",)
    free_bytes: Annotated[int, Field(ge=0)] = 0
    memory_bytes: Annotated[int, Field(ge=0)] = 0


class FabricManager(Part):
    """NVIDIA Fabric Manager, for hosts with NVSwitches; always exactly the driver's version."""

    package: Name
    version: DebianVersion
    artifact: str


class Driver(Part):
    """The driver's ``.run``. ``kernels`` are those that its module builds on; without it the rule table decides."""

    version: ExactVersion
    artifact: str
    kernels: Kernels | None = None
    fabric_manager: FabricManager | None = None

    @property
    def branch(self) -> str:
        """The driver's branch: ``470`` of 470.182.03."""
        return self.version.partition(".")[0]


class LocalRepository(Part):
    """CUDA's repository in a ``.deb``, which unpacks to ``directory`` and carries its own ``key`` there.

    ``pin`` is the artifact that becomes ``pin_file`` (apt preferences).
    """

    package: Name
    artifact: str
    directory: AbsolutePath
    key: FileName
    fingerprint: Fingerprint | None = None
    list_file: AbsolutePath
    pin: str
    pin_file: AbsolutePath

    @property
    def key_file(self) -> str:
        """The key's path on the host once the ``.deb`` is installed."""
        return f"{self.directory}/{self.key}"


class Cuda(Part):
    """The toolkit. ``components`` are exact dpkg versions of packages within it; ``nvcc`` is what nvcc calls itself."""

    version: ExactVersion
    package: Name
    package_version: DebianVersion
    nvcc: Annotated[str, Field(pattern=r"^V[0-9.]+$")]
    components: Mapping[Name, DebianVersion] = {}
    repository: LocalRepository

    @field_validator("components", mode="before")
    @classmethod
    def _drop_null(cls, value: Any) -> Any:
        """Another release's packages have other names: those of the stack that is extended are taken away by null."""
        return {name: one for name, one in value.items() if one is not None} if isinstance(value, Mapping) else value

    @property
    def series(self) -> str:
        """Major and minor version: ``11.2``."""
        return ".".join(self.version.split(".")[:2])

    @property
    def prefix(self) -> str:
        """Where the toolkit lies: ``/usr/local/cuda-11.2``."""
        return f"/usr/local/cuda-{self.series}"


class Cudnn(Part):
    """cuDNN from NVIDIA's archive, into the versioned toolkit.

    ``inside`` is the archive's one directory, ``libraries`` that of the libraries in it: NVIDIA named both otherwise
    from 8.3 on. ``record`` names what the host notes of its files: stacks whose toolkits lie side by side need one
    each, else the one that comes takes away the files of the one before.
    """

    version: ExactVersion
    artifact: str
    inside: FileName = "cuda"
    libraries: FileName = "lib64"
    record: Name = "cudnn"

    @property
    def number(self) -> int:
        """What ``cudnnGetVersion()`` answers: 8100 for 8.1.0.77."""
        major, minor, patch = (int(part) for part in self.version.split(".")[:3])
        return major * 1000 + minor * 100 + patch

    @property
    def library_version(self) -> str:
        """The ending of the libraries' real files: ``8.1.0``."""
        return ".".join(self.version.split(".")[:3])


class TensorFlow(Part):
    """TensorFlow in a venv of the first of ``pythons`` that the host has.

    ``constraints`` is the text of a pip constraints file by Python version (in the YAML: a file name beside it);
    ``wheelhouses`` names an archive of wheels by Python version, for hosts without an index. ``libraries`` are what it
    opens at run time, with the layer that brings each.
    """

    version: ExactVersion
    pythons: Annotated[tuple[PythonVersion, ...], Field(min_length=1)]
    constraints: Mapping[PythonVersion, str] = {}
    wheelhouses: Mapping[PythonVersion, str] = {}
    libraries: Mapping[str, Layer] = {}

    @property
    def series(self) -> str:
        """Major and minor version: ``2.9``."""
        return ".".join(self.version.split(".")[:2])

    def home(self, path: str = "") -> str:
        """The link through which the environment is used: ``path``, or ``/opt/tensorflow-SERIES`` where it is empty."""
        return path or f"/opt/tensorflow-{self.series}"


class AptRepository(Part):
    """A signed apt repository; ``key`` is an artifact.

    ``uri`` and ``suite`` may hold ``{distribution}`` and ``{codename}``, the host's ID and VERSION_CODENAME.
    """

    name: Name
    uri: Annotated[str, Field(pattern=r"^(https?://|file:)[^\s]+$")]
    suite: Annotated[str, Field(pattern=r"^[^\s]+$")] = "/"
    components: tuple[str, ...] = ()
    key: str
    fingerprint: Fingerprint | None = None

    @property
    def list_file(self) -> str:
        """Where apt reads it."""
        return f"/etc/apt/sources.list.d/{self.name}.list"

    @property
    def keyring(self) -> str:
        """Where its key lies, named by ``signed-by``."""
        return f"/usr/share/keyrings/{self.name}-keyring.gpg"


class DockerCe(Part):
    """Docker's own packages, used when ``container.docker`` says ``docker-ce``."""

    packages: tuple[Name, ...]
    repository: AptRepository


class ContainerToolkit(Part):
    """NVIDIA's container toolkit: all packages at one version."""

    version: DebianVersion
    packages: tuple[Name, ...]
    repository: AptRepository


class Container(Part):
    """Docker and NVIDIA's container toolkit."""

    docker: Literal["docker.io", "docker-ce"] = "docker.io"
    docker_ce: DockerCe | None = None
    toolkit: ContainerToolkit

    @property
    def docker_packages(self) -> tuple[str, ...]:
        """The packages that bring Docker."""
        return self.docker_ce.packages if self.docker == "docker-ce" and self.docker_ce else (self.docker,)


class Stack(Part):
    """All versions and files of one stack; ``distributions`` maps os-release's ID to its VERSION_IDs."""

    name: str
    description: str = ""
    distributions: Mapping[str, tuple[str, ...]]
    requirements: Requirements = Requirements()
    driver: Driver
    cuda: Cuda
    cudnn: Cudnn
    tensorflow: TensorFlow
    container: Container
    artifacts: Mapping[str, Artifact]

    @field_validator("artifacts", mode="before")
    @classmethod
    def _name_artifacts(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return {name: {**one, "name": name} if isinstance(one, Mapping) else one for name, one in value.items()}

    def artifact(self, name: str) -> Artifact:
        """The artifact of that name; an unknown one is an ``InputError`` with the nearest."""
        if name not in self.artifacts:
            raise InputError(f"the stack {self.name} has no artifact {name!r}; {suggestion(name, self.artifacts)}")
        return self.artifacts[name]

    @property
    def stand_ins(self) -> tuple[Artifact, ...]:
        """The artifacts in use that are not the vendor's own files."""
        return tuple(one for one in self.used_artifacts if one.stand_in)

    @property
    def used_artifacts(self) -> tuple[Artifact, ...]:
        """The artifacts that a host may need: not the key of a Docker that is not wanted, nor spare versions."""
        spare = ("container", "docker_ce") if self.container.docker != "docker-ce" else ("",)
        names = [name for way, name in self.artifact_uses() if way[: len(spare)] != spare]
        return tuple(self.artifact(name) for name in dict.fromkeys(names))

    def digest(self) -> str:
        """A sha256 over all that the stack says but addresses; see ``stackdata``."""
        return digest_of(plain(self))

    def artifact_uses(self) -> tuple[tuple[tuple[str, ...], str], ...]:
        """Where the stack names artifacts: the way to the name, and the name."""
        uses = [
            (("driver", "artifact"), self.driver.artifact),
            (("cuda", "repository", "artifact"), self.cuda.repository.artifact),
            (("cuda", "repository", "pin"), self.cuda.repository.pin),
            (("cudnn", "artifact"), self.cudnn.artifact),
            (("container", "toolkit", "repository", "key"), self.container.toolkit.repository.key),
        ]
        if self.driver.fabric_manager:
            uses.append((("driver", "fabric_manager", "artifact"), self.driver.fabric_manager.artifact))
        if self.container.docker_ce:
            uses.append((("container", "docker_ce", "repository", "key"), self.container.docker_ce.repository.key))
        uses += [(("tensorflow", "wheelhouses", python), name) for python, name in self.tensorflow.wheelhouses.items()]
        return tuple((way, name) for way, name in uses)


def safe_stack_name(name: str) -> bool:
    """Whether a stack's name can be a file's name, so that it cannot lead out of its directory."""
    return re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name) is not None
