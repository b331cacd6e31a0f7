"""What errors say of a host, and how many cards it shall have."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostwright import transport
from hostwright.common.errors import BecomeError, HostwrightError, InputError, ProtocolError, Refused, Unreachable
from hostwright.common.input.yamlfile import Origin
from hostwright.inventory import Host, Value
from hostwright.plan.facts.expected import GPUS, MODEL, read_expected_gpus, read_expected_models
from hostwright.rebuild.ways.diagnosis import reach_of
from hostwright.transport.identity.hostkeys import HostKeyMismatch
from tests.unit.support.audits import host as audited
from tests.unit.support.rebuilds import answers, silent


def caused(error: Unreachable, cause: Exception) -> Unreachable:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "reach"),
    [
        (None, "answers"),
        (HostKeyMismatch("gpu07", "the host key changed"), "key changed"),
        (HostKeyMismatch("gpu07", "its jump host: the host key changed"), "no way"),
        (Unreachable("gpu07", "it did not answer within 10 s", passing=True), "silent"),
        (caused(Unreachable("gpu07", "refused", passing=True), ConnectionRefusedError(111, "refused")), "silent"),
        (caused(Unreachable("gpu07", "away", passing=True), OSError(113, "No route to host")), "silent"),
        (caused(Unreachable("gpu07", "away", passing=True), OSError(101, "Network is unreachable")), "no way"),
        (caused(Unreachable("gpu07", "no name", passing=True), socket.gaierror(-3, "again")), "no way"),
        (Unreachable("gpu07", "its jump host: it did not answer", passing=True), "no way"),
        (Unreachable("gpu07", "no key was taken"), "refused login"),
        (BecomeError("gpu07", "sudo wants a password"), "no root"),
        (ProtocolError("gpu07", "it was cut"), "unreadable"),
        (Refused("gpu07", "no"), "unreadable"),
    ],
)
def test_what_an_error_says_of_a_host(error: HostwrightError | None, reach: str):
    assert reach_of(error) == reach


@pytest.fixture
def closed() -> Iterator[int]:
    """A port of this machine at which nobody listens, and nobody begins to."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def reached(tmp_path: Path, config: str) -> str:
    """What a real attempt to connect to gpu07, by this ssh_config, says of it."""
    path = tmp_path / "ssh_config"
    path.write_text(config)
    with pytest.raises(Unreachable) as caught:
        transport.connect(Host("gpu07"), transport.Options(connect_timeout_s=5, ssh_config=path, use_agent=False))
    return reach_of(caught.value)


def test_a_host_that_refuses_the_connection_is_silent(tmp_path: Path, closed: int):
    assert reached(tmp_path, f"Host gpu07\n HostName 127.0.0.1\n Port {closed}\n") == "silent"


def test_a_jump_host_that_does_says_nothing_of_the_host(tmp_path: Path, closed: int):
    jump = f"Host gpu07\n HostName 192.0.2.7\n ProxyJump bastion\nHost bastion\n HostName 127.0.0.1\n Port {closed}\n"
    assert reached(tmp_path, jump) == "no way"


def test_bmc_and_power_are_read_off_what_it_says():
    assert silent(power="turning off").off and not silent(power="turning on").off
    assert not silent(power=None).has_bmc and silent(power="unknown").has_bmc
    assert not silent(power="unknown").usable_bmc and silent(power="off").usable_bmc
    assert answers(power="off").foreign_bmc and not answers(power="off").usable_bmc
    assert answers(audit=audited("gpu07", "unread")).read is None


def modelled(value: object) -> Host:
    return Host("gpu07", vars={MODEL: Value(value, Origin("hosts.yml", 4, 3), "host")})


def test_the_models_of_gpus():
    assert read_expected_models(modelled("A100-SXM4-80GB")) == ("A100-SXM4-80GB",)
    assert read_expected_models(modelled(["Tesla T4", " H100  PCIe "])) == ("Tesla T4", "H100 PCIe")
    assert read_expected_models(modelled(None)) == read_expected_models(Host("gpu07")) == ()


@pytest.mark.parametrize("value", ["", " ", [], [""], 8, True, {"model": "Tesla T4"}, ["Tesla T4", 4]])
def test_what_is_no_model_of_gpus_is_refused_with_its_place(value: object):
    with pytest.raises(InputError, match=r"hosts\.yml:4.*hostwright_gpu_model"):
        read_expected_models(modelled(value))


def counted(value: object) -> Host:
    return Host("gpu07", vars={GPUS: Value(value, Origin("hosts.yml", 4, 3), "host")})


@pytest.mark.parametrize(("value", "number"), [(8, 8), (0, 0), (None, None), ("8", 8)])
def test_the_number_of_gpus(value: object, number: int | None):
    assert read_expected_gpus(counted(value)) == number
    assert read_expected_gpus(Host("gpu07")) is None


@pytest.mark.parametrize("value", ["eight", -1, True, 8.5, 65, [8], "65", "-1"])
def test_what_is_no_number_of_gpus_is_refused_with_its_place(value: object):
    with pytest.raises(InputError, match=r"hosts\.yml:4.*hostwright_gpus"):
        read_expected_gpus(counted(value))
