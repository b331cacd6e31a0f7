"""Writes the reference pages for verbs and variables into this checkout.

This needs its own process, because Invoke removes a task's help texts when it creates options.
"""

from __future__ import annotations

from invoke import Collection

from hostwright.cli.program import STANDARD as VERBS
from hostwright.cli.shell.reference import variables, verbs
from hostwright.plan.roles.role import discover, in_order
from hostwright.plan.roles.site import STANDARD
from hostwright.stack.stackfile import default_stack, load_stack


def pages() -> dict[str, str]:
    """Return path → text of each reference page. Paths are relative to the checkout."""
    found = {role.name: role for role in discover()}
    folders = (STANDARD / "stacks",)
    stack = load_stack(default_stack(folders), folders, {role.name: role.section for role in found.values()})
    ours = in_order(found, stack.roles)
    rest = sorted((role for role in found.values() if role not in ours), key=lambda role: role.name)
    return {verbs.DOCUMENT: verbs.document(Collection(*VERBS)), variables.DOCUMENT: variables.document([*ours, *rest])}


def main() -> None:
    """Write both reference pages."""
    for name, text in pages().items():
        (STANDARD.parents[1] / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
