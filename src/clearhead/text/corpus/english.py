"""The English tables of the built-in corpus: words, and the sentences they go into.

A pattern is read as in `grammar.py`: `{place}` draws a word, `{new hero}` draws one and keeps it for the story, `{hero}`
says it again, and `{hero.they}` says another column of its row (`{hero.They}` with a capital letter).
"""

from clearhead.text.corpus.grammar import Language, sentence, table, words

_CHARACTERS = """
    text | kind  | they | them | their
    Lily | girl  | she  | her  | her
    Anna | girl  | she  | her  | her
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
    green  | a green
    white  | a white
    tiny   | a tiny
    new    | a new
    old    | an old
    orange | an orange
"""

_PRAISE = """
    text    | a
    lovely  | a lovely
    pretty  | a pretty
    strange | a strange
    nice    | a nice
    odd     | an odd
    amazing | an amazing
"""

_DEEDS = """
    text  | past
    hold  | held
    keep  | kept
    carry | carried
    paint | painted
    shake | shook
    open  | opened
"""

ENGLISH = Language(
    name="en",
    gap=" ",
    variables={"hero": "character", "friend": "character", "thing": "toy"},
    words={
        "character": table(_CHARACTERS),
        "adjective": words("little, kind, brave, happy, clever, quiet, funny, gentle"),
        "weather": words("sunny, rainy, windy, cloudy, warm, cold, cool, bright"),
        "daytime": words("morning, afternoon, evening"),
        "relative": words("mother, father, sister, brother, aunt, uncle"),
        "place": words("park, garden, forest, meadow, village, valley, field, yard"),
        "play": words("sing, dance, draw, read, swim, run, hide, play"),
        "taste": words("sweet, warm, fresh, good, nice"),
        "food": words("bread, soup, rice, cake, honey, milk, apples, pears"),
        "toy": words("ball, kite, drum, boat, doll, bell, hat, box"),
        "colour": table(_COLOURS),
        "preposition": words("under, behind, near, beside"),
        "size": words("big, tall, small, old"),
        "landmark": words("tree, rock, bush, bench, bridge, wall"),
        "praise": table(_PRAISE),
        "manner": words("softly, loudly, happily, gently, quickly, slowly, proudly, politely"),
        "deed": table(_DEEDS),
        "reacted": words("laughed, smiled, clapped, jumped, danced, nodded"),
        "feeling": words("happy, proud, tired, glad, calm, sleepy"),
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
