package spec

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// attributeWords say what the attributes of steps are, where the name of the
// field does not say it.
var attributeWords = map[string]string{
	"unary.F": "the activation", "unary.A": "a factor or bound", "unary.B": "a factor or bound", "experts.Act": "the activation of the experts",
	"experts.Alpha": "the clamped activation of the experts", "experts.Limit": "the clamped activation of the experts", "const.Values": "a number",
	"norm.Eps": "the epsilon of norms", "norm.Kind": "the kind of norms", "norm.Offset": "the offset of norms' factors", "norm.Groups": "the groups of norms",
	"attention.Scale": "the scale of attention", "attention.Window": "the window of attention", "attention.Mask": "the mask of attention",
	"attention.Softcap": "the cap of attention's scores", "attention.Slopes": "the slopes of attention's bias", "attention.Shared": "which layers share keys and values",
	"attention.Cache": "which layers share keys and values", "rope.Table": "which rotation a layer has", "rope.Interleaved": "the pairs of columns that are rotated", "rope.At": "the columns that are rotated",
	"rope_table": "the rotation of positions", "rope_table.Dim": "the columns that are rotated", "rope_table.Freq": "the frequencies of the rotation",
	"rope_table.Factor": "the factor of the rotation", "rope_table.Kind": "the rotation of long texts", "rope_table.LongFreq": "the rotation of long texts",
	"rope_table.Original": "the length from which texts are long", "rope_table.Theta": "the base of the rotation", "rope_table.NTKFactor": "the rotation of long texts",
	"route.TopK": "the number of chosen experts", "route.Score": "the scores of the experts", "route.Renorm": "the renormalisation of the experts' weights",
	"route.RenormEps": "the renormalisation of the experts' weights", "route.NormPow": "the renormalisation of the experts' weights", "route.Scale": "the scale of the experts' weights",
	"route.Groups": "the groups of experts", "route.TopGroups": "the number of chosen groups of experts", "route.GroupScore": "the scores of groups of experts", "route.GroupFill": "the scores of groups of experts",
	"route.ChosenSoftmax": "the softmax over the chosen experts", "route.ChosenSigmoid": "the sigmoid over the chosen experts",
	"positions.Offset": "the number of the first position", "gated_delta.Tile": "the order of columns",
}

// inWords says what differs, each once.
func inWords(attributes []string) string {
	var list []string
	for _, a := range attributes {
		word := attributeWords[a]
		if op, field, ok := strings.Cut(a, "."); word == "" && ok && !strings.Contains(a, " ") {
			word = fmt.Sprintf("%s of %s", strings.ToLower(field), op)
		} else if word == "" {
			word = strings.TrimPrefix(strings.TrimPrefix(a, "spec: "), ErrRebind.Error()+": ")
		}
		if !slices.Contains(list, word) {
			list = append(list, word)
		}
	}
	return strings.Join(list, ", ")
}

// lacksKey finds the name in the error of a configuration without it.
var lacksKey = regexp.MustCompile(` lacks ([\w.]+(?: or [\w.]+)*)`)

// whyUnread says in short why the files to be made cannot be traced as another
// reader takes them; t is that trace.
func (r *rebinder) whyUnread(t *tracer, err error) string {
	lacks := r.lost(t)
	if m := lacksKey.FindStringSubmatch(err.Error()); m != nil {
		lacks = []string{m[1]}
	}
	text, stopped := problemsIn(err)
	if len(lacks) == 0 {
		return text
	}
	without := "the specification cannot read it without " + strings.Join(lacks[:min(len(lacks), 4)], ", ")
	if stopped {
		return without
	}
	return text + "; " + without
}

// ShortReason is an error of a trace or a conversion in one line: of several
// problems the first two.
func ShortReason(err error) string {
	text, _ := problemsIn(err)
	return strings.ReplaceAll(text, ErrRebind.Error()+": ", "")
}

// problemsIn is what ShortReason says; stopped where the trace ended with an
// error of the specification's own.
func problemsIn(err error) (text string, stopped bool) {
	var fit *FitError
	if !errors.As(err, &fit) {
		text, _, _ = strings.Cut(firstLine(strings.ReplaceAll(err.Error(), "spec: ", "")), " (called by ")
		rest, ok := strings.CutPrefix(text, ErrTrace.Error()+": ")
		if ok {
			text = "the specification cannot read it: " + strings.Replace(rest, ": fail: ", ": ", 1)
		}
		return text, ok
	}
	var told []Problem
	for _, p := range fit.Problems {
		if p.Kind != ProblemStop || len(fit.Problems) == 1 {
			told = append(told, p)
		}
	}
	kinds, _ := Grouped(told)
	var texts []string
	for _, p := range kinds[:min(len(kinds), 2)] {
		texts = append(texts, firstLine(p.Text))
	}
	text = strings.Join(texts, "; ")
	if len(told) > 1 {
		text = fmt.Sprintf("%d problems: %s", len(told), text)
	}
	return text, fit.Problems[0].Kind == ProblemStop
}

// lost lists the keys that the files at hand have and another reader of those
// to be made takes for missing, with another value.
func (r *rebinder) lost(t *tracer) (keys []string) {
	for _, v := range r.from.config.list {
		i, ok := t.config.read[v.Key]
		if !ok || slices.Contains(familyKeys, v.Key) || strings.HasPrefix(v.Source, "spec default") {
			continue
		}
		if other := t.config.list[i]; strings.HasPrefix(other.Source, "spec default") && !sameSetting(v.Value, other.Value) {
			keys = append(keys, v.Key)
		}
	}
	return keys
}

// sameSetting says that two values of a setting mean the same: false is what is
// not set.
func sameSetting(a, b any) bool {
	text := func(v any) string {
		if v == false {
			v = nil
		}
		return setText(v)
	}
	return text(a) == text(b) || nearly(a, b)
}
