"""Removes secrets from every text of the journal before it is encoded.

A known secret is masked wherever it occurs in a text, in plain form or as programs usually write it: percent-encoded,
in base64, quoted for a shell, escaped as in JSON or Python. In a secret of several lines, each line that is long enough
is also masked on its own. An unknown secret is masked where its context marks it: ``user:password`` in a URL, and the
value of a variable with a name like a password's.

A mask within a known sentence can reveal a short secret: ``f***iled`` reveals ``a``. So every line that contains a
secret of fewer than ``MIN_INLINE`` characters is hidden whole.

The fields in ``records.IDENTIFIERS`` are not masked. A password that equals a host name or the word ``failed`` stays
visible there, but nothing marks it as a password.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any
from urllib.parse import quote, quote_plus

from hostwright.common.input.passwordcommand import at_hand
from hostwright.common.secret import MASK, Secret
from hostwright.inventory.draft import concealed
from hostwright.inventory.model import Host
from hostwright.plan.model import Plan
from hostwright.plan.targets import TargetHost

#: possible replacements for a secret. The first one that contains no secret is used.
MASKS = (MASK, "(hidden)", "…", "")
#: number of characters below which a secret hides its whole line (our choice). Short texts occur in many words.
MIN_INLINE = 6
MIN_DERIVED = 4  #: minimum number of characters of an encoded secret that is masked. Shorter texts occur by chance.
MIN_LINE = 8  #: minimum number of characters of a line that is masked separately, in a secret of several lines
MIN_BASE64 = 8  #: minimum number of characters of a base64 fragment of a secret that is masked

_USERINFO = re.compile(r'://([^\s/?#"<>]+)@')
_ASSIGNMENT = re.compile(r"(?s)((?:--?[\w-]+[= ])?([\w.-]+)=)(.+)")


class Redactor:
    """Masks a set of secrets in texts and JSON values. Thread-safe."""

    def __init__(self, secrets: Iterable[Secret]):
        known = {secret.reveal() for secret in secrets if secret}
        forms = {form for text in known for form in _forms(text)}
        self._pattern = re.compile(_alternatives(forms)) if forms else None
        short = {form for text in known if len(text) < MIN_INLINE for form in _forms(text)}
        self._short = re.compile(_alternatives(short)) if short else None
        self._mask = next(mask for mask in MASKS if not any(form in mask for form in forms))

    def text(self, text: str) -> str:
        """Return ``text`` with the known secrets and the credentials in URLs masked."""
        if self._short is not None and self._short.search(text):
            text = "\n".join(self._mask if self._short.search(line) else line for line in text.split("\n"))
        if self._pattern is not None:
            text = self._masked(self._pattern, text)
        if "://" not in text or "@" not in text:
            return text
        shown = _USERINFO.sub(self._without_credentials, text)
        return self._masked(self._pattern, shown) if self._pattern is not None and shown != text else shown

    def given(self, text: str) -> str:
        """Return a command-line word with secrets masked.

        In ``NAME=VALUE``, VALUE is also masked if NAME suggests a password.
        """
        match = _ASSIGNMENT.fullmatch(text)
        if match and isinstance(concealed(match[2].lstrip("-").replace("-", "_"), match[3]), Secret):
            return self.text(match[1]) + self._mask
        return self.text(text)

    def clean(self, value: Any, *, given: bool = False) -> Any:
        """Return ``value`` as JSON with the secrets masked, also in keys. Values that are not JSON become text.

        With ``given``, strings are masked as by the method ``given``.
        """
        if isinstance(value, Mapping):
            texts = {str(key): inner for key, inner in value.items()}
            named = concealed("", texts) if given else texts
            return {self.text(key): self.clean(inner, given=given) for key, inner in named.items()}
        if isinstance(value, (list, tuple, set, frozenset)):
            return [self.clean(inner, given=given) for inner in value]
        if isinstance(value, (int, float)) or value is None:
            return value
        return self.given(str(value)) if given else self.text(str(value))

    def record(self, record: Mapping[str, Any], identifiers: frozenset[str]) -> dict[str, Any]:
        """Return a journal record with the secrets masked, except in keys and in the values of ``identifiers``."""
        return {key: inner if key in identifiers else self._own(inner, identifiers) for key, inner in record.items()}

    def plan(self, plan: Plan) -> Plan:
        """Return a plan with the secrets masked, for a file. A plan shows the content of files, even of secret ones."""
        return Plan.from_json(self.record(plan.to_json(), frozenset({"kind", "host"})))

    def _own(self, value: Any, identifiers: frozenset[str]) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return self.record(value, identifiers)
        if isinstance(value, (list, tuple)):
            return [self._own(inner, identifiers) for inner in value]
        return self.clean(value)

    def _without_credentials(self, match: re.Match[str]) -> str:
        """Return the part of a URL in ``match`` with masked credentials. In http, everything before the ``@`` is a
        credential (a token has no colon). In other schemes, a user name alone is not a credential.
        """
        before = match.string[max(0, match.start() - 5) : match.start()].lower()
        hidden = ":" in match[1] or before.endswith(("http", "https"))
        return f"://{self._mask}@" if hidden else match[0]

    def _masked(self, pattern: re.Pattern[str], text: str) -> str:
        """Mask each match of ``pattern`` in ``text``; overlapping matches are masked together. If the masked text still
        matches, return only a mask.
        """
        match = pattern.search(text)
        if match is None:
            return text
        spans: list[list[int]] = []
        while match is not None:
            begin, end = match.span()
            if spans and begin <= spans[-1][1]:
                spans[-1][1] = max(end, spans[-1][1])
            else:
                spans.append([begin, end])
            match = pattern.search(text, begin + 1)
        shown = self._mask.join(_between(text, spans))
        return self._mask if pattern.search(shown) else shown


def secrets_in(hosts: Iterable[Host], targets: Iterable[TargetHost] = ()) -> set[Secret]:
    """Return every secret in the inventory data of ``hosts``, and in the role variables of ``targets``.

    A value is a secret if it is encrypted, declared (``hostwright_secrets``, a variable of the type ``Secret``) or
    named like a password. A secret that a command prints is included only after its first use.
    """
    secrets: set[Secret] = set()
    seen: set[int] = set()  # Hosts of a group share values, so each value is checked only once.
    for target in targets:
        secrets.update(_secrets(target.variables))
    for host in hosts:
        secrets |= {secret for secret in (host.password, host.become_password) if secret and at_hand(secret)}
        for values in (*(layer.values for layer in host.layers), host.vars):
            for value in values.values():
                if id(value) not in seen:
                    seen.add(id(value))
                    secrets.update(_secrets(value.value))
    return secrets


def _secrets(value: Any) -> Iterator[Secret]:
    return filter(at_hand, secrets_within(value))


def secrets_within(value: Any) -> Iterator[Secret]:
    """Yield every secret in ``value``, the value of a variable. Commands that print secrets do not run for this."""
    if isinstance(value, Secret):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from secrets_within(inner)
    elif is_dataclass(value):
        for part in fields(value):
            yield from secrets_within(getattr(value, part.name))
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from secrets_within(inner)


def _between(text: str, spans: Sequence[Sequence[int]]) -> Iterator[str]:
    position = 0
    for begin, end in spans:
        yield text[position:begin]
        position = end
    yield text[position:]


def _forms(text: str) -> Iterator[str]:
    yield text
    raw = text.encode("utf-8", "surrogatepass")
    encoded = {quote(raw), quote(raw, safe=""), quote_plus(raw)}
    derived = {
        text.strip(),
        *encoded,
        *(re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), form) for form in encoded),
        json.dumps(text)[1:-1],
        json.dumps(text, ensure_ascii=False)[1:-1],
        repr(text)[1:-1],
        text.replace("'", "'\\''"),
        text.replace("'", "'\"'\"'"),
        re.sub(r'(["$`\\])', r"\\\1", text),
        *_base64(raw),
    }
    yield from (form for form in derived if len(form) >= MIN_DERIVED)
    lines = text.splitlines()
    if len(lines) > 1:
        yield from (line.strip() for line in lines if len(line.strip()) >= MIN_LINE)


def _base64(raw: bytes) -> Iterator[str]:
    """Yield the base64 of the secret ``raw``, and for each alignment the part that the adjacent bytes do not change.

    Base64 encodes three bytes as four characters, so a secret has three alignments.
    """
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        whole = encode(raw).decode()
        yield whole
        yield whole.rstrip("=")
        for shift in range(3):
            stable = encode(b"\0" * shift + raw).decode()[-(-shift * 8 // 6) : (shift + len(raw)) * 8 // 6]
            if len(stable) >= MIN_BASE64:
                yield stable


def _alternatives(forms: Iterable[str], depth: int = 3) -> str:
    """Return a regular expression that matches any of ``forms``, the longest first. Texts are grouped by up to
    ``depth`` first letters, because a fleet may have a thousand passwords.
    """
    known = set(forms)
    if depth == 0 or len(known) < 4:
        return "|".join(re.escape(form) for form in sorted(known, key=lambda form: (-len(form), form)))
    heads: dict[str, set[str]] = {}
    for form in known - {""}:
        heads.setdefault(form[0], set()).add(form[1:])
    parts = [f"{re.escape(head)}(?:{_alternatives(rest, depth - 1)})" for head, rest in sorted(heads.items())]
    return "|".join([*parts, ""] if "" in known else parts)
