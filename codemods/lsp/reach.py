"""Whether a file that names no kernel may call a function with a contract: one that it imports states it."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from codemods.evaluate.program import Program
from codemods.evaluate.relevance import states_contract
from codemods.nodes import nodes
from codemods.notebook import source_of
from codemods.source import Source, SourceError

_MOST = 40  # files that are looked at


def reaches_contract(path: str, data: bytes, root: Path) -> bool:
    """Say whether a file imports one that states a contract, itself or by way of others; the nearest are looked at first."""
    program = Program((), root)
    try:
        source = source_of(path, data)
        pending, known = deque([source]), {path}
        while pending:
            for found in _imported(program, pending.popleft()):
                if found in known or len(known) > _MOST:
                    continue
                known.add(found)
                if (read := program.source(found)) is None:
                    continue
                if states_contract(read.tree):
                    return True
                pending.append(read)
    except SourceError:  # nobody is told of a file in which there is nothing to look for
        return False
    return False


def _imported(program: Program, source: Source) -> Iterator[str]:
    """Yield the files that a file imports, as far as they are in the tree."""
    modules: list[str] = []
    for node in nodes(source.tree, ast.Import, ast.ImportFrom):
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        else:
            module = program.absolute(node, source.path)
            modules += [module, *(f"{module}.{alias.name}" for alias in node.names)]
    for module in dict.fromkeys(modules):
        if (found := program.find(module, source.path)) is not None:
            yield found
