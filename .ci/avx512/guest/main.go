// Command guest is the first process inside the emulated machine: it mounts
// what a test expects, runs the one program that /emu.json names, and reports
// its output and exit status through the emulator's debug port. It imports the
// standard library only. Read job first.
package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"unsafe"
)

// job is what the host asks for; the runner writes it, same names.
type job struct {
	Path string
	Args []string
	Env  []string
	Dir  string
}

// Frames on the debug port: one byte of kind, a little-endian uint32 length
// (the exit status itself for frameExit), the bytes.
const (
	frameStdout = 1
	frameStderr = 2
	frameExit   = 3

	debugPort    = 0xe9
	shutdownPort = 0x8900
	magic        = "\x00avx512emu\x00"
)

// outs writes p to an I/O port, byte by byte; the thread needs I/O privilege.
func outs(port uint16, p []byte)

type frame struct {
	kind byte
	n    uint32
	data []byte
}

func main() {
	// I/O privilege belongs to a thread: only this one writes to ports.
	runtime.LockOSThread()
	if _, _, e := syscall.RawSyscall(syscall.SYS_IOPL, 3, 0, 0); e != 0 {
		fmt.Fprintf(os.Stderr, "guest: iopl: %v\n", e)
		os.Exit(1) // the kernel panics when init ends; the runner shows its console
	}
	outs(debugPort, []byte(magic))
	frames := make(chan frame)
	go func() {
		frames <- frame{kind: frameExit, n: uint32(run(frames))}
	}()
	var head [5]byte
	for f := range frames {
		head[0] = f.kind
		binary.LittleEndian.PutUint32(head[1:], f.n)
		outs(debugPort, head[:])
		outs(debugPort, f.data)
		if f.kind == frameExit {
			outs(shutdownPort, []byte("Shutdown"))
		}
	}
}

// port is the writer that a program's stdout or stderr is copied to.
type port struct {
	kind   byte
	frames chan<- frame
}

func (p port) Write(b []byte) (int, error) {
	p.frames <- frame{p.kind, uint32(len(b)), append([]byte(nil), b...)}
	return len(b), nil
}

// run does the job and returns its exit status: 127 when it could not start,
// 128 + the signal's number when a signal ended it, as shells do.
func run(frames chan<- frame) int {
	stderr := port{frameStderr, frames}
	fail := func(what string, err error) int {
		fmt.Fprintf(stderr, "guest: %s: %v\n", what, err)
		return 127
	}
	if what, err := setup(); err != nil {
		return fail(what, err)
	}
	text, err := os.ReadFile("/emu.json")
	if err != nil {
		return fail("job", err)
	}
	var j job
	if err := json.Unmarshal(text, &j); err != nil {
		return fail("job", err)
	}
	cmd := exec.Cmd{Path: j.Path, Args: append([]string{j.Path}, j.Args...), Env: j.Env, Dir: j.Dir,
		Stdout: port{frameStdout, frames}, Stderr: stderr}
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return fail("run", err)
	}
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		fmt.Fprintf(stderr, "guest: %s: %v\n", j.Path, ws.Signal())
		return 128 + int(ws.Signal())
	}
	return cmd.ProcessState.ExitCode()
}

func setup() (what string, err error) {
	for _, m := range [][2]string{{"/proc", "proc"}, {"/sys", "sysfs"}, {"/dev", "devtmpfs"}} {
		if err := os.MkdirAll(m[0], 0o755); err != nil {
			return m[0], err
		}
		if err := syscall.Mount("none", m[0], m[1], 0, ""); err != nil {
			return "mount " + m[0], err
		}
	}
	if err := os.MkdirAll("/tmp", 0o1777); err != nil {
		return "/tmp", err
	}
	return "loopback", loopback()
}

// loopback brings the lo interface up, for tests that serve on 127.0.0.1.
func loopback() error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	var req struct { // struct ifreq
		name  [16]byte
		flags uint16
		_     [22]byte
	}
	copy(req.name[:], "lo")
	req.flags = syscall.IFF_UP | syscall.IFF_RUNNING
	if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&req))); e != 0 {
		return e
	}
	return nil
}
