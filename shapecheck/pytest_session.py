"""A run of tests in which JAX's kernels have their contracts, and calls of these and of our front doors are seen."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest

from shapecheck import installed, values
from shapecheck.calls_seen import CallsSeen
from shapecheck.chip import Chip
from shapecheck.compiler_opinion import Opinion, opinions
from shapecheck.contract import ON_TPU, Contract
from shapecheck.contracts import CONTRACTS
from shapecheck.decorators import checked
from shapecheck.error import ContractError, contract_error, violations_of
from shapecheck.observe import each_element, interpretation
from shapecheck.outcome import Values
from shapecheck.rule import Verdict

_OUTPUT = "shapecheck"
"""Where a worker of pytest-xdist puts what it has seen."""

_NOT_INTERPRETED = CONTRACTS["ragged_paged_attention"]
"""Pallas' interpreter knows no references that are reshaped (JAX 0.10 to 0.12), and this kernel has such."""


class Session:
    """The hooks of one run: of the whole, of a worker of pytest-xdist, or of what these report to."""

    def __init__(self, config: pytest.Config, chips: tuple[Chip, ...]) -> None:
        self.config = config
        self.chips = chips
        self.seen = CallsSeen()
        self.opinions: Sequence[Opinion] = ()
        self._installation: installed.Installation | None = None
        self._test = ""

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Install as late as can be: a conftest or a module of tests may have said before on what JAX is to run."""
        distributes = getattr(self.config.option, "dist", "no") != "no" and not hasattr(self.config, "workerinput")
        if self._installation is None and session.items and not distributes and not self.config.option.collectonly:
            values.SETTING.on |= bool(self.config.getoption("--shapecheck-values"))
            self._installation = installed.install(self.watch)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._test = nodeid

    def watch(self, contract: Contract, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a kernel for a test, or its front door: noted down, judged for the declared chips, and then run.

        What a front door hands on has been judged there.

        Raises:
            ContractError: the call is illegal.
        """
        __tracebackhide__ = True
        bound = inspect.signature(function).bind(*args, **kwargs)
        bound.apply_defaults()
        _, geometry, _ = next(each_element(contract, bound.arguments))
        run = _as_it_runs_here(contract, function, geometry)
        if installed.is_handed_on():
            return run(*args, **kwargs)
        call = self.seen.add(contract, geometry, self._test)
        call.by_xla = run is not function and contract is _NOT_INTERPRETED
        errors: list[ContractError] = []
        for chip in self.chips:
            there = {**geometry, **chip.facts, ON_TPU: contract.uses_tpu(geometry)}
            call.judged(chip.name, contract.judge(there))
            if violations := violations_of(contract, there):
                errors.append(contract_error(contract, violations, [f"on a {chip.name}, declared for this run"]))
        if errors:
            raise errors[0]
        try:
            return run(*args, **kwargs)
        except ContractError as error:
            call.refused(each.rule.code for each in error.violations)
            raise

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        report = yield
        if call.excinfo is not None and not isinstance(call.excinfo.value, ContractError):
            _, found, words = str(call.excinfo.value).rpartition("ContractError: ")
            if found:  # what the host says to a program that runs, inside of what JAX says
                report.sections.append(("what shapecheck found in the arrays", words))
            _forget_what_failed()
        return report

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: Any) -> None:
        self.seen.merge(getattr(node, "workeroutput", {}).get(_OUTPUT, ()))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._installation is not None:
            self._installation.uninstall()
        output: dict[str, Any] | None = getattr(self.config, "workeroutput", None)
        if output is not None:
            output[_OUTPUT] = self.seen.plain()
        elif self.config.getoption("--shapecheck-compile"):
            self.opinions = opinions(self.seen.accepted(), self.chips)
            if any(each.is_bad for each in self.opinions) and session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("shapecheck")
        for line in (*self.seen.lines(), *(each.line for each in self.opinions)):
            terminalreporter.line(line)


def _as_it_runs_here(contract: Contract, function: Callable[..., Any], geometry: Values) -> Callable[..., Any]:
    """Return the function itself if it is a front door, or the kernel on a TPU; else what runs the kernel."""
    if contract.elsewhere is not None or (interpretation() is None and import_module("jax").default_backend() == "tpu"):
        return function
    if contract is _NOT_INTERPRETED:
        return _by_xla(function)

    def interpreted(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        with _interpreting(contract, geometry):
            return function(*args, **kwargs)

    return interpreted


@functools.cache
def _by_xla(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what has XLA compute the kernel that is not interpreted, behind the kernel's own contract."""
    front_door: Any = inspect.unwrap(import_module("kernel.ragged_paged_attention").ragged_paged_attention)

    @functools.wraps(function)
    def by_xla(*args: Any, **kwargs: Any) -> Any:
        return front_door(*args, **kwargs, implementation="xla")

    return checked(by_xla, _NOT_INTERPRETED)


def _interpreting(contract: Contract, geometry: Values) -> AbstractContextManager[None]:
    """Return the setting in which Pallas interprets a kernel, on as many cores as it takes.

    Where a test has its own, it stays, but for the cores: with too few, the kernel would wait for the others for ever.
    """
    present = interpretation()
    pltpu: Any = import_module("jax.experimental.pallas.tpu")
    params: Any = present if isinstance(present, pltpu.InterpretParams) else pltpu.InterpretParams()
    cores = max(params.num_cores_or_threads, _cores(contract, geometry))
    interpreted: AbstractContextManager[None] = pltpu.force_tpu_interpret_mode(replace(params, num_cores_or_threads=cores))
    return interpreted


def _cores(contract: Contract, geometry: Values) -> int:
    """Return how many cores of a device the contract wants for a call."""
    rules = [rule for rule in contract.rules if "cores_per_device" in rule.names]

    def suits(cores: int) -> bool:
        return all(rule.judge({**geometry, "cores_per_device": cores}) is not Verdict.VIOLATED for rule in rules)

    return next((cores for cores in (1, 2) if suits(cores)), 1)


def _forget_what_failed() -> None:
    """Have Pallas' interpreter begin anew: what stopped half-way would stop the next kernel as well."""
    pltpu: Any = sys.modules.get("jax.experimental.pallas.tpu")
    if pltpu is not None:
        pltpu.reset_tpu_interpret_mode_state()
