"""Whatever bytes a host sends, in any pieces: no error but a host's, nothing held without bound, work by the byte."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from hostwright.apply.jobs import jobs, scripting
from hostwright.apply.jobs.scripting import LogReader
from hostwright.common.errors import ProtocolError
from hostwright.plan.model import Probe
from hostwright.plan.probing import parse
from hostwright.resources.files.paths import content_probe, instead_probe, stat_probe
from hostwright.transport.frame import NOISE_KEPT_BYTES, Stream
from tests.unit.fuzz.lies import NONCE, cuts, pieces_of, streams
from tests.unit.support.work import calls

PROBES = (Probe("echo a"), Probe("echo b", cap_bytes=50))
#: and such as a pass answers: it has the number 5
OF_PASSES = (*PROBES, stat_probe("/a"), instead_probe("/a"), content_probe("/a", "x"))


@given(streams, cuts)
def test_a_frame_holds_a_mark_at_most_and_gives_back_what_came(data: bytes, places: list[int]) -> None:
    stream = Stream(NONCE)
    taken = 0

    def feed() -> None:
        nonlocal taken
        for piece in pieces_of(data, places):
            taken += len(stream.feed(piece))

    assert calls(feed) <= 3000 + 60 * (len(places) + 2)
    taken += len(stream.rest())
    assert taken + stream.noise_bytes + stream.after_bytes <= len(data)
    assert len(stream.noise) <= NOISE_KEPT_BYTES
    assert stream.status is None or 0 <= stream.status <= 999


@given(streams)
def test_answers_are_facts_or_an_error_of_the_host(data: bytes) -> None:
    def read() -> None:
        with suppress(ProtocolError):
            facts = parse(PROBES, NONCE, data, "gpu01")
            assert all(len(facts[probe].text) <= probe.cap_bytes for probe in facts)
            assert all("\0" not in answer.text for answer in facts.values())

    assert calls(read) <= 3000 + len(data)


@given(streams.map(lambda data: data.replace(b"9 0\n", b" 5\n/a\nx|y\n0\n'/a'\n/\n\n\n\n")))
def test_answers_of_passes_are_facts_or_an_error_of_the_host(data: bytes) -> None:
    with suppress(ProtocolError):
        facts = parse(OF_PASSES, NONCE, data, "gpu01")
        assert facts.keys() <= set(OF_PASSES)


@given(streams, cuts, st.integers(0, 3), st.integers(0, 255))
def test_a_log_is_results_of_steps_that_there_are(data: bytes, places: list[int], steps: int, status: int) -> None:
    reader = LogReader("cuda", [f"step {number}" for number in range(steps)], NONCE, lambda text: text[:100])

    def read() -> None:
        for piece in pieces_of(data, places):
            reader.feed(piece)

    assert calls(read) <= 3000 + 30 * len(data)
    result = reader.result(status)
    assert reader.bytes == len(data)
    numbers = [step.number for step in result.steps]
    assert numbers == sorted(set(numbers))
    assert all(number < (steps or scripting.MOST_STEPS) for number in numbers)
    assert all(step.status is None or 0 <= step.status <= 999 for step in result.steps)


@given(streams)
def test_the_status_of_a_watch_is_a_number_or_none(data: bytes) -> None:
    status = jobs.status_in(data, NONCE)
    assert status is None or 0 <= status <= 999
