"""All verbs with their options and defaults, and no slow import before a verb is called."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.places import PROJECT
from tests.unit.support.checkout import verbs

VERBS = verbs()
SLOW = ("rich", "pydantic", "paramiko", "fabric", "jinja2", "ClusterShell", "requests", "pytest")

#: runs in its own process, because Invoke removes a task's help texts when it creates options
TOLD = f"""
import json, sys
from hostwright.cli.tasks import namespace
slow = [name for name in {SLOW!r} if name in sys.modules]
verbs = {{}}
for context in namespace.to_contexts():
    options = verbs[context.name] = {{}}
    for one in context.args.values():
        place = ["positional"] if one.positional else []
        options["/".join(one.names)] = [one.kind.__name__, one.default, bool(one.help), *place]
print(json.dumps([slow, verbs]))
"""


@pytest.fixture(scope="module")
def told() -> tuple[list[str], dict[str, dict[str, list[Any]]]]:
    """Return the imports for the tasks alone, and each verb with its options as Invoke's parser has them."""
    done = subprocess.run([sys.executable, "-c", TOLD], cwd=PROJECT, capture_output=True, text=True, check=True)
    slow, options = json.loads(done.stdout)
    return slow, options


def test_every_verb_has_its_options_with_their_defaults(told) -> None:
    found = {
        verb: {name: [kind, default, *more] for name, (kind, default, _, *more) in sorted(some.items())}
        for verb, some in told[1].items()
    }
    assert found == VERBS


def test_every_option_is_explained(told) -> None:
    options = [(verb, name, helped) for verb, some in told[1].items() for name, (_, _, helped, *_) in some.items()]
    assert [(verb, name) for verb, name, helped in options if not helped] == []
    assert len(options) > 100


def test_the_list_of_verbs_waits_for_nothing_that_verbs_need(told) -> None:
    assert told[0] == []


#: known failures, methods of rebuilding, delivery of files: an empty plan imports none of them
CHANGING = (
    "hostwright.apply.delivery.fetch",
    "hostwright.apply.host.outcome",
    "hostwright.audit.failures",
    "hostwright.rebuild.ways.ways",
    "tenacity",
)
SSH = ("fabric", "paramiko")
#: proofs, and the states of roles without hosts
OF_OTHERS = (
    *("hostwright.proofs", "hostwright.prove", "hostwright.standard.roles.workspaces.proofs"),
    *(f"hostwright.standard.roles.{role}.desired" for role in ("jupyterhub", "proxy", "serving", "workspaces")),
)

#: for each call the greatest number of our own modules that it imports (those of Python and of libraries differ between
#: machines), and modules that it must not import
IMPORTED: dict[str, tuple[int, tuple[str, ...]]] = {
    "--list": (46, SLOW),
    "--help": (46, SLOW),
    "runs": (166, (*SSH, *CHANGING, *OF_OTHERS, "jinja2", "hostwright.plan.roles.role")),
    "stacks": (314, (*SSH, *CHANGING, *OF_OTHERS, "jinja2")),
    "hosts INVENTORY": (310, (*SSH, *CHANGING, *OF_OTHERS, "jinja2")),
    "plan INVENTORY": (329, (*CHANGING, *OF_OTHERS, "ClusterShell", "requests")),
    "verify INVENTORY": (376, (*OF_OTHERS, "requests")),
    "audit INVENTORY": (466, (*OF_OTHERS, "jinja2", "requests")),
    "doctor INVENTORY": (466, (*OF_OTHERS, "jinja2", "requests")),
}

CALLED = """
import sys
from hostwright.__main__ import main
try:
    main()
except SystemExit:
    print(*sys.modules)
"""


@pytest.mark.parametrize("call", IMPORTED)
def test_a_verb_imports_only_what_it_needs(call: str, tmp_path) -> None:
    """Nothing listens on that port: the stack and the roles are read, and common parts of hosts are built."""
    inventory = tmp_path / "hosts.yml"
    inventory.write_text("all: {hosts: {gpu01: {ansible_host: 127.0.0.1, ansible_port: 1}}, vars: {stack: jax-0.12}}")
    verb, _, reaches = call.partition(" ")
    options = ["--hosts", "all", "--inventory", str(inventory)] if reaches else []
    done = subprocess.run(
        [sys.executable, "-c", CALLED, verb, *options],
        cwd=PROJECT, env={**os.environ, "HOSTWRIGHT_STATE": str(tmp_path)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    modules = done.stdout.splitlines()[-1].split()
    most, unwanted = IMPORTED[call]
    assert [name for name in unwanted if name in modules] == []
    assert len([name for name in modules if name.startswith("hostwright.")]) <= most
    assert ("refuses the connection" in done.stdout + done.stderr) is (reaches != "" and verb != "hosts")
