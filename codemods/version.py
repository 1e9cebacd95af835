"""The version of the installed distribution."""

from __future__ import annotations


def version() -> str:
    """Return it; looking it up is slow, so ask only where it is shown."""
    from importlib import metadata

    return metadata.version("shapecheck-pallas")
