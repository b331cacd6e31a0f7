"""An SSH server that lies about SSH itself: it stops at any stage of a connection, or sends messages without end.

``python -m tests.lab.liars.sshliar LIE FOLDER`` serves at a port of 127.0.0.1 of its own, and writes below FOLDER
``known_hosts`` and ``port``; ``reached`` once somebody is being lied to. Each lie was told to somebody, or found by
somebody, before: see the numbers beside them.
"""

from __future__ import annotations

import os
import re
import socket
import struct
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import paramiko
from paramiko import common
from paramiko.message import Message

from tests.lab.listening import Listener

MANY = 3_000_000  #: messages that an endless lie would send to whoever takes them
VERSION = b"SSH-2.0-OpenSSH_9.2\r\n"


@dataclass
class Told:
    """What a lie needs: the transport, a channel where there is one, and the beginning of a command's frame."""

    liar: Liar
    transport: paramiko.Transport
    channel: int = 0
    begin: bytes = b""
    opened: paramiko.Channel | None = None

    def send(self, kind: int, *fields: object) -> None:
        """One message. Its fields are bytes as they are, text, numbers and truth values as SSH writes them."""
        message = Message()
        message.add_byte(bytes([kind]))
        for value in fields:
            match value:
                case bool():
                    message.add_boolean(value)
                case int():
                    message.add_int(value)
                case str():
                    message.add_string(value)
                case bytes():
                    message.add_bytes(value)
        self.transport._send_message(message)
        self.liar.sent += 1

    def data(self, data: bytes) -> None:
        """Output of the command, whether there is room for it or not."""
        self.send(common.MSG_CHANNEL_DATA, self.channel, struct.pack(">I", len(data)) + data)

    def flood(self, kind: int, *fields: object) -> None:
        """The same message without end."""
        for _ in range(MANY):
            self.send(kind, *fields)

    def drip(self) -> None:
        """A byte now and then."""
        self.data(self.begin)
        while not self.liar.over.wait(0.1):
            self.data(b"x")

    def output(self, piece: bytes) -> None:
        """Output of the command without end."""
        self.data(self.begin)
        for _ in range(MANY):
            self.data(piece)

    def bomb(self) -> None:
        """An answer that is whole, and grows from one megabyte to one gigabyte where somebody unpacks it.

        Where nobody does, output without end.
        """
        self.data(self.begin)
        if self.opened is None or b"/bin/gzip" not in self.opened.recv(4096):
            for _ in range(MANY):
                self.data(b"x" * 30_000)
        end = b"hwend-" + self.begin.removeprefix(b"hwbegin-") + b" 0."
        gzip = zlib.compressobj(1, wbits=31)
        packed = b"".join([gzip.compress(bytes(1 << 20)) for _ in range(1024)]) + gzip.flush()
        for piece in (*(packed[at : at + 30_000] for at in range(0, len(packed), 30_000)), end):
            self.data(piece)
        for piece in (self.begin, end):
            self.send(common.MSG_CHANNEL_EXTENDED_DATA, self.channel, 1, piece.decode())

    def after(self, kind: int, *fields: object) -> None:
        """A message about the channel after the command has begun."""
        self.data(self.begin)
        self.send(kind, self.channel, *fields)

    def drip_errors(self) -> None:
        """A byte of standard error now and then."""
        self.data(self.begin)
        while not self.liar.over.wait(0.1):
            self.send(common.MSG_CHANNEL_EXTENDED_DATA, self.channel, 1, "x")

    def rekey(self) -> None:
        """New keys again and again."""
        self.data(self.begin)
        if self.opened is not None:
            self.opened.recv(1)  # the command was answered
        for _ in range(MANY):
            self.transport.renegotiate_keys()
            self.liar.sent += 1


Lie = Callable[[Told], object]
C = common


def never(_told: Told) -> None:
    """Not a word."""


