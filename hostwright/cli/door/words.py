"""From the words of a call to those that Invoke's parser reads: hosts without ``--hosts``, and mistakes as sentences.

hostwright plan gpu01 gpu02      as  hostwright plan --hosts gpu01,gpu02
hostwright runs.show 20261124    as  hostwright runs.show --run 20261124
hostwright provison              there is no verb 'provison'; did you mean 'provision'?
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from invoke.exceptions import ParseError
from invoke.parser import Argument, Parser, ParserContext, ParseResult

from hostwright.common.input.nearest import SIMILAR, nearest

#: what a bare word behind a verb is: the first of these options that the verb has
BARE = ("run", "hosts", "host")
#: the options that stand before a verb, without those of Invoke's own that nobody is told of
CORE = ("help", "list", "site", "version")
_SIMILAR = 0.55  #: how similar a verb must be to be suggested: a slip in "plan" is a quarter of it
_SLIP = 0.9  #: how similar an option must be to one of this verb's, where other verbs have it exactly
_ALIKE = 0.8  #: how similar a further word must be to a verb to be taken for one
_OFFERED = 4  #: verbs that a sentence names
_COMMANDS = ("run", "ssh")  #: verbs that take words behind ``--``
_DASHES, _QUOTES = "‐‑‒–—―−", "“”„‘’‚«»"


class WordsParser(Parser):
    """Invoke's parser, with hosts as bare words, and sentences for what it cannot read."""

    def parse_argv(self, argv: list[str]) -> ParseResult:
        """As Invoke's. Raises ``ParseError`` with a sentence that says what was meant."""
        walk = _Walk(self.contexts, self.initial, list(argv))
        words = walk.written()
        if not walk.asks_for_help:
            return super().parse_argv(words)
        result = super().parse_argv([])
        result[0].args["help"].value = walk.typed
        return result


def bare_option(context: ParserContext) -> Argument | None:
    """The option that a bare word behind this verb is the value of; ``None`` where the verb takes none."""
    return next((context.args[name] for name in BARE if name in context.args), None)


def option_of(name: str, verb: ParserContext | None, core: ParserContext | None) -> Argument | None:
    """The option of that name (``--json``, ``-h``): the verb's, else Invoke's own."""
    contexts = (context for context in (verb, core) if context is not None)
    return next((context.flags[name] for context in contexts if name in context.flags), None)


def names_of(verbs: Mapping[str, ParserContext]) -> list[str]:
    """Every verb by its name and by its further ones (``audit.fleet``, ``audit``)."""
    return [name for verb, context in verbs.items() for name in (verb, *context.aliases)]


def unknown_verb(word: str, verbs: Sequence[str]) -> str:
    """The sentence for a verb that does not exist, with the one that may have been meant."""
    tails = {name.rpartition(".")[2]: name for name in verbs}
    known = {**tails, **{name: name for name in verbs}}
    found = nearest(word, known, _SIMILAR)
    meant = f"did you mean {known[found]!r}?" if found else "`hostwright --help` shows them all"
    return f"there is no verb {word!r}; {meant}"


def with_hosts(words: Sequence[str], verbs: Mapping[str, ParserContext], is_host: Callable[[str], bool]) -> str:
    """The sentence for hosts behind a verb without ``--hosts``, which Invoke's own program cannot read: it takes every
    such word for a further task. Empty where there are none.
    """
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
            return (
                f"`invoke` takes hosts with --{bare.name} alone: `{whole}`, while `hostwright` needs no --{bare.name}"
            )
    return ""


def _is_no_option(word: str) -> bool:
    return not word.startswith("-")


