package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inferflow/inferflow/internal/activations"
	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/model"
)

// traceFlags are what spec trace takes beside the model's flags.
type traceFlags struct {
	against   string
	tol       float64
	all, json bool
	rename    []string
}

func specTraceCommand() *cobra.Command {
	var f modelFlags
	var tf traceFlags
	c := &cobra.Command{
		Use:   "trace MODEL --against FILE",
		Short: "Compare a specification's values with a reference's activations",
		Long: `Runs the graph exactly over the ids of FILE, holds every named value against
the reference's and names the first line of the specification that differs.
FILE is written by scripts/dump_activations.py from a PyTorch model: the input
and output of each module under its name. Embeddings, linears and norms of a
specification have the names of their weights, name(x, "…") gives any value one.`,
		Example: `  python dump_activations.py ./folder acts.safetensors
  inferflow spec trace ./folder --spec my.star --against acts.safetensors`,
		Args: argsBetween(1, 1, "one model"),
		RunE: func(c *cobra.Command, args []string) error {
			if tf.against == "" {
				return usagef("--against FILE is missing: the activations to compare with")
			}
			if !(tf.tol > 0 && tf.tol < 1) {
				return usagef("--tol %g: want a number above 0 and below 1", tf.tol)
			}
			o, err := f.options()
			if err != nil {
				return err
			}
			o.NoTokenizer = true
			m, err := openModel(c.Context(), args[0], o)
			if err != nil {
				return err
			}
			defer m.Close()
			return runTrace(m, tf)
		},
	}
	f.add(c.Flags())
	c.Flags().StringVar(&tf.against, "against", "", "safetensors file of the reference's activations")
	c.Flags().Float64Var(&tf.tol, "tol", 1e-4, "largest error that agrees, as a part of a value's largest number")
	c.Flags().StringArrayVar(&tf.rename, "rename", nil, "OLD=NEW: what a tensor's name calls OLD is NEW in the reference's modules")
	c.Flags().BoolVar(&tf.all, "all", false, "print every value, not the worst of each line")
	c.Flags().BoolVar(&tf.json, "json", false, "print JSON")
	return c
}

func runTrace(m *model.Model, tf traceFlags) error {
	r, err := activations.OpenReference(tf.against)
	if err != nil {
		return err
	}
	defer r.Close()
	for _, s := range tf.rename {
		from, to, ok := strings.Cut(s, "=")
		if !ok || from == "" {
			return usagef("--rename %q: want OLD=NEW", s)
		}
		r.Rename = append(r.Rename, [2]string{from, to})
	}
	batches, err := referenceBatches(m, r, tf.against)
	if err != nil {
		return err
	}
	if err := m.Fits(); err != nil {
		return err
	}
	rep, err := activations.Compare(m.Exact(), r, tf.tol, batches...)
	if err != nil {
		return err
	}
	if idle := r.Idle(); idle != "" {
		return usagef("--rename %s=…: no value of the specification has %q in its name: OLD stands in names of the specification, NEW in those of the reference", idle, idle)
	}
	p := tracePrinter{rep: rep, source: m.Traced.Lines, file: m.Traced.SpecName, tol: tf.tol}
	if tf.json {
		if err := p.json(); err != nil {
			return err
		}
	} else {
		p.table(tf.all)
		p.first()
		if _, err := os.Stdout.WriteString(p.b.String()); err != nil {
			return err
		}
	}
	return traceVerdict(rep, tf.against)
}

// traceVerdict is nil only where every number that was compared agrees.
func traceVerdict(rep *activations.Report, file string) error {
	unknown := rep.Undecided()
	switch {
	case rep.Compared == 0 && len(rep.Apart) > 0:
		return fmt.Errorf("spec trace: no value was compared: of %d names that both have the shapes differ, %s first", len(rep.Apart), rep.Apart[0].Name)
	case rep.Compared == 0:
		return fmt.Errorf("spec trace: no value of the specification has a name of %s", file)
	case rep.First != nil:
		return fmt.Errorf("spec trace: line %d is the first that differs from the reference", rep.First.Line.Line)
	case slices.ContainsFunc(rep.Apart, func(m activations.Match) bool { return m.Name == "logits" }):
		return fmt.Errorf("spec trace: the logits have another shape than the reference's")
	case unknown != nil:
		return fmt.Errorf("spec trace: line %d, %s: NaN here and in the reference, so nothing tells whether they agree: try other ids", unknown.Line.Line, unknown.Name)
	}
	return nil
}

