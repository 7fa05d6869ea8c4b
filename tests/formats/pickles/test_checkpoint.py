"""nanoGPT's checkpoints and the course's weights compute here what they compute there."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import torch
from torch import Tensor, nn

from clearhead.formats.assemble import assemble
from clearhead.formats.opened import Opened
from clearhead.formats.pickles import torch_file
from clearhead.formats.pickles.checkpoint import open_pickle
from clearhead.formats.rows import Row
from clearhead.messages import UserError
from clearhead.models.choices import GELU, GELUTanh, LayerNorm, ReLU
from clearhead.text import LibraryTokenizer
from clearhead.text.numbers import NumberTokenizer
from tests.formats.pickles.peers import NANO, Course, Nano, nano_checkpoint

Weights = dict[str, Tensor]


def opened(folder: Path, saved: object, *, legacy: bool = False) -> Opened:
    torch.save(saved, folder / "ckpt.pt", _use_new_zipfile_serialization=not legacy)
    return open_pickle(folder / "ckpt.pt")


def difference(found: Opened, peer: nn.Module) -> float:
    """The largest, of all logits at every position."""
    ours, _ = assemble(found, torch.float64, "cpu")
    ids = torch.randint(11, (2, 7))
    with torch.no_grad():
        return (ours(ids) - peer(ids)).abs().max().item()


@pytest.mark.parametrize("legacy", [False, True], ids=["zip", "before 1.6"])
@pytest.mark.parametrize("bias", [True, False])
def test_nanogpt(tmp_path: Path, bias: bool, legacy: bool) -> None:
    peer = Nano(bias=bias)
    found = opened(tmp_path, nano_checkpoint(peer, model_args=NANO | {"bias": bias}), legacy=legacy)
    assert difference(found, peer) < 1e-12
    config = found.config
    assert (config.heads, config.context, config.dropout, config.tied) == (3, 7, 0.1, True)
    assert (config.activation, config.norm, config.qkv_bias, config.bias) == (GELU(), LayerNorm(bias=bias), bias, bias)
    assert found.origin == "nanoGPT"
    report = assemble(found, torch.float64, "cpu")[1]
    assert report.retied["lm_head.weight"] == "transformer.wte.weight"
    assert report.unused == ("transformer.h.0.attn.bias", "transformer.h.1.attn.bias")


@pytest.mark.parametrize("legacy", [False, True], ids=["zip", "before 1.6"])
@pytest.mark.parametrize("sizes", [{}, {"head_width": 5, "hidden": 17}], ids=["usual", "other widths"])
def test_course(tmp_path: Path, sizes: dict[str, int], legacy: bool) -> None:
    peer = Course(**sizes)
    found = opened(tmp_path, peer.state_dict(), legacy=legacy)
    assert difference(found, peer) < 1e-12
    config = found.config
    assert (config.heads, config.layers, config.context, config.tied, config.head_bias) == (3, 2, 7, False, True)
    assert (config.activation, config.qkv_bias, config.bias) == (ReLU(), False, True)
    assert config.head_width == sizes.get("head_width")
    assert found.origin == "course GPT"


def test_course_with_one_projection_for_all_heads(tmp_path: Path) -> None:
    """The exercise of chapter 19: no shape tells the number of heads, so that the file must."""
    peer = Course()
    weights = dict(peer.state_dict())
    for index in range(2):
        heads = [f"blocks.{index}.sa.heads.{head}" for head in range(3)]
        parts = [weights[f"{head}.{part}.weight"] for part in ("query", "key", "value") for head in heads]
        weights[f"blocks.{index}.sa.qkv.weight"] = torch.cat(parts)
    weights = {name: tensor for name, tensor in weights.items() if ".heads." not in name}
    assert difference(opened(tmp_path, {"state_dict": weights, "config": {"n_head": 3}}), peer) < 1e-12
    assert difference(opened(tmp_path, {"state_dict": weights, "config": {"n_head": 2}}), peer) > 1e-3
    with pytest.raises(UserError, match="how many heads"):
        opened(tmp_path, weights)


@pytest.mark.parametrize(
    "fault",
    [
        lambda found: replace(found, config=replace(found.config, activation=GELUTanh())),
        lambda found: replace(found, config=replace(found.config, heads=2)),
        lambda found: replace(found, config=replace(found.config, norm=LayerNorm(eps=1e-6))),
    ],
    ids=["tanh", "heads", "eps"],
)
@pytest.mark.parametrize("kind", [Nano, Course])
def test_a_planted_fault_is_seen(
    tmp_path: Path, fault: Callable[[Opened], Opened], kind: type[Nano] | type[Course]
) -> None:
    peer = kind()
    found = opened(tmp_path, nano_checkpoint(peer) if isinstance(peer, Nano) else peer.state_dict())
    assert difference(fault(found), peer) > 1e-9


def test_planted_keys_before_queries_are_seen(tmp_path: Path) -> None:
    peer = Course()
    found = opened(tmp_path, peer.state_dict())
    turned = replace(found, rows=tuple(map(_turned, found.rows)))
    assert sum(one != other for one, other in zip(found.rows, turned.rows, strict=True)) == 2
    assert difference(turned, peer) > 1e-3


def _turned(row: Row) -> Row:
    """The keys before the queries, where they are tensors of their own."""
    if len(row.parts) != 9:
        return row
    return replace(row, parts=row.parts[3:6] + row.parts[:3] + row.parts[6:])


@pytest.mark.parametrize(
    "prefix", ["_orig_mod.", "module.", "module._orig_mod.", "_orig_mod.module.", "module.module."]
)
def test_prefixes(tmp_path: Path, prefix: str) -> None:
    for peer in (Nano(), Course()):
        weights = {f"{prefix}{name}": tensor for name, tensor in peer.state_dict().items()}
        saved = {"model": weights, "model_args": NANO} if isinstance(peer, Nano) else weights
        assert difference(opened(tmp_path, saved), peer) < 1e-12


def test_a_prefix_inside_a_name(tmp_path: Path) -> None:
    """Blocks may be compiled one by one."""
    peer = Course()
    weights = {name.replace("blocks.1.", "blocks.1._orig_mod."): each for name, each in peer.state_dict().items()}
    assert difference(opened(tmp_path, weights), peer) < 1e-12


@pytest.mark.parametrize(
    "wrap",
    [
        lambda weights: {"state_dict": weights},
        lambda weights: {"model": weights, "epoch": 3, "loss": torch.tensor(2.0)},
        lambda weights: {"model_state_dict": weights, "optimizer_state_dict": {}},
        lambda weights: {"state_dict": {"model": weights}, "args": {"lr": 0.1}},
    ],
)
def test_wrapped(tmp_path: Path, wrap: Callable[[Weights], dict[str, Any]]) -> None:
    peer = Course()
    assert difference(opened(tmp_path, wrap(peer.state_dict())), peer) < 1e-12


def test_nanogpt_without_its_arguments(tmp_path: Path) -> None:
    peer = Nano()
    for saved in ({"model": peer.state_dict(), "model_args": {"n_head": 3}}, peer.state_dict() | {}):
        if "model" in saved:
            assert difference(opened(tmp_path, saved), peer) < 1e-12
        else:
            with pytest.raises(UserError, match="how many heads"):
                opened(tmp_path, saved)


def test_a_head_that_is_not_the_embedding_is_kept(tmp_path: Path) -> None:
    peer = Nano()
    peer.lm_head.weight = nn.Parameter(peer.lm_head.weight + 1)
    found = opened(tmp_path, {"model": peer.state_dict(), "model_args": NANO})
    assert found.config.tied is False
    assert difference(found, peer) < 1e-12


def test_a_head_that_is_left_out_is_the_embedding(tmp_path: Path) -> None:
    peer = Nano()
    found = opened(tmp_path, {"model": dict(peer.named_parameters()), "model_args": NANO})
    assert found.config.tied is True
    assert difference(found, peer) < 1e-12


def test_pages_are_given_back_and_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    peer = Course()
    found = opened(tmp_path, peer.state_dict())
    loads = []
    load = torch_file._loaded
    monkeypatch.setattr(torch_file, "_loaded", lambda path, mapped: loads.append(path) or load(path, mapped=mapped))
    assert difference(found, peer) < 1e-12
    assert len(loads) == 1
    monkeypatch.setattr(torch_file, "MAPPED", 1)
    assert difference(opened(tmp_path, peer.state_dict()), peer) < 1e-12
    assert len(loads) > 20


def test_what_is_read_is_no_part_of_the_file(tmp_path: Path) -> None:
    found = opened(tmp_path, Course().state_dict())
    found.tensors.read("ln_f.weight").zero_()
    assert found.tensors.read("ln_f.weight").count_nonzero() == 12


def letters(count: int) -> dict[str, Any]:
    """nanoGPT's meta.pkl of so many characters."""
    characters = "\nabcdefghijklmnop"[:count]
    return {
        "vocab_size": count,
        "itos": dict(enumerate(characters)),
        "stoi": {character: id for id, character in enumerate(characters)},
    }


