"""The arguments of the command line."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

from codemods.config import Settings, chip_name, code_prefix, exclusion
from codemods.report import FORMATS, PEOPLE
from codemods.stated import add_call, add_compiler, positive

_DESCRIPTION = """\
Find calls of TPU paged-attention kernels that break the kernel's contract, and repair them.
The code is read, never run."""

_EXIT_STATUS = """
exit status:
  0  nothing to report, or all of it fixed
  1  findings remain
  2  wrong usage or configuration, or a file that could not be read or parsed; the others are dealt with all the same"""

_COMMENTS = """
comments that keep findings back, on an end of the call or on the line of the argument:
  # shapecheck: ignore[SC102, SC201]         these rules, named in full: SC1 is no prefix here
  # shapecheck: ignore                       every rule
  # shapecheck: skip-file                    the whole file
  # noqa: SC102                              the same as ignore[SC102]; # noqa as ignore
`check --select SC902` finds those that keep nothing back, `fix --select SC902` removes them."""

_EPILOG = f"""\
{_EXIT_STATUS.lstrip()}

settings are read from [tool.shapecheck] of the nearest pyproject.toml: select, ignore, chips, exclude, unproven,
strict, baseline

each command has examples: shapecheck check --help"""

_CHECK_EXAMPLES = f"""\
examples:
  shapecheck check                           the folder you are in
  shapecheck check --strict --chip v5p src   every call must be proven legal, on a v5p
  shapecheck check --output-format github .  annotations for a workflow
  shapecheck check --output-format sarif --output-file shapecheck.sarif .
  shapecheck check --select SC2 .            only what concerns megacore
  shapecheck check --compile --chip v5p src  what the TPU compiler says of calls whose sizes are known
  shapecheck check --write-baseline known.json .
                                             accept what there is, to see only what is new:
  shapecheck check --baseline known.json .
  shapecheck check --stdin-filename a.py - < a.py
{_COMMENTS}
{_EXIT_STATUS}"""

_FIX_EXAMPLES = f"""\
examples:
  shapecheck fix .                           apply the safe fixes
  shapecheck fix --diff . | git apply        the same, as a patch
  shapecheck fix --unsafe-fixes src          those that may change meaning or cost as well
  shapecheck fix --adopt src                 use the typed front door, and state contracts
  shapecheck fix - < a.py > fixed.py

repairs: another block or mode where it is written down; with --unsafe-fixes also largest_divisor(...) and
megacore_mode_for(...) for sizes that are known at run time only. `shapecheck explain CODE` tells that of each rule.
Every result is checked again. A repair that would not do is left out: its finding remains and says why, exit status 1.

output: the report, in any format, goes to standard output; with --diff, or where a file is read from standard
input, the patch or the repaired file goes there, and the report to standard error. On a terminal a patch is in color.

{_EXIT_STATUS}
With --diff it is 1 as well where there is something to change."""

_COMPILE_EXAMPLES = """\
examples:
  shapecheck compile --chip v5p --q-heads 32 --kv-heads 8 --block 8
  shapecheck compile --chip v5e,v6e --batch 256 --pages-per-sequence 2048 --output-format json
  shapecheck compile --chip v5p --q-heads 64 --kv-heads 8 --megacore kv_head --mesh model=4
  shapecheck compile --chip v6e --batch 64 --mesh data=2,model=8
  shapecheck compile --chip v5p --pages-dtype int8 --scales-dtype float32
  shapecheck compile --callee ragged_paged_attention --chip v6e --tokens 512 --block 16 --query-block 32
  shapecheck compile --chip v5p --call src/serve.py:120             the sizes that the source says
  shapecheck compile --chip v5p --call src/serve.py:120 --batch 64  and those that it does not

exit status:
  0  it compiles, for every chip
  1  it does not, or it goes wrong, or hangs, when it runs
  2  wrong usage, sizes that are not known, or no answer: libtpu is absent, took too long or crashed

libtpu compiles for chips that are not there; no TPU is needed, and none is touched. It comes with
`pip install 'shapecheck-pallas[tpu]'`, for Linux, and runs in a process of its own. Answers are kept in the
user's cache folder."""

