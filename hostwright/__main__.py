"""``python -m hostwright``: the command ``hostwright``."""

import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    del sys.path[0]  # This entry is the working directory, which may be untrusted.


def main() -> None:
    """Run the command line. Ctrl-C is handled even while modules are being imported."""
    try:
        from hostwright.common.garbage import collect_seldom

        collect_seldom()
        from hostwright.cli.program import main as run
    except KeyboardInterrupt:
        print("stopped; nothing was changed", file=sys.stderr)
        raise SystemExit(130) from None
    except ModuleNotFoundError as error:
        from hostwright.cli.shell.libraries import lacking
        from hostwright.common.errors import BAD_INPUT

        if not lacking(error):
            raise
        print(lacking(error), file=sys.stderr)
        raise SystemExit(BAD_INPUT) from None
    run()


if __name__ == "__main__":
    main()