def test_the_vocabulary_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "meta.pkl").write_bytes(pickle.dumps(letters(11)))
    found = opened(tmp_path, nano_checkpoint(Nano()))
    assert found.tokenizer.encode("cab\n") == [3, 1, 2, 0]
    assert open_pickle(tmp_path).tokenizer == found.tokenizer


@pytest.mark.parametrize(("folders", "there"), [("out", True), ("runs/a/out", True), ("a/b/c/d/e/f/out", False)])
def test_the_vocabulary_of_the_data(tmp_path: Path, folders: str, there: bool) -> None:
    """nanoGPT keeps it in data/<dataset>, beside the folder of the checkpoint or above."""
    data, out = tmp_path / "data/letters", tmp_path / folders
    data.mkdir(parents=True)
    out.mkdir(parents=True)
    (data / "meta.pkl").write_bytes(pickle.dumps(letters(11)))
    assert isinstance(opened(out, nano_checkpoint(Nano())).tokenizer, LibraryTokenizer) is there


@pytest.mark.parametrize(
    "name", ["../letters", "..", ".", "", "/etc", "letters/../letters", "a\0b", 7, None, ["letters"]]
)
def test_a_name_of_data_that_leaves_the_folder_is_not_followed(tmp_path: Path, name: object) -> None:
    for folder in ("data", "letters", "data/letters"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "meta.pkl").write_bytes(b"not a vocabulary")
    (tmp_path / "out").mkdir()
    found = opened(tmp_path / "out", nano_checkpoint(Nano(), config={"dataset": name}))
    assert found.tokenizer == NumberTokenizer(11)
    with pytest.raises(UserError, match=r"meta\.pkl"):
        opened(tmp_path / "out", nano_checkpoint(Nano(), config={"dataset": "letters"}))


