"""Messages said by `token_files`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {}