// referenceBatches are the reference's ids as the model takes them.
func referenceBatches(m *model.Model, r *activations.Reference, file string) ([]*batch.Batch, error) {
	for _, id := range slices.Concat(r.IDs, r.DecoderIDs) {
		if id < 0 || int(id) >= m.Embeds() && m.Embeds() > 0 {
			return nil, fmt.Errorf("spec trace: %s: the id %d is outside the vocabulary of %d", file, id, m.Embeds())
		}
	}
	in := givenIDs{Input: r.IDs, Decoder: r.DecoderIDs}
	if len(in.Decoder) == 0 {
		in.Decoder = nil
	}
	if err := in.fits(m); err != nil {
		return nil, err
	}
	ids := slices.Concat(m.Lead(), in.sequence(m))
	if n := m.MaxContext; n > 0 && max(len(ids), len(in.Input)) > n {
		return nil, fmt.Errorf("spec trace: %s: it has %d ids, and the model is made for %d positions; dump the activations of a shorter text", file, max(len(ids), len(in.Input)), n)
	}
	batches := []*batch.Batch{wholeBatch(ids, 0, len(ids), len(ids))}
	if m.Encodes() {
		batches = append([]*batch.Batch{sourceBatch(in.Input, 0)}, batches...)
	}
	return batches, nil
}

// tracePrinter writes a comparison for people.
type tracePrinter struct {
	rep    *activations.Report
	source []string
	file   string
	tol    float64
	b      strings.Builder
}

// text is the specification's line.
func (p *tracePrinter) text(l graph.Line) string {
	if l.Line < 1 || l.Line > len(p.source) {
		return ""
	}
	return strings.TrimSpace(p.source[l.Line-1])
}

// table prints a row a value, or for each line the worst of its values.
func (p *tracePrinter) table(all bool) {
	t := table{head: []string{"line", "value", "error", "", ""}, right: []bool{true}}
	for _, m := range p.rows(all) {
		what := ""
		if m.Namesake {
			what = "another thing there"
		} else if m.Error > p.tol {
			what = "differs"
		} else if m.Unknown > 0 {
			what = "NaN on both sides"
		}
		t.add(fmt.Sprint(m.Line.Line), m.Name, errorText(m.Error), what, p.text(m.Line))
	}
	for _, m := range p.rep.Apart {
		t.add(fmt.Sprint(m.Line.Line), m.Name, "–", fmt.Sprintf("not compared: the reference's is %v", m.Shape), p.text(m.Line))
	}
	t.limit = terminalWidth(os.Stdout)
	_ = t.write(&p.b, "", colored(os.Stdout)) // a Builder does not fail
	fmt.Fprintf(&p.b, "%d values compared, largest error %s", p.rep.Compared, errorText(p.rep.Worst))
	if n := len(p.rep.Absent); n > 0 && all {
		fmt.Fprintf(&p.b, "; of the reference, not compared: %s", strings.Join(p.rep.Absent, ", "))
	} else if n > 0 {
		fmt.Fprintf(&p.b, "; %d modules of the reference have no namesake (--all lists them)", n)
	}
	p.b.WriteByte('\n')
	p.rowsInFront()
	var other []string
	for _, m := range p.rep.Matches {
		if m.Unknown > 0 {
			fmt.Fprintf(&p.b, "%s: %d numbers are NaN here and in the reference: nothing tells whether they agree\n", m.Name, m.Unknown)
		}
		if m.Namesake {
			other = append(other, m.Name)
		}
	}
	if len(other) > 0 {
		fmt.Fprintf(&p.b, "the reference's modules of these names give something else, for what is computed from them agrees: %s\n", clip(strings.Join(other, ", "), 200))
	}
}

// rowsInFront tells of values of which the reference has more rows than there are ids.
func (p *tracePrinter) rowsInFront() {
	held, left, rows := 0, 0, 0
	for _, m := range p.rep.Matches {
		if m.Rows > 0 {
			held, rows = held+1, m.Rows
		}
	}
	for _, m := range p.rep.Apart {
		if m.Rows > 0 {
			left, rows = left+1, m.Rows
		}
	}
	if rows == 0 {
		return
	}
	fmt.Fprintf(&p.b, "%d values have another number of rows in the reference (%d) than there are ids: it puts rows before the text's, or leaves some out\n", held+left, rows)
	if held > 0 {
		fmt.Fprintf(&p.b, "  its last rows agree in %d of them\n", held)
	}
	if left > 0 {
		fmt.Fprintf(&p.b, "  %d were not compared, for nothing tells which rows are the tokens'\n", left)
	}
}

