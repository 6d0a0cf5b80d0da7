// Command vec writes the AVX2 assembly of internal/kernel/vec and its Go
// declarations. It must import nothing of the runtime module: the constants of the
// approximations are restated here and held against plain Go by the tests of the
// package. Read gen in asm.go first.
package main

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: vec DIRECTORY of package vec")
	}
	for _, f := range []struct {
		name  string
		lanes int
		emit  func(*gen)
	}{
		{"kernels_avx2_amd64", 8, kernels},
		{"kernels_avx512_amd64", 16, func(g *gen) { g.geluErfs("AVX512") }},
	} {
		if err := write(filepath.Join(os.Args[1], f.name), f.lanes, f.emit); err != nil {
			log.Fatal(err)
		}
	}
}

// write generates one assembly file for vectors of so many lanes and its declarations.
func write(path string, lanes int, emit func(*gen)) error {
	g := newGen(lanes)
	g.ConstraintExpr("amd64,!noasm")
	emit(g)
	f, err := g.Result()
	if err != nil {
		return fmt.Errorf("vec: %s: %w", path, err)
	}
	if err := pass.Compile.Execute(f); err != nil {
		return fmt.Errorf("vec: %s: %w", path, err)
	}
	cfg := printer.Config{Name: "vec", Argv: []string{"vec"}, Pkg: "vec"}
	for _, p := range []struct {
		ext string
		printer.Printer
	}{{".s", printer.NewGoAsm(cfg)}, {".go", printer.NewStubs(cfg)}} {
		b, err := p.Print(f)
		if err != nil {
			return fmt.Errorf("vec: %s%s: %w", path, p.ext, err)
		}
		if err := os.WriteFile(path+p.ext, b, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// kernels emits all functions of the package.
func kernels(g *gen) {
	arithmetic(g)
	activations(g)
	reductions(g)
	ropes(g)
	conversions(g)
}
