"""Program that runs DCGM's diagnosis of the cards (`dcgmi diag`) on a host with DCGM, and prints the results as a
proof.

Any Python 3 of the host from 3.6 on can run it. It reads the JSON of DCGM 2, 3 and 4.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

#: maximum bytes to read from dcgmi's output; eight cards at the highest level take about 100 KB
MOST_BYTES = 4 * 1024 * 1024
MOST_ROWS = 900  #: maximum number of result lines to print; Hostwright reads at most a thousand lines
TEXT_CHARACTERS = 150
LETTERS = "abcdefghijklmnopqrstuvwxyz"
NAME = LETTERS + "0123456789_. -"
PRINTABLE = "".join(map(chr, range(0x20, 0x7F)))
#: DCGM's word for a test result -> the proof's word. Case and spelling differ between versions of DCGM.
STATUSES = {"pass": "pass", "fail": "fail", "warn": "warn", "skip": "skip", "skipped": "skip", "notrun": "skip"}
#: messages of which dcgmi prints one or both if no host engine runs
NO_ENGINE = ("unable to establish a connection", "unable to connect to host engine")
SOFTWARE = "deployment"  # category of DCGM's tests of drivers, libraries and settings
ROOTS = ("DCGM Diagnostic", "DCGM GPU Diagnostic")  # names of the JSON's root in DCGM 4, and in earlier versions


class NoDiagnosis(Exception):
    """dcgmi did not print a diagnosis. The message describes its output."""


def diagnosis(text: str) -> "dict[str, Any]":
    """Return the diagnosis in dcgmi's output, without the lines around its JSON. Raises ``NoDiagnosis`` if the output
    has none, or if the diagnosis began and did not end.
    """
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
    """Yield a row for each result of a test, per card, and a row for its first warning. ``devices`` has the cards by
    DCGM's numbers. Without ``software``, only tests of the hardware count.
    """
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
    """Return the results of a test, one per card. DCGM 4 adds a summary with the errors that it assigns to no card. If
    no card has the summary's status, the summary is returned as a further result. Otherwise its errors are added to the
    cards with its status that have no errors of their own.
    """
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
    """Return the status of a result as a word of the proof: a value of ``STATUSES``, or ``unknown: ...``."""
    status = only(LETTERS, plain(result.get("status", "")).lower()).replace(" ", "")
    return STATUSES.get(status, "unknown: " + status)


def warnings(result: "dict[str, Any]") -> "list[str]":
    """Return the warnings of a result, which DCGM gives as a text, a list of texts, or a list of objects with a text
    each.
    """
    warnings = result.get("warnings") or result.get("warning") or []
    every = warnings if isinstance(warnings, list) else [warnings]
    return [plain(each.get("warning", "") if isinstance(each, dict) else each) for each in every]


def named(result: "dict[str, Any]", devices: "dict[str, str]") -> str:
    """Return the card of a result; ``cpu`` for a result about the host. DCGM 2 marks such a result with the numbers of
    all cards.
    """
    if "entity_group" in result:
        number = plain(result.get("entity_id", "")) if plain(result["entity_group"]) == "GPU" else ""
    else:
        number = plain(result.get("gpu_id", result.get("gpu_ids", "")))
    return devices.get(number, "GPU " + number + " of DCGM") if number.isdigit() else "cpu"


def cards(text: str) -> "dict[str, str]":
    """Return DCGM's number of a card -> UUID and model, from the table of `dcgmi discovery -l`."""
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
            # <<<NULL>>>: DCGM does not know the model
            found[number] = uuid if name.startswith("<<<") else f"{uuid} ({name})"
    return found


def items(value: Any) -> "list[dict[str, Any]]":
    """Return the objects in a list; empty if the value is not a list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def plain(value: Any) -> str:
    """Return a value as printable ASCII of at most ``TEXT_CHARACTERS``."""
    return " ".join(only(PRINTABLE, str(value)[: 8 * TEXT_CHARACTERS]).split())[:TEXT_CHARACTERS]


def only(characters: str, text: str) -> str:
    """Return the text with a space in place of each character that is not in ``characters``."""
    return "".join(each if each in characters else " " for each in text)


def measure(name: str, value: str, device: str) -> "dict[str, Any]":
    """Return a measurement in the format of a proof's output."""
    return {"measure": name, "value": value, "unit": "", "device": device}


def output(*command: str) -> str:
    """Return the output of a command, at most ``MOST_BYTES``. Its exit status is ignored because the JSON reports
    failures.
    """
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    assert started.stdout is not None  # noqa: S101 - it is a pipe
    text = started.stdout.read(MOST_BYTES)
    started.stdout.close()
    started.wait()
    return text.decode("utf-8", "replace")


def main(arguments: str) -> int:
    """Run DCGM's diagnosis, print the results, and return the exit status of this program."""
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
    """Return the different statuses in these rows, without the rows for warnings."""
    return {row["value"] for row in tests if not row["measure"].endswith(" warning")}


def refusal(text: str) -> str:
    """Return DCGM's reason for not testing anything; empty if it ran tests, or gave no reason."""
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
    """Print these lines and the line that marks the end of the output. Return the exit status for success."""
    for line in (*lines, {"end": True}):
        print(json.dumps(line), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
