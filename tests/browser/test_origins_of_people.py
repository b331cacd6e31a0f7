"""With ``proxy_people_domain``, a real browser keeps the pages of two people apart."""

from __future__ import annotations

import pytest

from tests.browser.conftest import Browser
from tests.unit.roles.proxy import nginxes

#: what a page reads at an address: its status and length, or that the browser refuses
READ = """
const [address, done] = arguments;
fetch(address, {credentials: 'include'}).then(
  async (answer) => done([answer.status, (await answer.text()).length]), (error) => done([error.name, 0]));
"""
#: whether a page can look into a frame that shows an address
FRAMED = """
const [address, done] = arguments, frame = document.createElement('iframe');
frame.onload = () => {
  try { done(frame.contentWindow.document.body.textContent.length); } catch (error) { done(error.name); }
};
frame.src = address;
document.body.append(frame);
"""


def test_a_page_of_one_person_cannot_read_anothers(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> None:
    with nginxes.named(tmp_path_factory) as (nginx, _):
        alices = f"https://alice.{nginxes.NAME}:{nginx.port}"
        own, bobs = f"{alices}/alice/alice-lab/", f"https://bob.{nginxes.NAME}:{nginx.port}/bob/bob-lab/"
        browser.driver.get(bobs)
        assert "/bob/bob-lab/" in browser.one("body").text, "bob reads his own page"
        browser.js("document.cookie = 'bobs=1; path=/'; localStorage.setItem('bobs', '1')")
        browser.driver.get(own)
        read = browser.driver.execute_async_script
        status, length = read(READ, own)
        assert (status, length > 0) == (200, True)
        assert read(READ, bobs) == ["TypeError", 0], "another origin"
        assert read(READ, f"{alices}/bob/bob-lab/")[0] == 404, "nothing of bob's is at alice's name"
        assert read(FRAMED, bobs) == "SecurityError"
        assert browser.js("return [document.cookie, localStorage.getItem('bobs')]") == ["", None]
