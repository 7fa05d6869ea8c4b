"""Messages said by `updates`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {}
