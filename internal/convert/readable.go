package convert

import (
	"fmt"

	"github.com/inferflow/inferflow/spec"
)

// readable refuses to make a folder of a GGUF file of our own form that nothing
// would open: the config.json that the file carries is whatever somebody wrote.
// Of other files, package spec reads the folder when it makes it; a folder is
// copied as it is, of whatever family.
func (c *job) readable() error {
	if c.files.Meta() == nil || c.files.Binding() != spec.HF {
		return nil
	}
	s, err := c.files.Spec(c.o.Spec)
	if err == nil {
		_, err = s.Trace(c.files)
	}
	if err != nil {
		return fmt.Errorf("convert: %w: the folder could not be read back: %w", ErrConvert, err)
	}
	return nil
}
