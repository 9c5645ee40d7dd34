"""eval init and eval capture: gold files made for a person to edit."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from vademecum.errors import BadInput
from vademecum.settings import Settings
from vademecum.surfaces.cli.run import counted, note, options, print_json, run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vademecum.app import App
    from vademecum.evaluate.capture import Captured
    from vademecum.evaluate.gold import Question
    from vademecum.evaluate.propose import Proposals


@click.command(
    "init",
    epilog="""
\b
Examples:
  vade eval init -c handbook
  vade eval init -c handbook --count 20 --seed 7 -o more.jsonl
  vade eval init -c manuel --own-words

The questions are proposals: each is about one section, drawn by chance, and avoids the words of
that section, since a question that repeats its source is found by any search. They are rough. Read
them with the note beside each, put them as you would ask, and delete the senseless ones. The
other words come from the collection's own embedder, so unedited ones flatter dense search.

Other words are known for English only, and documents in other languages are left out. With
--own-words the questions are the headings of the sections, in any language: a frame to put your own
questions in. Unedited they tell nothing, since any search finds them.
""",
)
@click.option("-c", "--collection", metavar="NAME", help="The collection to ask about.")
@click.option("--count", default=50, show_default=True, metavar="N", help="How many questions.")
@click.option("--seed", default=0, show_default=True, metavar="N", help="Another draws others.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(path_type=Path),
    default=Path("gold.jsonl"),
    show_default=True,
    help="The gold file to make.",
)
@click.option(
    "--own-words", is_flag=True, help="The sections' headings, to be put anew; in any language."
)
@click.option("--force", is_flag=True, help="Replace the file where it exists.")
@options
def init_command(
    settings: Settings,
    as_json: bool,
    collection: str | None,
    count: int,
    seed: int,
    output: Path,
    own_words: bool,
    force: bool,
) -> None:
    """Propose questions about a collection as a gold file to edit."""
    target = new_file(output, force=force)

    async def work(app: "App") -> "tuple[str, Proposals]":
        name = await app.collection_name(collection)
        return name, await app.evaluation.propose(name, count=count, seed=seed, own_words=own_words)

    name, proposals = run(settings, work)
    questions = proposals.questions
    told = ", ".join(
        f"{counted(many, 'document')} in {code}"
        for code, many in sorted(proposals.left_out.items())
    )
    if not questions:
        if own_words:
            raise BadInput(
                f"there is no question in {name}",
                hint="It needs headings of a few words, and prose.",
            )
        raise BadInput(
            f"no question could be put about {name} in other words",
            hint=f"They are known for English only; it has {told}. See --own-words."
            if told
            else "It needs documents in English, with headings and prose.",
        )
    from vademecum.evaluate.trec import write_run

    write_run(target, gold_lines([(one.question, one.note) for one in questions]))
    share = sum(one.shared for one in questions) / len(questions)
    if as_json:
        found = {"collection": name, "gold": str(output), "questions": len(questions)}
        left_out = {"left_out": dict(proposals.left_out)}
        print_json({**found, "seed": seed, "shared": round(share, 3), **left_out})
        return
    if told:
        note(f"Left out, since other words are known for English only: {told}.")
    if len(questions) < count:
        how = "by their headings" if own_words else "in other words"
        note(f"Only {len(questions)} sections can be asked about {how}.")
    click.echo(f"{len(questions)} questions about {name} are in {output}.")
    if own_words:
        click.echo("They are the headings of their sections. Put each in your own words, then:")
    else:
        click.echo(f"{share:.0%} of their words stand in their sections. Edit them, then:")
    click.echo(f"  vade eval {output} -c {name}")


@click.command(
    "capture",
    epilog="""
\b
Examples:
  vade eval capture -c handbook
  vade eval capture -c handbook --days 30 -o march.jsonl
  vade eval capture -c handbook --forget

A search counts when a source that it found was read afterwards, over MCP or HTTP, and its query
passed the privacy gate; each source read is expected. What was read need not be what answers, so
look them through. VADE_SEARCH_LOG_DAYS says how long they are kept (90), 0 turns it off.
""",
)
@click.option("-c", "--collection", metavar="NAME", help="The collection that was searched.")
@click.option("--days", default=0, metavar="N", help="Only of the last N days; default: all kept.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(path_type=Path),
    default=Path("captured.jsonl"),
    show_default=True,
    help="The gold file to make.",
)
@click.option("--force", is_flag=True, help="Replace the file where it exists.")
@click.option("--forget", is_flag=True, help="Instead, forget what is kept of the collection.")
@options
def capture_command(
    settings: Settings,
    as_json: bool,
    collection: str | None,
    days: int,
    output: Path,
    force: bool,
    forget: bool,
) -> None:
    """Turn real searches and the sources that were read after them into a gold file to edit."""
    if days < 0:
        raise BadInput("--days must be at least 0")
    if forget:
        _forget(settings, as_json, collection)
        return
    target = new_file(output, force=force)

    async def work(app: "App") -> "tuple[str, list[Captured]]":
        name = await app.collection_name(collection)
        return name, await app.evaluation.captured(name, days=days)

    name, found = run(settings, work)
    if not found:
        raise BadInput(
            f"no source of {name} was read after a search",
            hint="The log is turned off: VADE_SEARCH_LOG_DAYS is 0."
            if settings.search_log_days == 0
            else "It fills as agents search over MCP or HTTP and read on in what they found.",
        )
    from vademecum.evaluate.trec import write_run

    write_run(target, gold_lines([(one.question, one.note) for one in found]))
    if as_json:
        print_json({"collection": name, "gold": str(output), "questions": len(found)})
        return
    click.echo(f"{len(found)} searches of {name} are in {output}. Look them through, then:")
    click.echo(f"  vade eval {output} -c {name}")


def _forget(settings: Settings, as_json: bool, collection: str | None) -> None:
    async def work(app: "App") -> "tuple[str, int]":
        name = await app.collection_name(collection)
        return name, await app.evaluation.forget_searches(name)

    name, count = run(settings, work)
    if as_json:
        print_json({"collection": name, "forgotten": count})
    else:
        click.echo(f"Forgot {count} uses of sources of {name}.")


def new_file(path: Path, *, force: bool) -> Path:
    """Where a gold file may be made: what a person has edited is not overwritten."""
    from vademecum.evaluate.trec import check_target

    if path.exists() and not force:
        raise BadInput(
            f"{path} exists already", hint="Name another with -o FILE, or replace it with --force."
        )
    return check_target(path)


def gold_lines(questions: "Sequence[tuple[Question, str]]") -> "list[str]":
    """The lines of a gold file, each question with its note."""
    import json

    from vademecum.evaluate.gold import fields

    return [
        json.dumps({**fields(question), "note": said}, ensure_ascii=False) + "\n"
        for question, said in questions
    ]
