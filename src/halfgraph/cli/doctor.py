"""`halfgraph doctor`: check the installation, or the files of a folder against its manifest."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Exit, Option

from halfgraph.cli.options import Json
from halfgraph.cli.output import note, print_json, print_table


def doctor(
    folder: Annotated[
        Path | None, Argument(metavar="FOLDER", help="Folder of a run, a graph or a workload.", show_default=False)
    ] = None,
    verify: Annotated[bool, Option("--verify", help="Read large files completely too.")] = False,
    renew: Annotated[
        bool, Option("--renew", help="Trust the files as they are: write their checksums to manifest.json again.")
    ] = False,
    json: Json = False,
) -> None:
    """Check the installation, or a run, graph or workload.

    Without a folder: versions, the machine, missing optional packages and what they are for, and a self-test of a few
    seconds. With a folder: its files against their checksums; of a run, its graph is checked too. Exits with 1 if a
    file is damaged. Without --verify, files above 64 MB are checked by their size and beginning. After you have changed
    a file by hand, --renew accepts the change.

    Example: halfgraph doctor demo/run --verify
    """
    if folder is None:
        _check_installation(json)
    else:
        _check_folder(folder, verify, renew, json)


def _check_installation(json: bool) -> None:
    from halfgraph.cli.installation import extras, machine, self_test, versions

    if json:
        figures = {"versions": versions(), "machine": machine(), "extras": extras()}
        print_json({**figures, "self_test": self_test()})
        return
    for title, values in (("Versions", versions()), ("Machine", machine()), ("Optional packages", extras())):
        print_table(title, ["", ""], list(values.items()))
        print_table("", [], [])
    note("halfgraph: self-test ...")
    print_table("Self-test", ["", ""], [("passed", self_test())])


def _check_folder(folder: Path, verify: bool, renew: bool, json: bool) -> None:
    from halfgraph.graph.inspection import inspect
    from halfgraph.graph.inspection import renew as write_again

    if renew:
        write_again(folder)
    files = list(inspect(folder, whole=verify))
    damaged = [file for file in files if file.problem]
    if json:
        print_json({"damaged": len(damaged), "files": [vars(file) for file in files]})
    else:
        rows = [(file.path, file.bytes, file.problem or file.checked) for file in files]
        print_table(str(folder), ["file", "bytes", ""], rows)
        checked = sum(not file.checked.startswith("not checked") for file in files)
        note(f"{len(damaged):,} of {checked:,} files damaged" if checked else "nothing to check against")
    if damaged:
        raise Exit(1)
