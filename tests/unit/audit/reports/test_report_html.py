"""Tests of the HTML report: complete, self-contained, and safe with hostile text of hosts.

Its appearance: tests/browser.
"""

import json
import re
import unicodedata
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.audit.fleetaudit import Deviation, FleetAudit, HostAudit, NotChecked, Reading, ValueSpread
from hostwright.audit.hardware.gpu import Gpu, GpuLink, GpuProcess
from hostwright.audit.reports.html import data as html_data
from hostwright.audit.reports.html.html import PAGE, SCRIPTS, STYLES, digest, render_html
from hostwright.audit.reports.html.matrix import FoldedRow, matrix, met, tiles, worst_first
from hostwright.audit.reports.html.spreads import comparisons
from hostwright.audit.reports.html.text import TEXT_CHARACTERS, clean, embedded, folded, moment
from hostwright.audit.reports.trend import TrendPoint
from tests.unit.support.audits import CARD, EACH, HOSTILE, LIAR, WARNING, XID, fleet, host

DAY = datetime(2026, 11, 18, 12, tzinfo=UTC)
VOID = {"meta", "link", "input", "br"}
HOSTILE_PAGES = (
    "</script><script>owned=1</script>", "<!--<script>", '"><img src=x onerror=owned=1>', "\u202egnp.exe",
    "\x1b]0;x\x07", "{{ 7*7 }}", "&lt;b&gt;", "\u2028\u2029", "\ud800", "]]>",
)  # fmt: skip


class Page(HTMLParser):
    """A page as an HTML parser reads it: elements with their attributes, and their text."""

    def __init__(self, text: str):
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.texts.setdefault(tag, [])
        if tag not in VOID:
            self.open.append(tag)
            self.texts[tag].append("")

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if self.open:
            self.texts[self.open[-1]][-1] += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def data(self):
        return json.loads(self.texts["script"][0])


def page(*hosts: HostAudit, **more) -> Page:
    return Page(render_html(fleet(*hosts), **more))


