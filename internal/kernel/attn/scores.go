package attn

// Scores writes q·k for rows queries of dk values, stride apart in q, and the 16
// keys of a float32 tile [dk][16]: dst[r·16 + j]. A score depends on its query
// and key alone. It panics if a slice is too short.
func Scores(dst, q []float32, stride, rows int, tile []byte, dk int) {
	if rows == 0 {
		return
	}
	_, _, _ = dst[rows*Tile-1], q[(rows-1)*stride+dk-1], tile[KeyTileBytes(F32, dk)-1]
	if useAVX2 {
		scoresFast(F32, dst, q, stride, tile, dk, rows)
		return
	}
	k := floats(tile)
	for r := range rows {
		scoresRow(dst[r*Tile:][:Tile], q[r*stride:][:dk], k)
	}
}
