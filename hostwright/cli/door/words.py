"""From the words of a call to those that Invoke's parser reads: hosts without ``--hosts``, and mistakes as sentences.

hostwright plan gpu01 gpu02      as  hostwright plan --hosts gpu01,gpu02
hostwright runs.show 20261124    as  hostwright runs.show --run 20261124
hostwright provison              there is no verb 'provison'; did you mean 'provision'?
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

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
            if word == "--":
                rest, self.left = self.left, []
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
        self.verb, self.typed, self.given = self.verbs[word], word, set()
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
        name, sign, _ = word.partition("=")
        name = name if name.startswith("--") else name[:2]  # the value may stand directly behind a short one
        option = option_of(name, self.verb, self.core)
        if option is None and (self.verb is None or name not in self.verb.inverse_flags):
            self._refuse(self._unknown_option(name))
        self.given.add(name)
        if self.verb is not None and option is not None:
            self.free -= option in self.verb.positional_args
            if self.bare and option is bare_option(self.verb):
                self._named_twice(name)
        yield word
        if option is None or not option.takes_value or option.optional or sign or len(word) > len(name):
            return
        if not self.left:
            self._refuse(f"{name} needs a value behind it{self._such_as(option)}")
        yield self.left.pop(0)

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
            self._named_twice(f"--{option.name}")
        if self.bare and option.name != "hosts":
            self._refuse(f"{self.typed} takes a single {option.name}: {self.bare[0]!r} and {word!r} are two")
        self.bare.append(word)

    def _named_twice(self, option: str) -> None:
        words = " ".join(self.bare) or "words behind the verb"
        self._refuse(f"{self.typed}: name them once, either with {option} or without it ({words})")

    def _refuse(self, sentence: str) -> None:
        raise ParseError(sentence, self.verb)
