"""The English tables of the built-in corpus: words, and the sentences they go into.

A pattern is read as in `grammar.py`: `{place}` draws a word, `{new hero}` draws one and keeps it for the story, `{hero}`
says it again, and `{hero.they}` says another column of its row (`{hero.They}` with a capital letter).

The words have no doubled letters: how often a letter has just come is what a small model learns last ("treee").
"""

from clearhead.text.corpus.grammar import Language, sentence, table, words

_CHARACTERS = """
    text | kind  | they | them | their
    Lily | girl  | she  | her  | her
    Jane | girl  | she  | her  | her
    Tom  | boy   | he   | him  | his
    Ben  | boy   | he   | him  | his
    Mimi | cat   | she  | her  | her
    Dora | duck  | she  | her  | her
    Rex  | dog   | he   | him  | his
    Pip  | mouse | he   | him  | his
"""

_COLOURS = """
    text   | a
    red    | a red
    blue   | a blue
    brown  | a brown
    white  | a white
    tiny   | a tiny
    new    | a new
    old    | an old
    orange | an orange
"""

_PRAISE = """
    text    | a
    lovely  | a lovely
    fine    | a fine
    strange | a strange
    nice    | a nice
    unusual | an unusual
    amazing | an amazing
"""

_DEEDS = """
    text  | past
    hold  | held
    lift  | lifted
    clean | cleaned
    paint | painted
    share | shared
    turn  | turned
"""

ENGLISH = Language(
    name="en",
    gap=" ",
    variables={"hero": "character", "friend": "character", "thing": "toy"},
    words={
        "character": table(_CHARACTERS),
        "adjective": words("young, kind, brave, clever, quiet, gentle, polite, shy"),
        "weather": words("bright, rainy, windy, cloudy, warm, cold, misty, mild"),
        "daytime": words("morning, evening, day"),
        "relative": words("mother, father, sister, brother, aunt, uncle"),
        "place": words("park, garden, forest, meadow, field, yard, barn, orchard"),
        "play": words("sing, dance, draw, read, swim, run, hide, play"),
        "taste": words("warm, fresh, nice, hot, cold"),
        "food": words("bread, soup, rice, cake, honey, milk, plums, pears"),
        "toy": words("kite, drum, boat, hat, box, cup, flute, lantern"),
        "colour": table(_COLOURS),
        "preposition": words("under, behind, near, beside"),
        "size": words("big, old, low, wide"),
        "landmark": words("rock, bush, bench, bridge, gate, fence"),
        "praise": table(_PRAISE),
        "manner": words("softly, loudly, gently, quickly, slowly, proudly, politely, bravely"),
        "deed": table(_DEEDS),
        "reacted": words("laughed, smiled, jumped, danced, waited, sang"),
        "feeling": words("glad, proud, tired, calm, hungry, thirsty"),
    },
    steps=(
        sentence(
            (3, "Once upon a time there was a {adjective} {new hero.kind} named {hero}."),
            (2, "In the {place} lived a {adjective} {new hero.kind} named {hero}."),
        ),
        sentence(
            (1, "{hero.They} and {hero.their} {relative} liked to {play} in the {place}."),
            (1, "Every {daytime} {hero.they} ate {taste} {food} in the {place}."),
            skip=1,
        ),
        sentence(
            (
                1,
                "One {weather} {daytime}, {hero.they} met a {adjective} {new friend.kind} named {friend} in the {place}.",
            ),
            (
                1,
                "One {weather} {daytime}, a {adjective} {new friend.kind} named {friend} came to {play} with {hero.them}.",
            ),
        ),
        sentence(
            (2, "{hero} found {colour.a} {new thing} {preposition} the {size} {landmark}."),
            (1, "{friend} gave {hero.them} {colour.a} {new thing}."),
        ),
        sentence(
            (1, "“What {praise.a} {thing}!” said {hero} {manner}."),
            (1, "“May I {deed} the {thing}?” asked {friend} {manner}."),
            (1, "“Let us {play} in the {place}!” said {friend} {manner}."),
            skip=1,
        ),
        sentence(
            (1, "Then {friend} {deed.past} the {thing}, and {hero} {reacted} {manner}."),
            (1, "Then {friend} shared {taste} {food} with {hero.them}."),
            skip=1,
        ),
        sentence(
            (1, "{hero} was {feeling}, and {friend} was {feeling}."),
            (1, "At night {hero.they} dreamed of the {thing}."),
            (1, "At last {hero.they} and {hero.their} {adjective} {relative} thanked {friend}."),
        ),
    ),
)
