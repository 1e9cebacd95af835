"""Settings of all tests: JAX stays on the CPU (with libtpu installed it would look for a TPU first, and wait for one).

The CPU passes for 8 devices, for what is split over several; all else runs on the first of them.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"

settings.register_profile("default", deadline=None, print_blob=True)  # the machine's speed is no property of the code
settings.load_profile("default")


@pytest.fixture(autouse=True, scope="session")
def no_reports_in_the_cache_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patched:
        cache = tmp_path_factory.mktemp("reports")
        patched.setattr("codemods.cache.folder", lambda: str(cache))
        yield cache
