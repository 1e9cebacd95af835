"""The arguments of the command line."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

from codemods.config import Settings, chip_name, code_prefix, exclusion
from codemods.help_texts import (
    CHECK_EXAMPLES,
    COMPILE_EXAMPLES,
    DESCRIPTION,
    EPILOG,
    EXPLAIN_EXAMPLES,
    FIX_EXAMPLES,
    LSP_EXAMPLES,
    PLAN_EXAMPLES,
    STUB_EXAMPLES,
)
from codemods.report import FORMATS, PEOPLE
from codemods.stated import add_call, add_compiler, positive


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Parse the arguments, `sys.argv` for None; wrong ones end the process with status 2."""
    parser = argparse.ArgumentParser("shapecheck", description=DESCRIPTION, epilog=EPILOG, formatter_class=_formatter)
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    parser.add_argument(
        "--completion", action=_Completion, metavar="SHELL", help="print what completes the command line in bash, zsh or fish"
    )
    commands = parser.add_subparsers(dest="command", metavar="check|fix|compile|explain|plan|stub|lsp", required=True)

    check = _command(commands, "check", "report calls that break a contract", CHECK_EXAMPLES)
    _add_files(check)
    _add_report(check)

    fix = _command(commands, "fix", "repair calls that break a contract", FIX_EXAMPLES)
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
    compile_ = _command(commands, "compile", "ask the TPU compiler whether a call compiles", COMPILE_EXAMPLES)
    add_call(compile_)
    group = compile_.add_argument_group("report")
    _add_chip(group)
    group.add_argument("--output-format", choices=("text", "json"), default="text", help="default: text")
    add_compiler(check, caches=False)
    add_compiler(compile_)

    explain = _command(commands, "explain", "say what a code, or an error, means", EXPLAIN_EXAMPLES)
    explain.add_argument(
        "what",
        nargs="*",
        metavar="CODE|TEXT",
        help="a code, the name of a rule, the text of an error, or - for one on standard input; none: list all codes",
    )
    explain.add_argument("--output-format", choices=("text", "json"), default="text", help="default: text")

    _add_plan(_command(commands, "plan", "choose a compute block and a megacore mode for a model on a chip", PLAN_EXAMPLES))

    stub = _command(commands, "stub", "write the contracts as stubs for the type checker pyrefly", STUB_EXAMPLES)
    stub.add_argument(
        "callees",
        nargs="*",
        metavar="CALLEE|FILE",
        help="paged_attention, ragged_paged_attention, or a file with @contract; none: both kernels",
    )
    stub.add_argument("--output", metavar="FOLDER", default="shape_stubs", help="where to write them; default: shape_stubs")

    _command(commands, "lsp", "check in an editor: a language server, on standard input and output", LSP_EXAMPLES).add_argument(
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
