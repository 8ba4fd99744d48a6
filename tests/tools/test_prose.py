"""The checker of English finds each pattern in each kind of file, and passes plain sentences."""

import tomllib

import pytest

from tools.prose import CONFIG, check

RULES = tomllib.loads(CONFIG.read_text(encoding="utf-8"))
CODE = '''"""{}"""
count = 1  # one
'''


@pytest.mark.parametrize(
    "text",
    [
        "It reads the the file.",
        "The factor multiplies the rate; who had none gets the average.",
        "The size is asked of the broker.",
        "There are so many brokers.",
        "Nobody knows by whom of them the disk is filled.",
        "Whom of them the disk is full by is not considered.",
        "The answer is 422, since nobody is called so.",
        "What it multiplies is the smaller of two rates.",
        "A sidecar on its fallback ends no other's throttle.",
        "A look is worth no run.",
        "It writes nothing twice that is not written twice without it.",
        "The sidecar lists the names of those that failed.",
        "A sidecar uses no other's word.",
        "The override is in force.",
        "Start the broker beforehand.",
        "Let the first line of each be the name.",
        "It is what is said of a user.",
        "The block needs no word.",
        "This was so on the first day.",
        "The callback hears of no sidecar.",
    ],
)
def test_a_pattern_is_found(text: str) -> None:
    """In a page, a docstring, a message, a comment, a Java comment and a rule; over lines too."""
    folded = text.replace(" ", "\n", 2)
    for name, content in {
        "page.md": f"# Title\n\n{text}\n\n| `a` | {text} |\n",
        "folded.md": folded,
        "code.py": CODE.format(text),
        "folded.py": CODE.format(folded),
        "message.py": f'raise ValueError(f"{text} {{count}}")\n',
        "comment.py": "x = 1\n# " + folded.replace("\n", "\n# ") + "\n",
        "Class.java": "int x;\n/**\n * " + folded.replace("\n", "\n * ") + "\n */\n",
        "rule.yaml": f"summary: {text}\n",
    }.items():
        assert 1 <= len(check(name, content, RULES)), name


def test_every_pattern_has_an_example() -> None:
    """The examples above are as many as the patterns."""
    (mark,) = test_a_pattern_is_found.pytestmark  # type: ignore[attr-defined]
    assert len(RULES["phrases"]) == len(mark.args[1])


@pytest.mark.parametrize(
    "text",
    [
        "The factor multiplies the quota. A client without a rate gets the average.",
        "The override applies for the validity duration; after that, the fallback applies.",
        "`in force` and [what it says](so-many.md#in-force) are values.",
        "- " + "one, " * 39 + "two.\n- " + "one, " * 39 + "two.",
        "| " + "one, " * 30 + " | " + "two, " * 30 + " |",
        "```\nso many\n```\n\n<!-- so\nmany -->",
    ],
)
def test_a_good_sentence_passes(text: str) -> None:
    """Code, links' targets, comments and short items are no findings."""
    assert [] == check("page.md", text, RULES)


def test_values_and_code_are_no_sentences() -> None:
    """A Python value, a name and a Java string are not checked."""
    assert [] == check("code.py", 'SCENARIO = "in force"\nso, many = 1, 2\n', RULES)
    assert [] == check("Class.java", 'String url = "http://so many";\n', RULES)


def test_a_long_sentence_is_found() -> None:
    """One of 41 words, over two lines of a list; the second line of the file is named."""
    text = "# Title\n- " + "one, " * 20 + "\n  " + "one, " * 20 + "two.\n- three\n"
    (finding,) = check("page.md", text, RULES)
    assert (2, "a sentence of 41 words: split it (40)") == finding


def test_proselint_checks_pages() -> None:
    """Its checks apply to pages, with the line."""
    (finding,) = check("page.md", "# Title\n\nClients\nshare together.\n", RULES)
    assert 4 == finding.line
