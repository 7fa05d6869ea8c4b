"""Modules of the third set; each file lists its modules in CASES."""
