"""New folders behind links: what the link leads to is made or replaced, and the link stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from clearhead.formats.atomic import discard, new_folder, new_place
from clearhead.messages import UserError


@pytest.mark.parametrize("there", [True, False])
def test_a_folder_behind_a_link(tmp_path: Path, there: bool) -> None:
    real, link = tmp_path / "disk/real", tmp_path / "link"
    real.parent.mkdir()
    link.symlink_to(Path("disk/real"))
    if there:
        real.mkdir()
    with new_folder(link) as partial:
        # On the disk that the link leads to, where the room is.
        assert partial.parent == real.parent
        (partial / "a").write_text("a")
    assert link.is_symlink()
    assert (real / "a").read_text() == "a"
    assert sorted(each.name for each in tmp_path.rglob("*")) == ["a", "disk", "link", "real"]


def test_what_a_link_would_become_without(tmp_path: Path) -> None:
    """It would be taken for the old folder."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    discard(tmp_path / "link")
    assert not (tmp_path / "link").is_symlink()


def test_new_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("empty", "full", "full/inner"):
        (tmp_path / name).mkdir()
    for name, leads_to in (("link", "empty"), ("coming", "new/deep"), ("used", "full")):
        (tmp_path / name).symlink_to(leads_to)
    monkeypatch.chdir(tmp_path / "empty")
    asked = {"new": "new", "empty": "empty", "link": "empty", "coming": "new/deep"}
    assert [new_place(tmp_path / name) for name in asked] == [tmp_path / name for name in asked.values()]
    assert new_place(Path()) == tmp_path / "empty"
    for name in ("full", "used"):
        with pytest.raises(UserError, match="is there already"):
            new_place(tmp_path / name)


def test_links_in_a_ring(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    with pytest.raises(UserError, match="cannot be written"), new_folder(new_place(tmp_path / "one")):
        pass


def test_no_place_is_inside_a_run(tmp_path: Path) -> None:
    (tmp_path / "run/checkpoints").mkdir(parents=True)
    assert new_place(tmp_path / "run/hf") == tmp_path / "run/hf"
    (tmp_path / "run/config.json").write_text("{}")
    (tmp_path / "link").symlink_to("run/hf")
    for inside in ("run/hf", "run/checkpoints/7/hf", "link"):
        with pytest.raises(UserError, match="lies inside the run"):
            new_place(tmp_path / inside)
    assert new_place(tmp_path / "beside") == tmp_path / "beside"