@dataclass
class _Walk:
    """Goes through the words once, as Invoke's parser does after it."""

    verbs: Mapping[str, ParserContext]
    core: ParserContext | None  #: Invoke's own options, which may stand behind a verb too
    left: list[str]
    verb: ParserContext | None = None
    typed: str = ""  #: the verb as it was typed: ``audit`` for ``audit.fleet``
    bare: list[str] = field(default_factory=list)
    given: set[str] = field(default_factory=set)  #: the options of this verb
    free: int = 0  #: how many further words the verb itself must be given
    named: str = ""  #: what the option of the bare words was given

    def written(self) -> list[str]:
        """The words as Invoke's parser reads them."""
        return [*self._words(), *self._end()]

    @property
    def asks_for_help(self) -> bool:
        """Whether the help of the last verb is wanted, and not the verb."""
        return self.verb is not None and not self.given.isdisjoint({"--help", "-h"})

    def _words(self) -> Iterator[str]:
        while self.left:
            word = self.left.pop(0)
            self._as_typed(word)
            if word == "--":
                rest, self.left = self.left, []
                self._refuse_command(rest)
                yield from (*self._end(), "--", *rest)
            elif word.startswith("-") and len(word) > 1:
                yield from self._option(word)
            elif self.free:
                self.free -= 1
                yield word
            elif word in self.verbs:
                yield from self._end()
                self._begin(word)
                yield word
            else:
                self._bare_word(word)

    def _begin(self, word: str) -> None:
        self.verb, self.typed, self.given, self.named = self.verbs[word], word, set(), ""
        self.free = sum(1 for each in self.verb.positional_args if each.value is None)

    def _end(self) -> list[str]:
        """What is still to be said of the verb: its hosts."""
        if self.free and self.verb is not None and not self.asks_for_help:
            names = ", ".join((each.name or "").upper() for each in self.verb.positional_args[-self.free :])
            self._refuse(f"{self.typed} needs {names}; `hostwright --help {self.typed}` says what that may be")
        words, self.bare = self.bare, []
        if not words or self.verb is None:
            return []
        option = bare_option(self.verb)
        assert option is not None  # noqa: S101 - only such a verb has collected words
        return [f"--{option.name}", ",".join(words)]

    def _option(self, word: str) -> Iterator[str]:
        name, sign, value = word.partition("=")
        name = name if name.startswith("--") else name[:2]  # the value may stand directly behind a short one
        option = option_of(name, self.verb, self.core)
        if option is None and (self.verb is None or name not in self.verb.inverse_flags):
            self._refuse(self._unknown_option(name))
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
        if option is None or not option.takes_value or option.optional or sign or len(word) > len(name):
            return
        if not self.left:
            self._refuse(f"{name} needs a value behind it{self._such_as(option)}")
        self._as_typed(self.left[0])
        self.named = self.left[0] if bare else self.named
        yield self.left.pop(0)

    def _as_typed(self, word: str) -> None:
        """Refuse what was pasted from where dashes and quotes are made to look well."""
        if word[:1] and word[0] in _DASHES:
            name, sign, _ = word.lstrip(_DASHES + "-").partition("=")
            sentence = f"{word} begins with a dash of a text processor, which is no option; did you mean --{name}{sign}"
            self._refuse(f"{sentence}?")
        if word[:1] and (word[0] in _QUOTES or (word[-1] in _QUOTES and not word[0].isalnum())):
            plain = word.strip(_QUOTES)
            self._refuse(f"{word} has quotes of a text processor, which no shell reads; did you mean '{plain}'?")

    def _refuse_command(self, words: Sequence[str]) -> None:
        """Refuse a command for hosts behind a verb of ours that runs none."""
        if self.verb is None or "--inventory" not in self.verb.flags or self.verb.name in _COMMANDS:
            return
        hosts, command = shlex.quote(",".join(self.bare) or self.named or "all"), shlex.join(words) or "uptime"
        meant = f"`hostwright run --hosts {hosts} -- {command}`"
        self._refuse(f"{self.typed} takes no words behind --, which {' and '.join(_COMMANDS)} do: {meant}")

    def _such_as(self, option: Argument) -> str:
        return f": {option.help}" if option.help else ""

    def _unknown_option(self, name: str) -> str:
        having = [verb for verb, context in self.verbs.items() if name in context.flags]
        if self.verb is None:
            if having:
                return f"{name} belongs behind its verb, as in `hostwright {having[0]} {name} …`"
            known = [f"--{each}" for each in CORE]
            meant = nearest(name, known)
            return f"there is no option {name}; " + (f"did you mean {meant}?" if meant else "see `hostwright --help`")
        # one that another verb has is no slip, unless it is nearly one of this verb's
        meant = nearest(name, self.verb.flag_names(), _SLIP if having else SIMILAR)
        if meant:
            return f"{self.typed} has no option {name}; did you mean {meant}?"
        others = f" ({', '.join(having[:_OFFERED])} {'has' if len(having) == 1 else 'have'} it)" if having else ""
        return f"{self.typed} has no option {name}{others}; `hostwright --help {self.typed}` shows those that it has"

    def _bare_word(self, word: str) -> None:
        if self.verb is None:
            self._refuse(unknown_verb(word, names_of(self.verbs)))
            return
        below = f"{self.typed}.{word}"
        if below in self.verbs:
            self._refuse(f"there is no verb '{self.typed} {word}'; did you mean {below!r}?")
        option = bare_option(self.verb)
        if option is None:
            near = nearest(word, names_of(self.verbs), _ALIKE)
            meant = f"did you mean the verb {near!r}?" if near else f"see `hostwright --help {self.typed}`"
            self._refuse(f"{self.typed} takes no {word!r}; {meant}")
            return
        if f"--{option.name}" in self.given:
            if option.name == "hosts":
                words = [each.strip(",") for each in (self.named, word, *takewhile(_is_no_option, self.left))]
                self._refuse(f"{self.typed}: name all hosts in one word: --hosts {','.join(filter(None, words))}")
            self._named_twice(f"--{option.name}")
        if self.bare and option.name != "hosts":
            self._refuse(f"{self.typed} takes a single {option.name}: {self.bare[0]!r} and {word!r} are two")
        self.bare.append(word)

    def _named_twice(self, option: str) -> None:
        words = " ".join(self.bare) or "words behind the verb"
        self._refuse(f"{self.typed}: name them once, either with {option} or without it ({words})")

    def _given_again(self, option: str, value: str) -> None:
        if option == "--hosts":
            self._refuse(f"{self.typed}: name all hosts in one word: --hosts {self.named},{value}")
        self._refuse(f"{self.typed}: {option} is given twice, and takes one value; leave out one of them")

    def _refuse(self, sentence: str) -> None:
        raise ParseError(sentence, self.verb)
