"""`shapecheck stub`: write the stubs, and say what they do not."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from codemods.config import ConfigError
from codemods.report.counts import number
from codemods.stubs.files import MARK, NAMES, VERSIONS, files_of, stubs_of
from codemods.stubs.own import own_stubs


def write_stubs(names: Collection[str], folder: str) -> str:
    """Write the stubs of these kernels, or of all, and of the functions in these files, into a folder; return the report.

    Raises:
        ConfigError: there is no such kernel; a file is there that is not ours, then none is written; or one cannot be written.
    """
    paths = [name for name in names if name.endswith(".py")]
    for name in names:
        if name not in NAMES and name not in paths:
            raise ConfigError(f"there is no stub of {name!r}; there are: {', '.join(NAMES)}, and files, FILE.py")
    own = dict(own_stubs(path, folder) for path in paths)
    stubs = stubs_of(names or NAMES)
    files = {Path(folder, path): text for path, text in files_of(stubs, own).items()}
    try:
        for path in files:
            if path.exists() and not path.read_text("utf-8", "replace").startswith(MARK):
                raise ConfigError(f"{path}: is there already, and `shapecheck stub` did not write it; choose another --output")
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
    except OSError as error:
        raise ConfigError(f"{error.filename}: cannot be written: {error.strerror}") from None
    lines = [f"wrote {number(len(files), 'file')} below {folder}, for {VERSIONS}"]
    told = [*stubs.items(), *((f"{module}.{stub.callee.name}", stub) for module, each in own.items() for stub in each)]
    for module, stub in told:
        lines.append(f"{module}: {number(len(stub.told), 'rule')} told, {len(stub.untold)} not{':' if stub.untold else ''}")
        lines += (f"  {each}" for each in stub.untold)
    return "".join(f"{line}\n" for line in lines)
