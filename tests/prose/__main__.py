"""Check the documents' prose with Harper: ``python -m tests.prose``, a part of ``make lint``.

Our own rules are in ``rules``, in Harper's language Weir. ``baseline.json`` holds how many findings each file may have
by rule; a higher count fails. ``--lower`` writes lower counts into it, never a higher one.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.places import PROJECT

HERE = Path(__file__).parent
RULES = sorted((HERE / "rules").glob("*.weir"))
HARPERS = ("AnotherAn", "ItsContraction", "RepeatedWords", "ThatThan")  #: rules that come with Harper
BASELINE = HERE / "baseline.json"
MANIFEST = {"author": "Hostwright", "version": "1", "description": "Hostwright's style", "license": "Apache-2.0"}
SENTENCE_END = re.compile(r"[.!?]\s|\n\s*\n|\n#.*|\n(?=[-*|] )")

Counts = dict[str, dict[str, int]]  #: file → rule → findings


@dataclass(frozen=True, slots=True)
class Finding:
    """A place in a file where a sentence breaks a rule. ``start`` counts characters."""

    file: str
    line: int
    start: int
    rule: str
    message: str

    def __str__(self) -> str:
        text = (PROJECT / self.file).read_text("utf-8")
        ends = [0, *(match.end() for match in SENTENCE_END.finditer(text)), len(text)]
        start = max(end for end in ends if end <= self.start)
        sentence = " ".join(text[start : min(end for end in ends if end > self.start)].split())
        return f"{self.file}:{self.line}: {self.rule}: {self.message}\n    {sentence}"


def documents() -> list[Path]:
    """The files that are checked: all Markdown that people read."""
    return [*sorted((PROJECT / "docs").rglob("*.md")), *sorted(PROJECT.glob("*.md"))]


def check(paths: Iterable[Path]) -> list[Finding]:
    """Return the findings of these files of the project."""
    files = [str(path.relative_to(PROJECT)) for path in paths]
    with tempfile.TemporaryDirectory() as folder:
        pack = Path(folder, "rules.weirpack")
        with zipfile.ZipFile(pack, "w") as archive:
            archive.writestr("manifest.json", json.dumps(MANIFEST))
            for rule in RULES:
                archive.write(rule, rule.name)
        only = ",".join([*HARPERS, *(rule.stem for rule in RULES)])
        command = [
            str(Path(sys.executable).with_name("harper")),
            "lint",
            "--format",
            "json",
            "--keep-overlapping-lints",
        ]
        command += ["--user-dict-path", "/dev/null", "--weirpacks", str(pack), "--only", only, *files]
        done = subprocess.run(command, cwd=PROJECT, check=False, capture_output=True, text=True)
    results = json.loads(done.stdout) if done.stdout else sys.exit(done.stderr)
    return [
        Finding(file, one["line"], one["span"]["char_start"], one["rule"], one["message"])
        for file, result in zip(files, results, strict=True)
        for one in result["lints"]
        if _counts(one["rule"], one["matched_text"])
    ]


def _counts(rule: str, text: str) -> bool:
    """Whether a match is a finding: Weir is blind to case, and Harper takes "the module MODULE" for a repetition."""
    if rule == "StartsWithClause":
        return text == text.capitalize()
    return rule != "RepeatedWords" or len(set(text.split())) == 1


def counted(findings: Iterable[Finding]) -> Counts:
    """Findings by file and rule."""
    counts: Counts = {}
    for (file, rule), number in sorted(Counter((one.file, one.rule) for one in findings).items()):
        counts.setdefault(file, {})[rule] = number
    return counts


def risen(now: Counts, before: Counts) -> list[tuple[str, str, int]]:
    """The file and rule of each count that is higher than in the baseline, and by how much."""
    known = {(file, rule): number for file, rules in before.items() for rule, number in rules.items()}
    rises = ((file, rule, n - known.get((file, rule), 0)) for file, rules in now.items() for rule, n in rules.items())
    return [rise for rise in rises if rise[2] > 0]


def lowered(now: Counts, before: Counts) -> Counts:
    """The baseline with each count that is lower now."""
    least = {
        file: {rule: min(number, now.get(file, {}).get(rule, 0)) for rule, number in rules.items()}
        for file, rules in before.items()
    }
    kept = {file: {rule: number for rule, number in rules.items() if number} for file, rules in least.items()}
    return {file: rules for file, rules in kept.items() if rules}


def changed_lines(file: str) -> set[int]:
    """The lines of a file that changed since the baseline was last committed; none where git does not answer."""
    base = _git("log", "-1", "--format=%H", "--", str(BASELINE)).strip()
    hunks = re.findall(r"^@@ \S+ \+(\d+)(?:,(\d+))? @@", _git("diff", "-U0", base, "--", file), re.MULTILINE)
    return {line for start, size in hunks for line in range(int(start), int(start) + int(size or 1))}


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=PROJECT, check=False, capture_output=True, text=True).stdout


def main(words: list[str]) -> int:
    """Compare the documents with the baseline; the exit status."""
    before: Counts = json.loads(BASELINE.read_text("utf-8"))
    findings = check(documents())
    now = counted(findings)
    if words == ["--lower"]:
        BASELINE.write_text(json.dumps(lowered(now, before), indent=2, sort_keys=True) + "\n", "utf-8")
        return 0
    for file, rule, rise in risen(now, before):
        there = [one for one in findings if (one.file, one.rule) == (file, rule)]
        changed = changed_lines(file)
        print(*([one for one in there if one.line in changed] or there), sep="\n")
        print(f"{file} has {rise} more of {rule} than tests/prose/baseline.json allows: rewrite what is new")
    return 1 if risen(now, before) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