_EXPLAIN_EXAMPLES = """\
examples:
  shapecheck explain                         every code with its message
  shapecheck explain SC102                   what it demands, why, and how to repair it
  shapecheck explain "ValueError: ... Got 16 and 24."      which rule an error is about, and what would be legal
  python serve.py 2>&1 | shapecheck explain -              the same for a traceback, or a log with one in it
  pytest 2>&1 | shapecheck explain --output-format json -
  shapecheck explain "decode hangs on v5e with megacore_mode='batch'"

Errors of JAX's kernels are known, of Pallas, of the TPU compiler, of torch_xla's and ejkernel's wrappers, and what
shapecheck itself prints. Of a text that is about something else, nothing is guessed. Nothing is run.

exit status:
  0  all of it is explained
  1  a text in which nothing is recognised, or that is empty
  2  there is no such code"""


_PLAN_EXAMPLES = """\
examples:
  shapecheck plan config.json --chip v5e --batch 64 --context 8192
  shapecheck plan config.json --chip v4,v5p --tp 4 --batch 32 --context 4096 --page-size 32
  shapecheck plan --q-heads 28 --kv-heads 4 --head-dim 128 --chip v6e --batch 16 --context 32768
  shapecheck plan config.json --chip v5e --batch 8 --context 100000 --pages-dtype int8 --output-format json
  shapecheck plan config.json --chip v6e --batch 32 --context 8192 --compile --plot plan.png

exit status:
  0  every chip has a legal choice
  1  one has none
  2  wrong usage, a model that cannot be read, or no compiler to ask"""


_STUB_EXAMPLES = """\
examples:
  shapecheck stub                            of all kernels, into shape_stubs
  shapecheck stub paged_attention --output stubs
  shapecheck stub kernels.py                 of the functions in this file that state contracts

pyrefly follows the shapes of arrays, with `pip install pyrefly jax-pyrefly-stubs`. With `search-path = ["shape_stubs"]` in
pyrefly.toml, a call whose sizes break a rule is an error there. What its language has no words for is listed, here and
at the head of each stub. See docs/type-checkers.md.

exit status: 0; 2 where a file is there that is not ours, or cannot be written"""


