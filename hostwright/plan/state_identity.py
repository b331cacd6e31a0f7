"""What makes two desired states the same: their kind and their fields, and nothing of how our code is written.

Release records on hosts hold hashes of identities for years. The name of a class must therefore be free to change, and
so must the name of a field, a sentence for operators, the order of fields, and what ``repr`` prints:

- The **kind** is the class attribute ``KIND``; without one it is the name of the class in kebab-case. Whoever renames a
  class gives it its former name as ``KIND``.
- A **field** that is no part of the state carries ``field(metadata=NO_IDENTITY)``: sentences for operators, permission
  to end somebody's work, how long a command may take. A renamed field keeps its former name with
  ``field(metadata={"identity": "former_name"})``.
- A field that has its default is left out, so that a class may get further fields. A default must therefore never
  change; the other behaviour is another field, or another kind.

``tests/unit/plan/test_state_identity.py`` holds the kinds and fields of all states that the standard roles have.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any

from hostwright.stack.stack import Artifact

NO_IDENTITY: Mapping[str, Any] = {"identity": False}  #: metadata of a field that is no part of the state


def kind_of(state: type) -> str:
    """The kind of a class of states. A class that inherits from another has a kind of its own.

    >>> class JsonMerged: ...
    >>> kind_of(JsonMerged)
    'json-merged'
    """
    named = vars(state).get("KIND")
    return named if isinstance(named, str) else re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", state.__name__).lower()


def identity_fields(state: type) -> Iterator[tuple[str, dataclasses.Field[Any]]]:
    """The fields of a class of states that are part of the state, each with its name in the identity."""
    for field in dataclasses.fields(state):
        name = field.metadata.get("identity", True)
        if name is not False:
            yield name if isinstance(name, str) else field.name, field


def identity_of(value: Any) -> Any:
    """A state, or a value of one of its fields, as JSON values. Of an artifact it is what the file is, not where it
    comes from. Raises ``TypeError`` for a value whose type has no identity."""
    if value is None or isinstance(value, (str, int)):  # bool is an int
        return value
    if isinstance(value, Artifact):
        return {"file": value.file, "sha256": value.sha256, "size": value.size}
    if isinstance(value, tuple):
        return [identity_of(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {"kind": kind_of(type(value)), "fields": _fields(value)}
    raise TypeError(
        f"a value of the type {type(value).__name__} has no identity: the fields of a state hold text, whole numbers, "
        "artifacts, other states, and tuples of these"
    )


def _fields(state: Any) -> dict[str, Any]:
    values = ((name, field, getattr(state, field.name)) for name, field in identity_fields(type(state)))
    return {name: identity_of(value) for name, field, value in values if not _is_default(field, value)}


def _is_default(field: dataclasses.Field[Any], value: Any) -> bool:
    if field.default_factory is not dataclasses.MISSING:
        return bool(value == field.default_factory())
    return bool(value == field.default)  # ``MISSING`` is equal to nothing else
