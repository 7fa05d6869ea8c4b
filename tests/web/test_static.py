"""The page's files: both languages have the same texts and every one is used, types fit, nothing comes from elsewhere or is read as HTML."""

from __future__ import annotations

import json
import re
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

from clearhead.tracing.names import AXES, NAMES
from clearhead.web.files import KINDS, VIEWS, static_files
from tests.web.browser.chromium import missing
from tests.web.tools import COMPILER, node

LONGEST = 300
NAMESPACES = ("http://www.w3.org/2000/svg", "http://www.w3.org/1999/xhtml", "http://www.w3.org/1999/xlink")
"""Names that look like addresses; nothing is asked of them."""
FAULTS = {
    "an address elsewhere": r"(?:https?:|wss?:)?//(?:[\w-]+\.)+[a-z]{2,}",
    "a text read as HTML": r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|setHTML",
    "a text run as a script": r"\beval\(|\bnew Function\b|set(?:Timeout|Interval)\(\s*[\"'`]|javascript:",
    "an inline handler": r"<[a-z]+[^>]*\son[a-z]+=",
    "an inline style": r"<[a-z]+[^>]*\sstyle=|\bstyle: [\"'`]|setAttribute\(\s*[\"']style",
    "something kept on the person's machine": r"localStorage|sessionStorage|indexedDB|document\.cookie|serviceWorker|sendBeacon",
}
"""What a file may not hold."""
MADE = ("tensor.", "formula.", "about.", "axis.", "kind.", "part.", "head.bars.", "atlas.", "save.", "cell.query", "cell.key",
        "mask.own", "mask.causal", "mask.window", "mask.prefix", "mask.documents", "mask.padding", "mask.about.", "mask.says.",
        "mask.form.", "mask.used.", "mask.read.")  # fmt: skip
"""Beginnings of names that a script puts together."""


def texts() -> dict[str, str]:
    """The files, by their path."""
    return {path: body.decode("utf-8") for path, body in static_files().items()}


def faults_of(text: str) -> list[str]:
    """What a file holds and may not. Comments may say anything, but they are few: an address in one is no address."""
    for name in NAMESPACES:
        text = text.replace(name, "")
    return [
        fault
        for fault, pattern in FAULTS.items()
        if re.search(pattern, re.sub(r"^\s*(?:\*|//|/\*).*$", "", text, flags=re.M))
    ]


@pytest.mark.parametrize("path", static_files())
def test_a_file_holds_nothing_that_it_may_not(path: str) -> None:
    assert faults_of(texts()[path]) == []
    assert path[path.rindex(".") :] in KINDS
    # A table of texts has a line for each.
    assert path.endswith(".json") or len(texts()[path].splitlines()) <= LONGEST


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('fetch("https://cdn.example.org/x.js")', "an address elsewhere"),
        ("@import url(//fonts.example.com/a.css)", "an address elsewhere"),
        ("box.innerHTML = name", "a text read as HTML"),
        ("const f = new Function(text)", "a text run as a script"),
        ('<button onclick="go()">', "an inline handler"),
        ('<p style="color: red">', "an inline style"),
        ('make("p", { style: "color: red" })', "an inline style"),
        ("localStorage.setItem('a', 1)", "something kept on the person's machine"),
    ],
)
def test_a_planted_fault_is_found(text: str, fault: str) -> None:
    assert faults_of(text) == [fault]


def tables() -> dict[str, dict[str, str]]:
    """Names and texts of each language."""
    return {language: json.loads(texts()[f"{language}.json"]) for language in ("en", "zh")}


def fields(text: str) -> list[str]:
    """The fields of a text."""
    return sorted(re.findall(r"\{(\w+)\}", text))


def differences(one: dict[str, str], other: dict[str, str]) -> list[str]:
    """Names that one language has alone, or whose texts have other fields."""
    return sorted(set(one) ^ set(other)) + [
        name for name in one if name in other and fields(one[name]) != fields(other[name])
    ]


def test_both_languages_say_the_same() -> None:
    english, chinese = tables().values()
    assert differences(english, chinese) == []
    # Planted: a text that is missing, a field that is called otherwise.
    name = next(name for name in english if fields(english[name]))
    assert differences(english, {key: text for key, text in chinese.items() if key != name}) == [name]
    assert differences(english, chinese | {name: "{nothing}"}) == [name]
    assert [name for name, text in english.items() if re.search("[一-鿿]", text)] == ["frame.language"]
    assert [
        name
        for name, text in chinese.items()
        if not re.search("[一-鿿]", text) and text == english[name] and re.search("[a-z]{4}", text)
    ] == []


