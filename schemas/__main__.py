"""``python -m schemas generate`` writes the contract's documents, ``python -m schemas check`` compares them."""

import typer

from schemas import generate

app = typer.Typer(
    help="The contract's documents: JSON Schemas, AsyncAPI, the catalogue of reasons.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command(name="generate")
def generate_documents() -> None:
    """Write schemas/generated/ and docs/reasons.md from the models."""
    changed = generate.write()
    for path in changed:
        typer.echo(f"wrote {path}" if (generate.ROOT / path).exists() else f"removed {path}")
    typer.echo(f"{len(changed)} of {len(generate.list_files())} documents changed")


@app.command()
def check() -> None:
    """Exit 1 with the difference unless the checked-in documents say what the models say."""
    if diff := generate.compare_documents():
        typer.echo(diff)
        typer.echo("The documents differ from the models: run `python -m schemas generate`.", err=True)
        raise typer.Exit(1)


if __name__ == "__main__":
    app()
