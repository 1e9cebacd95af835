"""Every code block, output and table of the README and of `docs/`, executed.

`python -m tests.test_readme` brings the outputs up to date.
"""

from __future__ import annotations

import configparser
import contextlib
import importlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from codemods import verdicts
from codemods.arguments import overlay, parse
from codemods.config import Configuration
from codemods.evaluate import cases, entries, iteration, loops, machine, state
from codemods.evaluate.arrays import contents
from codemods.explain import Explanation, explanations
from codemods.lsp.settings import EditorSettings, read_settings
from codemods.report import FORMATS
from shapecheck import ContractError
from shapecheck.contracts import CONTRACTS, PAGED_ATTENTION

from . import rule_pages, sessions
from .marked import complaints, source_of

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
DOCS = ROOT / "docs"
EXAMPLES = ROOT / "examples" / "README.md"
PAGES = (README, EXAMPLES, *sorted(DOCS.glob("*.md")))
ALL_PAGES = (*PAGES, *sorted(DOCS.glob("*/**/*.md")))
BY_NAME = ("values", "counterexample", "verdicts")  # whose keys are those of the relation, or codes
MARKED = re.MULTILINE | re.DOTALL
ARRAYS = CONTRACTS["paged_attention"].sample.partition("out =")[0]
BLOCK = re.compile(r"^```([\w-]+)\n(.*?)^```$", MARKED)
RUN_BY = {
    "python": "test_python_does_what_the_page_says",
    "text": "the same: it is what the block above prints",
    "console": "test_commands_print_what_the_page_says",
    "sh": "test_commands_are_such",
    "yaml": "test_commands_are_such, as for what runs shapecheck",
    "py": "test_verdicts_are_those_that_the_page_says, test_the_comment_shown_keeps_a_finding_back",
    "log": "test_pytest_plugin.py",
    "jsonc": "test_the_keys_shown_are_those_of_the_format",
    "shell-session": "tests/compiler/test_compiler.py",
}
"""What looks at the blocks of each language; in other languages stand settings of other programs."""
PROGRAMS = ("python", "pycon", "py", "console", "shell", "shell-session", "bash", "zsh", "sh", "powershell", "doctest")


class Block(NamedTuple):
    """A fenced block: what is in it, and where in the file."""

    page: Path
    language: str
    body: str
    start: int
    end: int

    @property
    def line(self) -> int:
        return self.page.read_text()[: self.start].count("\n") + 1

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks_of(page: Path, *languages: str) -> list[Block]:
    found = BLOCK.finditer(page.read_text())
    return [Block(page, each[1], each[2], each.start(2), each.end(2)) for each in found if each[1] in languages]


def blocks(*languages: str) -> list[Block]:
    return [block for page in PAGES for block in blocks_of(page, *languages)]


def setup_commands() -> list[str]:
    return [line for block in blocks_of(README, "sh") for line in block.body.splitlines()]


def marked(name: str, page: str = "") -> str:
    """Return the table of that name, on the page of that name, or another."""
    found = re.search(rf"^<!-- {name}:.*?-->\n(.*?)^<!-- end -->$", (DOCS / f"{page or name}.md").read_text(), MARKED)
    assert found is not None
    return found[1]


# ---- Python blocks, in order, in one namespace; a `text` block after one is what it prints and raises


@cache
def python_outputs(page: Path) -> dict[int, str]:
    """Execute the Python blocks of a page; return the output of each, by the position of the `text` block that shows it."""
    namespace: dict[str, Any] = {"__name__": "readme"}
    outputs: dict[int, str] = {}
    sequence = blocks_of(page, "python", "text")
    for block, after in zip_longest(sequence, sequence[1:]):
        if block.language == "python":
            output = executed(block, namespace)
            if after is not None and after.language == "text":
                outputs[after.start] = output
            else:
                assert output == "", f"{block} prints, or raises, what the page does not show:\n{output}"
    return outputs


