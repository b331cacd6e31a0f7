"""The HTML report in a real browser: how it looks, what clicks and keys do, and that no host can make it do more."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostwright.audit.fleetaudit import FleetAudit
from hostwright.audit.reports.html.html import render_html
from tests.browser.conftest import DESKTOP, PHONE, SMALLEST, Browser, Keys
from tests.browser.fleets import ages, fleet, trend
from tests.browser.hostile import hostile_fleet

STAND_INS = ("NVIDIA-Linux-x86_64-470.256.02.run", "cuda-repo-ubuntu2004-11-2-local_11.2.2-460.32.03-1_amd64.deb")
TARGET_BYTES = 10_000_000  #: of a page with 500 hosts of 90 readings and 8 cards each


def written(audit: FleetAudit, file: Path, *, history: bool = True) -> Path:
    size = len(audit.hosts)
    file.write_text(render_html(audit, trend(size) if history else (), ages(audit)), "utf-8")
    return file


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 hosts, as in the lab: with stand-ins."""
    return written(fleet(24, stand_ins=STAND_INS), tmp_path_factory.mktemp("small") / "audit.html")


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """500 hosts."""
    return written(fleet(500), tmp_path_factory.mktemp("large") / "audit.html")


@pytest.fixture(params=["small", "large"])
def page(request: pytest.FixtureRequest) -> Path:
    """Either."""
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize(("size", "dark"), [(DESKTOP, False), (DESKTOP, True), (PHONE, False), (PHONE, True)])
def test_it_is_drawn(browser: Browser, page: Path, tmp_path: Path, size: tuple[int, int], dark: bool):
    browser.resize(size, dark=dark)
    browser.open(page)
    ground = browser.js("return getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, ground[4:-1].split(","))) < 200) is dark
    for name in ("page", "panel"):
        if name == "panel":
            browser.one("#matrix .open").click()
        width, height, colours = browser.shoot(tmp_path / f"{name}.png")
        scale = 2 if size == PHONE else 1
        assert (width, height) == (size[0] * scale, size[1] * scale)
        assert colours > 100  # tiles, states and smoothed letters; a blank page has one
    assert browser.complaints() == []


def test_it_is_complete_in_one_file_and_of_bounded_size(browser: Browser, large: Path):
    assert large.stat().st_size < TARGET_BYTES
    browser.open(large)
    assert browser.js("return performance.getEntriesByType('resource').length") == 0
    assert browser.js("return document.querySelectorAll('#matrix tr[data-host]').length") == 500
    assert browser.one("#shown").text == "500 hosts"


@pytest.mark.parametrize("size", [PHONE, SMALLEST])
def test_nothing_is_wider_than_a_phone(browser: Browser, page: Path, size: tuple[int, int]):
    browser.resize(size)
    browser.open(page)
    assert browser.js("return [document.documentElement.scrollWidth, innerWidth]") == [size[0], size[0]]
    frame = browser.js("const f = document.querySelector('#hosts .frame'); return [f.scrollWidth, f.clientWidth]")
    assert frame[0] == frame[1]
    browser.one("#matrix .open").click()
    body = browser.js("const b = document.querySelector('.panel-body'); return [b.scrollWidth, b.clientWidth]")
    assert body[0] == body[1]


def test_a_click_on_a_cell_tells_what_to_do(browser: Browser, small: Path):
    browser.open(small)
    browser.one(browser.row("gpu007") + ' td[data-layer="7"]').click()
    (text,) = browser.seen("#panel")
    for part in (
        "gpu007", "since 2026-11-", "locked by grace@ops",
        "card stopped answering on the PCI bus", "Drain the host and cycle its power", "does not fix it",
        "hostwright doctor --explain gpu-off-the-bus", "lspci names 8 cards, nvidia-smi 7",
        "/usr/local/cuda-11.4→ want /usr/local/cuda-11.2",
        "Xid 79", "GPU does not answer on PCIe any more", "1563621000705", "92.00.45.00.03",
        "NVIDIA A100-SXM4-80GB", "! 8/16", "! 2/412", "12 of 12", "docker info ended with status 1",
        "20261114-071009-a3f1", "rack1",
    ):  # fmt: skip
        assert part in text
    assert browser.seen("[data-part=findings] h4")[0] == "gpu-off-the-bus"
    assert browser.one("[data-part=findings] .lit").get_attribute("data-layer") == "gpu"
    assert browser.complaints() == []


def test_values_that_differ_from_the_stack_are_marked_with_a_sign(browser: Browser, small: Path):
    browser.open(small)
    browser.one(browser.row("gpu011") + " .open").click()
    cells = browser.seen("[data-part=readings] tr.differs")
    assert len(cells) == 3
    assert all("470.182.03" in one and "≠ 470.256.02" in one for one in cells)


def test_an_unread_host_says_why(browser: Browser, small: Path):
    browser.open(small)
    browser.one(browser.row("gpu016") + " .open").click()
    assert "No route to host" in browser.one("#panel .sentence").text
    assert browser.seen("[data-part=readings]") == []


def test_words_filter_hosts_and_open_folds(browser: Browser, small: Path):
    browser.open(small)
    before = browser.seen("#matrix th .open")
    assert len(before) == 12
    assert browser.seen("#matrix .unfold") == ["▸ 12 hosts"]
    field = browser.one("#filter")
    field.send_keys("gpu003")
    assert browser.seen("#matrix tbody th") == ["gpu003"]
    assert browser.one("#shown").text == "1 of 24 hosts"
    field.clear()
    field.send_keys("RACK1 driver:failing")
    assert browser.seen("#matrix tbody th") == ["gpu011"]
    field.send_keys(" nonsense")
    assert browser.seen("#nothing") == ["No host matches. Show all hosts"]
    browser.one("#clear").click()
    assert browser.seen("#matrix th .open") == before


def test_tiles_and_failures_filter_too_and_let_go_again(browser: Browser, small: Path):
    browser.open(small)
    tile = browser.one('.tile[data-status="drift"]')
    tile.click()
    assert browser.seen("#matrix tbody th") == ["gpu018", "gpu013", "gpu014"]
    assert tile.get_attribute("aria-pressed") == "true"
    browser.one('.chip[data-rule="pcie-link-narrow"]').click()
    assert browser.seen("#matrix tbody th") == ["gpu018"]
    tile.click()
    assert browser.seen("#matrix tbody th") == ["gpu007", "gpu018"]
    assert tile.get_attribute("aria-pressed") == "false"


def test_a_folded_row_opens_and_closes(browser: Browser, small: Path):
    browser.open(small)
    fold = browser.one("#matrix .unfold")
    fold.click()
    assert fold.get_attribute("aria-expanded") == "true"
    assert len(browser.seen("#matrix th .open")) == 24
    fold.click()
    assert len(browser.seen("#matrix th .open")) == 12


def test_keys_do_all_that_a_mouse_does(browser: Browser, small: Path):
    browser.open(small)
    browser.press("/")
    browser.press("gpu01")
    assert browser.seen("#matrix th .open")[:2] == ["gpu011", "gpu018"]
    browser.press(Keys.ESCAPE)
    assert browser.one("#shown").text == "24 hosts"
    browser.js("document.querySelector('#matrix .open').focus()")
    browser.press(Keys.ARROW_DOWN)
    assert browser.focus() == "gpu011"
    browser.press(Keys.ENTER)
    assert browser.one("#panel-title").text == browser.focus() == "gpu011"
    assert browser.one(browser.row("gpu011") + " .open").get_attribute("aria-expanded") == "true"
    browser.press(Keys.ESCAPE)
    assert not browser.one("#panel").is_displayed()
    assert browser.focus() == "gpu011"
    browser.press(Keys.END)
    assert browser.focus() == "▸ 12 hosts"
    browser.press(Keys.ENTER)
    browser.press(Keys.ARROW_DOWN)
    assert browser.focus() == "gpu001"
    browser.press(Keys.HOME)
    assert browser.focus() == "gpu007"


def test_n_and_p_go_from_host_to_host(browser: Browser, small: Path):
    browser.open(small)
    for key, host in (("n", "gpu007"), ("n", "gpu011"), ("p", "gpu007"), ("p", "gpu007")):
        browser.press(key)
        assert browser.one("#panel-title").text == host
    browser.press("/")
    browser.press("n")
    assert browser.one("#filter").get_attribute("value") == "n"


def test_a_command_is_copied_by_a_click_also_where_there_is_no_clipboard(browser: Browser, small: Path):
    browser.open(small)
    browser.one(browser.row("gpu007") + " .open").click()
    told = "Copied: hostwright doctor --hosts gpu007"
    browser.one("#panel .command .copy").click()
    browser.until(lambda: browser.js("return document.getElementById('told').textContent") == told)
    browser.js("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    browser.one("#panel .commands > div:nth-child(2) .copy").click()
    told = "Copied: hostwright plan --hosts gpu007"
    browser.until(lambda: browser.js("return document.getElementById('told').textContent") == told)
    assert browser.complaints() == []


def test_the_names_of_the_hosts_that_are_shown_can_be_copied(browser: Browser, small: Path):
    browser.open(small)
    browser.one('.tile[data-status="drift"]').click()
    browser.one("#copy-names").click()
    told = "Copied: --hosts gpu018,gpu013,gpu014"
    browser.until(lambda: browser.js("return document.getElementById('told').textContent") == told)


def test_a_failure_leads_to_its_section_and_from_there_to_its_hosts(browser: Browser, small: Path):
    browser.open(small)
    browser.one(browser.row("gpu007") + " .open").click()
    browser.one("[data-part=findings] .to-failure").click()
    assert not browser.one("#panel").is_displayed()
    assert browser.js("return document.activeElement.id") == "failure-gpu-off-the-bus"
    browser.one("#failure-gpu-off-the-bus .to-host").click()
    assert browser.one("#panel-title").text == "gpu007"


def test_a_locked_host_is_marked(browser: Browser, small: Path):
    browser.open(small)
    assert browser.js("return document.querySelectorAll('#matrix .lock').length") == 1
    assert browser.one(browser.row("gpu007") + " .lock").get_attribute("aria-label") == "locked"


def test_what_has_the_focus_shows_it(browser: Browser, small: Path):
    browser.open(small)
    for _ in range(12):
        browser.press(Keys.TAB)
        style = browser.js(
            "const s = getComputedStyle(document.activeElement); return [s.outlineStyle, s.outlineWidth]"
        )
        assert style[0] != "none"
        assert style[1] != "0px"


def test_heads_and_names_stay_when_the_matrix_scrolls(browser: Browser, large: Path):
    browser.resize((700, 500))
    browser.open(large)
    places = """
      const frame = document.querySelector('#hosts .frame'), edge = frame.getBoundingClientRect();
      frame.scrollTo(60, 400);
      const head = document.querySelector('#matrix thead th:nth-child(3)').getBoundingClientRect();
      const name = document.querySelector('#matrix tbody tr:nth-child(20) th').getBoundingClientRect();
      return [frame.scrollTop, head.top - edge.top, name.left - edge.left];
    """
    scrolled, head, name = browser.js(places)
    assert scrolled == 400
    assert head == pytest.approx(1, abs=1)
    assert name == pytest.approx(1, abs=1)


def test_an_address_names_a_host(browser: Browser, small: Path):
    browser.open(small, "#host=gpu018")
    assert browser.one("#panel-title").text == "gpu018"
    browser.one("#panel .close").click()
    assert browser.js("return location.hash") == ""
    browser.one(browser.row("gpu013") + " .open").click()
    assert browser.js("return location.hash") == "#host=gpu013"


def test_an_outlier_can_be_opened(browser: Browser, small: Path):
    browser.open(small)
    outlier = browser.one("#values .to-host")
    outlier.click()
    assert browser.one("#panel-title").text == outlier.text


def test_stand_ins_are_in_sight_without_a_click(browser: Browser, small: Path):
    browser.open(small)
    for name in STAND_INS:
        assert name in browser.one("#stand-ins").text


def test_charts_say_what_they_show(browser: Browser, small: Path):
    browser.open(small)
    charts = browser.driver.find_elements("css selector", "#history figure")
    assert [one.find_element("css selector", "figcaption").text for one in charts] == [
        "Hosts not as desired", "All hosts", "driver loaded", "base kernel", "container nvidia-container-toolkit",
    ]  # fmt: skip
    titles = browser.js(
        "return [...document.querySelectorAll('#history figure:nth-of-type(1) rect title')].map(t => t.textContent)"
    )
    assert any(one.endswith("host drifted") for one in titles)
    assert all(one.find_element("css selector", "svg").get_attribute("aria-label") for one in charts)


def test_tables_name_their_rows_and_columns(browser: Browser, small: Path):
    browser.open(small)
    browser.one("#matrix .open").click()
    bare = "return [...document.querySelectorAll('th')].filter((one) => !['row', 'col'].includes(one.scope)).length"
    assert browser.js(bare) == 0
    unnamed = """
      return [...document.querySelectorAll('button, input, [role=region], svg[role=img]')].filter((one) =>
        !one.textContent.trim() && !one.getAttribute('aria-label') && !(one.labels && one.labels.length)).length
    """
    assert browser.js(unnamed) == 0
    ids = browser.js("return [...document.querySelectorAll('[id]')].map((one) => one.id)")
    assert len(ids) == len(set(ids))


def test_it_reads_without_scripts(browser: Browser, small: Path):
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.open(small)
        shown = browser.seen("#matrix tbody th")
        assert len(shown) == 25  # the folded hosts too, for nothing could open their row
        assert "need JavaScript" in browser.one("#hosts noscript").text
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_printed_it_shows_the_whole_matrix(browser: Browser, large: Path):
    browser.open(large)
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    frame = browser.js("const f = document.querySelector('#hosts .frame'); return [f.scrollHeight, f.clientHeight]")
    assert frame[0] == frame[1]
    assert not browser.one("#filter").is_displayed()


@pytest.mark.parametrize("size", [DESKTOP, SMALLEST])
def test_a_lying_host_runs_nothing_and_becomes_no_element(browser: Browser, tmp_path: Path, size: tuple[int, int]):
    browser.resize(size)
    audit, points = hostile_fleet()
    file = tmp_path / "hostile.html"
    file.write_text(render_html(audit, points), "utf-8")
    browser.open(file)
    for host in browser.driver.find_elements("css selector", "#matrix .open"):
        browser.js("arguments[0].click()", host)
        assert browser.one("#panel-title").is_displayed()
        strange = (
            "img, iframe, object, embed, base, form, style:not(head style), a[href*=':'], marquee, [onerror], [onload]"
        )
        assert browser.js("return document.querySelectorAll(arguments[0]).length", strange) == 0
        assert browser.js("return document.scripts.length") == 2
        assert browser.js("return window.owned === undefined")
        text = browser.js("return document.body.textContent")
        assert not set(text) & {"\x1b", "\u202e", "\u2066", "\x07", "\x00"}
        assert "… cut (65,536 characters)" in text
        assert browser.js("return document.documentElement.scrollWidth <= innerWidth")
    assert browser.complaints() == []


def test_without_a_history_there_is_a_plain_sentence(browser: Browser, tmp_path: Path):
    browser.open(written(fleet(3), tmp_path / "first.html", history=False))
    assert "There is no history yet" in browser.one("#history").text
    assert browser.complaints() == []
