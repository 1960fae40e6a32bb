"""The command `headstart`, as the wheel brings it: `python -m headstart race --help`."""

import signal
import sys

from headstart import _native


def main() -> int:
    """Runs the words of the command line; returns the exit code."""
    # The command ends at once, as a program of its own does.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _native.command(sys.argv, _native.__file__)


if __name__ == "__main__":
    sys.exit(main())
