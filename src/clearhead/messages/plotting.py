"""Messages said by `plotting`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {}
