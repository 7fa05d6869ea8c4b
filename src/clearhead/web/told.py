"""What a page is told of the model that it shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from clearhead.formats.load import Loaded
from clearhead.formats.packages import built_in
from clearhead.formats.run import read_json
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.models.cost import parameters
from clearhead.text.tokenizer import Tokenizer
from clearhead.web.answer import Answer, as_json
from clearhead.web.session import Session
from clearhead.web.tokens import unknown_id_of

EXAMPLES: dict[str, tuple[str, ...]] = {
    "en": (
        "The little cat sat on the mat, and the little dog sat on the rug.",
        "When Mary and John went to the shop, John gave a drink to",
    ),
    "zh": (
        "小猫趴在窗台上，看着窗外的小鸟；小狗趴在门口，看着门外的小猫。",
        "床前明月光，疑是地上霜。举头望明月，低头思故乡。",
    ),
    "mixed": ("A family of emoji 👩‍👩‍👧 and 汉字 stay whole.",),
}
"""Prompts to begin with, by the language that they ask of a model. Words that come again show heads that look for them."""

BUILTIN = "built-in"
"""What the model that comes with the package is called."""

PROMPTS = "prompts.json"
"""A file beside a run's configuration with prompts to begin with instead: lists of texts by language."""

FEW_A_CHARACTER = 1.7
"""Up to how many tokens a character of Chinese may take, on average, for a model that knows the language."""


def answer(session: Session, query: Mapping[str, str]) -> Answer:
    """What is told of the model of a session.

    Args:
        session: any forward of it.
        query: not read.
    """
    return model_told(session.loaded)


def model_told(loaded: Loaded, name: str | None = None) -> Answer:
    """The model in a few words and numbers, and prompts that it can read.

    Args:
        loaded: the model.
        name: what it is called; after its folder or file if None.

    Returns:
        JSON: `name`, `origin`, `kind` (decoder, encoder_decoder, encoder), `layers`, `encoder_layers` (of an encoder-decoder, else null),
        `heads`, `kv_heads`, `width`, `head_width`, `vocab`, `context`, `source_context` (likewise), `parameters`, `tied`, `prompts` (a list
        of `{text, target}`; without a target a model that answers writes its own) and `language` ("en", "zh", or "en zh").
    """
    config = loaded.config
    names = {EncoderDecoderConfig: "encoder_decoder", EncoderConfig: "encoder"}
    kind = next((name for each, name in names.items() if isinstance(config, each)), "decoder")
    own = _own_prompts(loaded)
    known = list(own) or languages(loaded.tokenizer)
    prompts = [text for texts in own.values() for text in texts] or list(_examples(loaded.tokenizer, known))
    told: dict[str, Any] = {
        "name": name or name_of(loaded),
        "origin": loaded.origin,
        "kind": kind,
        "layers": config.layers,
        "encoder_layers": config.encoder.layers if isinstance(config, EncoderDecoderConfig) else None,
        "heads": config.heads,
        "kv_heads": config.key_value_heads,
        "width": config.width,
        "head_width": config.width_of_head,
        "vocab": config.vocab,
        "context": config.context,
        "source_context": config.encoder.context if isinstance(config, EncoderDecoderConfig) else None,
        "parameters": sum(parameters(config).values()),
        "tied": config.tied,
        "prompts": [{"text": text, "target": None} for text in prompts],
        "language": " ".join(known),
    }
    return as_json(told)


def name_of(loaded: Loaded) -> str:
    """What a model is called: its run, its folder, or its file without the ending."""
    source = Path(loaded.source)
    if source.parent.name == "checkpoints":
        run = source.parent.parent.absolute()
        return BUILTIN if run == built_in().absolute() else run.name
    name = source.stem if source.suffix in {".gguf", ".pt", ".safetensors"} else source.absolute().name
    return source.absolute().parent.name if name == "model" else name


def _own_prompts(loaded: Loaded) -> dict[str, list[str]]:
    """The prompts that a run brings with it, by their language."""
    file = loaded.source.parent.parent / PROMPTS
    if loaded.source.parent.name != "checkpoints" or not file.is_file():
        return {}
    return {str(language): [str(text) for text in texts] for language, texts in read_json(file).items()}


def languages(tokenizer: Tokenizer) -> list[str]:
    """Which of English and Chinese a model can be asked in: its tokenizer writes all of it, and not byte by byte.

    Args:
        tokenizer: of the model.
    """
    found = [language for language in ("en", "zh") if all(_knows(tokenizer, text) for text in EXAMPLES[language])]
    return found or ["en"]


def _examples(tokenizer: Tokenizer, known: list[str]) -> Iterator[str]:
    for language in known:
        yield from (text for text in EXAMPLES[language] if _writes(tokenizer, text))
    yield from (text for text in EXAMPLES["mixed"] if _writes(tokenizer, text))


def _writes(tokenizer: Tokenizer, text: str) -> bool:
    """Whether it has ids for all of a text."""
    ids = tokenizer.encode(text)
    return bool(ids) and unknown_id_of(tokenizer) not in ids and len(tokenizer.decode(ids).split()) > 0


def _knows(tokenizer: Tokenizer, text: str) -> bool:
    return _writes(tokenizer, text) and len(tokenizer.encode(text)) <= FEW_A_CHARACTER * len(text)