def names_used(sources: list[str]) -> set[str]:
    """Names in the scripts, and beginnings of those that are put together: "tensor." of `tensor.${name}`."""
    return set(re.findall(r"[\"'`]([a-z]+\.[\w.]*)[\"'`$]", "\n".join(sources)))


def unused(table: dict[str, str], sources: list[str]) -> list[str]:
    """Texts that nobody says."""
    used = names_used(sources)
    made = MADE + tuple(f"{view}.{each}" for view in VIEWS for each in ("title", "tab", "caption"))
    return [name for name in table if name not in used and not name.startswith(made)]


def unsaid(table: dict[str, str], sources: list[str]) -> list[str]:
    """Names that are said, and that have no text."""
    rooms = {name.split(".")[0] for name in table}
    return sorted(
        name
        for name in names_used(sources) - set(table)
        if name.split(".")[0] in rooms and not name.endswith((".", ".js"))
    )


def test_every_text_is_used_and_every_name_has_one() -> None:
    table, sources = tables()["en"], [text for path, text in texts().items() if path.endswith(".js")]
    known = {name for name in names_used(sources) if name in table}
    assert len(known) > 100
    assert unused(table, sources) == []
    assert [name for name in unsaid(table, sources) if not name.startswith(MADE)] == []
    # Planted: a text for nobody, a name without a text.
    assert unused({**table, "frame.nobody": ""}, sources) == ["frame.nobody"]
    assert unsaid(table, [*sources, 'say("frame.nothing")']) == sorted([*unsaid(table, sources), "frame.nothing"])


def english_tokens(chinese: dict[str, str]) -> list[str]:
    """Chinese texts that call a token by its English word, beside those that introduce it."""
    return [
        key
        for key, text in chinese.items()
        if re.search(r"\btokens?\b", re.sub(r"\{\w+\}|词元（token）", "", text), re.A)
    ]


def test_a_token_has_one_name_in_chinese() -> None:
    chinese = tables()["zh"]
    assert english_tokens(chinese) == []
    assert "词元（token）" in chinese["frame.intro"], "what stands first on the page says both"
    assert english_tokens({**chinese, "planted": "每个 token 一行"}) == ["planted"]


def test_every_tensor_and_axis_has_its_words() -> None:
    table = tables()["en"]
    own = {re.sub(r"^(?:encoder\.|decoder\.)?(?:blocks\.\*\.)?", "", name) for name in NAMES}
    assert sorted(name for name in own if f"tensor.{name}" not in table) == []
    assert sorted(axis for axis in AXES if f"axis.{axis}" not in table) == []


def typed(folder: Path, module: str) -> str:
    """What TypeScript says of the scripts in a folder."""
    compiler = [str(node()), str(COMPILER), "-p", str(folder)]
    settings = {"compilerOptions": {"noEmit": True, "allowJs": True, "checkJs": True, "strict": True, "target": "es2023", "module": "esnext",
                "moduleResolution": "bundler", "lib": ["es2023", "dom", "dom.iterable"], "types": [], "paths": {"clearhead/*": [f"{module}/*"]}},
                "include": [f"{module}/*.js"]}  # fmt: skip
    (folder / "tsconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    return subprocess.run(compiler, capture_output=True, text=True, encoding="utf-8", check=False).stdout


def test_types_fit(tmp_path: Path) -> None:
    if node() is None or not COMPILER.exists():
        missing("TypeScript is not there to check the page's scripts; python -m tests.web.tools gets it")
    folder = Path(str(files("clearhead.web") / "static" / "js"))
    assert typed(tmp_path, folder.as_posix()) == ""
    # Planted: a number where a text belongs.
    copy = tmp_path / "js"
    copy.mkdir()
    for path in folder.glob("*.js"):
        (copy / path.name).write_bytes(path.read_bytes())
    with (copy / "views.js").open("a", encoding="utf-8") as file:
        file.write('\nimport { has } from "clearhead/say.js";\nhas(3);\n')
    assert "views.js" in typed(tmp_path, copy.as_posix())


def test_no_tool_is_in_the_package() -> None:
    assert {path for path in static_files() if "node_modules" in path or path.endswith((".ts", ".map"))} == set()


def laid_out(style: str) -> list[str]:
    """What keyframes change that has the page laid out or painted anew in every frame, on cores on which the model computes."""
    frames = re.findall(r"@keyframes [\w-]+ \{((?:[^{}]*\{[^{}]*\})*)\s*\}", style)
    changed = {name for frame in frames for name in re.findall(r"([\w-]+)\s*:", frame)}
    return sorted(changed - {"transform", "opacity"})


def test_what_moves_while_a_model_computes_costs_no_layout() -> None:
    style = texts()["style.css"]
    assert "@keyframes run" in style
    assert laid_out(style) == []
    assert laid_out(style.replace("transform: translateX(233%)", "left: 70%")) == ["left"]
