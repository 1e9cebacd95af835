"""Keep JAX on the CPU: with libtpu installed it would look for a TPU first, and wait for one."""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
