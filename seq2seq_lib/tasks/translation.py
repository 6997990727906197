"""Chapter 12: from sentence to sentence."""

from seq2seq_lib.tasks.sentences import SentenceTask
from seq2seq_lib.tasks.task import About


class Translation(SentenceTask):
    """What a caption says, in another language."""

    about = About(
        task="translation of short descriptions of photographs",
        data="Multi30k, task 1 (Elliott et al., 2016): 29,000 pairs of sentences",
        licence="weights: Apache-2.0; the sentences carry no licence of their own, and "
        "the terms of the photographs are for research and education",
        limits="Knows only what captions talk about: people, animals, streets, sports. "
        "Repeats the biases of captions, such as a guess at people's gender. Not for "
        "use where a wrong translation does harm.",
    )
