"""YAML text for other systems, quoted so that parsers of YAML 1.1 and 1.2 read the same values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from hostwright.roles import Unquoted, text_as_written


def yaml_text(documents: Iterable[Mapping[str, Any]], *, explicit_start: bool = False) -> str:
    """Return ``documents`` as one YAML text.

    >>> print(yaml_text([{"A": "1e3", "B": "yes", "C": "UTC"}]), end="")
    A: "1e3"
    B: 'yes'
    C: UTC
    """
    text: str = yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, explicit_start=explicit_start)
    return text


class _Dumper(yaml.SafeDumper):
    """YAML dumper that quotes each text that some YAML parser would read as another type."""

    def ignore_aliases(self, _data: object) -> bool:
        return True  # people edit these files, so repeated values have no aliases

    def text(self, text: str) -> yaml.ScalarNode:
        quotes = '"' if isinstance(text_as_written(text), Unquoted) else None
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=quotes)


_Dumper.add_representer(str, _Dumper.text)