def executed(block: Block, namespace: dict[str, Any]) -> str:
    code = compile("\n" * block.line + block.body, str(block.page), "exec", dont_inherit=True)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            exec(code, namespace)
        except Exception as error:
            print(f"{type(error).__name__}: {error}")
    return printed.getvalue()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_does_what_the_page_says(page: Path) -> None:
    outputs = python_outputs(page)
    for block in blocks_of(page, "text"):
        assert block.body == outputs[block.start], str(block)


# ---- commands


def executed_command(command: str) -> tuple[int, str]:
    words = shlex.split(command)
    if words[0] == "shapecheck":
        words = ["python", "-m", "codemods", *words[1:]]
    words[0] = sys.executable
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100"}
    run = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT, env=environment)
    return run.returncode, run.stdout


def with_output(console: str) -> str:
    """Return a `console` block with the output of its commands as it is now."""
    commands = [line for line in console.splitlines() if line.startswith("$ ")]
    return "".join(f"{command}\n{executed_command(command[2:])[1]}" for command in commands)


@pytest.mark.parametrize("block", [block for block in blocks("console") if block.page not in sessions.PAGES], ids=str)
def test_commands_print_what_the_page_says(block: Block) -> None:
    assert block.body == with_output(block.body)


@pytest.mark.parametrize("page", sessions.PAGES, ids=lambda page: page.name)
def test_a_session_goes_as_the_page_says(page: Path) -> None:
    bodies = [block.body for block in blocks_of(page, "console")]
    assert bodies == sessions.outputs(bodies)


def test_the_first_command_makes_an_environment_and_runs_the_main_job_there() -> None:
    create, install, *job = setup_commands()[0].split(" && ")
    assert create == "python3 -m venv .venv"
    assert install == ".venv/bin/python -m pip install -q ."
    assert [words.split()[:4] for words in job] == [
        [".venv/bin/python", "-m", "codemods", "check"],
        [".venv/bin/python", "-m", "codemods", "fix"],
    ]
    assert [executed_command(command)[0] for command in job] == [0, 0]


def test_without_exit_zero_both_have_something_to_report() -> None:
    _, _, *job = setup_commands()[0].replace("--exit-zero ", "").split(" && ")
    assert [executed_command(command)[0] for command in job] == [1, 1]


def test_the_second_command_makes_an_environment_and_runs_the_tests_there() -> None:
    command = setup_commands()[1]
    assert len(setup_commands()) == 2
    assert command.startswith("python3 -m venv .venv-test && .venv-test/bin/python -m pip install -q '.[test]' && ")
    assert command.endswith(" && .venv-test/bin/python -m pytest -q -n auto")


def test_the_settings_shown_are_settings(tmp_path: Path) -> None:
    (block,) = blocks_of(DOCS / "configuration.md", "toml")
    (tmp_path / "pyproject.toml").write_text(block.body)
    options = parse(["check"])
    settings = Configuration(lambda settings: overlay(options, settings)).nearest(str(tmp_path))
    shown = tomllib.loads(block.body)["tool"]["shapecheck"]
    assert set(shown) == set(settings._fields) - {"select"}
    assert settings.chips == ("v5p",)


def test_the_settings_of_editors_start_the_server_with_settings_that_there_are() -> None:
    page = DOCS / "editors.md"
    section, vs_code = (json.loads(block.body) for block in blocks_of(page, "json"))
    assert set(section["shapecheck"]) == set(EditorSettings._fields)
    assert read_settings(section)[1] == []
    assert [vs_code["glspc.server.command"], *vs_code["glspc.server.commandArguments"]] == ["shapecheck", "lsp"]
    assert read_settings(vs_code["glspc.server.initializationOptions"])[1] == []
    assert "source.fixAll.shapecheck" in vs_code["[python]"]["editor.codeActionsOnSave"]
    (helix,) = (tomllib.loads(block.body) for block in blocks_of(page, "toml"))
    server = helix["language-server"]["shapecheck"]
    assert [server["command"], *server["args"]] == ["shapecheck", "lsp"]
    assert read_settings(server["config"])[1] == []
    for block in blocks_of(page, "lua", "elisp"):
        assert re.search(r'"shapecheck",? "lsp"', block.body)
        assert all(block.body.count(one) == block.body.count(other) for one, other in ("()", "{}", "[]"))
        assert re.findall(r"chips\W+v5p", block.body)


