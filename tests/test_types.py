"""What type checkers see of decorated functions: pyright and mypy, each run once over one file of a user."""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from kernel import paged_attention
from shapecheck import checked, contract

ROOT = Path(__file__).parent.parent

# Behind `# reveal:` stands what is to be in the type of that line, behind `# wrong:` what the error there is to name; elsewhere
# there is none.
SOURCE = """\
import functools
from typing import Any

from jaxtyping import Array, Float
from typing_extensions import reveal_type

from kernel import pad_page_indices, paged_attention, ragged_paged_attention
from shapecheck import checked, contract, relation


@contract("heads % groups == 0", relation("window is None or window % 128 == 0", name="whole"))
def attend(q: Float[Array, "heads head_dim"], groups: int, *, window: int | None = None) -> Float[Array, "heads head_dim"]:
    return q


class Model:
    @contract("heads % groups == 0")
    def run(self, q: Float[Array, "heads head_dim"], groups: int) -> list[int]:
        return [groups]


def plain(size: int, name: str = "") -> bytes:
    return name.encode() * size


positive = checked(plain, "size > 0")

reveal_type(attend)  # reveal: q: Array, groups: int, *, window: int | None -> Array
reveal_type(Model().run)  # reveal: q: Array, groups: int -> list[int]
reveal_type(positive)  # reveal: size: int, name: str -> bytes
reveal_type(checked(functools.partial(plain, 2), "size > 0"))  # reveal: partial[bytes]
reveal_type(relation("a > 0"))  # reveal: Rule
reveal_type(paged_attention)  # reveal: megacore_mode: Literal['kv_head', 'batch'] | None
reveal_type(paged_attention)  # reveal: pages_per_compute_block: SupportsIndex -> Array
reveal_type(ragged_paged_attention)  # reveal: num_kv_pages_per_block: SupportsIndex | None -> Array


def use(q: Array, pages: Array, table: Array, groups: int, anything: Any) -> None:
    reveal_type(attend(q, groups))  # reveal: Array
    reveal_type(pad_page_indices(table, 4))  # reveal: Array
    paged_attention(q, pages, pages, table, table, pages_per_compute_block=4, megacore_mode="kv_head")
    paged_attention(q, pages, pages, table, table, pages_per_compute_block=4, megacore_mode="kv_heads")  # wrong: megacore_mode
    paged_attention(q, pages, pages, table, table, pages_per_compute_blocks=4)  # wrong: pages_per_compute_blocks
    paged_attention(q, pages, pages, table, table, 4, pages_per_compute_block=4)  # wrong: positional
    paged_attention(q, pages, pages, table, table, pages_per_compute_block=4, implementation="cuda")  # wrong: implementation
    ragged_paged_attention(q, pages, table, table, table, table, sm_scales=1.0)  # wrong: sm_scales
    attend(q, groups, windw=1)  # wrong: windw
    attend(q, "2")  # wrong: int
    Model().run(q)  # wrong: groups
    positive(1, size="")  # wrong: size
    relation("a > 0", nam="x")  # wrong: nam
    attend(anything, anything, window=anything)
"""


def tool(name: str) -> str:
    """Return a tool, beside this Python or on the path."""
    found = shutil.which(name, path=os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", ""))))
    if found is None:
        pytest.skip(f"{name} is not installed: it is in the extra `dev`")
    return found


def ran(command: list[str], folder: Path) -> str:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env={**os.environ, "MYPYPATH": str(ROOT)}).stdout


class Message(NamedTuple):
    line: int
    is_error: bool
    text: str


def seen_by_pyright(folder: Path) -> list[Message]:
    (folder / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [str(ROOT)], "typeCheckingMode": "strict"}))
    report = json.loads(ran([tool("pyright"), "--outputjson", "--pythonpath", sys.executable, "user.py"], folder))
    return [
        Message(each["range"]["start"]["line"] + 1, each["severity"] == "error", each["message"])
        for each in report["generalDiagnostics"]
    ]


def seen_by_mypy(folder: Path) -> list[Message]:
    (folder / "mypy.ini").write_text("[mypy]\nstrict = True\nfollow_imports = silent\n")
    report = ran([tool("mypy"), "--config-file=mypy.ini", f"--python-executable={sys.executable}", "user.py"], folder)
    lines = re.findall(r"^user\.py:(\d+): (\w+): (.*)$", report, re.MULTILINE)
    assert lines, report
    return [Message(int(line), kind == "error", text) for line, kind, text in lines]


@pytest.mark.parametrize("seen_by", [seen_by_pyright, seen_by_mypy])
def test_signatures_are_those_of_the_functions(seen_by: Callable[[Path], list[Message]], tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(SOURCE)
    seen = seen_by(tmp_path)
    for number, line in enumerate(SOURCE.splitlines(), 1):
        errors = [each.text for each in seen if each.line == number and each.is_error]
        shown = [plainly(each.text) for each in seen if each.line == number and not each.is_error]
        _, is_wrong, word = line.partition("  # wrong: ")
        assert bool(errors) == bool(is_wrong), (line, errors)
        assert not is_wrong or any(word in error for error in errors), (line, errors)
        if "  # reveal: " in line:
            for part in re.split(r", | -> ", line.partition("  # reveal: ")[2]):
                assert part in shown[0], line


def plainly(message: str) -> str:
    """Return a type without the modules that its parts come from, nor defaults."""
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", message).replace(" =", "")


def plain(size: int, name: str = "") -> bytes:
    """Repeat a name."""
    return name.encode() * size


def test_inspect_sees_the_same_and_help_shows_the_docstring() -> None:
    for guarded in (contract("size > 0")(plain), checked(plain, "size > 0")):
        assert inspect.signature(guarded) == inspect.signature(plain)
        assert guarded.__doc__ == "Repeat a name."
    parameters = inspect.signature(paged_attention).parameters
    assert parameters["megacore_mode"].default is None
    assert parameters["pages_per_compute_block"].kind is inspect.Parameter.KEYWORD_ONLY
    assert inspect.getdoc(paged_attention) == inspect.cleandoc(paged_attention.__wrapped__.__doc__)


@pytest.mark.parametrize("package", ["shapecheck", "kernel", "codemods"])
def test_the_packages_say_that_they_are_typed(package: str) -> None:
    assert (ROOT / package / "py.typed").exists()
