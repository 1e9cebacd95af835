"""The command line: `shapecheck check|fix|compile|explain|plan|stub`, also as `python -m codemods`."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TextIO

from codemods.arguments import overlay, parse
from codemods.config import ConfigError, Configuration
from codemods.files import Candidate, Found, Stamp, discover, left_out, project_of, shown
from codemods.pool import Died
from codemods.report import PEOPLE, render
from codemods.report.counts import Counts, closing_line, number
from codemods.report.terminal import is_colored, width
from codemods.words import Words

# What only a run with something to look at needs is imported where it is used: most runs, in a pre-commit hook, have nothing.
if TYPE_CHECKING:
    from codemods.baseline import Baselines
    from codemods.check import Analyse, Run
    from codemods.report.progress import Progress

_CLEAN, _FINDINGS, _FAILED = 0, 1, 2
_INTERRUPTED = 130  # as shells have it


class Outcome(NamedTuple):
    """What came of the files.

    Attributes:
        run: what there is to report.
        status: the exit status.
        closing: what is printed after the report.
        repeatable: all that the run did was to look at the files.
    """

    run: Run
    status: int
    closing: str = ""
    repeatable: bool = True


def main(arguments: list[str] | None = None) -> int:
    """Run a command and return its exit status."""
    gc.set_threshold(500_000)  # syntax trees are many objects and live long: to look through them again and again takes time,
    atexit.register(gc.freeze)  # and the most when Python ends
    try:
        options = parse(arguments)
        commands = {
            "check": _check, "fix": _fix, "compile": _compile, "explain": _explain, "plan": _plan, "stub": _stub, "lsp": _lsp,
        }  # fmt: skip
        return commands[options.command](options)
    except ConfigError as error:
        _emit(f"shapecheck: {error}\n", sys.stderr)
        return _FAILED
    except SystemExit:  # a help text was printed, or what is wrong with the arguments
        _emit("", sys.stdout)
        raise
    except BrokenPipeError:  # a script was, or the version, and nobody reads it
        _emit("", sys.stdout)
        return _CLEAN
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Died as error:
        _emit(f"shapecheck: {error}\n", sys.stderr)
        return _FAILED
    except Exception as error:  # a status of 1, Python's own, would say that there are findings
        if isinstance(error, FileNotFoundError) and _is_nowhere():
            _emit("shapecheck: the working folder is not there any more\n", sys.stderr)
            return _FAILED
        import traceback

        _emit(f"{traceback.format_exc()}shapecheck: internal error, please report it\n", sys.stderr)
        return _FAILED


def _is_nowhere() -> bool:
    """Say whether the working folder was deleted: whoever asks where a file is fails then."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def _check(options: Namespace) -> int:
    if options.add_ignores:
        return _fix(options)
    found, _ = _find(options)
    if not found.candidates and not found.problems and not _has_baseline(found, options):
        return _nothing(found, options, sys.stdout)
    return _reported_once(found, options, sys.stdout, lambda: _examine(found, options))


def _examine(found: Found, options: Namespace) -> Outcome:
    from codemods.check import check

    baselines = _baselines(found, options)
    closing = ""
    with _progress() as progress:
        if not options.compile:
            run = check(found, progress.watching(_analysis()))
        else:
            from codemods.compile import asking
            from codemods.compiler import Compiler

            compiler = Compiler(asking(options, progress.compiling))
            run = check(found, progress.watching(partial(_analysis(), geometries=True)), compiler)
            closing = f"{compiler.closing_line}\n" if options.output_format in PEOPLE else ""
    if baselines is not None:
        run = baselines.keep_new(run)
    return Outcome(run, _status(run, options), closing, repeatable=not (options.compile or options.write_baseline))