def test_the_settings_of_flake8_are_options_of_the_plugin() -> None:
    (block,) = blocks_of(DOCS / "flake8.md", "ini")
    settings = configparser.ConfigParser()
    settings.read_string(block.body)
    helped = subprocess.run([sys.executable, "-m", "flake8", "--help"], capture_output=True, text=True, check=True).stdout
    assert all(f"--{key}" in helped for key in settings["flake8"])


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: page.name)
def test_no_block_escapes(page: Path) -> None:
    """A block that is indented, or has no language, would not be found; one in another language would not be run."""
    text = page.read_text()
    fences = re.findall(r"^[ \t>]*(?:```|~~~)", text, re.MULTILINE)
    found = [each[1] for each in BLOCK.finditer(text)]
    assert len(fences) == 2 * len(found)
    assert [language for language in found if language in PROGRAMS and language not in RUN_BY] == []
    assert "shell-session" not in found or page.name == "compiler.md"


def test_py_stands_where_it_is_judged() -> None:
    assert {block.page.name for block in blocks("py")} == {"suppression.md", "verdicts.md"}


def test_no_page_escapes() -> None:
    """What is not run here is made of the rules, and held to them by test_rule_pages.py."""
    assert {*DOCS.rglob("*.md")} == {*PAGES, *rule_pages.FOLDER.iterdir()} - {README, EXAMPLES}


def commands() -> Iterator[tuple[str, str]]:
    """Yield each command of the pages that shows no output, with where it stands."""
    for block in blocks("sh", "yaml"):
        for line in block.body.splitlines():
            if block.language == "sh" and block.page != README:
                yield line, str(block)
            elif found := re.search(r"\bshapecheck (?:check|fix|compile|explain|plan)\b.*", line):
                yield found[0], str(block)


@pytest.mark.parametrize(("command", "place"), list(commands()))
def test_commands_are_such(command: str, place: str) -> None:
    program, *words = shlex.split(command, comments=True)
    if program == "shapecheck":
        parse(words)
    else:
        assert program in ("pytest", "python", "pip", "pre-commit", "git"), f"{place}: make it one that is run, or checked here"


def test_the_comment_shown_keeps_a_finding_back() -> None:
    (block,) = blocks_of(DOCS / "suppression.md", "py")
    calls = ARRAYS + block.body
    assert [finding.code for finding in rule_pages.checked(calls, "SC102", "").report.findings] == []
    without = rule_pages.checked(calls.replace("  # shapecheck: ignore[SC102]", ""), "SC102", "")
    assert [finding.code for finding in without.report.findings] == ["SC102"]


@pytest.mark.parametrize("block", blocks_of(DOCS / "verdicts.md", "py"), ids=str)
def test_verdicts_are_those_that_the_page_says(block: Block, tmp_path: Path) -> None:
    path = tmp_path / "example.py"
    path.write_text(ARRAYS + block.body)
    assert "#:" in block.body
    assert complaints(source_of(path), tmp_path) == []


def test_the_bounds_shown_are_those_of_the_code() -> None:
    shown = [int(number.replace(",", "")) for number in re.findall(r"^\| ([\d,]+) ", marked("bounds", "verdicts"), re.MULTILINE)]
    assert shown == [
        machine.MAX_STEPS,
        entries.FILE_STEPS,
        machine.MAX_DEPTH,
        loops.MAX_ROUNDS,
        iteration.MAX_ELEMENTS,
        cases.MAX_CASES,
        state.MAX_ALTERNATIVES,
        verdicts.MAX_COMBINATIONS,
    ]
    assert iteration.MAX_ELEMENTS == contents.LIMIT


