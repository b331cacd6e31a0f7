"""One command of the operator on many hosts: as the login user who cannot become root, or as root with ``--root``."""
