"""The page of a run in a real browser: how it is drawn, what its links do, and that it asks for nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.conftest import DESKTOP, PHONE, SMALLEST, Browser
from tests.unit.audit.reports.test_report_run import BUSY, HOSTS, page


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("run") / "run.html"
    file.write_text(page(*HOSTS), "utf-8")
    return file


@pytest.mark.parametrize(("size", "dark"), [(DESKTOP, False), (DESKTOP, True), (PHONE, False), (SMALLEST, True)])
def test_it_is_drawn_and_no_wider_than_the_screen(browser: Browser, run: Path, size: tuple[int, int], dark: bool):
    browser.resize(size, dark=dark)
    browser.open(run)
    assert browser.js("return [document.documentElement.scrollWidth, innerWidth]") == [size[0], size[0]]
    ground = browser.js("return getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, ground[4:-1].split(","))) < 200) is dark
    assert browser.js("return performance.getEntriesByType('resource').length") == 0
    assert browser.complaints() == []


def test_pieces_lie_where_their_times_say(browser: Browser, run: Path):
    browser.resize(DESKTOP)
    browser.open(run)
    places = """
      const rows = [...document.querySelectorAll('#timeline tbody tr')];
      const lane = rows.find((row) => row.textContent.includes('gpu02'));
      const all = lane.querySelector('svg').getBoundingClientRect();
      return [...lane.querySelectorAll('rect:not(.p-waits, .p-critical)')].map((piece) => {
        const place = piece.getBoundingClientRect();
        return [Math.round(100 * (place.left - all.left) / all.width), Math.round(100 * place.width / all.width)];
      });
    """
    assert browser.js(places) == [[5, 5], [10, 10], [20, 30], [50, 25], [60, 5]]


def test_a_host_leads_to_its_steps(browser: Browser, run: Path):
    browser.open(run)
    browser.one("#matrix .open").click()
    assert browser.js("return location.hash") == "#host-1"
    assert browser.seen("#host-1 summary b") == [BUSY.host]
    assert "E: no space left on device" in browser.one("#host-1").text


def test_printed_it_is_light_also_on_a_dark_desktop(browser: Browser, run: Path):
    browser.open(run)
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": features})
    assert browser.js("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not browser.one("nav").is_displayed()


def test_no_word_is_broken_on_a_phone(browser: Browser, run: Path):
    browser.resize(PHONE)
    browser.open(run)
    heights = "return [...document.querySelectorAll('#times th, #times td')].map((cell) => cell.offsetHeight)"
    assert len(set(browser.js(heights)) - {0}) <= 2, "each row of the layers is one line; the median is hidden"
    inside = "const box = document.querySelector('#times .frame'); return box.scrollWidth <= box.clientWidth"
    assert browser.js(inside), "the slowest host is seen without scrolling"
    assert not browser.one("#matrix .why").is_displayed() and "refuses the connection" in browser.one("#steps").text