def test_the_keys_shown_are_those_of_the_format() -> None:
    (block,) = blocks_of(DOCS / "formats.md", "jsonc")
    _, output = executed_command("shapecheck check --unproven --output-format json examples")

    def keys(value: Any) -> set[str]:
        if isinstance(value, list):
            return set[str]().union(*map(keys, value))
        if not isinstance(value, dict):
            return set()
        named = {key: each for key, each in value.items() if re.fullmatch("[a-z_]+", key)}
        return {*named, *set[str]().union(*(keys(each) for key, each in named.items() if key not in BY_NAME))}

    assert {*re.findall(r'"(\w+)"', block.body)} == keys(json.loads(output)) | {"notes", "violating", "total", "example"} | {
        "value", "origin", "path", "line", "message"
    }  # fmt: skip


# ---- tables


def rules_table() -> str:
    lines = ["| Code | Name | What it demands | |", "|---|---|---|---|"]
    lines += [
        f"| [{each.code}](rules/{each.code}.md) | {each.name} | {_demand(each)} | {_repair(each)} |" for each in explanations()
    ]
    return "".join(f"{line}\n" for line in lines)


def _demand(explanation: Explanation) -> str:
    """Return the message, with the kernels that a rule is about where `paged_attention` is none of them."""
    kernels = [contract.name for contract in CONTRACTS.values() if any(explanation.code == each.code for each in contract.rules)]
    others = "" if not kernels or PAGED_ATTENTION.name in kernels else f" ({', '.join(f'`{name}`' for name in kernels)})"
    return explanation.message + others


def _repair(explanation: Explanation) -> str:
    return "fix" if any(note.startswith("Fix: ") for note in explanation.notes) else ""


def test_the_table_of_rules_is_that_of_the_contracts() -> None:
    assert marked("rules") == rules_table()


def mistakes() -> list[tuple[str, str, str]]:
    rows = marked("mistakes").splitlines()[2:]
    return [tuple(cell.strip() for cell in row.strip("|").split("|")) for row in rows]  # type: ignore[misc]


