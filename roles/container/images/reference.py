"""The names of images, read as Docker reads them: by the grammar of distribution/reference."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.roles import Command, Pattern

HUB = "docker.io"  #: the registry of names that name none
_OLD_HUB = "index.docker.io"
_OFFICIAL = "library/"  #: where the hub has images whose path is one word
_MOST_PATH = 255  #: characters, Docker's own limit
_MOST_REGISTRY = 255 + len(":65535")  #: our choice: DNS has no longer names
_ID = Pattern(r"[0-9a-f]{64}")
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_REGISTRY = Pattern(rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9A-Fa-f:]+\])(?::[0-9]+)?")
_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_PATH = Pattern(rf"{_COMPONENT}(?:/{_COMPONENT})*")
_TAG = Pattern(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = Pattern(r"sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128}")


@dataclass(frozen=True, slots=True)
class ImageName:
    """An image by name: ``[REGISTRY/]PATH[:TAG][@DIGEST]``, whole; tag and digest are empty where the text has none."""

    registry: str
    path: str
    tag: str = ""
    digest: str = ""

    @property
    def repository(self) -> str:
        """Registry and path as Docker shows them: without the hub, and without ``library`` before a single word."""
        if self.registry not in (HUB, ""):
            return f"{self.registry}/{self.path}"
        word = self.path.removeprefix(_OFFICIAL)
        return self.path if "/" in word else word

    @property
    def shown(self) -> str:
        """The name under which Docker lists the image: with its digest where it is pinned, else with its tag."""
        return f"{self.repository}@{self.digest}" if self.digest else f"{self.repository}:{self.tag or 'latest'}"


def read_image_name(text: str) -> ImageName:
    """An image's name, as ``docker pull`` takes it.

    >>> read_image_name("tensorflow/serving:2.9.0")
    ImageName(registry='docker.io', path='tensorflow/serving', tag='2.9.0', digest='')
    >>> read_image_name("docker.io/library/debian:11").repository
    'debian'

    Raises ``ValueError`` with what is wrong with it, as the end of a sentence.
    """
    if _ID.fullmatch(text):
        raise ValueError("64 hexadecimal digits are an image's ID, not its name")
    registry, rest = _registry(text)
    name, at, digest = rest.partition("@")
    path, colon, tag = name.partition(":")
    if registry == HUB and "/" not in path:
        path = _OFFICIAL + path
    if len(registry) > _MOST_REGISTRY or len(path) > _MOST_PATH:
        raise ValueError(f"it is longer than a name can be ({_MOST_PATH} characters)")
    if registry and not _REGISTRY.fullmatch(registry) and ":" not in registry:
        registry, path = "", f"{registry}/{path}"  # a dot alone makes no registry of a folder such as a_b.c
    if registry and not _REGISTRY.fullmatch(registry):
        raise ValueError("what stands before its first / is no registry")
    if not _PATH.fullmatch(path):
        capitals = path != path.lower() and _PATH.fullmatch(path.lower())
        raise ValueError("its path has capitals" if capitals else "its path is none")
    if colon and not _TAG.fullmatch(tag):
        raise ValueError("what stands behind its : is no tag")
    if at and not _DIGEST.fullmatch(digest):
        raise ValueError("what stands behind its @ is no digest, such as sha256:… with 64 hexadecimal digits")
    return ImageName(registry, path, tag, digest)


def familiar(text: str) -> str:
    """The name of an image with a tag and no digest, as Docker shows it.

    >>> familiar("docker.io/library/debian:11")
    'debian:11'

    Raises ``ValueError`` as ``read_image_name``.
    """
    name = read_image_name(text)
    if not name.tag or name.digest:
        raise ValueError("it has no tag" if not name.tag else "it has a digest")
    return name.shown


def is_tagged(text: str) -> bool:
    """Whether a text is a name with a tag, as Docker shows it."""
    try:
        return familiar(text) == text
    except ValueError:
        return False


def absent_because(text: str) -> str:
    """That a host lacks an image, and how to bring it, as the end of a sentence whose subject is the image.

    >>> absent_because("debian:11")
    'which is not on this host: bring it with `invoke images.push --archive FILE`'
    """
    name = read_image_name(text)
    if not name.digest:
        return f"which is not on this host: bring it with {Command('images.push', archive='FILE')}"
    return (
        "which this host does not have by that digest: archives carry no digest of a registry, so that images.push "
        f"brings the image by its tag alone; write that ({name.repository}:{name.tag or 'TAG'})"
    )


def _registry(text: str) -> tuple[str, str]:
    """The registry and what follows: a first part with a dot, a port or a capital is one, and ``localhost`` is."""
    first, slash, rest = text.partition("/")
    if not slash or not (first == "localhost" or "." in first or ":" in first or first != first.lower()):
        return HUB, text
    return (HUB if first == _OLD_HUB else first), rest
