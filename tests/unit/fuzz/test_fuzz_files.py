"""Whatever a host says of its files, of what it fetches and of what it serves: a value within bounds, or one error."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from hostwright.apply.delivery import looking, pulling
from hostwright.apply.delivery.looking import Found, StoredFile
from hostwright.apply.delivery.sources import servers
from hostwright.common.errors import ProtocolError
from tests.unit.apply.delivery.hosts import artifact_of

WORDS = [
    b"free", b"via", b"there", b"part", b"at", b"alive", b"done", b"wrong", b"failed", b"called", b"off", b"cut",
    b"serving", b"cannot", b"0", b"1", b"2", b"-1", b"300", b"99999999999999999999", b"10.0.0.9", b"\xd9\xa3",
    b"\x1b[31m", b"", b"\0", b"\xff", b"x" * 400,
]  # fmt: skip
lines = st.lists(st.lists(st.sampled_from(WORDS) | st.binary(max_size=20), max_size=5).map(b" ".join), max_size=12)
said = st.tuples(lines.map(b"\n".join), st.sampled_from((b"", b"\n"))).map(b"".join)
cuts = st.integers(1, 64)
ITEMS = [StoredFile(artifact_of(b"x" * size, f"file{size}"), Path("/nowhere"), "0" * 64, size) for size in (1, 5, 300)]


@given(said, cuts)
def test_what_a_host_has_is_known_or_refused(text: bytes, cut: int) -> None:
    begun: list[tuple[str, int]] = []
    found: list[Found] = []
    reader = looking._Reader("gpu01", ITEMS, lambda *one: begun.append(one), found.append, "/cache")
    try:
        for place in range(0, len(text), cut):
            reader.feed(text[place : place + cut])
        reader.finish()
    except ProtocolError as error:
        assert error.sentence == "the list of files in /cache cannot be parsed"
    else:
        assert sorted(one.item.size for one in found) == [1, 5, 300]
        assert len(begun) == 1
    assert all(0 <= one.start <= one.item.size for one in found)
    assert all(seen.isprintable() and len(seen) < 50 for seen, _ in begun)
    assert len(reader._rest) <= looking.LINE_BYTES + 1


@given(said, cuts, st.integers(0, 300))
def test_how_a_host_fetched_is_known_or_refused(text: bytes, cut: int, start: int) -> None:
    told: list[int] = []
    reader = pulling._Reader("gpu01", ITEMS[2], start, told.append)
    for place in range(0, len(text), cut):
        reader.feed(text[place : place + cut])
        assert len(reader._rest) <= 300
    try:
        pulled = reader.pulled()
    except ProtocolError:
        pass
    else:
        assert pulled.verdict in ("done", "wrong", "failed", "called off")
        assert (pulled.word + pulled.why).isprintable() or "\N{REPLACEMENT CHARACTER}" in pulled.word + pulled.why
        assert 0 <= pulled.done_bytes <= 300
    assert told == sorted(told)
    assert all(start <= number <= 300 for number in told)


@given(said, cuts)
def test_where_a_host_serves_is_a_port_or_nothing(text: bytes, cut: int) -> None:
    heard = servers._PortReader()
    ports = [heard.port(text[place : place + cut]) for place in range(0, len(text), cut)]
    assert all(port == 0 or 1024 <= port <= 65535 for port in ports)
    assert sum(port > 0 for port in ports) <= 1
    assert len(heard.why) <= 300
