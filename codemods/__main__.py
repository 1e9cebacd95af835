"""`python -m codemods`."""

import sys

# `python -m` looks for modules in the working folder first, and that is where the scanned code lies: a `copy.py` there would
# be run in place of Python's. Only a checkout of this project is imported from there.
if not sys.flags.safe_path and __file__.rpartition("codemods")[0].rstrip("/\\") != sys.path[0].rstrip("/\\"):
    del sys.path[0]

from codemods.cli import main

sys.exit(main())
