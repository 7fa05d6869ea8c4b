"""What a training works with: data, and a model whose sizes fit it. Texts for a decoder, pairs for an encoder-decoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from clearhead.formats.run import Run
from clearhead.messages import UserError, say
from clearhead.models.config import DecoderConfig, ModelConfig, StackConfig
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.text import MarkedTokenizer
from clearhead.training.pair_data import PairData, PairTexts, prepare_pairs, read_pair_texts
from clearhead.training.sizing import PAIRS_BATCH, pick_pairs_batch, pick_pairs_config, pick_size
from clearhead.training.text_data import TextData, Texts, new_tokenizer, prepare, read_texts

Data = TextData | PairData
"""What was read, as ids."""

Kind = TypeVar("Kind", bound=StackConfig)


@dataclass(frozen=True)
class Material:
    """Data, and the model that will learn from it."""

    config: DecoderConfig | EncoderDecoderConfig
    data: Data
    batch: int
    """How many samples an update takes, unless the user says otherwise."""
    sizes: str
    """The sizes in words."""
    few: str | None = None
    """Why `batch` is smaller than it is for others; None if it is not."""


def new_material(
    files: Sequence[str], *, model: ModelConfig | None, typed: frozenset[str] | None, encoding: str, tokenizer: str
) -> Material:
    """Read the files, and pick for the model what the user has not named.

    Args:
        files: texts, or pairs for an encoder-decoder.
        model: the kind, its sizes and parts; a decoder picked for the text if None.
        typed: the fields of `model` that the user has named, the others are picked; all of them if None.
        encoding: of the files.
        tokenizer: "character" or "byte".

    Raises:
        UserError: if a file cannot be used, or the model learns neither from texts nor from pairs.
    """
    if isinstance(model, EncoderDecoderConfig):
        return _pairs(read_pair_texts(files, encoding), model, typed, tokenizer)
    if isinstance(model, DecoderConfig | None):
        return _text(read_texts(files, encoding), model, typed, tokenizer)
    raise UserError(say("training.not_trained", name=type(model).__name__))


def same_material(run: Run, files: Sequence[str], recorded: dict[str, Any]) -> Data:
    """The data that a run was started with; from the same files, or from where they are now.

    Raises:
        UserError: if a file cannot be used, or holds something else than it did.
    """
    encoding = recorded.get("encoding", "auto")
    texts: Texts | PairTexts
    if isinstance(run.model, EncoderDecoderConfig):
        texts = read_pair_texts(files or recorded.get("pairs", ()), encoding)
    else:
        texts = read_texts(files or recorded.get("files", ()), encoding)
    if texts.source["sha256"] != recorded["sha256"]:
        raise UserError(say("training.text_changed", out=run.path))
    if isinstance(texts, PairTexts):
        return prepare_pairs(texts, run.tokenizer)
    assert isinstance(run.model, DecoderConfig)
    return prepare(texts, run.tokenizer, run.model.context)


def fitting(model: ModelConfig, data: Data) -> ModelConfig:
    """`model` as it would have become on this data: with contexts that fit it.

    Raises:
        UserError: if the longest pair does not fit.
    """
    if isinstance(model, EncoderDecoderConfig) and isinstance(data, PairData):
        return _fitting_pairs(model, data)
    assert isinstance(model, DecoderConfig)
    assert isinstance(data, TextData)
    return replace(model, context=prepare(data.texts, data.tokenizer, model.context).context)


def _text(texts: Texts, model: DecoderConfig | None, typed: frozenset[str] | None, tokenizer: str) -> Material:
    size = pick_size(None if texts.built_in else texts.characters)
    config = laid_over(size.config(), model, typed)
    data = prepare(texts, new_tokenizer(tokenizer, "".join(texts.documents)), config.context)
    config = replace(config, vocab=data.tokenizer.size, context=data.context)
    sizes = say(
        "training.sizes",
        characters=f"{texts.characters:,}",
        layers=config.layers,
        heads=config.heads,
        width=config.width,
        context=config.context,
        dropout=config.dropout,
    )
    return Material(config, data, size.batch, sizes)


def _pairs(texts: PairTexts, model: EncoderDecoderConfig, typed: frozenset[str] | None, tokenizer: str) -> Material:
    every = "".join(side for pair in texts.pairs for side in pair)
    data = prepare_pairs(texts, MarkedTokenizer(new_tokenizer(tokenizer, every)))
    source, target = data.longest
    picked = replace(pick_pairs_config(len(texts.pairs)), context=target, source_context=source)
    config = _fitting_pairs(laid_over(picked, model, typed), data)
    sizes = say(
        "training.sizes_pairs",
        pairs=f"{len(texts.pairs):,}",
        encoder_layers=config.encoder.layers,
        layers=config.layers,
        heads=config.heads,
        width=config.width,
        source=config.encoder.context,
        target=config.context,
        dropout=config.dropout,
    )
    batch = pick_pairs_batch(config, source, target)
    few = say("training.few_pairs", batch=batch, usual=PAIRS_BATCH, source=source, target=target)
    return Material(config, data, batch, sizes, few if batch < PAIRS_BATCH else None)


def _fitting_pairs(config: EncoderDecoderConfig, data: PairData) -> EncoderDecoderConfig:
    """One vocabulary, that of the tokenizer; and contexts that hold every pair."""
    if config.source_vocab is not None:
        raise UserError(say("training.one_vocabulary"))
    source, target = data.longest
    if source > config.encoder.context:
        path, line = data.places_of_longest[0]
        context = config.encoder.context
        raise UserError(say("training.source_too_long", path=path, line=line, longest=source, context=context))
    if target > config.context:
        path, line = data.places_of_longest[1]
        context = config.context
        raise UserError(say("training.target_too_long", path=path, line=line, longest=target, context=context))
    return replace(config, vocab=data.tokenizer.size)


def laid_over(picked: Kind, model: Kind | None, typed: frozenset[str] | None) -> Kind:
    """The picked configuration with the fields of `model` that the user has named."""
    if model is None:
        return picked
    if typed is None:
        return model
    return type(picked)(
        **{field.name: getattr(model if field.name in typed else picked, field.name) for field in fields(picked)}
    )
