"""The wheel: its metadata, its licences and its command."""

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import headstart
import pytest

COMMAND = [sys.executable, "-m", "headstart"]


def told(*words: str, code: int = 0) -> tuple[str, str]:
    installed = {**os.environ, "PYTHONPATH": str(Path(headstart.__file__).parents[1])}
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, check=False, env=installed)
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


def test_the_wheel_has_a_command_licences_and_the_packages_version() -> None:
    package = metadata.distribution("headstart")
    scripts = [(one.name, one.value) for one in package.entry_points if one.group == "console_scripts"]
    assert scripts == [("headstart", "headstart.__main__:main")]
    assert package.version == headstart.__version__.split()[0], "without the commit"
    licences = {Path(str(file)).name for file in package.files or [] if "licenses" in str(file)}
    assert licences == {"LICENSE-APACHE", "LICENSE-MIT"}


def test_the_command_of_the_wheel_runs_a_race_and_runs_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["race", "--schemes", "iw10,headstart", "--duration", "5s", "--repeats", "2"]
    out, err = told(*words)
    assert "Verdict" in out and "runs of" in err
    assert "headstart race --schemes iw10,headstart" in (tmp_path / "headstart-race/race.json").read_text()
    assert told(*words)[0] == out


def test_a_wrong_word_ends_the_command_with_its_message_and_code() -> None:
    _, err = told("race", "--rat", "15 Mbit/s", code=2)
    assert "unexpected argument '--rat'" in err
    _, err = told("race", "--schemes", "nobody", code=2)
    assert "nobody" in err
