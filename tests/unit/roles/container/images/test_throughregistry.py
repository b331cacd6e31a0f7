"""Images through a registry: plans, Docker commands, and the classification of Docker's errors."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hostwright.common.quoting import sh_file
from hostwright.plan.model import Answer, Change, Facts, Refusal
from hostwright.standard.roles.container.images import throughregistry
from hostwright.standard.roles.container.images.facts import IMAGES_PROBE
from hostwright.standard.roles.container.images.loaded import LoadedImage
from hostwright.standard.roles.container.images.throughregistry import ImagesPulled, ImagesPushed, PushedImage
from tests.unit.support.stubs import stub

AT = "reg01:5000"
ID, OTHER = f"sha256:{'a' * 64}", f"sha256:{'b' * 64}"
NAME, REFERENCE = "house/tool:1.2", f"{AT}/house/tool@sha256:{'c' * 64}"
PUSHED = ImagesPushed(AT, (LoadedImage(ID, NAME),))
PULLED = ImagesPulled(AT, (PushedImage(ID, NAME, REFERENCE),), 10**6)

#: messages of Docker in public reports, with their causes: lines of the fixture
MESSAGES = [
    json.loads(line)
    for line in (Path(__file__).parents[4] / "fixtures" / "registry-messages.jsonl").read_text().splitlines()
]
MEANS = {
    "absent": "no longer has this image",
    "authority": "of an authority that this host does not know",
    "between": "is not what answered, but something between",
    "date": "a certificate that is not valid now",
    "down": "does not answer",
    "inside": "failed itself",
    "lookup": "cannot resolve its name",
    "names": "a certificate that is not for this name",
    "plain": "answers without TLS",
}


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message["source"])
def test_a_message_of_docker_is_told_as_what_it_means(message: dict[str, str]) -> None:
    script = (
        sh_file(throughregistry.__file__, "sh/failing.sh", at=AT) + "told sh -c 'echo \"$TEXT\" >&2; exit 1'\necho on"
    )
    environment = {"TEXT": message["text"].replace("REG", AT), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(["/bin/sh", "-euc", script], env=environment, capture_output=True, text=True, check=False)
    *first, last = done.stderr.splitlines()
    assert (done.returncode, done.stdout, first) == (1, "", environment["TEXT"].splitlines())
    assert last.startswith(f"hostwright: error: the registry {AT} ")
    assert [kind for kind, words in MEANS.items() if words in last] == [message["right"]]


def look(*images: tuple[str, str], free: int = 10**6, store: str = "") -> str:
    rows = [
        json.dumps({"id": id_, "created": "2026-01-01T00:00:00Z", "size": 5, "tags": [tag], "digests": []})
        for id_, tag in images
    ]
    return "".join([f"free {free}\n", store, *(f"image {row}\n" for row in rows), "end\n"])


def facts(answer: str, pushed: str = "") -> Facts:
    return Facts({IMAGES_PROBE: Answer(0, answer), PUSHED.pushed_probe: Answer(0, pushed)})


def test_what_the_registry_has_is_not_pushed_again() -> None:
    there = f"{ID} {NAME} {REFERENCE}\n"
    assert PUSHED.plan(facts(look((ID, NAME)), there)) is None
    assert PUSHED.pushed(facts(look(), there)) == (PushedImage(ID, NAME, REFERENCE),)
    assert PUSHED.pushed(facts(look(), f"{OTHER} {NAME} {REFERENCE}\nrubbish\n")) == ()
    change = PUSHED.plan(facts(look()))
    assert isinstance(change, Change)
    assert (change.what, change.have, change.want) == (f"registry {AT}", "without these images from here", NAME)


def test_a_host_fetches_what_it_lacks_by_its_digest() -> None:
    assert PULLED.plan(facts(look((ID, NAME)))) is None
    change = PULLED.plan(facts(look((OTHER, NAME))))
    assert isinstance(change, Change)
    assert (change.have, change.want) == ("b" * 12, "a" * 12)
    assert change.warnings == (
        f"the name {NAME} points to the image {'b' * 12} now, which keeps its containers and loses the name",
    )


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (look(free=1), "the images need 1 MB, but only 1 kB are free in Docker's data directory"),
        ("docker silent\nend\n", "Docker does not respond on this host; images cannot"),
        (look(store="store containerd\n"), "containerd's image store"),
    ],
)
def test_a_host_that_cannot_take_them_is_refused(answer: str, sentence: str) -> None:
    refusal = PULLED.plan(facts(answer))
    assert isinstance(refusal, Refusal)
    assert sentence in refusal.sentence


#: stand-in for Docker that keeps a log; ``docker pull`` adds the image with the ID in the file ``sends``
DOCKER = """\
echo "$*" >>{folder}/log
case "$1 $2" in
"push {at}/house/tool:1.2") echo 'latest: digest' ;;
"pull -q") [ -e {folder}/sends ] || {{ echo 'manifest unknown: manifest unknown' >&2; exit 1; }} ;;
"image inspect")
  case "$*" in *RepoDigests*) printf '%s\\n' elsewhere/tool@sha256:1 '{reference}' ;; *) cat {folder}/sends ;; esac ;;
