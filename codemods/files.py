"""Find the files of a run: walk folders, leave out what is not the user's own, keep what names a kernel."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from typing import NamedTuple

from codemods.config import Configuration, Settings, SettingsError, parents
from codemods.disk import Stamp, entries, exists, is_file, read
from codemods.pool import spread
from codemods.words import Words

NOTEBOOK = ".ipynb"
_SUFFIXES = (".py", ".pyi", NOTEBOOK)
_LEFT_OUT = frozenset(
    (
        *(".bzr", ".git", ".git-rewrite", ".hg", ".svn"),
        *(".direnv", ".eggs", ".nox", ".pyenv", ".tox", ".venv", "__pypackages__", "node_modules", "site-packages", "venv"),
        *(".hypothesis", ".ipynb_checkpoints", ".mypy_cache", ".pytest_cache", ".pytype", ".ruff_cache", "__pycache__"),
        *("_build", "buck-out", "build", "dist"),
    )
)
_PART = 250  # files that are searched in one go
_SHARE = 1000  # files that are worth a process: to read and search them takes 25 ms, ten times what the process takes
_MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")


class Project(NamedTuple):
    """What the files of one analysis share: the folder their imports start from, and the settings."""

    root: str
    settings: Settings


class Candidate(NamedTuple):
    """A file that names a kernel."""

    path: str
    data: bytes
    stamp: Stamp
    project: Project


class Problem(NamedTuple):
    """A file that cannot be read, or a pyproject.toml that holds something that is no setting."""

    path: str
    line: int
    message: str


class File(NamedTuple):
    """A file of a run, and the git working trees it lies in, the innermost last; none: the user named it, so git has no say."""

    path: str
    project: Project
    trees: tuple[str, ...]


class Found(NamedTuple):
    """The files of a run: so many were looked at, and these are to be parsed, or cannot be read.

    `rest` are those that name no kernel.
    """

    candidates: tuple[Candidate, ...]
    problems: tuple[Problem, ...]
    files: int
    rest: tuple[File, ...] = ()

    @property
    def others(self) -> Mapping[str, File]:
        """Those that name no kernel, by the path that reports show."""
        return _by_shown_path(self.rest)

    def others_of(self, project: Project) -> frozenset[str]:
        """Return the paths of the files of a project that name no kernel."""
        return frozenset(path for path, file in self.others.items() if file.project == project)

    def candidate(self, path: str) -> Candidate:
        """Return one of the files, also one that names no kernel.

        Raises:
            OSError: it cannot be read, or git ignores it.
        """
        for candidate in self.candidates:
            if candidate.path == path:
                return candidate
        file = self.others[path]
        if _ignored_by_git([file], {file.path}):
            raise OSError(None, "git ignores it")
        return Candidate(path, *read(file.path), file.project)


def discover(
    paths: Iterable[str],
    configuration: Configuration,
    words: Words,
    *,
    force_exclude: bool = False,
    known: Set[str] = frozenset(),
) -> Found:
    """Return the files among `paths`, and in the folders among them, that hold one of the words.

    A file that is named is taken whatever it is called; with `force_exclude` only if a walk would have found it. A pyproject.toml
    below one of the folders that holds something that is no setting is a problem. Files whose absolute paths are `known` are
    passed over.

    Raises:
        ConfigError: one that holds for a path itself does.
    """
    files: list[File] = []
    problems: list[Problem] = []
    projects: dict[str, Project] = {}
    for path in paths:
        folder = _folder(path)
        key = path if os.path.islink(path) else folder
        project = projects.get(key) or projects.setdefault(key, project_of(path, configuration))
        if force_exclude and left_out(path, project.settings):
            continue
        if folder == path:
            files += _walk(path, project, configuration, problems, tree=project.root if force_exclude else path)
        else:
            files.append(File(path, project, (project.root,) if force_exclude else ()))
    if known:
        files = [file for file in files if os.path.abspath(file.path) not in known]
    candidates, unreadable = _matching(files, words)
    told = {each.path for each in (*candidates, *unreadable)}
    hidden = _ignored_by_git(files, told)
    problems = list(dict.fromkeys((*problems, *unreadable)))
    return Found(
        tuple(each._replace(path=shown(each.path)) for each in _distinct(candidates) if each.path not in hidden),
        tuple(each._replace(path=shown(each.path)) for each in problems if each.path not in hidden),
        len(files),
        tuple(file for file in files if file.path not in told),
    )


@lru_cache(maxsize=1)
def _by_shown_path(files: tuple[File, ...]) -> Mapping[str, File]:
    return {shown(file.path): file for file in files}


def project_of(path: str, configuration: Configuration) -> Project:
    """Return the project of a file or folder that the user named.

    Its root is the nearest folder with a pyproject.toml, a setup.py or a repository; where there is none, also not above what a
    symbolic link stands for, the folder that holds the outermost package.
    """
    folder = _folder(path)
    if _marked_root(folder) is None:
        folder = _folder(os.path.realpath(path))
    outermost = next(each for each in parents(folder) if not exists(os.path.join(each, "__init__.py")))
    return Project(_marked_root(folder) or outermost, configuration.nearest(folder))


def _folder(path: str) -> str:
    return path if os.path.isdir(path) else os.path.dirname(path)


def left_out(path: str, settings: Settings) -> bool:
    """Say whether a walk of the project, or of the working folder, would leave out this path or a folder above it."""
    top = os.path.join(_marked_root(os.path.dirname(path)) or os.getcwd(), "")
    for each in parents(path):
        if not each.startswith(top):
            break
        if _excluded(os.path.dirname(each), os.path.basename(each), settings):
            return True
        is_folder = each != os.path.abspath(path) or os.path.isdir(each)
        if is_folder and (os.path.basename(each) in _LEFT_OUT or os.path.exists(os.path.join(each, "pyvenv.cfg"))):
            return True
    return False


def _marked_root(folder: str) -> str | None:
    def is_marked(each: str) -> bool:
        return any(exists(os.path.join(each, marker)) for marker in _MARKERS)

    return next(filter(is_marked, parents(folder)), None)


def shown(path: str) -> str:
    """Return a path as reports show it: relative to the working folder."""
    try:
        return os.path.relpath(path)
    except ValueError:  # another drive, on Windows
        return path


def _walk(top: str, project: Project, configuration: Configuration, problems: list[Problem], *, tree: str) -> Iterator[File]:
    """Yield the Python files below a folder, without following symbolic links to folders."""
    pending: list[tuple[str, Project, tuple[str, ...]]] = [(top, project, (tree,))]
    while pending:
        folder, project, trees = pending.pop()
        try:
            listed = entries(folder)
        except OSError as error:
            problems.append(Problem(folder, 1, f"cannot be listed: {error.strerror}"))
            continue
        names = {entry.name for entry in listed}
        if folder != top:
            if "pyvenv.cfg" in names:
                continue
            if ".git" in names:
                trees = (*trees, folder)
            if "pyproject.toml" in names:
                try:
                    project = project._replace(settings=configuration.own(folder) or project.settings)
                except SettingsError as error:  # of what is below it, the settings are those from above
                    problems.append(Problem(error.path, error.line, error.message))
        exclude = project.settings.exclude
        for entry in listed:
            if exclude and _excluded(folder, entry.name, project.settings):
                continue
            if entry.name.endswith(_SUFFIXES) and _is_file(entry):
                yield File(entry.path, project, trees)
            elif entry.name not in _LEFT_OUT and entry.is_dir(follow_symlinks=False):
                pending.append((entry.path, project, trees))


def below(folder: str) -> Iterator[str]:
    """Yield the Python files below a folder, whatever settings and git say; what cannot be listed is passed over."""
    for file in _walk(folder, Project(folder, Settings()), Configuration(lambda settings: Settings()), [], tree=folder):
        yield file.path


def _is_file(entry: os.DirEntry[str]) -> bool:
    return is_file(entry.path) if entry.is_symlink() else entry.is_file(follow_symlinks=False)


def _excluded(folder: str, name: str, settings: Settings) -> bool:
    path = os.path.join(os.path.abspath(folder), name) if settings.exclude else name
    return any(fnmatchcase(path if "/" in pattern else name, pattern) for pattern in settings.exclude)


def _matching(files: Sequence[File], words: Words) -> tuple[list[Candidate], list[Problem]]:
    candidates: list[Candidate] = []
    problems: list[Problem] = []
    parts = [files[start : start + _PART] for start in range(0, len(files), _PART)]
    for matching, unreadable in spread(parts, partial(_matching_of, words), len, least=_SHARE):
        candidates += matching
        problems += unreadable
    return candidates, problems


def _matching_of(words: Words, files: Sequence[File]) -> tuple[list[Candidate], list[Problem]]:
    candidates: list[Candidate] = []
    problems: list[Problem] = []
    for file in files:
        try:
            data, stamp = read(file.path)
        except (OSError, MemoryError) as error:
            reason = getattr(error, "strerror", None) or error
            problems.append(Problem(file.path, 1, f"cannot be read: {reason}"))
            continue
        if words.occur_in(searchable(file.path, data)):
            candidates.append(Candidate(file.path, data, stamp, file.project))
    return candidates, problems


def searchable(path: str, data: bytes) -> bytes:
    """Return the bytes of a file in which words can be found; in those of a notebook, the letter of a `\\n` is no part of one."""
    return re.sub(rb"\\[a-z]", b" ", data) if path.endswith(NOTEBOOK) else data


def _ignored_by_git(files: Iterable[File], wanted: set[str]) -> set[str]:
    groups: dict[str, list[str]] = {}
    for file in files:
        if file.trees and file.path in wanted:
            for tree in file.trees:
                groups.setdefault(tree, [])
            groups[file.trees[-1]].append(file.path)
    if not any(exists(os.path.join(above, ".git")) for tree in groups for above in parents(tree)):
        return set()
    from codemods.git import ignored  # imports subprocess: most runs have nothing to ask

    return ignored(groups)


def _distinct(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Keep one path of each file, preferably one that is no symbolic link, in the order of the paths."""
    first: dict[tuple[int, int], Candidate] = {}
    for each in sorted(candidates, key=lambda each: (os.path.islink(each.path), each.path)):
        first.setdefault(each.stamp[:2], each)
    return sorted(first.values(), key=lambda each: each.path)
