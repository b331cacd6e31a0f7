"""The command ``hostwright``: Invoke's program with the standard verbs and the tasks of a site.

Only this program has the verbs ``init`` and ``completion``, and the option ``--site``; ``invoke`` lacks them.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import copy_context
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

from invoke import Argument, Collection, Exit, ParseError, Program, Task
from invoke.parser import Parser

from hostwright import __version__
from hostwright.cli.shell import helping, streams
from hostwright.cli.shell.advice import CALL, Call, completed
from hostwright.cli.shell.completion import completing
from hostwright.cli.shell.libraries import Lacking, lacking
from hostwright.cli.shell.suggestions import no_group, unknown_verb
from hostwright.cli.shell.unforeseen import place_of, sentence_of
from hostwright.cli.shell.words import WordsParser, names_of
from hostwright.cli.tasks import VERBS, settings
from hostwright.cli.tasks.begin import completion, init
from hostwright.cli.tasks.ofroles import own_verbs
from hostwright.common.errors import InputError, described

#: message and exit status after Ctrl-C. An import of both from ``hostwright.apply`` takes longer than most verbs.
STOPPED, INTERRUPTED = "stopped; nothing was changed", 130
BAD_INPUT, FAILED = 2, 1
_QUESTIONS = {"--help", "-h", "--version", "-V", "--complete", "--print-completion-script"}

STANDARD: tuple[Task[Any] | Collection, ...] = (*VERBS, init, completion)


class Hostwright(Program):
    """Invoke's program, extended by the option ``--site``, the tasks of the site, and Hostwright's own help texts."""

    def run(self, *given: Any, **how: Any) -> None:
        """Override Invoke's method: run in a copy of the context, so that changes of context variables end with this
        call.
        """
        copy_context().run(super().run, *given, **how)

    def core_args(self) -> list[Argument]:
        """Add ``--site`` to Invoke's own options."""
        return [*super().core_args(), Argument(names=("site",), help=helping.SITE)]

    def create_config(self) -> None:
        """Override Invoke's method: ignore an unreadable user configuration, for example if ``HOME`` is
        ``/dev/null``.
        """
        try:
            super().create_config()
        except OSError:
            self.config = self.config_class(lazy=True)

    def parse_collection(self) -> None:
        """Load the verbs, and set the environment variable for ``--site``, which child processes inherit."""
        from hostwright.plan.roles.site import VARIABLE

        named = _named(self.argv[1:])
        CALL.set(Call(self.binary, named))
        if named:
            os.environ[VARIABLE] = named
        self._only_read = _is_question(self.argv[1:])
        self.namespace = self._verbs()
        super().parse_collection()

    def _verbs(self) -> Collection:
        """Return the verbs of Hostwright and of the site. For help and completion, the site's code is only parsed."""
        from hostwright.common.errors import InputError
        from hostwright.common.input.ownership import NotTrusted
        from hostwright.plan.roles.site import VARIABLE, Site

        self._not_trusted = ""
        if _verb(self.argv[1:]) in {init.name, completion.name}:  # both verbs must work without a site
            return Collection(*STANDARD)
        try:
            root = Site.find().root
        except InputError as error:
            if os.environ.get(VARIABLE) and not self._only_read:
                raise Exit(str(error), code=error.exit_status) from error
            self._not_trusted = str(error) if isinstance(error, NotTrusted) else ""
            return Collection(*STANDARD)  # each verb that needs a site reports the missing site itself
        return _written(root) if self._only_read else self._tasks_of(root)

    def parse_core(self, argv: list[str] | None) -> None:
        """Override Invoke's method: after a mistake, exit with status 2. Keep the words after ``--`` for the verb.

        Also allows Python to write bytecode files again, because Invoke forbids it.
        """
        with _mistakes():
            super().parse_core(argv)
        if "--" in self.argv:
            self.core.unparsed += self.argv[self.argv.index("--") :]
        sys.dont_write_bytecode = bool(sys.flags.dont_write_bytecode)

    def parse_tasks(self) -> None:
        """Override Invoke's method: exit with status 2 after a mistake in the words for a verb."""
        try:
            with _mistakes():
                super().parse_tasks()
        except Exit as error:
            if self._not_trusted:  # an untrusted site may define the unknown verb
                raise Exit(f"{error.message}; {self._not_trusted}", code=error.code) from error
            raise

    def parse_cleanup(self) -> None:
        """Override Invoke's method: suggest the nearest verb for ``--help VERB``; accept ``--version`` after a verb."""
        if self.args.version.value:
            self.print_version()
            raise Exit
        asked = self.args.help.value
        if isinstance(asked, str) and asked not in self.parser.contexts:
            raise Exit(unknown_verb(asked, names_of(self.parser.contexts)), code=BAD_INPUT)
        if isinstance(group := self.args.list.value, str):
            self._refuse_no_group(group)
        with _mistakes():
            super().parse_cleanup()
        if self._only_read:  # `--help` only parses the site's files, but a verb needs the imported site
            self._only_read = False
            self.collection = self.namespace = self._verbs()
            self.parse_tasks()

    def _refuse_no_group(self, name: str) -> None:
        try:
            self.collection.subcollection_from_path(name)
        except KeyError as error:
            raise Exit(
                no_group(name, [*self.collection.collections], names_of(self.parser.contexts)), BAD_INPUT
            ) from error

    def print_help(self) -> None:
        """Print all verbs by purpose, and the most important options that precede a verb."""
        print(helping.overview(self.collection))

    def print_task_help(self, name: str) -> None:
        """Print the description, options and examples of the verb ``name``."""
        print(helping.of_verb(name, self.collection[name], self.parser.contexts[name]))

    def print_columns(self, tuples: Sequence[tuple[str, str | None]]) -> None:
        """Override Invoke's method: print pairs of name and text in columns that also fit a narrow terminal."""
        print("\n".join(helping.columns([(name, text or "") for name, text in tuples])), end="\n\n")

    def candidates(self, words: Sequence[str]) -> list[str]:
        """Return the completions of the last of ``words``, the words after ``hostwright``."""
        return copy_context().run(self._candidates, words)

    def _candidates(self, words: Sequence[str]) -> list[str]:
        self.create_config()
        self.parse_core(["hostwright"])
        self.argv = ["hostwright", "--complete", *words]
        self.parse_collection()
        with suppress(InputError):
            settings.use_state()
        return completing.candidates(words, self._make_parser().contexts, self.initial_context)

    def _make_parser(self) -> Parser:
        made = super()._make_parser()
        return WordsParser(contexts=made.contexts.values(), initial=made.initial)

    def _tasks_of(self, root: Path) -> Collection:
        from hostwright.cli.shell.ofsite import sitetasks

        try:
            module = sitetasks.load(root)
        except (KeyboardInterrupt, Lacking):
            raise
        except BaseException as error:  # a file of the site may also call sys.exit
            sentence = f"{place_of(error, root / 'tasks.py')}: {described(error)}"
            raise Exit(
                f"{sentence}; `hostwright` imports this file for the verbs of the site", code=BAD_INPUT
            ) from error
        self.config.set_project_location(str(root))
        try:
            self.config.load_project()
        except RecursionError as error:
            raise Exit(f"{root}: its invoke.yaml or invoke.json is nested too deeply", code=BAD_INPUT) from error
        auto_dash = self.config.tasks.auto_dash_names
        tasks = Collection.from_module(module, loaded_from=str(root), auto_dash_names=auto_dash)
        return _with_standard(tasks, own_verbs(root, run=True))


