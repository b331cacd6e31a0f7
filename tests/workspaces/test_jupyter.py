"""Two people's Jupyters on one host, in a browser: a training, a provision in the middle, a reboot, a TensorBoard.

The tests are one story on one host, in this order.
"""

from __future__ import annotations

import json
import os
import re
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lab.image import ensure_programs
from lab.machine import exec_in
from tests.browser.conftest import PATH
from tests.lab.conftest import on
from tests.workspaces.browsing import Jupyter, Page, browser, trusting
from tests.workspaces.site import HOST, PORT, Site
from tests.workspaces.tunnels import answers, eventually, tunnel

AUTHORITY = "/var/lib/hostwright/proxy/authority.crt"
PICTURES = Path(__file__).parents[2] / "docs/images"
NAME = "training.ipynb"
#: what each person's model shall find: y = slope * x + offset
SOUGHT = {"alice": (3, 1), "bob": (-2, 5)}
TRAINING = """\
import os; os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

tf.keras.utils.set_random_seed(7)
x = tf.random.uniform((256, 1))
y = {slope} * x + {offset}
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile(tf.keras.optimizers.SGD(0.2), "mse")
model.fit(x, y, batch_size=8, epochs=5, verbose=2, callbacks=[tf.keras.callbacks.TensorBoard("logs")])
kernel, bias = model.get_weights()
print(f"TensorFlow {{tf.__version__}} learned y = {{kernel[0][0]:.2f}} x + {{bias[0]:.2f}}")"""
AGAIN = """\
import os; os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
print("sum", tf.reduce_sum(tf.ones((3, 4))).numpy())"""
#: prints a number each second: what is lost while the proxy changes would be missing
COUNTING = """\
import time
for number in range({count}):
    print("number", number, flush=True)
    time.sleep(1)"""
COUNT = 40


@pytest.fixture(scope="module")
def programs() -> None:
    """The browser, its driver, and what tells it whom to trust."""
    ensure_programs({"chromium": "chromium", "chromedriver": "chromium-driver", "certutil": "libnss3-tools"}, path=PATH)


@pytest.fixture(scope="module")
def people(site: Site, programs: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Jupyter]]:
    """A browser for each person, which trusts the host's own authority and no other."""
    folder = tmp_path_factory.mktemp("people")
    kept = (NAME, "logs", "answer", ".jupyter")  # in a lab that was kept
    on(site.machine, "cd /srv/workspaces; rm -rf " + " ".join(f"*/*-lab/{name}" for name in kept))
    authority = folder / "authority.crt"
    authority.write_text(on(site.machine, f"cat {AUTHORITY}"))
    with desk(site, folder / "alice", authority) as alice, desk(site, folder / "bob", authority) as bob:
        yield {"alice": alice, "bob": bob}


@contextmanager
def desk(site: Site, home: Path, authority: Path | None) -> Iterator[Jupyter]:
    """A browser with a home of its own."""
    with browser(trusting(home, authority), {HOST: str(site.machine.address)}) as page:
        assert isinstance(page, Jupyter)
        yield page


def address(person: str, path: str = "") -> str:
    return f"https://{HOST}:{PORT}/{person}/{person}-lab/{path}"


def picture(page: Page, name: str) -> None:
    """Take a picture for the documents, if that was asked for."""
    if os.environ.get("HOSTWRIGHT_PICTURES"):
        page.shoot(PICTURES / f"workspace-{name}.png")


def losses(output: str) -> list[float]:
    """The loss of each epoch, as Keras printed it."""
    return [float(number) for number in re.findall(r"loss: ([0-9.e-]+)", output)]


def test_each_token_opens_its_own_jupyter_and_not_the_others(site: Site, people: dict[str, Jupyter]) -> None:
    for person, other in (("alice", "bob"), ("bob", "alice")):
        page = people[person]
        page.login(address(person), site.token(f"{other}-lab"))
        page.until(lambda page=page: "Invalid credentials" in page.text(), "the refusal")
        assert not page.all(".jp-LauncherCard")
        picture(page, "login")
        page.login(address(person), site.token(f"{person}-lab"))
        page.one('.jp-LauncherCard[data-category="Notebook"]')


@pytest.fixture(scope="module")
def trained(people: dict[str, Jupyter]) -> dict[str, str]:
    """What each person's training printed."""
    printed = {}
    for person, (slope, offset) in SOUGHT.items():
        page = people[person]
        page.decline_news()
        page.notebook(NAME)
        printed[person] = page.run(TRAINING.format(slope=slope, offset=offset))
        page.save()
    return printed


def test_a_cell_trains_a_model(trained: dict[str, str]) -> None:
    for person, (slope, offset) in SOUGHT.items():
        found = re.search(r"TensorFlow 2\.9\.0 learned y = (\S+) x \+ (\S+)", trained[person])
        assert found, trained[person]
        assert float(found[1]) == pytest.approx(slope, abs=0.1)
        assert float(found[2]) == pytest.approx(offset, abs=0.1)
        falling = losses(trained[person])
        assert len(falling) == 5
        assert falling[-1] < falling[0] / 20


