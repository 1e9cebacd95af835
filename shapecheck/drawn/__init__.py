"""How Hypothesis draws calls of each kernel, for `shapecheck.testing`."""
