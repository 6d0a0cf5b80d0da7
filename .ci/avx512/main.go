// Command avx512emu runs a static Linux program on an emulated processor with
// AVX-512 and VNNI: it lays the kernel, the program and the files it needs into
// the memory of a Bochs machine, boots that, relays the output and exits with
// the program's status. It imports the standard library only. Read options
// first, then image.go for what the machine's memory holds.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// statusEmulator is the exit status when the machine, not the program, failed.
const statusEmulator = 125

// options come from the command line and the environment; see usage.
type options struct {
	bochs, kernel, guest string // what setup.sh made
	model                string // a CPU model of Bochs
	megs                 int    // the machine's memory
	verbose              bool   // show the kernel's console
	timeout              time.Duration
	with                 []string // files and folders to carry, at their own absolute paths
	env                  []string
	program              string
	args                 []string
}

const usage = `usage: run.sh [-with PATH]... [-env NAME=VALUE]... [-mem MiB] [-cpu MODEL] [-timeout D] BINARY [ARG]...`

func main() {
	if len(os.Args) == 4 && os.Args[1] == "-extract-kernel" {
		if err := extract(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintf(os.Stderr, "avx512: %v\n", err)
			os.Exit(statusEmulator)
		}
		return
	}
	o, err := parse(os.Args[1:], os.Getenv)
	if err == nil {
		var status int
		if status, err = run(o); err == nil {
			os.Exit(status)
		}
	}
	fmt.Fprintf(os.Stderr, "avx512: %v\n", err)
	os.Exit(statusEmulator)
}

// run boots the machine for one program and returns the program's exit status.
func run(o options) (int, error) {
	dir, err := os.MkdirTemp("", "avx512-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	cwd, err := os.Getwd()
	if err != nil {
		return 0, err
	}
	if err := buildImages(o, dir, cwd); err != nil {
		return 0, err
	}
	// The emulator is to die with this thread, also when this process is killed.
	runtime.LockOSThread()
	cmd := exec.Command("nice", "-n", "10", o.bochs, "-q", "-f", filepath.Join(dir, "bochsrc"))
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start %s: %w", o.bochs, err)
	}
	why := make(chan string, 1)
	stop := func(s string) {
		select {
		case why <- s:
		default:
		}
		cmd.Process.Kill()
	}
	if o.timeout > 0 {
		defer time.AfterFunc(o.timeout, func() { stop("timed out after " + o.timeout.String()) }).Stop()
	}
	sig := make(chan os.Signal, 1)
	signal.Notify(sig, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP)
	go func() { stop("stopped by " + (<-sig).String()) }()
	status, early, err := relay(out, os.Stdout, os.Stderr)
	if err == nil {
		cmd.Process.Kill() // it has nothing left to do; do not wait for its own way out
	}
	cmd.Wait()
	if err == nil {
		if o.verbose {
			fmt.Fprint(os.Stderr, logs(dir))
		}
		return status, nil
	}
	select {
	case s := <-why:
		err = errors.New(s)
	default:
	}
	return 0, fmt.Errorf("%w\n%s%s", err, early, logs(dir))
}

// logs gives the ends of the emulator's log and of the kernel's console.
func logs(dir string) string {
	var b strings.Builder
	for _, name := range []string{"bochs.log", "serial.log"} {
		text, _ := os.ReadFile(filepath.Join(dir, name))
		if n := len(text) - 40_000; n > 0 {
			text = text[n:]
		}
		fmt.Fprintf(&b, "--- %s\n%s\n", name, text)
	}
	return b.String()
}

// Frames of the guest; guest/main.go says how they are laid out.
const (
	frameStdout = 1
	frameStderr = 2
	frameExit   = 3
	magic       = "\x00avx512emu\x00"
)

var errNoStatus = errors.New("the machine stopped before the program's exit status came")

// relay copies frames from the machine to stdout and stderr until the exit
// frame, whose status it returns. early is what came before the first frame:
// the emulator's own words.
func relay(r io.Reader, stdout, stderr io.Writer) (status int, early string, err error) {
	br := bufio.NewReader(r)
	var head strings.Builder
	for !strings.HasSuffix(head.String(), magic) {
		c, err := br.ReadByte()
		if err != nil {
			return 0, head.String(), errNoStatus
		}
		head.WriteByte(c)
	}
	early = strings.TrimSuffix(head.String(), magic)
	for {
		var f struct {
			Kind byte
			N    uint32
		}
		if err := binary.Read(br, binary.LittleEndian, &f); err != nil {
			return 0, early, errNoStatus
		}
		switch f.Kind {
		case frameStdout:
			_, err = io.CopyN(stdout, br, int64(f.N))
		case frameStderr:
			_, err = io.CopyN(stderr, br, int64(f.N))
		case frameExit:
			return int(f.N), early, nil
		default:
			err = fmt.Errorf("frame of unknown kind %d", f.Kind)
		}
		if err != nil {
			return 0, early, err
		}
	}
}

// job is what the guest is asked for; guest/main.go reads it.
type job struct {
	Path string
	Args []string
	Env  []string
	Dir  string
}

func (o options) job(cwd string) ([]byte, error) {
	return json.Marshal(job{o.program, o.args, o.env, cwd})
}
