"""Tests of value spreads in a fleet: comparable hosts, majority, and outliers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hostwright.audit.fleetaudit import HostAudit, Reading, Status, ValueSpread
from hostwright.audit.judging.outliers import spreads

LIKE = "Debian 11"


def host(name: str, *readings: Reading, status: Status = "desired", stack: str = "tensorflow-2.9") -> HostAudit:
    return HostAudit(name, stack, "2026-11-21T10:00:00+00:00", status, readings=readings)


def kernel(have: str, among: str = LIKE) -> Reading:
    return Reading("base", "kernel", have, None, among)


def test_the_host_with_another_kernel_is_the_outlier():
    fleet = [host("gpu03", kernel("5.10.0-27")), host("gpu02", kernel("5.10.0-28")), host("gpu01", kernel("5.10.0-28"))]
    values = (("5.10.0-28", ("gpu01", "gpu02")), ("5.10.0-27", ("gpu03",)))
    assert spreads(fleet) == (ValueSpread("base", "kernel", LIKE, values, "5.10.0-28", ("gpu03",)),)


def test_half_of_the_hosts_are_no_majority():
    fleet = [host("gpu01", kernel("a")), host("gpu02", kernel("b"))]
    assert spreads(fleet) == (ValueSpread("base", "kernel", LIKE, (("a", ("gpu01",)), ("b", ("gpu02",))), "", ()),)


def test_equal_hosts_are_a_fact_of_the_fleet_without_outliers():
    (found,) = spreads([host("gpu01", kernel("a")), host("gpu02", kernel("a"))])
    assert (found.majority, found.outliers) == ("a", ())


def test_kernels_are_compared_within_a_distribution_with_several_hosts():
    fleet = [host("gpu01", kernel("a")), host("gpu02", kernel("a")), host("gpu03", kernel("b", "Ubuntu 22.04"))]
    assert [(spread.among, spread.outliers) for spread in spreads(fleet)] == [(LIKE, ())]


def test_values_above_the_system_are_compared_within_a_stack():
    """During a migration, hosts with the former stack differ as that stack requires; their kernels are compared with
    all hosts.
    """
    halves = {"tensorflow-2.9": ("3.9", range(5)), "pytorch-2.14": ("3.11", range(5, 8))}
    fleet = [
        host(
            f"gpu0{number}",
            kernel("odd" if number == 7 else "a"),
            Reading("tensorflow", "python", "3.10" if number in (2, 7) else python, None, LIKE),
            stack=stack,
        )
        for stack, (python, numbers) in halves.items()
        for number in numbers
    ]
    assert [(spread.name, spread.among, spread.outliers) for spread in spreads(fleet)] == [
        ("kernel", LIKE, ("gpu07",)),
        ("python", f"{LIKE}, tensorflow-2.9", ("gpu02",)),
        ("python", f"{LIKE}, pytorch-2.14", ("gpu07",)),
    ]


def test_what_only_one_host_has_where_others_have_nothing_stands_out():
    manager = [Reading("driver", "fabric manager", have, None, "R7525") for have in ("", "", "470.182.03-1")]
    (found,) = spreads(host(f"gpu0{number}", reading) for number, reading in enumerate(manager))
    assert (found.majority, found.outliers) == ("", ("gpu02",))


def test_what_the_stack_pins_is_not_compared():
    assert (
        spreads(
            [host("gpu01", Reading("driver", "loaded", "1", "1")), host("gpu02", Reading("driver", "loaded", "2", "1"))]
        )
        == ()
    )


def test_what_is_each_hosts_own_is_not_compared():
    own = [[Reading("release", "at", name), Reading("base", "product", name)] for name in ("a", "b", "c")]
    assert spreads(host(f"gpu0{number}", *readings) for number, readings in enumerate(own)) == ()


def test_hosts_that_could_not_be_read_are_left_out():
    fleet = [host("gpu01", kernel("a")), host("gpu02", kernel("b"), status="unread"), host("gpu03", kernel("a"))]
    (found,) = spreads(fleet)
    assert found.values == (("a", ("gpu01", "gpu03")),)


def test_a_host_counts_once_however_often_it_names_a_value():
    (found,) = spreads([host("gpu01", kernel("a"), kernel("b")), host("gpu02", kernel("b"))])
    assert found.values == (("a", ("gpu01",)), ("b", ("gpu02",)))


def test_what_no_host_has_is_no_fact():
    assert spreads([host("gpu01", kernel("")), host("gpu02", kernel(""))]) == ()


def test_no_hosts_are_no_spreads():
    assert spreads([]) == ()


readings = st.builds(
    Reading,
    st.sampled_from(["base", "gpu"]),
    st.sampled_from(["kernel", "vbios"]),
    st.sampled_from(["", "a", "b", "\x1b[2J"]),
    st.sampled_from([None, "a"]),
    st.sampled_from(["", "x", "y"]),
)
fleets = st.lists(st.lists(readings, max_size=4), max_size=8).map(
    lambda rows: [host(f"gpu{number:02}", *row) for number, row in enumerate(rows)]
)


@given(fleets)
def test_outliers_differ_from_the_majority_of_their_group(fleet: list[HostAudit]):
    for spread in spreads(fleet):
        hosts = [name for _, names in spread.values for name in names]
        assert len(set(hosts)) == len(hosts) > 1
        sizes = [len(names) for _, names in spread.values]
        assert sizes == sorted(sizes, reverse=True)
        common, having = spread.values[0]
        most = 2 * len(having) > len(hosts)
        assert spread.majority == (common if most else "")
        assert set(spread.outliers) == (set(hosts) - set(having) if most else set())


@given(fleets, st.randoms())
def test_the_order_of_hosts_does_not_matter(fleet: list[HostAudit], random):
    mixed = list(fleet)
    random.shuffle(mixed)
    assert set(spreads(mixed)) == set(spreads(fleet))


@given(fleets)
def test_every_spread_is_over_readings_that_are_there(fleet: list[HostAudit]):
    present = {
        (reading.layer, reading.name, reading.among, reading.have, each.host)
        for each in fleet
        for reading in each.readings
        if reading.want is None
    }
    for spread in spreads(fleet):
        assert {
            (spread.layer, spread.name, spread.among, have, name) for have, names in spread.values for name in names
        } <= present
