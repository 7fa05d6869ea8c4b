"""What a README tells its reader to type: the commands and the Python of its fenced blocks."""

from __future__ import annotations

import ast
import re

FENCE = re.compile(r"^[ \t]*```(\w*)[^\n]*\n(.*?)^[ \t]*```[ \t]*$", re.MULTILINE | re.DOTALL)
SHELLS = {"bash", "console", "powershell"}
QUOTED_OR_COMMENT = re.compile(r"""("(?:[^"\\]|\\.)*"|'[^']*')|(?:^|(?<=\s))#.*""")


def blocks(text: str) -> list[tuple[str, str]]:
    """The fenced blocks: language and body."""
    return FENCE.findall(text)


def commands(text: str) -> list[str]:
    """The commands of the shell blocks in order, without comments and prompts; a continued line is one command."""
    found = []
    for language, body in blocks(text):
        if language in SHELLS:
            lines = re.sub(r"[ \t]*[\\`]\n\s*", " ", body).splitlines()
            if language == "console":
                lines = [line.strip()[2:] for line in lines if line.strip().startswith("$ ")]
            bare = (QUOTED_OR_COMMENT.sub(lambda match: match[1] or "", line).strip() for line in lines)
            found += [line for line in bare if line]
    return found


def python(text: str) -> list[str]:
    """The Python blocks in order, as Python itself would write them: without comments."""
    return [ast.unparse(ast.parse(body)) for language, body in blocks(text) if language == "python"]
