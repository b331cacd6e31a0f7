"""Reads Ansible's YAML inventories (groups with ``hosts``, ``vars`` and ``children``), and YAML files of variables."""

from __future__ import annotations

import yaml

from hostwright.common.input.nearest import nearest, suggestion
from hostwright.common.input.vault import is_vault
from hostwright.common.input.yamlfile import Origin, Reader, Where, compose, describe_node
from hostwright.inventory.draft import Draft, GroupDraft, Values, concealed, group_level
from hostwright.inventory.model import HOST_LEVEL, Value

_SECTIONS = ("hosts", "vars", "children")


def read_yaml(text: str, file: str, draft: Draft) -> bool:
    """Add the YAML inventory ``text`` to ``draft``. Return ``False`` if ``text`` is the configuration of an Ansible
    plugin.

    Raises ``InputError`` for invalid YAML.
    """
    node = compose(text, file)
    if node is None:
        return True
    reader = Reader(file, draft.vault)
    if _is_playbook(node):
        reader.fail(node, "is an Ansible playbook, expected an inventory with groups: `all: {hosts: {gpu01: {}}}`")
        draft.errors += reader.errors
        return True
    groups = reader.pairs(node, "an inventory of groups, such as `all: {hosts: {gpu01: {}}}`,")
    if any(name == "plugin" for name, _, _ in groups):
        return False
    for name, key, body in groups:
        _group(name, key, body, reader, draft)
    draft.errors += reader.errors
    return True


def _is_playbook(node: yaml.Node) -> bool:
    plays = node.value if isinstance(node, yaml.SequenceNode) else []
    return bool(plays) and all(
        isinstance(play, yaml.MappingNode)
        and any(getattr(key, "value", "") in ("hosts", "import_playbook") for key, _ in play.value)
        for play in plays
    )


def read_variables(text: str, file: str, level: str, draft: Draft) -> Values:
    """Return the variables in ``text``, the content of a file in ``group_vars`` or ``host_vars``.

    Raises ``InputError`` if the file cannot be decrypted or is not YAML.
    """
    if sealed := is_vault(text):
        text = draft.vault.open(text, file)
    node = compose(text, file)
    if node is None:
        return {}
    reader = Reader(file, draft.vault, sealed)
    values = variables(node, level, reader)
    draft.errors += reader.errors
    return values


def variables(node: yaml.Node, level: str, reader: Reader) -> Values:
    """Return the variables that the mapping ``node`` sets, with their positions."""
    values = {}
    for name, key, value in reader.pairs(node, "variables"):
        marks: dict[Where, Origin] = {}
        scalar = isinstance(value, yaml.ScalarNode)
        data = reader.plain(value) if scalar else reader.plain(value, marks)
        values[name] = Value(concealed(name, data), reader.origin(key), level, marks)
    return values


def _group(name: str, key: yaml.Node, body: yaml.Node, reader: Reader, draft: Draft) -> None:
    if not isinstance(body, yaml.MappingNode) and not _is_null(body):
        sentence = f"{name!r} is not read: found {describe_node(body)}, expected a group with hosts, vars or children"
        draft.notes.append(f"{reader.origin(key).exact}: {sentence}")
        return
    group = draft.group(name, reader.origin(key))
    for section, section_key, node in reader.pairs(body, f"the group {name}"):
        if section == "vars":
            group.layers.append(variables(node, group_level(name), reader))
        elif section == "hosts":
            _hosts(group, node, reader, draft)
        elif section == "children":
            for child, child_key, child_body in _children(name, node, reader):
                group.children[child] = reader.origin(child_key)
                _group(child, child_key, child_body, reader, draft)
        elif _is_group(node):
            sentence = f"{section!r} is a group within the group {name!r}; write it below the key `children` there"
            reader.fail(section_key, sentence)
        elif nearest(section, _SECTIONS):
            hint = suggestion(section, _SECTIONS)
            reader.fail(section_key, f"{section!r} is unknown in a group (hosts, vars and children are known); {hint}")
        else:
            sentence = f"{section!r} in the group {name!r} is not read: only hosts, vars and children are"
            draft.notes.append(f"{reader.origin(section_key).exact}: {sentence}")


def _children(name: str, node: yaml.Node, reader: Reader) -> list[tuple[str, yaml.Node, yaml.Node]]:
    if isinstance(node, yaml.ScalarNode) and node.tag.endswith(":str"):
        return [(node.value, node, yaml.ScalarNode("tag:yaml.org,2002:null", ""))]
    return reader.pairs(node, f"the children of {name}")


def _is_group(node: yaml.Node) -> bool:
    keys = [key.value for key, _ in node.value] if isinstance(node, yaml.MappingNode) else []
    return bool(keys) and set(map(str, keys)) <= set(_SECTIONS)


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag.endswith(":null")


def _hosts(group: GroupDraft, node: yaml.Node, reader: Reader, draft: Draft) -> None:
    if isinstance(node, yaml.ScalarNode) and node.tag.endswith(":str"):
        draft.add_hosts(group, node.value, {}, reader.origin(node))
        return
    if isinstance(node, yaml.SequenceNode):
        named = next((each.value for each in node.value if isinstance(each, yaml.ScalarNode)), "gpu01")
        sentence = "found a list, expected hosts as a mapping ('name: value' lines)"
        reader.fail(node, f"{sentence}; write each on its own line, such as `{named}: {{}}`")
        return
    for pattern, key, body in reader.pairs(node, "hosts"):
        draft.add_hosts(group, pattern, variables(body, HOST_LEVEL, reader), reader.origin(key))
