"""Parser of image names by Docker's grammar (distribution/reference)."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.roles import Command, Pattern

HUB = "docker.io"  #: registry that Docker uses for an image name without a registry
_OLD_HUB = "index.docker.io"
_OFFICIAL = "library/"  #: path prefix of Docker Hub's own images, such as ``debian``
_MOST_PATH = 255  #: maximum number of characters in an image name's path (Docker's own limit)
#: maximum number of characters in a registry's address (our choice). DNS limits a name to 255 characters.
_MOST_REGISTRY = 255 + len(":65535")
_ID = Pattern(r"[0-9a-f]{64}")
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_REGISTRY = Pattern(rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9A-Fa-f:]+\])(?::[0-9]+)?")
_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_PATH = Pattern(rf"{_COMPONENT}(?:/{_COMPONENT})*")
_TAG = Pattern(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = Pattern(r"sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128}")


@dataclass(frozen=True, slots=True)
class ImageName:
    """Image name ``[REGISTRY/]PATH[:TAG][@DIGEST]``. Tag and digest are empty if missing."""

    registry: str
    path: str
    tag: str = ""
    digest: str = ""

    @property
    def repository(self) -> str:
        """Registry and path in Docker's notation, without Docker Hub's name and its prefix ``library/``."""
        if self.registry not in (HUB, ""):
            return f"{self.registry}/{self.path}"
        word = self.path.removeprefix(_OFFICIAL)
        return self.path if "/" in word else word

    @property
    def shown(self) -> str:
        """Name as in Docker's list of images: with the digest if present, else with the tag."""
        return f"{self.repository}@{self.digest}" if self.digest else f"{self.repository}:{self.tag or 'latest'}"


def read_image_name(text: str) -> ImageName:
    """Parse an image name in the notation of ``docker pull``.

    >>> read_image_name("tensorflow/serving:2.9.0")
    ImageName(registry='docker.io', path='tensorflow/serving', tag='2.9.0', digest='')
    >>> read_image_name("docker.io/library/debian:11").repository
    'debian'

    Raises ``ValueError`` for an invalid name. The error's text is the end of a sentence.
    """
    if _ID.fullmatch(text):
        raise ValueError("64 hexadecimal digits are an image's ID, not its name")
    registry, rest = _registry(text)
    name, at, digest = rest.partition("@")
    path, colon, tag = name.partition(":")
    if registry == HUB and "/" not in path:
        path = _OFFICIAL + path
    if len(registry) > _MOST_REGISTRY or len(path) > _MOST_PATH:
        raise ValueError(f"the name is longer than {_MOST_PATH} characters")
    if registry and not _REGISTRY.fullmatch(registry) and ":" not in registry:
        registry, path = "", f"{registry}/{path}"
    if registry and not _REGISTRY.fullmatch(registry):
        raise ValueError("the part before the first '/' is not a registry's address")
    if not _PATH.fullmatch(path):
        capitals = path != path.lower() and _PATH.fullmatch(path.lower())
        raise ValueError("the path has uppercase letters" if capitals else "the path is invalid")
    if colon and not _TAG.fullmatch(tag):
        raise ValueError("the part after the ':' is not a valid tag")
    if at and not _DIGEST.fullmatch(digest):
        raise ValueError("the part after the '@' is not a digest, such as sha256:… with 64 hexadecimal digits")
    return ImageName(registry, path, tag, digest)


def familiar(text: str) -> str:
    """Return the image name ``text``, with a tag and without a digest, in Docker's notation.

    >>> familiar("docker.io/library/debian:11")
    'debian:11'

    Raises ``ValueError`` for any other text.
    """
    name = read_image_name(text)
    if not name.tag or name.digest:
        raise ValueError("the name has no tag" if not name.tag else "the name has a digest")
    return name.shown


def is_tagged(text: str) -> bool:
    """Return whether ``text`` is an image name in Docker's notation, with a tag and without a digest."""
    try:
        return familiar(text) == text
    except ValueError:
        return False


def absent_because(text: str) -> str:
    """Return the end of a sentence about the missing image ``text``, with the command that loads the image.

    >>> absent_because("debian:11")
    'it is not on this host; load it with `invoke images.push --archive FILE`'
    """
    name = read_image_name(text)
    if not name.digest:
        return f"it is not on this host; load it with {Command('images.push', archive='FILE')}"
    return (
        "this host has no image with that digest, and images.push cannot load one, because archives have "
        f"no registry digests; name it by its tag, {name.repository}:{name.tag or 'TAG'}"
    )


def _registry(text: str) -> tuple[str, str]:
    """Split an image name into registry and path.

    The first part is a registry if it is ``localhost`` or has a dot, a port or an uppercase letter.
    """
    first, slash, rest = text.partition("/")
    if not slash or not (first == "localhost" or "." in first or ":" in first or first != first.lower()):
        return HUB, text
    return (HUB if first == _OLD_HUB else first), rest
