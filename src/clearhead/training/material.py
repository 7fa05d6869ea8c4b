"""What a training works with: data, a model whose sizes fit it, and the model that it begins with, if there is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from clearhead.formats.run import Run
from clearhead.generation.chat import CHAT_TEMPLATE
from clearhead.messages import UserError, say
from clearhead.models.choices import MaskedToken
from clearhead.models.config import DecoderConfig, ModelConfig, StackConfig
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.text import MarkedTokenizer, Tokenizer
from clearhead.text.messages_file import holds_conversations
from clearhead.training.asked import Asked, Data, Dial, Material, config_of, sizes_of
from clearhead.training.conversation_data import ConversationData, prepare_conversations, read_conversation_texts
from clearhead.training.data_choice import DataChoice, Watch, unwatched
from clearhead.training.masking import hiding_of
from clearhead.training.pair_data import PairData, prepare_pairs, read_pair_texts
from clearhead.training.run import measured_speed
from clearhead.training.sizing import (
    LONGEST_WINDOW,
    PAIRS_BATCH,
    RUNGS,
    Size,
    pick_pairs_batch,
    pick_pairs_config,
    pick_size,
    sized,
)
from clearhead.training.tasks import HiddenTokens, PackedDocuments, RunningText, Task
from clearhead.training.text_data import TextData, fitting_context, prepare
from clearhead.training.texts import Texts, Written, new_tokenizer, read_texts

SIZED = frozenset({"layers", "heads", "width", "context"})
"""What the dial chooses."""


def new_material(asked: Asked) -> Material:
    """Read the files, and pick for the model what the user has not named.

    Raises:
        UserError: if a file cannot be used, or the model does not learn from such files.
    """
    kind = asked.model if asked.init is None else asked.init.config
    if asked.dial is not None and not (asked.init is None and isinstance(kind, DecoderConfig | None)):
        raise UserError(say("training.minutes_of_decoders"))
    if isinstance(kind, EncoderDecoderConfig):
        _must_matter(asked.choice, lines=False, packed=False)
        return _pairs(asked)
    if isinstance(kind, DecoderConfig | None) and _are_conversations(asked.files, asked.choice):
        if asked.dial is not None:
            raise UserError(say("training.minutes_of_decoders"))
        _must_matter(asked.choice, lines=False, packed=False)
        return _conversations(asked)
    if isinstance(kind, EncoderConfig) and not isinstance(kind.head, MaskedToken):
        raise UserError(say("training.encoder_head", head=type(kind.head).__name__))
    return _text(asked)


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


def _read_again(run: Run, files: Sequence[str], recorded: Mapping[str, Any], watch: Watch) -> Data:
    choice, config = DataChoice.of_record(recorded), run.model
    before = [path for kind in ("files", "pairs", "conversations") for path in recorded.get(kind, ())]
    gone = None if files else next((path for path in before if not Path(path).exists()), None)
    if gone is not None:
        raise UserError(say("training.data_gone", path=gone, out=run.path))
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
    packed = texts.sides.by_document and not _reads_alone(asked)
    _must_matter(asked.choice, lines=texts.lines, packed=packed)
    size = pick_size(None if texts.built_in else texts.characters)
    config: DecoderConfig | EncoderConfig = config_of(asked, size.encoder() if _reads_alone(asked) else size.config())
    if asked.init is None:
        tokenizer = new_tokenizer(asked.choice, texts, asked.watch)
        tokenizer, context = _marked(tokenizer, config, by_document=texts.sides.by_document), config.context
    else:
        tokenizer, context = asked.init.tokenizer, min(config.context, LONGEST_WINDOW)
    task = _task(config, tokenizer, by_document=texts.sides.by_document, alone=asked.choice.masked)
    if asked.dial is not None:
        named = sorted((asked.typed or frozenset()) & SIZED)
        if named:
            raise UserError(say("training.minutes_choose", flags=" ".join(f"--model.{name}" for name in named)))
        return _dialled(asked, asked.dial, texts, task, tokenizer)
    data = prepare(texts, tokenizer, task, context=context, folder=asked.folder, watch=asked.watch)
    if asked.init is None:
        config = replace(config, vocab=tokenizer.size, context=data.context)
    return Material(config, data, size.batch, sizes_of(asked, config, texts.characters))


def _reads_alone(asked: Asked) -> bool:
    """Whether the model is an encoder."""
    return isinstance(asked.model if asked.init is None else asked.init.config, EncoderConfig)


def _must_matter(choice: DataChoice, *, lines: bool, packed: bool) -> None:
    """Raise a UserError if something is said of the data that has no effect on it."""
    if choice.field is not None and not lines:
        raise UserError(say("training.no_effect", flag="--field", reason=say("training.no_lines")))
    if choice.document_mask is not None and not packed:
        raise UserError(say("training.no_effect", flag="--document-mask", reason=say("training.no_documents_packed")))


def _dialled(asked: Asked, dial: Dial, texts: Texts, task: Task, tokenizer: Tokenizer) -> Material:
    """The decoder that is best for the time that there is."""
    longest = max(size.context for size in RUNGS)
    data = prepare(texts, tokenizer, task, context=longest, folder=asked.folder, watch=asked.watch)

    def of_size(size: Size) -> DecoderConfig:
        config = config_of(asked, size.config())
        return replace(config, vocab=tokenizer.size, context=min(config.context, data.context))

    def speed_of(size: Size) -> float:
        config = of_size(size)
        return measured_speed(
            config, data.objective(config, batch=size.batch, seed=0), dial.device, settings=dial.settings
        )

    made = sized(dial.minutes, tokens=data.tokens, vocab=tokenizer.size, speed_of=speed_of)
    config, size = of_size(made.size), made.size
    return Material(config, data, size.batch, made.reason, steps=made.steps, speed=made.tokens_per_second)


def _conversations(asked: Asked) -> Material:
    read = read_conversation_texts(asked.files, asked.choice)
    template = (asked.init.chat_template if asked.init is not None else None) or CHAT_TEMPLATE
    every = read.written(template)
    size = pick_size(sum(map(len, every)))
    config = config_of(asked, size.config())
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
    return Material(config, data, 2 * size.batch, sizes_of(asked, config, sum(map(len, every))))


def _pairs(asked: Asked) -> Material:
    texts = read_pair_texts(asked.files, asked.choice)
    if asked.init is None:
        written = Written([side for pair in texts.pairs for side in pair])
        data = prepare_pairs(texts, MarkedTokenizer(new_tokenizer(asked.choice, written, asked.watch)))
    else:
        data = prepare_pairs(texts, asked.init.tokenizer)
    source, target = data.longest
    picked = replace(pick_pairs_config(len(texts.pairs)), context=target, source_context=source)
    config = config_of(asked, picked)
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
    return Material(config, data, batch, sizes if asked.picks else None, few if batch < PAIRS_BATCH else None)


def _marked(tokenizer: Tokenizer, config: StackConfig, *, by_document: bool) -> Tokenizer:
    """A new tokenizer with the marks that its model needs: documents have ends, an encoder has a mask."""
    if isinstance(config, EncoderConfig):
        return MarkedTokenizer(tokenizer, masked=True)
    return MarkedTokenizer(tokenizer) if by_document and tokenizer.end is None else tokenizer


def _task(config: StackConfig, tokenizer: Tokenizer, *, by_document: bool, alone: bool) -> Task:
    if not isinstance(config, EncoderConfig):
        return PackedDocuments(tokenizer.begin, tokenizer.end, alone) if by_document else RunningText()
    hiding = hiding_of(tokenizer)
    if hiding is None:
        raise UserError(say("training.no_mask"))
    return HiddenTokens(tokenizer.begin, tokenizer.end, hiding)


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
