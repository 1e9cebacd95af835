from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codemods import callees
from codemods.config import Configuration, Settings
from codemods.files import Found, discover, project_of, read
from codemods.words import KERNELS, Words

CALL = b"paged_attention(q)\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(*names: str, data: bytes = CALL) -> None:
    for name in names:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def find(*paths: str, force_exclude: bool = False, exclude: tuple[str, ...] = ()) -> Found:
    configuration = Configuration(lambda settings: settings._replace(exclude=exclude))
    return discover(paths or ["."], configuration, Words(), force_exclude=force_exclude)


def names(found: Found) -> list[str]:
    return [candidate.path for candidate in found.candidates]


def git(*arguments: str, cwd: str = ".") -> None:
    subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e@e", *arguments], cwd=cwd, check=True, capture_output=True)


def test_the_words_are_those_of_the_callees() -> None:
    assert KERNELS == callees.WORDS


@pytest.mark.parametrize(
    ("data", "occurs"),
    [
        (b"paged_attention(q)", True),
        (b"from x import paged_attention", True),
        (b"x.paged_attention", True),
        (b"my_paged_attention(q)", False),
        (b"paged_attention_kernel(q)", False),
        (b"paged_attention2(q)", False),
        (b"", False),
        (b"my_paged_attention(q)\npaged_attention(q)", True),
        (b"\xff\x00 paged_attention \xff", True),
    ],
)
def test_only_a_whole_word_makes_a_file_a_candidate(data: bytes, occurs: bool) -> None:
    assert Words({b"paged_attention"}).occur_in(data) is occurs


def test_a_name_that_is_a_part_of_another_is_no_obstacle_to_either() -> None:
    words = Words({b"paged_attention", b"ragged_paged_attention"})
    assert words.occur_in(b"ragged_paged_attention()")
    assert words.occur_in(b"paged_attention()")
    assert not words.occur_in(b"my_ragged_paged_attention()")


@pytest.mark.parametrize("data", [b"abx ab_cdx", b"ab_cdx abx", b"xab xab_cd"])
def test_what_is_near_a_part_of_a_name_is_not_taken_for_one(data: bytes) -> None:
    assert not Words({b"ab", b"ab_cd"}).occur_in(data)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    names=st.sets(st.text("ab_1", min_size=1, max_size=4).map(str.encode), min_size=1, max_size=60),
    data=st.text("ab_1 .\né", max_size=40).map(str.encode),
)
def test_many_names_are_found_where_each_of_them_is(names: set[bytes], data: bytes) -> None:
    each = {name for name in names if Words({name}).occur_in(data)}
    assert Words(names).all_in(data) == each
    assert Words(names).occur_in(data) is bool(each)


def test_names_that_are_more_than_letters_may_be_many() -> None:
    names = {f"part-{number}".encode() for number in range(50)}
    assert Words(names).all_in(b"part-7, part-77 and parts") == {b"part-7"}


def test_known_files_are_passed_over(folder: Path) -> None:
    write("a.py", "sub/b.py", "sub/c.py")
    found = discover(["."], Configuration(), Words(), known={str(folder / "a.py"), str(folder / "sub/c.py")})
    assert (names(found), found.files) == (["sub/b.py"], 1)
    assert names(discover(["a.py"], Configuration(), Words(), known={str(folder / "a.py")})) == []


def test_folders_are_walked_for_python_files() -> None:
    write("a.py", "pkg/b.py", "pkg/deep/c.pyi", "notes.txt", "pkg/d.pyc", "pkg/e.ipynb", ".ipynb_checkpoints/f.ipynb")
    write("pkg/nothing.py", data=b"pass\n")
    found = find()
    assert names(found) == ["a.py", "pkg/b.py", "pkg/deep/c.pyi", "pkg/e.ipynb"]
    assert found.files == 5


@pytest.mark.parametrize(
    "name",
    [".git", ".hg", ".venv", "venv", "node_modules", "build", "dist", "site-packages", "__pycache__", ".tox", ".ruff_cache"],
)
def test_folders_that_hold_no_source_of_the_user_are_left_out(name: str) -> None:
    write(f"{name}/a.py", f"pkg/{name}/b.py", "kept.py")
    assert names(find()) == ["kept.py"]
    assert names(find(name)) == [f"{name}/a.py"]  # but the user may name them


