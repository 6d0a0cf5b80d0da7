package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/inferflow/inferflow/internal/convert"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/pull"
	"github.com/inferflow/inferflow/quant"
)

func convertCommand() *cobra.Command {
	var typ, specFile string
	var force, asJSON bool
	var set []string
	c := &cobra.Command{
		Use:   "convert MODEL OUT.gguf|OUT.safetensors|FOLDER",
		Short: "Write a model in another format",
		Long: `Writes MODEL, in any format that is read, as a GGUF file or as a Hugging Face
folder (weights, config.json, tokenizer.json; OUT.safetensors names the file of
weights, the others are laid beside it).

The model's specification says how tensors and settings are called in the other
format and how their values are laid out there. What GGUF has no key or tensor for
is kept under keys of our own, which this program reads back; where other programs
would then answer differently it says so. A family that llama.cpp does not know is
written as the folder stands, for this program alone. A file that is written to is
new, a folder is new or holds no other model; --force replaces what is there, whole
or not at all. Where a GGUF file does not say what a folder must, a notice names the
value that was taken; --set KEY=VALUE gives another.`,
		Example: `  inferflow convert ./folder model.gguf --type f16
  inferflow convert model.gguf ./folder --type bf16
  inferflow convert ./folder/pytorch_model.bin ./other/model.safetensors`,
		Args: argsBetween(2, 2, "a model and what to write"),
		RunE: func(c *cobra.Command, args []string) error {
			var done convert.Written
			o := convert.Options{Notice: notice, Force: force, Done: func(w convert.Written) { done = w }}
			o.Spec = chooseSpec(specFile)
			var err error
			if o.Spec.Set, err = parseSet(set); err != nil {
				return err
			}
			switch t, ok := quant.ParseType(typ); {
			case typ == "keep":
			case ok && (t == quant.F32 || t == quant.F16 || t == quant.BF16):
				o.Type = &t
			default:
				return usagef("--type %q: want f32, f16, bf16 or keep", typ)
			}
			ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			context.AfterFunc(ctx, stop) // a second signal ends the program at once
			o.Context = ctx
			path, err := pull.Resolve(ctx, args[0], pull.Options{Progress: pull.Terminal(os.Stderr), Note: notice})
			if err != nil {
				return err
			}
			o.Advice = advice(args[0], path)
			bar := newBar(os.Stderr)
			o.Progress = bar.show
			err = convert.Run(path, args[1], o)
			bar.end()
			if err != nil {
				return blameSet(err, o.Spec.Set)
			}
			return printWritten(done, asJSON)
		},
	}
	c.Flags().StringVar(&typ, "type", "keep", "type of matrices: f32, f16, bf16, or keep what is stored")
	c.Flags().BoolVar(&force, "force", false, "replace the file, or the model in the folder, that is written to")
	c.Flags().BoolVar(&asJSON, "json", false, "print what was written as JSON")
	c.Flags().StringArrayVar(&set, "set", nil, "of a GGUF file to a folder: a configuration value that the file does not say, KEY=VALUE (as in config.json)")
	c.Flags().StringVar(&specFile, "spec", "", "specification to use instead of the one that serves the model: a file, or the name of a shipped one")
	return c
}

// printWritten tells what a conversion wrote.
func printWritten(w convert.Written, asJSON bool) error {
	if !asJSON {
		fmt.Println(writtenText(w))
		return nil
	}
	out := struct {
		Path        string `json:"path"`
		Bytes       int64  `json:"bytes"`
		Type        string `json:"type"`
		DecodedFrom string `json:"decoded_from,omitempty"`
		SourceBytes int64  `json:"source_bytes"`
	}{Path: w.Path, Bytes: w.Bytes, Type: w.Type.String(), SourceBytes: w.Before}
	if w.Decoded {
		out.DecodedFrom = w.From.String()
	}
	return printJSON(out)
}

// writtenText is the line that tells what a conversion wrote.
func writtenText(w convert.Written) string {
	text := fmt.Sprintf("%s: %s, %s", w.Path, model.Bytes(w.Bytes), w.Type)
	if w.Decoded {
		text += fmt.Sprintf(", decoded from %s (%s)", w.From, model.Bytes(w.Before))
	}
	return plain(text)
}

// bar shows how far the writing is, on a terminal only.
type bar struct {
	w     *os.File
	tty   bool
	start time.Time
	last  time.Time
	shown bool
}

func newBar(w *os.File) *bar {
	info, err := w.Stat()
	return &bar{w: w, tty: err == nil && info.Mode()&os.ModeCharDevice != 0, start: time.Now()}
}

const barWidth = 24

func (b *bar) show(done, total int64) {
	now := time.Now()
	if !b.tty || total <= 0 || now.Sub(b.last) < 100*time.Millisecond && done < total {
		return
	}
	b.last, b.shown = now, true
	fmt.Fprintf(b.w, "\r\x1b[K%s", barText(done, total, now.Sub(b.start)))
}

// barText is the line of the bar: how much, at what rate, how long it takes still.
func barText(done, total int64, spent time.Duration) string {
	fill := int(done * barWidth / total)
	rate := float64(done) / max(spent.Seconds(), 1e-3)
	left := time.Duration(float64(total-done) / max(rate, 1) * float64(time.Second)).Round(time.Second)
	return fmt.Sprintf("[%s%s] %3d %%  %s of %s, %s/s, %s left", strings.Repeat("=", fill), strings.Repeat(" ", barWidth-fill), done*100/total,
		model.Bytes(done), model.Bytes(total), model.Bytes(int64(rate)), left)
}

func (b *bar) end() {
	if b.shown {
		fmt.Fprintln(b.w)
	}
}
