"""Modules of the second set, a file a kind; each file lists its modules in CASES."""
