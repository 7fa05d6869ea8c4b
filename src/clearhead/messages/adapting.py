"""Messages said by `adapting`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {}
