"""What the site's copy buttons copy: commands as they are typed, without their prompts and output."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.conftest import PHONE, Browser
from tests.places import PROJECT
from tests.unit.test_docs_site import build_site

#: as Material for MkDocs does when a button is pressed
COPIED = """
  return [...document.querySelectorAll('pre code')].map((code) => {
    code.setAttribute('data-md-copying', '');
    const text = code.innerText.trimEnd();
    code.removeAttribute('data-md-copying');
    return text;
  });
"""
SELECTED = """
  const code = document.querySelectorAll('pre code')[arguments[0]];
  getSelection().selectAllChildren(code);
  return getSelection().toString().trim();
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build_site(PROJECT, folder)
    return folder


def test_commands_are_copied_and_nothing_else(browser: Browser, site: Path) -> None:
    browser.open(site / "start/first-hour.html")
    copied = browser.js(COPIED)
    venv = "python3 -m venv ~/hostwright && . ~/hostwright/bin/activate\npip install dist/hostwright-*.whl"
    assert copied[0] == f"{venv}\nhostwright init ~/fleet --stack pytorch-2.14\ncd ~/fleet"
    assert copied[2] == "hostwright hosts\nhostwright check", "without what they print"
    assert browser.js(SELECTED, 0) == copied[0], "and so it is where one selects a block"
    assert [text for text in copied if text.startswith("$") or "\n$" in text] == []


@pytest.mark.parametrize("page", ["operators/provision", "operators/rollouts", "contributing", "start/first-hour"])
def test_no_prompt_is_copied_from_any_page(browser: Browser, site: Path, page: str) -> None:
    browser.resize(PHONE)
    browser.open(site / f"{page}.html")
    blocks = browser.js(COPIED)
    assert blocks and [text for text in blocks if text.startswith("$ ") or "\n$ " in text] == []
