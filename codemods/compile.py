"""`shapecheck compile`: the calls that its options state, or that a source makes at a place."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from codemods.check import parse
from codemods.compiler import Ask
from codemods.config import ConfigError, Configuration
from codemods.files import discover, project_of, shown
from codemods.findings import CallSite
from codemods.stated import GEOMETRY
from codemods.words import Words
from shapecheck.chip import chip_of
from shapecheck.compiler import CONTRACT, TIMEOUT, Answer, Cache, CompilerUnavailable, Mesh, Question, ask, cache_folder
from shapecheck.plan import largest_divisor

_Analyse = Callable[..., tuple[list[CallSite], Any]]
_FLAGS = {option.name: flag for flag, option in GEOMETRY.items()} | {"inline_seq_dim": "--no-inline-seq-dim"}
_ASSUMED = {"lengths_dtype": "int32", "page_indices_dtype": "int32"}  # no option states them; others do not compile


def asking(options: Namespace, watch: Callable[[int, int], None]) -> Ask:
    """Return what puts questions to libtpu as the options want it; it raises ConfigError where there is none."""

    def put(questions: Sequence[Question]) -> Sequence[Answer]:
        cache = None if options.no_cache else Cache(cache_folder())
        try:
            return ask(questions, timeout=options.timeout or TIMEOUT, processes=options.jobs, cache=cache, watch=watch)
        except CompilerUnavailable as error:
            raise ConfigError(f"the TPU compiler cannot be asked: {error}") from None

    return put


def questions(options: Namespace, analyse: _Analyse) -> tuple[list[Question], str]:
    """Return what the options ask, for each chip, and a note on what is left out, where something is.

    Raises:
        ConfigError: no chip is named; there is no such call, or one of its sizes is not known; or the mesh does not fit.
    """
    stated = {name: value for name, value in vars(options).items() if name in _FLAGS}
    path, line = options.call or ("", 0)
    project = project_of(os.path.dirname(path), Configuration())
    chips = [chip_of(name) for name in options.chips or project.settings.chips]
    if not chips:
        raise ConfigError("name the chip to compile for: --chip v5p, or chips in [tool.shapecheck]")
    if options.call is None:
        calls, note = [_with_defaults(stated)], ""
    else:
        calls, note = _known(_site(path, line, analyse), stated, f"{path}:{line}")
    mesh = Mesh(**options.mesh) if options.mesh else None
    try:
        return [Question(chip, values, mesh) for values in calls for chip in chips], note
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _with_defaults(stated: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a call of which some are stated."""
    defaults = {option.name: option.default for option in GEOMETRY.values() if option.default is not None}
    pages_dtype = "int8" if stated.get("scales_dtype") else "bfloat16"
    geometry: dict[str, Any] = {**defaults, "pages_dtype": pages_dtype, "scales_dtype": None, **_ASSUMED, **stated}
    pages = geometry["pages_per_sequence"]
    geometry.setdefault("total_num_pages", geometry["batch_size"] * pages)
    geometry.setdefault("pages_per_compute_block", largest_divisor(pages, at_most=8) if pages else 1)
    return CONTRACT.geometry(**geometry)


def _site(path: str, line: int, analyse: _Analyse) -> CallSite:
    """Return the call at a place, with what is known of it."""
    if os.path.isdir(path):
        raise ConfigError(f"{path}: is a folder; --call takes a place in a file, such as src/serve.py:120")
    found = discover([path], Configuration(), Words())
    projects, errors = parse(found)
    for problem in (*found.problems, *errors):
        raise ConfigError(f"{problem.path}:{problem.line}: {problem.message}")
    sites: list[CallSite] = []
    for project, sources in projects.items():
        root = Path(shown(project.root))
        sites += analyse(list(sources.values()), root=root, chips=(), unproven=False, geometries=True)[0]
    here = [site for site in sites if site.span.shown.line <= line <= site.span.shown.end_line]
    if not here:
        lines = ", ".join(str(site.span.shown.line) for site in sites)
        raise ConfigError(f"{path}:{line}: no call of a known kernel" + (f"; there is one on line {lines}" if lines else ""))
    return min(here, key=lambda site: (not site.geometries, site.span.end - site.span.start))


def _known(site: CallSite, stated: Mapping[str, Any], place: str) -> tuple[list[dict[str, Any]], str]:
    """Return the values of each way in which a call is reached, the stated ones in place of what the source says.

    Ways of which something is not known are left out, which a note says.

    Raises:
        ConfigError: there are no others.
    """
    if not site.geometries:
        raise ConfigError(
            f"{place}: {site.callee} is not compiled: it is no kernel of JAX, does not run on a TPU, or is meant to fail"
        )
    given = {each: value for name, value in stated.items() for each in _qualified(name)}
    known: list[dict[str, Any]] = []
    open_: list[dict[str, str]] = []
    for geometry in site.geometries:
        values = {**_ASSUMED, **_without_derived(geometry.values, given), **given}
        unknown = {name: why for name, why in geometry.unknown.items() if name not in values}
        if "k_pages_scales_dtype" in given:  # their shape follows
            unknown = {name: why for name, why in unknown.items() if not name.endswith("_scales_shape")}
        if unknown:
            open_.append(unknown)
        else:
            known.append(CONTRACT.geometry(**values))
    told = "".join(f"\n  {each}" for each in _told(min(open_, key=len, default={})))
    if not known:
        raise ConfigError(f"{place}: not all sizes are known; state them by options:{told}")
    return known, f"{place}: not compiled where it is reached with sizes that are not known:{told}" if open_ else ""


def _without_derived(values: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that do not follow from others, where other values are given for some."""
    changed = {CONTRACT.owners[name] for name in given}
    independent = {name: value for name, value in values.items() if name in CONTRACT.owners and name not in CONTRACT.axes}
    return {
        name: value for name, value in independent.items() if not (name.endswith("_shape") and CONTRACT.owners[name] in changed)
    }


def _qualified(name: str) -> Sequence[str]:
    """Return the names of the contract that an option states: an axis is one of several arrays."""
    return CONTRACT.aliases.get(name) or CONTRACT.axes.get(name) or (name,)


def _told(unknown: Mapping[str, str]) -> Iterator[str]:
    """Yield what is not known and why, with the option that states it; what several arrays share is said once."""
    rest = dict(unknown)
    for name, flag in _FLAGS.items():
        reasons = [rest.pop(each) for each in _qualified(name) if each in rest]
        if reasons:
            yield f"{flag} ({name}): {reasons[0]}"
    yield from (f"{name}: {why}" for name, why in rest.items() if not name.endswith("_scales_shape"))
