"""Tracebacks without the frames of this package: a user's error is in the user's code."""

from __future__ import annotations

from types import TracebackType


def without_own_frames(traceback: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the frames that it begins with if they are ours: it goes on where the user's code does."""
    while traceback is not None and traceback.tb_frame.f_globals.get("__name__", "").startswith("shapecheck."):
        traceback = traceback.tb_next
    return traceback
