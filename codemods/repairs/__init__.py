"""Which repairs are proposed for a call that breaks its contract, and what they write."""
