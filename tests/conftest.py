"""Settings of all tests: JAX stays on the CPU (with libtpu installed it would look for a TPU first, and wait for one)."""

import os

from hypothesis import settings

os.environ.setdefault("JAX_PLATFORMS", "cpu")

settings.register_profile("default", deadline=None, print_blob=True)  # the machine's speed is no property of the code
settings.load_profile("default")
