"""What is planted on a host is found by the proof that is there for it, and by no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab import faults
from tests.proof.bench import CARD, HOSTS, Bench, failed, result, rows, unexpected, values

CONVOLUTIONS = "/opt/tensorflow-2.9/lib/python3.9/site-packages/tensorflow/python/ops/gen_nn_ops.py"
#: a library that computes wrongly, by one part in fifty. The file has the size that it had, since
#: a file of another size is found by the plan, before any proof
WRONG = f"""
path = "{CONVOLUTIONS}"
text = open(path).read()
head, place, rest = text.partition("def conv2d(")
rest = rest.replace("return _result\\n", "return _result * 1.02\\n", 1).replace("Computes a 2-D", "2-D    ", 1)
assert len(head + place + rest) == len(text)
open(path, "w").write(head + place + rest)
"""
#: preloaded into all that runs on the host
PRELOAD = "gcc -shared -fPIC -O1 -o /opt/flip.so /root/flip.c && echo /opt/flip.so >/etc/ld.so.preload"
BASE = "base.processors,base.memory,base.disk"
RING = HOSTS[:3]
OF_CARDS = {"cuda.bandwidth", "cuda.memory", "cuda.burnin"}
ON_THE_CARD = "base.processors,driver.placement,cuda"
HOT = r"s/\(GPU Current Temp *: \)[0-9]*/\191/"
THROTTLED = "s/0x0000000000000001$/0x0000000000000040/"  # of heat, as R470 tells it


def test_a_slow_host_is_an_outlier_among_its_twins(hosts: Bench) -> None:
    """On a machine that does little else: at a load of ten a core the sound hosts vary so much that none stands out."""
    slow = HOSTS[3]
    with faults.slow_processors(hosts.machine(slow), 0.1):
        told = hosts.prove("base.processors,base.memory", *HOSTS, status=3)
    assert failed(told) == {**{host: set() for host in HOSTS}, slow: {"base.memory"}}, unexpected(told)
    findings = [one for one in result(told, slow, "base.memory")["findings"] if one["severity"] != "note"]
    assert {one["severity"] for one in findings} == {"outlier"}
    assert "worse than the median of 4 hosts" in findings[0]["sentence"]


def test_a_library_that_computes_wrongly_is_found_by_its_result(hosts: Bench) -> None:
    plant = f"cp -p {CONVOLUTIONS} /root/right.py; python3 - <<'end'\n{WRONG}end\n"
    with hosts.planted("cpu01", plant, f"mv /root/right.py {CONVOLUTIONS}"):
        told = hosts.prove("base.memory,tensorflow.devices,tensorflow.formats,tensorflow.mirrored", "cpu01", status=3)
    assert failed(told) == {"cpu01": {"tensorflow.devices"}}, unexpected(told)
    of = result(told, "cpu01", "tensorflow.devices")
    assert of["sentence"] == "the test convolution differs too much from its reference"
    assert values(of)["convolution"] == pytest.approx(0.02, rel=0.05)


def test_a_wrong_word_from_the_disk_is_found(hosts: Bench) -> None:
    source = (Path(__file__).with_name("flip.c")).read_text()
    (hosts.machine("cpu02").merged / "root/flip.c").write_text(source)
    with hosts.planted("cpu02", PRELOAD, "rm /etc/ld.so.preload"):
        told = hosts.prove(BASE, "cpu02", status=3)
    assert failed(told) == {"cpu02": {"base.disk"}}, unexpected(told)
    of = result(told, "cpu02", "base.disk")
    assert of["sentence"] == "the disk returned data that differs from the data written: 1 times"


def test_a_slow_disk_is_found(hosts: Bench) -> None:
    with faults.slow_disk(hosts.machine("cpu03"), 20_000_000):
        told = hosts.prove(BASE, "cpu03", status=3)
    assert failed(told) == {"cpu03": {"base.disk"}}, unexpected(told)
    of = result(told, "cpu03", "base.disk")
    figures = values(of)
    assert 15 < figures["disk write"] < 25
    assert 15 < figures["disk read"] < 25
    assert of["sentence"].startswith("disk write of ")
    assert of["sentence"].endswith("slower than a single hard disk")


def test_a_slow_way_between_two_hosts_is_told_by_both_ends(hosts: Bench) -> None:
    """Each of three hosts sends to the next one; what reaches the second is slow.

    So are the acknowledgements of what it sends itself: it reaches no more than 40 MB/s then, with 10 as its limit.
    """
    asked = [hosts.variables(host, base_network_mb_per_s=20) for host in RING]
    with asked[0], asked[1], asked[2]:
        sound = hosts.prove("base.network", *RING, status=0)
        with faults.slow_network(hosts.machine(RING[1]), 10_000_000):
            told = hosts.prove("base.network", *RING, status=3)
    assert failed(sound) == {host: set() for host in RING}, unexpected(sound)
    assert {row["value"] for row in rows(sound) if row["name"] == "hosts"} == {3}
    assert failed(told) == {RING[0]: {"base.network"}, RING[1]: {"base.network"}, RING[2]: set()}, unexpected(told)
    sender, receiver = (str(hosts.machine(host).address) for host in RING[:2])
    for host, sentence in ((RING[0], f"sending to {receiver}: "), (RING[1], f"receiving from {sender}: ")):
        of = result(told, host, "base.network")
        assert of["sentence"].startswith(sentence)
        assert of["sentence"].endswith("less than the inventory requires (base_network_mb_per_s)")
        assert {row["device"] for row in of["measurements"]} == {"network host0 (of an unknown speed)"}
    assert values(result(told, RING[1], "base.network"))["received"] == pytest.approx(10, rel=0.3)


def test_cards_that_are_all_lost_are_missed(hosts: Bench) -> None:
    with hosts.variables("cpu04", hostwright_gpus=2):
        told = hosts.prove("base.processors,cuda,tensorflow.devices,tensorflow.mirrored", "cpu04", status=3)
    assert failed(told) == {"cpu04": {*OF_CARDS, "tensorflow.devices", "tensorflow.mirrored"}}, unexpected(told)
    for proof in OF_CARDS:
        assert result(told, "cpu04", proof)["sentence"] == (
            "the inventory says that the host has 2 GPUs (hostwright_gpus), and none is on its PCI bus"
        )
    assert result(told, "cpu04", "tensorflow.devices")["sentence"] == (
        "TensorFlow computes on 0 of the 2 cards that the inventory has (hostwright_gpus)"
    )
    assert result(told, "cpu04", "tensorflow.mirrored")["sentence"] == "joint training did not use all cards"


def test_a_sound_card_passes_with_all_its_figures(hosts: Bench) -> None:
    """What stands beside the planted faults below: the same card, without one."""
    with hosts.card(), hosts.variables(CARD, hostwright_gpus=1):
        told = hosts.prove(ON_THE_CARD, CARD, status=0)
        uuid = hosts.on(CARD, "nvidia-smi --query-gpu=uuid --format=csv,noheader").strip()
    assert failed(told) == {CARD: set()}, unexpected(told)
    for proof in OF_CARDS:
        devices = {row["device"].partition(" ")[0] for row in result(told, CARD, proof)["measurements"]}
        assert devices == {"cpu", uuid}, proof
    assert values(result(told, CARD, "cuda.memory"))["temperature.hottest"] == 34


def test_one_of_two_cards_that_is_missing_is_missed(hosts: Bench) -> None:
    with hosts.card(), hosts.variables(CARD, hostwright_gpus=2):
        told = hosts.prove(ON_THE_CARD, CARD, status=3)
    assert failed(told) == {CARD: OF_CARDS}, unexpected(told)
    assert {result(told, CARD, proof)["sentence"] for proof in OF_CARDS} == {"CUDA sees 1 of 2 cards"}


@pytest.mark.parametrize(
    ("faults_of_card", "proof", "sentence"),
    [
        ('STUCK="0 9438000 5"', "cuda.memory", "the card's memory returned other data than was written"),
        ("GARBLED=0", "cuda.bandwidth", "bytes changed in a copy to the card and back"),
        ('FLIP="0 3"', "cuda.burnin", "repetitions of one matrix product gave different results under load"),
        ("WRONG=0", "cuda.burnin", "the card's results differ from the processor's"),
    ],
)
def test_a_card_that_is_wrong_is_found_by_the_proof_of_that_part(
    hosts: Bench, faults_of_card: str, proof: str, sentence: str
) -> None:
    with hosts.card(faults_of_card):
        told = hosts.prove(ON_THE_CARD, CARD, status=3)
    assert failed(told) == {CARD: {proof}}, unexpected(told)
    assert result(told, CARD, proof)["sentence"].startswith(sentence)


def test_a_card_that_heat_slows_down_is_found_under_load(hosts: Bench) -> None:
    with hosts.card(edits=THROTTLED):
        told = hosts.prove(ON_THE_CARD, CARD, status=3)
    assert failed(told) == {CARD: {"cuda.burnin"}}, unexpected(told)
    of = result(told, CARD, "cuda.burnin")
    assert of["sentence"].startswith(
        "heat lowered the card's clocks under load: in 100 % of the measurements (up to 34 °C"
    )


def test_a_card_that_is_too_hot_stops_every_proof(hosts: Bench) -> None:
    with hosts.card(edits=HOT):
        told = hosts.prove("base.processors,base.memory,cuda.burnin", CARD, status=3)
    assert failed(told) == {CARD: {"base.processors", "base.memory", "cuda.burnin"}}, unexpected(told)
    for proof in failed(told)[CARD]:
        sentence = result(told, CARD, proof)["sentence"]
        assert sentence.startswith("the proof was stopped: GPU-")
        assert sentence.endswith(" is at 91 °C, and a proof stops at 85 °C")
