package convert

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inferflow/inferflow/internal/model"
)

// target checks, before any work is done, that out can be written: a .gguf file
// in a folder that is there, or a folder that holds no other model.
func (c *job) target(out string) error {
	refuse := func(format string, a ...any) error {
		return fmt.Errorf("convert: %w: %s", ErrConvert, fmt.Sprintf(format, a...))
	}
	ext, dir := strings.ToLower(filepath.Ext(out)), filepath.Dir(out)
	info, err := os.Stat(out)
	isFolder := err == nil && info.IsDir()
	switch {
	case ext == ".gguf" || ext == ".safetensors":
		if isFolder {
			return refuse("%s is a folder; name a file in it", out)
		}
		if at, err := os.Stat(dir); err == nil && !at.IsDir() {
			return refuse("%s is not a folder", dir)
		} else if err != nil && ext == ".gguf" {
			return refuse("there is no folder %s; make it first", dir)
		}
	case err == nil && !isFolder:
		return refuse("%s is a file; a folder is written, or a file whose name ends in .gguf or .safetensors", out)
	case !isFolder && slices.Contains(fileEndings, ext):
		return refuse("files of the form %s are not written; give a name that ends in .gguf or .safetensors, or that of a folder", ext)
	}
	switch ext {
	case ".gguf":
		return nil
	case ".safetensors":
		return c.vacant(dir, filepath.Base(out))
	}
	return c.vacant(out, weightsFile)
}

// weightsFile is the name of a written folder's weights.
const weightsFile = "model.safetensors"

// fileEndings are those of files that somebody may want in place of a folder.
var fileEndings = append([]string{".ckpt", ".ggml", ".h5", ".json", ".model", ".msgpack", ".npz", ".onnx", ".pickle", ".pkl", ".safetensor", ".tar", ".gz", ".tgz", ".zip", ".txt"}, model.Extensions...)

// vacant refuses a folder in which another model lies. Force lets its files be
// replaced, but not stay beside the new ones, of which they would seem parts.
func (c *job) vacant(dir, weights string) error {
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("convert: %w", err)
	}
	var replaced, stays []string
	for _, e := range entries {
		name := e.Name()
		switch {
		case name == weights || name == "config.json" || slices.Contains(beside, name):
			replaced = append(replaced, name)
		case name == "modules.json", strings.HasSuffix(name, ".index.json"), slices.Contains([]string{".safetensors", ".bin", ".pt", ".pth"}, filepath.Ext(name)):
			stays = append(stays, name)
		}
	}
	switch {
	case len(stays) > 0 && (c.o.Force || len(replaced) == 0):
		return fmt.Errorf("convert: %w: in %s lies another model, whose %s would stay beside the new weights; remove it, or choose a new folder", ErrConvert, dir, stays[0])
	case len(replaced)+len(stays) > 0 && !c.o.Force:
		return fmt.Errorf("convert: %w: in %s lies another model (%s); choose a new folder, or replace it with --force", ErrConvert, dir, append(replaced, stays...)[0])
	}
	return nil
}
