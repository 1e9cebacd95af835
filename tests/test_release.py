"""What is released: both archives are built, installed into a new environment, and used there. `-m release` runs it."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from email import message_from_string
from pathlib import Path, PurePosixPath

import pytest

from .test_pre_commit import BAD
from .test_readme import ROOT

pytestmark = pytest.mark.release

PACKAGES = ("shapecheck", "kernel", "codemods")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
FOLDERS = (*PACKAGES, "tests", "docs", "examples", "benchmarks", ".ci")


def run(*command: str | Path, cwd: Path, status: int = 0) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "JAX_PLATFORMS")}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert done.returncode == status, done.stdout
    return done.stdout


def sources(folder: Path) -> Iterator[str]:
    """Yield the files of a folder that are no product of a tool."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and "__pycache__" not in name and ".pytest_cache" not in name and ".egg-info" not in name:
            yield name


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def script(environment: Path, name: str) -> Path:
    return environment / ("Scripts" if os.name == "nt" else "bin") / name


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the sdist and of the wheel that is made from it; below it, the wheel that is made from the checkout."""
    folder = tmp_path_factory.mktemp("built")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT, cwd=folder)
    run(sys.executable, "-m", "build", "--wheel", "--outdir", folder / "direct", ROOT, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (path,) = built.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def unpacked(built: Path) -> Path:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        archive.extractall(built / "unpacked", filter="data")
    (folder,) = (built / "unpacked").iterdir()
    return folder


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", folder, cwd=folder)
    run(script(folder, "python"), "-m", "pip", "install", "-q", wheel, cwd=folder)
    return folder


def test_the_wheel_holds_the_packages_whole_and_nothing_else(wheel: Path) -> None:
    held = {name for name in contents(wheel) if ".dist-info/" not in name}
    assert held == {f"{package}/{name}" for package in PACKAGES for name in sources(ROOT / package)}
    assert {f"{package}/py.typed" for package in PACKAGES} <= held


def test_the_wheel_names_its_command_its_plugin_and_its_license(wheel: Path) -> None:
    held = {PurePosixPath(name).name: data.decode() for name, data in contents(wheel).items() if ".dist-info/" in name}
    assert "shapecheck = codemods.cli:main" in held["entry_points.txt"]
    assert "shapecheck = shapecheck.pytest_plugin" in held["entry_points.txt"]
    assert held["LICENSE"] == (ROOT / "LICENSE").read_text()
    metadata = message_from_string(held["METADATA"])
    required = [each for each in metadata.get_all("Requires-Dist", []) if "extra ==" not in each]
    assert sorted(each.partition(">")[0] for each in required) == ["beartype", "jaxtyping", "libcst"]


def test_the_index_would_take_both(built: Path) -> None:
    said = run(
        sys.executable, "-m", "twine", "--no-color", "check", "--strict", *sorted(built.glob("shapecheck_pallas-*")), cwd=built
    )
    assert said.count("PASSED") == 2


def test_the_sdist_gives_the_wheel_that_the_checkout_gives(built: Path, wheel: Path) -> None:
    assert contents(wheel) == contents(built / "direct" / wheel.name)


def test_the_sdist_holds_the_checkout(unpacked: Path) -> None:
    for folder in FOLDERS:
        assert list(sources(unpacked / folder)) == list(sources(ROOT / folder))
    beside = {path.name for path in unpacked.iterdir() if path.is_file()} - {"PKG-INFO"}
    assert beside == {
        *("pyproject.toml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE"),
        *(".gitignore", ".pre-commit-hooks.yaml", "mkdocs.yml"),
    }


def test_the_tests_run_in_the_sdist(unpacked: Path) -> None:
    some = ["tests/test_config.py", "tests/test_readme.py::test_links_lead_somewhere"]
    run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *some, cwd=unpacked)


def test_what_is_installed_works_without_jax(environment: Path, tmp_path: Path) -> None:
    python, shapecheck = script(environment, "python"), script(environment, "shapecheck")
    run(python, "-m", "pip", "check", cwd=tmp_path)
    run(python, "-c", "import jax", cwd=tmp_path, status=1)
    run(python, "-W", "error", "-c", "import shapecheck; shapecheck.contract('n % 2 == 0')", cwd=tmp_path)
    assert run(shapecheck, "--version", cwd=tmp_path) == f"shapecheck {PROJECT['version']}\n"
    assert "pages_per_sequence % pages_per_compute_block == 0" in run(shapecheck, "explain", "SC102", cwd=tmp_path)
    (tmp_path / "a.py").write_text(BAD)
    assert "SC102" in run(shapecheck, "check", "a.py", cwd=tmp_path, status=1)
    assert run(python, "-m", "codemods", "check", cwd=tmp_path, status=1) == run(shapecheck, "check", cwd=tmp_path, status=1)
    assert "fixed: replace 16 by 12" in run(shapecheck, "fix", "a.py", cwd=tmp_path)
    assert run(shapecheck, "check", cwd=tmp_path) == "1 call site: 1 proven, 0 violated, 0 unproven; 1 file\n"
