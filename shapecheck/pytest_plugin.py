"""`pytest --shapecheck`: contracts on JAX's kernels for a run of tests. What that takes is imported only if it is asked for."""

from __future__ import annotations

import pytest

from shapecheck.chip import Chip, chip_of
from shapecheck.pyproject import Table, TableError


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("shapecheck", "contracts of TPU kernels")
    group.addoption(
        "--shapecheck",
        metavar="CHIP,...",
        nargs="?",
        const="",
        help="put contracts on JAX's TPU kernels, and interpret these where there is no TPU; calls must be legal on each CHIP, "
        "or where none is named, on each of `chips` in [tool.shapecheck] of pyproject.toml",
    )
    group.addoption(
        "--shapecheck-values",
        action="store_true",
        help="look at what is in the arrays, too: lengths and page ids out of range, NaN (with --shapecheck)",
    )
    group.addoption(
        "--shapecheck-compile",
        action="store_true",
        help="ask libtpu at the end whether it compiles each call that was seen, for each CHIP (with --shapecheck=CHIP)",
    )


def pytest_configure(config: pytest.Config) -> None:
    stated: str | None = config.getoption("shapecheck")
    if stated is None:
        for option in ("--shapecheck-values", "--shapecheck-compile"):
            if config.getoption(option):
                raise pytest.UsageError(f"{option} goes with --shapecheck")
        return
    chips = _chips(stated) or _chips_of_the_project(config)
    if config.getoption("--shapecheck-compile") and not chips:
        raise pytest.UsageError(
            "--shapecheck-compile needs chips to compile for: --shapecheck=v5e,v5p, or chips in [tool.shapecheck]"
        )
    from shapecheck.pytest_session import Session

    config.pluginmanager.register(Session(config, chips), "shapecheck-session")


def runs_tpu_kernels(config: pytest.Config) -> bool:
    """Say whether calls of TPU kernels that have a contract run here, on a TPU or interpreted.

    For the condition of a test that is skipped where there is no TPU.
    """
    return config.getoption("shapecheck", None) is not None or _is_on_tpu()


def _is_on_tpu() -> bool:
    import jax

    return jax.default_backend() == "tpu"


def _chips(stated: str) -> tuple[Chip, ...]:
    try:
        return tuple(dict.fromkeys(chip_of(name.strip()) for name in stated.split(",") if name.strip()))
    except ValueError as error:
        hint = "; to name no chip before a path, write --shapecheck=" if "/" in stated or "." in stated else ""
        raise pytest.UsageError(f"--shapecheck: {error}{hint}") from None


def _chips_of_the_project(config: pytest.Config) -> tuple[Chip, ...]:
    """Return those that `[tool.shapecheck]` names, in the pyproject.toml nearest to the root of the tests."""
    try:
        table = Table.nearest(str(config.rootpath))
        names = table.strings("chips", lambda name: chip_of(name).name) if table else ()
    except TableError as error:
        raise pytest.UsageError(str(error)) from None
    return tuple(dict.fromkeys(map(chip_of, names)))
