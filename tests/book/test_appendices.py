"""The pages of reference say what the library and the chapters say."""

import ast
import dataclasses
import re
from pathlib import Path

import nbformat
import pytest
import torch
from library_sources import MODULES, READING_ORDER
from pages import notebooks, page_name
from torch import nn

from seq2seq_lib import interface, search
from seq2seq_lib.data import batch, vocabulary

BOOK = Path(__file__).parents[2] / "book"
PAGES = {path.stem: path.read_text("utf-8") for path in sorted(BOOK.glob("*.md"))}
CHINESE = r"[\u4e00-\u9fff]"


def rows(page, heading):
    """The cells of the first table below a heading, row by row."""
    section = PAGES[page].partition(f"\n{heading}\n")[2]
    table = re.search(r"(?m)(?:^\|.*\n)+", section)
    assert table, f"no table below {heading}"
    lines = table[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def declared_axes(tree):
    """The letters that a module's docstring explains, in its words."""
    docstring = ast.get_docstring(tree) or ""
    found = re.search(r"(?ms)^Axes: (.*?)\.(?:\s|$)", docstring)
    if not found:
        return {}
    items = re.sub(r" \([^)]*\)", "", " ".join(found[1].split())).split(", ")
    meaning = r"([A-Z])(?: = \w(?: ?[·/+] ?\w)*)? (.+)"
    return dict(re.fullmatch(meaning, item).groups() for item in items)


def used_axes(tree):
    """The letters in a module's shapes; ``*B`` stands for any axes and is none."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
            shape = node.slice.elts[-1]
            if isinstance(shape, ast.Constant) and isinstance(shape.value, str):
                yield from re.findall(r"(?:^|\s)#?([A-Z])(?=\s|$)", shape.value)


@pytest.mark.parametrize("module", READING_ORDER)
def test_a_module_explains_the_letters_of_its_shapes(module):
    tree = MODULES[module]
    assert set(used_axes(tree)) <= declared_axes(tree).keys()


def test_shapes_and_their_letters_are_seen_by_the_test_above():
    assert set(used_axes(MODULES["interface"])) == set("BSDTVR")
    assert declared_axes(MODULES["search.beam"])["R"] == "rows of the decoder's state"


def test_every_axis_letter_is_in_the_notation_with_all_its_meanings():
    meanings, first = {}, {}
    for module in READING_ORDER:
        chapter = re.search(
            r"[Cc]hapters? (\d+)", ast.get_docstring(MODULES[module]) or ""
        )
        for letter, meaning in declared_axes(MODULES[module]).items():
            meanings.setdefault(letter, set()).add(meaning)
            if chapter:  # no reader has to meet the others, such as models.fast
                first.setdefault(letter, (module, f"chapter {chapter[1]}"))
    table = rows("notation", "## Axis letters")
    letters = [row[0].strip("*") for row in table]
    assert letters == sorted(meanings)
    for letter, (_, _, example, module, words) in zip(letters, table, strict=True):
        assert set(words.split("; ")) == meanings[letter], letter
        assert re.search(rf"`[^`]*\b{letter}\b[^`]*`$", example), letter
        found = re.match(r"`([\w.]+)`, \[([^]]*)\]", module)
        assert found.groups() == first[letter], letter


def test_the_names_of_the_contract_exist():
    places = (interface, batch, search)
    for name, *_ in rows("notation", "## The contract's names"):
        owner, _, member = name.strip("`").partition(".")
        (kind,) = {getattr(p, owner) for p in places if hasattr(p, owner)}
        is_data = dataclasses.is_dataclass(kind)
        fields = {f.name for f in dataclasses.fields(kind)} if is_data else set()
        assert member in fields or callable(getattr(kind, member)), name


def test_the_special_symbols_have_their_numbers():
    section = PAGES["notation"].partition("Four numbers are the same")[2]
    found = re.findall(r"\| `(<\w+>)` \| (\d) \| `(\w+)` \|", section)
    assert tuple(symbol for symbol, _, _ in found) == vocabulary.SPECIAL
    for _, number, name in found:
        assert getattr(vocabulary, name) == int(number)


def entries():
    """The terms of the glossary with their Chinese and their text."""
    body = re.search(r"(?s)```\{glossary\}\n(.*?)```", PAGES["glossary"])[1]
    return re.findall(r"(?m)^(\S.*?) · (.*)\n  (.+)$", body)


def test_the_glossary_is_sorted_and_every_term_has_its_chinese():
    found = entries()
    assert len(found) == PAGES["glossary"].count(" · ") >= 70
    terms = [term.casefold() for term, _, _ in found]
    assert terms == sorted(set(terms))
    for term, chinese, _ in found:
        assert not re.search(CHINESE, term), term
        assert re.search(CHINESE, chinese), f"{term} has no Chinese term"


def test_the_glossary_is_brief():
    for term, _, text in entries():
        assert text.endswith((".", ")")), term
        assert 4 < len(text.split()) < 60, term


@pytest.mark.parametrize("page", sorted(PAGES))
def test_code_on_a_page_runs(page):
    for code in re.findall(r"```python\n(.*?)```", PAGES[page], re.DOTALL):
        exec(compile(code, f"{page}.md", "exec"), {})


def test_there_is_code_to_run():
    assert "```python" in PAGES["faq"]


def papers(text):
    """The titles of the papers in a list of references, as letters only."""
    listed = re.findall(r"(?m)^- .*?\(\d{4}\)\. \[(.+?)\]\(https?:", text)
    return {re.sub(r"\W", "", title).casefold(): title for title in listed}


@pytest.mark.parametrize("path", notebooks(), ids=page_name)
def test_the_bibliography_has_what_a_chapter_cites(path):
    cells = nbformat.read(path, as_version=4).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    cited = papers(text.partition("## References")[2])
    assert cited or path.stem == "intro"
    known = papers(PAGES["bibliography"])
    missing = [title for letters, title in cited.items() if letters not in known]
    assert not missing, "add them to book/bibliography.md"


def test_the_bibliography_names_no_paper_twice_and_is_sorted():
    addresses = re.findall(r"\]\((https?://\S+)\)", PAGES["bibliography"])
    assert len(addresses) == len(set(addresses)) > 70
    for section in PAGES["bibliography"].split("\n## ")[1:]:
        authors = re.findall(r"(?m)^- (.*?)(?:, | and | et al| \(\d)", section)
        surnames = [re.sub(r"^(?:\S+\.\s)+", "", name) for name in authors]
        assert len(surnames) == section.count("\n- ")
        assert surnames == sorted(surnames), section.partition("\n")[0]


@pytest.mark.parametrize("page", ["faq", "resources"])
def test_papers_of_other_pages_are_in_the_bibliography(page):
    cited = set(re.findall(r"https://arxiv\.org/abs/[\d.]+", PAGES[page]))
    assert cited
    assert [address for address in cited if address not in PAGES["bibliography"]] == []


def test_a_row_that_hides_everything_is_nan_or_zeros_in_pytorch():
    assert "the result is `nan` or zeros, depending on the kernel" in PAGES["faq"]
    x = torch.randn(1, 3, 8)
    layer = nn.MultiheadAttention(8, 2, batch_first=True)
    hidden = torch.ones(1, 3, dtype=torch.bool)  # True hides in this layer
    said, _ = layer(x, x, x, key_padding_mask=hidden)
    assert said.isnan().all()
    shown = torch.zeros(3, 3, dtype=torch.bool)  # and shows in this function
    said = nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=shown)
    assert said.isnan().all() or (said == 0).all()
