"""Merging tiles: exact when nothing was changed, a weighted mean when it was, streaming."""

import gc

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from h3video.errors import UsageError
from h3video.grid import finest_res, grid_cells, hex_grid
from h3video.tiling.clip import clip_layout
from h3video.tiling.merge import TileMerger, common_scale, cut_tile, merge_clip


def image(frames, height, width, seed=0):
    values = torch.rand(frames, height, width, 3, generator=torch.Generator().manual_seed(seed))
    values.view(-1)[:2] = torch.tensor([0.0, -0.0])  # both zeros must come back as they were
    return values


def tiles_of(clip, layout):
    return [cut_tile(clip, t, layout).clone() for t in layout.tiles]


def same_bits(a, b):
    return a.shape == b.shape and torch.equal(a.view(torch.int32), b.view(torch.int32))


@given(
    st.integers(8, 60), st.integers(8, 60), st.integers(0, 4), st.floats(0, 40), st.floats(0, 20),
    st.integers(1, 9), st.integers(0, 6), st.integers(0, 3), st.randoms(use_true_random=False),
)  # fmt: skip
def test_untouched_tiles_give_back_the_clip_bit_for_bit_in_any_order(
    width, height, res, overlap, halo, frames, length, shared, random
):
    assume(shared * 2 <= length)
    grid = hex_grid(width, height, min(res, finest_res(width, height, 0.075)))
    layout = clip_layout(
        grid_cells(grid, overlap), width, height, frames, halo=halo, chunk_frames=length,
        chunk_overlap=shared,
    )  # fmt: skip
    clip = image(frames, height, width)
    merger = TileMerger(layout)
    order = list(range(len(layout.tiles)))
    random.shuffle(order)
    for i in order:
        merger.add(i, cut_tile(clip, layout.tiles[i], layout))
    assert same_bits(merger.finish(), clip)


@pytest.mark.parametrize("unit", [8, 16, 32])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_latents_come_back_bit_for_bit(unit, dtype):
    columns, rows, frames = 40, 24, 7
    layout = clip_layout(
        grid_cells(hex_grid(columns * unit, rows * unit, 4), 64.0), columns, rows, frames,
        chunk_frames=4, chunk_overlap=2,
    )  # fmt: skip
    clip = torch.randn(2, 16, frames, rows, columns).to(dtype)
    merged = merge_clip(layout, tiles_of(clip, layout))
    assert merged.dtype == dtype and torch.equal(merged, clip)


