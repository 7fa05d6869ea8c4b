"""What a training works with: data, a model whose sizes fit it, and the model that it begins with, if there is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from clearhead.formats.load import Loaded
from clearhead.formats.run import Run
from clearhead.generation.chat import CHAT_TEMPLATE
from clearhead.messages import UserError, say
from clearhead.models.choices import MaskedToken
from clearhead.models.config import DecoderConfig, ModelConfig, StackConfig
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.text import MarkedTokenizer, Tokenizer
from clearhead.text.messages_file import holds_conversations
from clearhead.training.conversation_data import ConversationData, prepare_conversations, read_conversation_texts
from clearhead.training.data_choice import DataChoice, Watch, unwatched
from clearhead.training.pair_data import PairData, prepare_pairs, read_pair_texts
from clearhead.training.sizing import (
    LONGEST_WINDOW,
    PAIRS_BATCH,
    pick_pairs_batch,
    pick_pairs_config,
    pick_size,
)
from clearhead.training.tasks import HiddenTokens, PackedDocuments, RunningText, Task
from clearhead.training.text_data import TextData, fitting_context, prepare
from clearhead.training.texts import Written, new_tokenizer, read_texts

Data = TextData | PairData | ConversationData
"""What was read, as ids."""

Kind = TypeVar("Kind", bound=StackConfig)


@dataclass(frozen=True)
class Asked:
    """What a user asks for.

    Args:
        files: texts; pairs for an encoder-decoder; conversations; none for the built-in corpus.
        choice: what was said about them.
        folder: where token files go.
        model: the kind of model, its sizes and parts; a decoder picked for the data if None.
        typed: the fields of `model` that the user has named, the others are picked; all of them if None.
        init: the model that is continued; a new one is made if None.
        watch: who is told how far reading is.
    """

    files: Sequence[str]
    choice: DataChoice
    folder: Path
    model: ModelConfig | None = None
    typed: frozenset[str] | None = None
    init: Loaded | None = None
    watch: Watch = unwatched


@dataclass(frozen=True)
class Material:
    """Data, and the model that will learn from it."""

    config: DecoderConfig | EncoderConfig | EncoderDecoderConfig
    data: Data
    batch: int
    """How many samples an update takes, unless the user says otherwise."""
    sizes: str | None
    """The sizes in words, where they were picked."""
    few: str | None = None
    """Why `batch` is smaller than it is for others; None if it is not."""


def new_material(asked: Asked) -> Material:
    """Read the files, and pick for the model what the user has not named.

    Raises:
        UserError: if a file cannot be used, or the model does not learn from such files.
    """
    kind = asked.model if asked.init is None else asked.init.config
    if isinstance(kind, EncoderDecoderConfig):
        return _pairs(asked)
    if isinstance(kind, DecoderConfig | None) and _are_conversations(asked.files, asked.choice):
        return _conversations(asked)
    if isinstance(kind, EncoderConfig) and not isinstance(kind.head, MaskedToken):
        raise UserError(say("training.encoder_head", head=type(kind.head).__name__))
    if isinstance(kind, DecoderConfig | EncoderConfig | None):
        return _text(asked)
    raise UserError(say("training.not_trained", name=type(kind).__name__))


def same_material(run: Run, files: Sequence[str], recorded: Mapping[str, Any], watch: Watch = unwatched) -> Data:
    """The data that a run was started with; from the same files, or from where they are now.

    Raises:
        UserError: if a file cannot be used, or holds something else than it did.
    """
    data = _read_again(run, files, recorded, watch)
    for digest in ("sha256", "template_sha256"):
        if data.source.get(digest) != recorded.get(digest):
            raise UserError(say("training.text_changed", out=run.path))
    return data


def fitting(model: ModelConfig, data: Data) -> ModelConfig:
    """`model` as it would have become on this data: with contexts that fit it.

    Raises:
        UserError: if the longest pair or conversation does not fit.
    """
    if isinstance(model, EncoderDecoderConfig) and isinstance(data, PairData):
        return _fitting_pairs(model, data)
    assert isinstance(model, StackConfig)
    if isinstance(data, ConversationData):
        data.must_fit(model.context)
        return model
    assert isinstance(data, TextData)
    return replace(model, context=fitting_context(data.task, data.ids, model.context)[0])


def laid_over(picked: Kind, model: Kind | None, typed: frozenset[str] | None) -> Kind:
    """The picked configuration with the fields of `model` that the user has named."""
    if model is None:
        return picked
    if typed is None:
        return model
    return type(picked)(
        **{field.name: getattr(model if field.name in typed else picked, field.name) for field in fields(picked)}
    )


def _read_again(run: Run, files: Sequence[str], recorded: Mapping[str, Any], watch: Watch) -> Data:
    choice, config = DataChoice.of_record(recorded), run.model
    if isinstance(config, EncoderDecoderConfig):
        return prepare_pairs(read_pair_texts(files or recorded.get("pairs", ()), choice), run.tokenizer)
    if "conversations" in recorded:
        conversations = read_conversation_texts(files or recorded["conversations"], choice)
        return prepare_conversations(conversations, run.tokenizer, run.chat_template() or CHAT_TEMPLATE)
    assert isinstance(config, DecoderConfig | EncoderConfig)
    texts = read_texts(files or recorded.get("files", ()), choice, watch)
    if texts.source["sha256"] != recorded["sha256"]:
        # Said before its ids replace those of the texts that were trained on.
        raise UserError(say("training.text_changed", out=run.path))
    task = _task(config, run.tokenizer, by_document=texts.sides.by_document, alone=choice.masked)
    context = config.context if run.begins_with is None else min(config.context, LONGEST_WINDOW)
    return prepare(texts, run.tokenizer, task, context=context, folder=run.path / "tokens", watch=watch)


def _are_conversations(files: Sequence[str], choice: DataChoice) -> bool:
    """Whether every file holds conversations, and no field of theirs was named as the text."""
    told_apart = bool(files) and choice.field is None
    return told_apart and all(holds_conversations(Path(file), choice.reading) for file in files)


def _text(asked: Asked) -> Material:
    texts = read_texts(asked.files, asked.choice, asked.watch)
    size = pick_size(None if texts.built_in else texts.characters)
    reads_alone = isinstance(asked.model if asked.init is None else asked.init.config, EncoderConfig)
    config: DecoderConfig | EncoderConfig = _config(asked, size.encoder() if reads_alone else size.config())
    if asked.init is None:
        tokenizer = new_tokenizer(asked.choice, texts, asked.watch)
        tokenizer, context = _marked(tokenizer, config, by_document=texts.sides.by_document), config.context
    else:
        tokenizer, context = asked.init.tokenizer, min(config.context, LONGEST_WINDOW)
    task = _task(config, tokenizer, by_document=texts.sides.by_document, alone=asked.choice.masked)
    data = prepare(texts, tokenizer, task, context=context, folder=asked.folder, watch=asked.watch)
    if asked.init is None:
        config = replace(config, vocab=tokenizer.size, context=data.context)
    return Material(config, data, size.batch, _sizes(asked, config, texts.characters))


def _conversations(asked: Asked) -> Material:
    read = read_conversation_texts(asked.files, asked.choice)
    template = (asked.init.chat_template if asked.init is not None else None) or CHAT_TEMPLATE
    every = read.written(template)
    size = pick_size(sum(map(len, every)))
    config = _config(asked, size.config())
    assert isinstance(config, DecoderConfig)
    if asked.init is None:
        tokenizer = new_tokenizer(asked.choice, Written(every), asked.watch)
        data = prepare_conversations(read, _marked(tokenizer, config, by_document=True), template)
        named = asked.typed is None or "context" in asked.typed
        context = config.context if named else max(config.context, data.longest)
        config = replace(config, vocab=data.tokenizer.size, context=context)
    else:
        data = prepare_conversations(read, asked.init.tokenizer, template)
    data.must_fit(config.context)
    return Material(config, data, 2 * size.batch, _sizes(asked, config, sum(map(len, every))))


def _pairs(asked: Asked) -> Material:
    texts = read_pair_texts(asked.files, asked.choice)
    if asked.init is None:
        written = Written([side for pair in texts.pairs for side in pair])
        data = prepare_pairs(texts, MarkedTokenizer(new_tokenizer(asked.choice, written, asked.watch)))
    else:
        data = prepare_pairs(texts, asked.init.tokenizer)
    source, target = data.longest
    picked = replace(pick_pairs_config(len(texts.pairs)), context=target, source_context=source)
    config = _config(asked, picked)
    assert isinstance(config, EncoderDecoderConfig)
    config = _fitting_pairs(config, data)
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
    return Material(config, data, batch, sizes if _picks(asked) else None, few if batch < PAIRS_BATCH else None)


def _config(asked: Asked, picked: Kind) -> Kind:
    """The model's configuration: picked, as typed, or that of the model that is continued.

    Raises:
        UserError: if a field is named that a model which is there already cannot change.
    """
    if asked.init is None:
        assert isinstance(asked.model, type(picked) | None)
        return laid_over(picked, asked.model, asked.typed)
    typed = asked.typed or frozenset()
    fixed = sorted(typed - {"dropout"})
    if fixed:
        raise UserError(say("training.init_fixes", fields=" ".join(f"--model.{field}" for field in fixed)))
    config = asked.init.config
    assert isinstance(config, type(picked))
    if isinstance(asked.model, StackConfig) and "dropout" in typed:
        return replace(config, dropout=asked.model.dropout)
    return config


def _marked(tokenizer: Tokenizer, config: StackConfig, *, by_document: bool) -> Tokenizer:
    """A new tokenizer with the marks that its model needs: documents have ends, an encoder has a mask."""
    if isinstance(config, EncoderConfig):
        return MarkedTokenizer(tokenizer, masked=True)
    return MarkedTokenizer(tokenizer) if by_document and tokenizer.end is None else tokenizer


def _task(config: StackConfig, tokenizer: Tokenizer, *, by_document: bool, alone: bool) -> Task:
    if not isinstance(config, EncoderConfig):
        return PackedDocuments(tokenizer.begin, tokenizer.end, alone) if by_document else RunningText()
    if not isinstance(tokenizer, MarkedTokenizer) or tokenizer.mask is None:
        raise UserError(say("training.no_mask"))
    return HiddenTokens(tokenizer.begin, tokenizer.end, tokenizer.mask, tokenizer.inner.size)


def _picks(asked: Asked) -> bool:
    """Whether sizes were left to be picked."""
    return asked.init is None and (asked.model is None or asked.typed is not None)


def _sizes(asked: Asked, config: StackConfig, characters: int) -> str | None:
    if not _picks(asked):
        return None
    return say(
        "training.sizes",
        characters=f"{characters:,}",
        layers=config.layers,
        heads=config.heads,
        width=config.width,
        context=config.context,
        dropout=config.dropout,
    )


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
