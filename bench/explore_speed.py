"""How long the explorer makes a person wait, and what it keeps: in a real browser, from the prompt to what is drawn.

    python -m bench.explore_speed [--models gpt2 smollm2 --lengths 512 2048 --rounds 5]

`gpt2` is a random model of GPT-2's size (12 layers of 12 heads). The server is a process of its own. Columns:

    forward   a plain forward of the model with all its logits, in a process without a page; the median of the rounds
    atlas     from Enter to the pictures of all heads; behind it the median of what this is beyond the forward of the same round, each with
              another prompt: a long one is opened without its logits, so that it may be less than nothing
    first     the same to the tokens, which a page shows first that was told nothing else
    wire      bytes of the atlas as they are sent
    head      from the choice of a head to its matrix and numbers drawn, the median of heads that were not seen before
    hover     the handler that follows the pointer over a head: the 99th of 100 and the longest
    server    the highest resident set less that of the loaded model before anything was asked, in MB (Linux)
    page      the private memory of the browser's process of the page, in MB (Linux)
    computing time of a processor, with one thread, for a forward; for opening a prompt and answering with the atlas, less that; and for
              answering with a head: what a busy machine does not change much

First of all `start`, the seconds from the command without a model to the page's first answer.
OMP_NUM_THREADS=1 lets a busy machine say more: threads that wait for each other wait for everybody's.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch
from playwright.sync_api import Browser, Page, sync_playwright

from clearhead.formats.load import Loaded, load
from clearhead.models.build import build
from clearhead.models.decoder import Decoder
from clearhead.models.presets import preset
from clearhead.text import CharacterTokenizer
from clearhead.text.corpus import write
from clearhead.web.answers import answer
from clearhead.web.app import make_app
from clearhead.web.opening import opened
from clearhead.web.serving import address_of, leave_cores, listening, return_memory, server_of
from tests.web.browser.chromium import ARGUMENTS, executable
from tests.web.browser.watched import DRAWN

OPENED = """async ([text, view, selector]) => { const {go} = await import("clearhead/state.js"), began = performance.now();
    const before = document.querySelector(selector);
    // Asking each frame would keep the page drawing frames, on the cores on which the model computes.
    const drawn = new Promise((done) => new MutationObserver((changes, watch) => { const now = document.querySelector(selector);
        if (now && now !== before) done(watch.disconnect()); }).observe(document.body, {childList: true, subtree: true}));
    go({text, query: -1, key: -1, view});
    await drawn;
    return performance.now() - began; }"""
PICTURES = {"tokens": "#view-tokens .pieces", "atlas": "#view-atlas .thumbnails canvas"}
"""What is waited for in each section."""
HEAD = """async ([layer, head]) => { const {go} = await import("clearhead/state.js"), began = performance.now(), {dataset} = document.getElementById("views");
    go({layer, head});
    const row = document.querySelector("#view-head .row-numbers"), before = row.firstChild;
    while (row.firstChild === before) await new Promise((done) => setTimeout(done));
    const shown = performance.now() - began;
    while (dataset.drawing !== "0") await new Promise(requestAnimationFrame);
    return shown; }"""
HOVER = """() => { const canvas = document.querySelectorAll("#view-head .matrix canvas")[1], box = canvas.getBoundingClientRect(), all = [];
    for (let place = 0; place < 500; place++) {
        const began = performance.now();
        canvas.dispatchEvent(new PointerEvent("pointermove", {clientX: box.left + (place * 7.3) % box.width, clientY: box.top + (place * 37) % box.height, bubbles: true}));
        document.body.offsetHeight;
        all.push(performance.now() - began);
    }
    all.sort((one, other) => one - other);
    return [all[495], all[499]]; }"""
WIRE = """() => performance.getEntriesByType("resource").filter(({name}) => name.endsWith("/atlas")).at(-1).encodedBodySize"""


def loaded_of(name: str, length: int) -> Loaded:
    """A model that reads so many tokens."""
    if name != "gpt2":
        return load(name, dtype="float32")
    config = replace(preset("gpt2"), context=length)
    model = build(config, seed=0).eval()
    assert isinstance(model, Decoder)
    return Loaded(model, CharacterTokenizer.of("abcdefgh"), config, Path(name))


def text_of(loaded: Loaded, length: int, seed: int) -> str:
    """A text of so many tokens, or one or two fewer."""
    if isinstance(loaded.tokenizer, CharacterTokenizer):
        letters = torch.randint(8, (length,), generator=torch.Generator().manual_seed(seed))
        return "".join("abcdefgh"[each] for each in letters)
    text = write(6 * length, seed=seed, language="en")
    return loaded.tokenizer.decode(loaded.tokenizer.encode(text)[:length])


def resident(which: str) -> float:
    """This process's memory in MB, now (VmRSS) or at its highest (VmHWM); not a number where Linux does not count it."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(which)), float("nan"))


def serving(pipe: Connection, name: str, length: int) -> None:
    """A process that serves the page; it tells its address, and in the end its memory."""
    return_memory()
    loaded = loaded_of(name, length)
    before = resident("VmRSS")
    listener = listening("127.0.0.1", 0)
    server = server_of(make_app(loaded, name=name))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    pipe.send(address_of(listener))
    pipe.recv()
    pipe.send(resident("VmHWM") - before)
    server.should_exit = True
    thread.join()


