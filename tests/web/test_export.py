"""The page as one file: what it holds, what it says of itself, and that a prompt in it stays text."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from clearhead.formats.load import Loaded
from clearhead.messages import UserError
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.models.decoder import Decoder
from clearhead.text import ByteTokenizer
from clearhead.web import export
from clearhead.web.answers import answer
from clearhead.web.export import Place, Question, answers_of, exported, parts_of, place_of
from clearhead.web.files import static_files
from clearhead.web.opening import opened
from clearhead.web.session import Session
from tests.web.asking import small
from tests.web.read_models import pair
from tests.web.scripts import told

EVIL = "</script><script>alert(1)</script><!-- \"abc\" & '小猫'"
WHERE = {"view": "head", "layer": "1", "head": "2", "query": "3", "key": "1"}


class Read(HTMLParser):
    """What a browser makes of a page: its elements, and the texts of its scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.texts.append("")

    def handle_data(self, data: str) -> None:
        if self.texts:
            self.texts[-1] += data

    def of(self, tag: str, **wanted: str) -> tuple[dict[str, str | None], str]:
        """The one element with these attributes, and the text behind its tag."""
        found = [
            (attributes, text)
            for (name, attributes), text in zip(self.elements, self.texts, strict=True)
            if name == tag and wanted.items() <= attributes.items()
        ]
        assert len(found) == 1, (tag, wanted, len(found))
        return found[0]


def readable() -> Loaded:
    """A model that reads every text."""
    tokenizer = ByteTokenizer()
    config = DecoderConfig(vocab=tokenizer.size, layers=2, heads=3, width=12, context=64)
    model = build(config, seed=0).eval()
    assert isinstance(model, Decoder)
    return Loaded(model, tokenizer, config, Path("small"))


@pytest.fixture(scope="module")
def session() -> Session:
    return opened(small(), "abc 小猫 abc")


@pytest.fixture(scope="module")
def page(session: Session) -> Read:
    return Read(exported(session, "abc 小猫 abc", None, WHERE))


def held(page: Read) -> dict[str, dict[str, str]]:
    """The answers in a page."""
    found = json.loads(page.of("script", id="answers")[1])
    assert isinstance(found, dict)
    return found


def test_a_file_holds_the_very_answers_that_a_server_gives(session: Session, page: Read) -> None:
    answers = held(page)
    for asked in (
        *(Question(path, {}) for path in ("model", "tokens", "flow", "atlas")),
        Question("head", {"part": "attention", "layer": "1", "head": "2"}),
        Question("row", {"part": "attention", "layer": "1", "head": "2", "query": "3"}),
        Question("cell", {"part": "attention", "layer": "1", "head": "2", "query": "3", "key": "1"}),
    ):
        given = answer(session, *asked)
        assert answers[asked.key]["kind"] == given.kind
        assert base64.b64decode(answers[asked.key]["body"]) == given.body
    assert json.loads(base64.b64decode(answers["open"]["body"]))["session"] == session.id


def test_keys_are_what_the_page_asks_by() -> None:
    query = {"part": "decoder.cross_attention", "layer": "1", "head": "2", "name": "blocks.0 é小"}
    asked = f"page.question('row', {json.dumps(query)})"
    assert told("api.js", asked) == Question("row", query).key
    assert Question("atlas", {}).key == "atlas"


def test_a_small_prompt_can_be_looked_around_in(session: Session, page: Read) -> None:
    kinds = [key.partition("?")[0] for key in held(page)]
    tokens, heads = len(session.ids), 6
    assert kinds.count("head") == heads
    assert kinds.count("row") == tokens + heads - 1
    assert kinds.count("cell") == tokens + heads - 1
    assert kinds.count("stage") == len(session.stages)


