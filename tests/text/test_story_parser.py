"""The parser of the tests: it knows a sentence of the grammar, and refuses what is not one."""

import pytest

from tests.text.story_parser import is_sentence, sentences


@pytest.mark.parametrize(
    "piece",
    [
        "One warm evening, she met a quiet mouse named Pip in the park.",
        "Once upon a time there was a kind cat named Mimi.",
        "Ben found an orange kite near the old bridge.",
        "小明追小红，一直追到公园。",
        "小猫趴在窗台上，看见了一本蓝色的书。",
        "从前有一个善良的女孩，名叫小红。",
    ],
)
def test_a_sentence_by_hand_is_known(piece: str) -> None:
    assert is_sentence(piece)


@pytest.mark.parametrize(
    "piece",
    [
        "At night dreamed of the kite.",  # no subject
        "He and her aunt liked to sing in the park.",  # pronoun
        "Lily was glad, and Lily was calm.",  # the friend is another
        "Once upon a time there was a kind dog named Mimi.",  # kind
        "Ben found a orange kite near the old bridge.",  # article
        "Ben found an orange kite near the old bridge",  # no stop
        "Ben found  an orange kite near the old bridge.",  # two spaces
        "Ben found an orange dragon near the old bridge.",  # no such word
        "小明追小明，一直追到公园。",
        "小猫趴在窗台上，看见了一张蓝色的书。",  # measure word
        "从前有一个善良的男孩，名叫小红。",  # kind
        "从前有一个善良的女孩,名叫小红。",  # punctuation
        "小猫 found an orange kite near the old bridge.",  # languages mixed
        "",
    ],
)
def test_a_planted_fault_is_no_sentence(piece: str) -> None:
    assert not is_sentence(piece)


def test_a_sample_loses_its_cut_ends_only() -> None:
    sample = "y slept. Ann ran. 小猫跑。小狗跳。\n\nTom sa"
    assert sentences(sample) == ["Ann ran.", "小猫跑。", "小狗跳。"]
    assert sentences(sample, starts_whole=True)[0] == "y slept."
    assert sentences("no stop at all") == []