#: stage → lie; the stage is where an honest server would go on
LIES: dict[str, tuple[str, Lie]] = {
    # paramiko 929, 739, 2599, 869; golang 15113, 21941; asyncssh 725; mscdex/ssh2 105
    "keys are never exchanged": ("kex", never),
    "the login is never answered": ("login", never),
    "a channel is never opened": ("open", never),
    "a command is never answered": ("exec", never),
    "a command never begins": ("run", never),
    "output and then silence": ("run", lambda told: told.data(told.begin + b"half an ans")),
    "output that drips": ("run", Told.drip),
    "output without end": ("run", lambda told: told.output(b"x" * 30_000)),
    "an answer that grows a thousandfold": ("run", Told.bomb),
    "output byte by byte": ("run", lambda told: told.output(b"x")),
    # openssh CVE-2016-8858, CVE-2025-26466; golang CVE-2026-39830, 18439
    "pings before the login": ("login", lambda told: told.flood(192, "x" * 8)),
    "messages to be ignored": ("run", lambda told: told.flood(C.MSG_IGNORE, "x")),
    "messages for the log": ("login", lambda told: told.flood(C.MSG_DEBUG, True, "x", "")),
    "unknown messages": ("run", lambda told: told.flood(199)),
    "requests that want an answer": ("run", lambda told: told.flood(C.MSG_GLOBAL_REQUEST, "x@y", True)),
    "answers that nobody asked for": ("run", lambda told: told.flood(C.MSG_REQUEST_SUCCESS)),
    "channels of its own": ("run", lambda told: told.flood(C.MSG_CHANNEL_OPEN, "x11", 7, 1000, 1000)),
    "new keys again and again": ("run", Told.rekey),
    # libssh2 CVE-2026-55199, russh CVE-2026-48107
    "an extension list of 4 billion": ("login", lambda told: told.send(C.MSG_EXT_INFO, 0xFFFFFFFF)),
    # mscdex/ssh2 1505, russh CVE-2025-54804
    "output beyond the window": ("exec", lambda told: told.output(b"x" * 200_000)),
    "room for more and more": ("run", lambda told: told.flood(C.MSG_CHANNEL_WINDOW_ADJUST, told.channel, 2**32 - 1)),
    "requests on the channel": ("run", lambda told: told.flood(C.MSG_CHANNEL_REQUEST, told.channel, "x@y", False)),
    "output of no known kind": (
        "run",
        lambda told: told.flood(C.MSG_CHANNEL_EXTENDED_DATA, told.channel, 77, "x" * 8),
    ),
    "banners at the login": ("login", lambda told: told.flood(C.MSG_USERAUTH_BANNER, "welcome", "")),
}

#: messages that are wrong; the command's output begins where it can
WRONG: dict[str, tuple[str, Lie]] = {
    # libssh CVE-2026-59843, mikrotik (oxidized 3867); russh CVE-2026-73429
    "a channel for packets of nothing": ("open", lambda told: told.send(C.MSG_CHANNEL_OPEN_SUCCESS, 0, 0, 1 << 21, 0)),
    "a channel without a window": (
        "open",
        lambda told: (told.send(C.MSG_CHANNEL_OPEN_SUCCESS, 0, 0, 0, 32768), told.send(C.MSG_CHANNEL_SUCCESS, 0)),
    ),
    "a key of the wrong length": ("kex", lambda told: told.send(31, "x" * 4, "y" * 3, "z")),
    # libssh2 CVE-2019-3862, CVE-2019-3857; net-scp 71, mina-sshd 410, cloudstack 561
    "a status without a number": ("run", lambda told: told.after(C.MSG_CHANNEL_REQUEST, "exit-status", False)),
    "a signal of 4 billion characters": (
        "run",
        lambda told: told.after(C.MSG_CHANNEL_REQUEST, "exit-signal", False, b"\xff" * 4),
    ),
    "closed without a status": ("run", lambda told: told.after(C.MSG_CHANNEL_CLOSE)),
    "an end after the end": (
        "run",
        lambda told: (told.after(C.MSG_CHANNEL_CLOSE), told.send(C.MSG_CHANNEL_EOF, told.channel)),
    ),
    "an end and no more": ("run", lambda told: told.after(C.MSG_CHANNEL_EOF)),
    # libssh CVE-2026-59849; russh CVE-2026-48107; paramiko CVE-2018-7750 the other way round
    "one more key, please": ("login", lambda told: told.flood(C.MSG_USERAUTH_FAILURE, "publickey", True)),
    "four billion questions": ("login", lambda told: told.send(C.MSG_USERAUTH_INFO_REQUEST, "", "", "", 0xFFFFFFFF)),
    "a login before the keys": ("kex", lambda told: told.send(C.MSG_USERAUTH_SUCCESS)),
    "other services": ("login", lambda told: told.flood(C.MSG_SERVICE_ACCEPT, "ssh-connection")),
    "new keys without an exchange": ("login", lambda told: told.send(C.MSG_NEWKEYS)),
    "a farewell with escapes": ("run", lambda told: told.send(C.MSG_DISCONNECT, 11, "\x1b[2Jgpu1: as desired\n", "")),
    "a refusal with escapes": (
        "open",
        lambda told: told.send(C.MSG_CHANNEL_OPEN_FAILURE, 0, 1, "\x1b]52;c;cm0=\x07\n" * 1000, ""),
    ),
    "a channel that nobody opened": ("open", lambda told: told.send(C.MSG_CHANNEL_OPEN_SUCCESS, 77, 0, 1000, 1000)),
    "host keys without end": (
        "run",
        lambda told: told.flood(C.MSG_GLOBAL_REQUEST, "hostkeys-00@openssh.com", False, b"A" * 30_000),
    ),
    "errors that drip": ("run", lambda told: told.drip_errors()),
    "nothing is implemented": ("run", lambda told: told.flood(C.MSG_UNIMPLEMENTED, 0)),
    "an empty answer to a ping": ("run", lambda told: told.flood(C.MSG_REQUEST_FAILURE)),
}

