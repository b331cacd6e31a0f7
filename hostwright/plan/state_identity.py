"""The identity of a desired state: JSON values of its kind and fields, independent of names in the code.

Release records on hosts contain hashes of identities for years. These changes must not affect an identity: a new class
name or field name, another text for operators, another order of fields, another ``repr``.

- The **kind** is the class attribute ``KIND``, by default the class name in kebab-case. To rename a class, set ``KIND``
  to its former kind.
- A **field** that is not part of the state has ``field(metadata=NO_IDENTITY)``: texts for operators, permission to end
  work, timeouts. To rename a field, keep its former name with ``field(metadata={"identity": "former_name"})``.
- A field with its default value is omitted, so that a class may get further fields. A default must therefore never
  change; for another behaviour, add another field or kind.

``tests/unit/plan/test_state_identity.py`` lists the kinds and fields of all states of the standard roles.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any

from hostwright.stack.stack import Artifact

#: metadata of a dataclass field outside the state's identity
NO_IDENTITY: Mapping[str, Any] = {"identity": False}


def kind_of(state: type) -> str:
    """Return the kind of a class of states. Subclasses do not inherit ``KIND``.

    >>> class JsonMerged: ...
    >>> kind_of(JsonMerged)
    'json-merged'
    """
    named = vars(state).get("KIND")
    return named if isinstance(named, str) else re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", state.__name__).lower()


def identity_fields(state: type) -> Iterator[tuple[str, dataclasses.Field[Any]]]:
    """Yield each field of a state's class that is part of the identity, with its name in the identity."""
    for field in dataclasses.fields(state):
        name = field.metadata.get("identity", True)
        if name is not False:
            yield name if isinstance(name, str) else field.name, field


def identity_of(value: Any) -> Any:
    """Return the identity of a state, or of a field's value, as JSON values.

    An artifact's identity contains the file's properties, but not its addresses. Raises ``TypeError`` for a type
    without an identity.
    """
    if value is None or isinstance(value, (str, int)):  # ``bool`` is a subclass of ``int``.
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
    return bool(value == field.default)  # ``MISSING``, for a field without default, equals no value.
