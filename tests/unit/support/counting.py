"""What a client takes from an SSH server, counted; and an allowance for it that is soon spent."""

from __future__ import annotations

from collections import Counter

import pytest
from paramiko.packet import Packetizer

from hostwright.transport import Allowance

CONNECTION, COMMAND = (600, 256 << 10), (400, 512 << 10)  #: messages and bytes that a host may send: a fraction of ours


def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many messages are taken from any server from now on, and how many bytes."""
    took: Counter[str] = Counter()
    read = Packetizer.read_message

    def counting(self):
        kind, message = read(self)
        if type(self) is not Packetizer:  # the server's own
            took["messages"] += 1
            took["bytes"] += len(message.asbytes())
        return kind, message

    monkeypatch.setattr(Packetizer, "read_message", counting)
    monkeypatch.setattr(Allowance, "CONNECTION", CONNECTION)
    monkeypatch.setattr(Allowance, "COMMAND", COMMAND)
    return took
