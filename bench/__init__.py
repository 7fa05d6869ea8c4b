"""The side-by-side measurements, each a command: `python -m bench.NAME`."""
