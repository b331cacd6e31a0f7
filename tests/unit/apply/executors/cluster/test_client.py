"""A scheduler that cannot be used is one sentence with the exit status 2, at once."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import dask
import pytest

from hostwright.apply.executors.cluster import client
from hostwright.apply.executors.cluster.client import connected, in_time, is_loopback, is_open
from hostwright.common.errors import InputError
from tests.lab.sshd import free_port

TLS = "distributed.comm.tls"


def refused(address: str) -> str:
    with pytest.raises(InputError) as caught, connected(address, "test"):
        pass
    sentence = str(caught.value)
    assert caught.value.exit_status == 2
    assert "\n" not in sentence
    assert "Traceback" not in sentence
    return sentence


@pytest.mark.parametrize(
    "address", ["gateway1:8786", "http://gateway1:8786", "tcp://gateway1", "tcp://:8786", "tls://", "tcp://a:b:c", ""]
)
def test_what_is_no_address_is_said_with_what_is_expected(address):
    assert refused(address) == f"--scheduler: found {address!r}, expected tcp://HOST:PORT or tls://HOST:PORT"


def test_nobody_there():
    port = free_port()
    assert refused(f"tcp://127.0.0.1:{port}") == (
        f"--scheduler: no scheduler answers at tcp://127.0.0.1:{port} (Connection refused); "
        "start one with `dask scheduler`"
    )


def test_a_name_that_nobody_knows(monkeypatch: pytest.MonkeyPatch):
    def unknown(*_: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "create_connection", unknown)
    assert refused("tcp://nosuch.invalid:8786") == (
        "--scheduler: tcp://nosuch.invalid:8786: the name nosuch.invalid cannot be resolved (Name or service not known)"
    )


def test_a_machine_that_does_not_answer(monkeypatch: pytest.MonkeyPatch):
    def silent(*_: object) -> None:
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", silent)
    assert refused("tcp://192.0.2.1:8786") == "--scheduler: tcp://192.0.2.1:8786 does not answer within 10 s"


@contextmanager
def server(answer: bytes = b"", context: ssl.SSLContext | None = None) -> Iterator[int]:
    """Somebody who answers each connection with these bytes, and closes it."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:

        def serve() -> None:
            while True:
                try:
                    plain, _ = listening.accept()
                except OSError:
                    return
                try:
                    with context.wrap_socket(plain, server_side=True) if context else plain as stream:
                        stream.sendall(answer)
                except (OSError, ssl.SSLError):
                    plain.close()

        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1]


def certificates(folder: Path, name: str) -> dict[str, str]:
    """A certificate of its own authority, and its key."""
    key, cert = folder / f"{name}.key", folder / f"{name}.pem"
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    subprocess.run(
        [*words, "-keyout", str(key), "-out", str(cert), "-days", "2", "-subj", f"/CN={name}"],
        check=True,
        capture_output=True,
    )
    return {f"{TLS}.ca-file": str(cert), f"{TLS}.client.cert": str(cert), f"{TLS}.client.key": str(key)}


