"""Imports the ``tasks.py`` of a site as ``invoke`` does, but without adding its directory to ``sys.path``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from hostwright.common.input.ownership import fault_of, in_named_site


class _Beside(MetaPathFinder):
    """Finds modules beside ``tasks.py``, after all other finders, so that they never replace an installed module."""

    def __init__(self, root: Path):
        self._root = root

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find the module ``name``. Raises ``ImportError`` if other users can write the module's file."""
        spec = PathFinder.find_spec(name, [str(self._root)], target) if path is None else None
        place = spec and spec.origin
        if place and not in_named_site(self._root) and (fault := fault_of(Path(place))):
            raise ImportError(
                f"the file is not imported, because other users may be able to change it: {fault}", name=name
            )
        return spec


def load(root: Path) -> ModuleType:
    """Import ``tasks.py`` of the site at ``root``. Exceptions of this file are not caught."""
    sys.meta_path[:] = [*(each for each in sys.meta_path if not isinstance(each, _Beside)), _Beside(root)]
    spec = spec_from_file_location("tasks", root / "tasks.py")
    assert spec is not None and spec.loader is not None  # noqa: S101 - it ends in .py
    module = sys.modules["tasks"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