def slow_merge(layout, tiles, scale=1):
    """The definition: sum of weight x tile over all tiles, in float64."""
    from h3video.blend.weights import tile_weights
    from h3video.tiling.clip import chunk_weights

    rows, columns = layout.rows * scale, layout.columns * scale
    time = chunk_weights(layout.chunks, layout.fade, layout.frames)
    owned = tile_weights(
        layout.grid, [t.cells for t in layout.tiles[: layout.places]], columns, rows,
        layout.step / scale, layout.overlap,
    )  # fmt: skip
    out = np.zeros((layout.frames, rows, columns, 3))
    for t, tile in zip(layout.tiles, tiles):
        w = owned[t.index % layout.places]
        weight = np.zeros(rows * columns)
        weight[w.points] = w.weight
        weight = weight.reshape(rows, columns)
        full = np.zeros_like(out)
        y, x = t.top * scale, t.left * scale
        full[t.start : t.stop, y : y + tile.shape[1], x : x + tile.shape[2]] = tile.numpy()
        out += full * weight[None, :, :, None] * time[t.index // layout.places][:, None, None, None]
    return out


@pytest.mark.parametrize("scale", [1, 2, 3])
def test_changed_tiles_are_the_weighted_mean(scale):
    layout = clip_layout(
        grid_cells(hex_grid(96, 64, 3), 12.0), 96, 64, 6, halo=8.0, chunk_frames=4, chunk_overlap=2
    )
    g = torch.Generator().manual_seed(3)
    tiles = [
        torch.rand(
            t.stop - t.start, layout.crop_rows * scale, layout.crop_columns * scale, 3, generator=g
        )
        for t in layout.tiles
    ]
    merged = merge_clip(layout, tiles)
    np.testing.assert_allclose(merged.numpy(), slow_merge(layout, tiles, scale), atol=2e-6)


@pytest.mark.parametrize("factor", [0.5, 1.25, 1.5, 2.0, 4.0, 1.7, 2.37])
def test_upscaled_tiles_meet_without_a_shift(factor):
    """A smooth picture, cut, scaled tile by tile and merged, is that picture scaled as a whole."""
    width, height = 192, 128
    layout = clip_layout(grid_cells(hex_grid(width, height, 3), 16.0), width, height, 1, halo=8.0)
    assert len(layout.tiles) > 3

    def paint(columns, rows, left=0.0, top=0.0, pitch=1.0):
        y, x = torch.meshgrid(
            (torch.arange(rows) + 0.5) * pitch + top, (torch.arange(columns) + 0.5) * pitch + left,
            indexing="ij",
        )  # fmt: skip
        return torch.stack([torch.sin(x / 19), torch.cos(y / 23), torch.sin((x + y) / 31)], -1)[
            None
        ]

    wide, tall = round(layout.crop_columns * factor), round(layout.crop_rows * factor)
    pitch = layout.crop_columns / wide
    tiles = [paint(wide, tall, t.left, t.top, pitch) for t in layout.tiles]
    merged = merge_clip(layout, tiles)
    # A tile's rounded sides tell an odd factor only nearly.
    slack = 0 if factor in (0.5, 1.25, 1.5, 2.0, 4.0) else 1
    assert abs(merged.shape[1] - round(height * factor)) <= slack
    assert abs(merged.shape[2] - round(width * factor)) <= slack
    whole = paint(merged.shape[2], merged.shape[1], 0, 0, width / merged.shape[2])
    limit = 1e-5 if factor in (0.5, 1.25, 1.5, 2.0, 4.0) else 0.03
    assert (merged - whole).abs().max() < limit


@given(st.integers(1, 64), st.integers(1, 16), st.integers(8, 900), st.integers(8, 900))
def test_a_typed_factor_is_found_again(a, b, x, y):
    factor = a / b
    assume(0.1 <= factor <= 8 and min(x, y) * factor >= 1)
    for rounded in (lambda v: round(v + 1e-9), lambda v: int(v + 1e-9)):
        to_x, to_y = rounded(x * factor), rounded(y * factor)
        assume(to_x and to_y)
        found = common_scale(x, to_x, y, to_y)
        # A small tile leaves room for a simpler factor; it must give the same sizes all the same.
        assert found is not None
        assert abs(found * x - to_x) <= 1 and abs(found * y - to_y) <= 1
        if min(x, y) > 2 * b * b:
            assert found == pytest.approx(factor)


def test_what_a_tile_does_not_own_is_never_read():
    layout = clip_layout(grid_cells(hex_grid(96, 64, 3), 8.0), 96, 64, 2, halo=2.0)
    clip = image(2, 64, 96)
    from h3video.blend.weights import tile_weights

    owned = tile_weights(layout.grid, [t.cells for t in layout.tiles], 96, 64, 1.0, layout.overlap)
    poisoned = []
    for t, w in zip(layout.tiles, owned):
        mine = np.zeros(64 * 96, bool)
        mine[w.points] = True
        mine = mine.reshape(64, 96)[
            t.top : t.top + layout.crop_rows, t.left : t.left + layout.crop_columns
        ]
        tile = cut_tile(clip, t, layout).clone()
        tile[:, ~torch.from_numpy(mine)] = float("nan")
        poisoned.append(tile)
    assert same_bits(merge_clip(layout, poisoned), clip)


def test_missing_tiles_are_named():
    layout = clip_layout(grid_cells(hex_grid(96, 64, 3), 8.0), 96, 64, 8, halo=2.0, chunk_frames=4)
    tiles = tiles_of(image(8, 64, 96), layout)
    last = layout.tiles[-1]
    with pytest.raises(
        UsageError,
        match=rf"1 of {len(tiles)} tiles are missing: tile {last.index} "
        rf"\(cell {last.ids[0]:x}.*frames 4-7\)",
    ):
        merge_clip(layout, tiles[:-1])
    keep = [i for i in range(len(tiles)) if i not in (1, 2)]
    with pytest.raises(UsageError, match=r"2 of .* missing: tile 1 .*, tile 2 "):
        merge_clip(layout, [tiles[i] for i in keep], indices=keep)


@pytest.mark.parametrize(
    "wreck, says",
    [
        (lambda t: t.__setitem__(1, t[1][:1]), "tile 1 .* has 1 frames, cut as 2"),
        (lambda t: t.__setitem__(1, t[1][:, :-2]), "all tiles must be scaled alike"),
        (
            lambda t: t.__setitem__(0, t[0].repeat(1, 1, 2, 1)),
            "scaled by 2.000 across but 1.000 down",
        ),
        (lambda t: t.append(t[0]), "tiles came for the"),
        (lambda t: t.__setitem__(0, t[0][0]), "not 3"),
    ],
)
def test_wrong_tiles_are_refused_by_name(wreck, says):
    layout = clip_layout(grid_cells(hex_grid(96, 64, 3), 8.0), 96, 64, halo=2.0, frames=2)
    tiles = tiles_of(image(2, 64, 96), layout)
    wreck(tiles)
    with pytest.raises(UsageError, match=says):
        merge_clip(layout, tiles)


def test_a_tile_that_comes_twice_or_from_elsewhere_is_refused():
    layout = clip_layout(grid_cells(hex_grid(96, 64, 3), 8.0), 96, 64, halo=2.0, frames=1)
    tile = cut_tile(image(1, 64, 96), layout.tiles[0], layout)
    merger = TileMerger(layout)
    merger.add(0, tile)
    with pytest.raises(UsageError, match="came twice"):
        merger.add(0, tile)
    with pytest.raises(UsageError, match=r"out of range 0\.\."):
        merger.add(len(layout.tiles), tile)


def test_colours_are_drawn_together_and_the_picture_stays():
    """Tiles with random gains and offsets: matched, seams vanish and the level is kept."""
    width, height = 192, 128
    layout = clip_layout(
        grid_cells(hex_grid(width, height, 3), 16.0), width, height, 6, halo=16.0, chunk_frames=4,
        chunk_overlap=2,
    )  # fmt: skip
    g = torch.Generator().manual_seed(5)
    clip = torch.nn.functional.interpolate(
        torch.rand(6, 3, 17, 25, generator=g), (height, width), mode="bicubic"
    ).permute(0, 2, 3, 1)
    tiles = []
    for t in layout.tiles:
        gain = 1 + 0.2 * (torch.rand(3, generator=g) - 0.5)
        offset = 0.2 * (torch.rand(3, generator=g) - 0.5)
        tiles.append(cut_tile(clip, t, layout) * gain + offset)
    plain = merge_clip(layout, tiles)
    matched = merge_clip(layout, tiles, match="mean/std")

    def unevenness(merged):
        """Spread of the difference to the clip, once one gain and offset per channel is free."""
        left = 0.0
        for c in range(3):
            a = torch.stack([clip[..., c].flatten(), torch.ones(clip[..., c].numel())], 1).double()
            b = merged[..., c].flatten().double()
            left += ((a @ torch.linalg.lstsq(a, b[:, None]).solution)[:, 0] - b).std().item()
        return left

    assert unevenness(plain) > 0.05
    assert unevenness(matched) < 0.02 * unevenness(plain)
    assert (matched.mean((0, 1, 2)) - plain.mean((0, 1, 2))).abs().max() < 0.03


def test_matching_untouched_tiles_changes_nothing_visible():
    layout = clip_layout(grid_cells(hex_grid(96, 64, 3), 12.0), 96, 64, 2, halo=8.0)
    clip = image(2, 64, 96)
    merged = merge_clip(layout, tiles_of(clip, layout), match="mean/std")
    assert (merged - clip).abs().max() < 1e-4


def test_a_flat_clip_can_be_matched():
    layout = clip_layout(grid_cells(hex_grid(96, 64, 3), 8.0), 96, 64, halo=2.0, frames=1)
    tiles = [torch.full_like(t, 0.1 * i) for i, t in enumerate(tiles_of(image(1, 64, 96), layout))]
    merged = merge_clip(layout, tiles, match="mean/std")
    assert merged.std() < 0.01 and torch.isfinite(merged).all()


def test_merging_can_be_stopped_at_every_tile():
    layout = clip_layout(grid_cells(hex_grid(96, 64, 3), 8.0), 96, 64, halo=2.0, frames=1)
    seen = []

    def stop():
        seen.append(1)
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        merge_clip(layout, tiles_of(image(1, 64, 96), layout), on_tile=stop)
    assert len(seen) == 2


class FromDisk:
    """Tiles that are made when they are asked for."""

    def __init__(self, layout, channels=3):
        self.layout, self.channels = layout, channels

    def __len__(self):
        return len(self.layout.tiles)

    def __getitem__(self, i):
        if i >= len(self):
            raise IndexError(i)
        t, layout = self.layout.tiles[i], self.layout
        return torch.full(
            (t.stop - t.start, layout.crop_rows, layout.crop_columns, self.channels), 0.25
        )


def test_merging_97_frames_of_full_hd_peaks_below_1_2_times_the_output():
    meter = pytest.importorskip("h3video.memory.meter")
    if meter.host_peak() is None:
        pytest.skip("this system does not tell a process's memory")
    frames, height, width = 97, 1088, 1920
    layout = clip_layout(
        grid_cells(hex_grid(width, height, 4), 64.0), width, height, frames, halo=64.0,
        chunk_frames=25, chunk_overlap=4,
    )  # fmt: skip
    output = frames * height * width * 3 * 4
    gc.collect()
    meter.reset_host_peak()
    before = meter.host_peak()
    merged = merge_clip(layout, FromDisk(layout))
    peak = meter.host_peak() - before
    assert merged.shape == (frames, height, width, 3)
    assert (merged[::31] == 0.25).all()
    assert peak < 1.2 * output, f"{peak / output:.3f} x the output"


@pytest.mark.parametrize("fade", [0, 3])
def test_tiles_on_another_device_take_the_torch_path(fade, monkeypatch):
    """The same answer without the native blend (meta tensors cannot be compared, so by hand)."""
    from h3video.blend import accumulate

    layout = clip_layout(
        grid_cells(hex_grid(96, 64, 3), 12.0), 96, 64, 9, halo=8.0, chunk_frames=6,
        chunk_overlap=fade,
    )  # fmt: skip
    g = torch.Generator().manual_seed(1)
    tiles = [torch.rand(t.shape, generator=g) for t in tiles_of(image(9, 64, 96), layout)]
    native = merge_clip(layout, tiles)

    def in_torch(out, tile, weight, seen, shares):
        for first, last, alpha in accumulate.blend_alphas(len(out), weight, seen, shares):
            accumulate._blend_torch(out[first:last], tile[first:last], torch.from_numpy(alpha))

    monkeypatch.setattr("h3video.tiling.merge.blend_into", in_torch)
    assert same_bits(native, merge_clip(layout, tiles))


def test_torch_blends_as_the_library_does():
    from h3video.blend import accumulate

    g = torch.Generator().manual_seed(1)
    out = torch.rand(2, 1, 5, 6, 3, generator=g)
    tile = torch.rand(2, 1, 5, 6, 3, generator=g)
    tile[0, 0, 0, 0] = out[0, 0, 0, 0]
    alpha = torch.rand(5, 6, generator=g)
    alpha[0, :3], alpha[1, :3] = 0.0, 1.0
    alpha[2, 0] = float("nan")  # 0 / 0: nothing has any weight there
    tile[:, :, 0, 1] = float("nan")
    native, plain = out.clone(), out.clone()
    accumulate.blend_into(native, tile, alpha.numpy())
    accumulate._blend_torch(plain, tile, alpha)
    assert torch.equal(native, plain)


def test_threads_change_nothing():
    layout = clip_layout(
        grid_cells(hex_grid(480, 320, 3), 32.0), 480, 320, 8, halo=8.0, chunk_frames=5,
        chunk_overlap=2,
    )  # fmt: skip
    g = torch.Generator().manual_seed(2)
    tiles = [torch.rand(t.shape, generator=g) for t in tiles_of(image(8, 320, 480), layout)]
    assert max(t.numel() for t in tiles) > 1 << 18
    threads, found = torch.get_num_threads(), []
    try:
        for count in (1, 2, 5):
            torch.set_num_threads(count)
            found.append(merge_clip(layout, tiles))
    finally:
        torch.set_num_threads(threads)
    assert same_bits(found[0], found[1]) and same_bits(found[0], found[2])


def test_a_point_that_no_tile_reaches_is_black():
    """Rounded sides could leave one; the memory that lies there must not show."""
    layout = clip_layout(
        grid_cells(hex_grid(96, 64, 3), 8.0), 96, 64, 4, halo=2.0, chunk_frames=2
    )  # fmt: skip
    merger = TileMerger(layout)
    for i, tile in enumerate(tiles_of(image(4, 64, 96), layout)):
        merger.add(i, tile)
    merger._seen[1, 10, 20] = 0.0  # as if no tile of the second chunk had come there
    before = merger._out.clone()
    merged = merger.finish()
    assert (merged[2:, 10, 20] == 0).all()
    before[2:, 10, 20] = 0.0
    assert same_bits(merged, before)
