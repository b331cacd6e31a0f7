"""``python -m hostwright``: the command ``hostwright``."""

from hostwright.cli.program import main

if __name__ == "__main__":
    main()
