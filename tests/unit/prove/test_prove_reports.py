"""Tests of the reports of proofs: text of hosts cannot run code or control a terminal; every figure has its host."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import jsonschema
import pytest

from hostwright.cli import console
from hostwright.prove.fleetproof import FleetProof
from hostwright.prove.model import Measurement, ProofFinding
from hostwright.prove.peers.comparing import against_peers
from hostwright.prove.proofstore import PastFigure
from hostwright.prove.reports.document import json_schema, read_json, render_json
from hostwright.prove.reports.html import render_html
from hostwright.prove.reports.plots import plots
from hostwright.prove.reports.prometheus import render_prometheus
from hostwright.prove.reports.table import show_proofs
from tests.unit.support.proofs import fleet, host, result, ticks

EVIL = "<script>alert(1)</script>\x1b[2J"
DAY = 86_400


def mixed() -> FleetProof:
    none = Measurement("copy", None, "GB/s", "no GPU")
    hosts = against_peers(
        [
            *(host(f"gpu{n:02}", result(ticks(100.0 + n, f"GPU-{n} (A100)"), none)) for n in range(4)),
            host("gpu09", result(ticks(50.0, "GPU-9 (A100)"))),
            host("held", result(outcome="not run", sentence="in use by python3 (4711)")),
            host("bare", result(none, outcome="no GPU", sentence="no GPU in this host")),
            host("silent", sentence=f"it does not answer {EVIL}"),
        ]
    )
    return fleet(*hosts)


def shown(proofs: FleetProof, *, details: bool = False) -> str:
    out = console.make_console()
    with out.capture() as capture:
        out.print(show_proofs(proofs, details=details))
    return capture.get()


def test_the_table_folds_what_is_alike_and_says_what_is_not() -> None:
    text = shown(mixed())
    verdict = "8 hosts in 12.0 s, full proofs: 1 failed, 1 could not be proved, 1 not proved in full"
    assert text.splitlines()[-1].startswith(verdict), "what it comes to does not scroll away"
    assert "gpu[00-03] (4 hosts)" in text
    assert "✗ clock.ticks  ticks on GPU-9 (A100) is 50% worse than the median of 5 hosts with A100" in text
    assert "? clock.ticks  in use by python3 (4711)" in text
    assert "– clock.ticks  no GPU in this host" in text
    assert "\x1b[2J" not in text
    assert "GPU-2" not in text and "GPU-2 (A100)" in shown(mixed(), details=True)


def test_where_the_table_does_not_fit_proofs_are_listed_by_outcome() -> None:
    out = console.make_console()
    names = [f"layer{number}.proof" for number in range(10)]
    results = [result(ticks(1.0), proof=name) for name in names[1:]]
    bad = result(ticks(1.0), proof=names[0], outcome="failed", sentence="slow")
    proofs = fleet(host("gpu01", *results), host("gpu02", *results), host("gpu03", bad, *results))
    with out.capture() as capture:
        out.print(show_proofs(proofs, columns=80))
    assert capture.get().splitlines()[:5] == [
        "gpu03",
        "  ✗ failed  layer0.proof",
        f"  ✓ passed  {', '.join(names[1:])}",
        "gpu[01-02] (2 hosts)",
        f"  ✓ passed  {', '.join(names[1:])}",
    ]


def test_hosts_of_which_the_same_is_told_share_it() -> None:
    bad = result(ticks(1.0), outcome="failed", sentence="slow")
    silent = [host(f"gpu{number:02}", sentence="no route to host") for number in range(3)]
    text = shown(fleet(*silent, host("gpu07", bad), host("gpu08", bad)))
    assert [line.rstrip() for line in text.splitlines()][1:] == [
        *("gpu[07-08] (2 hosts)  ✗ failed", ""),
        *("gpu[07-08] (2 hosts)  failed", "  ✗ clock.ticks  slow", ""),
        *("gpu[00-02] (3 hosts)  could not be proved", "  no route to host", ""),
        "5 hosts in 12.0 s, full proofs: 2 failed, 3 could not be proved",
    ]
    many = [host(f"node{number:03}", sentence="no route to host") for number in range(1, 100, 2)]
    assert "50 hosts  could not be proved\n  node[001,003" in shown(fleet(*many))


def test_every_figure_is_shown_with_its_device_and_no_gpu_is_said_where_there_was_none() -> None:
    proofs = fleet(host("a", result(ticks(2.5), Measurement("copy", None, "", "no GPU"))))
    lines = shown(proofs, details=True).splitlines()
    assert any("2.5 M/s" in line and "cpu (EPYC)" in line for line in lines)
    assert any("copy" in line and "no GPU" in line for line in lines)


def test_the_document_is_of_its_schema_and_comes_back() -> None:
    document = render_json(mixed())
    assert document.isascii()
    jsonschema.validate(json.loads(document), json_schema())
    assert read_json(document) == mixed()
    assert {one["host"]: one["status"] for one in json.loads(document)["hosts"]}["gpu09"] == "failed"
    with pytest.raises(ValueError, match="schema 99"):
        read_json(document.replace('"schema": 1', '"schema": 99'))


def test_the_page_runs_nothing_and_escapes_what_hosts_say() -> None:
    page = render_html(mixed())
    assert "<script" not in page and "&lt;script&gt;" in page
    assert "\x1b" not in page
    assert "default-src &#39;none&#39;" in page
    assert not re.search(r'(src|href)="(?!#|data:,)', page)
    assert page.count("<circle") == 5
    assert page.count('<circle class="f-failing"') == 1


def test_the_plot_over_time_has_a_line_a_device() -> None:
    past = [
        PastFigure(f"gpu0{n}", "clock.ticks", "ticks", f"GPU-{n} (A100)", "M/s", day * DAY, 100.0 + day)
        for day in range(3)
        for n in range(2)
    ]
    (plot,) = plots(mixed(), past)
    assert [line.label for line in plot.lines] == ["gpu00 GPU-0 (A100)", "gpu01 GPU-1 (A100)"]
    assert all(line.path.count("L") == 2 for line in plot.lines)
    assert [label for _, label in plot.times] == ["1970-01-01", "1970-01-03"]
    assert plots(mixed(), past[:1])[0].lines == ()


def test_of_many_devices_over_time_only_those_with_a_finding_are_told_from_the_others() -> None:
    now = [(f"gpu{n:02}", f"GPU-{n} (A100)", 50.0 if n == 3 else 100.0 + n) for n in range(8)]
    hosts = against_peers([host(name, result(ticks(value, device))) for name, device, value in now])
    past = [
        PastFigure(name, "clock.ticks", "ticks", device, "M/s", day * DAY, value)
        for day in range(3)
        for name, device, value in now
    ]
    (plot,) = plots(fleet(*hosts), past)
    assert [line.colour for line in plot.lines] == [*["peer"] * 7, "bad"]
    assert plot.legend == (("bad", "gpu03 GPU-3 (A100)"), ("peer", "7 devices without a finding"))
    assert {dot.state for dot in plot.past} == {"failing"} and len(plot.past) == 3
    assert [dot.state for dot in plot.dots] == [*["desired"] * 7, "failing"], "what is drawn last lies on top"


def test_hosts_of_which_there_is_nothing_to_tell_are_one_on_the_page() -> None:
    proofs = mixed()
    emulated = replace(proofs.hosts[1], host="gpu20", stand_ins=("libcuda.so (emulated)",))
    page = render_html(replace(proofs, hosts=(*proofs.hosts, emulated)))
    names = re.findall(r'class="open"[^>]*><bdi>(.*?)</bdi>', page)
    assert names == ["gpu09", "silent", "held", "bare", "4 hosts", "gpu20"]
    assert re.findall(r"<h3><bdi>(.*?)</bdi>", page) == ["gpu09", "silent", "held", "bare", "gpu20"]
    assert "with stand-ins for the vendor's files: libcuda.so (emulated)" in page.replace("&#39;", "'")
    assert re.findall(r"<details open><summary><b><bdi>(.*?)</bdi>", page) == ["gpu09"]
    assert page.count("<td><bdi>no GPU</bdi></td>") == 5 + 1, "each of them says that there was none"


def test_a_finding_names_its_card_and_its_figures_once() -> None:
    short = ProofFinding("clocks were lowered by heat", "GPU-1 (A100)", "failed", "41 %", "0 %")
    whole = ProofFinding("GPU-1 (A100) copies 3 GB/s, less than 21 GB/s", "GPU-1 (A100)", "failed", "3 GB/s", "21 GB/s")
    one = replace(result(), outcome="failed", sentence=short.sentence, findings=(short, whole))
    said = "(on GPU-1 (A100), measured 41 %, expected 0 %)"
    text, page = shown(fleet(host("a", one))), render_html(fleet(host("a", one)))
    assert text.count(said) == 1 and page.count(said) == 1
    cards = page[page.index('<section id="findings"') :]
    assert text.count("GPU-1") == 2 and cards.count(short.sentence) == 1


def test_the_page_has_the_parts_of_the_audit_s_with_an_outcome_for_each_host_and_proof() -> None:
    page = render_html(mixed())
    assert re.findall(r'class="number">(\d+)', page) == ["1", "1", "1", "1", "4"]
    assert re.findall(r'<td class="c s-(\w+)">', page) == ["failing", "absent", "unread", "intent", "desired"]
    assert "<b>4</b> of 8 hosts did not pass" in page and "<td colspan" not in page
    targets = set(re.findall(r'href="#([\w-]+)"', page))
    assert targets <= set(re.findall(r'id="([\w-]+)"', page))


def test_a_figure_of_nothing_has_its_plot() -> None:
    (plot,) = plots(fleet(host("a", result(ticks(0.0)))), ())
    assert plot.dots[0].x == plot.middle


def test_metrics_hold_every_figure_and_outcome() -> None:
    text = render_prometheus(mixed())
    assert (
        'hostwright_proof_figure{device="GPU-9 (A100)",host="gpu09",name="ticks",proof="clock.ticks",unit="M/s"} 50.0'
        in text
    )
    assert 'hostwright_proof_outcome{host="bare",outcome="no GPU",proof="clock.ticks"} 1.0' in text
    assert 'hostwright_proof_findings{host="gpu09",proof="clock.ticks",severity="outlier"} 1.0' in text
    assert 'hostwright_prove_host_status{host="silent",status="unread"} 1.0' in text
