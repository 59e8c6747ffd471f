from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from kits.hostile import hostile_run
from PIL import Image

from case_study.film import FilmOptions, filmed_run, make_film
from coag.errors import ConfigurationError, TraceError, UnknownNameError
from coag.tracing import RunFolder

Played = Callable[..., Awaitable[RunFolder]]
SMALL = FilmOptions(size="small", fps=10)


def pictures(path: Path) -> Iterator[Image.Image]:
    """Every picture of a film."""
    with Image.open(path) as film:
        for number in range(getattr(film, "n_frames", 1)):
            film.seek(number)
            yield film.convert("RGB")


async def test_film_has_a_picture_for_each_phase_and_one_for_the_end(
    played: Played, tmp_path: Path
) -> None:
    run = await played("energy-dilemma", "coag", "impulsive", max_actions=2)
    made = make_film(run, tmp_path / "film.gif", SMALL)
    assert made.pictures == 2 * 5 + 1
    assert made.notices == ()
    assert made.size == made.path.stat().st_size < 150_000
    assert made.seconds == pytest.approx(1.1)
    shown = list(pictures(made.path))
    assert len(shown) == made.pictures
    assert len({picture.tobytes() for picture in shown}) == made.pictures


async def test_film_of_the_same_trace_is_the_same_bytes(played: Played, tmp_path: Path) -> None:
    run = await played("energy-dilemma", "coag", "sound", max_actions=1)
    one, other = tmp_path / "one.gif", tmp_path / "other.gif"
    make_film(run, one, SMALL)
    make_film(run, other, SMALL)
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("ending", ["png", "apng"])
async def test_film_may_be_an_animated_png(played: Played, tmp_path: Path, ending: str) -> None:
    run = await played("energy-dilemma", "coag", "sound", max_actions=1)
    made = make_film(run, tmp_path / f"film.{ending}", SMALL)
    with Image.open(made.path) as film:
        assert film.format == "PNG"
        assert getattr(film, "n_frames", 1) == made.pictures == 6


async def test_themes_and_sizes_differ(played: Played, tmp_path: Path) -> None:
    run = await played("energy-dilemma", "coag", "sound", max_actions=1)
    light = make_film(run, tmp_path / "light.gif", SMALL)
    dark = make_film(run, tmp_path / "dark.gif", FilmOptions(theme="dark"))
    first_light, first_dark = next(pictures(light.path)), next(pictures(dark.path))
    assert first_light.size < first_dark.size
    assert sum(first_light.resize((1, 1)).tobytes()) > 3 * 200
    assert sum(first_dark.resize((1, 1)).tobytes()) < 3 * 70


async def test_pictures_of_a_cycle_share_its_seconds(played: Played, tmp_path: Path) -> None:
    run = await played("energy-dilemma", "coag", "sound", max_actions=1)
    options = FilmOptions(seconds_per_cycle=2, size="small")
    made = make_film(run, tmp_path / "film.gif", options)
    assert made.seconds == pytest.approx(2 + 0.9 * 2, abs=0.05)


async def test_plain_run_is_filmed_and_told_what_cannot_be_shown(
    played: Played, tmp_path: Path
) -> None:
    run = await played("energy-dilemma", "baseline", "impulsive", max_actions=2)
    made = make_film(run, tmp_path / "film.gif", SMALL)
    assert made.pictures == 2 * 2 + 1
    assert made.notices[0].startswith("A plain run records no state of the world and no phases")


@pytest.mark.broken_trace("it cuts the trace")
async def test_run_that_goes_on_is_filmed_up_to_now(played: Played, tmp_path: Path) -> None:
    run = await played("energy-dilemma", "coag", "sound", max_actions=2)
    lines = run.trace_path.read_bytes().splitlines(keepends=True)
    run.trace_path.write_bytes(b"".join(lines[:20]) + lines[20][:30])
    run.reopen()
    made = make_film(run, tmp_path / "film.gif", SMALL)
    assert made.notices[0].startswith("The trace is not whole: line 21, the last one")
    assert made.notices[-1].startswith("The run has not ended")


@pytest.mark.broken_trace("it damages the trace")
async def test_damaged_trace_is_refused_with_its_line(played: Played, tmp_path: Path) -> None:
    run = await played("energy-dilemma", "coag", "sound", max_actions=1)
    lines = run.trace_path.read_bytes().splitlines(keepends=True)
    run.trace_path.write_bytes(b"".join([*lines[:5], b"no record\n", *lines[6:]]))
    with pytest.raises(TraceError, match="line 6"):
        make_film(run, tmp_path / "film.gif", SMALL)
    assert not (tmp_path / "film.gif").exists()


@pytest.mark.broken_trace("it takes the trace away")
async def test_missing_trace_and_empty_trace_are_refused(played: Played, tmp_path: Path) -> None:
    run = await played("energy-dilemma", "coag", "sound", max_actions=1)
    run.trace_path.write_bytes(b"")
    with pytest.raises(ConfigurationError, match="no cycle yet"):
        make_film(run, tmp_path / "film.gif", SMALL)
    run.trace_path.unlink()
    with pytest.raises(TraceError, match="is not there"):
        make_film(run, tmp_path / "film.gif", SMALL)


@pytest.mark.broken_trace("the run's texts are hostile, its state is none")
def test_hostile_run_of_another_domain_is_refused_without_harm(tmp_path: Path) -> None:
    run = hostile_run(tmp_path, size=1_000_000)
    with pytest.raises(ConfigurationError, match="another domain"):
        make_film(run, tmp_path / "film.gif", SMALL)


@pytest.mark.parametrize("name", ["film.mp4", "film", "no/film.gif", "folder.gif"])
def test_output_that_cannot_be_written_is_refused_before_anything_is_read(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "folder.gif").mkdir()
    with pytest.raises(ConfigurationError, match=name[:2]):
        make_film(RunFolder(tmp_path / "nowhere"), tmp_path / name)


@pytest.mark.parametrize(
    "options",
    [FilmOptions(fps=0), FilmOptions(fps=51), FilmOptions(seconds_per_cycle=float("nan"))],
)
def test_options_out_of_range_are_refused(tmp_path: Path, options: FilmOptions) -> None:
    with pytest.raises(ConfigurationError, match=r"give 0\.1 to"):
        make_film(RunFolder(tmp_path), tmp_path / "film.gif", options)


async def test_case_with_one_run_stands_for_it(played: Played, tmp_path: Path) -> None:
    run = await played("energy-dilemma", "coag", "sound", max_actions=1)
    case = run.path.parent
    assert filmed_run(str(case), tmp_path) == run
    assert filmed_run(case.name, tmp_path) == run
    assert filmed_run("latest", tmp_path) == run
    with pytest.raises(UnknownNameError, match="nope"):
        filmed_run("nope", tmp_path)
