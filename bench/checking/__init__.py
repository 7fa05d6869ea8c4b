"""How good `clearhead check` is: planted faults and right modules, and a table of what was found."""