_LSP_EXAMPLES = """\
It comes with `pip install 'shapecheck-pallas[lsp]'`. An editor starts it; docs/editors.md has settings for some.

initializationOptions, or the section `shapecheck` of the editor's settings, go on top of [tool.shapecheck]:
  {"chips": ["v5p"], "select": [], "ignore": ["SC115"], "unproven": true}

exit status: 0 when the editor ends it; 2 where pygls is not installed"""


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Parse the arguments, `sys.argv` for None; wrong ones end the process with status 2."""
    parser = argparse.ArgumentParser("shapecheck", description=_DESCRIPTION, epilog=_EPILOG, formatter_class=_formatter)
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    parser.add_argument(
        "--completion", action=_Completion, metavar="SHELL", help="print what completes the command line in bash, zsh or fish"
    )
    commands = parser.add_subparsers(dest="command", metavar="check|fix|compile|explain|plan|stub|lsp", required=True)

    check = _command(commands, "check", "report calls that break a contract", _CHECK_EXAMPLES)
    _add_files(check)
    _add_report(check)

    fix = _command(commands, "fix", "repair calls that break a contract", _FIX_EXAMPLES)
    _add_files(fix)
    _add_report(fix)
    fix.add_argument("--diff", action="store_true", help="print the changes as a patch, and make none")
    fix.add_argument("--unsafe-fixes", action="store_true", help="apply fixes that may change meaning or cost as well")

    fix.add_argument("--adopt", action="store_true", help="afterwards, call the kernel by `from kernel import paged_attention`")
    check.set_defaults(diff=False)
    fix.set_defaults(write_baseline=None)
    for each in (check, fix):
        each.add_argument(
            "--add-ignores",
            action="store_true",
            help="accept what is found today: add a comment that ignores it, and repair nothing",
        )

    check.add_argument("--write-baseline", metavar="FILE", help="accept what is found today, and forget what is gone")
    check.add_argument("--compile", action="store_true", help="ask the TPU compiler about the calls whose sizes are all known")
    compile_ = _command(commands, "compile", "ask the TPU compiler whether a call compiles", _COMPILE_EXAMPLES)
    add_call(compile_)
    group = compile_.add_argument_group("report")
    _add_chip(group)
    group.add_argument("--output-format", choices=("text", "json"), default="text", help="default: text")
    add_compiler(check, caches=False)
    add_compiler(compile_)

    explain = _command(commands, "explain", "say what a code, or an error, means", _EXPLAIN_EXAMPLES)
    explain.add_argument(
        "what",
        nargs="*",
        metavar="CODE|TEXT",
        help="a code, the name of a rule, the text of an error, or - for one on standard input; none: list all codes",
    )
    explain.add_argument("--output-format", choices=("text", "json"), default="text", help="default: text")

    _add_plan(_command(commands, "plan", "choose a compute block and a megacore mode for a model on a chip", _PLAN_EXAMPLES))

    stub = _command(commands, "stub", "write the contracts as stubs for the type checker pyrefly", _STUB_EXAMPLES)
    stub.add_argument(
        "callees",
        nargs="*",
        metavar="CALLEE|FILE",
        help="paged_attention, ragged_paged_attention, or a file with @contract; none: both kernels",
    )
    stub.add_argument("--output", metavar="FOLDER", default="shape_stubs", help="where to write them; default: shape_stubs")

    _command(commands, "lsp", "check in an editor: a language server, on standard input and output", _LSP_EXAMPLES).add_argument(
        "--stdio", action="store_true", help="what it does anyway: editors say so"
    )

    options, strange = parser.parse_known_args(arguments)
    if strange:  # the parser of all commands would show its own usage, which has none of the options
        chosen: argparse.ArgumentParser = commands.choices[options.command]
        chosen.error(f"unrecognized arguments: {' '.join(strange)}{_meant(strange, chosen)}")
    if options.command in ("check", "fix"):
        _settle_input(options, {"check": check, "fix": fix}[options.command])
    if options.command == "check" and options.add_ignores and (options.compile or options.write_baseline):
        check.error(f"--{'compile' if options.compile else 'write-baseline'} is not for --add-ignores")
    if options.command in ("check", "plan") and not options.compile:
        asked = {
            "--timeout": options.timeout,
            "--jobs": options.jobs,
            "--no-cache": options.command == "plan" and options.no_cache,
        }
        for name, given in asked.items():
            if given:
                commands.choices[options.command].error(f"{name} is for --compile")
    return options


def overlay(options: argparse.Namespace, settings: Settings) -> Settings:
    """Put the command line on top of the settings of a file; a `--select` starts afresh."""
    ignore = () if options.select else settings.ignore
    return Settings(
        select=tuple(options.select or settings.select),
        ignore=(*ignore, *options.ignore),
        chips=tuple(options.chips or settings.chips),
        exclude=(*settings.exclude, *options.exclude),
        unproven=options.unproven or settings.unproven,
        strict=options.strict or settings.strict,
        baseline=settings.baseline if options.baseline is None else options.baseline,
    )


def _meant(strange: list[str], parser: argparse.ArgumentParser) -> str:
    """Return ` (did you mean ...?)` for the first option that the parser does not have, if one comes near."""
    import difflib  # not needed where all is well
    import re

    option = next((each.partition("=")[0] for each in strange if each.startswith("--")), "")
    near = difflib.get_close_matches(option, dict.fromkeys(re.findall(r"--[a-z][a-z-]*", parser.format_usage())), n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def _formatter(prog: str) -> argparse.HelpFormatter:
    return argparse.RawDescriptionHelpFormatter(prog, max_help_position=32)


class _Version(argparse.Action):
    """Looks the version up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from codemods.version import version

        print(f"shapecheck {version()}")
        parser.exit()


class _Completion(argparse.Action):
    """Prints the script of a shell; the parser is whole by the time that it parses."""

    def __call__(self, parser: argparse.ArgumentParser, _: Any, value: Any, option: str | None = None) -> None:
        from codemods.completion import SHELLS, script

        if value not in SHELLS:
            parser.error(f"{option}: no {value!r} among {', '.join(SHELLS)}")
        print(script(parser, value))
        parser.exit()


def _command(commands: Any, name: str, summary: str, examples: str) -> argparse.ArgumentParser:
    return commands.add_parser(
        name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.", epilog=examples, formatter_class=_formatter
    )


