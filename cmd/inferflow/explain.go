package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inferflow/inferflow/internal/bench"
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/program"
	"github.com/inferflow/inferflow/spec"
)

// explainFlags are what explain takes beside the model's flags.
type explainFlags struct {
	json, profile, graph bool
	prefill, decode      int
}

func explainCommand() *cobra.Command {
	var f modelFlags
	var ef explainFlags
	c := &cobra.Command{
		Use:   "explain MODEL",
		Short: "Show what a model is made of and how it runs",
		Long: `Prints where each value of the configuration came from, generation defaults
and end tokens, bytes by tensor type, what a token takes in the cache, the
lines of the specification with the operations that they made, and the steps
that they were compiled to, with the reason where one was not fused. Without
--profile nothing is loaded.`,
		Example: `  inferflow explain ./model.gguf
  inferflow explain ./model.gguf --profile --threads 2
  inferflow explain ./folder --json`,
		Args: argsBetween(1, 1, "one model"),
		RunE: func(c *cobra.Command, args []string) error {
			o, err := f.options()
			if err != nil {
				return err
			}
			if ef.prefill < 1 || ef.prefill > maxBench || ef.decode < 1 || ef.decode > maxBench {
				return usagef("--prefill and --decode take numbers from 1 to %d", maxBench)
			}
			o.Profile = ef.profile
			m, err := openModel(c.Context(), args[0], o)
			if err != nil {
				return err
			}
			if m.Whole() && m.Purpose() == spec.OutputEmbedding {
				m.Close()
				o.Output = spec.OutputEmbedding
				if m, err = openModel(c.Context(), args[0], o); err != nil {
					return err
				}
			}
			defer m.Close()
			return runExplain(c.Context(), m, &ef)
		},
	}
	f.add(c.Flags())
	c.Flags().BoolVar(&ef.json, "json", false, "print JSON")
	c.Flags().BoolVar(&ef.profile, "profile", false, "load the model, run it and add the time of steps and lines")
	c.Flags().BoolVar(&ef.graph, "graph", false, "print every operation of the graph, layers that repeat once")
	c.Flags().IntVar(&ef.prefill, "prefill", 512, "tokens of the profile's prompt")
	c.Flags().IntVar(&ef.decode, "decode", 32, "tokens that the profile decodes")
	return c
}

func runExplain(ctx context.Context, m *model.Model, f *explainFlags) error {
	e, err := bench.Explain(m)
	if err != nil {
		return err
	}
	if f.profile {
		ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
		defer stop()
		progress := progressLine()
		progress("loading and running the model")
		err := e.AddProfile(ctx, m, f.prefill, f.decode)
		progress("")
		if err != nil {
			return err
		}
	}
	if f.json {
		enc := json.NewEncoder(os.Stdout)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(e)
	}
	p := &explainer{e: e, color: colored(os.Stdout), width: terminalWidth(os.Stdout)}
	p.all()
	if f.graph {
		p.section("graph")
		p.b.WriteString(graph.Text(m.Graph(), graph.PrintOptions{Fold: true}))
	}
	_, err = io.WriteString(os.Stdout, p.b.String())
	return err
}

// explainer writes an explanation for people.
type explainer struct {
	e     *bench.Explanation
	b     strings.Builder
	color bool
	width int // of the terminal, 0: any
}

func (p *explainer) all() {
	i := p.e.Model
	fmt.Fprintf(&p.b, "%s  specification %s, %s parameters, %s, %s, %d layers", style(bold, i.Name, p.color), i.Spec, bench.Count(i.Parameters),
		i.Types, model.Bytes(i.Bytes), i.Layers)
	if p.e.MaxContext > 0 {
		fmt.Fprintf(&p.b, ", made for %d tokens", p.e.MaxContext)
	}
	p.b.WriteByte('\n')
	p.config()
	if len(p.e.Vectors) > 0 {
		p.section("vectors")
		p.values(p.e.Vectors)
	} else {
		p.generation()
	}
	p.bytes()
	p.lines()
	p.steps()
	p.leftOver()
}

func (p *explainer) section(title string) { fmt.Fprintf(&p.b, "\n%s\n", style(bold, title, p.color)) }

