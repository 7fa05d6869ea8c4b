"""Messages said by `cli`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {}
