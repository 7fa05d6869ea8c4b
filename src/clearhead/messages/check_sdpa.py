"""Messages said by the checks of sdpa: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {}