esac"""


def run(folder: Path, script: str, sends: str = "") -> tuple[subprocess.CompletedProcess[str], list[str]]:
    env = stub(folder, docker=DOCKER.format(folder=folder, at=AT, reference=REFERENCE))
    if sends:
        (folder / "sends").write_text(f"{sends}\n")
    done = subprocess.run(["/bin/sh", "-euc", script], env=env, capture_output=True, text=True, check=False)
    return done, (folder / "log").read_text().splitlines()


def script_of(change: Any) -> str:
    assert isinstance(change, Change)
    return change.steps[0].script


def test_docker_is_asked_to_push_under_the_registrys_name(tmp_path: Path) -> None:
    done, log = run(tmp_path, script_of(PUSHED.plan(facts(look()))))
    assert (done.returncode, log) == (0, [f"tag {ID} {AT}/{NAME}", f"push {AT}/{NAME}"])


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("ghcr.io/house/tool:1.2", "house/tool:1.2"),
        ("localhost:5000/house/tool:1.2", "house/tool:1.2"),
        ("[2001:db8::1]:5000/house/tool:1.2", "house/tool:1.2"),
        (f"{AT}/house/tool:1.2", "house/tool:1.2"),  # an image from this registry, saved again
        ("debian:11", "debian:11"),
        ("house/tool:1.2", "house/tool:1.2"),
    ],
)
def test_an_image_of_another_registry_keeps_its_path_and_leaves_that_registrys_name(
    tmp_path: Path, name: str, path: str
) -> None:
    """``reg01:5000/localhost:5000/…`` is not valid in Docker, and nobody would expect ``reg01:5000/ghcr.io/…``."""
    state = ImagesPushed(AT, (LoadedImage(ID, name),))
    unknown = Facts({IMAGES_PROBE: Answer(0, look()), state.pushed_probe: Answer(0, "")})
    _, log = run(tmp_path, script_of(state.plan(unknown)))
    assert log == [f"tag {ID} {AT}/{path}", f"push {AT}/{path}"]
    reference = f"{AT}/{path.partition(':')[0]}@sha256:{'c' * 64}"
    (tmp_path / "again").mkdir()
    env = stub(tmp_path / "again", docker=f"case $* in *RepoDigests*) echo {reference} ;; esac")
    there = subprocess.run(
        ["/bin/sh", "-euc", state.pushed_probe.script], env=env, capture_output=True, text=True, check=True
    )
    known = Facts({IMAGES_PROBE: Answer(0, look()), state.pushed_probe: Answer(0, there.stdout)})
    assert state.pushed(known) == (PushedImage(ID, name, reference),)
    assert state.plan(known) is None


def test_two_images_that_would_have_one_name_in_the_registry_are_refused() -> None:
    state = ImagesPushed(AT, (LoadedImage(ID, "ghcr.io/tool/a:1"), LoadedImage(OTHER, "quay.io/tool/a:1")))
    refusal = state.plan(Facts({IMAGES_PROBE: Answer(0, look()), state.pushed_probe: Answer(0, "")}))
    assert isinstance(refusal, Refusal)
    assert refusal.sentence.startswith(
        f"ghcr.io/tool/a:1 and quay.io/tool/a:1 would have the same name in the registry, {AT}/tool/a:1; "
    )
    one = ImagesPushed(AT, (LoadedImage(ID, "ghcr.io/tool/a:1"), LoadedImage(ID, "tool/a:1")))  # names of one image
    assert isinstance(one.plan(Facts({IMAGES_PROBE: Answer(0, look()), one.pushed_probe: Answer(0, "")})), Change)


def test_a_name_leads_to_what_was_pulled_only_where_it_is_the_image_that_was_pushed(tmp_path: Path) -> None:
    script = script_of(PULLED.plan(facts(look())))
    for folder, sends, status in (("good", ID, 0), ("forged", OTHER, 1), ("gone", "", 1)):
        (tmp_path / folder).mkdir()
        done, log = run(tmp_path / folder, script, sends)
        assert done.returncode == status
        assert log[0] == f"pull -q {REFERENCE}"
        assert (f"tag {ID} {NAME}" in log) is (status == 0)
        if folder == "forged":
            assert done.stderr.splitlines()[-1].endswith(f"sent the image {OTHER} as {NAME}, and {ID} was pushed")


def test_the_registry_is_asked_for_what_was_pushed_there_and_nowhere_else(tmp_path: Path) -> None:
    done, log = run(tmp_path, PUSHED.pushed_probe.script, ID)
    assert done.stdout == f"{ID} {NAME} {REFERENCE}\n"
    assert [line for line in log if line.startswith("pull")] == [f"pull -q {REFERENCE}"]
    (tmp_path / "sends").unlink()  # the registry lost the image
    env = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}
    again = subprocess.run(
        ["/bin/sh", "-euc", PUSHED.pushed_probe.script], env=env, capture_output=True, text=True, check=True
    )
    assert again.stdout == ""
