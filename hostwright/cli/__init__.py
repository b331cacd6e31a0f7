"""What each verb does: options in, text or JSON out, an exit status back.

0 as desired · 1 something failed · 2 bad input · 3 differs (plan, check) · 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from rich.text import Text

from hostwright.cli import console
from hostwright.cli.call import INTERRUPTED, Call
from hostwright.common.errors import HostwrightError

NOBODY_READS = 141  #: what a shell shows for a program that SIGPIPE (13) ended: 128 + 13

#: verb → its function in a module beside this one, which is imported only then: no verb waits for what others need
VERBS = {
    "plan": "planning.plan",
    "provision": "provisioning.provision",
    "remove": "removing.remove",
    "rollback": "rollback.rollback",
    "rebuild": "rebuilding.rebuild",
    "trust": "trusting.trust",
    "power": "powering.power",
    "verify": "verifying.verify",
    "vars": "listing.variables",
    "hosts": "listing.hosts",
    "mirror": "listing.mirror",
    "lock": "locking.lock",
    "unlock": "locking.unlock",
    "runs": "runs.runs",
    "runs.show": "runs.runs_show",
    "audit": "auditing.audit",
    "audit.history": "history.history",
    "audit.diff": "history.diff",
    "doctor": "auditing.doctor",
}


def run(verb: str, options: Mapping[str, Any]) -> int:
    """Do one verb with the options that the front door was given; return its exit status."""
    errors = console.make_console(stderr=True)
    try:
        module, _, name = VERBS[verb].partition(".")
        function: Callable[[Call], int] = getattr(import_module(f"hostwright.cli.{module}"), name)
        status = function(Call(options))
        sys.stdout.flush()  # not at the interpreter's end, when nobody can be told any more
        return status
    except HostwrightError as error:
        errors.print(Text(console.printable(str(error)), style="bold red"))
        return error.exit_status
    except BrokenPipeError:
        # Whoever read our output, such as `head`, has read enough. What is still to be written goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOBODY_READS
    except KeyboardInterrupt:
        errors.print(
            "interrupted. What runs on the hosts goes on; `invoke provision --resume`, or the same command again, "
            "re-attaches to it."
        )
        return INTERRUPTED