def test_content_policy_allows_only_the_pages_style_and_script():
    seen = page()
    policy = next(
        element["content"] for element in seen.all("meta") if element.get("http-equiv") == "Content-Security-Policy"
    )
    allowed = dict(part.strip().partition(" ")[::2] for part in policy.split(";"))
    assert allowed == {
        "default-src": "'none'",
        "style-src": f"'{digest(seen.texts['style'][0])}'",
        "script-src": f"'{digest(seen.texts['script'][1])}'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert len(seen.texts["style"]) == 1
    assert [element.get("type") for element in seen.all("script")] == ["application/json", None]


def test_the_page_fetches_nothing_and_carries_no_handlers():
    seen = page(*EACH, LIAR)
    for tag, attributes in seen.elements:
        assert not [key for key in attributes if key.startswith("on") or key in ("src", "style", "srcdoc", "action")], (
            tag
        )
        assert (attributes.get("href") or "#").startswith(("#", "data:,"))
    for text in (*seen.texts["style"], seen.texts["script"][1]):
        assert not re.search(r"https?:|//\w+\.|@import|url\(", text)


@pytest.mark.parametrize("name", [*STYLES, *SCRIPTS])
def test_files_of_the_page_keep_to_the_rules(name):
    text = (PAGE / name).read_text("utf-8")
    assert len(text.splitlines()) <= 300
    assert "</" not in text
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function|\.style\b", text)


def test_every_host_has_a_row_of_its_own():
    names = [f"gpu{number:03d}" for number in range(60)]
    seen = page(*(host(name) for name in names), EACH[4])
    rows = [int(row["data-host"]) for row in seen.all("tr") if "data-host" in row]
    assert sorted(seen.data["hosts"][place]["name"] for place in rows) == sorted([*names, "gpu05"])
    assert [text for text in seen.texts["bdi"] if text == "gpu042"] == ["gpu042"]


def test_hosts_are_sorted_by_status_then_by_natural_order_of_names():
    ordered = worst_first([*EACH, host("gpu10"), host("gpu9")])
    assert [host_audit.host for host_audit in ordered] == [
        "gpu05", "gpu03", "gpu04", "gpu07", "gpu08", "gpu06", "gpu02", "gpu01", "gpu9", "gpu10",
    ]  # fmt: skip


def test_only_healthy_hosts_without_notes_or_findings_are_folded():
    well = [host(f"gpu{number:02d}") for number in range(1, 6)]
    warned = host("gpu07", layers={"cuda": "warning"}, findings=(WARNING,))
    locked = host("gpu08", notes=("locked by ada",))
    audit = fleet(*well, warned, locked)
    rows = matrix(audit, worst_first(audit.hosts), {})
    folds = [row for row in rows if isinstance(row, FoldedRow)]
    assert [(fold.hosts, len(fold.rows)) for fold in folds] == [("gpu[01-05]", 5)]
    assert {row.host for row in rows if not isinstance(row, FoldedRow)} == {"gpu07", "gpu08"}
    assert not [row for row in matrix(fleet(*well[:2]), well[:2], {}) if isinstance(row, FoldedRow)]


def test_a_layer_that_a_host_does_not_have_is_not_called_well():
    other = replace(host("gpu02"), layers=host("gpu02").layers[:2])
    audit = fleet(host("gpu01"), other)
    rows = {row.host: [cell.status for cell in row.cells] for row in matrix(audit, audit.hosts, {})}
    assert rows["gpu02"][2:] == ["absent", "absent"]
    cells = re.findall(r'<td class="c s-absent"[^>]*>(.*?)</td>', render_html(audit))
    assert cells == ['<span class="sign" aria-hidden="true">·</span><span class="word">not on this host</span>'] * 2


def test_a_cell_carries_a_sign_and_a_word_beside_its_colour():
    text = render_html(fleet())
    cells = re.findall(r'<td class="c [^>]*>(.*?)</td>', text)
    assert len(cells) == 8 * 4
    assert all(re.search(r'<span class="sign"[^>]*>.</span><span class="word">[a-z ]+</span>', cell) for cell in cells)


def test_tiles_count_all_hosts_once():
    found = tiles(EACH)
    assert {tile.status: tile.hosts for tile in found} == {
        "failing": 1, "drift": 2, "intent": 1, "new": 1, "unread": 1, "desired": 2,
    }  # fmt: skip
    assert sum(tile.share for tile in found) == pytest.approx(100)
    assert found[-1].remark == "1 with warnings"
    assert [tile.words for tile in tiles([host("gpu01", "differs")]) if tile.hosts] == ["differing from the stack"]
    assert sum(tile.hosts for tile in tiles([])) == 0


def test_known_failures_are_counted_once_a_host():
    twice = host("gpu01", findings=(XID, XID, WARNING))
    assert met([twice, EACH[4]]) == [("xid-fatal", True, 2), ("toolkit-beside", False, 1)]


def test_stand_ins_are_named_and_on_whom_unless_on_all():
    some = replace(EACH[0], stand_ins=("driver.run",))
    assert "driver.run" in render_html(fleet(some, EACH[1]))
    assert ", on gpu01: driver.run" in render_html(fleet(some, EACH[1]))
    assert ", on gpu01" not in render_html(fleet(some))
    assert "Stand-ins" not in render_html(fleet(*EACH))


def test_ages_stand_beside_what_they_are_of():
    ages = {
        ("gpu03", "status", ""): DAY,
        ("gpu03", "deviation", "cuda link /usr/local/cuda"): DAY.replace(day=17),
        ("gpu05", "finding", "xid-fatal"): DAY.replace(day=16),
        ("gpu01", "status", ""): DAY.replace(day=1),
    }
    seen = page(ages=ages)
    hosts = {entry["name"]: entry for entry in seen.data["hosts"]}
    assert hosts["gpu03"]["since"] == "2026-11-18"
    assert hosts["gpu03"]["deviations"][0][-1] == "2026-11-17"
    assert hosts["gpu05"]["findings"][0][-1] == "2026-11-16"
    assert "2026-11-18" in seen.texts["td"]
    assert "2026-11-01" not in seen.texts["td"]


def test_the_data_tells_all_of_a_host():
    data = page().data
    hosts = {entry["name"]: entry for entry in data["hosts"]}
    assert data["shapes"][hosts["gpu01"]["shape"]][0] == ["driver", "loaded", "470.182.03"]
    assert hosts["gpu01"]["have"] == ["470.182.03", "5.10.0-28"]
    assert data["rules"][hosts["gpu05"]["findings"][0][0]][:2] == ["xid-fatal", "gpu"]
    assert hosts["gpu06"]["sentence"] == "connection refused"
    assert hosts["gpu01"]["record"] == ["tensorflow-2.9", "2026-11-21 10:00 UTC", "run-1", "ada@desk"]
    assert data["shared"][hosts["gpu07"]["notChecked"]] == [["gpu", "ecc", "nvidia-smi is silent"]]
    meaning, action = data["shared"][hosts["gpu05"]["xids"][0][-1]]
    assert "PCIe" in meaning
    assert "cycle its power" in action


def test_equal_values_are_kept_once():
    data = page(*(host(f"gpu{number}") for number in range(30))).data
    assert len(data["shapes"]) == 1
    assert len(data["shared"]) <= 4


def test_a_card_is_its_identity_the_places_of_its_values_and_its_processes():
    card = replace(CARD, links=(GpuLink(0, True), GpuLink(1, False)), processes=(GpuProcess(7, "python3", "C", 5),))
    data = page(host("gpu01", gpus=(card,))).data
    index, bus, serial, uuid, places, processes = data["hosts"][0]["gpus"][0]
    assert (index, bus, serial, uuid) == (card.index, card.bus, card.serial, card.uuid)
    values = dict(zip(data["gpuColumns"], (data["gpuValues"][place] for place in places), strict=True))
    assert values["model"] == ["Tesla T4", False]
    assert values["ECC errors since driver load, uncorr./corr."] == ["0/0", False]
    assert values["ECC errors in total, uncorr./corr."] == ["", False]
    assert values["NVLinks up"] == ["1 of 2; down: 1", True]
    assert processes == [[7, "python3", "C", 5]]


def test_a_host_with_thousands_of_everything_is_cut_and_says_so():
    many = host(
        "gpu01",
        readings=tuple(Reading("base", f"r{number}", "v") for number in range(5000)),
        gpus=tuple(Gpu(number, "b") for number in range(5000)),
        deviations=tuple(Deviation("base", f"d{number}", "a", "b", "drift") for number in range(5000)),
        not_checked=tuple(NotChecked("base", f"c{number}", "r") for number in range(5000)),
    )
    seen = page(many)
    assert len(seen.data["hosts"][0]["have"]) == html_data.LIMITS["readings"]
    assert seen.data["hosts"][0]["cut"] == {
        "readings": 4600, "deviations": 4800, "gpus": 4968, "notChecked": 4800,
    }  # fmt: skip


def test_a_value_of_64_kilobytes_is_cut_visibly():
    seen = page(host("gpu01", readings=(Reading("base", "kernel", "x" * 65536),)))
    have = seen.data["hosts"][0]["have"][0]
    assert have.endswith("… cut (65,536 characters)")
    assert len(have) < TEXT_CHARACTERS + 40


def test_a_liar_adds_no_element_and_no_control_sign():
    honest = Counter(tag for tag, _ in page(EACH[0], EACH[4]).elements)
    text = render_html(fleet(EACH[0], LIAR))
    lied = Counter(tag for tag, _ in Page(text).elements)
    assert set(lied) <= {*honest, "small", "p"}
    assert lied["script"] == 2
    assert lied["b"] == honest["b"]
    assert not {sign for sign in text if unicodedata.category(sign).startswith("C")} - {"\n"}
    assert "\\u001b" not in text
    assert "\\u202e" not in text


anything = st.text(max_size=40) | st.sampled_from([*HOSTILE_PAGES, HOSTILE])


def said_everywhere(text: str) -> FleetAudit:
    liar = host(
        text, "failing", layers={"gpu": "failing"}, stand_ins=(text,), groups=(text,), notes=(text,), sentence=text,
        readings=(Reading(text, text, text, text),), deviations=(Deviation(text, text, text, text, "new"),),
        findings=(replace(XID, rule=text, evidence=(text,), cause=text, cure=text, link=text),),
        gpus=(Gpu(0, text, text, text, text, text, slowdowns=(text,), processes=(GpuProcess(1, text, text),)),),
        not_checked=(NotChecked(text, text, text),),
    )  # fmt: skip
    spread = ValueSpread(text, text, text, ((text, (text,)), (f"{text}2", ("b",))), text, ("b",))
    return FleetAudit(text, text, (liar, host("b")), (spread, replace(spread, values=spread.values[:1])))


@given(anything)
def test_no_text_changes_what_the_page_is_made_of(text):
    points = [
        TrendPoint(f"2026-01-{day:02d}", {"desired": 1, text: 1}, {text: {text: 1, "b": day}, "b": {text: 1}})
        for day in (1, 2)
    ]
    rendered = render_html(said_everywhere(text), points)
    rendered.encode()
    seen = Page(rendered)
    assert set(seen.texts) <= set(Page(render_html(said_everywhere("x"), points)).texts)
    assert len(seen.all("script")) == 2
    assert len(seen.all("html")) == len(seen.all("main")) == 1
    assert seen.elements[-2][1].get("id") == "data"
    assert len(seen.data["hosts"]) == 2
    assert not {sign for sign in rendered if unicodedata.category(sign).startswith("C")} - {"\n", "\t"}


@given(st.recursive(st.text() | st.none() | st.integers(), lambda one: st.lists(one) | st.dictionaries(st.text(), one)))
def test_embedded_json_is_the_same_value_and_cannot_end_its_element(value):
    text = embedded(value)
    assert json.loads(text) == value
    assert not set(text) & set("<>&\u2028\u2029")
    assert text.isascii()


@given(st.text(max_size=3000))
def test_clean_text_is_printable_and_bounded(text):
    cleaned = clean(text)
    assert len(cleaned) <= TEXT_CHARACTERS + 30
    assert not {sign for sign in cleaned if unicodedata.category(sign).startswith("C")} - {"\n", "\t"}


def test_stacked_combining_characters_are_cut():
    assert clean("Vie\u0323\u0302t") == "Vie\u0323\u0302t"
    assert clean("Z" + "\u0301" * 300 + "a") == "Z" + "\u0301" * 3 + "\ufffda"


def test_names_that_are_no_plain_names_are_listed_and_not_folded():
    assert folded(["gpu01", "gpu02"]) == "gpu[01-02]"
    assert folded(["a[1-9", "b,c"]) == "a[1-9, b,c"


@pytest.mark.parametrize(
    ("iso", "shown"),
    [
        ("2026-11-21T12:00:00+02:00", "2026-11-21 10:00 UTC"),
        ("0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00+14:00"),
        ("soon", "soon"),
    ],
)
def test_moments_are_utc_and_what_is_none_stays(iso, shown):
    assert moment(iso) == shown


def test_an_audit_of_nobody_is_a_page():
    seen = Page(render_html(FleetAudit("2026-11-21T10:00:00+00:00", "inventory", ())))
    assert seen.data["hosts"] == []
    assert "No host was audited." in " ".join("".join(seen.texts["h2"]).split())


def test_outliers_are_named_the_fewest_first_and_can_be_opened():
    kernel = ValueSpread("base", "kernel", "d", (("5.10", ("a", "b", "c")), ("5.4", ("d",))), "5.10", ("d",))
    draw = ValueSpread("base", "BIOS", "", (("1", ("a", "b")), ("2", ("c", "d"))), "", ())
    equal = ValueSpread("base", "memory", "", (("1", ("a",)),), "1", ())
    found = comparisons((draw, equal, kernel), ["d", "c", "b", "a"])
    assert [comparison.reading for comparison in found] == ["kernel", "BIOS"]
    assert [(share.value, share.role, share.openable) for share in found[0].shares] == [
        ("5.10", "majority", ()), ("5.4", "outlier", ((0, "d"),)),
    ]  # fmt: skip
    assert {share.role for share in found[1].shares} == {""}


def test_many_values_of_one_reading_are_cut():
    values = tuple((f"v{number}", (f"h{number}",)) for number in range(30))
    assert comparisons((ValueSpread("gpu", "serial", "", values, "", ()),), [])[0].more_values == 22
