"""The one table of user messages: key -> (English, Chinese); each room writes its own part.

A test holds the two languages to the same fields and every key to being used.
"""

from clearhead.messages import (
    adapting,
    checking,
    cli,
    cli_eval,
    cli_tokenizer,
    cli_trace,
    cli_train,
    conversations,
    data,
    explain,
    formats,
    generation,
    models,
    scoring,
    text,
    text_sources,
    token_files,
    tokenizers,
    tracing,
    training,
)

MESSAGES: dict[str, tuple[str, str]] = {
    **text.MESSAGES,
    **text_sources.MESSAGES,
    **tokenizers.MESSAGES,
    **models.MESSAGES,
    **explain.MESSAGES,
    **formats.MESSAGES,
    **token_files.MESSAGES,
    **generation.MESSAGES,
    **tracing.MESSAGES,
    **training.MESSAGES,
    **data.MESSAGES,
    **conversations.MESSAGES,
    **adapting.MESSAGES,
    **scoring.MESSAGES,
    **checking.MESSAGES,
    **cli.MESSAGES,
    **cli_eval.MESSAGES,
    **cli_tokenizer.MESSAGES,
    **cli_trace.MESSAGES,
    **cli_train.MESSAGES,
}
