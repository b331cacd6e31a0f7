"""A real browser: Debian's Chromium, driven with selenium, without a screen and without a network."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from lab.image import ensure_programs
from tests import reruns
from tests.unit.roles.proxy.nginxes import ADDRESS, NAME

PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
DESKTOP, PHONE = (1440, 900), (390, 844)
SMALLEST = (360, 740)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
    f"--host-resolver-rules=MAP *.{NAME} {ADDRESS}",
)  # fmt: skip
#: how many different colours a picture has, and its size: asked of the browser, which can read its own pictures
COLOURS = """
const [picture, done] = arguments, image = new Image();
image.onload = () => {
  const canvas = new OffscreenCanvas(image.width, image.height), context = canvas.getContext('2d');
  context.drawImage(image, 0, 0);
  const pixels = new Uint32Array(context.getImageData(0, 0, image.width, image.height).data.buffer);
  done([image.width, image.height, new Set(pixels).size]);
};
image.src = 'data:image/png;base64,' + picture;
"""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Each test starts a browser."""
    reruns.may_fail_once(item)


@dataclass
class Browser:
    """The browser with one page."""

    driver: webdriver.Chrome

    def open(self, file: Path, fragment: str = "") -> None:
        """Load a file as a user would; the log begins anew."""
        self.driver.get("about:blank")  # a page that differs only in its fragment would not be loaded again
        self.driver.get_log("browser")
        self.driver.get(file.as_uri() + fragment)

    def resize(self, size: tuple[int, int], *, dark: bool = False) -> None:
        """A window of this size in CSS pixels; a narrow one is a phone's."""
        width, height = size
        phone = {"width": width, "height": height, "deviceScaleFactor": 2 if width < 600 else 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": [scheme]})

    def js(self, script: str, *values: object) -> Any:
        """What a script returns."""
        return self.driver.execute_script(script, *values)

    def one(self, selector: str) -> WebElement:
        """The first element that a CSS selector names."""
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def seen(self, selector: str) -> list[str]:
        """The texts of the elements that are displayed, each in one line."""
        return [_line(one.text) for one in self.driver.find_elements(By.CSS_SELECTOR, selector) if one.is_displayed()]

    def row(self, host: str) -> str:
        """The selector of a host's row."""
        place = self.js("return data.hosts.findIndex((one) => one.name === arguments[0])", host)
        return f'tr[data-host="{place}"]'

    def press(self, *keys: str) -> None:
        """Type where the focus is."""
        self.driver.switch_to.active_element.send_keys(*keys)

    def focus(self) -> str:
        """The text of what has the focus."""
        return _line(self.driver.switch_to.active_element.text)

    def shoot(self, file: Path) -> tuple[int, int, int]:
        """Take a picture; its width, height and number of colours."""
        picture = self.driver.get_screenshot_as_base64()
        file.write_bytes(base64.b64decode(picture))
        here = self.driver.current_window_handle
        self.driver.switch_to.new_window("tab")
        self.driver.get("data:text/html,")
        width, height, colours = self.driver.execute_async_script(COLOURS, picture)
        self.driver.close()
        self.driver.switch_to.window(here)
        return width, height, colours

    def until(self, so: Callable[[], bool]) -> None:
        """Wait until something is so, as after a click that a page answers later."""
        WebDriverWait(self.driver, 60).until(lambda _: so())

    def complaints(self) -> list[str]:
        """What the console said that is worth a look: errors, and refusals of the page's own policy."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]


def _line(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="session", autouse=True)
def programs() -> None:
    """The browser and its driver, installed when they are missing."""
    wanted = {"chromium": "chromium", "chromedriver": "chromium-driver"}
    ensure_programs(wanted, path=PATH)


@pytest.fixture(scope="session")
def driver(programs: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    """One browser with a profile of its own."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium", path=PATH))
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.accept_insecure_certs = True  # of an authority that a test made
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = webdriver.Chrome(options=options, service=Service(str(shutil.which("chromedriver", path=PATH))))
    started.set_script_timeout(60)
    yield started
    started.quit()


@pytest.fixture
def browser(driver: webdriver.Chrome) -> Browser:
    """The browser with a desktop's window."""
    ready = Browser(driver)
    ready.resize(DESKTOP)
    return ready


__all__ = ["DESKTOP", "PHONE", "SMALLEST", "Browser", "Keys"]
