"""Ansible's own output for one inventory, as JSON: `ansible-inventory --list`, and `ansible PATTERN --list-hosts`.

Ansible's own Python runs this file (see ``benchmarks/inventories.py ask``): ``python ansible_answers.py PATH``. Both
commands run in child processes of one process, which imports Ansible once.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tempfile
from typing import Any


def patterns_for(groups: dict[str, list[str]], hosts: list[str]) -> list[str]:
    """Return ten host patterns for an inventory with these ``groups`` and ``hosts``."""
    named = sorted(name for name in groups if name not in ("all", "ungrouped") and groups[name]) or ["all"]
    first, last = named[0], named[-1]
    host = sorted(hosts)[len(hosts) // 2]
    return [
        "all",
        first,
        f"{last}[0]",
        f"{first}[0:1]",
        f"{last}[-1]",
        f"all:!{first}",
        f"{first}:&{last}",
        f"{host[:3]}*,!{last}",
        f"~{first[:2]}.*",
        f"all,!{host},!nothing-of-this-name*",
    ]


def call(command: Any, arguments: list[str]) -> tuple[int, str, str]:
    """Run ``command``, the class of an Ansible program, in a child process; return exit status, output and errors."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = os.fork()
        if child == 0:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            status = 1
            try:
                status = int(command(arguments).run() or 0)
            except SystemExit as error:
                status = int(error.code or 0)
            except Exception as error:  # noqa: BLE001 - any error is part of the answer
                print(f"{type(error).__name__}: {error}", file=sys.stderr)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        _, ended = os.waitpid(child, 0)
        out.seek(0)
        err.seek(0)
        return os.waitstatus_to_exitcode(ended), out.read(), err.read()


def members(path: str) -> dict[str, list[str]]:
    """Return group name → host names in Ansible's order, including hosts of child groups."""
    from ansible.inventory.manager import InventoryManager
    from ansible.parsing.dataloader import DataLoader

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        inventory = InventoryManager(loader=DataLoader(), sources=[path])
    return {name: [host.name for host in group.get_hosts()] for name, group in inventory.groups.items()}


def main(path: str, *patterns: str) -> None:
    """Print Ansible's output for the inventory at ``path`` and for ``patterns`` (default: ``patterns_for``)."""
    from ansible.cli.adhoc import AdHocCLI
    from ansible.cli.inventory import InventoryCLI
    from ansible.release import __version__

    status, text, said = call(InventoryCLI, ["ansible-inventory", "-i", path, "--list"])
    result: dict[str, Any] = {"version": __version__, "status": status, "said": said[-2000:]}
    listed = json.loads(text) if status == 0 and text.strip() else {}
    result["groups"] = members(path)
    result["hostvars"] = listed.get("_meta", {}).get("hostvars", {})
    status, text, said = call(AdHocCLI, ["ansible", "all", "-i", path, "--list-hosts"])
    hosts = [line.strip() for line in text.splitlines()[1:]]
    result["hosts"] = hosts
    answers = {}
    for pattern in patterns or (patterns_for(result["groups"], hosts) if hosts else ()):
        status, text, said = call(AdHocCLI, ["ansible", pattern, "-i", path, "--list-hosts"])
        lines = [line.strip() for line in text.splitlines()[1:]]
        answers[pattern] = {"status": status, "hosts": lines, "said": said[-500:] if status else ""}
    result["patterns"] = answers
    print(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