func (p *explainer) table(t *table) { p.tableIn(t, "  ") }

func (p *explainer) tableIn(t *table, indent string) {
	t.limit = p.width
	_ = t.write(&p.b, indent, p.color) // a Builder does not fail
}

func (p *explainer) config() {
	p.section("configuration")
	p.values(p.e.Config)
}

// values prints a table of values and where they came from.
func (p *explainer) values(list []bench.Value) {
	t := table{head: []string{"", "", ""}}
	for _, v := range list {
		t.add(v.Key, valueText(v.Value), v.Source)
	}
	p.table(&t)
}

// valueText is a value as JSON, cut where it is long.
func valueText(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return clip(string(raw), 40)
}

func (p *explainer) generation() {
	p.section("generation")
	t := table{head: []string{"", "", ""}}
	for _, v := range p.e.Generation {
		t.add(v.Key, valueText(v.Value), v.Source)
	}
	for _, x := range p.e.EndTokens {
		t.add("ends with", strings.TrimSpace(fmt.Sprintf("%d %s", x.ID, quoted(x.Text))), strings.Join(x.Sources, ", "))
	}
	if len(t.rows) == 0 && p.e.Whole {
		t.add("none: the model reads texts and writes none")
	} else if len(t.rows) == 0 {
		t.add("the files name no defaults and no end token")
	}
	p.table(&t)
}

func quoted(s string) string {
	if s == "" {
		return ""
	}
	return strconv.Quote(s)
}

func (p *explainer) bytes() {
	p.section("bytes by type")
	t := table{head: []string{"type", "tensors", "values", "bytes", "bits a value"}, right: []bool{false, true, true, true, true}}
	for _, x := range p.e.Types {
		t.add(x.Type, strconv.Itoa(x.Tensors), strconv.FormatInt(x.Elements, 10), model.Bytes(x.Bytes), fmt.Sprintf("%.2f", x.Bits))
	}
	p.table(&t)
	k := p.e.KV
	p.section("keys and values")
	fmt.Fprintf(&p.b, "  %s a token (keys %s, values %s)\n", model.Bytes(k.BytesPerToken), k.Keys, k.Values)
	for _, c := range k.Caches {
		if c.Size > 0 {
			layers, states := slices.Compact(slices.Sorted(slices.Values(c.Layers))), "a state"
			if n := len(c.Layers) / len(layers); n > 1 {
				states = fmt.Sprintf("%d states", n)
			}
			fmt.Fprintf(&p.b, "  %s: %s of %d numbers a sequence, %s\n", bench.LayersText(layers, p.e.Model.Layers), states, c.Size,
				model.Bytes(4*int64(c.Size*len(c.Layers)/len(layers))))
			continue
		}
		window := ""
		if c.Window > 0 {
			window = fmt.Sprintf(", a window of %d tokens", c.Window)
			if c.First > 0 {
				window += fmt.Sprintf(" and the first %d", c.First)
			}
		}
		switch c.Source {
		case "kept":
			window += ", of the source"
		case "encoding":
			window += ", of the source while it is encoded"
		}
		fmt.Fprintf(&p.b, "  %s: %s of %d heads, keys of %d, values of %d%s\n", bench.LayersText(c.Layers, p.e.Model.Layers), c.Kind, c.Heads, c.KeyDim, c.ValueDim, window)
	}
}

// lines prints the specification's lines that made nodes, the nodes below each.
func (p *explainer) lines() {
	p.section("the graph by line of the specification")
	q := p.e.Profile
	t := table{head: []string{"line", "where", ""}, right: []bool{true}}
	if q != nil {
		t = table{head: []string{"line", "prefill", "decode", "where", ""}, right: []bool{true, true, true}}
	}
	for i := range p.e.Lines {
		l := &p.e.Lines[i]
		text := strings.TrimSpace(l.Text)
		if text == "" {
			text = l.File
		}
		var ops []string
		for _, n := range l.Nodes {
			op := n.Op + shapeText(n.Shape)
			if n.Count > 1 {
				op = fmt.Sprintf("%d×%s", n.Count, op)
			}
			ops = append(ops, op)
		}
		row, below := []string{strconv.Itoa(l.Line)}, []string{"", "", "  " + strings.Join(ops, ", ")}
		if q != nil {
			row = append(row, percent(l.Prefill, q.PrefillSeconds), percent(l.Decode, q.DecodeSeconds))
			below = append([]string{"", ""}, below...)
		}
		t.add(append(row, bench.LayersText(l.Layers, p.e.Model.Layers), text)...)
		t.add(below...)
	}
	p.table(&t)
}

