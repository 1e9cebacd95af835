"""Contracts as stubs in pyrefly's language of shapes, which a type checker reads: `shapecheck stub`."""
