"""The evaluator: an abstract machine that executes the scanned source without running it."""
