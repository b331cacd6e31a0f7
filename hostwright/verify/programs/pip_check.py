"""Has the output and the exit status of ``pip check``, but does not import pip, which would take seconds.

Runs ``pip check`` itself if this Python has no ``importlib.metadata``, or no ``packaging`` (even in pip).
"""

from __future__ import annotations

import os
import re
import sys
from typing import Any

try:
    from importlib.metadata import distributions

    FOUND = list(distributions())  # must precede the import of pip: Debian's pip adds its own wheels to the path
    try:
        from packaging.requirements import Requirement
        from packaging.tags import parse_tag, sys_tags
    except ImportError:
        from pip._vendor.packaging.requirements import Requirement  # type: ignore[assignment]
        from pip._vendor.packaging.tags import parse_tag, sys_tags  # type: ignore[assignment]
except ImportError:
    os.execv(sys.executable, [sys.executable, "-m", "pip", "check"])  # noqa: S606 - the same Python

SUPPORTED = set(sys_tags())


def normal(name: str) -> str:
    """Normalize a package's name: all spellings of one name give the same result."""
    return re.sub("[-_.]+", "-", name).lower()


def main() -> int:
    """Print the errors; return the exit status."""
    installed: dict[str, Any] = {}
    for one in FOUND:
        if one.metadata["Name"]:
            installed.setdefault(normal(one.metadata["Name"]), one)
    missing, conflicting, others = [], [], []
    for name, one in installed.items():
        try:
            needs = [Requirement(text) for text in one.requires or ()]
        except ValueError as error:
            others.append(f"Error parsing requirements for {name}: {error}")
            continue
        for need in needs:
            if need.marker and not need.marker.evaluate({"extra": ""}):
                continue
            wanted = normal(need.name)
            if wanted not in installed:
                missing.append(f"{name} {one.version} requires {wanted}, which is not installed.")
            elif not need.specifier.contains(installed[wanted].version, prereleases=True):
                has = f"{wanted} {installed[wanted].version}"
                conflicting.append(f"{name} {one.version} has requirement {need}, but you have {has}.")
        lines = (one.read_text("WHEEL") or "").splitlines()
        tags = [tag for line in lines if line.startswith("Tag:") for tag in parse_tag(line[4:].strip())]
        if tags and SUPPORTED.isdisjoint(tags):
            others.append(f"{name} {one.version} is not supported on this platform")
    print("\n".join(missing + conflicting + others) or "No broken requirements found.")
    return 1 if missing or conflicting or others else 0


if __name__ == "__main__":
    sys.exit(main())
