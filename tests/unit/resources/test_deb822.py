"""Sources in deb822: only the stanza that must not be read is disabled, and everything comes back as it was.

What other tools got wrong: pop-os/repolib#83 (only a file's first stanza counted), pop-os/repolib#92 and
linuxmint/mintsources#259 (no ``Enabled`` means yes), canonical/operator-libs-linux#137 (disabling one repository of a
stanza disabled all of its repositories), ansible/ansible#84465 (several repositories in one file).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from hostwright.plan.model import Answer, Change, Facts, Resource
from hostwright.resources.packages.repositories import SourcesDisabled
from hostwright.resources.packages.sources_gone import ListsGone
from tests.unit.support.shell import ask, run

OURS = "developer.download.nvidia.com/compute/cuda/repos"
KEY = "/usr/share/keyrings/cuda-repo-"
STATE = SourcesDisabled((OURS, KEY), "one source", keep="/etc/apt/sources.list.d/keep.sources")
THEIRS = """\
# The distribution's own.
Types: deb deb-src
URIs: http://archive.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mQINBF
 -----END PGP PUBLIC KEY BLOCK-----
"""
STANZA = f"Types: deb\nURIs: https://{OURS}/debian12/x86_64/\nSuites: /\n"


class Place:
    """A directory in the place of /etc/apt."""

    def __init__(self, root: Path):
        self.root = root
        self.file = root / "sources.list.d/all.sources"
        self.file.parent.mkdir(parents=True)

    def plan(self, state: Resource) -> Change | None:
        answers = {probe: Answer(*ask(self.here(probe.script))) for probe in state.probes()}
        said = {
            probe: Answer(one.status, one.text.replace(f"{self.root}/", "/etc/apt/")) for probe, one in answers.items()
        }
        planned = state.plan(Facts(said))
        assert planned is None or isinstance(planned, Change)
        return planned

    def here(self, script: str) -> str:
        return script.replace("/etc/apt/", f"{self.root}/")

    def apply(self, state: Resource) -> None:
        change = self.plan(state)
        assert change is not None
        done = run(self.here(change.steps[0].script), origin=self.root / "origin")
        assert done.returncode == 0, done.stderr
        assert self.plan(state) is None, "it must be as desired afterwards"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def read(place: Place) -> list[str]:
    """What apt itself reads: addresses and suites of the file."""
    if shutil.which("apt-get") is None:
        pytest.skip("this machine has no apt")
    options = ["-o", f"Dir::Etc={place.root}", "-o", "Dir::Etc::Parts=/nowhere", "-o", f"Dir::State={place.root}"]
    command = ["apt-get", *options, "indextargets", "--no-release-info", "--format", "$(REPO_URI) $(RELEASE)"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return sorted(set(done.stdout.splitlines()))


@pytest.mark.parametrize(
    ("stanza", "after"),
    [
        (STANZA, STANZA + "# disabled by hostwright: \nEnabled: no\n"),
        (
            f"Enabled: yes\n{STANZA}",
            f"# disabled by hostwright: Enabled: yes\nEnabled: no\n{STANZA}",
        ),
        (
            f"Types: deb\nURIs: https://other.example/x https://{OURS}/a\nSuites: /\n",
            f"Types: deb\n# disabled by hostwright: URIs: https://other.example/x https://{OURS}/a\n"
            "URIs: https://other.example/x\nSuites: /\n",
        ),
        (
            f"Types: deb\nURIs:\n https://{OURS}/a\n# and\n https://other.example/x\nSuites: /\n",
            f"Types: deb\n# disabled by hostwright: URIs:\n# disabled by hostwright:  https://{OURS}/a\n# and\n"
            "# disabled by hostwright:  https://other.example/x\nURIs: https://other.example/x\nSuites: /\n",
        ),
        (
            f"Types: deb\nURIs: https://a.example/x\nSuites: /\nSigned-By: {KEY}x.gpg\n",
            f"Types: deb\nURIs: https://a.example/x\nSuites: /\nSigned-By: {KEY}x.gpg\n"
            "# disabled by hostwright: \nEnabled: no\n",
        ),
    ],
)
@pytest.mark.parametrize(
    ("before", "behind"), [("", ""), (f"{THEIRS}\n", f"\n\n{THEIRS}"), ("\n# only a comment\n\n", "")]
)
def test_the_conflicting_stanza_alone_is_disabled_and_comes_back(
    place: Place, stanza: str, after: str, before: str, behind: str
) -> None:
    place.file.write_text(before + stanza + behind)
    place.file.chmod(0o640)
    place.apply(STATE)
    assert place.file.read_text() == before + after + behind
    assert place.file.stat().st_mode & 0o777 == 0o640
    (back,) = STATE.removal()
    place.apply(back)
    assert place.file.read_text() == before + stanza + behind
    assert [path.name for path in place.file.parent.iterdir()] == [place.file.name]


@pytest.mark.parametrize("uris", ["URIs: {0} {1} {2}", "URIs:\n {0}\n# and\n {1}\n {2}", "URIs:\n {2}\n {1}\n {0}"])
@pytest.mark.parametrize("first", [0, 1])
def test_a_stanza_from_which_two_states_took_addresses_comes_back_whole(place: Place, uris: str, first: int) -> None:
    former = "developer.download.nvidia.com/compute/machine-learning/repos"
    addresses = (f"https://{OURS}/a", f"https://{former}/b", "https://other.example/c")
    text = f"Types: deb\n{uris.format(*addresses)}\nSuites: /\n"
    place.file.write_text(text)
    states = (STATE, SourcesDisabled((former,), "side by side"))
    for state in (states[first], states[1 - first]):
        place.apply(state)
    fields = [line for line in place.file.read_text().splitlines() if not line.startswith("#")]
    assert fields == ["Types: deb", "URIs: https://other.example/c", "Suites: /"]
    for state in states:
        (back,) = state.removal()
        if place.plan(back) is not None:
            place.apply(back)
    assert place.file.read_text() == text


def test_a_link_to_a_file_elsewhere_stays_a_link(place: Place) -> None:
    real = place.root / "theirs.sources"
    real.write_text(STANZA)
    place.file.symlink_to(real)
    place.apply(STATE)
    assert place.file.readlink() == real
    assert "Enabled: no" in real.read_text()
    (back,) = STATE.removal()
    place.apply(back)
    assert (place.file.readlink(), real.read_text()) == (real, STANZA)


def test_a_list_that_is_a_link_is_disabled_where_it_lies_and_comes_back(place: Place) -> None:
    """apt follows links; one to a host's configuration management, say, must not become a file of its own."""
    real, line = place.root / "theirs.d/cuda.list", f"deb https://{OURS}/debian12/x86_64/ /\n"
    real.parent.mkdir()
    real.write_text(line)
    linked = place.file.with_name("cuda.list")
    linked.symlink_to(real)
    place.apply(STATE)
    assert (linked.readlink(), real.read_text()) == (real, f"# disabled by hostwright: {line}")
    (back,) = STATE.removal()
    place.apply(back)
    assert (linked.readlink(), real.read_text()) == (real, line)