def _add_files(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("files")
    group.add_argument("paths", nargs="*", metavar="PATH", help="files and folders, or - for standard input; default: .")
    group.add_argument("--stdin-filename", metavar="FILE", help="what to call standard input")
    group.add_argument(
        "--exclude",
        **_list("PATTERN", lambda pattern: exclusion(pattern, os.getcwd())),
        help="leave out files and folders of this name, or at this path",
    )
    group.add_argument("--no-cache", action="store_true", help="look at everything anew, and keep nothing for the next run")
    group.add_argument("--force-exclude", action="store_true", help="leave them out also where they are named as a PATH")


def _add_report(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("report")
    group.add_argument(
        "--select", **_list("CODE", code_prefix), help="report these only: codes, prefixes such as SC1, names of rules"
    )
    group.add_argument("--ignore", **_list("CODE", code_prefix), help="do not report these")
    _add_chip(group)
    group.add_argument("--unproven", action="store_true", help="report also what cannot be told")
    group.add_argument("--strict", action="store_true", help="the same, and count it as a finding")
    group.add_argument(
        "--output-format", choices=FORMATS, default="text", metavar="FORMAT", help=f"{', '.join(FORMATS)}; default: text"
    )
    group.add_argument("--output-file", metavar="FILE", help="write the report there instead of to standard output")
    group.add_argument("--statistics", action="store_true", help="count the findings of each code instead of listing them")
    group.add_argument("--baseline", type=os.path.abspath, metavar="FILE", help="report only what FILE does not accept")
    group.add_argument("--no-baseline", dest="baseline", action="store_const", const="", help="report what it accepts as well")
    group.add_argument("--exit-zero", action="store_true", help="exit with 0 although findings remain")


def _add_chip(group: Any) -> None:
    group.add_argument("--chip", dest="chips", **_list("CHIP", chip_name), help="a TPU that the code runs on, e.g. v5p")


def _add_plan(parser: argparse.ArgumentParser) -> None:
    model = parser.add_argument_group("model")
    model.add_argument("config", nargs="?", metavar="CONFIG", help="a config.json as Hugging Face has it")
    for option, dest, what in (
        ("--q-heads", "num_q_heads", "query heads"),
        ("--kv-heads", "num_kv_heads", "heads of keys and values"),
        ("--head-dim", "head_dim", "elements of a head"),
        ("--layers", "num_layers", "layers that a device has pages for"),
    ):
        model.add_argument(option, dest=dest, type=positive, metavar="N", help=f"{what}; instead of what the file says")
    place = parser.add_argument_group("where it runs")
    place.add_argument("--chip", dest="chips", required=True, **_list("CHIP", chip_name), help="a TPU, e.g. v5p")
    place.add_argument(
        "--tp", dest="tensor_parallelism", type=positive, default=1, metavar="N", help="devices that share the heads; default: 1"
    )
    load = parser.add_argument_group("what it serves, on each device")
    load.add_argument("--batch", type=positive, required=True, metavar="N", help="sequences")
    load.add_argument("--context", type=positive, required=True, metavar="N", help="tokens that a sequence may come to")
    load.add_argument("--page-size", type=positive, default=16, metavar="N", help="tokens in a page; default: 16")
    load.add_argument("--total-pages", type=positive, metavar="N", help="pages; default: enough for all sequences at full length")
    load.add_argument("--q-dtype", choices=("bfloat16", "float32"), default="bfloat16", help="default: bfloat16")
    load.add_argument(
        "--pages-dtype", choices=("bfloat16", "float32", "int8"), default="bfloat16", help="int8: quantized; default: bfloat16"
    )
    parser.add_argument("--output-format", choices=("text", "json"), default="text", help="default: text")
    parser.add_argument("--plot", metavar="FILE", help="draw the vector memory of each block, with the limit; needs matplotlib")
    parser.add_argument("--compile", action="store_true", help="ask the TPU compiler about each choice that breaks no rule")
    add_compiler(parser)


def _list(metavar: str, check: Callable[[str], str]) -> dict[str, Any]:
    """Return the keywords of an option that takes a comma-separated list and may be repeated."""

    def parse(text: str) -> list[str]:
        try:
            return [check(item.strip()) for item in text.split(",")]
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return {"action": "extend", "default": [], "metavar": metavar, "type": parse}


def _settle_input(options: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    options.paths = options.paths or (["-"] if options.stdin_filename else ["."])
    if "-" in options.paths and len(options.paths) > 1:
        parser.error("standard input (-) cannot be mixed with other paths")
    if options.stdin_filename and options.paths != ["-"]:
        parser.error("--stdin-filename is for standard input (-)")
    if options.output_file and not os.path.isdir(os.path.dirname(options.output_file) or "."):  # before there is work done
        parser.error(f"--output-file: there is no folder {os.path.dirname(options.output_file)}")
    if options.write_baseline:
        if options.baseline is not None:
            parser.error("--write-baseline names the baseline itself; leave --baseline out")
        options.baseline = os.path.abspath(options.write_baseline)
    if options.statistics and options.output_format not in PEOPLE:
        parser.error(f"--statistics has no {options.output_format} format")
