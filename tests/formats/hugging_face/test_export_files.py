"""The files of an export: what they say, several with an index, all of them or none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from safetensors import safe_open

from clearhead.formats.hugging_face import export as module
from clearhead.formats.hugging_face.export import export, export_size
from tests.formats.hugging_face.exported import KINDS, MARKED, changed, difference, loaded, refusal, returned, theirs


def test_the_description(tmp_path: Path) -> None:
    export(loaded(KINDS["T5"]), tmp_path / "t5")
    described = json.loads((tmp_path / "t5" / "config.json").read_text(encoding="utf-8"))
    assert described["architectures"] == ["T5ForConditionalGeneration"]
    assert (described["model_type"], described["torch_dtype"]) == ("t5", "float32")
    ids = {"bos_token_id": MARKED.begin, "eos_token_id": MARKED.end, "decoder_start_token_id": MARKED.begin}
    assert described | ids == described
    generation = json.loads((tmp_path / "t5" / "generation_config.json").read_text(encoding="utf-8"))
    assert generation == ids | {"pad_token_id": MARKED.end}
    export(loaded(KINDS["Llama"]), tmp_path / "llama")
    described = json.loads((tmp_path / "llama" / "config.json").read_text(encoding="utf-8"))
    assert (described["bos_token_id"], described["eos_token_id"], described["pad_token_id"]) == (None, None, None)
    assert not (tmp_path / "llama" / "generation_config.json").exists()


def test_the_type_is_kept(tmp_path: Path) -> None:
    model = loaded(KINDS["Qwen 2"], torch.bfloat16)
    export(model, tmp_path / "there")
    with safe_open(tmp_path / "there" / "model.safetensors", "pt") as file:
        assert {file.get_tensor(name).dtype for name in file.keys()} == {torch.bfloat16}  # noqa: SIM118 - not a mapping
        assert file.metadata() == {"format": "pt"}
    assert theirs(model, tmp_path / "there").dtype is torch.bfloat16
    assert changed(model, returned(tmp_path / "there", torch.bfloat16)) == []


def test_several_files_with_an_index(tmp_path: Path) -> None:
    model, moved = loaded(KINDS["Mistral"]), []
    export(model, tmp_path / "there", limit=10_000, written=moved.append)
    files = sorted(file.name for file in (tmp_path / "there").glob("*.safetensors"))
    assert files[:2] == [f"model-0000{n}-of-{len(files):05d}.safetensors" for n in (1, 2)]
    assert all((tmp_path / "there" / name).stat().st_size < 12_000 for name in files)
    index = json.loads((tmp_path / "there" / "model.safetensors.index.json").read_text(encoding="utf-8"))
    assert sorted({*index["weight_map"].values()}) == files
    assert index["metadata"]["total_size"] == sum(moved) == export_size(model)
    assert difference(model, theirs(model, tmp_path / "there")) <= 1e-5
    assert changed(model, returned(tmp_path / "there")) == []


def test_nothing_is_written_over(tmp_path: Path) -> None:
    model = loaded(KINDS["nanoGPT"])
    (tmp_path / "empty").mkdir()
    export(model, tmp_path / "empty")
    before = {file.name: file.read_bytes() for file in (tmp_path / "empty").iterdir()}
    assert "is there already" in refusal(lambda: export(model, tmp_path / "empty"))
    assert {file.name: file.read_bytes() for file in (tmp_path / "empty").iterdir()} == before
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    assert "is there already" in refusal(lambda: export(model, tmp_path / "file"))
    export(model, tmp_path / "new" / "deeper")
    assert (tmp_path / "new" / "deeper" / "config.json").exists()


def test_stopped_halfway_it_leaves_nothing(tmp_path: Path) -> None:
    def stop(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export(loaded(KINDS["nanoGPT"]), tmp_path / "there", written=stop)
    assert [*tmp_path.iterdir()] == []
    # What a process that was killed could not clear away itself goes with the next export to the same place, and nothing else.
    for name in (".partial-99999-there", ".partial-99999-their", "mine"):
        (tmp_path / name).mkdir()
    export(loaded(KINDS["nanoGPT"]), tmp_path / "there")
    assert sorted(each.name for each in tmp_path.iterdir()) == [".partial-99999-their", "mine", "there"]


@contextmanager
def full(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A disk without room for weights."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(module, "write_safetensors", refuse)
        yield


def test_a_full_disk_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with full(monkeypatch):
        line = refusal(lambda: export(loaded(KINDS["nanoGPT"]), tmp_path / "there"))
    assert "cannot be written: No space left on device" in line
    assert [*tmp_path.iterdir()] == []