def test_a_restarted_kernel_and_a_terminal_are_reached(
    site: Site, people: dict[str, Jupyter], trained: dict[str, str]
) -> None:
    """notebook#1835, jupyterhub#422: cells hang after a restart behind a proxy; jupyterlab#5604: terminals, too."""
    page = people["bob"]
    assert page.run("print(bias[0] > 4)") == "True"
    page.restart()
    assert page.run('print("bias" in globals())') == "False"
    page.terminal("echo $((6 * 7)) >answer; id -u >>answer")
    answer = "/srv/workspaces/bob/bob-lab/answer"
    eventually(lambda: exec_in(site.machine, ["grep", "-c", "", answer]).stdout == "2\n", 60, "the terminal's lines")
    assert on(site.machine, f"cat {answer}").split() == ["42", on(site.machine, "id -u bob").strip()]


def test_a_provision_ends_no_websocket(site: Site, people: dict[str, Jupyter], trained: dict[str, str]) -> None:
    """Another workspace comes and the proxy gets its path: nginx is reloaded, and a cell goes on printing."""
    page = people["alice"]
    page.sockets()
    main = on(site.machine, "systemctl show -P MainPID nginx.service").strip()
    page.start(COUNTING.format(count=COUNT))
    page.until(lambda: "number 1" in page.outputs()[-2], "the first numbers")
    site.declare(**{"alice-second": {**site.entry, "user": "alice", "kind": "jupyter"}})
    site.succeeds("provision", "--hosts", HOST)
    assert page.outputs()[-2].split()[-1] != str(COUNT - 1), "the provision took longer than the cell"
    assert get(site, "/alice/alice-second/api")["version"]
    page.until(lambda: page.prompts()[-2] != "[*]:", "the cell's end")
    assert page.outputs()[-2].split() == [word for n in range(COUNT) for word in ("number", str(n))]
    assert [event for event in page.sockets() if event[0] == "closed"] == []
    assert on(site.machine, "systemctl show -P MainPID nginx.service").strip() == main
    page.save()


def get(site: Site, path: str) -> dict[str, object]:
    """What the proxy answers, asked from the host."""
    words = ("curl", "-sS", "--fail", "--cacert", AUTHORITY, "--resolve", f"{HOST}:{PORT}:127.0.0.1")
    done = exec_in(site.machine, [*words, f"https://{HOST}:{PORT}{path}"])
    assert done.returncode == 0, done.stderr
    value: dict[str, object] = json.loads(done.stdout)
    return value


def test_tensorboard_shows_the_training_through_its_tunnel(
    site: Site, people: dict[str, Jupyter], trained: dict[str, str]
) -> None:
    with tunnel(site, "alice-board") as here:
        address = here + "data/plugin/scalars/scalars?run=train&tag=epoch_loss"
        eventually(lambda: answers(address), 60, "TensorBoard to have read the logs")
        with urllib.request.urlopen(address, timeout=20) as answer:  # noqa: S310 - our own tunnel
            points = json.load(answer)
        assert [step for _, step, _ in points] == [0, 1, 2, 3, 4]
        assert [value for _, _, value in points] == pytest.approx(losses(trained["alice"]), rel=0.01, abs=1e-4)
        page = people["bob"]  # any browser that the tunnel's owner has
        page.open(here + "?darkMode=false#timeseries")
        page.until(lambda: "epoch_loss" in page.text(), "the card of the loss")
        page.until(lambda: page.curves() >= 1, "a curve")
        picture(page, "tensorboard")


def test_after_a_reboot_the_notebook_is_there_with_the_same_token(
    site: Site, people: dict[str, Jupyter], trained: dict[str, str]
) -> None:
    tokens = {person: site.token(f"{person}-lab") for person in people}
    before = on(site.machine, "cat /proc/sys/kernel/random/boot_id")
    exec_in(site.machine, ["systemctl", "reboot"])
    eventually(lambda: booted(site) not in ("", before), 180, "the host to have rebooted")
    eventually(lambda: exec_in(site.machine, ["systemctl", "is-active", "nginx"]).returncode == 0, 180, "nginx to run")
    for person, page in people.items():
        page.driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
        eventually(lambda person=person: running(site, person), 180, f"the Jupyter of {person}")
        page.login(address(person, f"lab/tree/{NAME}"), tokens[person])
        page.until(lambda page=page: page.cells(), "the notebook")
        page.until(lambda page=page: "learned" in "".join(page.outputs()), "the output of the training")
        assert [text for text in page.outputs() if "learned" in text] == [trained[person]]
        page.idle()
        assert page.run(AGAIN) == "sum 12.0"
        page.one(".jp-Notebook .jp-InputPrompt").click()
        if person == "alice":
            page.show_first()
            picture(page, "jupyter")
        assert site.token(f"{person}-lab") == tokens[person]
    plan = site.invoke("plan", "--hosts", HOST)
    assert plan.returncode == 0, plan.stdout


def booted(site: Site) -> str:
    """The id of the host's boot; empty while it does not answer."""
    try:
        return exec_in(site.machine, ["cat", "/proc/sys/kernel/random/boot_id"]).stdout
    except Exception:  # noqa: BLE001 - it is off for a moment
        return ""


def running(site: Site, person: str) -> bool:
    """Whether the proxy reaches the person's Jupyter."""
    words = ("curl", "-s", "-o", "/dev/null", "--fail", "--cacert", AUTHORITY, "--resolve", f"{HOST}:{PORT}:127.0.0.1")
    return exec_in(site.machine, [*words, address(person, "api")]).returncode == 0