def test_no_pipe_is_waited_for_in_the_place_of_a_list(place: Place) -> None:
    for path in (place.root / "sources.list", place.file.with_name("a.list"), place.file):
        os.mkfifo(path)
    (back,) = STATE.removal()
    gone = ListsGone(f"https://{OURS}", "/etc/apt/sources.list.d/ours.list")
    for state in (STATE, back, gone):
        assert place.plan(state) is None


def test_apt_reads_strangers_stanzas_of_the_file_on(place: Place) -> None:
    theirs = "Types: deb\nURIs: http://archive.example/debian\nSuites: bookworm\nComponents: main\nTrusted: yes\n"
    mixed = f"Types: deb\nURIs: https://{OURS}/a https://other.example/b\nSuites: ./\nTrusted: yes\n"
    place.file.write_text(f"{theirs}\n{STANZA}Trusted: yes\n\n{mixed}")
    assert any(OURS in line for line in read(place))
    place.apply(STATE)
    addresses = {line.split()[0] for line in read(place)}
    assert addresses == {"http://archive.example/debian/", "https://other.example/b/"}


@pytest.mark.parametrize("word", ["no", "No", "false", "without", "off", "disable", "0", " no "])
def test_a_stanza_that_apt_does_not_read_counts_as_disabled(place: Place, word: str) -> None:
    place.file.write_text(f"{STANZA}Enabled: {word}\n")
    assert place.plan(STATE) is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("all.sources", f"# URIs: https://{OURS}\n{THEIRS}"),
        ("keep.sources", STANZA),
        ("old.sources.save", STANZA),
        ("all.sources", ""),
    ],
)
def test_comments_the_files_that_stay_and_others_are_not_touched(place: Place, name: str, text: str) -> None:
    (place.file.parent / name).write_text(text)
    assert place.plan(STATE) is None
