"""The tutorial runs from its first cell to its last."""

import ast
import pathlib
import re
import sys
from importlib import metadata

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


def brought(extra):
    """Packages that `pip install '.[EXTRA]'` installs: those of the extra, and all they need."""

    def name(requirement):
        return re.match(r"[\w.-]+", requirement)[0].lower().replace("_", "-")

    found, left = set(), []
    for requirement in metadata.requires("headstart"):
        if re.search(rf"extra == ['\"]{extra}['\"]", requirement):
            left.append(name(requirement))
    assert left, extra
    while left:
        package = left.pop()
        if package not in found:
            found.add(package)
            try:
                needs = metadata.requires(package) or []
            except metadata.PackageNotFoundError:
                # Of another system or version.
                continue
            left.extend(name(one) for one in needs if "extra ==" not in one)
    return found


def test_the_extra_of_the_tutorial_brings_what_its_cells_import():
    imported = set()
    for cell in nbformat.read(TUTORIAL, as_version=4).cells:
        if cell.cell_type == "code":
            for node in ast.walk(ast.parse(re.sub(r"^[%!].*", "", cell.source, flags=re.MULTILINE))):
                names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
                names += [node.module] if isinstance(node, ast.ImportFrom) else []
                imported |= {one.split(".")[0] for one in names}
    distributions = metadata.packages_distributions()
    needed = {distributions[one][0].lower() for one in imported - sys.stdlib_module_names - {"headstart"}}
    assert needed and needed <= brought("notebook"), needed - brought("notebook")
    # Figures and bars are made with these by the package itself.
    assert {"matplotlib", "tqdm", "ipykernel"} <= brought("notebook")
