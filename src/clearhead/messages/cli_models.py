"""Messages said by `clearhead models`, `import` and `export`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {}
