"""Rewrites the command line for Invoke's parser: adds ``--hosts`` before bare hosts, and reports mistakes.

hostwright plan gpu01 gpu02      as  hostwright plan --hosts gpu01,gpu02
hostwright runs.show 20261124    as  hostwright runs.show --run 20261124
hostwright provison              unknown verb 'provison'; did you mean 'provision'?
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from invoke.exceptions import ParseError
from invoke.parser import Argument, Parser, ParserContext, ParseResult

from hostwright.cli.shell import suggestions
from hostwright.cli.shell.suggestions import is_no_option
from hostwright.common.command import Command

#: options that a positional argument can set. It sets the first of these options that the verb has.
BARE = ("run", "schema", "hosts", "host")
#: options of Invoke that may stand after a verb
_ALSO_BEHIND = ("--help", "-h", "--site", "--list", "--version", "--complete")
#: option that requests another action instead of a verb → name of this action
_ASKING = {"--help": "help", "-h": "help", "--list": "list", "--version": "version"}


class WordsParser(Parser):
    """Invoke's parser, extended to accept hosts without ``--hosts``, and to add suggestions to error messages."""

    def parse_argv(self, argv: list[str]) -> ParseResult:
        """Override Invoke's method: rewrite ``argv`` before parsing. Raises ``ParseError``, with a suggestion, for a
        mistake.
        """
        walk = _Walk(self.contexts, self.initial, _asking(argv, self.contexts))
        words = walk.written()
        if not walk.asked_for:
            return self._of(words).parse_argv(words)
        result = self._of(()).parse_argv([])
        result[0].args[walk.asked_for].set_value(walk.typed if walk.asked_for == "help" else True, cast=False)
        return result

    def _of(self, words: Sequence[str]) -> Parser:
        """Return a parser for only the verbs in ``words``, because Invoke copies all verbs of a parser, and copying is
        slow.
        """
        named = {self.contexts[word].name: self.contexts[word] for word in words if word in self.contexts}
        return Parser(named.values(), self.initial, self.ignore_unknown)


def _asking(argv: Sequence[str], verbs: Mapping[str, ParserContext]) -> list[str]:
    if argv[:1] == ["help"] and "help" not in verbs:
        return [*argv[1:], "--help"]
    return list(argv)


def bare_option(context: ParserContext) -> Argument | None:
    """Return the option that a positional argument after this verb sets; ``None`` if the verb has no such option."""
    return next((context.args[name] for name in BARE if name in context.args), None)


def option_of(name: str, verb: ParserContext | None, core: ParserContext | None) -> Argument | None:
    """Return the option ``name``, such as ``--json`` or ``-h``. The verb's options take precedence over Invoke's."""
    contexts = (context for context in (verb, core) if context is not None)
    return next((context.flags[name] for context in contexts if name in context.flags), None)


def names_of(verbs: Mapping[str, ParserContext]) -> list[str]:
    """Return all names of the verbs, including aliases (``audit.fleet``, ``audit``)."""
    return [name for verb, context in verbs.items() for name in (verb, *context.aliases)]


def with_hosts(words: Sequence[str], verbs: Mapping[str, ParserContext], is_host: Callable[[str], bool]) -> str:
    """Return the message for hosts without ``--hosts`` after a verb; empty if ``words`` contain no such hosts."""
    left, verb, free = list(words), None, 0
    while left and left[0] != "--":
        word = left.pop(0)
        name, sign, _ = word.partition("=")
        option = option_of(name, verb, None) if name.startswith("-") else None
        if word in verbs:
            verb, free = verbs[word], sum(each.value is None for each in verbs[word].positional_args)
        elif option is not None:
            del left[: option.takes_value and not sign]
        elif free:
            free -= 1
        elif verb is not None and (bare := bare_option(verb)) is not None and is_host(word):
            hosts = [word, *takewhile(is_host, left)]
            before, after = words[: len(words) - len(left) - 1], left[len(hosts) - 1 :]
            named = ",".join(each.strip(",") for each in hosts)
            whole = shlex.join(("invoke", *before, f"--{bare.name}", named, *after))
            return f"`invoke` takes hosts only with --{bare.name}: `{whole}`; `hostwright` needs no --{bare.name}"
    return ""


