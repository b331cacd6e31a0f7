"""Secret values that cannot be printed by accident."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import Any, NoReturn

MASK = "***"


class Secret:
    """A password or key. Formatting a secret always gives ``***``; only ``reveal()`` returns its text.

    Comparison takes constant time. A secret cannot be pickled, and ``json.dumps`` rejects it. A pydantic field of this
    type accepts text or a ``Secret``.
    """

    __slots__ = ("_text",)

    is_secret = True  #: mark of a secret. The function ``quoting.sh`` rejects values with this attribute.

    def __init__(self, text: str):
        object.__setattr__(self, "_text", text)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a Secret is immutable")

    def reveal(self) -> str:
        """Return the secret in plain text. Never put this text into a command, a message or a record."""
        text: str = object.__getattribute__(self, "_text")
        return text

    def __repr__(self) -> str:
        return MASK

    def __str__(self) -> str:
        return MASK

    def __format__(self, spec: str) -> str:
        return MASK

    def __bool__(self) -> bool:
        return bool(self.reveal())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        mine, theirs = (secret.reveal().encode("utf-8", "surrogatepass") for secret in (self, other))
        return hmac.compare_digest(mine, theirs)

    def __hash__(self) -> int:
        return hash((Secret, self.reveal()))

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Secret:
        return self

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("a Secret cannot be pickled")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: Callable[[Any], Any]) -> Any:
        """Make pydantic create a ``Secret`` from text, and serialize it as ``***``."""
        from pydantic_core import core_schema

        from_text = core_schema.no_info_after_validator_function(cls, core_schema.str_schema())
        return core_schema.union_schema(
            [core_schema.is_instance_schema(cls), from_text], serialization=core_schema.to_string_ser_schema()
        )
