package main

import (
	"os"

	"golang.org/x/sys/windows"
)

// keepNewlines lets the console obey the sequences that draw the line.
func keepNewlines(_, out *os.File) {
	h := windows.Handle(out.Fd())
	var mode uint32
	if windows.GetConsoleMode(h, &mode) == nil {
		_ = windows.SetConsoleMode(h, mode|windows.ENABLE_PROCESSED_OUTPUT|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING)
	}
}

// suspendProgram does nothing: there are no stopped jobs.
func suspendProgram() {}
