#!/usr/bin/env python3
"""Two tasks of the Montage workflow that are no programs of Debian's package: sky tiles, and
mConcatFit.

    montage_tasks.py tile raw/007.fits --number 7 --tiles 100 --width 512 --height 1024
    montage_tasks.py concat-fit diffs.tbl fits fits.tbl
 A tile is an image of a part of one made-up sky: stars, noise of its own, and a background plane of
its own, which is what Montage is there to remove. Neighbours share 15 % of their width and height.
Plain Python, no packages: each tile has a tangent plane and a rotation of its own, so that
reprojecting it is real work, and comes out the same wherever it is made.
"""

import argparse
import array
import math
import pathlib
import random
import re
import sys

CENTRE = (math.radians(150.0), math.radians(30.0))  # Right ascension and declination of the region.
SCALE = math.radians(1 / 3600)  # One pixel: an arc second.
STEP = 0.85  # From one tile to the next, of its width or height: neighbours share the rest.
STARS_PER_TILE = 25
STAR_SIGMA = 1.5  # Pixels.
NOISE_POOL = 1 << 14


class Grid:
    """Where tiles lie in the region's image: rows of equal length, the last one perhaps shorter."""

    def __init__(self, tiles, width, height):
        self.tiles, self.width, self.height = tiles, width, height
        self.columns = math.ceil(math.sqrt(tiles))
        self.rows = math.ceil(tiles / self.columns)
        # Room at the edges for the tiles' rotation.
        self.margin = 8 + max(width, height) // 64
        self.size_x = round(((self.columns - 1) * STEP + 1) * width) + 2 * self.margin
        self.size_y = round(((self.rows - 1) * STEP + 1) * height) + 2 * self.margin

    def centre(self, number):
        """The middle of a tile, in pixels from the middle of the region."""
        x = self.margin + (number % self.columns * STEP + 0.5) * self.width
        y = self.margin + (number // self.columns * STEP + 0.5) * self.height
        return x - self.size_x / 2, y - self.size_y / 2

    def overlaps(self):
        """Pairs of neighbours, corners included, in the order in which mOverlaps lists them."""

        def near(a, b):
            return (
                abs(a % self.columns - b % self.columns) <= 1
                and abs(a // self.columns - b // self.columns) <= 1
            )

        reach = self.columns + 2
        return [
            (a, b)
            for a in range(self.tiles)
            for b in range(a + 1, min(a + reach, self.tiles))
            if near(a, b)
        ]


def to_sky(xi, eta, centre):
    """From a tangent plane to the sky, in radians."""
    ra, dec = centre
    down = math.cos(dec) - eta * math.sin(dec)
    return ra + math.atan2(xi, down), math.atan2(
        math.sin(dec) + eta * math.cos(dec), math.hypot(xi, down)
    )


def to_plane(ra, dec, centre):
    """From the sky to the tangent plane at `centre`."""
    ra0, dec0 = centre
    depth = math.sin(dec0) * math.sin(dec) + math.cos(dec0) * math.cos(dec) * math.cos(ra - ra0)
    xi = math.cos(dec) * math.sin(ra - ra0) / depth
    eta = (
        math.cos(dec0) * math.sin(dec) - math.sin(dec0) * math.cos(dec) * math.cos(ra - ra0)
    ) / depth
    return xi, eta


def wcs_cards(width, height, centre, rotation):
    return [
        ("CTYPE1", "'RA---TAN'"),
        ("CTYPE2", "'DEC--TAN'"),
        ("EQUINOX", "2000.0"),
        ("CRVAL1", f"{math.degrees(centre[0]):.10f}"),
        ("CRVAL2", f"{math.degrees(centre[1]):.10f}"),
        ("CRPIX1", f"{(width + 1) / 2:.2f}"),
        ("CRPIX2", f"{(height + 1) / 2:.2f}"),
        ("CDELT1", f"{-math.degrees(SCALE):.12f}"),
        ("CDELT2", f"{math.degrees(SCALE):.12f}"),
        ("CROTA2", f"{math.degrees(rotation):.6f}"),
    ]


def region_header(grid):
    """The template of the mosaic: a header without an image, one card a line."""
    cards = [
        ("SIMPLE", "T"),
        ("BITPIX", "-64"),
        ("NAXIS", "2"),
        ("NAXIS1", str(grid.size_x)),
        ("NAXIS2", str(grid.size_y)),
        *wcs_cards(grid.size_x, grid.size_y, CENTRE, 0.0),
    ]
    return "".join(f"{name:<8}= {value:>20}\n" for name, value in cards) + "END\n"


def fits(cards, pixels):
    """A FITS file of rows of 32-bit floats: blocks of 2,880 bytes."""
    text = "".join(f"{name:<8}= {value:>20}".ljust(80) for name, value in cards) + "END".ljust(80)
    pixels.byteswap()  # FITS is big-endian; so are no machines that Mosa runs on.
    data = pixels.tobytes()
    return text.encode().ljust(-(-len(text) // 2880) * 2880) + data.ljust(
        -(-len(data) // 2880) * 2880, b"\0"
    )


def background(grid, rng):
    """Noise on a plane of the tile's own, row by row."""
    level, slope_x, slope_y = (
        rng.uniform(80, 120),
        rng.uniform(-0.02, 0.02),
        rng.uniform(-0.02, 0.02),
    )
    pool = [rng.gauss(0, 1) for _ in range(NOISE_POOL)]
    ramp = [slope_x * x for x in range(grid.width)]
    pixels = array.array("f")
    for y in range(grid.height):
        at = rng.randrange(NOISE_POOL - grid.width)
        base = level + slope_y * y
        pixels.extend(
            [noise + plane + base for noise, plane in zip(pool[at : at + grid.width], ramp)]
        )
    return pixels


def draw_star(pixels, grid, x, y, flux):
    reach = math.ceil(4 * STAR_SIGMA)
    for row in range(max(0, round(y) - reach), min(grid.height, round(y) + reach + 1)):
        for column in range(max(0, round(x) - reach), min(grid.width, round(x) + reach + 1)):
            distance = (column - x) ** 2 + (row - y) ** 2
            pixels[row * grid.width + column] += flux * math.exp(-distance / (2 * STAR_SIGMA**2))


def tile(grid, number):
    """The bytes of one tile."""
    rng = random.Random(number)
    x, y = grid.centre(number)
    centre = to_sky(-x * SCALE, y * SCALE, CENTRE)
    rotation = rng.uniform(-0.004, 0.004)
    pixels = background(grid, rng)
    stars = random.Random("stars")  # The same sky for all tiles.
    for _ in range(STARS_PER_TILE * grid.tiles):
        star_x, star_y = (stars.uniform(-0.5, 0.5) * size for size in (grid.size_x, grid.size_y))
        flux = 20 * math.exp(stars.expovariate(1.0))
        xi, eta = to_plane(*to_sky(-star_x * SCALE, star_y * SCALE, CENTRE), centre)
        right, up = -xi / SCALE, eta / SCALE
        column = right * math.cos(rotation) - up * math.sin(rotation) + (grid.width - 1) / 2
        row = right * math.sin(rotation) + up * math.cos(rotation) + (grid.height - 1) / 2
        if -10 < column < grid.width + 10 and -10 < row < grid.height + 10:
            draw_star(pixels, grid, column, row, min(flux, 1e4))
    cards = [
        ("SIMPLE", "T"),
        ("BITPIX", "-32"),
        ("NAXIS", "2"),
        ("NAXIS1", str(grid.width)),
        ("NAXIS2", str(grid.height)),
        *wcs_cards(grid.width, grid.height, centre, rotation),
    ]
    return fits(cards, pixels)


# Columns of mFitplane's result and how mFitExec, which does the same for a whole directory, prints
# them.
FIT_COLUMNS = {
    "a": "16.5e",
    "b": "16.5e",
    "c": "16.5e",
    "crpix1": "14.2f",
    "crpix2": "14.2f",
    "xmin": "10d",
    "xmax": "10d",
    "ymin": "10d",
    "ymax": "10d",
    "xcenter": "13.2f",
    "ycenter": "13.2f",
    "npixel": "13d",
    "rms": "16.5e",
    "boxx": "16.1f",
    "boxy": "16.1f",
    "boxwidth": "16.1f",
    "boxheight": "16.1f",
    "boxang": "16.1f",
}


def concat_fit(diffs, directory, output):
    """One table of what mFitplane found for every pair in mOverlaps' table: mConcatFit, which the
    package does not have."""
    lines = [line.split() for line in diffs.read_text().splitlines() if line[:1] not in ("|", "\\")]
    pairs = [(int(words[0]), int(words[1]), pathlib.Path(words[-1]).name) for words in lines]
    files = {path.name for path in directory.iterdir()}
    names = {
        "plus": 9,
        "minus": 9,
        **{name: int(form.split(".")[0].rstrip("d")) for name, form in FIT_COLUMNS.items()},
    }
    rows = ["|" + "|".join(name.rjust(width) for name, width in names.items()) + "|"]
    for plus, minus, _ in pairs:
        name = f"{plus:03}-{minus:03}.txt"
        if name not in files:
            sys.exit(
                f"montage_tasks: {diffs} says that tiles {plus} and {minus} overlap, but {directory} has no {name}"
            )
        files.remove(name)
        status = (directory / name).read_text()
        values = dict(re.findall(r"(\w+)=\"?([^,\"\]]+)", status))
        if values.get("stat") != "OK":
            sys.exit(f"montage_tasks: {directory / name} holds no fit: {status.strip()}")
        numbers = [
            (int(float(values[name])) if form.endswith("d") else float(values[name]), form)
            for name, form in FIT_COLUMNS.items()
        ]
        rows.append(
            f" {plus:9} {minus:9} "
            + " ".join(format(number, form) for number, form in numbers)
            + " "
        )
    if files:
        sys.exit(
            f"montage_tasks: {diffs} knows nothing of {', '.join(sorted(files))} in {directory}"
        )
    output.write_text("\n".join(rows) + "\n")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    tasks = parser.add_subparsers(dest="task", required=True)
    one = tasks.add_parser("tile")
    one.add_argument("output", type=pathlib.Path)
    for name in ("number", "tiles", "width", "height"):
        one.add_argument(f"--{name}", type=int, required=True)
    concat = tasks.add_parser("concat-fit")
    for name in ("diffs", "directory", "output"):
        concat.add_argument(name, type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.task == "tile":
        grid = Grid(arguments.tiles, arguments.width, arguments.height)
        arguments.output.write_bytes(tile(grid, arguments.number))
    else:
        concat_fit(arguments.diffs, arguments.directory, arguments.output)


if __name__ == "__main__":
    main()
