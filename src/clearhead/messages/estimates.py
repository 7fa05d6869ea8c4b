"""Messages said by `estimates`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {}
