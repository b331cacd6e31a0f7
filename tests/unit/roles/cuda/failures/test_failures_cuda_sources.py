"""Failures of where apt gets CUDA are seen on a host that has them, and on no other."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from hostwright.plan.model import Answer, Probe
from hostwright.resources.packages.repositories import SourcesDisabled
from hostwright.standard.roles.cuda import Cuda
from hostwright.standard.roles.cuda.audit import TOOLKITS
from hostwright.standard.roles.cuda.failures import sources as cuda_sources
from hostwright.standard.roles.cuda.failures.installed import CUDA as INSTALLED
from hostwright.standard.roles.cuda.failures.sources import (
    NEW_KEY,
    OLD_KEY,
    SOURCE_RULES,
    SOURCES,
    TRUSTED,
    keys,
    sources,
)
from hostwright.standard.roles.cuda.section import CudaSection
from tests.unit.support.library_contexts import SOURCE_LINE, STACK, Differs, asked, look_at, resource, seen, write

CUDA = (*INSTALLED, *SOURCE_RULES)
RULES = {rule.name: rule for rule in CUDA}
OTHER_KEY = "0123456789ABCDEF"
DIRECTORY = STACK.section(CudaSection).repository.directory
NETWORK = f"https://{cuda_sources.NETWORK}/ubuntu2004/x86_64"


def found(name: str, differs: Differs | None = None, variables: Cuda | None = None) -> list[str]:
    return seen(RULES[name], look_at(differs, variables=variables))


def fired(differs: Differs) -> list[str]:
    """The names of all rules that see something."""
    ctx = look_at(differs)
    return [rule.name for rule in CUDA if seen(rule, ctx)]


def source(line: str, file: str = "/etc/apt/sources.list.d/cuda.list", number: int = 1) -> str:
    return f"source\t{file}\t{number}\t{line}\n"


def key(ring: str, which: str) -> str:
    return f"key\t{ring}\t{which}\n"


def test_the_network_repository_beside_the_local_one_is_a_warning() -> None:
    text = SOURCE_LINE + source(f"deb {NETWORK} /") + key(f"{TRUSTED}.d/cuda.gpg", "new")
    assert fired({SOURCES: text}) == ["cuda-two-sources"]
    assert found("cuda-two-sources", {SOURCES: text})[0] == f"/etc/apt/sources.list.d/cuda.list:1: deb {NETWORK} /"


def test_a_network_repository_that_the_host_shall_have_is_no_failure() -> None:
    text = SOURCE_LINE + source(f"deb {NETWORK} /") + key(f"{TRUSTED}.d/cuda.gpg", "new")
    assert found("cuda-two-sources", {SOURCES: text}, Cuda(network_repository=True)) == []


@pytest.mark.parametrize("rings", ["", key(f"{TRUSTED}.d/cuda.gpg", "old"), key("/usr/share/keyrings/cuda.gpg", "new")])
def test_a_network_repository_without_the_key_of_2022_is_the_one_finding(rings: str) -> None:
    text = SOURCE_LINE + source(f"deb {NETWORK} /") + rings
    assert fired({SOURCES: text}) == ["cuda-network-key"]
    (line,) = found("cuda-network-key", {SOURCES: text})
    assert line.endswith(f"(no key {NEW_KEY} in {TRUSTED} or {TRUSTED}.d)")


@pytest.mark.parametrize(("which", "lines"), [("old", 1), ("new", 0)])
def test_a_named_keyring_alone_counts(which: str, lines: int) -> None:
    ring = "/usr/share/keyrings/cuda.gpg"
    text = (
        source(f"deb [arch=amd64 signed-by={ring}] {NETWORK}/ /") + key(ring, which) + key(f"{TRUSTED}.d/a.gpg", "new")
    )
    assert len(found("cuda-network-key", {SOURCES: text})) == lines


@pytest.mark.parametrize(
    "line",
    [f"# deb {NETWORK} /", f"deb [trusted=yes] {NETWORK} /", "deb https://mirror.example/cuda-tools /", "deb", ""],
)
def test_what_apt_does_not_read_or_does_not_check_lacks_no_key(line: str) -> None:
    assert not {"cuda-network-key", "cuda-sources-conflict"} & set(fired({SOURCES: SOURCE_LINE + source(line)}))


def test_the_same_repository_with_two_keys_is_the_one_finding() -> None:
    ring = "/usr/share/keyrings/cuda-archive-keyring.gpg"
    text = SOURCE_LINE + source(f"deb {NETWORK} /") + source(f"deb [signed-by={ring}] {NETWORK}/ /", "/etc/apt/b.list")
    text += key(ring, "new") + key(f"{TRUSTED}.d/cuda.gpg", "new")
    assert fired({SOURCES: text}) == ["cuda-sources-conflict"]
    assert len(found("cuda-sources-conflict", {SOURCES: text})) == 2


def test_the_local_repository_written_again_by_hand_conflicts_with_ours() -> None:
    text = SOURCE_LINE + source(f"deb file://{DIRECTORY} /")
    assert fired({SOURCES: text}) == ["cuda-sources-conflict"]


def test_conflict_wins_over_a_missing_key() -> None:
    ring = "/usr/share/keyrings/cuda-archive-keyring.gpg"
    first = source(f"deb [signed-by={ring}] {NETWORK}/ /", "/etc/apt/sources.list.d/cuda-ubuntu2004-x86_64.list")
    assert fired({SOURCES: SOURCE_LINE + source(f"deb {NETWORK} /") + first + key(ring, "new")}) == [
        "cuda-sources-conflict"
    ]


def test_a_line_without_a_key_gets_that_of_the_line_after_it() -> None:
    ring = "/usr/share/keyrings/cuda-archive-keyring.gpg"
    text = (
        SOURCE_LINE
        + source(f"deb {NETWORK} /", "/etc/apt/sources.list")
        + source(f"deb [signed-by={ring}] {NETWORK} /")
    )
    assert fired({SOURCES: text + key(ring, "new")}) == ["cuda-two-sources"]
    assert len(found("cuda-network-key", {SOURCES: text + key(ring, "old")})) == 1


@pytest.mark.parametrize(
    ("file", "line", "lines"),
    [
        ("/etc/apt/sources.list.d/aa.list", f"deb file://{DIRECTORY} /", 0),  # apt 2.2 reads it, and warns
        ("/etc/apt/sources.list", f"deb file://{DIRECTORY} /", 0),
        ("/etc/apt/sources.list.d/zz.list", f"deb file://{DIRECTORY} /", 2),
        ("/etc/apt/sources.list.d/aa.list", f"deb [signed-by=/other.gpg] file:{DIRECTORY}/ /", 2),
        ("/etc/apt/sources.list.d/zz.list", f"deb [signed-by=/other.gpg] file:{DIRECTORY}/ /", 2),
    ],
)
def test_a_key_conflicts_with_what_apt_reads_after_it(file: str, line: str, lines: int) -> None:
    assert len(found("cuda-sources-conflict", {SOURCES: SOURCE_LINE + source(line, file)})) == lines


def test_the_same_repository_for_another_suite_conflicts_with_nothing() -> None:
    assert found("cuda-sources-conflict", {SOURCES: SOURCE_LINE + source(f"deb file://{DIRECTORY} other main")}) == []


def test_what_counts_as_the_network_is_what_provisioning_disables() -> None:
    change = resource(SourcesDisabled)
    assert cuda_sources.NETWORK in change.texts
    assert DIRECTORY in change.texts


def test_a_local_repository_of_another_release_is_told() -> None:
    text = SOURCE_LINE + source("deb file:///var/cuda-repo-ubuntu2004-11-4-local /")
    assert fired({SOURCES: text}) == ["cuda-other-local-repository"]


@pytest.mark.parametrize(("which", "name"), [("old", OLD_KEY), ("new", NEW_KEY)])
def test_apt_keys_own_keyring_is_told_when_it_holds_nvidias_key(which: str, name: str) -> None:
    assert found("cuda-key-for-all", {SOURCES: SOURCE_LINE + key(TRUSTED, which)}) == [
        f"{TRUSTED} holds the key {name}"
    ]
    assert found("cuda-key-for-all", {SOURCES: SOURCE_LINE + key(f"{TRUSTED}.d/cuda.gpg", which)}) == []


def test_stacks_key_in_the_apt_key_keyring_is_reported() -> None:
    own = STACK.section(CudaSection).repository.fingerprint[-16:]
    rows = key(TRUSTED, own.lower()) + key(TRUSTED, OTHER_KEY.lower()) + key(TRUSTED, "garbage")
    assert found("cuda-key-for-all", {SOURCES: SOURCE_LINE + rows}) == [f"{TRUSTED} holds the key {own}"]


def test_a_password_in_a_source_is_not_shown() -> None:
    text = source(f"deb https://me:secret@{NETWORK.removeprefix('https://')} /")
    (line,) = found("cuda-network-key", {SOURCES: text})
    assert "secret" not in line


def stanza(*lines: str) -> str:
    file = "/etc/apt/sources.list.d/cuda.sources"
    return "".join(source(line, file, number) for number, line in enumerate(lines, 1))


def test_sources_in_deb822_style_are_read() -> None:
    text = stanza("# cuda", "Types: deb", f"URIs: {NETWORK}", "Suites: /", "Signed-By:", " /a.gpg", "", "X-cuda: 1")
    (one,) = sources(look_at({SOURCES: text}))
    assert (one.uri, one.suite, one.signed_by, one.line) == (NETWORK, "/", ("/a.gpg",), 3)


def test_disabled_stanza_is_skipped_and_embedded_key_belongs_to_it() -> None:
    off = stanza("Types: deb", f"URIs: {NETWORK}", "Suites: /", "Enabled: no")
    assert sources(look_at({SOURCES: off})) == ()
    inline = stanza(f"URIs: {NETWORK}", "Suites: /", "Signed-By:", " -----BEGIN PGP PUBLIC KEY BLOCK-----", " .")
    assert fired({SOURCES: inline}) == []


# what is asked, by the machine's own sh


def armored(content: bytes) -> str:
    text = base64.encodebytes(content).decode()
    return f"-----BEGIN PGP PUBLIC KEY BLOCK-----\nComment: x\n\n{text}=abcd\n-----END PGP PUBLIC KEY BLOCK-----\n"


def test_keys_are_found_in_keyrings_and_sources(tmp_path: Path) -> None:
    old, new = (b"\x99\x01" + bytes.fromhex(one) + b"\x00\xff" for one in (OLD_KEY, NEW_KEY))
    ring = write(tmp_path / "keys/a.gpg", new)
    write(tmp_path / "etc/apt/trusted.gpg", old + b"\x09\x10" + bytes.fromhex(OTHER_KEY) + b"\x00")
    write(tmp_path / "etc/apt/trusted.gpg.d/cuda.asc", armored(b"padding" + new))
    write(tmp_path / "etc/apt/trusted.gpg.d/other.gpg", b"\x99nothing")
    write(tmp_path / "etc/apt/sources.list", "deb http://mirror.example/debian bullseye main\n")
    write(tmp_path / "etc/apt/sources.list.d/c.list", f"# cuda\ndeb [arch=amd64 signed-by={ring}] {NETWORK}\t/\n")
    ctx = look_at({SOURCES: asked(SOURCES, tmp_path, "/etc/apt")})
    assert keys(ctx) == {
        TRUSTED: {OLD_KEY, OTHER_KEY}, f"{TRUSTED}.d/cuda.asc": {NEW_KEY}, "/keys/a.gpg": {NEW_KEY},
    }  # fmt: skip
    (one,) = sources(ctx)
    assert (one.file, one.line, one.uri) == ("/etc/apt/sources.list.d/c.list", 2, NETWORK)
    assert one.signed_by == ("/keys/a.gpg",)


def test_no_pipe_is_waited_for_in_the_place_of_a_list(tmp_path: Path) -> None:
    (tmp_path / "etc/apt/sources.list.d").mkdir(parents=True)
    for name in ("sources.list", "sources.list.d/a.list", "sources.list.d/b.sources"):
        os.mkfifo(tmp_path / "etc/apt" / name)
    assert asked(SOURCES, tmp_path, "/etc/apt") == Answer(0, "")
    helpers = 'say() { echo "$1=$2"; }; well_known() { value=; }\n'
    assert "sources=\n" in asked(Probe(helpers + TOOLKITS.text), tmp_path, "/etc/apt", "/usr/local").text


def test_a_host_without_any_of_it_answers_with_nothing(tmp_path: Path) -> None:
    assert asked(SOURCES, tmp_path, "/etc/apt") == Answer(0, "")
