"""Tests that a failure is recognised in every form: with a logger's prefix, wrapped, within a longer log."""

from __future__ import annotations

import json
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from hostwright.audit.failures.unwrapped import unwrapped
from tests.unit.support.known import KNOWN

CORPUS = Path(__file__).parents[3] / "fixtures" / "failures" / "known.jsonl"
ENTRIES: list[dict[str, Any]] = [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]
HARMLESS = [entry["text"] for entry in ENTRIES if not entry["expect"]]
SYSLOG = "Nov 22 13:45:42 gpu01 app[12]: "
#: texts whose meaning a line break at column 80 changes: it splits an escape code or a number, separates the message
#: from the deciding name (/dev/shm, nv.c), or adds lines between an attempt and the next successful one
CUT = {
    "nvidia-nvidia-docker-914", "tensorflow-tensorflow-59256",
    "akash-network-website-632", "nixos-nixpkgs-13799", "nixos-nixpkgs-32330", "podman-container-tools-podman-10825",
    "pypa-pip-9947", "pytorch-ci-infra-490", "tilt-dev-tilt-3916",
    "ubuntuforums-org-error-brokencount-2011-07-24",
    "ollama-ollama-5493", "pdm-project-pdm-2914", "nvidia-tensorrt-3402",
}  # fmt: skip
#: texts whose meaning a logger's form changes: their line ends decide, but this form does not preserve them
OPEN = {"netflix-dispatch-5627", "rhgndf-fl2000-drm-7"}


def before_each_line(prefix: str) -> Callable[[str], str]:
    return lambda text: "\n".join(prefix + line for line in text.split("\n"))


def docker_log(text: str) -> str:
    lines = ({"log": line + "\n", "stream": "stderr", "time": "2026-11-22T13:45:42.1Z"} for line in text.split("\n"))
    return "\n".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in lines)


def between_words(text: str) -> str:
    wrapped = (textwrap.wrap(line, 80, break_long_words=False, break_on_hyphens=False) for line in text.split("\n"))
    return "\n".join("\n".join(lines) for lines in wrapped)


def at_the_edge(text: str) -> str:
    lines = text.split("\n")
    return "\n".join(line[at : at + 80] for line in lines for at in range(0, max(len(line), 1), 80))


WAYS: dict[str, Callable[[str], str]] = {
    "upper case": str.upper,
    "lower case": str.lower,
    "journalctl": before_each_line("Nov 22 13:45:42 gpu01 kernel: "),
    "rsyslog": lambda text: SYSLOG + text.replace("\n", "#012"),
    "dmesg": before_each_line("[  398.381052] "),
    "docker's log": docker_log,
    "a builder": before_each_line("#5 0.541 "),
    "continuous integration": before_each_line("2026-11-22T13:45:42.1234567Z "),
    "wrapped between words": between_words,
    "cut at the 80th column": at_the_edge,
    "a longer log": lambda text: "\n".join((*HARMLESS[:12], text, *HARMLESS[20:30])),
}


def named(text: str) -> str:
    failure = KNOWN.classify(text)
    return failure.rule.name if failure else ""


@pytest.mark.parametrize("way", sorted(WAYS))
def test_each_known_text_is_recognised_in_other_forms(way: str) -> None:
    """Each text in two of the forms, to limit the time. Its id selects them, independent of additions to the corpus."""
    cut = CUT if "wrapped" in way or "cut" in way else OPEN
    place = sorted(WAYS).index(way)
    mine = [entry for entry in ENTRIES if (crc32(entry["id"].encode()) - place) % len(WAYS) in {0, 4}]
    found = {entry["id"]: (named(entry["text"]), named(WAYS[way](entry["text"]))) for entry in mine}
    assert {name: pair for name, pair in found.items() if pair[0] != pair[1] and name not in cut} == {}


def test_lines_that_a_logger_cut_into_several_are_one_again() -> None:
    wrapped = "Dec  2 11:49:53 gpu01 kernel: NVRM: The GPU installed in this system has\n" + (
        "Dec  2 11:49:53 gpu01 kernel: NVRM: fallen off the bus\nDec  2 11:49:54 gpu01 kernel: usb 1-1: ready"
    )
    assert unwrapped(wrapped) == ("NVRM: The GPU installed in this system has fallen off the bus\nusb 1-1: ready",)


def test_lists_and_separate_messages_stay_lines_of_their_own() -> None:
    text = "Errors:\n  one\n  two\nReading package lists...\nBuilding dependency tree..."
    assert unwrapped(text) == (text,)


SEEDS = (" ", "\n ", "a", "0", "'", "[", "(", "/", "\\\\n", "#012", "a:1 ", "(1) a: ", "NVRM: ", "NCCL WARN ", "file ")


@pytest.mark.parametrize("seed", SEEDS)
def test_no_text_makes_recognising_slow(seed: str) -> None:
    """The time grows linearly, not quadratically: ten times the text may take at most 40 times as long."""

    def seconds(length: int) -> float:
        text = (seed * length)[:length]
        begin = time.process_time()
        KNOWN.classify(text)
        return time.process_time() - begin

    seconds(1_000)  # compiles the patterns
    short, long = (min(seconds(length) for _ in range(2)) for length in (3_000, 30_000))
    assert long < 40 * max(short, 0.002)