def test_a_vocabulary_of_another_model(tmp_path: Path) -> None:
    (tmp_path / "meta.pkl").write_bytes(pickle.dumps(letters(7)))
    with pytest.raises(UserError, match="7 ids and the model 11"):
        opened(tmp_path, nano_checkpoint(Nano()))


def test_a_tokenizer_with_fewer_tokens_than_the_padded_vocabulary(tmp_path: Path) -> None:
    """nanoGPT rounds GPT-2's 50,257 up to 50,304."""
    vocab = {"a": 0, "b": 1, "c": 2}
    made = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocab, merges=[]))
    made.decoder = tokenizers.decoders.Fuse()
    made.add_special_tokens(["<|endoftext|>"])
    (tmp_path / "tokenizer.json").write_text(made.to_str(), encoding="utf-8")
    tokenizer = opened(tmp_path, nano_checkpoint(Nano())).tokenizer
    assert (tokenizer.size, tokenizer.end, tokenizer.encode("cab")) == (11, 3, [2, 0, 1])
    assert tokenizer.decode([2, 10, 0]) == "ca"
    with pytest.raises(UserError, match="4 ids and the model 211"):
        opened(tmp_path, nano_checkpoint(Nano(vocab_size=211), model_args={"n_head": 3}))


def test_without_a_vocabulary_a_text_is_ids(tmp_path: Path) -> None:
    assert opened(tmp_path, nano_checkpoint(Nano())).tokenizer == NumberTokenizer(11)
