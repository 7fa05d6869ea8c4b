"""Proving: probes that a wrong model cannot pass, each showing that it would have seen the fault."""
