"""The English tables of the built-in corpus: words, and the sentences they go into.

A pattern is read as in `grammar.py`: `{place}` draws a word, `{new hero}` draws one and keeps it for the story, `{hero}`
says it again, and `{hero.they}` says another column of its row (`{hero.They}` with a capital letter).
"""

from clearhead.text.corpus.grammar import Language, sentence, table, words

_CHARACTERS = """
    text  | kind   | they | them | their
    Lily  | girl   | she  | her  | her
    Anna  | girl   | she  | her  | her
    Tom   | boy    | he   | him  | his
    Ben   | boy    | he   | him  | his
    Mimi  | cat    | she  | her  | her
    Rex   | dog    | he   | him  | his
    Pip   | mouse  | he   | him  | his
    Dora  | duck   | she  | her  | her
    Bruno | bear   | he   | him  | his
    Hazel | rabbit | she  | her  | her
"""

_COLOURS = """
    text   | a
    red    | a red
    blue   | a blue
    green  | a green
    yellow | a yellow
    white  | a white
    brown  | a brown
    orange | an orange
    old    | an old
    tiny   | a tiny
    shiny  | a shiny
    new    | a new
    empty  | an empty
"""

_SIZES = """
    text   | a
    big    | a big
    little | a little
    small  | a small
    tall   | a tall
    wide   | a wide
    dark   | a dark
    old    | an old
    lovely | a lovely
"""

_PRAISE = """
    text      | a
    lovely    | a lovely
    pretty    | a pretty
    strange   | a strange
    fine      | a fine
    wonderful | a wonderful
    odd       | an odd
    amazing   | an amazing
    unusual   | an unusual
    nice      | a nice
    splendid  | a splendid
"""

_PLACES = """
    text   | at
    park   | in the park
    garden | in the garden
    forest | in the forest
    meadow | in the meadow
    market | at the market
    farm   | at the farm
    school | at the school
    river  | by the river
    lake   | by the lake
    pond   | by the pond
    beach  | on the beach
    hill   | on the hill
"""

ENGLISH = Language(
    name="en",
    gap=" ",
    variables={"hero": "character", "friend": "character", "thing": "toy"},
    words={
        "character": table(_CHARACTERS),
        "adjective": words("little, small, kind, brave, happy, clever, quiet, funny, gentle, cheerful, shy, polite"),
        "size": table(_SIZES),
        "home": words("house, hut, tent, cottage, castle, tower, barn, cave"),
        "weather": words("sunny, rainy, windy, cloudy, foggy, cool, bright, mild, quiet, grey, lovely, fine"),
        "season": words("spring, summer, autumn, winter"),
        "daytime": words("morning, afternoon, evening, day"),
        "relative": words("mother, father, sister, brother, grandmother, grandfather, uncle, aunt, cousin, teacher"),
        "place": table(_PLACES),
        "play": words("sing, dance, draw, read, swim, run, paint, jump, play, hide, climb, rest"),
        "taste": words("sweet, warm, fresh, good, nice, plain"),
        "food": words("bread, soup, rice, cake, honey, milk, apples, pears, cookies, noodles, plums, beans"),
        "toy": words("ball, kite, drum, boat, doll, bell, hat, key, box, basket"),
        "colour": table(_COLOURS),
        "preposition": words("under, behind, near, beside, by"),
        "landmark": words("tree, rock, bush, bench, bridge, wall, gate, fence, stone, ladder, table, tent"),
        "praise": table(_PRAISE),
        "manner": words(
            "softly, loudly, happily, gently, quickly, slowly, proudly, politely, calmly, bravely, kindly, sweetly"
        ),
        "use": words("hold, keep, carry, borrow, paint, shake, clean, open, try, see"),
        "used": words("held, kept, carried, cleaned, painted, shook, dropped, hid, mended, turned, lifted, washed"),
        "reacted": words("laughed, smiled, clapped, jumped, danced, waited, nodded, watched, sang, ran"),
        "feeling": words("happy, proud, tired, glad, calm, hungry, sleepy, thirsty, merry, warm"),
        "bond": words("good, best, close, true, dear"),
    },
    steps=(
        sentence(
            (4, "Once upon a time there was a {adjective} {new hero.kind} named {hero} who liked {taste} {food}."),
            (3, "In {size.a} {home} {place.at} lived a {adjective} {new hero.kind} named {hero}."),
            (3, "{new hero} was a {adjective} {hero.kind} who could {play} {manner} and liked {food}."),
        ),
        sentence(
            (1, "On {weather} days {hero.they} liked to {play} {place.at} with {hero.their} {relative}."),
            (1, "Every {daytime} {hero.they} ate {taste} {food} with {hero.their} {relative}."),
            skip=1,
        ),
        sentence(
            (
                2,
                "One {weather} {season} {daytime}, {hero} went to the {place} and met a {adjective} {new friend.kind} named {friend}.",
            ),
            (
                1,
                "One {weather} {season} {daytime}, a {adjective} {new friend.kind} named {friend} came to {play} with {hero.them}.",
            ),
            (1, "{hero} and {hero.their} {adjective} friend {new friend} walked {manner} to the {place}."),
        ),
        sentence(
            (2, "{hero} found {colour.a} {new thing} {preposition} {size.a} {landmark}."),
            (1, "They saw {colour.a} {new thing} {preposition} {size.a} {landmark}."),
            (1, "{friend} had {colour.a} {new thing} from {friend.their} {relative}."),
        ),
        sentence(
            (1, "“What {praise.a} {thing}!” said {hero} {manner}."),
            (1, "“May I {use} the {thing}?” asked {friend} {manner}."),
            (1, "“Let us {play} {place.at}!” said {friend} {manner}."),
            skip=1,
        ),
        sentence(
            (1, "Then {friend} {used} the {thing}, and {hero} {reacted} {manner}."),
            (1, "{hero} {used} the {thing} and {reacted} {manner}."),
            (1, "{friend} shared {taste} {food} with {hero.them} {preposition} {size.a} {landmark}."),
            skip=1,
        ),
        sentence(
            (1, "{hero} was {feeling}, and {friend} was {feeling}."),
            (1, "That night {hero.they} slept {manner} and dreamed of the {thing}."),
            (1, "{hero} thanked {friend} and went home to {hero.their} {relative}."),
            (1, "From that {daytime} on, {hero} and {friend} were {bond} friends."),
        ),
    ),
)
