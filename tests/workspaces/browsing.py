"""Jupyter and TensorBoard in Debian's Chromium, which is told to trust one authority and nothing else."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from selenium import webdriver
from selenium.common.exceptions import TimeoutException, WebDriverException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from tests.browser.conftest import FLAGS, PATH

SIZE = (1180, 760)
PATIENCE_S = 180  #: a page of Jupyter's on a busy machine; a training; a page after a reboot
#: JupyterLab adds a cell to its page when it comes into view, and says its place in the notebook
CELLS = """const place = cell => Number(cell.dataset.windowedListIndex ?? 0);
const cells = [...document.querySelectorAll(".jp-Notebook .jp-CodeCell")].sort((a, b) => place(a) - place(b))"""
OUTPUT = """cell => {
  const printed = [...cell.querySelectorAll(".jp-OutputArea-output")];
  return printed.map(each => each.textContent).join("\\n").trim();
}"""
Value = TypeVar("Value")


@dataclass
class Page:
    """One browser with a profile of its own."""

    driver: webdriver.Chrome

    def open(self, address: str) -> None:
        """Load a page."""
        self.driver.get(address)

    def until(self, condition: Callable[[], Value], what: str, patience_s: float = PATIENCE_S) -> Value:
        """Wait until a condition holds, whatever the page does meanwhile; its value."""

        def holds(_: object) -> Value | None:
            try:
                return condition()
            except WebDriverException:
                return None

        try:
            return WebDriverWait(self.driver, patience_s, poll_frequency=0.2).until(holds)
        except TimeoutException as error:
            raise AssertionError(f"waited for {what}; the page now: {self.text()[-1500:]}") from error

    def text(self) -> str:
        """What the page shows."""
        try:
            return str(self.driver.find_element(By.TAG_NAME, "body").text)
        except WebDriverException as error:
            return f"(no page: {error.msg})"

    def all(self, selector: str) -> list[WebElement]:
        """The elements that a CSS selector names."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str) -> WebElement:
        """The first element that a CSS selector names and that is displayed, once there is one."""
        return self.until(lambda: next((e for e in self.all(selector) if e.is_displayed()), None), selector)

    def click(self, selector: str) -> None:
        """Click on an element, once that is possible."""
        self.until(lambda: self.one(selector).click() or True, f"a click on {selector}")

    def press(self, *keys: str) -> None:
        """Type where the focus is."""
        self.driver.switch_to.active_element.send_keys(*keys)

    def insert(self, text: str) -> None:
        """Text where the focus is, as pasted: without what an editor adds to keys."""
        self.driver.execute_cdp_cmd("Input.insertText", {"text": text})

    def resize(self, size: tuple[int, int] = SIZE) -> None:
        """A window of this size."""
        width, height = size
        values = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", values)

    def shoot(self, file: Path) -> None:
        """Take a picture, with few colours where pngquant is there."""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(base64.b64decode(self.driver.get_screenshot_as_base64()))
        if shutil.which("pngquant"):
            subprocess.run(("pngquant", "--force", "--ext", ".png", "--strip", "64", str(file)), check=True)

    def sockets(self) -> list[tuple[str, str]]:
        """What became of websockets since the last call: (created or closed, address or id)."""
        found = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.webSocketCreated":
                found.append(("created", message["params"]["url"]))
            elif message["method"] in {"Network.webSocketClosed", "Network.webSocketFrameError"}:
                found.append(("closed", message["params"]["requestId"]))
        return found