def test_a_virtual_environment_is_known_by_its_configuration() -> None:
    write("env/lib/a.py", "kept.py")
    write("env/pyvenv.cfg", data=b"")
    assert names(find()) == ["kept.py"]


def test_a_file_that_is_named_is_taken_whatever_it_is_called() -> None:
    write("build/a.py", "script", "notes.txt")
    assert names(find("build/a.py", "script", "notes.txt")) == ["build/a.py", "notes.txt", "script"]


def test_force_exclude_leaves_out_what_a_walk_would() -> None:
    write("build/a.py", "src/a.py", "env/a.py", "src/skipped/a.py", "pyproject.toml")
    write("env/pyvenv.cfg", data=b"")
    paths = ["build/a.py", "src/a.py", "env/a.py", "src/skipped/a.py", "build"]
    assert names(find(*paths, force_exclude=True, exclude=("skipped",))) == ["src/a.py"]


def test_force_exclude_does_not_look_above_the_project() -> None:
    write("build/project/pyproject.toml", "build/project/a.py")
    assert names(find("build/project/a.py", force_exclude=True)) == ["build/project/a.py"]


def test_patterns_leave_out_names_anywhere_and_paths_in_their_place(folder: Path) -> None:
    write("a_pb2.py", "x/a_pb2.py", "x/gen/a.py", "gen/a.py", "kept.py")
    assert names(find(exclude=("*_pb2.py", f"{folder}/x/gen"))) == ["gen/a.py", "kept.py"]


def test_the_settings_are_those_of_the_nearest_pyproject() -> None:
    write("a.py", "inner/b.py", "inner/deep/c.py", "other/d.py")
    write("pyproject.toml", data=b"[tool.shapecheck]\nstrict = true\n")
    write("inner/pyproject.toml", data=b"[tool.shapecheck]\nunproven = true\n")
    write("other/pyproject.toml", data=b"[project]\n")
    for found in (find(), find("a.py", "inner/b.py", "inner/deep/c.py", "other/d.py")):
        assert {each.path: each.project.settings for each in found.candidates} == {
            "a.py": Settings(strict=True),
            "inner/b.py": Settings(unproven=True),
            "inner/deep/c.py": Settings(unproven=True),
            "other/d.py": Settings(strict=True),
        }


@pytest.mark.parametrize(
    ("marker", "inside", "root"),
    [
        ("project/pyproject.toml", "project/src/pkg", "project"),
        ("project/setup.py", "project/src/pkg", "project"),
        ("project/.git/HEAD", "project", "project"),
        ("src/pkg/__init__.py", "src/pkg", "src"),
        ("unrelated", "src/pkg", "src/pkg"),
    ],
)
def test_imports_start_from_the_root_of_the_project(folder: Path, marker: str, inside: str, root: str) -> None:
    write(marker, f"{inside}/a.py")
    assert project_of(inside, Configuration()).root == str(folder / root)


class TestGit:
    def test_ignored_files_are_left_out_unless_named(self) -> None:
        write(".gitignore", data=b"out/\n*.gen.py\n")
        write("a.py", "b.gen.py", "out/c.py", "untracked.py")
        git("init", "-q")
        assert names(find()) == ["a.py", "untracked.py"]
        assert names(find("b.gen.py")) == ["b.gen.py"]
        assert names(find("out")) == ["out/c.py"]
        assert names(find("b.gen.py", "out", "out/c.py", "a.py", force_exclude=True)) == ["a.py"]

    def test_a_tracked_file_is_not_ignored(self) -> None:
        write(".gitignore", data=b"*.gen.py\n")
        write("a.gen.py")
        git("init", "-q")
        git("add", "-f", "a.gen.py")
        assert names(find()) == ["a.gen.py"]

    def test_repositories_inside_have_their_own_say(self) -> None:
        write(".gitignore", data=b"ignored/\n")
        write("inner/.gitignore", data=b"b.py\n")
        write("inner/a.py", "inner/b.py", "ignored/repository/c.py")
        for repository in (".", "inner", "ignored/repository"):
            git("init", "-q", cwd=repository)
        assert names(find()) == ["inner/a.py"]

    def test_a_submodule_is_no_obstacle(self) -> None:
        write("library/a.py")
        git("init", "-q", cwd="library")
        git("add", "a.py", cwd="library")
        git("commit", "-qm", "x", cwd="library")
        write(".gitignore", data=b"b.py\n")
        write("b.py", "c.py")
        git("init", "-q")
        git("add", "library")
        assert names(find()) == ["c.py", "library/a.py"]

    def test_variables_of_a_hook_do_not_lead_elsewhere(self, monkeypatch: pytest.MonkeyPatch) -> None:
        write(".gitignore", data=b"a.py\n")
        write("a.py", "b.py")
        git("init", "-q")
        monkeypatch.setenv("GIT_DIR", "/nonexistent")
        assert names(find()) == ["b.py"]

    def test_a_program_that_the_repository_names_is_not_run(self) -> None:
        write("a.py")
        git("init", "-q")
        write(".git/hook", data=b"#!/bin/sh\ntouch pwned\n")
        os.chmod(".git/hook", 0o755)
        git("config", "core.fsmonitor", ".git/hook")
        assert names(find()) == ["a.py"]
        assert not Path("pwned").exists()

    def test_without_git_nothing_is_ignored(self, monkeypatch: pytest.MonkeyPatch) -> None:
        write(".gitignore", data=b"a.py\n")
        write("a.py")
        git("init", "-q")
        monkeypatch.setenv("PATH", "")
        assert names(find()) == ["a.py"]


