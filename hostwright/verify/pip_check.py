"""``pip check`` without the rest of pip, whose import takes most of its time."""

from __future__ import annotations

#: A Python program that prints what ``pip check`` prints, and ends with its status. Where a Python is too old for
#: ``importlib.metadata``, or has no pip with packages of its own, it runs pip.
PIP_CHECK = r"""
import os, re, sys
try:
    from importlib.metadata import distributions
    found = list(distributions())  # before pip, for which Debian adds wheels of its own to the path
    try:
        from packaging.requirements import Requirement
        from packaging.tags import parse_tag, sys_tags
    except ImportError:
        from pip._vendor.packaging.requirements import Requirement
        from pip._vendor.packaging.tags import parse_tag, sys_tags
except ImportError:
    os.execv(sys.executable, [sys.executable, "-m", "pip", "check"])

def normal(name):
    return re.sub("[-_.]+", "-", name).lower()

installed = {}
for one in found:
    if one.metadata["Name"]:
        installed.setdefault(normal(one.metadata["Name"]), one)
supported = set(sys_tags())
missing, conflicting, others = [], [], []
for name, one in installed.items():
    try:
        needs = [Requirement(text) for text in one.requires or ()]
    except ValueError as error:
        others.append("Error parsing requirements for %s: %s" % (name, error))
        continue
    for need in needs:
        if need.marker and not need.marker.evaluate({"extra": ""}):
            continue
        has = installed.get(normal(need.name))
        if has is None:
            missing.append("%s %s requires %s, which is not installed." % (name, one.version, normal(need.name)))
        elif not need.specifier.contains(has.version, prereleases=True):
            words = (name, one.version, need, normal(need.name), has.version)
            conflicting.append("%s %s has requirement %s, but you have %s %s." % words)
    lines = (one.read_text("WHEEL") or "").splitlines()
    tags = [tag for line in lines if line.startswith("Tag:") for tag in parse_tag(line[4:].strip())]
    if tags and supported.isdisjoint(tags):
        others.append("%s %s is not supported on this platform" % (name, one.version))
print("\n".join(missing + conflicting + others) or "No broken requirements found.")
sys.exit(1 if missing or conflicting or others else 0)
"""
