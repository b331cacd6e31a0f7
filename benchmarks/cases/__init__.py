"""The cases, each a module with ``setup``, ``commands``, ``check`` and ``goals``; see ``case.Case``."""
