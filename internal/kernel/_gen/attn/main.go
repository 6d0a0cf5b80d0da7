// Command attn writes the AVX2 assembly of internal/kernel/attn and its Go
// declarations. It must import nothing of the runtime module: the tile's layout and
// the exponential's constants are restated here and held against plain Go by the
// tests of the package. Read scores.go first.
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
		log.Fatal("usage: attn DIRECTORY of package attn")
	}
	if err := write(filepath.Join(os.Args[1], "kernels_avx2_amd64"), kernels); err != nil {
		log.Fatal(err)
	}
}

// write generates one assembly file and its declarations.
func write(path string, emit func(*gen)) error {
	g := newGen()
	g.ConstraintExpr("amd64,!noasm")
	emit(g)
	f, err := g.Result()
	if err != nil {
		return fmt.Errorf("attn: %s: %w", path, err)
	}
	if err := pass.Compile.Execute(f); err != nil {
		return fmt.Errorf("attn: %s: %w", path, err)
	}
	cfg := printer.Config{Name: "attn", Argv: []string{"attn"}, Pkg: "attn"}
	for _, p := range []struct {
		ext string
		printer.Printer
	}{{".s", printer.NewGoAsm(cfg)}, {".go", printer.NewStubs(cfg)}} {
		b, err := p.Print(f)
		if err != nil {
			return fmt.Errorf("attn: %s%s: %w", path, p.ext, err)
		}
		if err := os.WriteFile(path+p.ext, b, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// kernels emits all functions of the package.
func kernels(g *gen) {
	for _, e := range []elem{f32, f16, bf16} {
		g.scores(e)
	}
	g.softmax()
	for _, e := range []elem{f32, f16, bf16} {
		g.weigh(e)
	}
	g.turn()
	g.finish()
}
