"""The one table of user messages: key -> (English, Chinese); each room writes its own part.

A test holds the two languages to the same fields and every key to being used.
"""

from clearhead.messages import checking, cli, cli_trace, explain, formats, generation, models, text, tracing, training

MESSAGES: dict[str, tuple[str, str]] = {
    **text.MESSAGES,
    **models.MESSAGES,
    **explain.MESSAGES,
    **formats.MESSAGES,
    **generation.MESSAGES,
    **tracing.MESSAGES,
    **training.MESSAGES,
    **checking.MESSAGES,
    **cli.MESSAGES,
    **cli_trace.MESSAGES,
}
