#!/usr/bin/env python3
"""Montage over a Mosa cluster on this machine: a mosaic of a made-up sky, checked byte for byte
against a local disk.
 The ten stages of the application (Provisioning, Figure 10) are programs of Debian's package montage,
but for mConcatFit, which the package does not have, and mJPEG, which is mShrink and mViewer there.
The tiles are made by the first tasks.

    tools/workflows/montage.py --mosa build/release/bin/mosa --rate 200mbit
    tools/workflows/montage.py --mosa build/release/bin/mosa --tiles 9 --width 128 --height 256
    tools/workflows/montage.py --mosa build/release/bin/mosa --write montage/

Exit code 0 only if everything is equal; 3 if Montage is not installed.
"""

import pathlib
import shutil
import sys

import comparison
import montage_tasks

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = (
    "mProjectPP",
    "mImgtbl",
    "mOverlaps",
    "mDiff",
    "mFitplane",
    "mBgModel",
    "mBackground",
    "mAdd",
    "mShrink",
    "mViewer",
)
SHRINK = 5


def task(stage, name, command, inputs, outputs, **more):
    return {
        "id": f"{stage}{name}",
        "stage": stage,
        "command": command,
        "inputs": inputs,
        "outputs": outputs,
        **more,
    }


def image(directory, name):
    """An image, and the area of each of its pixels that is covered."""
    return [f"{directory}/{name}.fits", f"{directory}/{name}_area.fits"]


def project_tasks(grid, names):
    """Makes every tile, as a telescope's archive would bring it, and puts it on the mosaic's
    pixels."""
    size = f"--tiles {grid.tiles} --width {grid.width} --height {grid.height}"
    for number, name in enumerate(names):
        yield task(
            "stageIn",
            f"-{name}",
            f"python3 montage_tasks.py tile raw/{name}.fits --number {number} {size}",
            ["montage_tasks.py"],
            [f"raw/{name}.fits"],
        )
    for name in names:
        yield task(
            "mProject",
            f"-{name}",
            f"mProjectPP raw/{name}.fits projected/{name}.fits region.hdr",
            [f"raw/{name}.fits", "region.hdr"],
            image("projected", name),
        )


def difference_tasks(grid, names):
    """Which tiles overlap, and the plane by which each two differ there."""
    projected = [f"projected/{name}.fits" for name in names]
    yield task(
        "mImgtbl",
        "",
        "mImgtbl -t tiles.lst projected images.tbl",
        ["tiles.lst", *projected],
        ["images.tbl"],
    )
    yield task("mOverlaps", "", "mOverlaps images.tbl diffs.tbl", ["images.tbl"], ["diffs.tbl"])
    pairs = [(names[a], names[b]) for a, b in grid.overlaps()]
    for a, b in pairs:
        yield task(
            "mDiff",
            f"-{a}-{b}",
            f"mDiff projected/{a}.fits projected/{b}.fits diffs/{a}-{b}.fits region.hdr",
            [*image("projected", a), *image("projected", b), "region.hdr"],
            image("diffs", f"{a}-{b}"),
            after=["mOverlaps"],
        )
    for a, b in pairs:
        # It reads the image only; the areas of differences are read by nobody.
        yield task(
            "mFitplane",
            f"-{a}-{b}",
            f"mFitplane -s fits/{a}-{b}.txt diffs/{a}-{b}.fits",
            [f"diffs/{a}-{b}.fits"],
            [f"fits/{a}-{b}.txt"],
        )
    fits = [f"fits/{a}-{b}.txt" for a, b in pairs]
    yield task(
        "mConcatFit",
        "",
        "python3 montage_tasks.py concat-fit diffs.tbl fits fits.tbl",
        ["montage_tasks.py", "diffs.tbl", *fits],
        ["fits.tbl"],
    )


def mosaic_tasks(names):
    """One correction per tile that makes all of them fit, and the mosaic of the corrected tiles."""
    # Without -a and with fewer iterations it may leave a tile as it is.
    yield task(
        "mBgModel",
        "",
        "mBgModel -a -i 50000 images.tbl fits.tbl corrections.tbl",
        ["images.tbl", "fits.tbl"],
        ["corrections.tbl"],
    )
    for name in names:
        yield task(
            "mBackground",
            f"-{name}",
            f"cd projected; mBackground -t {name}.fits ../corrected/{name}.fits ../images.tbl ../corrections.tbl",
            [*image("projected", name), "images.tbl", "corrections.tbl"],
            image("corrected", name),
        )
    corrected = [path for name in names for path in image("corrected", name)]
    yield task(
        "mAdd",
        "",
        "mAdd -p corrected images.tbl region.hdr mosaic.fits",
        ["images.tbl", "region.hdr", *corrected],
        ["mosaic.fits", "mosaic_area.fits"],
    )
    yield task(
        "mJPEG",
        "-shrink",
        f"mShrink mosaic.fits small.fits {SHRINK}",
        ["mosaic.fits"],
        ["small.fits"],
    )
    yield task(
        "mJPEG",
        "-view",
        "mViewer -ct 1 -gray small.fits -2s max gaussian-log -out mosaic.png",
        ["small.fits"],
        ["mosaic.png"],
    )


class Montage(comparison.Application):
    name = "montage"

    def add_arguments(self, parser):
        parser.add_argument("--tiles", type=int, default=100)
        parser.add_argument(
            "--width", type=int, default=256, help="of a tile, in pixels of four bytes"
        )
        parser.add_argument("--height", type=int, default=512)

    def check(self, arguments):
        comparison.need_programs("montage", *PROGRAMS)
        if not 2 <= arguments.tiles <= 999:
            raise comparison.Failed(f"--tiles {arguments.tiles} is not between 2 and 999")
        if not (64 <= arguments.width <= 8192 and 64 <= arguments.height <= 8192):
            raise comparison.Failed(
                f"tiles of {arguments.width} x {arguments.height}: each must be between 64 and 8192"
            )

    def prepare(self, arguments, inputs):
        grid = montage_tasks.Grid(arguments.tiles, arguments.width, arguments.height)
        names = [f"{number:03}" for number in range(grid.tiles)]
        shutil.copy(HERE / "montage_tasks.py", inputs)
        (inputs / "region.hdr").write_text(montage_tasks.region_header(grid), encoding="ascii")
        rows = [
            f"|{'fname':^12}|",
            f"|{'char':^12}|",
            *[f" {name}.fits".ljust(13) for name in names],
        ]
        (inputs / "tiles.lst").write_text("\n".join(rows) + "\n", encoding="ascii")
        return {
            "tasks": [
                *project_tasks(grid, names),
                *difference_tasks(grid, names),
                *mosaic_tasks(names),
            ]
        }


if __name__ == "__main__":
    sys.exit(comparison.main(Montage(), __doc__))