def _written(root: Path) -> Collection:
    from hostwright.cli.shell.ofsite.written import verbs_in

    return _with_standard(verbs_in(root / "tasks.py", "tasks"), own_verbs(root, run=False))


def _with_standard(tasks: Collection, of_roles: Sequence[Collection]) -> Collection:
    """Return the verbs of a site (``tasks``), its roles and Hostwright. The site's verbs replace equally
    named verbs.
    """
    for verb in (*of_roles, *STANDARD):
        if isinstance(verb, Task):
            if verb.name not in {*tasks.tasks, *tasks.collections}:
                tasks.add_task(verb)
            continue
        if any(tasks.collections.get(verb.name) is each for each in STANDARD):
            tasks.collections.pop(verb.name)
        if verb.name not in {*tasks.tasks, *tasks.collections}:
            tasks.add_collection(verb)
    return tasks


@contextmanager
def _mistakes() -> Iterator[None]:
    """Convert a parser error of Invoke in the block to an exit with status 2; Invoke's own status would be 1."""
    try:
        yield
    except ParseError as error:
        raise Exit(completed(str(error)), code=BAD_INPUT) from error


def _named(words: Sequence[str]) -> str:
    ours = [*takewhile(lambda word: word != "--", words), ""]
    for word, after in pairwise(ours):
        option, sign, value = word.partition("=")
        if option == "--site":
            return value if sign else after
    return ""


def _verb(words: Sequence[str]) -> str:
    return next((word for before, word in pairwise(("", *words)) if before != "--site" and word[:1] != "-"), "")


def _is_question(words: Sequence[str]) -> bool:
    """Return whether a call requests help, the version or completions, for which the site's code does not run."""
    ours = set(takewhile(lambda word: word != "--", words))
    is_bare = _verb(words) in {"", "help"} and not ours & {"--list", "-l"}
    return is_bare or bool(_QUESTIONS & ours)


program = Hostwright(
    version=__version__,
    namespace=Collection(*STANDARD),
    name="Hostwright",
    binary="hostwright",
    binary_names=["hostwright"],
)


def main() -> None:
    """Run the installed command ``hostwright``, without tracebacks.

    Ctrl-C before a verb starts ends the command with status 130.
    """
    streams.prepare()
    asked = completing.asked(sys.argv[1:])
    try:
        try:
            if asked is not None:
                sys.stdout.writelines(f"{word}\n" for word in program.candidates(asked))
            else:
                program.run()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        from hostwright.cli.exits import nobody_reads

        sys.exit(nobody_reads())
    except SystemExit as end:
        if not isinstance(end.__context__, KeyboardInterrupt):
            raise
        print(STOPPED, file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None
    except Exception as error:  # noqa: BLE001 - no operator reads a traceback
        if asked is None:  # completion prints nothing, because a message would disturb the line that the operator types
            print(sentence_of(error), file=sys.stderr)
        sys.exit(BAD_INPUT if lacking(error) else FAILED)
    finally:
        # Python would print a traceback for Ctrl-C during the interpreter's exit
        signal.signal(signal.SIGINT, signal.SIG_DFL)
