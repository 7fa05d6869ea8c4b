"""An encoder is a model like any other: it loads. What writes text refuses it in one line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from clearhead.checking.model import check_model
from clearhead.cli import main
from clearhead.formats.atomic import new_folder, write_json
from clearhead.formats.load import Loaded, load, writer_of
from clearhead.formats.run import create_run
from clearhead.formats.weights import own_tensors, save_tensors
from clearhead.generation.beams import beam_search
from clearhead.generation.chat import template_of
from clearhead.generation.generate import generate, stream
from clearhead.messages import UserError
from clearhead.models.build import build
from clearhead.models.choices import EncoderHead, Features, MaskedToken, Mean, Pooled
from clearhead.models.config import ModelConfig
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.models.encoder import Encoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.text import ByteTokenizer, MarkedTokenizer, Tokenizer
from clearhead.tracing import trace
from tests.oracles.compare import assert_same


def stored(path: Path, config: ModelConfig, tokenizer: Tokenizer) -> torch.nn.Module:
    run, model = create_run(path, config, tokenizer, {}), build(config, seed=7)
    with new_folder(run.new_checkpoint(3)) as folder:
        save_tensors(own_tensors(model), folder / "model.safetensors")
        write_json(folder / "state.json", {"step": 3, "val_loss": None})
    return model


MASKED = MaskedToken()


def encoder(head: EncoderHead = MASKED) -> EncoderConfig:
    return EncoderConfig(layers=1, heads=2, width=12, context=10, vocab=259, head=head)


@pytest.mark.parametrize("head", [MaskedToken(), Features(), Pooled(Mean())], ids=["masked", "features", "pooled"])
def test_what_was_stored_is_loaded(tmp_path: Path, head: EncoderHead) -> None:
    model = stored(tmp_path / "run", encoder(head), MarkedTokenizer(ByteTokenizer(), masked=True))
    loaded, ids = load(tmp_path / "run"), torch.randint(259, (2, 7))
    assert isinstance(loaded.model, Encoder)
    assert loaded.config == encoder(head)
    assert not loaded.model.training
    assert_same(loaded.model(ids).detach(), model.eval()(ids).detach())


@pytest.mark.parametrize(
    "use",
    [
        writer_of,
        lambda loaded: generate(loaded, "ab"),
        lambda loaded: list(stream(loaded, "ab")),
        lambda loaded: beam_search(loaded, "ab"),
        template_of,
        check_model,
        lambda loaded: trace(loaded, "ab"),
    ],
    ids=["writer_of", "generate", "stream", "beam_search", "chat", "check", "trace"],
)
def test_what_writes_text_refuses_it(tmp_path: Path, use: Callable[[Loaded], object]) -> None:
    stored(tmp_path / "run", encoder(), MarkedTokenizer(ByteTokenizer(), masked=True))
    with pytest.raises(UserError, match="is an encoder alone") as error:
        use(load(tmp_path / "run"))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("command", ["generate", "chat", "check", "trace"])
def test_a_command_says_so_and_ends_with_2(tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    stored(tmp_path / "run", encoder(), MarkedTokenizer(ByteTokenizer(), masked=True))
    prompt = ["-p", "ab"] if command in ("generate", "trace") else []
    assert main.main([command, str(tmp_path / "run"), *prompt]) == 2
    assert "is an encoder alone" in capsys.readouterr().err


@dataclass(frozen=True)
class Spelt(ByteTokenizer):
    """A tokenizer that has marks and is no `MarkedTokenizer`."""

    begin = 0
    end = 1


PAIR = EncoderDecoderConfig(layers=1, heads=2, width=12, context=10, vocab=256)


def test_an_encoder_decoder_needs_marks_whatever_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored(tmp_path / "run", PAIR, ByteTokenizer())
    with pytest.raises(UserError, match="needs a tokenizer with marks"):
        load(tmp_path / "run")
    monkeypatch.setattr("clearhead.formats.run.tokenizer_from_dict", lambda _: Spelt())
    loaded = load(tmp_path / "run")
    assert isinstance(loaded.model, EncoderDecoder)
    assert generate(loaded, "ab", max_tokens=3, temperature=0).ids is not None
    assert trace(loaded, "ab").source[-1] == Spelt().pieces([1])[0]