@dataclass
class _Walk:
    verbs: Mapping[str, ParserContext]
    core: ParserContext | None  #: Invoke's own options, some of which may stand after a verb
    left: list[str]
    verb: ParserContext | None = None
    typed: str = ""  #: verb as the operator typed it, such as ``audit`` for ``audit.fleet``
    bare: list[str] = field(default_factory=list)
    given: set[str] = field(default_factory=set)
    free: int = 0  #: number of positional arguments that this verb still needs
    named: str = ""  #: value of the option for positional arguments, if the operator typed this option
    taken: list[str] = field(default_factory=list)  #: positional arguments of this verb that were already read
    before: tuple[str, str] = ("", "")  #: last typed option and the option's value

    def written(self) -> list[str]:
        return [*self._words(), *self._end()]

    @property
    def asked_for(self) -> str:
        # a verb may have an option of the same name: `lock` defines its own --list
        asked = self.given - (self.verb.flags.keys() if self.verb else self.given)
        return next((name for option, name in _ASKING.items() if option in asked), "")

    def _words(self) -> Iterator[str]:
        while self.left:
            word = self.left.pop(0)
            self._refuse(suggestions.pasted(word))
            if word == "--":
                rest, self.left = self.left, []
                self._refuse_command(rest)
                yield from (*self._end(), "--", *rest)
            elif word.startswith("-") and len(word) > 1:
                yield from self._option(word)
            elif self.free:
                self.free -= 1
                self.taken.append(word)
                yield word
            elif word in self.verbs:
                yield from self._end()
                self._begin(word)
                yield word
            else:
                self._bare_word(word)

    def _begin(self, word: str) -> None:
        self.verb, self.typed, self.given, self.named = self.verbs[word], word, set(), ""
        self.taken, self.before = [], ("", "")
        self.free = sum(1 for each in self.verb.positional_args if each.value is None)

    def _end(self) -> list[str]:
        if self.free and self.verb is not None and not self.asked_for:
            names = ", ".join((each.name or "").upper() for each in self.verb.positional_args[-self.free :])
            self._refuse(f"{self.typed} needs {names}; `hostwright --help {self.typed}` explains it")
        words, self.bare = self.bare, []
        if not words or self.verb is None:
            return []
        option = bare_option(self.verb)
        assert option is not None  # noqa: S101 - only such a verb has collected words
        return [f"--{option.name}", ",".join(words)]

    def _option(self, word: str) -> Iterator[str]:
        self.before = ("", "")
        name, sign, value = word.partition("=")
        if self.verb is not None:
            self._refuse(suggestions.single_dash(self.typed, name, self.verb))
        # a value may directly follow a short option, as in `-oVALUE`
        name = name if name.startswith("--") else name[:2]
        option = option_of(name, self.verb, self.core if self.verb is None or name in _ALSO_BEHIND else None)
        if option is None and (self.verb is None or name not in self.verb.inverse_flags):
            self._refuse(suggestions.unknown_option(self.typed, name, self.verb, self.verbs))
        if name in self.given and option is not None and option.takes_value and option.kind is not list:
            self._given_again(name, value or (self.left[0] if self.left else ""))
        self.given.add(name)
        if self.verb is not None and option is not None:
            self.free -= option in self.verb.positional_args
            if self.bare and option is bare_option(self.verb):
                self._named_twice(name)
        yield word
        bare = option is not None and self.verb is not None and option is bare_option(self.verb)
        self.named = value if bare else self.named
        if option is None or not option.takes_value or sign or len(word) > len(name):
            return
        if option.optional and not self._has_value():
            return
        if not self.left:
            self._refuse(f"{name} needs a value{self._such_as(option)}")
        self._refuse(suggestions.pasted(self.left[0]))
        self.named = self.left[0] if bare else self.named
        self.before = (name, self.left[0])
        yield self.left.pop(0)

    def _has_value(self) -> bool:
        return self.verb is not None and self.left[:1] != [] and not self.left[0].startswith("-")

    def _refuse_command(self, words: Sequence[str]) -> None:
        if self.verb is None or "--inventory" not in self.verb.flags or self.verb.name in suggestions.COMMANDS:
            return
        hosts = ",".join(self.bare) or self.named or "all"
        meant = Command("run", hosts=hosts, behind=tuple(words) or ("uptime",))
        self._refuse(
            f"{self.typed} takes no words after '--'; use {' or '.join(suggestions.COMMANDS)} instead: {meant}"
        )

    def _such_as(self, option: Argument) -> str:
        return f": {option.help}" if option.help else ""

    def _bare_word(self, word: str) -> None:
        if self.verb is None:
            self._refuse(suggestions.unknown_verb(word, names_of(self.verbs)))
            return
        below = f"{self.typed}.{word}"
        if below in self.verbs:
            self._refuse(f"unknown verb '{self.typed} {word}'; did you mean {below!r}?")
        option = bare_option(self.verb)
        if option is None:
            self._refuse(suggestions.no_verb(self.typed, word, names_of(self.verbs)))
            return
        hosts = [*self.taken, *self.bare, *filter(None, [self.named])]
        if self.verb.name in suggestions.COMMANDS:
            one = option.name == "host"
            self._refuse(suggestions.bare_command(self.typed, hosts, (word, *self.left), one=one))
        if f"--{option.name}" in self.given:
            if option.name == "hosts":
                words = [each.strip(",") for each in (self.named, word, *takewhile(is_no_option, self.left))]
                self._refuse(
                    f"{self.typed}: --hosts takes a single word; write --hosts {','.join(filter(None, words))}"
                )
            self._named_twice(f"--{option.name}")
        if option.name == "hosts":
            self._refuse(suggestions.no_hosts(self.typed, word, self.left, self.before))
        if self.bare and option.name != "hosts":
            self._refuse(f"{self.typed} takes a single {option.name}, found {self.bare[0]!r} and {word!r}")
        self.bare.append(word)
        self.before = ("", "")

    def _named_twice(self, option: str) -> None:
        words = " ".join(self.bare) or "words after the verb"
        self._refuse(f"{self.typed}: {option} and {words} are both given; use only one of them")

    def _given_again(self, option: str, value: str) -> None:
        if option == "--hosts":
            self._refuse(f"{self.typed}: --hosts takes a single word; write --hosts {self.named},{value}")
        self._refuse(f"{self.typed}: {option} is given twice and takes one value; remove one of them")

    def _refuse(self, sentence: str) -> None:
        if sentence:
            raise ParseError(sentence, self.verb)