def made(mistake: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of the README's call, sizes only but where values matter, with this mistake in them."""
    import jax
    import jax.numpy as jnp
    from jax.experimental.pallas.ops.tpu.paged_attention.quantization_utils import QuantizedTensor

    q, k_pages, v_pages, lengths, page_indices = (
        jax.ShapeDtypeStruct(shape, dtype)
        for shape, dtype in (
            ((8, 32, 128), jnp.bfloat16),
            ((8, 192, 16, 128), jnp.bfloat16),
            ((8, 192, 16, 128), jnp.bfloat16),
            ((8,), jnp.int32),
            ((8, 24), jnp.int32),
        )
    )
    block, others = 8, {}
    match mistake:
        case "`q` has 4 axes":
            q = jax.ShapeDtypeStruct((8, 1, 32, 128), jnp.bfloat16)
        case "a block of 0, from `128 // page_size`":
            block = 128 // 256
        case "7 rows of `lengths`":
            lengths = jax.ShapeDtypeStruct((7,), jnp.int32)
        case "`int16` page ids":
            page_indices = jax.ShapeDtypeStruct((8, 24), jnp.int16)
        case "`k_pages` quantized, `v_pages` not":
            weight = jax.ShapeDtypeStruct(k_pages.shape, jnp.int8)
            k_pages = QuantizedTensor(weight, jax.ShapeDtypeStruct((*k_pages.shape[:-1], 1), jnp.float32))
        case '`megacore_mode="kv_head"`, 1 KV head':
            k_pages = v_pages = jax.ShapeDtypeStruct((1, 192, 16, 128), jnp.bfloat16)
            others = {"megacore_mode": "kv_head"}
        case "`attn_logits_soft_cap=0.0`, for no cap":
            others = {"attn_logits_soft_cap": 0.0}
        case "`mask_value=0.0`":
            others = {"mask_value": 0.0}
        case "`int32` queries":
            q = jax.ShapeDtypeStruct(q.shape, jnp.int32)
        case _:
            pytest.fail(f"not known: {mistake}")
    return (q, k_pages, v_pages, lengths, page_indices), {"pages_per_compute_block": block, **others}


@pytest.mark.parametrize(("mistake", "today", "rule"), mistakes())
def test_jax_says_of_a_mistake_what_the_readme_says(mistake: str, today: str, rule: str) -> None:
    import jax
    from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

    arrays, others = made(mistake)
    lower = jax.export.export(jax.jit(lambda *arrays: paged_attention(*arrays, **others)), platforms=["tpu"])
    if today == "none: wrong numbers":
        lower(*arrays)
        return
    name, _, message = today.strip("` ").partition(": ")
    words = "" if name == "ZeroDivisionError" else re.escape(message.removesuffix(")"))  # Python's own words change
    with pytest.raises(Exception, match=rf"^{words}") as raised:
        lower(*arrays)
    assert type(raised.value).__name__ == name


@pytest.mark.parametrize(("mistake", "today", "rule"), mistakes())
def test_shapecheck_names_the_mistake(mistake: str, today: str, rule: str) -> None:
    import jax

    from kernel import paged_attention

    arrays, others = made(mistake)
    with pytest.raises(ContractError) as raised:
        jax.eval_shape(lambda *arrays: paged_attention(*arrays, **others), *arrays)
    assert rule in {f"{each.rule.code} {each.rule.name}" for each in raised.value.violations}


def test_the_silent_mistakes_change_the_numbers() -> None:
    import jax.numpy as jnp
    import numpy as np
    from jax.experimental.pallas import tpu as pltpu
    from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

    random = np.random.default_rng(0)
    q = jnp.asarray(random.integers(-2, 3, (1, 1, 128)), jnp.float32)  # the same as integers
    k, v = (jnp.asarray(random.normal(size=(1, 1, 16, 128)), jnp.float32) for _ in range(2))
    lengths, table = jnp.array([10], jnp.int32), jnp.zeros((1, 1), jnp.int32)

    def run(query: Any, **others: Any) -> Any:
        with pltpu.force_tpu_interpret_mode():
            return np.asarray(paged_attention(query, k, v, lengths, table, pages_per_compute_block=1, **others), np.float32)

    right = run(q)
    for wrong in (run(q, attn_logits_soft_cap=0.0), run(q, mask_value=0.0), run(q.astype(jnp.int32))):
        assert np.abs(wrong - right).max() > 0.1


def test_following_the_message_of_jax_does_not_help() -> None:
    import jax
    from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

    arrays, _ = made("`mask_value=0.0`")
    with pytest.raises(ValueError, match=r"must be divisible by pages per sequence\. Got 48 and 24"):
        jax.eval_shape(lambda *arrays: paged_attention(*arrays, pages_per_compute_block=48), *arrays)


def links(page: Path) -> list[str]:
    """Return what a page links to in this repository."""
    return [link for link in re.findall(r"\]\(([^)#]+)", page.read_text()) if "://" not in link]


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    assert [link for link in links(page) if not (page.parent / link).exists()] == []


def test_every_page_is_found_from_the_readme() -> None:
    assert {page for page in PAGES if page != README} <= {(ROOT / link).resolve() for link in links(README)}


@pytest.mark.parametrize("output_format", FORMATS)
def test_every_format_is_described(output_format: str) -> None:
    assert f"| `{output_format}` |" in (DOCS / "formats.md").read_text()


def update() -> None:
    """Write the present outputs and the present table of rules into the pages, and the pages of the rules."""
    importlib.import_module("tests.conftest")  # which pytest does: the pages need 8 devices
    pages = rule_pages.pages()
    rule_pages.FOLDER.mkdir(exist_ok=True)
    for stale in {*rule_pages.FOLDER.iterdir()} - {*pages}:
        stale.unlink()
    for page, text in pages.items():
        page.write_text(text)
    for page in PAGES:
        text = page.read_text()
        session = sessions.outputs([block.body for block in blocks_of(page, "console")]) if page in sessions.PAGES else []
        for block in reversed(blocks_of(page, "console", "text")):
            if block.language == "console":
                body = session.pop() if session else with_output(block.body)
            else:
                body = python_outputs(page)[block.start]
            text = text[: block.start] + body + text[block.end :]
        table = re.compile(r"(?<=^<!-- rules:)(.*?-->\n).*?(?=^<!-- end -->$)", MARKED)
        page.write_text(table.sub(lambda found: found[1] + rules_table(), text))


if __name__ == "__main__":
    update()
