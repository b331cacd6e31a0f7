"""A repository's key without an owner, as hosts print it, and stacks that use it."""

from __future__ import annotations

import base64

from hostwright.resources.packages.openpgp import fingerprints
from hostwright.stack.stack import Stack
from tests.unit.support.stacks import with_values


def ring(name: str) -> bytes:
    """A keyring with one key of version 4."""
    body = b"\x04" + bytes(4) + b"\x01" + name.encode()
    return bytes([0xC6, len(body)]) + body


def shown(*names: str) -> str:
    """A host's output for a keyring with these keys."""
    return base64.b64encode(b"".join(map(ring, names))).decode() + "\n"


FINGERPRINT = fingerprints(ring("vendor"))[0]
RING = shown("vendor")


def with_our_key(stack: Stack) -> Stack:
    """The stack with this key in its repositories."""
    cuda, container = stack.sections["cuda"], stack.sections["container"]
    named = {"fingerprint": FINGERPRINT}
    toolkit, docker = container.toolkit, container.docker_ce  # type: ignore[attr-defined]
    return with_values(
        stack,
        cuda={"repository": cuda.repository.model_copy(update=named)},  # type: ignore[attr-defined]
        container={
            "toolkit": toolkit.model_copy(update={"repository": toolkit.repository.model_copy(update=named)}),
            "docker_ce": docker.model_copy(update={"repository": docker.repository.model_copy(update=named)}),
        },
    )
