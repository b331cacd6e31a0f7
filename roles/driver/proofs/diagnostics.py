"""DCGM's own diagnosis of the cards, where DCGM is on the host: `dcgmi diag`, its results as the lines of a proof.

It is run by whatever Python 3 the host has, from 3.6 on, and reads the JSON of DCGM 2 and 3 and of DCGM 4.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

MOST_BYTES = 4 * 1024 * 1024  #: of what dcgmi prints; eight cards at the highest level take some 100 KB
MOST_ROWS = 900  #: that are printed: a thousand is the most that is read
TEXT_CHARACTERS = 150
LETTERS = "abcdefghijklmnopqrstuvwxyz"
NAME = LETTERS + "0123456789_. -"
PRINTABLE = "".join(map(chr, range(0x20, 0x7F)))
#: what a test comes out as: DCGM's words, which differ in case and spelling between its versions
STATUSES = {"pass": "pass", "fail": "fail", "warn": "warn", "skip": "skip", "skipped": "skip", "notrun": "skip"}
#: dcgmi says the one or the other where no host engine runs, or both
NO_ENGINE = ("unable to establish a connection", "unable to connect to host engine")
SOFTWARE = "deployment"  # the category of tests of drivers, libraries and settings
ROOTS = ("DCGM Diagnostic", "DCGM GPU Diagnostic")  # of DCGM 4, and of those before it


class NoDiagnosis(Exception):
    """What dcgmi printed is no diagnosis; the message says what it is instead."""


def diagnosis(text: str) -> "dict[str, Any]":
    """The diagnosis in dcgmi's output, without the lines around its JSON. Raises ``NoDiagnosis``, also for one
    that was begun and not ended."""
    try:
        whole = json.loads(text[text.index("{") : text.rindex("}") + 1])
        root = next(whole[name] for name in ROOTS if name in whole)
    except (ValueError, RecursionError, StopIteration, TypeError):
        raise NoDiagnosis("dcgmi printed no diagnosis, but this: " + plain(text)[:80]) from None
    if not isinstance(root, dict):
        raise NoDiagnosis("DCGM: " + plain(root))
    begun = any(items(category.get("tests")) for category in items(root.get("test_categories")))
    if begun and root.get("runtime_error"):
        raise NoDiagnosis("DCGM: " + plain(root["runtime_error"]))
    return root


def rows(root: "dict[str, Any]", devices: "dict[str, str]", software: bool = True) -> "Iterator[dict[str, Any]]":
    """A row for each test and card, and one for each warning. ``devices`` are the cards by DCGM's numbers. Without
    ``software``, those of the tests that look at the card itself."""
    for category in items(root.get("test_categories")):
        if not software and plain(category.get("category", "")).lower() == SOFTWARE:
            continue
        for test in items(category.get("tests")):
            name = "dcgm " + only(NAME, plain(test.get("name", "")).lower())[:60]
            for result in results(test):
                device = named(result, devices)
                yield measure(name, outcome(result), device)
                for warning in warnings(result)[:1]:
                    yield measure(name + " warning", warning, device)


def results(test: "dict[str, Any]") -> "list[dict[str, Any]]":
    """A test's results for each card. DCGM 4 has one of the whole test beside them, with the errors of no card: that
    counts where no card came out as badly; else its errors are those of the cards that did and have none."""
    each, whole = items(test.get("results")), items([test.get("test_summary")])
    if not each or not whole or outcome(whole[0]) in {"pass", "skip"}:
        return each or whole
    if outcome(whole[0]) not in map(outcome, each):
        return [*each, *whole]
    bare = {"warnings": warnings(whole[0])}
    return [
        dict(result, **bare) if outcome(result) == outcome(whole[0]) and not warnings(result) else result
        for result in each
    ]


def outcome(result: "dict[str, Any]") -> str:
    """What it came out as, in our word for it."""
    status = only(LETTERS, plain(result.get("status", "")).lower()).replace(" ", "")
    return STATUSES.get(status, "unknown: " + status)


def warnings(result: "dict[str, Any]") -> "list[str]":
    """What DCGM says of a result: a text, a list of them, or of objects with one."""
    warnings = result.get("warnings") or result.get("warning") or []
    every = warnings if isinstance(warnings, list) else [warnings]
    return [plain(each.get("warning", "") if isinstance(each, dict) else each) for each in every]


def named(result: "dict[str, Any]", devices: "dict[str, str]") -> str:
    """The card of a result; ``cpu`` for what is said of the host, which DCGM 2 does with the numbers of all cards."""
    if "entity_group" in result:
        number = plain(result.get("entity_id", "")) if plain(result["entity_group"]) == "GPU" else ""
    else:
        number = plain(result.get("gpu_id", result.get("gpu_ids", "")))
    return devices.get(number, "GPU " + number + " of DCGM") if number.isdigit() else "cpu"


def cards(text: str) -> "dict[str, str]":
    """The cards by DCGM's numbers, from the table of `dcgmi discovery -l`."""
    found, number, name = {}, "", ""
    for line in text.splitlines():
        columns = [column.strip() for column in line.split("|")]
        if len(columns) < 4:
            continue
        if columns[1].isdigit():
            number = columns[1]
        key, _, value = columns[2].partition(":")
        if key == "Name":
            name = plain(value.strip())
        elif key == "Device UUID" and number:
            uuid = plain(value.strip())
            found[number] = uuid if name.startswith("<<<") else f"{uuid} ({name})"  # <<<NULL>>>: DCGM cannot tell
    return found