def serving(settings: dict[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=settings[f"{TLS}.ca-file"])
    context.load_cert_chain(settings[f"{TLS}.client.cert"], settings[f"{TLS}.client.key"])
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def test_somebody_else_answers_there():
    with server(b"SSH-2.0-OpenSSH_9.2\r\n") as port:
        sentence = refused(f"tcp://127.0.0.1:{port}")
    assert sentence == f"--scheduler: tcp://127.0.0.1:{port} is not a Dask scheduler; check the port"


def test_somebody_who_closes_the_connection():
    with server() as port:
        sentence = refused(f"tcp://127.0.0.1:{port}")
    assert sentence.startswith(f"--scheduler: tcp://127.0.0.1:{port} did not answer like a scheduler (")
    assert "tls://" in sentence


def test_tls_without_certificates_names_the_settings():
    with dask.config.set({f"{TLS}.ca-file": None, f"{TLS}.client.cert": None, f"{TLS}.client.key": None}):
        sentence = refused("tls://127.0.0.1:8786")
    assert "needs TLS certificates" in sentence
    assert "DASK_DISTRIBUTED__COMM__TLS__CA_FILE" in sentence


def test_certificates_that_cannot_be_read_are_named(tmp_path: Path):
    settings = certificates(tmp_path, "ours") | {f"{TLS}.ca-file": str(tmp_path / "none.pem")}
    with dask.config.set(settings):
        sentence = refused("tls://127.0.0.1:8786")
    assert sentence.startswith("--scheduler: Dask's settings for TLS are invalid (")
    assert "No such file" in sentence


def test_a_scheduler_of_another_authority(tmp_path: Path):
    with (
        dask.config.set(certificates(tmp_path, "ours")),
        server(context=serving(certificates(tmp_path, "theirs"))) as port,
    ):
        sentence = refused(f"tls://127.0.0.1:{port}")
    assert f"the certificate of tls://127.0.0.1:{port} is not trusted" in sentence
    assert "ca-file" in sentence


def test_a_scheduler_that_does_not_take_our_certificate(tmp_path: Path):
    ours, theirs = certificates(tmp_path, "ours"), certificates(tmp_path, "theirs")
    mixed = ours | {f"{TLS}.ca-file": theirs[f"{TLS}.ca-file"]}
    with dask.config.set(mixed), server(context=serving(theirs)) as port:
        sentence = refused(f"tls://127.0.0.1:{port}")
    assert sentence.startswith(f"--scheduler: tls://127.0.0.1:{port} ")
    assert "certificate" in sentence


def test_a_scheduler_without_tls(tmp_path: Path):
    with dask.config.set(certificates(tmp_path, "ours")), server(b"\0" * 64) as port:
        sentence = refused(f"tls://127.0.0.1:{port}")
    assert "the TLS handshake with" in sentence


@pytest.mark.parametrize(
    ("address", "loopback"),
    [
        ("tcp://127.0.0.1:8786", True),
        ("tcp://[::1]:8786", True),
        ("tcp://localhost:8786", True),
        ("tcp://192.0.2.1:8786", False),
        ("tcp://gateway1:8786", False),
        ("127.0.78.1", True),
        ("::1", True),
        ("192.0.2.1", False),
        ("gpu01", False),
    ],
)
def test_who_is_reached_by_this_machine_alone(address, loopback):
    assert is_loopback(address) is loopback


def test_a_call_that_hangs_is_left_behind():
    assert in_time(lambda: "answer", 60.0) == "answer"
    assert in_time(lambda: 1 // 0, 60.0) is None
    assert in_time(threading.Event().wait, 0.01) is None


class Hanging:
    """A client whose first worker hangs, and whose second raises."""

    def run(self, function, *args, workers):
        (worker,) = workers
        if worker == "hangs":
            threading.Event().wait()
        return {worker: function(*args)}


def test_one_worker_that_hangs_holds_up_no_other():
    workers = ("hangs", "w1", "w2")
    answers, errors = client.ask_each(Hanging(), workers, int, "7", timeout_s=6)  # type: ignore[arg-type]
    assert answers == {"w1": 7, "w2": 7}
    assert {name: type(error) for name, error in errors.items()} == {"hangs": TimeoutError}
    answers, errors = client.ask_each(Hanging(), ("w1",), int, "x", timeout_s=60)  # type: ignore[arg-type]
    assert (answers, type(errors["w1"])) == ({}, ValueError)


@pytest.mark.parametrize(
    ("address", "warned"),
    [
        ("tcp://192.0.2.1:8786", True),
        ("tcp://gateway1:8786", True),
        ("tcp://127.0.0.1:8786", False),
        ("tcp://localhost:8786", False),
        ("tcp://[::1]:8786", False),
        ("tls://192.0.2.1:8786", False),
    ],
)
def test_a_scheduler_that_others_reach_without_tls_is_warned_of(address, warned):
    assert is_open(address) is warned
