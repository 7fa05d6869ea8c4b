"""Exchanging: models on disk. The run directory today; other people's formats as they come."""
