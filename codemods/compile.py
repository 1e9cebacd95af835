"""`shapecheck compile`: the calls that its options state, or that a source makes at a place."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from codemods.check import examine, load
from codemods.compiler import Ask
from codemods.config import ConfigError, Configuration
from codemods.files import discover, project_of
from codemods.findings import CallSite
from codemods.stated import CALLEES, GEOMETRY, kept, options_of
from codemods.words import Words
from shapecheck.chip import chip_of
from shapecheck.compiler import (
    KERNELS,
    TIMEOUT,
    Answer,
    Cache,
    CompilerUnavailable,
    Kernel,
    Mesh,
    Question,
    ask,
    cache_folder,
)
from shapecheck.contract import Contract

_Analyse = Callable[..., tuple[list[CallSite], Any]]


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
    path, line = options.call or ("", 0)
    project = project_of(path, Configuration())
    chips = [chip_of(name) for name in options.chips or project.settings.chips]
    if not chips:
        raise ConfigError("name the chip to compile for: --chip v5p, or chips in [tool.shapecheck]")
    if options.call is None:
        calls, note = [_with_defaults(KERNELS[options.callee or CALLEES[0]], options)], ""
    elif options.callee is not None:
        raise ConfigError("--callee names the kernel of a call that is stated; with --call it is that of the source")
    else:
        calls, note = _known(_site(path, line, analyse), options, f"{path}:{line}")
    mesh = Mesh(**options.mesh) if options.mesh else None
    try:
        return [Question(kernel, chip, values, mesh) for kernel, values in calls for chip in chips], note
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _stated(kernel: Kernel, options: Namespace) -> dict[str, Any]:
    """Return what options state of a call of a kernel, by the names of its contract, and what follows from that.

    Raises:
        ConfigError: the kernel has no such option.
    """
    known = options_of(kernel.name)
    if foreign := [flag for flag in GEOMETRY if flag not in known and hasattr(options, kept(flag))]:
        raise ConfigError(f"{foreign[0]} is not for {kernel.name}, which has: {', '.join(known)}")
    given = [(name, getattr(options, kept(flag))) for flag, name in known.items() if hasattr(options, kept(flag))]
    return kernel.completed({name: value * times if times > 1 else value for (name, _, times), value in given})


def _with_defaults(kernel: Kernel, options: Namespace) -> tuple[Kernel, dict[str, Any]]:
    """Return the values of a call of which some are stated."""
    geometry = _stated(kernel, options)
    for name, default, _ in options_of(kernel.name).values():
        if name not in geometry and default is not None:
            geometry[name] = default(geometry) if callable(default) else default
    plain = {f"{array.name}_scales_dtype": None for array in kernel.contract.arrays if array.quantizable}
    return kernel, kernel.contract.geometry(**plain, **kernel.completed({**kernel.assumed, **geometry}))


def _site(path: str, line: int, analyse: _Analyse) -> CallSite:
    """Return the call at a place, with what is known of it."""
    if os.path.isdir(path):
        raise ConfigError(f"{path}: is a folder; --call takes a place in a file, such as src/serve.py:120")
    found = discover([path], Configuration(), Words())
    projects, errors = load(found)
    knowing = partial(analyse, geometries=True)
    examined = [examine(project, sources, knowing, unproven=False) for project, sources in projects.items()]
    for problem in (*found.problems, *errors, *(error for each in examined for error in (*each.unreadable, *each.errors))):
        raise ConfigError(f"{problem.path}:{problem.line}: {problem.message}")
    sites = [site for each in examined for site in each.call_sites]
    here = [site for site in sites if site.span.shown.line <= line <= site.span.shown.end_line]
    if not here:
        lines = ", ".join(str(site.span.shown.line) for site in sites)
        raise ConfigError(f"{path}:{line}: no call of a known kernel" + (f"; there is one on line {lines}" if lines else ""))
    return min(here, key=lambda site: (not site.geometries, site.span.end - site.span.start))


def _known(site: CallSite, options: Namespace, place: str) -> tuple[list[tuple[Kernel, dict[str, Any]]], str]:
    """Return the values of each way in which a call is reached, the stated ones in place of what the source says.

    Ways of which something is not known are left out, which a note says.

    Raises:
        ConfigError: there are no others.
    """
    if not site.geometries:
        raise ConfigError(
            f"{place}: {site.callee} is not compiled: it is no kernel of JAX, does not run on a TPU, or is meant to fail"
        )
    known: list[tuple[Kernel, dict[str, Any]]] = []
    open_: list[tuple[Kernel, dict[str, str]]] = []
    for geometry in site.geometries:
        kernel, contract = geometry.kernel, geometry.kernel.contract
        stated = _stated(kernel, options)
        given = _qualified(contract, stated)
        assumed = {**kernel.assumed, **kernel.completed({**geometry.values, **stated})}
        values = {
            **_qualified(contract, {name: value for name, value in assumed.items() if name not in geometry.values}),
            **_without_derived(contract, geometry.values, given),
            **given,
        }
        unknown = {name: why for name, why in geometry.unknown.items() if name not in values and not _follows(name, given)}
        if unknown:
            open_.append((kernel, unknown))
        else:
            known.append((kernel, contract.geometry(**values)))
    least = min(open_, key=lambda each: len(each[1]), default=None)
    told = "".join(f"\n  {each}" for each in _told(*least)) if least else ""
    if not known:
        raise ConfigError(f"{place}: not all sizes are known; state them by options:{told}")
    return known, f"{place}: not compiled where it is reached with sizes that are not known:{told}" if least else ""


def _follows(name: str, given: Mapping[str, Any]) -> bool:
    """Say whether a name is the shape of scales whose dtype is given, which follows from that of the pages."""
    return name.endswith("_scales_shape") and f"{name.removesuffix('shape')}dtype" in given


def _without_derived(contract: Contract, values: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that do not follow from others, where other values are given for some."""
    changed = {contract.owners[name] for name in given}
    independent = {name: value for name, value in values.items() if name in contract.owners and name not in contract.axes}
    return {
        name: value for name, value in independent.items() if not (name.endswith("_shape") and contract.owners[name] in changed)
    }


def _qualified(contract: Contract, stated: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is stated by the names that it stands for: an axis is one of several arrays."""
    return {each: value for name, value in stated.items() for each in _each(contract, name)}


def _each(contract: Contract, name: str) -> Sequence[str]:
    return contract.aliases.get(name) or contract.axes.get(name) or (name,)


def _told(kernel: Kernel, unknown: Mapping[str, str]) -> Iterator[str]:
    """Yield what is not known and why, with the option that states it; what several arrays share is said once."""
    follow = {each for name in kernel.follows for each in _each(kernel.contract, name)}
    rest = {name: why for name, why in unknown.items() if name not in follow} or dict(unknown)
    for flag, (name, _, _) in options_of(kernel.name).items():
        reasons = [rest.pop(each) for each in _each(kernel.contract, name) if each in rest]
        if reasons:
            yield f"{flag} ({name}): {reasons[0]}"
    yield from (f"{name}: {why}" for name, why in rest.items() if not name.endswith("_scales_shape"))
