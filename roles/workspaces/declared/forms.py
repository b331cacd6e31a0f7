"""Types that check values of a declared workspace, such as names, sizes, images and mounts."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from hostwright.roles import HostPath, Unquoted, clean_path, describe, short
from hostwright.standard.roles.container.images.reference import read_image_name
from hostwright.standard.roles.workspaces.declared.zones import checked_zone

Kind = Literal["jupyter", "ssh", "tensorboard", "batch", "serving"]
#: workspace kinds with containers that can restart without loss of work
UNATTENDED = ("tensorboard", "serving")

HOME = "/workspace"

#: paths of host directories that no workspace can mount
_SYSTEM = (
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/root", "/run", "/sbin", "/sys",
    "/usr", "/var",
)  # fmt: skip
_TEMPORARY = ("/tmp", "/var/tmp", "/var/run")  # noqa: S108 - what is refused
#: paths of directories that cannot contain users' files
_SHARED = (
    "/", "/home", "/opt", "/var", "/var/backups", "/var/cache", "/var/lib", "/var/local", "/var/log", "/var/mail",
    "/var/opt", "/var/spool", "/var/www",
)  # fmt: skip
_STATES = ("/var/lib/docker", "/var/lib/containerd", "/var/lib/hostwright", "/var/cache/hostwright")
_OWN_VARIABLES = ("HOME", "USER", "LOGNAME")
_SIZE = re.compile(r"([1-9][0-9]{0,7})([kmgt])")
_FACTORS = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
#: type of a public key → number of fields of the key
_KEY_FIELDS = {
    "ssh-ed25519": 2, "ssh-rsa": 3, "ecdsa-sha2-nistp256": 3, "ecdsa-sha2-nistp384": 3, "ecdsa-sha2-nistp521": 3,
    "sk-ssh-ed25519@openssh.com": 3, "sk-ecdsa-sha2-nistp256@openssh.com": 4,
}  # fmt: skip


def bytes_of(size: str) -> int:
    """Return the number of bytes of a size such as ``64g``.

    >>> bytes_of("1g")
    1073741824
    """
    number, unit = re.fullmatch(_SIZE, size).groups()  # type: ignore[union-attr]  # checked when it was read
    return int(number) * _FACTORS[unit]


def beyond_memory(whose: str, shm: str, memory: str | None) -> tuple[str, ...]:
    """Return a warning that begins with ``whose`` if the shared memory ``shm`` exceeds the limit ``memory``.

    >>> beyond_memory("workspace alice-lab", "4g", "1g")[0].partition(";")[0]
    'workspace alice-lab has 4g of shared memory (shm), which counts against its 1g of memory'
    >>> beyond_memory("workspace alice-lab", "1g", None)
    ()
    """
    if memory is None or bytes_of(shm) <= bytes_of(memory):
        return ()
    return (
        f"{whose} has {shm} of shared memory (shm), which counts against its {memory} of memory; a program that fills"
        " /dev/shm is killed for lack of memory before it is full",
    )


def digest_of(image: str) -> str:
    """Return the digest in the image name ``image``; empty for a name without a digest."""
    return image.partition("@")[2]


def _size(text: str) -> str:
    if not _SIZE.fullmatch(text.lower()):
        raise ValueError(f"found {text!r}, expected a size such as 512m or 64g")
    return text.lower()


def _image(text: str) -> str:
    try:
        name = read_image_name(text)
    except ValueError as error:
        expected = "expected an image such as pytorch/pytorch:2.14.1-cuda13.0-cudnn9-runtime"
        raise ValueError(f"found {short(text)!r}, {expected}: {error}") from None
    if name.tag == "latest":
        raise ValueError(f"{text}: the tag 'latest' changes every few weeks; name an exact tag")
    if not name.tag and not name.digest:
        raise ValueError(f"{text}: tag or digest is missing; name an exact tag ({text}:TAG) or a digest (@sha256:…)")
    return text


def is_below(path: str, directory: str) -> bool:
    """Return whether ``path`` is ``directory`` or below it."""
    return path == directory or path.startswith(f"{directory.rstrip('/')}/")


def _mount(text: str) -> str:
    parts = text.split(":")
    if len(parts) not in (2, 3) or (len(parts) == 3 and parts[2] not in ("ro", "rw")):
        raise ValueError(f"found {text!r}, expected HOST_DIRECTORY:CONTAINER_DIRECTORY, optionally with :ro")
    source, target = clean_path(parts[0]), clean_path(parts[1])
    for side, path in (("host", source), ("workspace", target)):
        system = next((directory for directory in _SYSTEM if is_below(path, directory)), "/" if path == "/" else None)
        if system:
            raise ValueError(f"{text}: {path} is a system path of the {side}; choose a path outside {system}")
    if is_below(HOME, target):
        raise ValueError(f"{text}: {HOME} has the workspace's own files; mount below it, such as {HOME}/data")
    return text


def _keys(text: str) -> str:
    line = text.strip()
    expected = "expected a public key as in ~/.ssh/id_ed25519.pub"
    if not re.fullmatch(r"(ssh|ecdsa|sk-ssh|sk-ecdsa)-[a-z0-9@.-]+ [A-Za-z0-9+/]{16,}={0,3}( [^\n\r]*)?", line):
        raise ValueError(f"found {text[:40]!r}, {expected}")
    if not line.replace("\t", " ").isprintable():
        raise ValueError(
            f"the public key has a non-printable character (it ends in {text[-40:]!r}); copy the line again"
        )
    kind, blob = line.split(" ")[:2]
    fields = _fields(blob)
    if fields and fields[0] != kind.encode():
        raise ValueError(
            f"found {text[:40]!r}, but the data of the key has the type "
            f"{fields[0][:40].decode(errors='replace')!r}; {expected}; copy the whole line again"
        )
    if not fields or len(fields) != _KEY_FIELDS.get(kind, len(fields)):
        raise ValueError(f"found {text[:40]!r}, an incomplete or changed key; {expected}; copy the whole line again")
    return line


def _fields(blob: str) -> list[bytes]:
    try:
        data = base64.b64decode(blob, validate=True)
    except binascii.Error:
        return []
    fields, at = [], 0
    while at < len(data):
        end = at + 4 + int.from_bytes(data[at : at + 4], "big")
        if end > len(data):
            return []
        fields.append(data[at + 4 : end])
        at = end
    return fields


def _workspace_name(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,30}", text):
        raise ValueError(
            f"found {text[:40]!r}, expected at most 31 lowercase letters, digits and hyphens, such as alice-lab"
        )
    return text


def _user_name(text: str) -> str:
    if not re.fullmatch(r"[a-z_][a-z0-9_-]{0,30}", text):
        raise ValueError(
            f"found {text[:40]!r}, expected an account name, such as alice: at most 31 lowercase letters, digits,"
            " hyphens and underscores, starting with a letter"
        )
    return text


def _variables(value: Any) -> Any:
    if not isinstance(value, dict):
        raise ValueError(f"found {str(value)[:40]!r}, expected NAME: VALUE, such as {{TZ: Europe/Berlin}}")
    if unclear := [f'{name}: "{short(each.text)}"' for name, each in value.items() if isinstance(each, Unquoted)]:
        raise ValueError(f"YAML parsers disagree on unquoted values; put them in quotes: {', '.join(unclear)}")
    return {name: _variable(name, text) for name, text in value.items()}


def _variable(name: Any, value: Any) -> str:
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,127}", name):
        raise ValueError(f"found {str(name)[:40]!r}, expected a variable's name such as TZ")
    if name.startswith("NVIDIA_") or name == "CUDA_VISIBLE_DEVICES":
        raise ValueError(f"{name} is set by Hostwright; remove it and select GPUs with `gpus: [0]`")
    if name in _OWN_VARIABLES:
        raise ValueError(f"{name} is set by Hostwright; remove it")
    text = str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
    if isinstance(value, bool):
        found = "true" if value else "false"
        raise ValueError(
            f"{name}: expected text, found the YAML value {found}; put it in quotes (yes, no, on and off also need "
            "quotes)"
        )
    if value is None:
        raise ValueError(f'{name}: YAML reads the value as null; put it in quotes, such as "" for an empty text')
    if not isinstance(text, str):
        raise ValueError(f"{name}: found {describe(value)}, expected text or a number; put it in quotes")
    if len(text) > 4096 or not text.isprintable():
        raise ValueError(
            f"{name}: the value is longer than 4096 characters, or has a control character, such as a line break"
        )
    return checked_zone(text) if name == "TZ" else text


def decimal(value: Any) -> Any:
    """Return ``value`` if it was written in decimal digits. Raises ``ValueError`` for any other notation.

    YAML 1.1 parses ``0644`` as 420, and Docker's ``22:22`` as 1342.
    """
    return _written_as(r"0|[1-9][0-9]*", value, "a whole number in digits, without a 0 before it")


def _fraction(value: Any) -> Any:
    return _written_as(r"(0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+", value, "a number such as 8 or 0.5")


def _written_as(form: str, value: Any, expected: str) -> Any:
    text = value.text if isinstance(value, Unquoted) else value
    if isinstance(text, str) and not re.fullmatch(form, text):
        raise ValueError(f"found {short(text)!r}, expected {expected}")
    return value


def _script(text: str) -> str:
    """Return the script ``text`` without a byte order mark and Windows line ends. Raises ``ValueError`` for a NUL
    character.
    """
    return _word(text.removeprefix("\ufeff").replace("\r\n", "\n"))


def _word(text: str) -> str:
    if "\0" in text:
        raise ValueError("the argument contains a NUL character; remove it")
    return text


def _peoples_directory(path: str) -> str:
    """Raise ``ValueError`` if ``path`` is a directory of other files, because root will own the directory of users'
    files.
    """
    system = next((each for each in (*_SYSTEM, *_TEMPORARY) if each != "/var" and is_below(path, each)), None)
    if system or path in _SHARED or any(is_below(path, each) for each in _STATES):
        raise ValueError(
            f"{path} has system files or other programs' files; choose a directory that is only for users' "
            "files, such as /srv/workspaces"
        )
    return path


WorkspaceName = Annotated[str, AfterValidator(_workspace_name)]
UserName = Annotated[str, AfterValidator(_user_name)]
#: environment variables of a container, in addition to the image's
Variables = Annotated[Mapping[str, str], BeforeValidator(_variables)]
#: numeric ID of a user; lower IDs belong to system accounts
Id = Annotated[int, BeforeValidator(decimal), Field(ge=1000, le=2**31 - 2)]
Pids = Annotated[int, BeforeValidator(decimal), Field(ge=16, le=4194304)]
Size = Annotated[str, AfterValidator(_size)]
Image = Annotated[str, AfterValidator(_image)]
Mount = Annotated[str, AfterValidator(_mount)]
PublicKey = Annotated[str, AfterValidator(_keys)]
#: digest of a model version: the hash of ``sha256sum``'s output for all files
Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
Version = Annotated[int, BeforeValidator(decimal), Field(ge=1, le=2**63 - 1)]
PeoplesDirectory = Annotated[HostPath, AfterValidator(_peoples_directory)]
Script = Annotated[str, AfterValidator(_script)]
Word = Annotated[str, AfterValidator(_word)]
Cpus = Annotated[float, BeforeValidator(_fraction), Field(gt=0, le=4096)]
Count = Annotated[int, BeforeValidator(decimal), Field(ge=0)]
