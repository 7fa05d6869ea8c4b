"""Messages said by the checks of attention: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {}
