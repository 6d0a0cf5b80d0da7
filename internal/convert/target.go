package convert

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/sys"
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
	case err != nil && fileEnding.MatchString(ext):
		return refuse("%s ends in %s as a file does, and only .gguf and .safetensors are written; for a folder of that name write %s%c", out, ext, out, filepath.Separator)
	}
	if ext != ".gguf" {
		weights := weightsFile
		if ext == ".safetensors" {
			weights = filepath.Base(out)
		} else {
			dir = out
		}
		return c.vacant(dir, weights)
	}
	if err == nil && !c.o.Force {
		return refuse("%s is there already; choose another name, or replace it with --force", out)
	}
	return nil
}

// lockFile stands in a folder that is written to.
const lockFile = ".inferflow.lock"

// hold keeps other conversions from out while this one lasts, and checks it
// again: one may just have ended.
func (c *job) hold(lock, out string) (release func(), err error) {
	release, err = sys.Lock(lock)
	if errors.Is(err, sys.ErrLocked) {
		return nil, fmt.Errorf("convert: %w: another conversion is writing to %s (it holds %s); choose another name, or wait for its end", ErrConvert, out, lock)
	}
	if err != nil {
		return nil, fmt.Errorf("convert: %w", err)
	}
	if err := errors.Join(c.ended(), c.target(out)); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// fileEnding is what ends the name of a file, not a number as in v1.2 or 2.5B.
var fileEnding = regexp.MustCompile(`^\.[a-z_][a-z0-9_]*$`)

// weightsFile is the name of a written folder's weights.
const weightsFile = "model.safetensors"

// weightEndings are those of files that may hold a model's weights.
var weightEndings = append([]string{".ckpt", ".ggml", ".h5", ".msgpack", ".onnx", ".pickle", ".pkl"}, model.Extensions...)

// fileEndings are those of files that somebody may want in place of a folder.
var fileEndings = append([]string{".json", ".model", ".npz", ".safetensor", ".tar", ".gz", ".tgz", ".zip", ".txt"}, weightEndings...)

// vacant refuses a folder in which another model lies, in whatever form. Force
// lets its files be replaced, but not stay beside the new ones, of which they
// would seem parts.
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
		case name == weights || name == "config.json" || slices.Contains(beside, name) || slices.Contains(sentenceFiles, name):
			replaced = append(replaced, name)
		case name == "modules.json", strings.HasSuffix(name, ".index.json"), slices.Contains(weightEndings, strings.ToLower(filepath.Ext(name))):
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

// own says whether the model itself lies in dir, as a folder or as a file.
func (c *job) own(dir string) bool {
	return same(dir, c.files.Folder()) || slices.ContainsFunc(c.files.Files(), func(part string) bool { return same(dir, filepath.Dir(part)) })
}