// rows are all values, or the worst of each line in order of the lines' first.
func (p *tracePrinter) rows(all bool) []activations.Match {
	if all {
		return p.rep.Matches
	}
	var rows []activations.Match
	at := map[graph.Line]int{}
	for _, m := range p.rep.Matches {
		i, ok := at[m.Line]
		if !ok {
			at[m.Line] = len(rows)
			rows = append(rows, m)
		} else if better := rows[i].Namesake && !m.Namesake; better || m.Namesake == rows[i].Namesake && worse(m, rows[i]) && !(rows[i].Error > p.tol) {
			rows[i] = m
		}
	}
	return rows
}

// worse orders values of one line: by error, then by what nothing tells.
func worse(m, than activations.Match) bool {
	return m.Error > than.Error || m.Error == than.Error && m.Unknown > than.Unknown
}

func errorText(e float64) string {
	if math.IsInf(e, 0) || e > 1e30 {
		return "infinite"
	}
	return fmt.Sprintf("%.1e", e)
}

// first tells of the first difference.
func (p *tracePrinter) first() {
	d := p.rep.First
	if d == nil {
		return
	}
	fmt.Fprintf(&p.b, "\nfirst difference: %s:%d\n  %4d │ %s\n", d.Line.File, d.Line.Line, d.Line.Line, p.text(d.Line))
	fmt.Fprintf(&p.b, "  %s\n", d.Match)
	if d.Factor != 0 {
		fmt.Fprintf(&p.b, "  the reference's numbers are %.6g times these, everywhere: a factor is missing\n", d.Factor)
	} else if d.FirstRow > 0 {
		fmt.Fprintf(&p.b, "  rows before %d agree: it is something that depends on positions (rotation, window, mask) or on other rows\n", d.FirstRow)
	}
	if d.Between {
		where := fmt.Sprintf("between lines %d and %d", d.Lines[0].Line, d.Lines[1].Line)
		if d.Lines[0].Line == d.Lines[1].Line {
			where = fmt.Sprintf("within line %d", d.Lines[0].Line)
		}
		fmt.Fprintf(&p.b, "  the value agrees as %s, but not as %s: %s the reference\n  does something to it that the specification does not\n",
			d.Agrees[0], d.Name, where)
		return
	}
	if len(d.Agrees) > 0 {
		fmt.Fprintf(&p.b, "  computed from values that agree: %s\n", strings.Join(d.Agrees, ", "))
	}
	if len(d.Lines) > 1 {
		p.b.WriteString("  the lines from those to it, any of which may be wrong:\n")
		for _, l := range slices.SortedFunc(slices.Values(d.Lines), func(a, b graph.Line) int { return a.Line - b.Line }) {
			fmt.Fprintf(&p.b, "  %4d │ %s\n", l.Line, p.text(l))
		}
	}
}

// traceJSON is the form of a comparison for programs.
type traceJSON struct {
	Spec     string       `json:"spec"`
	Agrees   bool         `json:"agrees"`
	Worst    *float64     `json:"worst_error"`
	Compared int          `json:"compared"`
	Values   []traceValue `json:"values"`
	Apart    []traceValue `json:"other_shape,omitempty"`
	Absent   []string     `json:"not_compared,omitempty"`
	First    *traceFirst  `json:"first_difference,omitempty"`
}

type traceValue struct {
	Name  string   `json:"name"`
	Line  int      `json:"line"`
	Layer int      `json:"layer"`
	Shape []int    `json:"shape"`
	Error *float64 `json:"error"` // null: infinite
	NaN   int      `json:"nan_on_both_sides,omitempty"`
}

type traceFirst struct {
	traceValue
	Text    string   `json:"text"`
	Between bool     `json:"between"`
	Agrees  []string `json:"agrees"`
	Lines   []int    `json:"lines"`
}

func valueJSON(m activations.Match) traceValue {
	return traceValue{m.Name, m.Line.Line, m.Layer, m.Shape, finite(m.Error), m.Unknown}
}

func finite(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	return &x
}

func (p *tracePrinter) json() error {
	r := p.rep
	out := traceJSON{Spec: p.file, Agrees: traceVerdict(r, "") == nil, Worst: finite(r.Worst), Compared: r.Compared, Absent: r.Absent}
	for _, m := range r.Matches {
		out.Values = append(out.Values, valueJSON(m))
	}
	for _, m := range r.Apart {
		out.Apart = append(out.Apart, valueJSON(m))
	}
	if d := r.First; d != nil {
		f := &traceFirst{traceValue: valueJSON(d.Match), Text: p.text(d.Line), Between: d.Between, Agrees: d.Agrees}
		for _, l := range d.Lines {
			f.Lines = append(f.Lines, l.Line)
		}
		out.First = f
	}
	enc := json.NewEncoder(os.Stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(out)
}
