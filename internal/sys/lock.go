package sys

import (
	"errors"
	"fmt"
)

// lockTries bounds how often Lock makes a file that another run removes at once.
const lockTries = 100

// Lock makes the file path and holds it until release, which removes it;
// ErrLocked where another run does. What a killed run left is taken over.
func Lock(path string) (release func(), err error) {
	for range lockTries {
		f, err := openLock(path)
		if errors.Is(err, errHeld) {
			return nil, fmt.Errorf("%s: %w", path, ErrLocked)
		}
		if err != nil {
			return nil, err
		}
		if leadsTo(path, f) {
			return func() { removeOpen(f); f.Close() }, nil
		}
		f.Close() // its holder removed it before it was locked here
	}
	return nil, fmt.Errorf("%s: cannot be locked; is it a link?", path)
}
