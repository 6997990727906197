"""Words that nobody wrote, for models that learn from other models.

A chain that looks back over a few letters imitates the spelling of words it was shown:
``poporo``, ``disputer`` or ``brandalist`` have no entry in a dictionary, but how to
read them is no mystery.
"""

import random
from collections import defaultdict
from collections.abc import Collection, Sequence

LOOKS_BACK = 4
"""Letters. With three many words cannot be read aloud, with five most are known."""
LONGEST = 16
START, END = "\x02", "\x03"


def invented_words(
    words: Sequence[str], *, count: int, known: Collection[str] = (), seed: int = 0
) -> list[str]:
    """Different words that look like others, each letter drawn after those before it.

    Args:
        words: to be imitated, in an order that decides with the seed what is drawn.
        count: how many.
        known: what must not come out.
        seed: of the draws.

    Raises:
        ValueError: so many new words do not come out.
    """
    follows = defaultdict[str, list[str]](list)
    for word in words:
        marked = START * LOOKS_BACK + word + END
        for place in range(LOOKS_BACK, len(marked)):
            follows[marked[place - LOOKS_BACK : place]].append(marked[place])
    draw = random.Random(seed).choice  # noqa: S311
    found: dict[str, None] = {}  # a set that keeps the order
    tries = 0
    while len(found) < count:
        tries += 1
        if tries > 1000 + 100 * count or not follows:
            raise ValueError(
                f"imitating {len(words):,} words gave {len(found):,} new ones, not "
                f"{count:,}: ask for fewer, or show it more words."
            )
        text = START * LOOKS_BACK
        while text[-1] != END:
            text += draw(follows[text[-LOOKS_BACK:]])
        word = text[LOOKS_BACK:-1]
        if word not in known and len(word) <= LONGEST:
            found[word] = None
    return list(found)
