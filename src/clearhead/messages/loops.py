"""Messages said by `loops`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {}
