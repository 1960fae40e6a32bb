"""The command that was built from the same sources, against which the package is tested."""

import os
import pathlib
import signal
import subprocess

import pytest

# A shell starts programs in the background with SIGINT ignored, and Python leaves it so.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def command(tmp_path):
    """Runs the command in an empty folder and returns the finished process."""
    program = pathlib.Path(os.environ.get("HEADSTART", ROOT / "target/release/headstart")).resolve()
    if not program.exists():
        pytest.fail(f"{program}: not found, expected the command (cargo build --release, or $HEADSTART)")

    def run(*words):
        return subprocess.run([program, *words], cwd=tmp_path, capture_output=True, text=True, timeout=300)

    return run