func shapeText(s []int) string {
	parts := make([]string, len(s))
	for i, d := range s {
		parts[i] = strconv.Itoa(d)
	}
	return "[" + strings.Join(parts, ",") + "]"
}

func percent(part, whole float64) string {
	if whole <= 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*part/whole)
}

func (p *explainer) steps() {
	n := 0
	for _, g := range p.e.Groups {
		n += len(g.Steps) * len(g.Layers)
	}
	p.section(fmt.Sprintf("compiled to %d steps", n))
	q := p.e.Profile
	for _, g := range p.e.Groups {
		each := ""
		if len(g.Layers) > 1 {
			each = " each"
		}
		fmt.Fprintf(&p.b, "  %s: %s%s\n", g.Title, program.Count(len(g.Steps), "step"), each)
		t := table{head: []string{"", "bytes", "type", "lines", ""}, right: []bool{false, true}}
		if q != nil {
			t = table{head: []string{"", "prefill", "", "decode", "", "GB/s", "bytes", "type", "lines", ""}, right: []bool{false, true, true, true, true, true, true}}
		}
		for i := range g.Steps {
			p.step(&t, &g.Steps[i], len(g.Layers))
		}
		p.tableIn(&t, "    ")
	}
	if q != nil {
		decode := "; it decodes none"
		if q.Decode > 0 {
			decode = fmt.Sprintf("; decode: %.3f ms a token, %s outside", 1e3*q.DecodeSeconds, percent(q.DecodeOutside, q.DecodeSeconds))
		}
		fmt.Fprintf(&p.b, "  prefill of %d tokens: %.1f ms, %s of it outside the steps%s\n", q.Prefill, 1e3*q.PrefillSeconds, percent(q.PrefillOutside, q.PrefillSeconds), decode)
		p.b.WriteString("  times are sums over the layers; a fused step's time is shared among its lines by the weights that each reads\n")
	}
}

func (p *explainer) step(t *table, s *bench.Step, layers int) {
	lines := make([]string, len(s.Lines))
	for i, l := range s.Lines {
		lines[i] = strconv.Itoa(l)
	}
	rest := []string{model.Bytes(s.Bytes / int64(layers)), strings.Join(s.Types, "+"), strings.Join(lines, ","), s.Text}
	row := []string{s.Kind}
	if q := p.e.Profile; q != nil {
		rate := "–"
		if s.Bytes > 0 && s.Decode > 0 {
			rate = fmt.Sprintf("%.1f", float64(s.Bytes)/s.Decode/1e9)
		}
		row = append(row, fmt.Sprintf("%.2f ms", 1e3*s.Prefill), percent(s.Prefill, q.PrefillSeconds), fmt.Sprintf("%.1f µs", 1e6*s.Decode), percent(s.Decode, q.DecodeSeconds), rate)
	}
	t.add(append(row, rest...)...)
}

// leftOver prints what was not fused and which tensors are not read.
func (p *explainer) leftOver() {
	p.section("not fused")
	t := table{head: []string{"", "", "", ""}}
	for _, n := range p.e.NotFused {
		t.add(n.Op, n.Line, bench.LayersText(n.Layers, p.e.Model.Layers), n.Why)
	}
	if len(t.rows) == 0 {
		t.add("nothing: every operation is part of a fused step")
	}
	p.table(&t)
	for _, x := range []struct {
		title string
		names []string
	}{{"stored tensors that are not needed", p.e.Ignored}, {"stored tensors that nothing reads", p.e.Unused}} {
		if len(x.names) > 0 {
			p.section(x.title)
			fmt.Fprintf(&p.b, "  %s\n", strings.Join(x.names, ", "))
		}
	}
}
