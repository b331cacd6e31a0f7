"""Hosts with workspaces, models, images and a registry: what they answer when they are asked."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from tests.pictures.hosts import KINDS, MODEL
from tests.places import PROJECT

PYTHON = "sha256:4bebe48d5f498625c0ab597970cbf0db7f1d0330ca3e88d457b614f53dd775f9"
CUDA = "sha256:abd75556af10f08f17153fe9386e81ec4ede6b762f11c460a3d3ab7183d05718"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAID0Fl7l3eLK+d4Ez/PEEPGzn7MBQubH104CYzFf9H3gs box"
#: what is in a script → what it prints, with its status
SAYS = {
    "docker.sock logs": ("step 1000: loss 0.31\nstep 2000: loss 0.18\nsaved /notebooks/checkpoint-2000\n", 0),
    "docker.sock exec": ("GPU 0: Tesla T4 (UUID: GPU-9770bbdd-ac00-55f4-be28-d12740a699a4)\n", 0),
    "/token": ("3f1c9e\n", 0),
    "host_key.pub": (f"{KEY}\n", 0),
    "authority": ("", 0),
    "versions/": (json.dumps({"error": "Servable not found for request: Specific(mnist, 2)"}), 0),
}


@cache
def ANSWERS() -> dict[Any, str]:  # noqa: N802 - a value, which imports of the product would slow down
    """Probe → what a host with everything answers."""
    from hostwright.standard.roles.container.images.facts import IMAGES_PROBE as IMAGES
    from hostwright.standard.roles.serving.states.facts import MODELS_PROBE as MODELS
    from hostwright.standard.roles.workspaces.states.facts import WORKSPACES_PROBE as SPACES

    return {SPACES: (PROJECT / "tests/fixtures/workspaces/facts.txt").read_text(), MODELS: _models(), IMAGES: _images()}


def _models() -> str:
    from hostwright.standard.roles.serving.states.served import config_of

    rows = [{"version": "1", "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}]
    lines = (
        f"config mnist {config_of('mnist', (1,), 1)}",
        f"version mnist 1 {MODEL.removeprefix('sha256:')}",
        f"status mnist {json.dumps({'model_version_status': rows})}",
        "live mnist 1",
    )
    return "".join(f"{line}\n" for line in (*lines, "end"))


def _images() -> str:
    def image(digest: str, tag: str, created: str, size: int) -> str:
        return f"image {json.dumps({'id': digest, 'created': created, 'size': size, 'tags': [tag], 'digests': []})}"

    container = {"name": "/workspace-alice-lab", "image": PYTHON, "state": "running", "created": "2026-11-01T08:00:00Z"}
    lines = (
        image(PYTHON, "lab/jupyter:1", "2026-10-02T08:00:00Z", 4_213_000_000),
        image(CUDA, "nvidia/cuda:11.2.2-base-ubuntu20.04", "2021-05-06T08:00:00Z", 122_000_000),
        f"container {json.dumps(container)}",
        "free 412000000",
    )
    return "".join(f"{line}\n" for line in (*lines, "end"))


def ask(shell: Any, probes: Any, **_: Any) -> Any:
    """In the place of ``ask`` in verbs of roles: the Docker of a host that failed is silent."""
    from hostwright.plan.model import Answer, Facts

    texts = ANSWERS()
    silent = KINDS[shell.host] == "failed"

    def answer(probe: Any) -> str:
        if KINDS[shell.host] == "bare":
            return "docker absent\nend\n"
        return "docker silent\nend\n" if silent else texts.get(probe, "")

    return Facts({probe: Answer(0, answer(probe)) for probe in probes})


@cache
def authority() -> str:
    """The certificate of an authority."""
    from datetime import UTC, datetime

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "registry of lab01")])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(datetime(2026, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2036, 1, 1, tzinfo=UTC))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM).decode()


class Shell:
    """In the place of a root shell on a host that answers: programs end well, and those of verbs of roles print."""

    def __init__(self, host: str) -> None:
        from types import SimpleNamespace

        self.host = host
        self.session = SimpleNamespace(noise=b"", noise_note="")

    def __enter__(self) -> Shell:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""

    def close(self) -> None:
        """Nothing is open."""

    def attempt(self, script: str, **_: object) -> Any:
        """What the program prints."""
        from hostwright.transport.exchange import Output

        text, status = next((said for part, said in SAYS.items() if part in script), ("", 0))
        if script.startswith("cat -- ") and "authority" in script:
            text = authority()
        return Output(status, text.encode(), b"", False, 0.0)

    run = as_login_user = attempt
