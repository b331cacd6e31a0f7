"""The command ``hostwright``: Invoke's own program on the tasks that ``invoke`` has in a site.

Beside these tasks it has ``init``, which makes a site, and the option ``--site``, which names one.
"""

from __future__ import annotations

import os

from invoke import Argument, Collection, Program

from hostwright import __version__
from hostwright.cli.tasks import VERBS
from hostwright.cli.tasks.begin import init


class Hostwright(Program):
    """Invoke's program with one option more."""

    def core_args(self) -> list[Argument]:
        """Invoke's own options, and ``--site``."""
        sentence = "the site: a directory with inventory/ and tasks.py (default: the nearest one, searching upwards)"
        return [*super().core_args(), Argument(names=("site",), help=sentence)]

    def execute(self) -> None:
        """Run the verbs. The site that was named is an environment variable, so that all that is started knows it."""
        if self.args.site.value:
            from hostwright.plan.roles.site import VARIABLE

            os.environ[VARIABLE] = self.args.site.value
        super().execute()


program = Hostwright(version=__version__, namespace=Collection(*VERBS, init), name="Hostwright", binary="hostwright")


def main() -> None:
    """What the installed command calls."""
    program.run()
