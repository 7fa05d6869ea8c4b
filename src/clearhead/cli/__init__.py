"""The commands: thin, one file a verb."""
