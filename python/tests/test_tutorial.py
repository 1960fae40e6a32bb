"""The tutorial runs from its first cell to its last."""

import pathlib

import nbclient
import nbformat

import headstart

TUTORIAL = pathlib.Path(__file__).parents[1] / "tutorial.ipynb"


def test_the_tutorial_runs(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(pathlib.Path(headstart.__file__).parents[1]))
    monkeypatch.setenv("MPLBACKEND", "agg")
    notebook = nbformat.read(TUTORIAL, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    printed = [output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", [])]
    # The kernel may send what a cell prints in several pieces.
    assert "iw10   mean" in "".join(printed) and "paced  mean" in "".join(printed), printed
