"""The front door, its backward pass and its splits over 2x2 and 4x4 devices, taken to libtpu for every chip."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytest.importorskip("libtpu", reason="asks the TPU compiler, which is in libtpu")


@pytest.mark.thorough
def test_every_program_compiles_with_the_kernel_in_it() -> None:
    command = [sys.executable, "-m", "tests.compiler.front_door"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    outcomes = json.loads(done.stdout)
    assert len(outcomes) == 19
    assert {name: failure for name, failure in outcomes.items() if failure} == {}
