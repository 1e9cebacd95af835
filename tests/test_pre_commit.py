"""The hooks: what pre-commit makes of them, in an environment that it installs, and what they know of files not named to them."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from .test_readme import DOCS, ROOT, blocks_of

DEFINITION = ROOT / ".pre-commit-hooks.yaml"
PACKAGED = ("shapecheck", "kernel", "codemods", "pyproject.toml", "README.md", "LICENSE", DEFINITION.name)
LARGEST = 40_000_000  # bytes of an environment

SIZES = "BLOCK = 16\n"
KERNEL = """\
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

from sizes import BLOCK


def attend(q, pages, lengths, table):
    return paged_attention(q, pages, pages, lengths, table, pages_per_compute_block=BLOCK)
"""
CALLER = """\
import jax.numpy as jnp

from attention import attend

q, pages = jnp.zeros((8, 32, 128)), jnp.zeros((8, 192, 16, 128))
attend(q, pages, jnp.zeros((8,), jnp.int32), jnp.zeros((8, 24), jnp.int32))
"""
BAD = """\
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

q, pages = jnp.zeros((8, 32, 128)), jnp.zeros((8, 192, 16, 128))
lengths, table = jnp.zeros((8,), jnp.int32), jnp.zeros((8, 24), jnp.int32)
paged_attention(q, pages, pages, lengths, table, pages_per_compute_block=16)
"""
HEADS = BAD.replace("(8, 32, 128)", "(8, 30, 128)").replace("block=16", "block=8")  # which is not for `fix` to repair


def hooks() -> dict[str, Any]:
    return {hook["id"]: hook for hook in yaml.safe_load(DEFINITION.read_text())}


class Checkout:
    """A repository of git, and what pre-commit says of it."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder = folder
        nobody = {f"GIT_{who}_{what}": "nobody" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        outside = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        nowhere = {"GIT_CONFIG_GLOBAL": os.devnull, "PRE_COMMIT_HOME": str(home), "PYTHONPATH": ""}
        self._environment = {**outside, **nobody, **nowhere}
        folder.mkdir(exist_ok=True)
        self.git("init", "-q")

    def write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git("add", "-A")

    def git(self, *arguments: str) -> str:
        return self._run("git", *arguments)[1].strip()

    def pre_commit(self, *arguments: str) -> tuple[int, str]:
        return self._run(sys.executable, "-m", "pre_commit", *arguments, "--color=never")

    def _run(self, *command: str) -> tuple[int, str]:
        run = subprocess.run(
            command, cwd=self.folder, env=self._environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        return run.returncode, run.stdout


def verdicts(output: str) -> dict[str, str]:
    """Return what pre-commit says of each hook."""
    return dict(re.findall(r"^(shapecheck(?: fix)?)\.+(?:\(.*\))?(\w+)$", output, re.MULTILINE))


def own_size(environment: Path) -> int:
    """Return the bytes of what the hooks need: what pre-commit puts into every environment, pip, is not ours to shrink."""
    theirs = re.compile(r"/site-packages/(pip|setuptools|_distutils_hack|distutils-precedence)\b")
    return sum(path.lstat().st_size for path in environment.rglob("*") if path.is_file() and not theirs.search(str(path)))


@pytest.mark.thorough
def test_pre_commit_installs_and_runs_both_hooks(tmp_path: Path) -> None:
    home = tmp_path / "home"
    project = Checkout(tmp_path / "shapecheck", home)
    for name in PACKAGED:
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, project.folder / name)
    project.write({".gitignore": "__pycache__\n"})
    project.git("commit", "-qm", "all")
    hook = "  - id: shapecheck-fix\n  - id: shapecheck\n"
    config = f"repos:\n- repo: {project.folder}\n  rev: {project.git('rev-parse', 'HEAD')}\n  hooks:\n{hook}"

    # a defect that is repaired, one that is not, and one that the settings leave out
    user = Checkout(tmp_path / "user", home)
    settings = {"pyproject.toml": '[tool.shapecheck]\nexclude = ["vendored"]\n', ".pre-commit-config.yaml": config}
    user.write({**settings, "bad.py": BAD, "heads.py": HEADS, "vendored/bad.py": BAD})
    status, output = user.pre_commit("run")
    assert (status, verdicts(output)) == (1, {"shapecheck fix": "Failed", "shapecheck": "Failed"}), output
    assert "files were modified by this hook" in output
    assert user.git("diff", "--name-only") == "bad.py"
    first, second = output.split("- hook id: shapecheck\n")
    assert "bad.py:6:74: SC102 block-not-dividing: fixed: replace 16 by 12" in first
    assert "SC102" not in second  # it looks at what is repaired
    assert "heads.py:6:20: SC101" in second
    (environment,) = home.glob("repo*/py_env-*")
    assert own_size(environment) < LARGEST

    # a file that was changed makes the hook fail, be there nothing left to report
    user.git("checkout", "-q", "bad.py")
    user.git("rm", "-qf", "heads.py")
    status, output = user.pre_commit("run")
    assert (status, verdicts(output)) == (1, {"shapecheck fix": "Failed", "shapecheck": "Passed"}), output
    user.git("add", "-A")
    status, output = user.pre_commit("run")
    assert (status, verdicts(output)) == (0, {"shapecheck fix": "Passed", "shapecheck": "Passed"}), output
    user.git("commit", "-qm", "repaired", "--no-verify")

    # no file at all
    status, output = user.pre_commit("run")
    assert (status, verdicts(output)) == (0, {"shapecheck fix": "Skipped", "shapecheck": "Skipped"}), output

    # more names than one command line holds
    user.write({f"package/of_many_modules/module_{number}.py": "x = 1\n" for number in range(10_001)})
    user.write({"package/of_many_modules/zz_last.py": HEADS})
    status, output = user.pre_commit("run", "shapecheck", "--all-files")
    assert (status, verdicts(output)) == (1, {"shapecheck": "Failed"}), output
    batches = [int(count) for count in re.findall(r"; (\d+) files?$", output, re.MULTILINE)]
    assert len(batches) > 1
    assert sum(batches) == 10_003
    assert output.count("SC101") == 1

    # the way to try it
    user.git("reset", "-q", "--hard")
    status, output = user.pre_commit("try-repo", str(project.folder), "shapecheck", "--all-files")
    assert (status, verdicts(output)) == (0, {"shapecheck": "Passed"}), output


@pytest.mark.parametrize("name", hooks())
def test_a_hook_runs_alone_and_leaves_out_what_the_settings_do(name: str) -> None:
    hook = hooks()[name]
    assert hook["require_serial"] is True
    assert "--force-exclude" in hook["entry"]
    assert {"python", "pyi", "jupyter"} == set(hook["types_or"])


def run_hook(folder: Path, name: str, *files: str) -> tuple[int, str]:
    """Run a hook as pre-commit does: its entry with some names behind it, in the repository's root."""
    _, *arguments = shlex.split(hooks()[name]["entry"])
    command = [sys.executable, "-m", "codemods", *arguments, "--output-format", "concise", *files]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return run.returncode, run.stdout


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """A program in three files: the kernel's call, the size of its block, and the call of the function around it."""
    (tmp_path / ".git").mkdir()
    for name, text in {"sizes.py": SIZES, "attention.py": KERNEL, "serve.py": CALLER}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_what_is_known_of_a_call_comes_from_files_that_are_not_named_too(parts: Path) -> None:
    status, output = run_hook(parts, "shapecheck", "attention.py")
    assert status == 1
    assert "attention.py:8:85: SC102 block-not-dividing: " in output
    assert "pages_per_sequence = 24, pages_per_compute_block = 16" in output


def test_a_call_is_reported_when_its_own_file_is_named(parts: Path) -> None:
    assert run_hook(parts, "shapecheck", "sizes.py", "serve.py") == (
        0,
        "0 call sites: 0 proven, 0 violated, 0 unproven; 2 files\n",
    )
    assert run_hook(parts, "shapecheck")[0] == 1  # `pass_filenames: false`: the whole folder


@pytest.mark.parametrize(
    ("named", "changed"), [(["attention.py"], "attention.py"), (["attention.py", "sizes.py"], "sizes.py")], ids=["call", "both"]
)
def test_a_fix_changes_no_file_that_is_not_named(parts: Path, named: list[str], changed: str) -> None:
    (parts / "attention.py").write_text("from sizes import BLOCK\n" + BAD.replace("block=16", "block=BLOCK"))
    before = {path.name: path.read_text() for path in parts.glob("*.py")}
    assert run_hook(parts, "shapecheck-fix", *named)[0] == 0
    assert [name for name, text in before.items() if (parts / name).read_text() != text] == [changed]


def test_the_page_shows_the_hooks_that_there_are() -> None:
    shown = [repo for block in blocks_of(DOCS / "pre-commit.md", "yaml") for repo in yaml.safe_load(block.body)["repos"]]
    assert {hook["id"] for repo in shown for hook in repo["hooks"]} == set(hooks())