def _reported_once(found: Found, options: Namespace, stream: TextIO, examine: Callable[[], Outcome]) -> int:
    """Report what there is to say of the files, as an earlier run did if nothing has changed since."""
    from codemods.cache import Cache, Kept
    from codemods.witness import Witness, watching

    cache = Cache(found, (sorted(vars(options).items()), _appearance(options, stream)))
    uses_cache = not options.no_cache and options.paths != ["-"]
    if uses_cache and (kept := cache.recall()):
        _put(kept.report, options, stream)
        return kept.status
    with watching(witness := Witness()):
        outcome = examine()
    report = _rendered(outcome.run, options, stream)
    _put(report, options, stream)
    _emit(outcome.closing, stream)
    if uses_cache and outcome.repeatable and outcome.status != _FAILED:  # who cannot read a file may be able to the next time
        cache.keep(witness, Kept(report, outcome.status))
    return outcome.status


def _fix(options: Namespace) -> int:
    found, standard_input = _find(options)
    shows = options.diff or standard_input is not None  # standard output is for the patch or the file
    stream = sys.stderr if shows else sys.stdout
    if not found.candidates and not found.problems:
        if standard_input is not None and not options.diff:
            _emit(standard_input, sys.stdout)
        return _nothing(found, options, stream)
    return _reported_once(found, options, stream, lambda: _repair(found, options, standard_input))


def _repair(found: Found, options: Namespace, standard_input: bytes | None) -> Outcome:
    """Repair the files, and print what is asked for beside the report."""
    write = None if options.diff else _write if standard_input is None else _leave
    baselines = _baselines(found, options)
    with _progress() as progress:
        analyse = progress.watching(_analysis())
        if options.add_ignores:
            from codemods.ignores import add_ignores

            run, changes = add_ignores(found, analyse, write)
        else:
            from codemods.fix import fix

            run, changes = fix(found, analyse, write, unsafe=options.unsafe_fixes, adopting=options.adopt)
    if baselines is not None:
        run = baselines.keep_new(run)
    if standard_input is not None and not options.diff:
        _emit(changes[0].after if changes else standard_input, sys.stdout)
    elif options.diff and not sys.stdout.isatty():  # for git, whatever FORCE_COLOR says
        from codemods.patch import patch

        _emit(b"".join(map(patch, changes)), sys.stdout)
    elif options.diff or options.output_format == "text":
        from codemods.report.diff import render as render_diff

        color = is_colored(sys.stdout)
        _emit("".join(render_diff(change, run.sources[change.path], color=color) for change in changes), sys.stdout)
    status = _status(run, options)
    if options.diff and changes and not options.exit_zero:
        status = max(_FINDINGS, status)
    closing = ""
    if options.add_ignores and options.output_format in PEOPLE:
        closing = f"comments {'would be ' if options.diff else ''}added to {number(len(changes), 'file')}\n"
    return Outcome(run, status, closing, repeatable=not (changes or options.add_ignores or options.adopt))


def _compile(options: Namespace) -> int:
    from codemods.compile import asking, questions
    from codemods.report.answers import render as render_answers

    with _progress() as progress:
        asked, note = questions(options, _analysis())
        answers = asking(options, progress.compiling)(asked)
    if note:
        _emit(f"shapecheck: {note}\n", sys.stderr)
    _emit(render_answers(answers, options.output_format), sys.stdout)
    if any(answer.compiles is None for answer in answers):
        return _FAILED
    return _CLEAN if all(answer.compiles and not answer.silent for answer in answers) else _FINDINGS


def _explain(options: Namespace) -> int:
    from codemods.answering import answered, as_json, as_text
    from codemods.codes import known_codes
    from codemods.explain import explain_all

    answers = list(answered(options.what or known_codes(), sys.stdin.buffer.read))
    if options.output_format == "json":
        _emit(as_json(answers), sys.stdout)
    else:
        _emit(as_text(answers) if options.what else explain_all(), sys.stdout)
    for each in answers:
        if each.problem:
            _emit(f"shapecheck: {each.problem}\n", sys.stderr)
    return max(each.status for each in answers)


