//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package sys

import (
	"io"
	"os"
)

// mapFile reads the file in pieces, so that a size that is only claimed is never
// allocated at once.
func mapFile(f *os.File, size int) ([]byte, func([]byte) error, error) {
	data, err := io.ReadAll(io.LimitReader(f, int64(size)))
	if err != nil {
		return nil, nil, err
	}
	if len(data) != size {
		return nil, nil, io.ErrUnexpectedEOF
	}
	return data, func([]byte) error { return nil }, nil
}

func adviseMap([]byte, Advice) error { return nil }
