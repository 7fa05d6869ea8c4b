"""The page in a real browser. A package, so that one browser serves its tests and is gone before others run."""
