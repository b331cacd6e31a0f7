"""The command ``hostwright``: Invoke's own program on the standard verbs and a site's own tasks.

Beside these tasks it has ``init``, which makes a site, and the option ``--site``, which names one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from invoke import Argument, Collection, Exit, FilesystemLoader, Program, Task

from hostwright import __version__
from hostwright.cli.tasks import VERBS
from hostwright.cli.tasks.begin import init
from hostwright.cli.tasks.ofroles import verbs_of_roles

STANDARD: tuple[Task[Any] | Collection, ...] = (*VERBS, init)


class Hostwright(Program):
    """Invoke's program with one option more, which finds the tasks of the site."""

    def core_args(self) -> list[Argument]:
        """Invoke's own options, and ``--site``."""
        sentence = "the site: a directory with inventory/ and tasks.py (default: the nearest one, searching upwards)"
        return [*super().core_args(), Argument(names=("site",), help=sentence)]

    def parse_collection(self) -> None:
        """Load the site's tasks. The site that was named is an environment variable, so that all that is started
        knows it."""
        from hostwright.common.errors import InputError
        from hostwright.plan.roles.site import VARIABLE, Site

        named = _named(self.argv[1:])
        if named:
            os.environ[VARIABLE] = named
        try:
            site = Site.find()
        except InputError as error:
            if os.environ.get(VARIABLE):
                raise Exit(str(error), code=error.exit_status) from error
            self.namespace = Collection(*STANDARD)  # no site here: the verbs that need one say so
        else:
            self.namespace = self._tasks_of(str(site.root))
        super().parse_collection()

    def _tasks_of(self, root: str) -> Collection:
        """A site's tasks, as ``invoke`` finds them there, those of its roles, and the standard verbs that these do
        not replace."""
        module, place = FilesystemLoader(config=self.config, start=root).load("tasks")
        self.config.set_project_location(place)
        self.config.load_project()
        tasks = Collection.from_module(module, loaded_from=place, auto_dash_names=self.config.tasks.auto_dash_names)
        taken = {*tasks.tasks, *tasks.collections}
        for verb in (*verbs_of_roles(Path(root) / "roles"), *STANDARD):
            if verb.name in taken:
                continue
            taken.add(verb.name)
            if isinstance(verb, Collection):
                tasks.add_collection(verb)
            else:
                tasks.add_task(verb)
        return tasks


def _named(words: Sequence[str]) -> str:
    """The value of ``--site``, which may also follow the verb: verbs are known only once the site is."""
    for word, after in zip(words, (*words[1:], ""), strict=True):
        option, sign, value = word.partition("=")
        if option == "--site":
            return value if sign else after
    return ""


program = Hostwright(version=__version__, namespace=Collection(*STANDARD), name="Hostwright", binary="hostwright")


def main() -> None:
    """What the installed command calls."""
    program.run()
