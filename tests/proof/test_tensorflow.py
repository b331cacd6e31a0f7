"""TensorFlow's proofs by the verb: logical devices of one host, three hosts together, and one of them that dies."""

from __future__ import annotations

import json
import re
import time

from hostwright.common.quoting import sh_file
from tests.proof.bench import HOSTS, LEFT, Bench, failed, result, unexpected, values

LEARNED = 1e-3  #: the tolerance of the proof, as docs/prove.md tells it
PORT = 29471
STEP_LIMIT_S = 60
END_S = 60  #: for the job to end on the host, and for the verb to read it, on a busy machine
WORKERS = HOSTS[:3]


def test_two_logical_devices_learn_what_one_learns(hosts: Bench) -> None:
    told = hosts.prove("tensorflow.mirrored", "cpu01", status=0)
    assert failed(told) == {"cpu01": set()}
    of = result(told, "cpu01", "tensorflow.mirrored")
    figures = values(of)
    assert figures["devices"] == 2
    assert 0 <= figures["learned beside one device"] <= LEARNED
    assert 0 <= figures["learned beside numpy"] <= LEARNED
    devices = {row["name"]: row["device"] for row in of["measurements"]}
    assert devices["devices"].startswith("cpu (")
    assert (devices["scaling efficiency"], figures["scaling efficiency"]) == ("no GPU", None)
    assert (devices["utilisation"], figures["utilisation"]) == ("no GPU", None)


def test_a_worker_that_dies_in_the_middle_is_named_and_the_others_end(hosts: Bench) -> None:
    before = {host: hosts.on(host, LEFT) for host in WORKERS}
    victim = WORKERS[1]
    address = str(hosts.machine(victim).address)
    run = hosts.begin("prove", "--hosts", ",".join(WORKERS), "--proofs", "tensorflow.workers", "--json")
    try:
        # More than what the first worker sends the others before the first step, and less than half of all steps.
        killed = hosts.on(victim, sh_file(__file__, "kill_worker.sh", port=PORT, bytes=1_500_000))
        at = time.monotonic()
        out, err = run.communicate(timeout=STEP_LIMIT_S + END_S)
    finally:
        run.kill()
    took_s = time.monotonic() - at
    assert run.returncode == 3, f"{killed}{out[-2000:]}\n{err[-2000:]}"
    told = json.loads(out)
    assert failed(told) == {host: {"tensorflow.workers"} for host in WORKERS}
    assert "status 137" in result(told, victim, "tensorflow.workers")["sentence"]
    for survivor in set(WORKERS) - {victim}:
        sentence = result(told, survivor, "tensorflow.workers")["sentence"]
        assert re.match(rf"step [0-9]+: no answer from {re.escape(address)}:{PORT} \(", sentence), sentence
    assert took_s < STEP_LIMIT_S + END_S
    assert {host: hosts.on(host, LEFT) for host in WORKERS} == before


def test_three_hosts_learn_together_what_one_learns(hosts: Bench) -> None:
    told = hosts.prove("tensorflow.workers", *WORKERS, status=0)
    assert failed(told) == {host: set() for host in WORKERS}, unexpected(told)
    for host in WORKERS:
        figures = values(result(told, host, "tensorflow.workers"))
        assert (figures["hosts"], figures["devices"]) == (3, 3)
        assert 0 <= figures["learned beside one device"] <= LEARNED
        assert 0 <= figures["learned beside numpy"] <= LEARNED
        assert figures["samples per second of all hosts"] > 0


def test_fewer_hosts_than_it_needs_are_told_so(hosts: Bench) -> None:
    told = hosts.prove("tensorflow.workers", "cpu01", status=1)
    of = result(told, "cpu01", "tensorflow.workers")
    assert (of["outcome"], of["sentence"]) == (
        "not run",
        "the proof needs 2 hosts at once, but 1 can run it; select more with --hosts",
    )
