"""Messages said by `conversations`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {}
