"""Servers that violate the SSH protocol at each stage of a connection: an error of the host, at a counted cost.

See ``tests.lab.liars.sshliar`` for the violations and their sources.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from hostwright.common.errors import HostError, ProtocolError
from hostwright.common.untrusted import Unforeseen
from hostwright.transport import connect
from tests.lab.liars import sshliar
from tests.lab.liars.sshliar import Liar
from tests.lab.sshd import Target, make_key, options
from tests.unit.support import counting
from tests.unit.support.counting import COMMAND, CONNECTION

CAP = 64 << 10
MOST_MESSAGES = CONNECTION[0] + COMMAND[0] + CAP // 256 + 1
MOST_BYTES = CONNECTION[1] + COMMAND[1] + CAP + CAP // 8 + 256 * 1024


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    return counting.counted(monkeypatch)


@pytest.mark.parametrize("kind", sshliar.EVERY)
def test_a_server_that_lies_about_ssh_is_left(kind: str, counted: Counter[str], tmp_path: Path) -> None:
    liar, key, known_hosts = Liar(kind), make_key(tmp_path / "id"), tmp_path / "known_hosts"
    known_hosts.write_text(liar.known_host)
    host = Target(port=liar.port, key_file=str(key), known_hosts=str(known_hosts))
    wait_s = 0.7 if kind in sshliar.PATIENT else 20.0
    try:
        with connect(host, options(connect_timeout_s=wait_s)) as session:
            output = session.run("echo hello", timeout_s=wait_s, cap_bytes=CAP)
        assert output.truncated, "the limit of its output may come first"
    except HostError as error:
        assert not isinstance(error, Unforeseen)
        assert error.host == "gpu01"
        assert error.sentence.isprintable()
        assert kind in sshliar.WRONG or isinstance(error, ProtocolError) == (kind not in sshliar.PATIENT)
    finally:
        liar.close()
    assert counted["messages"] <= MOST_MESSAGES
    assert counted["bytes"] <= MOST_BYTES