def plain(pipe: Connection, name: str, length: int, rounds: int) -> None:
    """A process with the model alone; it tells the texts, what a forward takes whenever it is asked, and the computing last."""
    loaded = loaded_of(name, length)
    texts = [text_of(loaded, length, seed) for seed in range(2 * rounds)]
    ids = torch.tensor([loaded.tokenizer.encode(texts[0])])
    pipe.send((ids.shape[1], texts))
    with torch.no_grad():
        loaded.model(ids)
        while pipe.recv() != "end":
            pipe.send(timed(lambda: loaded.model(ids)))
        pipe.send(computing(loaded, ids, texts[0], rounds))


def timed(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Milliseconds."""
    began = clock()
    work()
    return 1e3 * (clock() - began)


def computing(loaded: Loaded, ids: torch.Tensor, text: str, rounds: int) -> list[float]:
    """Milliseconds of a processor: of a forward, of opening and the atlas, of a head; the least of the rounds."""
    torch.set_num_threads(1)
    session = opened(loaded, text)
    head = {"part": "attention", "layer": "3", "head": "2"}
    ways: tuple[Callable[[], object], ...] = (
        lambda: loaded.model(ids),
        lambda: answer(opened(loaded, text), "atlas", {}),
        lambda: answer(session, "head", head),
    )
    return [min(timed(way, time.thread_time) for _ in range(rounds)) for way in ways]


def measured(browser: Browser, name: str, length: int, rounds: int) -> dict[str, Any]:
    """The numbers of a model on texts of a length."""
    (serves, page_of), (alone, forward_of) = begun(serving, name, length), begun(plain, name, length, rounds)
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(300_000)
    page.goto(f"{page_of.recv()}#view=atlas&text=abc&lang=en")
    drawn(page)
    (tokens, texts), forwards = forward_of.recv(), []
    opened: dict[str, list[float]] = {view: [] for view in PICTURES}
    for seed in range(rounds):
        forward_of.send("forward")
        forwards.append(forward_of.recv())
        for place, (view, took) in enumerate(opened.items()):
            took.append(page.evaluate(OPENED, [texts[2 * seed + place], view, PICTURES[view]]))
            drawn(page)
    wire = page.evaluate(WIRE)
    heads = [page.evaluate(HEAD, [place % 10, place % 7 + 1]) for place in range(2 * rounds)]
    hover = page.evaluate(HOVER)
    memory = private(browser)
    page.close()
    page_of.send("end")
    highest = page_of.recv()
    forward_of.send("end")
    own, opening, head = forward_of.recv()
    for process in (serves, alone):
        process.join()
    first, atlas = (beyond(opened[view], forwards) for view in PICTURES)
    return {
        "tokens": tokens,
        "forward": f"{statistics.median(forwards):.0f} ms",
        "atlas": atlas,
        "first": first,
        "wire": f"{wire / 1000:.0f} KB",
        "head": f"{statistics.median(heads):.0f} ms",
        "hover": f"{hover[0]:.1f} / {hover[1]:.1f} ms",
        "server": f"{highest:.0f} MB",
        "page": f"{memory:.0f} MB",
        "computing": f"{own:.0f} ms, {opening - own:+.0f} ms, {head:.0f} ms",
    }


def begun(work: Callable[..., None], *given: object) -> tuple[BaseProcess, Connection]:
    """A process that was started, and what it says."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=work, args=(there, *given))
    process.start()
    return process, here


def beyond(took: list[float], forwards: list[float]) -> str:
    """How long it took, and how much of it is not the forward of the same round."""
    over = statistics.median(one - other for one, other in zip(took, forwards, strict=True))
    return f"{statistics.median(took):.0f} ms ({over:+.0f})"


def start() -> float:
    """Seconds from the command, with the model that comes with clearhead, to the first answer of the page."""
    command = [sys.executable, "-m", "clearhead", "explore", "--no-browser", "--port", "0"]
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = next(address for line in process.stdout if (address := re.search(r"http://[^/]+/", line)))
        urllib.request.urlopen(f"{found[0]}api/model").read()
        took = time.perf_counter() - began
        process.kill()
    return took


def drawn(page: Page) -> None:
    """Waits until every section is drawn."""
    while not page.evaluate(DRAWN):
        page.wait_for_timeout(10)


def private(browser: Browser) -> float:
    """Memory that the page's process has for itself, in MB."""
    session = browser.new_browser_cdp_session()
    ids = [
        each["id"] for each in session.send("SystemInfo.getProcessInfo")["processInfo"] if each["type"] == "renderer"
    ]
    kept = [Path(f"/proc/{each}/smaps_rollup") for each in ids]
    sizes = [
        sum(int(line.split()[1]) for line in path.read_text().splitlines() if line.startswith("Private_")) / 1024
        for path in kept
        if path.exists()
    ]
    return max(sizes, default=float("nan"))


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--models", nargs="+", default=["gpt2", "smollm2"])
    asked.add_argument("--lengths", nargs="+", type=int, default=[512, 2048])
    asked.add_argument("--rounds", type=int, default=5)
    options = asked.parse_args()
    path = executable()
    if path is None:
        raise SystemExit("there is no Chromium")
    # As `clearhead explore` does; for the processes that are started from here.
    leave_cores()
    print(f"start    {min(start() for _ in range(options.rounds)):.2f} s", flush=True)
    with sync_playwright() as playwright:
        for name in options.models:
            for length in options.lengths:
                browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
                found = measured(browser, name, length, options.rounds)
                browser.close()
                print(f"{name:8}", "  ".join(f"{key} {value}" for key, value in found.items()), flush=True)


if __name__ == "__main__":
    main()
