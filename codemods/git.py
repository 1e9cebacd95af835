"""Ask git which files it ignores."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection, Mapping

from codemods.disk import WITNESS

_LOCAL = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")  # set inside hooks, where they name another repository
_SECONDS = 30


def ignored(groups: Mapping[str, Collection[str]]) -> set[str]:
    """Return those paths that git ignores; none where git has nothing to say, or where it ignores the whole folder.

    Args:
        groups: paths by the working tree they are in: git refuses to speak of what lies in a repository inside it.
    """
    inner = [folder for folder in groups if os.path.exists(os.path.join(folder, ".git"))]
    found: set[str] = set()
    for folder, paths in groups.items():
        below = os.path.join(os.path.abspath(folder), "")
        trees = [tree for tree in inner if os.path.abspath(tree).startswith(below)]
        found |= _ask(folder, [*paths, *trees])
    hidden = tuple(os.path.join(tree, "") for tree in inner if tree in found)
    found |= {path for paths in groups.values() for path in paths if path.startswith(hidden)}
    if (witness := WITNESS.get()) is not None:
        witness.saw_ignored(groups, found)
    return found


def _ask(folder: str, paths: Collection[str]) -> set[str]:
    names = {os.path.relpath(path, folder): path for path in (folder, *paths)}
    # An fsmonitor is a program that the scanned repository's own configuration names: not to be run.
    command = ["git", "-C", folder, "-c", "core.fsmonitor=false", "check-ignore", "--stdin", "-z"]
    try:
        answer = subprocess.run(
            command,
            input=b"".join(os.fsencode(name) + b"\0" for name in names),
            capture_output=True,
            timeout=_SECONDS,
            env={name: value for name, value in os.environ.items() if name not in _LOCAL},
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return set()
    found = {names[name] for each in answer.stdout.split(b"\0") if (name := os.fsdecode(each)) in names}
    return set() if folder in found else found  # the user asked for an ignored folder by its name
