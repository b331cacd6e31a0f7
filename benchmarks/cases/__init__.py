"""The cases: modules with ``setup``, ``commands``, ``check`` and ``goals``; see ``case.Case``."""
