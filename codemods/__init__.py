"""Find and rewrite calls that break a contract, in source code, without running it."""
