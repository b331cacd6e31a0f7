"""Ten hosts at once, two of which need other hardware: eight are restored, two locked with the reason."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

import pytest

from tests.lab.audit.plants_gpu import said
from tests.lab.conftest import on
from tests.lab.rebuild.bench import Bench, Told, untouched
from tests.lab.rebuild.states import MENDED, State, break_all, kinds, require_back

pytestmark = pytest.mark.long
EIGHT = tuple(state.host for state in MENDED)
ROW, GPU = "badrow", "lostgpu"
TEN = (*EIGHT, ROW, GPU)
BYSTANDER = "bystander"
EACH = pytest.mark.parametrize("state", MENDED, ids=lambda state: state.host)

#: Kernel messages about a broken memory row of a card without a spare row.
REMAP_FAILED = said(
    "NVRM: Xid (PCI:0000:3b:00): 48, pid=4242, name=python, An uncorrectable double bit error (DBE) has been detected",
    "NVRM: Xid (PCI:0000:3b:00): 64, pid=4242, name=python, Row Remapper: failed to remap a row",
)


@pytest.fixture(scope="module")
def told(bench: Bench) -> Iterator[Told]:
    """All ten hosts rebuilt with one command."""
    with bench.clones(kinds(MENDED) | dict.fromkeys((ROW, GPU, BYSTANDER))):
        on(bench.machine(ROW), REMAP_FAILED)
        bench.say(GPU, hostwright_gpus=2)  # its bus has one
        break_all(bench, MENDED)
        before = untouched(bench.machine(BYSTANDER)), bench.lab.known_hosts.read_bytes()
        told = bench.rebuild(TEN)
        assert (untouched(bench.machine(BYSTANDER)), bench.lab.known_hosts.read_bytes()) == before
        yield told


@EACH
def test_it_is_back_by_the_way_that_its_state_asks_for(bench: Bench, told: Told, state: State) -> None:
    require_back(bench, told, state)


def test_the_command_says_that_two_are_not_back(told: Told) -> None:
    assert (told.status, told.errors) == (1, {})


def test_an_audit_finds_nothing_on_the_eight(bench: Bench, told: Told) -> None:
    assert told.rebuilds
    found = bench.audit(EIGHT)
    assert {host: (one["deviations"], one["findings"]) for host, one in found.items()} == dict.fromkeys(EIGHT, ([], []))


def test_the_two_are_locked_with_the_reason_and_the_eight_are_free(bench: Bench, told: Told) -> None:
    for host, state in ((ROW, "row that cannot be remapped"), (GPU, "GPU missing on the bus")):
        bench.tell(state, host, told)
        assert told.rebuilds[host]["outcome"] == "handed over"
        assert told.way(host) == "hand over"
    locks = bench.locks(TEN)
    assert "Xid 64" in locks[ROW]
    assert "1 of the 2 GPUs of the inventory" in locks[GPU]
    assert [locks[host] for host in EIGHT] == [""] * 8


def test_what_needs_hardware_is_left_alone_by_the_next_command(bench: Bench, told: Told) -> None:
    assert told.rebuilds
    pin = "/etc/apt/preferences.d/hostwright-no-other-driver"
    on(bench.machine(GPU), f"rm {pin}")  # so that the plan has a change
    done = bench.invoke("provision", "--hosts", GPU)
    assert done.returncode == 3
    assert "1 of the 2 GPUs of the inventory" in " ".join((done.stdout + done.stderr).split())
    assert on(bench.machine(GPU), f"[ ! -e {pin} ] && echo gone") == "gone\n"


def test_the_report_names_median_and_p95_by_phase(bench: Bench, told: Told) -> None:
    report = bench.invoke.json("rebuild", "--report", "--hosts", ",".join(TEN), status=0)
    assert report["outcomes"] == {"rebuilt": 8, "handed over": 2}
    by_phase = {one["name"]: one for one in report["phases"]}
    for phase in {name for host in EIGHT for name in told.phases(host)}:
        values = [told.phases(host)[phase] for host in EIGHT if phase in told.phases(host)]
        assert by_phase[phase]["median_s"] == pytest.approx(statistics.median(values))
        assert by_phase[phase]["p95_s"] == pytest.approx(max(values))  # fewer than twenty
    shown = bench.invoke("rebuild", "--report").stdout
    assert "median" in shown and "p95" in shown