def test_what_is_beside_is_all_there_or_not_at_all(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    place = place_of(session, WHERE)
    full = answers_of(session, place)
    rows = [
        len(each.body) for key, each in full.items() if key.startswith("row?") and key.endswith(("query=0", "query=5"))
    ]
    monkeypatch.setattr(export, "ROOM", 10 * max(rows))
    kinds = [key.partition("?")[0] for key in answers_of(session, place)]
    assert (kinds.count("head"), kinds.count("row"), kinds.count("cell"), kinds.count("stage")) == (
        1,
        len(session.ids),
        1,
        0,
    )
    monkeypatch.setattr(export, "ROOM", 0)
    kinds = [key.partition("?")[0] for key in answers_of(session, place)]
    assert sorted(kinds) == [
        "atlas",
        "cache",
        "cell",
        "flow",
        "head",
        "mask",
        "masked",
        "model",
        "open",
        "row",
        "tokens",
    ]


def test_the_opened_tensor_is_there_in_any_case(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "ROOM", 0)
    name = "blocks.1.attention.q"
    assert f"stage?name={name}" in answers_of(session, place_of(session, {"stage": name}))
    assert place_of(session, {"stage": "blocks.9.attention.q"}).stage == ""


def test_a_place_that_is_not_there_is_the_nearest_that_is(session: Session) -> None:
    last = len(session.ids) - 1
    assert place_of(session, {}) == Place("attention", 0, 0, last, 0, "")
    far = {"part": "no", "layer": "77", "head": "9", "query": "9999999", "key": "400"}
    assert place_of(session, far) == Place("attention", 1, 2, last, last, "")
    # What is no number is as if it were not there, as in the page.
    wrong = dict.fromkeys(("layer", "head", "query", "key"), "-1") | {"layer": "٣", "key": "12345678"}
    assert place_of(session, wrong) == place_of(session, {})


def test_it_opens_where_it_was_saved(page: Read) -> None:
    state = {name: value[0] for name, value in parse_qs(str(page.of("html")[0]["data-state"]).lstrip("#")).items()}
    assert state == {**WHERE, "part": "attention", "text": "abc 小猫 abc"}


def test_a_prompt_stays_text() -> None:
    plain, evil = exported(readable(), "abc"), exported(readable(), EVIL, None, {"view": EVIL, "sort": EVIL})
    assert [tag for tag, _ in Read(evil).elements] == [tag for tag, _ in Read(plain).elements]
    assert "alert(1)" not in re.sub(r'data-state="[^"]*"', "", evil)
    state = parse_qs(str(Read(evil).of("html")[0]["data-state"]).lstrip("#"))
    assert state["text"] == [EVIL]
    assert "view" not in state
    tokens = json.loads(base64.b64decode(held(Read(evil))["tokens"]["body"]))
    assert tokens["text"] == EVIL


def test_data_cannot_end_its_script(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = export._data("strings", {"en": {"a": EVIL}})
    assert Read(hidden).elements == [("script", {"type": "application/json", "id": "strings"})]
    assert json.loads(Read(hidden).of("script")[1]) == {"en": {"a": EVIL}}
    # The planted fault: the same without what keeps it together.
    torn = Read(f'<script type="application/json" id="strings">{json.dumps({"en": {"a": EVIL}})}</script>')
    assert len(torn.elements) == 2


def test_nothing_is_fetched_and_only_its_own_scripts_run(page: Read) -> None:
    attributes, imports = page.of("script", type="importmap")
    once = attributes["nonce"]
    static = static_files()
    modules = json.loads(imports)["imports"]
    assert set(modules) == {f"clearhead/{path.removeprefix('js/')}" for path in static if path.endswith(".js")}
    for name, address in modules.items():
        kind, _, body = address.partition(",")
        assert kind == "data:text/javascript;charset=utf-8;base64"
        assert base64.b64decode(body) == static[f"js/{name.removeprefix('clearhead/')}"]
    begins, script = page.of("script", type="module")
    assert begins == {"type": "module", "nonce": once}
    assert script.strip() == 'import "clearhead/main.js";'
    rule = page.of("meta", **{"http-equiv": "Content-Security-Policy"})[0]["content"] or ""
    policy = dict(each.strip().partition(" ")[::2] for each in rule.split(";"))
    assert policy.pop("img-src") == "data: blob:"
    own = f"'nonce-{once}'"
    none = "'none'"
    assert policy == {"default-src": none, "script-src": own, "style-src": own, "base-uri": none, "form-action": none}
    addresses = [
        value for _, each in page.elements for name, value in each.items() if name in ("src", "href") and value
    ]
    assert all(address.startswith(("#", "data:")) for address in addresses)
    styles = [text for (tag, _), text in zip(page.elements, page.texts, strict=True) if tag == "style"]
    assert [text.strip() for text in styles] == [static[name].decode().strip() for name in ("style.css", "heads.css")]


def test_the_name_that_lets_scripts_run_cannot_be_known_before(session: Session) -> None:
    def once(text: str) -> str:
        return str(Read(exported(session, text)).of("script", type="module")[0]["nonce"])

    assert once("abc") == once("abc")
    assert once("abc") != once("abd")
    assert len(once("abc")) == 2 * hashlib.blake2b(digest_size=16).digest_size


def test_a_text_that_cannot_be_read_is_a_mistake_of_the_person() -> None:
    with pytest.raises(UserError, match="target"):
        exported(small(), "abc", "abc")


def test_all_of_it_is_there_in_both_languages(page: Read) -> None:
    strings = json.loads(page.of("script", id="strings")[1])
    assert strings == {name: json.loads(static_files()[f"{name}.json"]) for name in ("en", "zh")}


def test_of_an_encoder_decoder_each_attention_is_there() -> None:
    text, target = "abc小猫abcab", "猫ab猫c"
    page = Read(exported(pair(), text, target, {"part": "decoder.cross_attention", "query": "2", "key": "7"}))
    state = parse_qs(str(page.of("html")[0]["data-state"]).lstrip("#"))
    assert (state["part"], state["query"], state["key"]) == (["decoder.cross_attention"], ["2"], ["7"])
    assert (state["text"], state["target"]) == ([text], [target])
    own = opened(pair(), text, target)
    parts = {
        name: [key for key in held(page) if key.startswith("head?") and f"part={name}" in key] for name in parts_of(own)
    }
    config = own.loaded.config
    assert isinstance(config, EncoderDecoderConfig)
    assert len(parts["encoder.attention"]) == config.encoder.layers * config.heads
    assert len(parts["decoder.attention"]) == len(parts["decoder.cross_attention"]) == config.layers * config.heads
    # A position that the other text does not have is its last one there.
    last = len(own.ids) - 1
    assert f"cell?head=0&key={min(7, last)}&layer=0&part=decoder.attention&query=2" in held(page)


@pytest.mark.slow
def test_a_page_of_a_large_model_is_small_enough_to_send() -> None:
    tokenizer = ByteTokenizer()
    config = DecoderConfig(vocab=tokenizer.size, layers=12, heads=12, width=768, context=1024)
    model = build(config, seed=0).eval()
    assert isinstance(model, Decoder)
    text = ("The little cat sat on the mat. " * 40)[:128]
    page = exported(Loaded(model, tokenizer, config, Path("large")), text, None, {"layer": "5", "head": "3"})
    assert len(page.encode()) <= 3_000_000