def _plan(options: Namespace) -> int:
    from codemods.planning import planned
    from codemods.report.plans import as_json, as_text

    with _progress() as progress:
        plans = planned(options, progress.compiling)
    _emit(as_json(plans) if options.output_format == "json" else as_text(plans), sys.stdout)
    if options.plot:
        from codemods.report.plot import draw

        draw([each.plan for each in plans], options.plot)
    return _CLEAN if all(each.plan.best and each.plan.cache.fits for each in plans) else _FINDINGS


def _lsp(options: Namespace) -> int:
    try:
        from codemods.lsp.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        raise ConfigError("the language server needs pygls: pip install 'shapecheck-pallas[lsp]'") from None
    serve()
    return _CLEAN


def _stub(options: Namespace) -> int:
    from codemods.stubs.command import write_stubs

    _emit(write_stubs(options.callees, options.output), sys.stdout)
    return _CLEAN


def _find(options: Namespace) -> tuple[Found, bytes | None]:
    """Return the files to look at, and the contents of standard input where that is asked for."""
    configuration = Configuration(lambda settings: overlay(options, settings))
    if options.paths != ["-"]:
        return discover(options.paths, configuration, Words(), force_exclude=options.force_exclude), None
    data = sys.stdin.buffer.read()
    name = options.stdin_filename or "-"
    project = project_of(name, configuration)
    if (options.force_exclude and left_out(name, project.settings)) or not Words().occur_in(data):
        return Found((), (), files=1), data
    return Found((Candidate(shown(name), data, Stamp(0, 0, 0, 0), project),), (), files=1), data


def _has_baseline(found: Found, options: Namespace) -> bool:
    return options.write_baseline or any(file.project.settings.baseline for file in (*found.candidates, *found.rest))


def _baselines(found: Found, options: Namespace) -> Baselines | None:
    """Return the baselines of the files; None where none is asked for."""
    if not _has_baseline(found, options):
        return None
    from codemods.baseline import Baselines

    return Baselines(found, written=options.baseline if options.write_baseline else "")


def _analysis() -> Analyse:
    from codemods.analyse import analyse

    return analyse


def _progress() -> Progress:
    from codemods.report.progress import Progress

    return Progress(sys.stderr)


def _write(candidate: Candidate, data: bytes) -> None:
    from codemods.write import write

    write(candidate.path, data, candidate.stamp)


def _leave(candidate: Candidate, data: bytes) -> None:
    """Write no file: standard input is written to standard output."""


def _nothing(found: Found, options: Namespace, stream: TextIO) -> int:
    """Report that no file names a kernel."""
    if options.output_format in PEOPLE:
        _put(f"{closing_line(Counts(), files=found.files)}\n", options, stream)
        return _CLEAN
    from codemods.check import summarise

    _put(_rendered(summarise(found, [], []), options, stream), options, stream)
    return _CLEAN


def _rendered(run: Run, options: Namespace, stream: TextIO) -> str:
    color, width = _appearance(options, stream)
    return render(run, options.output_format, color=color, width=width, statistics=options.statistics)


def _appearance(options: Namespace, stream: TextIO) -> tuple[bool, int | None]:
    """Say whether a report is in color, and how many columns there are for it, if it is to fit a terminal."""
    to_file = bool(options.output_file)
    return is_colored(stream) and not to_file, width(stream) if stream.isatty() and not to_file else None


def _put(report: str, options: Namespace, stream: TextIO) -> None:
    """Write a report to where it is asked for."""
    if not options.output_file:
        _emit(report, stream)
        return
    try:
        with open(options.output_file, "wb") as file:
            file.write(report.encode(errors="backslashreplace"))
    except OSError as error:
        raise ConfigError(f"{options.output_file}: cannot be written: {error.strerror}") from None


def _status(run: Run, options: Namespace) -> int:
    if run.report.errors:
        return _FAILED
    return _FINDINGS if run.failed and not options.exit_zero else _CLEAN


def _emit(output: str | bytes, stream: TextIO) -> None:
    """Write all of it, whatever the stream's encoding; to a pipe that nobody reads any more, nothing."""
    try:
        stream.flush()
        stream.buffer.write(output if isinstance(output, bytes) else output.encode(stream.encoding, "backslashreplace"))
        stream.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
