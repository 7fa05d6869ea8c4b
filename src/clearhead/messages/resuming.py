"""Messages said by `resuming`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {}
