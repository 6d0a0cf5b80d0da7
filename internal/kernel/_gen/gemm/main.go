// Command gemm writes the amd64 assembly of internal/kernel/gemm and its Go
// declarations. It must import nothing of the runtime module: the layout of
// panels, records and args is restated here as constants and checked by the
// tests of the package. Read intKernel in int.go first.
package main

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: gemm DIRECTORY of package gemm")
	}
	out := os.Args[1]
	for _, f := range []struct {
		name string
		emit func(*build.Context)
	}{
		{"kernels_avx2_amd64", avx2Kernels},
		{"kernels_avx512_amd64", avx512Kernels},
	} {
		if err := write(filepath.Join(out, f.name), f.emit); err != nil {
			log.Fatal(err)
		}
	}
}

// write generates one assembly file and its declarations.
func write(path string, emit func(*build.Context)) error {
	c := build.NewContext()
	c.ConstraintExpr("amd64,!noasm")
	emit(c)
	f, err := c.Result()
	if err != nil {
		return fmt.Errorf("gemm: %s: %#v", path, err)
	}
	if err := pass.Compile.Execute(f); err != nil {
		return fmt.Errorf("gemm: %s: %w", path, err)
	}
	cfg := printer.Config{Name: "gemm", Argv: []string{"gemm"}, Pkg: "gemm"}
	for _, p := range []struct {
		ext string
		printer.Printer
	}{{".s", printer.NewGoAsm(cfg)}, {".go", printer.NewStubs(cfg)}} {
		b, err := p.Print(f)
		if err != nil {
			return fmt.Errorf("gemm: %s%s: %w", path, p.ext, err)
		}
		if err := os.WriteFile(path+p.ext, b, 0o644); err != nil {
			return err
		}
	}
	return nil
}
