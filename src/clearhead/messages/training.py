"""Messages said by `training`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {}