#: what is sent before a word of SSH; nullprogram's endlessh, asyncssh 260, golang 21941
GREETINGS: dict[str, tuple[bytes, float]] = {
    "not a word": (b"", 3600.0),
    "a greeting that drips": (b"welcome\r\n", 0.2),
    "half a version": (b"SSH-2.0-", 3600.0),
    "another protocol": (b"-ERR unknown command 'SSH-2.0-x'\r\n", 3600.0),
}
#: only a timeout ends these
PATIENT = {
    *GREETINGS,
    *(kind for kind, (_, lie) in LIES.items() if lie is never),
    *("output and then silence", "output that drips", "errors that drip"),
    *("a channel for packets of nothing", "a channel without a window", "a channel that nobody opened"),
    *("a status without a number", "a signal of 4 billion characters", "an end and no more"),
}
LIES |= WRONG
EVERY = (*GREETINGS, *LIES)


class _Transport(paramiko.Transport):
    told: Told
    stage = ""

    def _negotiate_keys(self, message: Message) -> None:
        if self.stage == "kex":
            self.told.liar.lie(self.told)
        super()._negotiate_keys(message)


class _Server(paramiko.ServerInterface):
    def __init__(self, told: Told, stage: str):
        self.told, self.stage = told, stage

    def at(self, stage: str, channel: int = 0, begin: bytes = b"") -> None:
        """Lie here, if that is the stage."""
        if stage == self.stage:
            self.told.channel, self.told.begin = channel, begin
            self.told.liar.lie(self.told)

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        self.at("login")
        return paramiko.AUTH_SUCCESSFUL

    def check_channel_request(self, kind: str, chanid: int) -> int:
        self.at("open")
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        liar = self.told.liar
        liar.commands += 1
        if liar.commands <= liar.honest:
            threading.Thread(target=_honestly, args=(channel, command), daemon=True).start()
            return True
        mark = re.search(rb"hwbegin- ([0-9a-f]+)", command)
        begin = b"hwbegin-" + (mark[1] if mark else b"")
        self.at("exec", channel.remote_chanid, begin)
        if self.stage == "run":
            told = Told(liar, self.told.transport, channel.remote_chanid, begin, channel)
            threading.Thread(target=liar.lie, args=(told,), daemon=True).start()
        return True


def _honestly(channel: paramiko.Channel, command: bytes) -> None:
    """What the host itself would do: the command runs on this machine."""
    process = subprocess.Popen(
        ["/bin/sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdin and process.stdout and process.stderr

    def give() -> None:
        with suppress(OSError):
            while data := channel.recv(32768):
                process.stdin.write(data)  # type: ignore[union-attr]
                process.stdin.flush()  # type: ignore[union-attr]
            process.stdin.close()  # type: ignore[union-attr]

    def take(stream: object, send: Callable[[bytes], object]) -> None:
        with suppress(OSError):
            while data := os.read(stream.fileno(), 32768):  # type: ignore[attr-defined]
                send(data)

    threading.Thread(target=give, daemon=True).start()
    errors = threading.Thread(target=take, args=(process.stderr, channel.sendall_stderr), daemon=True)
    errors.start()
    take(process.stdout, channel.sendall)
    errors.join()
    with suppress(OSError, EOFError, paramiko.SSHException):
        channel.send_exit_status(process.wait())
        channel.close()


@dataclass
class Liar:
    """One server, in threads of this process. ``honest`` commands are carried out before it begins to lie."""

    kind: str
    honest: int = 0
    sent: int = 0
    commands: int = 0
    connections: int = 0
    over: threading.Event = field(default_factory=threading.Event)
    reached: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.key = paramiko.ECDSAKey.generate()
        self.listener = Listener(self._begin)
        self.port = self.listener.port
        self.known_host = f"[127.0.0.1]:{self.port} {self.key.get_name()} {self.key.get_base64()}\n"

    def close(self) -> None:
        """No more lies."""
        self.over.set()
        self.listener.close()

    def lie(self, told: Told) -> None:
        """Tell it, and then say nothing more."""
        self.reached.set()
        with suppress(OSError, EOFError, paramiko.SSHException):
            LIES[self.kind][1](told)
        self.over.wait()

    def _begin(self, sock: socket.socket) -> None:
        self.connections += 1
        threading.Thread(target=self._meet, args=(sock,), daemon=True).start()

    def _meet(self, sock: socket.socket) -> None:
        if self.kind in GREETINGS:
            words, pause_s = GREETINGS[self.kind]
            self.reached.set()
            with suppress(OSError), sock:
                while not self.over.is_set():
                    sock.sendall(words)
                    self.over.wait(pause_s)
            return
        transport = _Transport(sock)
        transport.stage = LIES[self.kind][0]
        transport.told = Told(self, transport)
        transport.add_server_key(self.key)
        with suppress(OSError, EOFError, paramiko.SSHException):
            transport.start_server(server=_Server(transport.told, transport.stage))


def serve(kind: str, folder: Path) -> None:
    """Lie until this process is ended."""
    liar = Liar(kind)
    (folder / "known_hosts").write_text(liar.known_host)
    (folder / "port.new").write_text(str(liar.port))
    (folder / "port.new").rename(folder / "port")
    liar.reached.wait()
    (folder / "reached").touch()
    liar.over.wait()


if __name__ == "__main__":
    serve(sys.argv[1], Path(sys.argv[2]))
