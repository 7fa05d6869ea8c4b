"""Where two models first part, and why."""