def items(value: Any) -> "list[dict[str, Any]]":
    """The objects of a list; none of what is no list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def plain(value: Any) -> str:
    """Printable ASCII of bounded length."""
    return " ".join(only(PRINTABLE, str(value)[: 8 * TEXT_CHARACTERS]).split())[:TEXT_CHARACTERS]


def only(characters: str, text: str) -> str:
    """The text with a space for every other character."""
    return "".join(each if each in characters else " " for each in text)


def measure(name: str, value: str, device: str) -> "dict[str, Any]":
    """A line of the protocol."""
    return {"measure": name, "value": value, "unit": "", "device": device}


def output(*command: str) -> str:
    """What a command prints, up to ``MOST_BYTES``: its exit status says no more than its JSON does."""
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    assert started.stdout is not None  # noqa: S101 - it is a pipe
    text = started.stdout.read(MOST_BYTES)
    started.stdout.close()
    started.wait()
    return text.decode("utf-8", "replace")


def main(arguments: str) -> int:
    """Run the diagnosis and print it; the exit status of the program."""
    with open(arguments, encoding="utf-8") as file:  # noqa: PTH123 - a path of the job
        level = json.load(file)["level"]
    if shutil.which("dcgmi") is None:
        return say({"not run": "DCGM is not installed"})
    devices = cards(output("dcgmi", "discovery", "-l"))
    text = output("dcgmi", "diag", "-r", str(level), "-j")
    if refusal(text):
        return say({"not run": refusal(text)})
    try:
        root = diagnosis(text)
        every, hardware = list(rows(root, devices)), list(rows(root, devices, software=False))
        if not every:
            raise NoDiagnosis("DCGM's diagnosis contains no test: " + plain(text)[:80])
    except NoDiagnosis as error:
        print(json.dumps({"error": str(error)}))
        return 1
    if outcomes(hardware) <= {"skip"} and outcomes(every) <= {"pass", "skip"}:
        what = "test" if outcomes(every) == {"skip"} else "test of the hardware"
        return say({"not run": "DCGM skipped every " + what + ": it does not test this model of card"})
    return say(*every[:MOST_ROWS])


def outcomes(tests: "list[dict[str, Any]]") -> "set[str]":
    """What these tests came out as, each word once."""
    return {row["value"] for row in tests if not row["measure"].endswith(" warning")}


def refusal(text: str) -> str:
    """Why DCGM tested nothing, as it says itself; empty where it did, or where it ended without a word."""
    if "unsupported gpu" in text.lower():
        return "DCGM does not test this model of card"
    if any(words in text.lower() for words in NO_ENGINE):
        return "DCGM's host engine does not answer: is nvidia-dcgm running?"
    try:
        error = diagnosis(text).get("runtime_error")
    except NoDiagnosis:
        lines = [] if "{" in text else [line.strip() for line in text.splitlines()]
        error = next((line for line in lines if line.lower().startswith("error")), "")
    return "DCGM: " + plain(error) if error else ""


def say(*lines: "dict[str, Any]") -> int:
    """Print these lines and the last one."""
    for line in (*lines, {"end": True}):
        print(json.dumps(line), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