class Jupyter(Page):
    """JupyterLab, as somebody uses it."""

    def login(self, address: str, token: str) -> None:
        """Give a token to the page that asks for one."""
        self.open(address)
        self.one("input[name=password]").send_keys(token)
        self.click("#login_submit")

    def notebook(self, name: str) -> None:
        """A new notebook with Python, saved under a name."""
        self.click('.jp-LauncherCard[data-category="Notebook"]')
        self.idle()
        self.save(name)

    def save(self, name: str = "") -> None:
        """Save what is open; the first time Jupyter asks for a name."""
        self.press(Keys.CONTROL, "s")
        if name:
            field = self.one(".jp-Dialog input")
            field.send_keys(Keys.CONTROL, "a")
            field.send_keys(name, Keys.ENTER)
        self.until(lambda: not self.all(".jp-Dialog") and not self.all(".jp-mod-dirty"), "the file to be saved")

    def idle(self) -> None:
        """Wait for the kernel, and for the page's connection to it."""
        self.until(lambda: re.search(r"Python 3 \(ipykernel\) \| Idle", self.text()), "an idle kernel")

    def run(self, code: str) -> str:
        """Run code in the last cell; what it printed."""
        place = self.start(code)
        self.until(lambda: re.fullmatch(r"\[\d+\]:", self.prompts()[place]), "the cell's end")
        return self.outputs()[place]

    def start(self, code: str) -> int:
        """Start code in the last cell; the cell's place."""
        cells = self.cells()
        cells[-1].find_element(By.CSS_SELECTOR, ".cm-content").click()
        self.insert(code)
        self.press(Keys.SHIFT, Keys.ENTER)
        self.until(lambda: self.prompts()[len(cells) - 1] != "[ ]:", "the cell's start")
        return len(cells) - 1

    def restart(self) -> None:
        """Restart the kernel, as the notebook's button does."""
        self.click('[data-command="kernelmenu:restart"], .jp-ToolbarButtonComponent[title^="Restart the kernel"]')
        self.click(".jp-Dialog .jp-mod-accept")
        self.until(lambda: not self.all(".jp-Dialog"), "the answered question")
        self.idle()

    def terminal(self, line: str) -> None:
        """Type a line in a new terminal, once its websocket is there."""
        self.sockets()
        self.click("#jp-main-dock-panel .lm-TabBar-addButton")
        self.click('.jp-LauncherCard[title="Start a new terminal session"]')
        self.until(lambda: any("/terminals/websocket/" in where for _, where in self.sockets()), "a terminal")
        self.click(".jp-Terminal .xterm-screen")
        self.press(line, Keys.ENTER)

    def decline_news(self) -> None:
        """Answer Jupyter's question whether it may fetch news."""
        self.until(lambda: [b.click() for b in self.all(".Toastify__toast button") if b.text == "No"], "the question")
        self.until(lambda: not self.all(".Toastify__toast"), "the question to go")

    def show_first(self) -> None:
        """Scroll to the first cell."""
        self.driver.execute_script("arguments[0].scrollIntoView()", self.cells()[0])

    def curves(self) -> int:
        """How many lines TensorBoard has drawn."""
        return len(self.all("line-chart path, line-chart canvas"))

    def prompts(self) -> list[str]:
        """The number of each cell, or ``[*]:`` of one that runs."""
        return [str(cell.find_element(By.CSS_SELECTOR, ".jp-InputPrompt").text) for cell in self.cells()]

    def outputs(self) -> list[str]:
        """What each cell printed, also one that is not in view: a browser may not render it, and has no text of it."""
        return [str(text) for text in self.driver.execute_script(f"{CELLS}; return cells.map({OUTPUT})")]

    def cells(self) -> list[WebElement]:
        """The cells with code, in the notebook's order."""
        cells: list[WebElement] = self.driver.execute_script(f"{CELLS}; return cells")
        return cells


def trusting(home: Path, authority: Path | None) -> Path:
    """A home for a browser with one authority that it trusts, or none."""
    database = home / ".pki/nssdb"
    database.mkdir(parents=True)
    certutil = ("certutil", "-d", f"sql:{database}")
    subprocess.run((*certutil, "-N", "--empty-password"), check=True)
    if authority:
        subprocess.run((*certutil, "-A", "-t", "C,,", "-n", "hostwright", "-i", str(authority)), check=True)
    return home


@contextmanager
def browser(home: Path, addresses: dict[str, str], kind: type[Page] = Jupyter) -> Iterator[Page]:
    """A browser that knows these names' addresses; it never asks anybody else."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium", path=PATH))
    rules = ", ".join(f"MAP {name} {address}" for name, address in addresses.items())
    for flag in (*FLAGS, f"--user-data-dir={home / 'profile'}", f"--host-resolver-rules={rules}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = Service(str(shutil.which("chromedriver", path=PATH)), env={**os.environ, "HOME": str(home)})
    driver = webdriver.Chrome(options=options, service=service)
    driver.set_page_load_timeout(PATIENCE_S)
    page = kind(driver)
    page.resize()
    try:
        yield page
    finally:
        driver.quit()
