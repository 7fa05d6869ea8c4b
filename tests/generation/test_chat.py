"""Conversations as ids: templates as Hugging Face's tokenizers render them, and turns that fit."""

from __future__ import annotations

from datetime import datetime

import pytest
from transformers.utils.chat_template_utils import render_jinja_template

from clearhead.generation.chat import ChatTemplate, PlainTurns, Turn, fitted
from clearhead.messages import UserError
from clearhead.text import ByteTokenizer

TALK = [Turn("system", "Be kind."), Turn("user", "Hi 猫"), Turn("assistant", "Hello\n"), Turn("user", "And <b>?")]
TEMPLATES = [
    "{% for m in messages %}<|{{ m['role'] }}|>\n{{ m['content'] }}</s>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}",
    "{{ bos_token }}\n{%- for m in messages %}\n    {%- if m.role == 'user' %}\n[I] {{ m.content | trim }} [/I]\n"
    "    {%- else %}\n{{ m.content }}{{ eos_token }}\n    {%- endif %}\n{%- endfor %}",
    "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{{ ns.n }}{{ m | tojson }}{% endfor %}",
    "{{ strftime_now('%Y') }}{{ messages[-1].content }}",
]


@pytest.mark.parametrize("source", TEMPLATES)
def test_a_template_is_rendered_as_transformers_renders_it(source: str) -> None:
    ours = ChatTemplate(source, "<s>", "</s>").text(TALK)
    messages = [{"role": turn.role, "content": turn.content} for turn in TALK]
    theirs, _ = render_jinja_template(
        [messages], chat_template=source, add_generation_prompt=True, bos_token="<s>", eos_token="</s>"
    )
    assert ours == theirs[0]
    assert str(datetime.now().year) in ours or "strftime" not in source


@pytest.mark.parametrize(
    "source", ["{{ messages.append(1) }}", "{{ ''.__class__.__mro__ }}", "{{ raise_exception('no') }}", "{% if %}"]
)
def test_a_template_can_make_text_and_nothing_else(source: str) -> None:
    with pytest.raises(UserError, match=r"chat_template\.jinja"):
        ChatTemplate(source).text(TALK)


def test_turns_are_forgotten_in_pairs_the_oldest_first_and_the_system_stays() -> None:
    turns = [TALK[0], *(Turn("user" if i % 2 == 0 else "assistant", str(i) * 10) for i in range(7))]
    sizes = {}
    for room in range(20, 100):
        kept, ids = fitted(turns, PlainTurns(), ByteTokenizer(), room)
        assert len(ids) <= room
        assert kept[0] == TALK[0]
        assert kept[1:] == turns[len(turns) - len(kept) + 1 :]
        assert kept[1].role == "user"
        sizes[room] = len(kept)
    assert list(sizes.values()) == sorted(sizes.values()), "more room, more turns"
    assert (sizes[20], sizes[99]) == (2, 8)


def test_a_turn_that_does_not_fit_is_refused_with_both_numbers() -> None:
    with pytest.raises(UserError, match=r"25 .*20"):
        fitted([Turn("user", "x" * 25)], PlainTurns(), ByteTokenizer(), 20)
