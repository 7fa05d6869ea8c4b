"""The ids that end what a GGUF model writes: of texts, of turns, of calls."""

from __future__ import annotations

import pytest

from clearhead.messages import UserError
from tests.formats.gguf.test_words import IDS, byte_level, sentence_pieces, words


def test_texts_turns_and_calls_have_ends_of_their_own() -> None:
    found = words(byte_level("gpt-2", eot_token_id=2, eom_token_id=7))
    assert (found.tokenizer.end, found.ends) == (1, (1, 2, 7))
    # What ends a turn is made by no text.
    spelling = next(token for token, id in IDS.items() if id == 7)
    assert 7 in words(byte_level("gpt-2")).tokenizer.encode(spelling)
    assert 7 not in found.tokenizer.encode(spelling)
    assert found.tokenizer.specials[spelling] == 7


def test_one_end_is_the_tokenizers() -> None:
    assert words(byte_level("gpt-2")).ends == words(byte_level("gpt-2", eot_token_id=1)).ends == ()
    assert words(sentence_pieces(eot_token_id=2)).ends == ()
    assert words(sentence_pieces(eot_token_id=1)).ends == (2, 1)


@pytest.mark.parametrize("wrong", [-1, len(IDS)])
def test_an_end_outside_the_vocabulary_is_refused(wrong: int) -> None:
    with pytest.raises(UserError, match=f"eot_token_id is {wrong}, and there are {len(IDS)} tokens"):
        words(byte_level("gpt-2", eot_token_id=wrong))
