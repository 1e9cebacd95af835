"""The functions of a file that state contracts of their own. The file is read, not run."""

from __future__ import annotations

import ast
import os
from dataclasses import replace
from pathlib import Path

from codemods.check import parse
from codemods.config import ConfigError, Configuration
from codemods.evaluate import modules
from codemods.evaluate.annotations import described
from codemods.evaluate.machine import Frame, Machine
from codemods.evaluate.program import Program
from codemods.files import discover, shown
from codemods.stubs.callee import Stub
from codemods.values import Contracted, External
from codemods.words import Words
from shapecheck.axes import axes_of
from shapecheck.contract import Contract
from shapecheck.demands import relation

_ARRAYS = frozenset({"jax.Array", "jax.numpy.ndarray", "jaxtyping.Array"})


def own_stubs(path: str, folder: str) -> tuple[str, list[Stub]]:
    """Return the name of a file's module, and the stub of each function at its top level that has a contract.

    Raises:
        ConfigError: the file cannot be read or parsed, has no such function that returns an array of JAX, or is in a package,
            and `folder` is not the one that this is in.
    """
    found = discover([path], Configuration(), Words())
    projects, errors = parse(found)
    for problem in (*found.problems, *errors):
        raise ConfigError(f"{problem.path}:{problem.line}: {problem.message}")
    for project, sources in projects.items():
        if (source := sources.get(shown(path))) is not None:
            program = Program(list(sources.values()), Path(shown(project.root)))
            modules.run(program, source.path)
            machine, scope = program.executed[source.path], program.module_scopes[source.path]
            with machine.entered(Frame(program.scopes[scope])):
                functions = [node for node in source.tree.body if isinstance(node, ast.FunctionDef)]
                held = ((node, machine.read((scope, node.name))) for node in functions)
                stubs = [
                    _stub(machine, node, value)
                    for node, value in held
                    if isinstance(value, Contracted) and value.function.node is node
                ]
            if told := [stub for stub in stubs if stub is not None]:
                module = program.dotted(source.path)
                beside = Path(source.path).absolute().parents[module.count(".")]
                if "." in module and Path(folder).absolute() != beside:
                    raise ConfigError(
                        f"{path}: is in a package, of which pyrefly would find no other module than those that have a stub; "
                        f"write it beside the file: --output {os.path.relpath(beside)}"
                    )
                return module, told
    raise ConfigError(f"{path}: no function at its top level has a contract and returns an array of JAX, by its annotation")


def _stub(machine: Machine, node: ast.FunctionDef, contracted: Contracted) -> Stub | None:
    result = None if node.returns is None else described(machine, node.returns)
    if result is None or machine.evaluate(result[1]) not in map(External, _ARRAYS) or not contracted.callee.contract.arrays:
        return None
    contract: Contract = contracted.callee.contract
    callee = replace(contracted.callee, contract=_with_annotations(contract))
    like_first = axes_of(result[2]) == contract.arrays[0].axes and set(contract.arrays[0].axes).isdisjoint(("_", "..."))
    return Stub(callee, is_own=True, like_first=like_first)


def _with_annotations(contract: Contract) -> Contract:
    """Add what jaxtyping demands: the ranks, and that an axis has one size."""
    ranks = [
        relation(f"{array.name}_rank == {len(array.axes)}", name=f"rank of {array.name}", message="its annotation says so")
        for array in contract.arrays
        if "..." not in array.axes
    ]
    axes = [
        relation(f"{other} == {first}", name=f"axis {axis}", message="it has one size")
        for axis, (first, *others) in contract.axes.items()
        for other in others
    ]
    return replace(contract, rules=(*ranks, *axes, *contract.rules))
