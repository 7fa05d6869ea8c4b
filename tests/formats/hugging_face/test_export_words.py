"""What is written for others to read and write text with: the same ids, the same text, by `transformers` itself."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from clearhead.formats.hugging_face.export_words import library_json, roles_of, word_files
from clearhead.formats.load import Loaded
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig
from clearhead.models.config_encoders import EncoderConfig
from clearhead.text import ByteTokenizer, CharacterTokenizer, LibraryTokenizer, MarkedTokenizer, Tokenizer
from clearhead.text.bpe_training import train_bpe
from tests.text.library_files import ALL

TEXTS = (
    "The cat sat on the mat, didn't it?",
    "小猫趴在垫子上。床前明月光，疑是地上霜。",
    "👩‍👩‍👧‍👦 🏳️‍🌈 naïve e\u0301 👍🏽",
    "def f(x: int) -> str:\n\treturn f'{x!r}' + \"\\n\"  # <- here\n",
    " \t\r\n  two  spaces\u3000\u00a0\u2028\x00\x7f \n\n\n",
    "",
)


def random_texts(count: int = 100) -> list[str]:
    """Texts of any characters, the same each time; of few code points and of all."""
    drawn = random.Random(9)
    limits = (0x80, 0x250, 0x3100, 0x10000, 0x110000)

    def character() -> str:
        while 0xD800 <= (point := drawn.randrange(drawn.choice(limits))) < 0xE000:
            pass
        return chr(point)

    return ["".join(character() for _ in range(drawn.randrange(1, 30))) for _ in range(count)]


EVERY = [*TEXTS, *random_texts()]
KNOWN = CharacterTokenizer.of("".join(EVERY))
FEW = CharacterTokenizer.of("".join(TEXTS[:4]))
LEARNT = train_bpe(TEXTS * 3, vocab=330, specials=("<|end|>",))
OURS: dict[str, Tokenizer] = {
    "characters": KNOWN,
    "characters, most unknown": FEW,
    "bytes": ByteTokenizer(),
    "bpe": LEARNT,
    "bpe with marks": replace(LEARNT, begin=LEARNT.specials["<|end|>"], end=LEARNT.specials["<|end|>"]),
    "characters and marks": MarkedTokenizer(FEW),
    "bytes, marks and a mask": MarkedTokenizer(ByteTokenizer(), masked=True),
    "bpe, marks and a mask": MarkedTokenizer(LEARNT, masked=True),
}


def loaded(tokenizer: Tokenizer, segments: int = 0) -> Loaded:
    """A model with that tokenizer."""
    sizes: dict[str, Any] = {"layers": 1, "heads": 1, "width": 4, "context": 64, "vocab": tokenizer.size}
    config = EncoderConfig(**sizes, segments=segments) if segments else DecoderConfig(**sizes)
    return Loaded(build(config, device="meta"), tokenizer, config, Path("a run"))


def theirs(model: Loaded, folder: Path) -> Any:
    """What `transformers` makes of the files."""
    for name, text in word_files(model).items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "config.json").write_text('{"model_type": "gpt2"}', encoding="utf-8")
    return AutoTokenizer.from_pretrained(folder)


def differences(ours: Tokenizer, read: Any, texts: list[str]) -> Iterator[str]:
    """The texts that the two encode differently, or whose ids they decode differently."""
    for text in texts:
        ids = ours.encode(text)
        same = read(text, add_special_tokens=False).input_ids == ids
        if not same or read.decode(ids, skip_special_tokens=True) != ours.decode(ids):
            yield text


@pytest.mark.parametrize("name", OURS)
def test_ids_and_texts_are_the_same(name: str, tmp_path: Path) -> None:
    model = loaded(OURS[name])
    read = theirs(model, tmp_path)
    assert [*differences(OURS[name], read, EVERY)] == []
    assert {spelling: read.convert_tokens_to_ids(spelling) for spelling in OURS[name].specials} == OURS[name].specials
    assert {*read.all_special_ids} == {OURS[name].specials[spelling] for spelling in roles_of(model).values()}


@pytest.mark.parametrize("name", ALL)
def test_files_of_the_library_stay_what_they_are(name: str, tmp_path: Path) -> None:
    read = theirs(loaded(ALL[name]), tmp_path)
    # The list of words has none for the unknown: the library refuses what ours leaves out.
    texts = ["cat sat"] if name == "words" else ["the cats sat.", "plain 小猫"]
    ids = [ALL[name].encode(text) for text in texts]
    assert [read(text, add_special_tokens=False).input_ids for text in texts] == ids


def test_one_id_more_is_seen(tmp_path: Path) -> None:
    shifted = CharacterTokenizer(FEW.characters[1:] + FEW.characters[0])
    assert [*differences(FEW, theirs(loaded(shifted), tmp_path), [TEXTS[0]])] == [TEXTS[0]]


def test_a_dot_would_lose_line_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = word_files(loaded(KNOWN))
    planted = json.loads(files["tokenizer.json"])
    assert planted["pre_tokenizer"]["pattern"] == {"Regex": r"[\s\S]"}
    planted["pre_tokenizer"]["pattern"] = {"Regex": "."}
    monkeypatch.setattr(f"{__name__}.word_files", lambda _: files | {"tokenizer.json": json.dumps(planted)})
    # Between the pieces that it cuts out, several line ends are one.
    assert TEXTS[4] in differences(KNOWN, theirs(loaded(KNOWN), tmp_path), list(TEXTS))


def test_bytes_that_are_no_text_decode_alike(tmp_path: Path) -> None:
    read, drawn = theirs(loaded(ByteTokenizer()), tmp_path), random.Random(3)
    for _ in range(50):
        ids = [drawn.randrange(256) for _ in range(20)]
        assert read.decode(ids) == ByteTokenizer().decode(ids)


def test_marks_have_their_roles_and_a_text_is_surrounded(tmp_path: Path) -> None:
    tokenizer = MarkedTokenizer(FEW, masked=True)
    model = replace(loaded(tokenizer, segments=2), opening=(tokenizer.begin,), closing=(tokenizer.end,))
    read = theirs(model, tmp_path)
    ids = [read.cls_token_id, read.sep_token_id, read.mask_token_id]
    assert ids == [tokenizer.begin, tokenizer.end, tokenizer.mask] == [FEW.size, FEW.size + 1, FEW.size + 2]
    assert read("cat").input_ids == model.read("cat") == [FEW.size, *FEW.encode("cat"), FEW.size + 1]
    pair = read("cat", "sat")
    assert pair.input_ids == [*model.read("cat"), *FEW.encode("sat"), tokenizer.end]
    assert pair.token_type_ids == [0] * 5 + [1] * 4
    assert read("<begin>").input_ids == [tokenizer.begin, tokenizer.begin, tokenizer.end]


def test_a_template_that_says_the_same_stays_and_another_goes(tmp_path: Path) -> None:
    plain = library_json(MarkedTokenizer(FEW))
    assert plain is not None
    begin = FEW.size
    model = replace(loaded(LibraryTokenizer(json.dumps(plain))), opening=(begin, begin))
    written = json.loads(word_files(model)["tokenizer.json"])
    assert [next(iter(each)) for each in written["post_processor"]["single"]] == ["SpecialToken"] * 2 + ["Sequence"]
    written["post_processor"]["pair"].append({"SpecialToken": {"id": "<begin>", "type_id": 0}})
    own = replace(model, tokenizer=LibraryTokenizer(json.dumps(written)))
    assert json.loads(word_files(own)["tokenizer.json"])["post_processor"] == written["post_processor"]
    bare = json.loads(word_files(replace(own, opening=()))["tokenizer.json"])["post_processor"]
    assert (bare["single"], bare["special_tokens"]) == ([{"Sequence": {"id": "A", "type_id": 0}}], {})


def test_marks_come_behind_the_ids_that_a_vocabulary_leaves_out(tmp_path: Path) -> None:
    settings = library_json(ByteTokenizer())
    assert settings is not None
    vocabulary = settings["model"]["vocab"]
    letter = next(letter for letter, id in vocabulary.items() if id == 255)
    vocabulary[letter] = 300
    tokenizer = MarkedTokenizer(LibraryTokenizer(json.dumps(settings)))
    read = theirs(loaded(tokenizer), tmp_path)
    assert (read.bos_token_id, read.eos_token_id) == (301, 302)
    assert [*differences(tokenizer, read, EVERY)] == []


def test_usual_spellings_have_their_roles() -> None:
    settings = library_json(FEW)
    assert settings is not None
    spellings = ("[PAD]", "[CLS]", "[SEP]", "[MASK]")
    added = [{"id": FEW.size + n, "content": each, "special": True} for n, each in enumerate(spellings)]
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    tokenizer = LibraryTokenizer(json.dumps({**settings, "added_tokens": [each | plain for each in added]}))
    assert roles_of(loaded(tokenizer)) == {
        "pad_token": "[PAD]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "mask_token": "[MASK]",
    }


def test_numbers_have_no_files() -> None:
    class Numbers:
        size = 7

    model = replace(loaded(ByteTokenizer()), tokenizer=Numbers())  # type: ignore[arg-type]
    assert word_files(model) == {}
    assert word_files(loaded(ByteTokenizer())).keys() == {"tokenizer.json", "tokenizer_config.json"}
    assert "chat_template.jinja" in word_files(replace(loaded(ByteTokenizer()), chat_template="{{ messages }}"))
