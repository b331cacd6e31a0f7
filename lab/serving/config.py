"""``--model_config_file``: the text form of the protocol buffer ``ModelServerConfig``."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.serving.status import Failed, invalid

_TOKEN = re.compile(
    r"""\s+|\#[^\n]*|(?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|(?P<word>[\w.+-]+)|(?P<sign>[{}<>:,;\[\]])"""
)
_POLICY = {"latest": {"num_versions": int}, "all": {}, "specific": {"versions": [int]}}
#: messages by field: a type is a value, a list of one is repeated
_CONFIG: dict[str, Any] = {
    "name": str,
    "base_path": str,
    "model_type": str,
    "model_platform": str,
    "model_version_policy": _POLICY,
    "version_labels": [{"key": str, "value": int}],
}
_ROOT: dict[str, Any] = {"model_config_list": {"config": [_CONFIG]}}


@dataclass(frozen=True)
class Model:
    """One model of a configuration."""

    name: str
    base_path: str
    platform: str
    #: ``latest`` with a number, ``all``, or ``specific`` with versions
    policy: str = "latest"
    number: int = 1
    versions: tuple[int, ...] = ()
    labels: dict[str, int] = field(default_factory=dict)


def read_config(path: str) -> tuple[Model, ...]:
    """The models of a file. Raises ``Failed`` for one that is not of the form."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise Failed("NOT_FOUND", f"{path}; {error.strerror}") from error
    try:
        document = _message(_tokens(text), _ROOT, "")
    except (ValueError, IndexError, KeyError) as error:
        raise invalid("Invalid protobuf file: '", path, "'") from error
    return tuple(_model(entry) for entry in document.get("model_config_list", {}).get("config", []))


def _model(entry: dict[str, Any]) -> Model:
    policy = entry.get("model_version_policy", {})
    name = next(iter(policy), "latest")
    return Model(
        entry.get("name", ""),
        entry.get("base_path", ""),
        entry.get("model_platform", ""),
        name,
        max(policy.get("latest", {}).get("num_versions", 1), 1),
        tuple(policy.get("specific", {}).get("versions", [])),
        {pair.get("key", ""): pair.get("value", 0) for pair in entry.get("version_labels", [])},
    )


def checked(models: tuple[Model, ...]) -> tuple[Model, ...]:
    """The same. Raises ``Failed`` for a configuration that no server takes."""
    for number, model in enumerate(models):
        if model.name in [other.name for other in models[:number]]:
            raise invalid("Illegal to list model ", model.name, " multiple times in config list")
        if not model.base_path.startswith("/"):
            raise invalid(
                "Expected model ", model.name, " to have an absolute path or URI; got base_path()=", model.base_path
            )
        if not model.platform:
            raise invalid(
                "Illegal setting neither ModelServerConfig::model_type (deprecated) nor "
                "ModelServerConfig::model_platform, model name is ",
                model.name,
            )
        if model.platform != "tensorflow":
            raise invalid("Model ", model.name, " requests unsupported platform ", model.platform)
    return models


def _tokens(text: str) -> list[str]:
    tokens = []
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise ValueError(text[place : place + 20])
        place = match.end()
        if match.lastgroup:
            tokens.append(match.group())
    tokens.reverse()
    return tokens


def _message(tokens: list[str], fields: dict[str, Any], end: str) -> dict[str, Any]:
    message: dict[str, Any] = {}
    while tokens:
        name = tokens.pop()
        if name == end:
            return message
        kind = fields[name] if name in fields else _unknown(name)
        if isinstance(kind, list):
            message.setdefault(name, []).extend(_repeated(tokens, kind[0]))
        elif name in message:
            raise ValueError(name)
        else:
            message[name] = _value(tokens, kind)
        if tokens and tokens[-1] in ",;":
            tokens.pop()
    if end:
        raise ValueError(end)
    return message


def _unknown(name: str) -> Any:
    raise ValueError(name)


def _repeated(tokens: list[str], kind: Any) -> list[Any]:
    if tokens[-1] == ":" and tokens[-2] == "[":
        del tokens[-2:]
        values = []
        while tokens[-1] != "]":
            if not isinstance(kind, dict):
                tokens.append(":")
            values.append(_value(tokens, kind))
            if tokens[-1] == ",":
                tokens.pop()
        tokens.pop()
        return values
    return [_value(tokens, kind)]


def _value(tokens: list[str], kind: Any) -> Any:
    if tokens[-1] == ":":
        tokens.pop()
    elif not isinstance(kind, dict):
        raise ValueError(tokens[-1])
    word = tokens.pop()
    if isinstance(kind, dict):
        return _message(tokens, kind, {"{": "}", "<": ">"}[word])
    if kind is int:
        return int(word)
    text = _unquoted(word)
    while tokens and tokens[-1][:1] in "\"'":  # strings that follow each other are one
        text += _unquoted(tokens.pop())
    return text


def _unquoted(token: str) -> str:
    if token[:1] not in "\"'":
        raise ValueError(token)
    return re.sub(r"\\(.)", r"\1", token[1:-1])
