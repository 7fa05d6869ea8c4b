"""Messages said by the checks of rotary turns and positions: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {}
