package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestEndWithin: an engine that does not end is left behind, with a word of it.
func TestEndWithin(t *testing.T) {
	said := ""
	forever := make(chan struct{})
	defer close(forever)
	endWithin(func() error { <-forever; return nil }, time.Millisecond, func(s string) { said = s })
	if !strings.Contains(said, "still at a step") {
		t.Errorf("said %q", said)
	}
	ended := false
	endWithin(func() error { ended = true; return nil }, time.Hour, func(s string) { t.Errorf("said %q", s) })
	if !ended {
		t.Error("end was not called")
	}
}

// TestSecondSignal: the first signal ends the context, the second the program,
// with a word of it.
func TestSecondSignal(t *testing.T) {
	if os.Getenv("INFERFLOW_TEST_SIGNALS") != "" {
		ctx, stop := untilSignal(t.Context())
		defer stop()
		fmt.Println("waits")
		<-ctx.Done()
		fmt.Println("ends")
		time.Sleep(time.Minute)
		return
	}
	if runtime.GOOS == "windows" {
		t.Skip("no signals can be sent here")
	}
	c := exec.Command(os.Args[0], "-test.run=^TestSecondSignal$")
	c.Env = append(os.Environ(), "INFERFLOW_TEST_SIGNALS=1")
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for _, want := range []string{"waits", "ends"} {
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("the program says %q, want %q", lines.Text(), want)
		}
		if err := c.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	gone := make(chan struct{})
	go func() { // again, as the second may come before it is awaited
		for c.Process.Signal(syscall.SIGTERM) == nil {
			select {
			case <-gone:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	_ = c.Wait()
	close(gone)
	if code := c.ProcessState.ExitCode(); code != 128+int(syscall.SIGTERM) || !strings.Contains(said.String(), "a second signal (terminated): ended at once") {
		t.Errorf("exit %d: %s", code, said.String())
	}
}
