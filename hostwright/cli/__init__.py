"""What each verb does: options in, text or JSON out, an exit status back.

0 as desired · 1 something failed · 2 bad input · 3 differs (plan, check) · 130 interrupted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rich.text import Text

from hostwright import console
from hostwright.cli.call import INTERRUPTED, Call
from hostwright.cli.listing import hosts, mirror, variables
from hostwright.cli.locking import lock, unlock
from hostwright.cli.planning import plan
from hostwright.cli.provisioning import provision
from hostwright.cli.runs import runs, runs_show
from hostwright.cli.verifying import verify
from hostwright.errors import HostwrightError

VERBS: dict[str, Callable[[Call], int]] = {
    "plan": plan,
    "provision": provision,
    "verify": verify,
    "vars": variables,
    "hosts": hosts,
    "mirror": mirror,
    "lock": lock,
    "unlock": unlock,
    "runs": runs,
    "runs.show": runs_show,
}


def run(verb: str, options: Mapping[str, Any]) -> int:
    """Do one verb with the options that the front door was given; return its exit status."""
    errors = console.make_console(stderr=True)
    try:
        return VERBS[verb](Call(options))
    except HostwrightError as error:
        errors.print(Text(console.printable(str(error)), style="bold red"))
        return error.exit_status
    except KeyboardInterrupt:
        errors.print(
            "interrupted. What runs on the hosts goes on; `invoke provision --resume`, or the same command again, "
            "re-attaches to it."
        )
        return INTERRUPTED