class TestLinks:
    def test_a_file_is_taken_once_under_its_own_name(self) -> None:
        write("z.py")
        os.symlink("z.py", "a_link.py")
        assert names(find()) == ["z.py"]
        assert names(find("a_link.py", "z.py", "./z.py", ".")) == ["z.py"]
        assert names(find("a_link.py")) == ["a_link.py"]

    def test_hard_links_are_one_file(self) -> None:
        write("b.py")
        os.link("b.py", "a.py")
        assert names(find()) == ["a.py"]

    def test_links_to_folders_are_not_followed(self) -> None:
        write("pkg/a.py")
        os.symlink("pkg", "alias")
        os.symlink("..", "pkg/up")
        assert names(find()) == ["pkg/a.py"]
        assert names(find("alias")) == ["alias/a.py"]

    def test_links_that_lead_nowhere_are_passed_over(self) -> None:
        os.symlink("gone.py", "dangling.py")
        os.symlink("loop.py", "loop.py")
        assert find() == Found((), (), 0)


class TestProblems:
    def problem(self, *paths: str) -> str:
        found = find(*paths)
        assert not found.candidates
        [problem] = found.problems
        return f"{problem.path}:{problem.line}: {problem.message}"

    def test_a_path_that_does_not_exist(self) -> None:
        assert self.problem("gone.py") == "gone.py:1: cannot be read: No such file or directory"

    def test_a_pipe_is_not_waited_for(self) -> None:
        os.mkfifo("pipe.py")
        assert self.problem("pipe.py") == "pipe.py:1: cannot be read: not a regular file"
        assert find() == Found((), (), 0)  # a walk passes it over

    def test_a_file_that_cannot_be_read(self, monkeypatch: pytest.MonkeyPatch) -> None:
        write("a.py")
        monkeypatch.setattr("codemods.files.os.open", raising(PermissionError(13, "Permission denied")))
        assert self.problem() == "a.py:1: cannot be read: Permission denied"

    def test_a_folder_that_cannot_be_listed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        write("pkg/a.py")
        monkeypatch.setattr("codemods.files.os.scandir", raising(PermissionError(13, "Permission denied")))
        assert self.problem() == ".:1: cannot be listed: Permission denied"


def raising(error: Exception) -> Callable[..., object]:
    def fail(*_: object, **__: object) -> object:
        raise error

    return fail


def test_deep_trees_are_no_obstacle(folder: Path) -> None:
    path = "d/" * 900  # beyond the recursion limit
    for _ in range(9):
        os.makedirs("d/" * 100)
        os.chdir("d/" * 100)
    write("a.py")
    os.chdir(folder)
    assert names(find()) == [f"{path}a.py"]


def test_reading_gives_the_bytes_and_a_stamp_that_changes_with_them() -> None:
    write("a.py")
    data, stamp = read("a.py")
    assert data == CALL
    write("a.py", data=CALL * 2)
    assert read("a.py")[1] != stamp
