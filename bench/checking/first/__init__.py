"""Modules of the first set, a file a kind; each file lists its modules in CASES."""
