"""Counts what a client receives from an SSH server, and sets a low allowance."""

from __future__ import annotations

from collections import Counter

import pytest
from paramiko.packet import Packetizer

from hostwright.transport import Allowance

CONNECTION, COMMAND = (
    (600, 256 << 10),
    (400, 512 << 10),
)  #: messages and bytes that a host may send: a fraction of the real limits


def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The numbers of messages and bytes received from any server from now on."""
    took: Counter[str] = Counter()
    read = Packetizer.read_message

    def counting(self):
        kind, message = read(self)
        if type(self) is not Packetizer:  # not the server's packetizer
            took["messages"] += 1
            took["bytes"] += len(message.asbytes())
        return kind, message

    monkeypatch.setattr(Packetizer, "read_message", counting)
    monkeypatch.setattr(Allowance, "CONNECTION", CONNECTION)
    monkeypatch.setattr(Allowance, "COMMAND", COMMAND)
    return took
