"""The variables of roles for many hosts: of hosts about which the same is written, they are bound once and shared.

What is written about a role is compared as the files have it, by layer, name, value and type. A host with a mistake is
bound for itself, so that its sentence names its own place.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from hostwright.common.canonical import Same, exact
from hostwright.common.errors import InputError
from hostwright.common.input.passwordcommand import SUFFIX
from hostwright.inventory import binding
from hostwright.inventory.model import HOST_LEVEL, Host, Value, VariableLayer
from hostwright.inventory.strangers import judge_of, strangers

MOST = 4096  #: our choice: definitions that are remembered; a fleet in which more differ is bound as before

Written = tuple[tuple[str, Value], ...]


class Binder:
    """Binds the variables of these roles, by name, for one host after the other. Remembers ``MOST`` results at most."""

    def __init__(self, roles: Mapping[str, type]):
        self._roles = roles
        self._judge = judge_of(roles)
        self._of_name: dict[str, tuple[str, ...]] = {}
        self._of_group: dict[Same[Any], Mapping[str, Written]] = {}
        self._bound: dict[Hashable, Any] = {}
        self._whole: dict[Hashable, Mapping[str, Any]] = {}
        self._judged: dict[Hashable, str | None] = {}

    def bind(self, names: Sequence[str], host: Host) -> Mapping[str, Any]:
        """The variables of the roles of these names, by name. Raises ``InputErrors`` as ``binding.bind`` does."""
        layers = [self._written(layer) for layer in host.layers]
        own = exact(host.get(binding.OWN_VARIABLES))
        keys = {name: self._key(name, host, layers) for name in names}
        whole = (own, *keys.items())
        if whole not in self._whole:
            self._remember(self._whole, whole, {name: self._one(name, (own, keys[name]), host) for name in names})
        return self._whole[whole]

    def strangers(self, host: Host) -> list[InputError]:
        """``strangers.strangers`` of these roles."""
        return strangers(host, self._stranger)

    def _one(self, name: str, written: Hashable, host: Host) -> Any:
        key = (name, written)
        if key not in self._bound:
            self._remember(self._bound, key, binding.bind(self._roles[name], name, host))
        return self._bound[key]

    def _key(self, role: str, host: Host, layers: Sequence[Mapping[str, Written]]) -> Hashable:
        """What is written about a role for a host, layer by layer; the same for all hosts about which nothing is."""
        parts: list[Hashable] = []
        for number, layer in enumerate(layers):
            for name, value in layer.get(role, ()):
                ours = Same(value) if value.level != HOST_LEVEL else exact(value.value)
                parts += [number, name, value.level, ours]
                if name.endswith(SUFFIX) or _names_command(value.value):
                    parts.append(host.name)  # a command prints the secret of one host
        return tuple(parts)

    def _written(self, layer: VariableLayer) -> Mapping[str, Written]:
        """The variables of a layer by the role whose they may be. Hosts share the layers of their groups."""
        if layer.level == HOST_LEVEL:
            return dict(self._by_role(layer)) if layer.values else {}
        key = Same(layer.values)
        if key not in self._of_group:
            self._of_group[key] = dict(self._by_role(layer))
        return self._of_group[key]

    def _by_role(self, layer: VariableLayer) -> Iterator[tuple[str, Written]]:
        found: dict[str, list[tuple[str, Value]]] = {}
        for name, value in layer.values.items():
            for role in self._roles_of(name):
                found.setdefault(role, []).append((name, value))
        return ((role, tuple(values)) for role, values in found.items())

    def _roles_of(self, name: str) -> tuple[str, ...]:
        """The roles whose variable a name may be: it is their name, or begins with it."""
        known = self._of_name.get(name)
        if known is None:
            known = tuple(role for role in self._roles if name == role or name.startswith(f"{role}_"))
            self._remember(self._of_name, name, known)
        return known

    def _stranger(self, name: str, value: Value) -> str | None:
        shared = value.level != HOST_LEVEL or isinstance(value.value, dict)
        key = (name, Same(value) if shared else type(value.value))
        if key not in self._judged:
            self._remember(self._judged, key, self._judge(name, value))
        return self._judged[key]

    @staticmethod
    def _remember(known: dict[Any, Any], key: Hashable, value: Any) -> None:
        if len(known) >= MOST:
            known.clear()
        known[key] = value


def _names_command(value: Any) -> bool:
    return isinstance(value, dict) and any(str(key).endswith(SUFFIX) for key in value)
